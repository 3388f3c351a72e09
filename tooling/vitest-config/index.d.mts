import type { ViteUserConfig } from "vitest/config";

/** The exports condition under which workspace packages answer with their TypeScript source. */
export declare const sourceCondition: string;

/** One package's vitest config: other workspace packages resolve to their TypeScript source, so tests need no build. */
export declare function packageConfig(name: string): ViteUserConfig;
