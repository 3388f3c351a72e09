import { mutationsOf } from "../mutation.ts";
import type { Mutation } from "../mutation.ts";

export const toolsMutations: readonly Mutation[] = mutationsOf("tools", [
  {
    id: "marker-not-looked-for",
    file: "process-table",
    find: "if (!inSession && !carries(target.marker, processId)) return undefined;",
    replace: "if (!inSession) return undefined;",
    guards: "TURN-1",
    tests: ["kill-marked-processes"],
    only: "every process that carries the marker ends",
  },
  {
    id: "kill-not-sent",
    file: "kill-ladder",
    find: '(await found.sweep(host, "SIGKILL"))',
    replace: '(await found.sweep(host, "SIGTERM"))',
    guards: "TURN-1",
    tests: ["stop-receipt"],
    only: "the receipt says what each step reached",
  },
]);
