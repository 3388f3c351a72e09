/** Writes Markdown from the tags and texts of a page as they come, in linear time. */

type Attributes = Readonly<Record<string, string>>;

const blocks: ReadonlySet<string> = new Set([
  "p",
  "div",
  "section",
  "article",
  "main",
  "header",
  "footer",
  "nav",
  "aside",
  "form",
  "fieldset",
  "figure",
  "figcaption",
  "blockquote",
  "table",
  "ul",
  "ol",
  "dl",
  "dt",
  "dd",
  "details",
  "summary",
  "address",
  "body",
]);

const shownUrlCharactersMax = 2_000;
const listIndentMax = 8;

export class MarkdownText {
  readonly #base: string;
  readonly #pieces: string[] = [];
  /** Line ends that are due before the next text: 1 for a new line, 2 for a paragraph. */
  #dueLineEnds = 0;
  #dueSpace = false;
  #empty = true;
  /** What opens right inside an item goes on behind its sign. */
  #atItemStart = false;
  #preDepth = 0;
  readonly #lists: { readonly ordered: boolean; count: number }[] = [];
  readonly #links: (string | undefined)[] = [];

  constructor(base: string) {
    this.#base = base;
  }

  open(name: string, attributes: Attributes): void {
    const heading = /^h([1-6])$/.exec(name);
    if (heading) {
      this.#due(2);
      this.#write(`${"#".repeat(Number(heading[1]))} `);
      return;
    }
    switch (name) {
      case "br":
        if (this.#preDepth > 0) this.#pieces.push("\n");
        else this.#due(1);
        return;
      case "hr":
        this.#due(2);
        this.#write("---");
        this.#due(2);
        return;
      case "pre":
        this.#due(2);
        this.#write("```\n");
        this.#preDepth += 1;
        return;
      case "code":
        if (this.#preDepth === 0) this.#write("`");
        return;
      case "ul":
      case "ol":
        this.#due(this.#lists.length === 0 ? 2 : 1);
        this.#lists.push({ ordered: name === "ol", count: 0 });
        return;
      case "li":
        this.#openItem();
        return;
      case "tr":
        this.#due(1);
        return;
      case "td":
      case "th":
        if (this.#dueLineEnds === 0 && !this.#empty) this.#write(" | ");
        return;
      case "img":
        if (attributes["alt"]?.trim()) this.#write(`[image: ${attributes["alt"].trim()}]`);
        return;
      case "a":
        this.#links.push(this.#linkOf(attributes["href"]));
        if (this.#links.at(-1) !== undefined) this.#write("[");
        return;
      default:
        if (blocks.has(name)) this.#due(2);
    }
  }

  text(text: string): void {
    if (this.#preDepth > 0) {
      this.#write(text);
      return;
    }
    const words = text.replaceAll(/[\s\u200B]+/g, " ");
    if (words === "") return;
    if (words.startsWith(" ")) this.#dueSpace = true;
    const inner = words.trim();
    if (inner === "") return;
    this.#write(inner);
    this.#dueSpace = words.endsWith(" ");
  }

  close(name: string): void {
    if (/^h[1-6]$/.test(name)) {
      this.#due(2);
      return;
    }
    switch (name) {
      case "pre":
        this.#preDepth = Math.max(0, this.#preDepth - 1);
        this.#pieces.push("\n```");
        this.#due(2);
        return;
      case "code":
        if (this.#preDepth === 0) this.#pieces.push("`");
        return;
      case "ul":
      case "ol":
        this.#lists.pop();
        this.#due(this.#lists.length === 0 ? 2 : 1);
        return;
      case "li":
        this.#atItemStart = false;
        this.#due(1);
        return;
      case "a": {
        const link = this.#links.pop();
        if (link !== undefined) this.#pieces.push(`](${link})`);
        return;
      }
      default:
        if (blocks.has(name)) this.#due(2);
    }
  }

  toString(): string {
    return this.#pieces.join("").trim();
  }

  #openItem(): void {
    this.#due(1);
    const list = this.#lists.at(-1);
    if (list) list.count += 1;
    const indent = "  ".repeat(Math.min(Math.max(0, this.#lists.length - 1), listIndentMax));
    this.#write(`${indent}${list?.ordered === true ? `${list.count}.` : "-"} `);
    this.#atItemStart = true;
  }

  #due(lineEnds: 1 | 2): void {
    if (this.#empty || this.#atItemStart) return;
    // Items stay together, whatever they hold.
    this.#dueLineEnds = Math.max(this.#dueLineEnds, this.#lists.length > 0 ? 1 : lineEnds);
  }

  #write(text: string): void {
    if (this.#dueLineEnds > 0) this.#pieces.push("\n".repeat(this.#dueLineEnds));
    else if (this.#dueSpace && !this.#empty) this.#pieces.push(" ");
    this.#pieces.push(text);
    this.#dueLineEnds = 0;
    this.#dueSpace = false;
    this.#empty = false;
    this.#atItemStart = false;
  }

  /** Only what can be fetched again is worth its place. */
  #linkOf(href: string | undefined): string | undefined {
    if (href === undefined || href.startsWith("#") || href.length > shownUrlCharactersMax) return undefined;
    try {
      const url = new URL(href, this.#base);
      return url.protocol === "http:" || url.protocol === "https:" ? url.href : undefined;
    } catch {
      return undefined;
    }
  }
}
