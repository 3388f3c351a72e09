import fc from "fast-check";
import { expect, test } from "vitest";
import { isPublicAddress } from "../src/public-address.ts";

test.each([
  "0.0.0.0",
  "0.1.2.3",
  "10.0.0.1",
  "100.64.0.1",
  "100.100.100.200",
  "127.0.0.1",
  "127.255.255.254",
  "168.63.129.16",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.192",
  "192.0.2.1",
  "192.168.1.1",
  "198.18.0.1",
  "198.51.100.1",
  "203.0.113.1",
  "224.0.0.1",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::127.0.0.1",
  "::ffff:127.0.0.1",
  "::ffff:8.8.8.8",
  "::ffff:7f00:1",
  "64:ff9b::7f00:1",
  "64:ff9b:1::1",
  "100::1",
  "fc00::1",
  "fd00:ec2::254",
  "fe80::1",
  "fe80::1%eth0",
  "fec0::1",
  "ff02::1",
  "2001::1",
  "2001:db8::1",
  "2002:7f00:1::",
  "3fff::1",
  "5f00::1",
  "2600::1%1",
  "",
  "localhost",
  "1.2.3",
])("%s is not public", (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each([
  "1.1.1.1",
  "8.8.8.8",
  "93.184.216.34",
  "172.15.0.1",
  "172.32.0.1",
  "100.63.0.1",
  "100.128.0.1",
  "192.0.1.1",
  "2606:2800:220:1::1",
  "2a00:1450:4001::1",
])("%s is public", (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

test("no IPv4 address in any IPv6 spelling is public", () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.constantFrom("::ffff:", "::", "64:ff9b::", "::ffff:0:"), (address, prefix) => {
      expect(isPublicAddress(prefix + address)).toBe(false);
    }),
  );
});
