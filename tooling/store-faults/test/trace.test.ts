import { expect, test } from "vitest";
import { TraceReader } from "../src/power/trace.ts";

const hex = (text: string): string =>
  [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
const file = hex("/disk/state.db");
const spool = hex("/disk/spool");
const step = hex("/disk/spool/s.jsonl");
const claimed = hex("/disk/spool/s~1.jsonl");
const read = (...lines: readonly string[]) => new TraceReader("/disk").read(lines.join("\n"));

test("writes, cuts, syncs, names and what was told are read in their order", () => {
  expect(
    read(
      `7  mkdir("${hex("/disk/home")}", 0700)    = 0`,
      `7  openat(AT_FDCWD<${hex("/")}>, "${file}", O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600) = 9<${file}>`,
      `7  openat(AT_FDCWD<${hex("/")}>, "${file}", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 9<${file}>`,
      `7  pwrite64(9<${file}>, "${hex("text")}", 4, 12) = 4`,
      `7  fdatasync(9<${file}>)       = 0`,
      `7  write(1<${hex("pipe:[5]")}>, "${hex('{"a":1}\n')}", 8) = 8`,
      `7  ftruncate(9<${file}>, 3)    = 0`,
      `7  unlink("${file}")           = 0`,
      `7  mkdir("${spool}", 0700)     = 0`,
      `7  openat(AT_FDCWD<${hex("/")}>, "${step}", O_RDWR|O_CREAT|O_APPEND|O_NOFOLLOW|O_CLOEXEC, 0600) = 9<${step}>`,
      `7  write(9<${step}>, "${hex("one\n")}", 4) = 4`,
      `7  write(9<${step}>, "${hex("two\n")}", 4) = 3`,
      `7  rename("${step}", "${claimed}") = 0`,
      `7  unlink("${claimed}")        = 0`,
      `7  rmdir("${spool}")           = 0`,
    ),
  ).toEqual([
    { act: "make", path: "/disk/home", isFolder: true },
    { act: "make", path: "/disk/state.db", isFolder: false },
    { act: "write", path: "/disk/state.db", offset: 12, bytes: Buffer.from("text") },
    { act: "sync", path: "/disk/state.db" },
    { act: "told", line: '{"a":1}' },
    { act: "cut", path: "/disk/state.db", size: 3 },
    { act: "remove", path: "/disk/state.db" },
    { act: "make", path: "/disk/spool", isFolder: true },
    { act: "make", path: "/disk/spool/s.jsonl", isFolder: false },
    { act: "write", path: "/disk/spool/s.jsonl", offset: 0, bytes: Buffer.from("one\n") },
    { act: "write", path: "/disk/spool/s.jsonl", offset: 4, bytes: Buffer.from("two") },
    { act: "move", path: "/disk/spool/s.jsonl", to: "/disk/spool/s~1.jsonl" },
    { act: "remove", path: "/disk/spool/s~1.jsonl" },
    { act: "remove", path: "/disk/spool" },
  ]);
});

test("a call that another thread interrupts stands where it returned", () => {
  expect(
    read(
      `7  fdatasync(9<${file}> <unfinished ...>`,
      `8  write(4<${hex("anon_inode:[eventfd]")}>, "\\x01", 1) = 1`,
      `7  <... fdatasync resumed>)    = 0`,
    ),
  ).toEqual([{ act: "sync", path: "/disk/state.db" }]);
});

test("calls that failed, and those on other files, are no operations", () => {
  expect(
    read(
      `7  fdatasync(9<${file}>)       = -1 EIO (Input/output error)`,
      `7  unlink("${hex("/disk/state.db-wal")}") = -1 ENOENT (No such file or directory)`,
      `7  pwrite64(9<${hex("/elsewhere")}>, "\\x01", 1, 0) = 1`,
      `7  ftruncate(9<${hex("/disk/state.db-shm")}>, 32768) = 0`,
    ),
  ).toEqual([]);
});

test("a change of the disk that is not understood is refused", () => {
  expect(() => read(`7  link("${file}", "${hex("/disk/old.db")}") = 0`)).toThrow(/not understood/);
  expect(() => read(`7  write(9<${file}>, "\\x01", 1)  = 1`)).toThrow(/position/);
});
