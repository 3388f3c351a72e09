import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const index = new URL("../src/index.ts", import.meta.url).href;
const packageFolder = fileURLToPath(new URL("..", import.meta.url));

const hook = `
  export async function resolve(specifier, context, next) {
    process._rawDebug("import " + specifier);
    return next(specifier, context);
  }`;

/** Runs these steps one after the other in one fresh process, and answers for each which packages it loaded. */
async function packagesLoadedBy(steps: readonly string[]): Promise<string[][]> {
  const script = `
    import { register } from "node:module";
    register("data:text/javascript," + encodeURIComponent(${JSON.stringify(hook)}));
    const { resolveModel } = await import(${JSON.stringify(index)});
    const { systemHost: host } = await import("@turnkeeper/kernel");
    ${steps.map((step) => `process._rawDebug("step"); ${step};`).join("\n")}`;
  const flags = ["--import", "tsx", "--conditions=@turnkeeper/source", "--input-type=module"];
  const { stderr } = await promisify(execFile)(process.execPath, [...flags, "-e", script], { cwd: packageFolder });
  return stderr
    .split("step\n")
    .map((lines) => lines.split("\n").flatMap((line) => /^import ((?:@ai-sdk|undici|zod).*)/.exec(line)?.[1] ?? []));
}

it("no SDK and no HTTP client is loaded until a network model is chosen, and then the chosen one's alone", async () => {
  const [byImport, byDemo, byRefusal, byAnthropic] = await packagesLoadedBy([
    `await resolveModel("demo/tools", { host })`,
    `await resolveModel("nobody/x", { host }).catch(() => {})`,
    `await resolveModel("anthropic/x", { host, env: { ANTHROPIC_API_KEY: "k" } })`,
  ]);
  expect([byImport, byDemo, byRefusal]).toEqual([[], [], []]);
  expect(byAnthropic).toContain("@ai-sdk/anthropic");
  expect(byAnthropic).toContain("undici");
  expect(byAnthropic?.filter((name) => name.startsWith("@ai-sdk/openai"))).toEqual([]);
});
