import { describe, expect, it } from "vitest";
import { makeScene, softStop, userStop } from "./scene.ts";

describe("a redirect", () => {
  it("during a model request cuts the request short, and only it; its text goes into the next one", () => {
    const { turn } = makeScene();
    const child = turn.child();
    const request = turn.enterPhase("model-request");
    turn.steer("earlier");
    expect(turn.redirect("do this instead")).toBe("redirected");
    expect(request.signal.aborted).toBe(true);
    expect(request.signal.reason).toMatchObject({ code: "REDIRECTED" });
    expect([turn.signal.aborted, child.signal.aborted]).toEqual([false, false]);
    expect(turn.current).toBeUndefined();
    request.end();
    using _next = turn.enterPhase("model-request");
    expect(turn.takeSteers()?.texts).toEqual(["earlier", "do this instead"]);
  });

  it("during tools becomes a steer and asks them to yield; the tools themselves run on", () => {
    const { turn } = makeScene();
    using tools = turn.enterPhase("tools");
    expect(turn.redirect("look elsewhere")).toBe("steered");
    expect(tools.signal.reason).toMatchObject({ code: "REDIRECTED" });
    expect(turn.signal.aborted).toBe(false);
    expect(turn.takeSteers()?.texts).toEqual(["look elsewhere"]);
  });

  it("while a request streams and its tools run already aborts the request alone", () => {
    const { turn } = makeScene();
    using tools = turn.enterPhase("tools");
    using request = turn.enterPhase("model-request");
    expect(turn.redirect("stop talking")).toBe("redirected");
    expect([request.signal.aborted, tools.signal.aborted]).toEqual([true, false]);
  });

  it("when the answer has just been completed is refused: it is a turn of its own", () => {
    const { turn } = makeScene();
    turn.enterPhase("model-request").end();
    expect(turn.redirect("too late")).toBe("refused");
    expect(turn.takeSteers()).toBeUndefined();
  });

  it("of blank text, or for a turn that is stopped or over, is refused and aborts nothing", async () => {
    const blank = makeScene().turn;
    using request = blank.enterPhase("model-request");
    expect(blank.redirect("  ")).toBe("refused");
    expect(request.signal.aborted).toBe(false);
    for (const stop of [softStop, userStop]) {
      const { turn } = makeScene();
      using _phase = turn.enterPhase("model-request");
      await turn.interrupt(stop);
      expect(turn.redirect("too late")).toBe("refused");
    }
    const over = makeScene().turn;
    over.enterPhase("model-request");
    over.finish();
    expect(over.redirect("too late")).toBe("refused");
  });

  it("that was accepted and overtaken by a stop is not lost: its text comes back undelivered", async () => {
    const { turn } = makeScene();
    using _request = turn.enterPhase("model-request");
    expect(turn.redirect("do this instead")).toBe("redirected");
    await turn.interrupt(userStop);
    expect(turn.finish()).toEqual(["do this instead"]);
  });

  it("never aborts a phase that is entered in answer to it", () => {
    const { turn } = makeScene();
    const first = turn.enterPhase("model-request");
    let next = first;
    first.signal.addEventListener("abort", () => {
      first.end();
      next = turn.enterPhase("model-request");
    });
    turn.redirect("again");
    expect([first.signal.aborted, next.signal.aborted]).toEqual([true, false]);
    expect(next).not.toBe(first);
    next.end();
  });
});

describe("a phase", () => {
  it("is stopped with the turn, soft or hard, with the turn's reason", async () => {
    for (const request of [softStop, userStop]) {
      const { turn } = makeScene();
      using model = turn.enterPhase("model-request");
      using tools = turn.enterPhase("tools");
      await turn.interrupt(request);
      for (const { signal } of [model, tools]) expect(signal.reason).toBe(turn.signal.reason);
    }
  });

  it("that has ended hears of nothing any more", async () => {
    const { turn } = makeScene();
    const phase = turn.enterPhase("model-request");
    phase.end();
    phase.end();
    await turn.interrupt(userStop);
    expect(phase.signal.aborted).toBe(false);
  });
});
