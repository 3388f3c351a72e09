import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyReply } from "fastify";
import { z } from "zod";
import { Refusal } from "./refusal.ts";
import { defineRoute } from "./route.ts";
import type { CheckedRequest, Route } from "./route.ts";

/** What the build made of ../console; the CLI's bundle has a copy at the same place beside its modules. */
const pageFolder = new URL("../page/", import.meta.url);

const contentTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/**
 * Scripts, styles and images come from files of the gateway alone, and no text can become script: what a tool said is
 * hostile, and the page has a token.
 */
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

interface PageFile {
  readonly contentType: string;
  readonly whole: Buffer;
  readonly zipped: Buffer;
}

type Page = ReadonlyMap<string, PageFile>;

async function readPage(): Promise<Page> {
  const items = await readdir(pageFolder, { recursive: true, withFileTypes: true });
  const files = items.filter((item) => item.isFile() && contentTypes[path.extname(item.name)] !== undefined);
  return new Map(
    await Promise.all(
      files.map(async ({ name, parentPath }): Promise<[string, PageFile]> => {
        const whole = await readFile(path.join(parentPath, name));
        const contentType = contentTypes[path.extname(name)] ?? "";
        return [name, { contentType, whole, zipped: await promisify(gzip)(whole) }];
      }),
    ),
  );
}

function unbuilt(cause: unknown): Refusal {
  return new Refusal(503, "console_unbuilt", "The console is not built here; npm run build:all builds it.", { cause });
}

const takesZipped = (encodings: string | string[] | undefined): boolean =>
  /(^|[\s,])gzip\s*(,|$)/i.test(String(encodings ?? ""));

interface FilePath {
  readonly file: string;
}

const filePath: z.ZodType<FilePath> = z.strictObject({ file: z.string().max(200) });

/** The web console: a page that needs no token, and asks for one before it asks the gateway anything. */
export function consoleRoutes(): readonly Route[] {
  let page: Promise<Page> | undefined;
  /** All of it is read when it is first asked for, and by name: there is no path that could lead elsewhere. */
  async function fileOf(name: string): Promise<PageFile> {
    page ??= readPage();
    const files = await page.catch((error: unknown) => {
      page = undefined;
      throw unbuilt(error);
    });
    const file = files.get(name);
    if (!file) throw new Refusal(404, "route_unknown", "There is no such route.");
    return file;
  }
  function send(
    file: PageFile,
    { headers }: Pick<CheckedRequest<unknown, unknown, unknown>, "headers">,
    reply: FastifyReply,
  ): FastifyReply {
    const isZipped = takesZipped(headers["accept-encoding"]);
    if (isZipped) reply.header("content-encoding", "gzip");
    return reply
      .header("vary", "accept-encoding")
      .type(file.contentType)
      .send(isZipped ? file.zipped : file.whole);
  }
  const showConsole = defineRoute({
    method: "GET",
    path: "/",
    name: "console",
    summary: "The web console: sessions, running turns, and a box to write in.",
    access: "open",
    answers: { 200: { description: "The page.", contentType: "text/html" } },
    handle: async (request, reply) => {
      reply.header("content-security-policy", contentPolicy);
      return send(await fileOf("index.html"), request, reply);
    },
  });
  const consoleFile = defineRoute({
    method: "GET",
    path: "/console/{file}",
    name: "consoleFile",
    summary: "A script, style sheet or image of the console.",
    access: "open",
    params: filePath,
    answers: { 200: { description: "The file." } },
    refusals: [404],
    handle: async (request, reply) => {
      const file = await fileOf(request.params.file);
      // Its name changes with its content.
      reply.header("cache-control", "public, max-age=31536000, immutable");
      return send(file, request, reply);
    },
  });
  return [showConsole, consoleFile];
}
