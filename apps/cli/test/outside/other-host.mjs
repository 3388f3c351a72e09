// Preloaded by --import: the program believes that it runs on the machine that OTHER_HOST names, booted on its own, with
// its wall clock off by OTHER_HOST_OFF_S seconds.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";

const name = process.env.OTHER_HOST;
const offMs = Number(process.env.OTHER_HOST_OFF_S ?? 0) * 1000;

const { readFileSync } = fs;
fs.readFileSync = (file, options) =>
  file === "/proc/sys/kernel/random/boot_id" ? `boot-of-${name}\n` : readFileSync(file, options);
os.hostname = () => name;
syncBuiltinESMExports();

const { now } = Date;
Date.now = () => now() + offMs;
