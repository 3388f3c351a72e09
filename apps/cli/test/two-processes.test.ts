import { describe, expect, it } from "vitest";
import { runInside } from "./inside/command-line.ts";
import { eventsOf, makeHome, startCli, typesOf } from "./outside/built-cli.ts";
import {
  compatibleConfig,
  makeGate,
  openAiGatedText,
  openAiStall,
  openAiText,
  serveModel,
} from "./outside/model-server.ts";

interface Shown {
  readonly inputs: readonly { readonly inputId: string; readonly end: string | null }[];
  readonly entries: readonly { readonly role: string; readonly text?: string }[];
}

async function shown(home: string, session: string): Promise<Shown> {
  return JSON.parse((await runInside(["sessions", "show", session, "--json"], { home })).stdout) as Shown;
}

describe("two processes on one session", () => {
  it("the second says at once who holds it, waits, and is answered next; the store stays clean", async () => {
    const gate = makeGate();
    const server = await serveModel(openAiGatedText(gate, "one ", "two three"), openAiText("second answer"));
    const home = makeHome(compatibleConfig(server));
    const first = startCli(["run", "first message", "--session", "s"], { home });
    await first.sees(/one/);
    const second = startCli(["run", "second message", "--session", "s"], { home });
    await second.sees(new RegExp(`held by pid ${first.pid} on .*waiting`), "stderr");
    gate.open();
    const [one, two] = await Promise.all([first.ended, second.ended]);
    expect(one).toMatchObject({ code: 0, stdout: "one two three\n" });
    expect(two).toMatchObject({ code: 0, stdout: "second answer\n" });
    const { entries, inputs } = await shown(home, "s");
    expect(entries.map(({ role, text }) => [role, text])).toEqual([
      ["user", "first message"],
      ["assistant", "one two three"],
      ["user", "second message"],
      ["assistant", "second answer"],
    ]);
    expect(inputs.map(({ end }) => end)).toEqual(["answered", "answered"]);
    expect(await runInside(["sessions", "verify", "--json"], { home })).toMatchObject({
      code: 0,
      stdout: '{"violations":[]}\n',
    });
  });

  it("after kill -9 of the holder the waiter goes on within seconds, and the killed turn is told as crashed", async () => {
    const server = await serveModel(openAiStall("begun"), openAiText("went on"));
    const home = makeHome(compatibleConfig(server));
    const first = startCli(["run", "first message", "--session", "s", "--input-id", "killed"], { home });
    await first.sees(/begun/);
    const second = startCli(["run", "second message", "--session", "s", "--json"], { home });
    await second.sees(/turn\.waiting/);
    const killedAt = performance.now();
    first.child.kill("SIGKILL");
    await second.sees(/turn\.started/);
    // The lease would stand for 300 s; the dead are found by their socket.
    expect(performance.now() - killedAt).toBeLessThan(10_000);
    const two = await second.ended;
    expect(eventsOf(two.stdout).at(-1)).toMatchObject({ outcome: "answered", text: "went on" });
    expect(two.code).toBe(0);
    expect((await shown(home, "s")).inputs.find(({ inputId }) => inputId === "killed")?.end).toBe("interrupted");
    // The first caller's own question, asked again under its id: it ran once, and this is how it ended.
    const again = await runInside(["run", "first message", "--session", "s", "--input-id", "killed", "--json"], {
      home,
    });
    expect(eventsOf(again.stdout).at(-1)).toMatchObject({ outcome: "interrupted", reason: "crashed" });
    expect(again.code).toBe(130);
    expect(await runInside(["sessions", "verify"], { home })).toMatchObject({ code: 0 });
  });

  it("a session left by a dead process is free at once for the next run", async () => {
    const server = await serveModel(openAiStall("begun"), openAiText("went on"));
    const home = makeHome(compatibleConfig(server));
    const first = startCli(["run", "first message", "--session", "s"], { home });
    await first.sees(/begun/);
    first.child.kill("SIGKILL");
    await first.ended;
    const why = await runInside(["why", "s", "--json"], { home });
    expect(JSON.parse(why.stdout)).toMatchObject({
      holder: { pid: first.pid, state: "dead" },
      next: expect.stringContaining("died"),
    });
    expect(await runInside(["run", "next", "--session", "s"], { home })).toMatchObject({
      code: 0,
      stdout: "went on\n",
    });
  });

  it.each(["queue", "reject"])(
    "%s on a session whose holder and waiter were killed runs here, after what they left",
    async (policy) => {
      const server = await serveModel(openAiStall("begun"), openAiText("for the waiter"), openAiText("for the last"));
      const home = makeHome(compatibleConfig(server));
      const holder = startCli(["run", "first", "--session", "s", "--input-id", "1"], { home });
      await holder.sees(/begun/);
      const waiter = startCli(["run", "second", "--session", "s", "--input-id", "2"], { home });
      await waiter.sees(/waiting/, "stderr");
      for (const one of [waiter, holder]) {
        one.child.kill("SIGKILL");
        await one.ended;
      }
      const args = ["run", "third", "--session", "s", "--input-id", "3", "--on-busy", policy];
      expect(await runInside(args, { home })).toMatchObject({ code: 0, stdout: "for the last\n" });
      expect((await shown(home, "s")).inputs.map(({ end }) => end)).toEqual(["interrupted", "answered", "answered"]);
    },
    // Three processes, one after another.
    60_000,
  );

  it("a wait that runs out is told as busy with exit 75, and stores no turn", async () => {
    const server = await serveModel(openAiStall("begun"));
    const home = makeHome(compatibleConfig(server));
    const first = startCli(["run", "first message", "--session", "s"], { home });
    await first.sees(/begun/);
    const second = await runInside(["run", "second", "--session", "s", "--wait-timeout", "0.5", "--json"], { home });
    expect(typesOf(second.stdout)).toEqual(["input.accepted", "turn.waiting", "turn.finished"]);
    expect(eventsOf(second.stdout).at(-1)).toMatchObject({ outcome: "busy", reason: "session_busy" });
    expect(second.code).toBe(75);
  });
});
