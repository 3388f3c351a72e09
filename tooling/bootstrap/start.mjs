// npm start: sets up, builds, and hands over to the CLI. Without arguments: `chat` on a terminal, one demo turn elsewhere.
import { run, setUp } from "./bootstrap.mjs";
import { handOver } from "./hand-over.mjs";

const demoMessage = "List the files in packages and tell me which README is longest";

setUp();
run("turbo", ["run", "build:all", "--output-logs=errors-only", "--log-prefix=none"], { quiet: true });

const given = process.argv.slice(2);
const onTerminal = process.stdin.isTTY && process.stdout.isTTY;
const args = given.length > 0 ? given : onTerminal ? ["chat"] : ["run", demoMessage, "--model", "demo/tools", "--yes"];
handOver(args);
