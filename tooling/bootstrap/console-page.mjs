// Builds the gateway's console, from apps/gateway/console into apps/gateway/page, where a source is newer than the page:
//   node tooling/bootstrap/console-page.mjs
// The page stands beside dist, as migrations do: what is packed finds it by one relative address, from source, from dist
// and from the CLI's bundle.
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const script = fileURLToPath(import.meta.url);
const gateway = path.resolve(path.dirname(script), "../../apps/gateway");
const source = path.join(gateway, "console");
/** Where the page is; whoever ships it copies this folder. */
export const pageFolder = path.join(gateway, "page");
const entry = "index.html";

function newestIn(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((item) => item.isFile());
  const names = [script, ...files.map((item) => path.join(item.parentPath, item.name))];
  return Math.max(...names.map((file) => statSync(file).mtimeMs));
}

/** In place of what is there, never half of it: whoever reads meanwhile reads a whole file. */
function writeWhole(file, content) {
  mkdirSync(path.dirname(file), { recursive: true });
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, content);
  renameSync(draft, file);
}

export async function buildConsolePage() {
  const { build } = await import("vite");
  const { output } = await build({
    configFile: false,
    root: source,
    // Relative: the gateway may stand below a path of a reverse proxy.
    base: "./",
    logLevel: "warn",
    build: {
      write: false,
      assetsDir: "console",
      // Nothing inline: the page's policy takes scripts, styles and images from files alone.
      assetsInlineLimit: 0,
      modulePreload: false,
      // The first lines that know light-dark(): Chrome 123, Firefox 120, Safari 17.5.
      target: ["chrome123", "firefox120", "safari17.5"],
    },
  });
  // The entry last: it names the others.
  for (const { fileName, type, code, source } of output.toSorted((left) => (left.fileName === entry ? 1 : -1)))
    writeWhole(path.join(pageFolder, fileName), type === "chunk" ? code : source);
  // After writing, and by name: a page that is built twice at once names its files alike.
  const written = new Set(output.map(({ fileName }) => path.normalize(fileName)));
  for (const item of readdirSync(pageFolder, { recursive: true, withFileTypes: true })) {
    const file = path.join(item.parentPath, item.name);
    if (item.isFile() && !written.has(path.relative(pageFolder, file))) rmSync(file, { force: true });
  }
}

/** Builds it where a source is newer than the page. */
export async function ensureConsolePage() {
  const built = statSync(path.join(pageFolder, entry), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (built < newestIn(source)) await buildConsolePage();
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await ensureConsolePage();
