// An MCP server of a test: plain JSON-RPC over stdin and stdout, well behaved or not, as its first argument says.
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [way = "good", log] = process.argv.slice(2);
const note = (text) => log && appendFileSync(log, `${text}\n`);
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

note(`pid ${process.pid}`);
if (way === "mute") setInterval(() => {}, 1_000);
if (way === "dies") {
  process.stderr.write("no licence\n");
  process.exit(3);
}
if (way === "noisy") process.stdout.write("Listening on stdin\n{ not json\n");
if (way === "stubborn") {
  process.on("SIGTERM", () => {});
  const child = spawn("/bin/sh", ["-c", 'trap "" TERM; while :; do sleep 1; done'], {
    detached: true,
    stdio: "ignore",
  });
  child.unref();
  note(`pid ${child.pid}`);
  setInterval(() => {}, 1_000);
}

const object = { type: "object", properties: { text: { type: "string" } } };
const tools = [
  { name: "echo", description: "Answers its text.", inputSchema: object },
  { name: "fail", inputSchema: object },
  { name: "hang", inputSchema: object },
  { name: "die", inputSchema: object },
  { name: "flood", inputSchema: object },
  { name: "nonsense", inputSchema: object },
  { name: "steps", inputSchema: object },
  { name: "env", inputSchema: object },
  { name: "parts", inputSchema: object },
  { name: "a.b", inputSchema: object },
  { name: "a_b", inputSchema: object },
  { name: `long${"x".repeat(100)}`, inputSchema: object },
];

const calls = {
  echo: (id, { text }) => say({ id, result: { content: [{ type: "text", text: String(text) }] } }),
  fail: (id) => say({ id, result: { isError: true, content: [{ type: "text", text: "It cannot be done." }] } }),
  hang: () => {},
  die: () => process.stderr.write("out of luck\n", () => process.exit(1)),
  flood: (id) => say({ id, result: { content: [{ type: "text", text: "f".repeat(3_000_000) }] } }),
  nonsense: (id) => say({ id, result: { content: "no list" } }),
  steps: (id, _input, { progressToken }) => {
    let step = 0;
    const timer = setInterval(() => {
      step += 1;
      if (step < 6) say({ method: "notifications/progress", params: { progressToken, progress: step } });
      else {
        clearInterval(timer);
        say({ id, result: { content: [{ type: "text", text: "done" }] } });
      }
    }, 100);
  },
  env: (id) => say({ id, result: { content: [{ type: "text", text: JSON.stringify(process.env) }] } }),
  parts: (id) =>
    say({
      id,
      result: {
        content: [
          { type: "text", text: "a\u0000b" },
          { type: "image", data: "AAAA", mimeType: "image/png" },
          { type: "resource_link", uri: "file:///x", name: "x" },
          { type: "resource", resource: { uri: "file:///y", text: "inside" } },
        ],
      },
    }),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  note(method);
  if (way === "mute") return;
  if (way === "deaf" && method === "ping") return;
  switch (method) {
    case "initialize":
      return say({
        id,
        result: {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: "test", version: "1" },
        },
      });
    case "tools/list":
      if (way === "endless") return say({ id, result: { tools: [tools[0]], nextCursor: "again" } });
      if (way === "many")
        return say({
          id,
          result: { tools: Array.from({ length: 1_000 }, (_, index) => ({ name: `t${index}`, inputSchema: object })) },
        });
      if (way === "wrong") return say({ id, result: { tools: "none\nat all" } });
      if (way === "mixed")
        return say({ id, result: { tools: [{ name: "bare" }, ...tools, ...Array.from({ length: 9 }, () => 5)] } });
      return say({ id, result: { tools } });
    case "tools/call":
      return calls[params.name](id, params.arguments ?? {}, params._meta ?? {});
    case "ping":
      return say({ id, result: {} });
    default:
      return undefined;
  }
});
