import { z } from "zod";

/** Longer than any run; a timer could carry it, and a typing slip in a unit is still caught. */
export const longestS = 31_536_000;

export const seconds = (): z.ZodNumber => z.number().positive().max(longestS);
