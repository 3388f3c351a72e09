// The build of a checkout ends, also when the compiler does not.
import { expect, test } from "vitest";
interface BuildModule {
  readonly build: (
    run: (more: readonly string[]) => Promise<number | undefined>,
    say: (line: string) => void,
  ) => Promise<number>;
  readonly runBounded: (
    command: string,
    args: readonly string[],
    options: { readonly limitMs: number },
  ) => Promise<number | undefined>;
}

// The set-up of a checkout is plain JavaScript outside the workspace: it runs before anything is installed.
const file = new URL("../../bootstrap/build.mjs", import.meta.url).href;
const { build, runBounded } = (await import(file)) as BuildModule;

function scripted(answers: (number | undefined)[]) {
  const asked: string[] = [];
  const said: string[] = [];
  const code = build(
    (more) => {
      asked.push(more.join(" "));
      return Promise.resolve(answers.shift());
    },
    (line) => said.push(line),
  );
  return code.then((code) => ({ code, asked, said }));
}

test.each([0, 2])("a compiler that answers %i is believed the first time", async (answer) => {
  expect(await scripted([answer, 9])).toEqual({ code: answer, asked: [""], said: [] });
});

test("a compiler that does not end runs once more on one thread, and this is said", async () => {
  expect(await scripted([undefined, 2])).toEqual({
    code: 2,
    asked: ["", "--singleThreaded"],
    said: ["build: the compiler did not end in time; once more, on one thread"],
  });
});

test("a compiler that never ends fails the build", async () => {
  const { code, said } = await scripted([undefined, undefined]);
  expect({ code, lines: said.length }).toEqual({ code: 1, lines: 2 });
});

const hasPosixCommands = process.platform !== "win32";

test.skipIf(!hasPosixCommands)("a process past its limit is ended; one within it gives its code", async () => {
  expect(await runBounded("tail", ["-f", "/dev/null"], { limitMs: 0 })).toBeUndefined();
  expect(await runBounded("sh", ["-c", "exit 3"], { limitMs: 60_000 })).toBe(3);
});

test("a compiler that cannot be started is an error", async () => {
  await expect(runBounded("no-such-compiler", [], { limitMs: 60_000 })).rejects.toThrow("no-such-compiler");
});
