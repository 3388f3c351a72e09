import type { Host } from "@turnkeeper/kernel";
import type { StateStore } from "./state-store.ts";

export declare function createMemoryStore(deps: { readonly host: Host }): StateStore;
