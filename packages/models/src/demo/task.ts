/** What the demo model takes a request to be. It reads a handful of English sentences, and says so when it does not. */
export type Task =
  | { readonly kind: "list"; readonly folder: string }
  | { readonly kind: "longest"; readonly folder: string; readonly onlyReadmes: boolean }
  | { readonly kind: "read"; readonly path: string }
  | { readonly kind: "write"; readonly path: string; readonly content: string }
  | { readonly kind: "run"; readonly command: string }
  | { readonly kind: "recall" }
  | { readonly kind: "other" };

const quotes = "[`\"'“”]?";
const polite = "(?:please\\s+|(?:can|could|would) you\\s+)?";
const starting = (words: string): RegExp => new RegExp(`^${polite}(?:${words})`, "i");

const listWords = starting("(?:list|show|ls)\\b");
const listQuestion = starting("what\\b.*\\b(?:files?|folders?|director(?:y|ies))\\b");
const readWords = starting("(?:read|show|open|cat|print)\\s+(?:me\\s+)?(?:the\\s+)?(?:file\\s+)?(\\S+)$");
const pathLike = /[./]|^(?:README|LICENSE|CHANGELOG|Makefile|Dockerfile)$/;
const writeWords = new RegExp(
  `^${polite}write\\s+${quotes}(.+?)${quotes}\\s+(?:in)?to\\s+(?:the\\s+)?(?:file\\s+)?${quotes}([\\w@~./-]*\\w)${quotes}[.!?]?$`,
  "is",
);
const runWords = new RegExp(`^${polite}run\\s+(?:the\\s+)?(?:shell\\s+)?(?:command\\s+)?(.+)$`, "is");
const sleepWords = starting("(?:sleep|wait)(?:\\s+for)?\\s+(\\d+(?:\\.\\d+)?)");
const longestWords = /\b(?:longest|largest|biggest)\b/i;
const recallWords =
  /\b(?:remember|before|earlier|previous(?:ly)?|again|last (?:time|question|message|answer)|(?:first|last) thing|which one|(?:was|were) (?:it|they|the (?:longest|largest|biggest))|did (?:i|you|we)|what(?:'s| is) my|what was)\b/i;
const folderWords = new RegExp(
  `\\b(?:in|of|under|inside|within|from)\\s+(?:the\\s+)?(?:folder\\s+|directory\\s+)?${quotes}([\\w@~./-]*[\\w/.])${quotes}`,
  "i",
);
const notFolders =
  /^(?:the|this|that|it|here|me|my|your|all|each|them|folder|directory|project|repo(?:sitory)?|workspace)$/i;

function folderOf(request: string): string {
  const folder = folderWords.exec(request)?.[1]?.replace(/(?<=.)[./]+$/, "");
  return folder === undefined || folder === "" || notFolders.test(folder) ? "." : folder;
}

const bare = (word: string): string => word.replace(/^[`"'“]+|[`"'”]*[.!?]?$/g, "");

// A command in quotes is what stands between them; one without is the rest of the sentence, as it stands.
const commandOf = (text: string): string => /^([`"'])(.+)\1[.!]?$/s.exec(text.trim())?.[2] ?? text.trim();

// The sentences above are short, and patterns over megabytes would hold the loop up.
const longestRead = 2000;

/** Understands a request. A sentence that begins with a command is one, also when it says "again". */
export function taskOf(request: string): Task {
  if (request.length > longestRead) return { kind: "other" };
  const written = writeWords.exec(request);
  if (written) return { kind: "write", content: written[1]!, path: written[2]! };
  const path = bare(readWords.exec(request)?.[1] ?? "");
  if (pathLike.test(path)) return { kind: "read", path };
  const sleep = sleepWords.exec(request);
  if (sleep) return { kind: "run", command: `sleep ${sleep[1]!}` };
  const run = runWords.exec(request);
  if (run) return { kind: "run", command: commandOf(run[1]!) };
  const isCommand = listWords.test(request);
  if (!isCommand && recallWords.test(request)) return { kind: "recall" };
  if (longestWords.test(request)) {
    return { kind: "longest", folder: folderOf(request), onlyReadmes: /readme/i.test(request) };
  }
  return isCommand || listQuestion.test(request) ? { kind: "list", folder: folderOf(request) } : { kind: "other" };
}
