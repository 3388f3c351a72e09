/** One act on a disk, or a line that was told, in the order in which they happened. */
export type Operation =
  | { readonly act: "write"; readonly path: string; readonly offset: number; readonly bytes: Buffer }
  | { readonly act: "cut"; readonly path: string; readonly size: number }
  | { readonly act: "sync"; readonly path: string }
  | { readonly act: "make"; readonly path: string; readonly isFolder: boolean }
  | { readonly act: "remove"; readonly path: string }
  | { readonly act: "move"; readonly path: string; readonly to: string }
  | { readonly act: "told"; readonly line: string };

/** What changes a disk. All of it is traced, so that what is not understood is noticed. */
const understood = "openat,write,pwrite64,ftruncate,fsync,fdatasync,unlink,rmdir,mkdir,rename";
const refused =
  "creat,unlinkat,renameat,renameat2,link,linkat,symlink,mkdirat,truncate,writev,pwritev,pwritev2,fallocate,sync_file_range,copy_file_range,sendfile";

/** The command that starts a process traced, with the operations in `log`. */
export function tracer(log: string): readonly string[] {
  const calls = `trace=${understood},${refused}`;
  return ["strace", "-f", "-qq", "-xx", "-y", "-s", "1000000", "--seccomp-bpf", "-o", log, "-e", calls];
}

function bytesOf(hex: string): Buffer {
  return Buffer.from(hex.replaceAll("\\x", ""), "hex");
}

/** A call that another thread's call interrupts is traced in two lines; joined, it stands where it returned. */
function wholeCalls(log: string): string[] {
  const begun = new Map<string, string>();
  return log.split("\n").flatMap((line) => {
    const [, thread = "", rest = ""] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    if (rest.endsWith("<unfinished ...>")) {
      begun.set(thread, rest.slice(0, -"<unfinished ...>".length).trimEnd());
      return [];
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest);
    return [resumed ? `${begun.get(thread) ?? ""}${resumed[1]}` : rest];
  });
}

const hex = String.raw`((?:\\x[0-9a-f]{2})*)`;
const descriptor = String.raw`(\d+)<${hex}>`;
const patterns = {
  write: new RegExp(String.raw`^pwrite64\(${descriptor}, "${hex}", \d+, (\d+)\)\s*= (\d+)`),
  tell: new RegExp(String.raw`^write\(${descriptor}, "${hex}", \d+\)\s*= (\d+)`),
  cut: new RegExp(String.raw`^ftruncate\(${descriptor}, (\d+)\)\s*= 0`),
  sync: new RegExp(String.raw`^f(?:data)?sync\(${descriptor}\)\s*= 0`),
  open: new RegExp(String.raw`^openat\([^"]*"${hex}", (\S+?)(?:, \d+)?\)\s*= \d+`),
  remove: new RegExp(String.raw`^(?:unlink|rmdir)\("${hex}"\)\s*= 0`),
  move: new RegExp(String.raw`^rename\("${hex}", "${hex}"\)\s*= 0`),
  folder: new RegExp(String.raw`^mkdir\("${hex}", \d+\)\s*= 0`),
} as const;

/** Files whose loss costs nothing: the shared memory is made anew from the WAL, and the reserve is space alone. */
const besides: readonly string[] = ["-shm", "-reserve"];

/** Reads a trace; only what lies below `root` is told of. Throws on a change of it that it does not understand. */
export class TraceReader {
  readonly #root: string;
  /** Files that are there, with their lengths: so opening one is told from making it, and what is appended has its place. */
  readonly #lengths = new Map<string, number>();

  /** Files that were opened so that each write goes to their end. */
  readonly #appended = new Set<string>();

  constructor(root: string) {
    this.#root = root;
    this.#lengths.set(root, 0);
  }

  read(log: string): Operation[] {
    return wholeCalls(log).flatMap((call) => this.#operations(call));
  }

  #operations(call: string): Operation[] {
    const name = /^\w+/.exec(call)?.[0] ?? "";
    const isOurs = (path: string): boolean =>
      (path === this.#root || path.startsWith(`${this.#root}/`)) && !besides.some((mark) => path.includes(mark));
    const [path, match, act] = this.#match(call);
    if (act === "tell" && match[1] === "1")
      return bytesOf(match[3] ?? "")
        .toString()
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => ({ act: "told", line }));
    if (act === undefined) {
      const isFailed = / = -1 /.test(call) || name === "openat";
      const isElsewhere = !call.includes(hexOf(this.#root)) || besides.some((mark) => call.includes(hexOf(mark)));
      if (!isFailed && !isElsewhere && /^\w+\(/.test(call))
        throw new Error(`The trace has a call that is not understood: ${call.slice(0, 200)}`);
      return [];
    }
    if (!isOurs(path)) return [];
    switch (act) {
      case "write":
        return [this.#write(path, Number(match[4]), bytesOf(match[3] ?? "").subarray(0, Number(match[5])))];
      case "tell":
        if (!this.#appended.has(path))
          throw new Error(`${path} is written at a position that the trace does not tell.`);
        return [this.#write(path, this.#lengths.get(path) ?? 0, bytesOf(match[3] ?? "").subarray(0, Number(match[4])))];
      case "cut":
        this.#lengths.set(path, Number(match[3]));
        return [{ act, path, size: Number(match[3]) }];
      case "sync":
        return [{ act, path }];
      case "open": {
        const flags = match[2] ?? "";
        const isThere = this.#lengths.has(path);
        if (flags.includes("O_APPEND")) this.#appended.add(path);
        if (isThere && flags.includes("O_TRUNC")) throw new Error(`${path} is truncated by opening it.`);
        if (isThere || !flags.includes("O_CREAT")) return [];
        this.#lengths.set(path, 0);
        return [{ act: "make", path, isFolder: false }];
      }
      case "remove":
        this.#lengths.delete(path);
        return [{ act, path }];
      case "move": {
        const to = bytesOf(match[2] ?? "").toString();
        this.#lengths.set(to, this.#lengths.get(path) ?? 0);
        this.#lengths.delete(path);
        return [{ act, path, to }];
      }
      case "folder":
        this.#lengths.set(path, 0);
        return [{ act: "make", path, isFolder: true }];
    }
  }

  #write(path: string, offset: number, bytes: Buffer): Operation {
    this.#lengths.set(path, Math.max(this.#lengths.get(path) ?? 0, offset + bytes.length));
    return { act: "write", path, offset, bytes };
  }

  #match(call: string): readonly [string, RegExpExecArray, keyof typeof patterns] | readonly ["", [], undefined] {
    for (const [act, pattern] of Object.entries(patterns)) {
      const match = pattern.exec(call);
      if (!match) continue;
      const path = bytesOf((["open", "remove", "move", "folder"].includes(act) ? match[1] : match[2]) ?? "").toString();
      return [path, match, act as keyof typeof patterns];
    }
    return ["", [], undefined];
  }
}

function hexOf(text: string): string {
  return [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
}
