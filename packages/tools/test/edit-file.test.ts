import { chmod, readFile, readdir, stat, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import { expect, test, vi } from "vitest";
import { createEditFileTool, createReadFileTool, createSeenFiles, createWriteFileTool } from "../src/index.ts";
import * as fileReplacement from "../src/file-replacement.ts";
import { rejection, workbench } from "./workbench.ts";
import type { Workbench } from "./workbench.ts";

const tool = createEditFileTool({ host: systemHost });

async function edited(
  content: string | Buffer,
  input: { readonly old_text: string; readonly new_text: string; readonly replace_all?: boolean },
): Promise<{ readonly bench: Workbench; readonly file: string; readonly answer: Promise<string> }> {
  const bench = await workbench();
  const file = path.join(bench.folder, "note.txt");
  await writeFile(file, content);
  return { bench, file, answer: tool.execute({ path: "note.txt", ...input }, bench.context) };
}

test("text that stands in the file once is replaced, and the answer is a diff", async () => {
  const { file, answer } = await edited("one\ntwo\nthree\nfour\nfive\nsix\n", { old_text: "thr", new_text: "THR" });
  expect(await answer).toBe(
    [
      'Edited "note.txt": 1 replacement.',
      "@@ -1,6 +1,6 @@",
      " one",
      " two",
      "-three",
      "+THRee",
      " four",
      " five",
      " six",
    ].join("\n"),
  );
  expect(await readFile(file, "utf8")).toBe("one\ntwo\nTHRee\nfour\nfive\nsix\n");
});

test("text that stands there more often is refused with its lines, overlaps counted", async () => {
  const { file, answer } = await edited("a\nb a\nc\naa\n", { old_text: "a", new_text: "x" });
  const error = await rejection(answer);
  expect(error).toMatchObject({ code: "EDIT_REFUSED" });
  expect(error.message).toContain('stands in "note.txt" 4 times, at lines 1, 2, 4, 4.');
  expect(await readFile(file, "utf8")).toBe("a\nb a\nc\naa\n");
  const overlapping = await edited("xaaax", { old_text: "aa", new_text: "b" });
  expect((await rejection(overlapping.answer)).message).toContain("2 times");
});

test("replace_all replaces each of them, without overlaps", async () => {
  const { file, answer } = await edited("aaa\nb\na\n", { old_text: "a", new_text: "xy", replace_all: true });
  expect(await answer).toContain("4 replacements");
  expect(await readFile(file, "utf8")).toBe("xyxyxy\nb\nxy\n");
});

test("text that is not there is refused with the nearest lines", async () => {
  const lines = ["function first() {", "    return compute(alpha, beta);", "}", "const unrelated = 1;"];
  const { answer } = await edited(lines.join("\n"), { old_text: "  return compute(alpha, betta);", new_text: "x" });
  expect((await rejection(answer)).message).toBe(
    'old_text does not stand in "note.txt". Read the file again. The nearest lines are:\n2:     return compute(alpha, beta);',
  );
  const indented = await edited(lines.join("\n"), { old_text: "\treturn compute(alpha, beta);", new_text: "x" });
  expect((await rejection(indented.answer)).message).toContain("Look at white space");
  const nothing = await edited("abc\n", { old_text: "zzzzzz", new_text: "x" });
  expect((await rejection(nothing.answer)).message).toContain("nothing in it is like it");
});

test("patterns in the texts mean themselves", async () => {
  const { file, answer } = await edited("a.c abc $1\n", { old_text: "a.c", new_text: "$& $1 \\n" });
  await answer;
  expect(await readFile(file, "utf8")).toBe("$& $1 \\n abc $1\n");
});

test("Windows line ends stay, also where the edit has plain ones", async () => {
  const { file, answer } = await edited("one\r\ntwo\r\nthree\r\n", { old_text: "one\ntwo", new_text: "1\n2\n3" });
  await answer;
  expect(await readFile(file, "utf8")).toBe("1\r\n2\r\n3\r\nthree\r\n");
});

test("plain line ends stay, also where the edit has Windows ones", async () => {
  const { file, answer } = await edited("one\ntwo\n", { old_text: "two", new_text: "2\r\n3" });
  await answer;
  expect(await readFile(file, "utf8")).toBe("one\n2\n3\n");
});

test("in a file with both, new lines end as the replaced ones did", async () => {
  const { file, answer } = await edited("a\r\nb\r\nc\nd\n", { old_text: "c\nd", new_text: "C\nD" });
  await answer;
  expect(await readFile(file, "utf8")).toBe("a\r\nb\r\nC\nD\n");
});

test("a byte order mark and a missing last line end stay", async () => {
  const { file, answer } = await edited("\uFEFFone\ntwo", { old_text: "one", new_text: "1" });
  expect(await answer).toContain("+1\n two\n\\ No newline at end of file");
  expect(await readFile(file)).toEqual(Buffer.from("\uFEFF1\ntwo"));
});

test("the mode stays, and nothing is left beside the file", async () => {
  const { bench, file } = await edited("x", { old_text: "y", new_text: "z" }).then(async (one) => {
    await rejection(one.answer);
    return one;
  });
  await chmod(file, 0o751);
  await tool.execute({ path: "note.txt", old_text: "x", new_text: "y" }, bench.context);
  expect((await stat(file)).mode & 0o777).toBe(0o751);
  expect(await readdir(bench.folder)).toEqual(["note.txt"]);
});

test.each([
  ["binary", Buffer.from([65, 0, 66])],
  ["not UTF-8", Buffer.from([65, 0xff, 66])],
])("a file that is %s is refused: it would be damaged", async (_name, content) => {
  const { file, answer } = await edited(content, { old_text: "A", new_text: "B" });
  expect(await rejection(answer)).toMatchObject({ code: "FILE_UNUSABLE" });
  expect(await readFile(file)).toEqual(content);
});

test("an edit that changes nothing is refused", async () => {
  const { answer } = await edited("a", { old_text: "a", new_text: "a" });
  expect(await rejection(answer)).toMatchObject({ code: "EDIT_REFUSED" });
});

test("a file that is missing or a folder is refused", async () => {
  const { context } = await workbench();
  const input = { old_text: "a", new_text: "b" };
  for (const target of ["missing", "."]) {
    expect(await rejection(tool.execute({ path: target, ...input }, context))).toMatchObject({ code: "FILE_UNUSABLE" });
  }
});

test("a long diff is cut, and says how much is missing", async () => {
  const { answer } = await edited("a\n".repeat(500), { old_text: "a", new_text: "b", replace_all: true });
  expect(await answer).toMatch(/\[\.\.\. 801 more lines of the diff\]$/);
});

/** Tools that share what they have seen, as `builtinTools` makes them. */
function together(): {
  readonly read: ReturnType<typeof createReadFileTool>;
  readonly write: ReturnType<typeof createWriteFileTool>;
  readonly edit: ReturnType<typeof createEditFileTool>;
} {
  const deps = { host: systemHost, seen: createSeenFiles() };
  return { read: createReadFileTool(deps), write: createWriteFileTool(deps), edit: createEditFileTool(deps) };
}

test("a file that somebody else changed since this session read it is left alone, until it is read again", async () => {
  const { folder, context } = await workbench();
  const file = path.join(folder, "note.txt");
  const { read, write, edit } = together();
  await writeFile(file, "one\n");
  await read.execute({ path: "note.txt" }, context);
  await writeFile(file, "one, and more\n");
  const input = { path: "note.txt", old_text: "one", new_text: "1" };
  expect(await rejection(edit.execute(input, context))).toMatchObject({ code: "FILE_CHANGED" });
  expect(await rejection(write.execute({ path: "note.txt", content: "" }, context))).toMatchObject({
    code: "FILE_CHANGED",
  });
  expect(await readFile(file, "utf8")).toBe("one, and more\n");
  expect(await edit.execute(input, { ...context, sessionId: "another" })).toContain("1 replacement");
  await read.execute({ path: "note.txt" }, context);
  await edit.execute({ ...input, old_text: "1", new_text: "one" }, context);
  expect(await readFile(file, "utf8")).toBe("one, and more\n");
});

test("a change of the same size is seen by its time, one of the same time by its size", async () => {
  const { folder, context } = await workbench();
  const file = path.join(folder, "note.txt");
  const { read, edit } = together();
  const input = { path: "note.txt", old_text: "o", new_text: "0" };
  await writeFile(file, "one\n");
  await utimes(file, 1, 1);
  await read.execute({ path: "note.txt" }, context);
  await utimes(file, 2, 2);
  expect(await rejection(edit.execute(input, context))).toMatchObject({ code: "FILE_CHANGED" });
  await read.execute({ path: "note.txt" }, context);
  await writeFile(file, "one more\n");
  await utimes(file, 2, 2);
  expect(await rejection(edit.execute(input, context))).toMatchObject({ code: "FILE_CHANGED" });
});

test("what this session wrote itself it knows", async () => {
  const { folder, context } = await workbench();
  const { read, write, edit } = together();
  await write.execute({ path: "note.txt", content: "one\n" }, context);
  await edit.execute({ path: "note.txt", old_text: "one", new_text: "two" }, context);
  await read.execute({ path: "note.txt" }, context);
  await edit.execute({ path: "note.txt", old_text: "two", new_text: "three" }, context);
  await write.execute({ path: "note.txt", content: "four\n" }, context);
  expect(await readFile(path.join(folder, "note.txt"), "utf8")).toBe("four\n");
});

test("edits of one file that come together take their turns: none is lost", async () => {
  const { folder, context } = await workbench();
  const { edit } = together();
  const names = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"];
  await writeFile(path.join(folder, "note.txt"), names.join("\n"));
  await Promise.all(
    names.map((name) => edit.execute({ path: "note.txt", old_text: name, new_text: name.toUpperCase() }, context)),
  );
  expect(await readFile(path.join(folder, "note.txt"), "utf8")).toBe(names.join("\n").toUpperCase());
});

test("a file that is changed between the reading and the rename is left alone", async () => {
  const { folder, context } = await workbench();
  const file = path.join(folder, "note.txt");
  await writeFile(file, "one\n");
  const replace = fileReplacement.replaceFile;
  vi.spyOn(fileReplacement, "replaceFile").mockImplementation(async (...args) => {
    await writeFile(file, "somebody else's\n");
    return replace(...args);
  });
  const call = tool.execute({ path: "note.txt", old_text: "one", new_text: "1" }, context);
  expect(await rejection(call)).toMatchObject({ code: "FILE_CHANGED" });
  expect(await readFile(file, "utf8")).toBe("somebody else's\n");
  expect(await readdir(folder)).toEqual(["note.txt"]);
});

test("control: without the look before the rename, somebody else's change is lost", async () => {
  const { folder, context } = await workbench();
  const file = path.join(folder, "note.txt");
  await writeFile(file, "one\n");
  const replace = fileReplacement.replaceFile;
  vi.spyOn(fileReplacement, "replaceFile").mockImplementation(async (target, { basis: _basis, ...replacement }) => {
    await writeFile(file, "somebody else's\n");
    return replace(target, replacement);
  });
  await tool.execute({ path: "note.txt", old_text: "one", new_text: "1" }, context);
  expect(await readFile(file, "utf8")).toBe("1\n");
});

test("a stop leaves the old content", async () => {
  const bench = await workbench();
  const file = path.join(bench.folder, "note.txt");
  await writeFile(file, "one\n");
  const call = tool.execute({ path: "note.txt", old_text: "one", new_text: "1" }, bench.context);
  bench.stop();
  expect(await rejection(call)).toMatchObject({ code: "CALL_INTERRUPTED" });
  expect(await readFile(file, "utf8")).toBe("one\n");
  expect(await readdir(bench.folder)).toEqual(["note.txt"]);
});
