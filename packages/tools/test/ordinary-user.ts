import { chmod } from "node:fs/promises";

const nobodyId = 65_534;

/** Runs the body without root's right to everything; tests that already run as an ordinary user just run it. */
export async function asOrdinaryUser(folder: string, body: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return body();
  await chmod(folder, 0o755);
  process.seteuid?.(nobodyId);
  try {
    await body();
  } finally {
    process.seteuid?.(0);
  }
}
