import { spawnSync } from "node:child_process";
import { createServer } from "node:net";
import { chmod, mkdir, open, writeFile } from "node:fs/promises";
import path from "node:path";
import * as fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { createReadFileTool } from "../src/index.ts";
import type { FileToolsOptions, ReadFileInput } from "../src/index.ts";
import { asOrdinaryUser } from "./ordinary-user.ts";
import { rejection, workbench } from "./workbench.ts";

/** Reads a file with this content; answers what the tool answered or the message it failed with. */
async function read(
  content: string | Buffer,
  input: Omit<ReadFileInput, "path"> = {},
  options?: FileToolsOptions,
): Promise<string> {
  const { context, folder } = await workbench();
  await writeFile(path.join(folder, "file"), content);
  const call = createReadFileTool({}, options).execute({ path: "file", ...input }, context);
  return call.catch((error: Error) => error.message);
}

test("the whole file comes as it stands: line ends, a byte order mark and a missing last line end kept", async () => {
  expect(await read("\uFEFFa\r\nb\n\nä")).toBe("\uFEFFa\r\nb\n\nä");
  expect(await read("a\n")).toBe("a\n");
});

test("an empty file says so", async () => {
  expect(await read("")).toBe("(the file is empty)");
});

test("offset and limit choose lines, and a note says where to go on", async () => {
  const content = "one\ntwo\nthree\nfour\n";
  expect(await read(content, { offset: 2, limit: 2 })).toBe(
    "two\nthree\n[lines 2 to 3; the file goes on, continue with offset 4]",
  );
  expect(await read(content, { offset: 3 })).toBe("three\nfour\n");
  expect(await read(content, { limit: 4 })).toBe(content);
});

test("a line behind the end is an error that says how many lines there are", async () => {
  expect(await read("a\nb\n", { offset: 3 })).toBe('The file "file" has 2 lines; line 3 does not exist.');
  expect(await read("a\nb", { offset: 4 })).toBe('The file "file" has 2 lines; line 4 does not exist.');
  expect(await read("", { offset: 2 })).toBe('The file "file" has 0 lines; line 2 does not exist.');
});

test("the answer is bounded in bytes and cut between lines", async () => {
  expect(await read("12345\n12345\n12345\n12345\n", {}, { readBytesMax: 16 })).toBe(
    "12345\n12345\n[lines 1 to 2; the file goes on, continue with offset 3]",
  );
});

test("a line that does not fit is cut between characters, and says so", async () => {
  expect(await read(`${"ä".repeat(20)}\nnext\n`, {}, { readBytesMax: 17 })).toBe(
    `${"ä".repeat(8)}\n[line 1 is longer than what can be shown, this is its beginning; the next line, if any, is offset 2]`,
  );
});

test("following the notes reads every byte of a file once, in order", async () => {
  const bench = await workbench();
  let pageCount = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ unit: fc.constantFrom("a", "ä", "€", "\r"), maxLength: 8 }), { maxLength: 40, size: "max" }),
      fc.integer({ min: 32, max: 64 }),
      fc.integer({ min: 1, max: 6 }),
      async (lines, readBytesMax, limit) => {
        const content = lines.join("\n");
        await writeFile(path.join(bench.folder, "file"), content);
        const tool = createReadFileTool({}, { readBytesMax });
        let together = "";
        let offset: number | undefined = content === "" ? undefined : 1;
        while (offset !== undefined) {
          const answer = await tool.execute({ path: "file", offset, limit }, bench.context);
          const note: RegExpExecArray | null =
            /\[lines \d+ to \d+; the file goes on, continue with offset (\d+)\]$/.exec(answer);
          together += note ? answer.slice(0, note.index) : answer;
          offset = note ? Number(note[1]) : undefined;
          pageCount += 1;
        }
        expect(together).toBe(content);
      },
    ),
    { numRuns: 100 },
  );
  expect(pageCount).toBeGreaterThan(200);
});

