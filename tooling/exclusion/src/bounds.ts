/** `unfenced` writes past the token and `unconfirmed` starts its effects without asking: both must be found out. */
export const modes = ["fenced", "unfenced", "unconfirmed"] as const;
export type Mode = (typeof modes)[number];

/** The session that everybody wants. */
export const sessionId = "wanted";

/** Small enough that expiry is met every few seconds; every other number stands in a relation to it. */
export const leaseBounds = { ttlMs: 2_000, renewEveryMs: 300 } as const;
