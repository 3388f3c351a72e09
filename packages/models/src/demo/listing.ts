import { shortened } from "./step.ts";

/** What the tool `list_files` answered, read back: a line for each entry, `folder/` or `name  SIZE bytes`. */
export interface Listing {
  readonly folders: readonly string[];
  readonly files: readonly { readonly name: string; readonly byteCount: number }[];
}

export function readListing(text: string): Listing {
  const lines = text.split("\n");
  return {
    folders: lines.flatMap((line) => /^([^[(].*)\/$/.exec(line)?.[1] ?? []),
    files: lines.flatMap((line) => {
      const match = /^(.+?) {2}(\d+) bytes$/.exec(line);
      return match ? [{ name: match[1]!, byteCount: Number(match[2]) }] : [];
    }),
  };
}

const plural = (count: number, one: string): string => `${count} ${one}${count === 1 ? "" : "s"}`;

/** A listing as the demo tells it. */
export function listed(folder: string, text: string): string {
  const { folders, files } = readListing(text);
  const place = folder === "." ? "The workspace" : folder;
  return `${place} holds ${plural(folders.length, "folder")} and ${plural(files.length, "file")}:\n${shortened(text)}`;
}
