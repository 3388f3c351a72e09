/** Turns the bytes of a page into text: by its charset, and says whether that is HTML. */

import { TextDecoder } from "node:util";

export interface PageBytes {
  readonly body: Uint8Array;
  readonly contentType: string;
  readonly url: string;
  /** Leaves HTML as it stands. */
  readonly raw: boolean;
}

export interface PageText {
  readonly text: string;
  readonly title?: string;
}

// Where a page says its charset itself, it must do so here.
const declaredWithinBytes = 1_024;

/** What needs no worker: decoding is as long as its input. Nothing for what may be HTML. */
export function plainText({ body, contentType, raw }: PageBytes): PageText | undefined {
  if (!raw && (contentType === "" || isHtmlType(contentType))) return undefined;
  return { text: decoded(body, contentType) };
}

/** The page as text, and whether it is HTML still to be reduced. */
export function decodedPage({ body, contentType }: PageBytes): { readonly text: string; readonly isHtml: boolean } {
  const text = decoded(body, contentType);
  return { text, isHtml: isHtmlType(contentType) || looksHtml(text) };
}

function isHtmlType(contentType: string): boolean {
  return /^(?:text\/html|application\/xhtml\+xml)\b/.test(contentType);
}

function decoded(body: Uint8Array, contentType: string): string {
  const name = markedCharset(body) ?? /charset\s*=\s*["']?([^\s"';]+)/.exec(contentType)?.[1] ?? declaredCharset(body);
  return decoderFor(name ?? "utf-8")
    .decode(body)
    .replaceAll("\0", "\uFFFD");
}

/** An unknown charset is read as UTF-8, and shows what does not fit as U+FFFD. */
function decoderFor(name: string): TextDecoder {
  try {
    return new TextDecoder(name);
  } catch {
    return new TextDecoder("utf-8");
  }
}

/** A byte order mark is stronger than anything that is said. */
function markedCharset([first, second, third]: Uint8Array): string | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  return first === 0xff && second === 0xfe ? "utf-16le" : undefined;
}

function declaredCharset(body: Uint8Array): string | undefined {
  const start = Buffer.from(body.subarray(0, declaredWithinBytes)).toString("latin1");
  return (
    /<meta[^>]{0,200}charset\s*=\s*["']?([\w-]{1,40})/i.exec(start)?.[1] ??
    /^<\?xml[^>]{0,200}encoding\s*=\s*["']([\w-]{1,40})/i.exec(start)?.[1]
  );
}

function looksHtml(text: string): boolean {
  return /^\s{0,1000}(?:<!doctype html|<html|<head|<body)/i.test(text.slice(0, 2_000));
}
