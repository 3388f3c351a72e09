/**
 * Decides which addresses an HTTP request may reach, and keeps to it until the socket stands.
 *
 * | step | closes |
 * | --- | --- |
 * | the URL: scheme, port, no credentials, a literal address | http://169.254.169.254/, file:, 2130706433, [::1] |
 * | the name, resolved once, every address of it | a name that leads inside, alone or beside a public address |
 * | the socket connects to what was resolved, and to nothing else | a name that leads elsewhere when it is asked again |
 * | the address at the other end, before a byte is sent | whatever the first three overlooked |
 */

import { lookup as systemLookup } from "node:dns/promises";
import type { LookupAddress } from "node:dns";
import { BlockList, isIP } from "node:net";
import type { LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import { callbackify } from "node:util";
import { toolError } from "./errors.ts";
import { quoted } from "./file-error.ts";
import { isPublicAddress } from "./public-address.ts";

/** Finds all addresses of a name, as `dns.promises.lookup` with `all` does. */
export type ResolveName = (hostname: string) => Promise<readonly LookupAddress[]>;

export interface AddressGate {
  /** Throws `ADDRESS_REFUSED` for a URL that can be judged without the network. */
  checkUrl(url: URL): void;
  /** For a socket to the URL's host: resolves the name once and answers checked addresses only. */
  lookupFor(url: URL): LookupFunction;
  /** Whether a socket to the URL's host may have this address at its other end. */
  admits(url: URL, address: string | undefined): boolean;
}

const webPorts: ReadonlySet<string> = new Set(["", "80", "443"]);
// Below stand mail, shells and other protocols that an HTTP request may be made to speak.
const firstFreePort = 1_024;

export const resolveByName: ResolveName = (hostname) => systemLookup(hostname, { all: true, verbatim: true });

/** `allowHosts`: names, addresses, or these with a port, that are reached wherever they lead. */
export function createAddressGate(allowHosts: readonly string[], resolveName: ResolveName): AddressGate {
  const allowed = new Set(allowHosts.map((host) => host.toLowerCase()));
  const isAllowed = (url: URL): boolean => allowed.has(url.host) || allowed.has(url.hostname);
  const own = ownAddresses();
  const isReachable = (url: URL, address: string): boolean =>
    isAllowed(url) || (isPublicAddress(address) && !own.check(address, isIP(address) === 6 ? "ipv6" : "ipv4"));

  return {
    checkUrl(url) {
      if (url.protocol !== "http:" && url.protocol !== "https:") throw refused(url, "only http and https are fetched");
      if (url.username !== "" || url.password !== "") throw refused(url, "it carries a user name or a password");
      if (isAllowed(url)) return;
      if (!webPorts.has(url.port) && Number(url.port) < firstFreePort) {
        throw refused(url, `port ${url.port} is not one of the web's`);
      }
      const literal = url.hostname.replace(/^\[(.*)\]$/, "$1");
      if (isIP(literal) !== 0 && !isReachable(url, literal)) throw refused(url, notPublic);
    },
    lookupFor: (url) => {
      const checked = callbackify(async (hostname: string) => {
        const addresses = await resolveName(hostname);
        // Every one of them: a name with an address inside among others was made to be tried again.
        const [first] = addresses;
        if (first === undefined || !addresses.every(({ address }) => isReachable(url, address))) {
          throw refused(url, notPublic);
        }
        return [first, ...addresses.slice(1)] as const;
      });
      return (hostname, options, callback) =>
        checked(hostname, (error, addresses) => {
          if (error) return callback(error, "", 4);
          const [{ address, family }] = addresses;
          return options.all === true ? callback(null, [...addresses]) : callback(null, address, family);
        });
    },
    admits: (url, address) => address !== undefined && isReachable(url, address),
  };
}

// Which address it is, and whether there is one, is not the model's business: it would be a map of the inside.
const notPublic = "it leads to an address that is not on the public Internet";

export function refused(url: URL, reason: string): Error {
  const shown = `${url.protocol}//${url.host}${url.pathname}`;
  return toolError("ADDRESS_REFUSED", `${quoted(shown)} is not fetched: ${reason}.`);
}

/** This machine's addresses, also the public ones: what listens on them may trust who comes from here. */
function ownAddresses(): BlockList {
  const own = new BlockList();
  for (const interfaces of Object.values(networkInterfaces())) {
    for (const { address, family } of interfaces ?? []) {
      own.addAddress(address, family === "IPv6" ? "ipv6" : "ipv4");
    }
  }
  return own;
}
