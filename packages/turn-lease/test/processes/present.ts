import { systemHost } from "@turnkeeper/kernel";
import { openProcessPresence } from "@turnkeeper/turn-lease";

// A process that is present: it says who it is and stays. With PROBE=self it also says how it judges itself by pid.
const [socketFolder = ""] = process.argv.slice(2);
if (process.env["TITLE"]) process.title = process.env["TITLE"];
const presence = await openProcessPresence({ host: systemHost }, { socketFolder });
presence.register("held");
const { socketPath: _socketPath, ...bare } = presence.identity;
const verdict = process.env["PROBE"]
  ? await presence.probe({ ...bare, instanceId: "other", pidStart: "1" }, "held")
  : undefined;
process.stdout.write(`${JSON.stringify({ ...presence.identity, ...(verdict ? { verdict } : {}) })}\n`);
setInterval(() => {}, 60_000);
