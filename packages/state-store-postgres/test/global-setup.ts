import { findPostgres, startPostgres } from "@turnkeeper/postgres-server";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  export interface ProvidedContext {
    /** Of the server that all test files share, each in schemas of its own; empty where this machine has no PostgreSQL. */
    readonly postgresUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (findPostgres() === undefined) {
    project.provide("postgresUrl", "");
    return async () => {};
  }
  const server = await startPostgres({ settings: { max_connections: "200" } });
  project.provide("postgresUrl", server.url);
  return () => server.close();
}
