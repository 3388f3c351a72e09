import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { AnyTool } from "../src/index.ts";

/** Delegates one task as a model asks it to, and may be run again where its turn goes on. */
export const delegate: AnyTool = defineTool({
  name: "delegate",
  description: "Delegates.",
  input: z.object({ task: z.string() }),
  mayRunAgain: true,
  execute: async ({ task }, context) => ({ ...(await context.delegate?.(task)) }),
});
