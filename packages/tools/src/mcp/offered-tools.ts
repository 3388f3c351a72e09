import { ToolSchema } from "@modelcontextprotocol/sdk/types.js";
import type { Tool } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { faultText } from "./server-failure.ts";

/** A page of a server's tools: each is looked at by itself, so that a wrong one does not take the others with it. */
export const toolPageSchema: z.ZodType<{
  readonly tools: readonly unknown[];
  readonly nextCursor?: string | undefined;
}> = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });

const namedSchema = z.object({ name: z.string() });

/** What a server says that it can do. */
export class OfferedTools {
  readonly tools: Tool[] = [];
  /** Why some are left out, a sentence each. */
  readonly faults: string[] = [];

  add(page: readonly unknown[]): void {
    for (const [index, offered] of page.entries()) {
      const read = ToolSchema.safeParse(offered);
      if (read.success) this.tools.push(read.data);
      else {
        const { data: named } = namedSchema.safeParse(offered);
        const shown = named ? JSON.stringify(named.name.slice(0, 64)) : `number ${index + 1}`;
        this.faults.push(`Its tool ${shown} is left out: ${faultText(read.error)}.`);
      }
    }
  }
}
