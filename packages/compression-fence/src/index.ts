export { createCompressionFence } from "./compression-fence.ts";
export type { Commit, CompressionFence } from "./compression-fence.ts";
export type { FenceRefusal } from "./fence-state.ts";
export { replaceWithSummary } from "./replacement.ts";
export type { RefusedReplacement, Replacement } from "./replacement.ts";
export type { CompressionFenceOptions } from "./options.ts";
export type { CompressionFenceErrorCode } from "./errors.ts";
