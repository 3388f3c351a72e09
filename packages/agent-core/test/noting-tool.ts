import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { AnyTool } from "../src/index.ts";

/** Makes tools that tell `note` what they were asked to do, and have done it at once. */
export const notingTool =
  (note: (what: string) => void) =>
  (name: string, isAsked: boolean, concurrency: "shared" | "exclusive" = "shared"): AnyTool =>
    defineTool({
      name,
      description: "Notes that it ran.",
      input: z.object({ what: z.string() }),
      needsApproval: isAsked,
      concurrency,
      execute: async ({ what }) => {
        note(what);
        return `${what} is done`;
      },
    });
