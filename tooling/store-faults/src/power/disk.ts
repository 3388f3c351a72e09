/**
 * A disk that may lose power at any moment. Certain is what was synced alone: the bytes of a file by a sync of that
 * file, its name by a sync of its folder. Of everything since then each change, independent of every other, is kept,
 * dropped, or, where it is a write, torn at the sectors of the disk.
 */
import { dirname } from "node:path";
import type { Operation } from "./trace.ts";

type Change = Extract<Operation, { act: "write" | "cut" }>;

/** What a file will hold, whatever becomes of its name. */
class FileBody {
  #certain: Buffer<ArrayBuffer> = Buffer.alloc(0);
  #pending: Change[] = [];

  change(change: Change): void {
    this.#pending.push(change);
  }

  sync(): void {
    for (const change of this.#pending) this.#certain = applied(this.#certain, change);
    this.#pending = [];
  }

  /** What is found after a power cut. */
  afterCut(fate: Fate): Buffer {
    let bytes = Buffer.from(this.#certain);
    for (const change of this.#pending) {
      const what = fate.ofChange();
      if (what === "kept" || (what === "torn" && change.act === "cut")) bytes = applied(bytes, change);
      else if (what === "torn" && change.act === "write")
        for (const sector of sectorsOf(change)) if (fate.isSectorKept()) bytes = applied(bytes, sector);
    }
    return bytes;
  }
}

const sectorBytes = 512;

/** The parts of a write that a disk writes whole: cut at the sectors of the file. */
function sectorsOf({ act, path, offset, bytes }: Extract<Change, { act: "write" }>): Change[] {
  const sectors: Change[] = [];
  for (let start = 0; start < bytes.length;) {
    const end = Math.min(bytes.length, start + sectorBytes - ((offset + start) % sectorBytes));
    sectors.push({ act, path, offset: offset + start, bytes: bytes.subarray(start, end) });
    start = end;
  }
  return sectors;
}

/** In place where the size stays: whoever still needs the bytes as they were gives a copy. */
function applied(bytes: Buffer<ArrayBuffer>, change: Change): Buffer<ArrayBuffer> {
  const size = change.act === "cut" ? change.size : Math.max(bytes.length, change.offset + change.bytes.length);
  const resized =
    size > bytes.length ? Buffer.concat([bytes, Buffer.alloc(size - bytes.length)]) : bytes.subarray(0, size);
  if (change.act === "write") change.bytes.copy(resized, change.offset);
  return resized;
}

/** What becomes of the changes that were not synced. */
export interface Fate {
  ofChange(): "kept" | "dropped" | "torn";
  isSectorKept(): boolean;
}

type Node = FileBody | "folder";

interface NameChange {
  readonly path: string;
  readonly node: Node | undefined;
  /** The name that it bore: both change, or neither. */
  readonly from?: string;
}

/** Replays operations, and tells at any point what a power cut could leave. */
export class Disk {
  readonly #root: string;
  /** Names as the running system sees them. */
  readonly #names = new Map<string, Node>();
  readonly #certainNames = new Map<string, Node>();
  /** Changes of names by the folder that has to be synced for them. */
  readonly #pendingNames = new Map<string, NameChange[]>();

  constructor(root: string) {
    this.#root = root;
    this.#names.set(root, "folder");
    this.#certainNames.set(root, "folder");
  }

  apply(operation: Operation): void {
    switch (operation.act) {
      case "told":
        return;
      case "make":
        return this.#name({ path: operation.path, node: operation.isFolder ? "folder" : new FileBody() });
      case "remove":
        return this.#name({ path: operation.path, node: undefined });
      case "move":
        return this.#move(operation.path, operation.to);
      case "sync":
        return this.#sync(operation.path);
      case "write":
      case "cut": {
        const node = this.#names.get(operation.path);
        if (!(node instanceof FileBody)) throw new Error(`${operation.path} is changed, and no file.`);
        return node.change(operation);
      }
    }
  }

  /** The files that are found after a power cut now, by path. */
  afterCut(fate: Fate): Map<string, Buffer> {
    const names = new Map(this.#certainNames);
    for (const changes of this.#pendingNames.values())
      for (const change of changes) if (fate.ofChange() !== "dropped") setName(names, change);
    const isReached = (path: string): boolean =>
      path === this.#root || (names.get(dirname(path)) === "folder" && isReached(dirname(path)));
    return new Map(
      [...names].flatMap(([path, node]): [string, Buffer][] =>
        node instanceof FileBody && isReached(path) ? [[path, node.afterCut(fate)]] : [],
      ),
    );
  }

  #move(from: string, to: string): void {
    const node = this.#names.get(from);
    if (!(node instanceof FileBody) || dirname(from) !== dirname(to))
      throw new Error(`${from} is moved to ${to}, and no file, or to another folder.`);
    this.#name({ path: to, node, from });
  }

  #name(change: NameChange): void {
    setName(this.#names, change);
    const folder = dirname(change.path);
    this.#pendingNames.set(folder, [...(this.#pendingNames.get(folder) ?? []), change]);
  }

  #sync(path: string): void {
    const node = this.#names.get(path);
    if (node instanceof FileBody) return node.sync();
    for (const change of this.#pendingNames.get(path) ?? []) setName(this.#certainNames, change);
    this.#pendingNames.delete(path);
  }
}

function setName(names: Map<string, Node>, { path, node, from }: NameChange): void {
  if (from !== undefined) names.delete(from);
  if (node === undefined) names.delete(path);
  else names.set(path, node);
}
