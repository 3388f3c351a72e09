import { sharedScheduler } from "@turnkeeper/periodic-scheduler";

// Nothing but scheduled tasks: the process has no reason to stay.
for (let index = 0; index < 130; index++) sharedScheduler().schedule(() => {}, 60_000, { name: `task ${index}` });
process.stdout.write(`${process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length}\n`);
