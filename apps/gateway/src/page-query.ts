import { z } from "zod";

export interface PageQuery {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** `limit` and `cursor` of every list; a cursor that is none is refused by whoever made the last one. */
export const pageQuery: z.ZodType<PageQuery> = z.strictObject({
  limit: z.coerce.number().int().min(1).max(1000).default(100).describe("How many; at most 1000."),
  cursor: z.string().min(1).max(400).optional().describe("`nextCursor` of the page before."),
});
