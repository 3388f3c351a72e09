import type { OpenWait } from "@turnkeeper/turn-liveness";
import { describe, expect, it } from "vitest";
import { ChildPlaces } from "../src/delegation/child-places.ts";
import { ChildPulse } from "../src/delegation/child-pulse.ts";

const clock = (generation: number, ...kinds: readonly string[]) => ({
  snapshot: () => ({ generation, kind: "tool", lastProgress: "tool", idleMs: 0 }) as never,
  openWaits: kinds.map((kind) => ({ kind, name: "x", boundMs: 1 })) as unknown as readonly OpenWait[],
});

/** After how many looks in a row that find nothing new it is stale; nothing: it never is. */
function staleAfter(pulse: ChildPulse, look: Parameters<ChildPulse["look"]>[0]): number | undefined {
  expect(pulse.look(look)).toBe("moves");
  for (let count = 1; count <= 100; count++) if (pulse.look(look) === "stale") return count;
  return undefined;
}

describe("a child's pulse", () => {
  it("stops after 15 looks that find nothing new, after 40 while a tool runs, and never while a person is asked", () => {
    expect(staleAfter(new ChildPulse(), clock(1))).toBe(15);
    expect(staleAfter(new ChildPulse(), clock(1, "tool"))).toBe(40);
    expect(staleAfter(new ChildPulse(), clock(1, "tool", "approval"))).toBeUndefined();
  });

  it("comes back with any move, and counts anew", () => {
    const pulse = new ChildPulse();
    expect(staleAfter(pulse, clock(1))).toBe(15);
    expect(staleAfter(pulse, clock(2))).toBe(15);
  });

  it("stops for a child that never begins here", () => {
    const pulse = new ChildPulse();
    const looks = Array.from({ length: 15 }, () => pulse.look(undefined));
    expect(looks.slice(0, 14)).toEqual(Array.from({ length: 14 }, () => "idle"));
    expect(looks.at(-1)).toBe("stale");
  });
});

describe("places for children", () => {
  it("are reserved before anything is made: of three that want 2 at once the third gets none", () => {
    const places = new ChildPlaces(2);
    const [first, second] = [places.reserve(), places.reserve()];
    expect([first?.number, second?.number, places.reserve()]).toEqual([1, 2, undefined]);
    first?.rollback();
    first?.rollback();
    expect([places.reserve()?.number, places.reserve()]).toEqual([1, undefined]);
  });

  it("are taken for good once something was made in them", () => {
    const places = new ChildPlaces(1);
    const place = places.reserve();
    place?.commit();
    place?.rollback();
    expect(places.reserve()).toBeUndefined();
  });

  it("that were taken before are not given again, whichever they are", () => {
    const places = new ChildPlaces(4, [1, 3, 4]);
    expect([places.reserve()?.number, places.reserve()]).toEqual([2, undefined]);
  });
});
