/** A piece of what was said: words as they stand, code within them, or a block of code. */
export interface ProsePiece {
  readonly kind: "words" | "strong" | "code" | "fence";
  readonly text: string;
  /** What a block of code says it is. */
  readonly language?: string;
}

const fence = /^(`{3,}|~{3,})([^\n`]*)\n?$/;
const inline = /`([^`\n]+)`|\*\*([^*\n]+)\*\*/g;

function inlinePieces(text: string): ProsePiece[] {
  const pieces: ProsePiece[] = [];
  let from = 0;
  for (const match of text.matchAll(inline)) {
    if (match.index > from) pieces.push({ kind: "words", text: text.slice(from, match.index) });
    const [whole, code, strong] = match;
    pieces.push(code === undefined ? { kind: "strong", text: strong ?? whole } : { kind: "code", text: code });
    from = match.index + whole.length;
  }
  if (from < text.length) pieces.push({ kind: "words", text: text.slice(from) });
  return pieces;
}

/**
 * Tells code from words, and nothing more of Markdown: every piece is shown as text, so whatever a model or a tool says
 * cannot become anything else. A block of code that has no end yet goes to the end.
 */
export function prosePieces(text: string): readonly ProsePiece[] {
  const pieces: ProsePiece[] = [];
  const lines = text.split(/(?<=\n)/);
  let words = "";
  let code: { readonly mark: string; readonly language: string; text: string } | undefined;
  const show = ({ text: said, language }: { readonly text: string; readonly language: string }): void =>
    void pieces.push({ kind: "fence", text: said.replace(/\n$/, ""), ...(language === "" ? {} : { language }) });
  const say = (): void => {
    const said = words.replace(/^\n+|\n+$/g, "");
    if (said !== "") pieces.push(...inlinePieces(said));
    words = "";
  };
  for (const line of lines) {
    if (code) {
      if (line.trimEnd().startsWith(code.mark) && line.trim().replaceAll(code.mark[0] ?? "", "") === "") {
        show(code);
        code = undefined;
      } else code.text += line;
      continue;
    }
    const opening = fence.exec(line);
    if (opening) {
      say();
      code = { mark: opening[1] ?? "", language: (opening[2] ?? "").trim(), text: "" };
    } else words += line;
  }
  if (code) show(code);
  else say();
  return pieces;
}
