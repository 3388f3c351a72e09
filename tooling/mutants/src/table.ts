import type { Mutation } from "./mutation.ts";
import { agentCoreMutations } from "./table/agent-core.ts";
import { compressionFenceMutations } from "./table/compression-fence.ts";
import { gatewayMutations } from "./table/gateway.ts";
import { interruptMutations } from "./table/interrupt.ts";
import { modelsMutations } from "./table/models.ts";
import { periodicSchedulerMutations } from "./table/periodic-scheduler.ts";
import { stateStorePostgresMutations } from "./table/state-store-postgres.ts";
import { stateStoreSqliteMutations } from "./table/state-store-sqlite.ts";
import { stateStoreMutations } from "./table/state-store.ts";
import { toolsMutations } from "./table/tools.ts";
import { turnLeaseMutations } from "./table/turn-lease.ts";
import { turnLivenessMutations } from "./table/turn-liveness.ts";

/** Every guard that is known to be one, with the tests that know it. */
export const mutationTable: readonly Mutation[] = [
  ...stateStoreMutations,
  ...stateStoreSqliteMutations,
  ...stateStorePostgresMutations,
  ...turnLeaseMutations,
  ...turnLivenessMutations,
  ...interruptMutations,
  ...compressionFenceMutations,
  ...periodicSchedulerMutations,
  ...agentCoreMutations,
  ...toolsMutations,
  ...modelsMutations,
  ...gatewayMutations,
];
