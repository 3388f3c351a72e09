/** Which addresses belong to the public Internet: everything else is somebody's inside, perhaps ours. */

import { BlockList, isIP } from "node:net";

// What IANA has set aside as not globally reachable, and two cloud providers' doors to the inside that look public.
const insideV4: readonly (readonly [address: string, prefix: number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

// Of IPv6 only this block is given out; of it, these parts are documentation, tunnels and IPv4 in disguise.
const globalV6 = ["2000::", 3] as const;
const insideV6: readonly (readonly [address: string, prefix: number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

const inside = new BlockList();
for (const [address, prefix] of insideV4) inside.addSubnet(address, prefix, "ipv4");
for (const [address, prefix] of insideV6) inside.addSubnet(address, prefix, "ipv6");

const given = new BlockList();
given.addSubnet(globalV6[0], globalV6[1], "ipv6");

/** False for what is no address, and for one with a zone: only links inside have those. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !inside.check(address, "ipv4");
    case 6:
      // An IPv4 address written as IPv6 (::ffff:127.0.0.1, 64:ff9b::7f00:1) lies outside the block and is refused whole.
      return !address.includes("%") && given.check(address, "ipv6") && !inside.check(address, "ipv6");
    default:
      return false;
  }
}
