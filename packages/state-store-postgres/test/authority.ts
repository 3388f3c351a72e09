import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface Authority {
  /** The path of its certificate, as `sslrootcert` takes it. */
  readonly file: string;
  /** A certificate for a server at this address, and its key, as PEM. */
  issue(address: string): { readonly certificate: string; readonly key: string };
}

/** Whether this machine can make certificates: `openssl` is on the PATH. */
export function canIssue(): boolean {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** An authority of a test's own, in a folder of its own. */
export function makeAuthority(folder: string, name: string): Authority {
  const path = (file: string): string => join(folder, `${name}-${file}`);
  const openssl = (...args: string[]): void => void execFileSync("openssl", args, { stdio: "pipe" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl(
    "req",
    "-x509",
    ...key,
    "-keyout",
    path("ca.key"),
    "-out",
    path("ca.crt"),
    "-days",
    "2",
    "-subj",
    `/CN=${name}`,
  );
  return {
    file: path("ca.crt"),
    issue: (address) => {
      writeFileSync(path("names"), `subjectAltName = IP:${address}\n`);
      openssl("req", ...key, "-keyout", path("server.key"), "-out", path("server.csr"), "-subj", "/CN=server");
      const signs = ["-CA", path("ca.crt"), "-CAkey", path("ca.key"), "-CAcreateserial", "-days", "2"];
      openssl(
        "x509",
        "-req",
        "-in",
        path("server.csr"),
        ...signs,
        "-extfile",
        path("names"),
        "-out",
        path("server.crt"),
      );
      return {
        certificate: readFileSync(path("server.crt"), "utf8"),
        key: readFileSync(path("server.key"), "utf8"),
      };
    },
  };
}
