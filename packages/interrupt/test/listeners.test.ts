import { addAbortListener, getEventListeners } from "node:events";
import { describe, expect, it, vi } from "vitest";
import { createTurnInterrupt } from "@turnkeeper/interrupt";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { makeScene, softStop, userStop } from "./scene.ts";

describe("the listeners of a stop", () => {
  it("all run though some throw or reject; each failure is reported, none ends the process", async () => {
    const { turn, faults, host } = makeScene();
    const heard: string[] = [];
    turn.signal.addEventListener("abort", () => {
      heard.push("first");
      throw new Error("one");
    });
    const rejecting = async (): Promise<void> => {
      heard.push("second");
      throw new Error("two");
    };
    turn.signal.addEventListener("abort", rejecting as () => void);
    turn.signal.addEventListener("abort", {
      handleEvent: () => {
        heard.push("third");
        throw new Error("three");
      },
    });
    turn.signal.onabort = () => {
      heard.push("fourth");
      throw new Error("four");
    };
    turn.hardSignal.addEventListener("abort", () => heard.push("hard"));
    expect(await turn.interrupt(userStop)).toBe("published");
    await host.settle();
    expect(heard).toEqual(["first", "second", "third", "fourth", "hard"]);
    expect(faults.map((fault) => fault.message.replace(/\. The stop.*/, "")).toSorted()).toEqual(
      ["one", "two", "three", "four"].map((what) => `A listener on the turn's signal failed: ${what}`).toSorted(),
    );
  });

  it("hear of the soft signal first, and can already read how hard the stop is", async () => {
    const { turn } = makeScene();
    const heard: unknown[] = [];
    turn.hardSignal.addEventListener("abort", () => heard.push(["hardSignal", turn.signal.aborted]));
    turn.signal.addEventListener("abort", () => heard.push(["signal", turn.current?.hard]));
    await turn.interrupt(userStop);
    expect(heard).toEqual([
      ["signal", true],
      ["hardSignal", true],
    ]);
  });

  it("may stop the turn harder from within", async () => {
    const { turn } = makeScene();
    turn.signal.addEventListener("abort", () => void turn.interrupt(userStop));
    expect(await turn.interrupt({ ...softStop, by: "first" })).toBe("published");
    expect(turn.hardSignal.aborted).toBe(true);
    expect(turn.current).toMatchObject({ by: userStop.by, earlier: { by: "first" } });
  });

  it("are added, removed, told once and not doubled as on any signal", async () => {
    const { turn } = makeScene();
    let count = 0;
    const listener = (): void => void count++;
    const handler = { handleEvent: listener };
    turn.signal.addEventListener("abort", listener);
    turn.signal.addEventListener("abort", listener);
    turn.signal.addEventListener("abort", handler);
    turn.signal.removeEventListener("abort", handler);
    expect(getEventListeners(turn.signal, "abort")).toHaveLength(1);
    using _disposable = addAbortListener(turn.signal, () => void count++);
    await turn.interrupt(userStop);
    expect(count).toBe(2);
    const removed = makeScene().turn;
    removed.signal.addEventListener("abort", listener, { once: true });
    removed.signal.removeEventListener("abort", listener);
    await removed.interrupt(userStop);
    expect(count).toBe(2);
    expect(getEventListeners(removed.signal, "abort")).toHaveLength(0);
  });

  it("of the platform work: a signal is a real one, and composes", async () => {
    const { turn } = makeScene();
    expect(turn.signal).toBeInstanceOf(AbortSignal);
    const composed = AbortSignal.any([turn.signal]);
    await turn.interrupt(softStop);
    expect(composed.aborted).toBe(true);
    expect(() => turn.signal.throwIfAborted()).toThrow(/This turn was stopped \(soft, user-stop/);
  });

  it("that fail without anybody to report to become a process warning", async () => {
    const emitWarning = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const onFault = (): never => {
      throw new Error("reporter broken");
    };
    for (const dependencies of [{ host: virtualHost() }, { host: virtualHost(), onFault }]) {
      const turn = createTurnInterrupt(dependencies);
      turn.signal.addEventListener("abort", () => {
        throw new Error("tool broken");
      });
      await turn.interrupt(userStop);
    }
    const broken = expect.stringContaining("tool broken") as string;
    expect(emitWarning.mock.calls.map(([warning]) => warning)).toEqual([broken, broken]);
  });
});
