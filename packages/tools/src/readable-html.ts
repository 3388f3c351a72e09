/** Reduces HTML to what a reader sees, as plain Markdown: headings, lists, links, code; no scripts, nothing hidden. */

import { Parser } from "htmlparser2";
import { MarkdownText } from "./markdown-text.ts";
import type { PageText } from "./page-text.ts";

const unseen: ReadonlySet<string> = new Set([
  "script",
  "style",
  "noscript",
  "template",
  "svg",
  "math",
  "iframe",
  "object",
  "canvas",
  "select",
  "dialog",
]);

// Less than this is a page whose <main> is filled by a script, and not what there is to read.
const mainCharactersMin = 200;

/** `url` is where relative links begin. */
export function readableHtml(html: string, url: string): PageText {
  const whole = new MarkdownText(url);
  const main = new MarkdownText(url);
  let title = "";
  const open = { unseen: 0, main: 0, title: 0 };
  const writers = (): readonly MarkdownText[] => (open.main > 0 ? [whole, main] : [whole]);

  const parser = new Parser({
    onopentag(name, attributes) {
      if (open.unseen > 0 || unseen.has(name) || isHidden(attributes)) {
        open.unseen += 1;
        return;
      }
      if (name === "title") open.title += 1;
      if (name === "main" || name === "article") open.main += 1;
      for (const writer of writers()) writer.open(name, attributes);
    },
    ontext(text) {
      if (open.unseen > 0) return;
      if (open.title > 0) title += text;
      else for (const writer of writers()) writer.text(text);
    },
    onclosetag(name) {
      if (open.unseen > 0) {
        open.unseen -= 1;
        return;
      }
      for (const writer of writers()) writer.close(name);
      if (name === "title") open.title = Math.max(0, open.title - 1);
      if (name === "main" || name === "article") open.main = Math.max(0, open.main - 1);
    },
  });
  parser.write(html);
  parser.end();

  const shownTitle = title.replaceAll(/\s+/g, " ").trim();
  const mainText = main.toString();
  const text = mainText.length >= mainCharactersMin ? mainText : whole.toString();
  return { text, ...(shownTitle === "" ? {} : { title: shownTitle }) };
}

/** What a page hides from its reader it may have written for a model. */
function isHidden(attributes: Readonly<Record<string, string>>): boolean {
  const { hidden, style } = attributes;
  if (hidden !== undefined) return true;
  return attributes["aria-hidden"] === "true" || /display\s*:\s*none|visibility\s*:\s*hidden/i.test(style ?? "");
}