test("invalid UTF-8 is shown as U+FFFD, and told", async () => {
  expect(await read(Buffer.from([0x61, 0xff, 0x62, 0x0a]))).toBe(
    "a\uFFFDb\n[bytes that are not UTF-8 text are shown as \uFFFD]",
  );
});

test("a binary file is told, not dumped", async () => {
  expect(await read(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 1]))).toBe(
    'The file "file" is binary (8 bytes); read_file shows text only.',
  );
});

test("a file of many gigabytes is read in constant memory, from any line", async () => {
  const { context, folder } = await workbench();
  const handle = await open(path.join(folder, "big"), "w");
  await handle.write(`first\n${"x".repeat(10_000)}\nthird\n`);
  await handle.truncate(8 * 1024 ** 3);
  await handle.close();
  const before = process.memoryUsage.rss();
  const tool = createReadFileTool({});
  expect(await tool.execute({ path: "big", limit: 1 }, context)).toMatch(/^first\n\[lines 1 to 1; the file goes on/);
  expect(await tool.execute({ path: "big", offset: 3, limit: 1 }, context)).toMatch(
    /^third\n\[lines 3 to 3; the file goes on/,
  );
  expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 1024 ** 2);
});

test("a stop ends a long search for a line", async () => {
  const bench = await workbench();
  const handle = await open(path.join(bench.folder, "big"), "w");
  await handle.write(`first\n${"x".repeat(10_000)}`);
  await handle.truncate(8 * 1024 ** 3);
  await handle.close();
  const call = createReadFileTool({}).execute({ path: "big", offset: 1_000 }, bench.context);
  await bench.moved;
  bench.stop();
  expect(await rejection(call)).toMatchObject({ code: "CALL_INTERRUPTED" });
});

test("what is not a file is refused in one line, and never blocks", async () => {
  const { context, folder } = await workbench();
  await mkdir(path.join(folder, "folder"));
  spawnSync("mkfifo", [path.join(folder, "pipe")]);
  const server = createServer().listen(path.join(folder, "socket"));
  onTestFinished(() => void server.close());
  await vi.waitFor(() => expect(server.listening).toBe(true));
  const messageFor = async (target: string): Promise<string> =>
    (await rejection(createReadFileTool({}).execute({ path: target }, context))).message;
  expect(await messageFor("gone")).toBe('Could not read "gone": it does not exist.');
  expect(await messageFor("folder")).toBe('Could not read "folder": it is a folder; list_files shows what is in it.');
  expect(await messageFor("pipe")).toBe('Could not read "pipe": it is a named pipe.');
  expect(await messageFor("socket")).toBe('Could not read "socket": it is a socket.');
  const inDevices = { ...context, workspace: "/dev" };
  expect((await rejection(createReadFileTool({}).execute({ path: "zero" }, inDevices))).message).toBe(
    'Could not read "zero": it is a device.',
  );
});

test("a file below a file, a circle of links and a name that is too long are told in one line", async () => {
  const { context, folder } = await workbench();
  await writeFile(path.join(folder, "file"), "x");
  spawnSync("ln", ["-s", "circle", path.join(folder, "circle")]);
  const messageFor = async (target: string): Promise<string> =>
    (await rejection(createReadFileTool({}).execute({ path: target }, context))).message;
  expect(await messageFor("file/below")).toBe(
    'Could not read "file/below": a part of the path is a file, not a folder.',
  );
  expect(await messageFor("circle")).toBe('Could not read "circle": its links lead in a circle.');
  expect(await messageFor("x".repeat(300))).toMatch(/^Could not read "x+\.\.\.": the name is too long\.$/);
});

test("a file without permission is told in one line", async () => {
  const { context, folder } = await workbench();
  await writeFile(path.join(folder, "closed"), "x");
  await chmod(path.join(folder, "closed"), 0);
  await asOrdinaryUser(folder, async () => {
    const error = await rejection(createReadFileTool({}).execute({ path: "closed" }, context));
    expect(error.message).toBe('Could not read "closed": permission denied.');
  });
});
