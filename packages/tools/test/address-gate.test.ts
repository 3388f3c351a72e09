import type { LookupFunction } from "node:net";
import { systemHost } from "@turnkeeper/kernel";
import { expect, test, vi } from "vitest";
import { createAddressGate, resolveByName } from "../src/address-gate.ts";
import type { ResolveName } from "../src/address-gate.ts";
import { createFetchUrlTool } from "../src/index.ts";
import { requestPage } from "../src/page-request.ts";
import * as publicAddress from "../src/public-address.ts";
import { webServer } from "./web-server.ts";
import { rejection, workbench } from "./workbench.ts";

const limits = { timeoutMs: 20_000, bodyBytesMax: 65_536, redirectsMax: 5 };

/** Answers names with these addresses, one list after the other; the last one from then on. */
function answering(...answers: (readonly string[])[]): ResolveName & { readonly count: () => number } {
  let count = 0;
  const resolve: ResolveName = async () => {
    const addresses = answers[Math.min(count, answers.length - 1)] ?? [];
    count += 1;
    return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  };
  return Object.assign(resolve, { count: () => count });
}

test.each([
  "http://127.0.0.1/",
  "http://127.1/",
  "http://2130706433/",
  "http://0x7f000001/",
  "http://017700000001/",
  "http://0/",
  "http://169.254.169.254/latest/meta-data/",
  "http://[::1]/",
  "http://[::ffff:127.0.0.1]/",
  "http://[::ffff:a9fe:a9fe]/",
  "http://[fd00:ec2::254]/",
  "http://10.0.0.1/",
  "http://192.168.0.1:8080/",
  "http://1.1.1.1:22/",
  "http://1.1.1.1:25/",
  "file:///etc/passwd",
  "ftp://1.1.1.1/",
  "data:text/plain,hello",
  "http://user:secret@1.1.1.1/",
  "not an address",
])("%s is refused without a packet, and the secret of a URL is not repeated", async (url) => {
  const { context } = await workbench();
  const resolveName = vi.fn<ResolveName>();
  const error = await rejection(createFetchUrlTool({ host: systemHost, resolveName }).execute({ url }, context));
  expect(error).toMatchObject({ code: "ADDRESS_REFUSED" });
  expect(error.message).not.toContain("secret");
  expect(resolveName).not.toHaveBeenCalled();
});

test.each([
  ["loopback", ["127.0.0.1"]],
  ["IPv6 loopback", ["::1"]],
  ["metadata", ["169.254.169.254"]],
  ["mapped", ["::ffff:127.0.0.1"]],
  ["one inside among public ones", ["1.1.1.1", "127.0.0.1"]],
  ["nothing at all", []],
])("a name that leads to %s is refused, and nothing is connected", async (_name, addresses) => {
  const { context } = await workbench();
  const server = await webServer((_request, response) => response.end("inside"));
  const resolveName = answering(addresses);
  const tool = createFetchUrlTool({ host: systemHost, resolveName });
  const error = await rejection(tool.execute({ url: `http://evil.test:${server.port}/` }, context));
  expect(error).toMatchObject({ code: "ADDRESS_REFUSED" });
  expect(error.message).not.toMatch(/127|169|::/);
  expect(server.socketCount()).toBe(0);
  expect(resolveName.count()).toBe(1);
});

test("localhost is refused by where it leads, with a dot at its end too", async () => {
  const { context } = await workbench();
  const server = await webServer((_request, response) => response.end("inside"));
  const tool = createFetchUrlTool({ host: systemHost, resolveName: resolveByName });
  for (const name of ["localhost", "LOCALHOST", "localhost."]) {
    const error = await rejection(tool.execute({ url: `http://${name}:${server.port}/` }, context));
    expect(["ADDRESS_REFUSED", "FETCH_FAILED"]).toContain(error.code);
  }
  expect(server.socketCount()).toBe(0);
});

/** Two servers on one port: 127.0.0.2 counts as public here, 127.0.0.1 is inside. */
async function twoSides(): Promise<{
  readonly outside: Awaited<ReturnType<typeof webServer>>;
  readonly inside: Awaited<ReturnType<typeof webServer>>;
}> {
  vi.spyOn(publicAddress, "isPublicAddress").mockImplementation((address) => address === "127.0.0.2");
  const outside = await webServer(
    (request, response) => {
      if (request.url === "/page") return response.end("outside");
      response.writeHead(302, { location: "/page" }).end();
    },
    { address: "127.0.0.2" },
  );
  const inside = await webServer((_request, response) => response.end("a secret"), { port: outside.port });
  return { outside, inside };
}

// Only Linux answers on the whole of 127.0.0.0/8 without being told to.
const hasLoopbackBlock = process.platform === "linux";

test.runIf(hasLoopbackBlock)(
  "a name that leads elsewhere when it is asked again is refused the second time",
  async () => {
    const { outside, inside } = await twoSides();
    const gate = createAddressGate([], answering(["127.0.0.2"], ["127.0.0.1"]));
    const start = new URL(`http://rebind.test:${outside.port}/start`);
    const error = await rejection(requestPage({ host: systemHost, gate }, start, limits, new AbortController().signal));
    expect(error).toMatchObject({ code: "ADDRESS_REFUSED" });
    expect(outside.requests).toHaveLength(1);
    expect(inside.socketCount()).toBe(0);
  },
);

test.runIf(hasLoopbackBlock)(
  "a socket goes to the address that was checked: the name is asked once for it",
  async () => {
    const { outside, inside } = await twoSides();
    const resolveName = answering(["127.0.0.2"], ["127.0.0.1"]);
    const gate = createAddressGate([], resolveName);
    const page = await requestPage(
      { host: systemHost, gate },
      new URL(`http://rebind.test:${outside.port}/page`),
      limits,
      new AbortController().signal,
    );
    expect(page.kind === "page" && page.body.toString()).toBe("outside");
    expect(resolveName.count()).toBe(1);
    expect(inside.socketCount()).toBe(0);
  },
);

test.runIf(hasLoopbackBlock)(
  "control: of a host that is exempt from the check the second answer reaches the inside",
  async () => {
    const { outside } = await twoSides();
    vi.mocked(publicAddress.isPublicAddress).mockReturnValue(true);
    const gate = createAddressGate(["rebind.test"], answering(["127.0.0.2"], ["127.0.0.1"]));
    const start = new URL(`http://rebind.test:${outside.port}/start`);
    const page = await requestPage({ host: systemHost, gate }, start, limits, new AbortController().signal);
    expect(page.kind === "page" && page.body.toString()).toBe("a secret");
  },
);

test("the address at the other end is checked before a byte is sent", async () => {
  const server = await webServer((_request, response) => response.end("inside"));
  const gate = createAddressGate([], answering(["1.1.1.1"]));
  // As if whatever stands between us and the socket had another idea of the name.
  const elsewhere: LookupFunction = (_name, options, callback) =>
    options.all === true ? callback(null, [{ address: "127.0.0.1", family: 4 }]) : callback(null, "127.0.0.1", 4);
  const cheated = { ...gate, lookupFor: () => elsewhere };
  const start = new URL(`http://cheat.test:${server.port}/`);
  const error = await rejection(
    requestPage({ host: systemHost, gate: cheated }, start, limits, new AbortController().signal),
  );
  expect(error).toMatchObject({ code: "ADDRESS_REFUSED" });
  expect(server.requests).toHaveLength(0);
});

test("this machine's own addresses are inside, public or not", async () => {
  vi.spyOn(publicAddress, "isPublicAddress").mockReturnValue(true);
  const gate = createAddressGate([], resolveByName);
  expect(gate.admits(new URL("http://a.test/"), "127.0.0.1")).toBe(false);
  expect(gate.admits(new URL("http://a.test/"), "1.1.1.1")).toBe(true);
});

test("a host that is allowed is reached wherever it leads, with its port if one is named", async () => {
  const { context } = await workbench();
  const server = await webServer((_request, response) => response.end("inside"));
  const deps = { host: systemHost, resolveName: answering(["127.0.0.1"]) };
  const url = `http://wiki.internal:${server.port}/`;
  for (const allowed of ["wiki.internal", `wiki.internal:${server.port}`, "WIKI.internal"]) {
    expect(await createFetchUrlTool(deps, { allowHosts: [allowed] }).execute({ url }, context)).toContain("inside");
  }
  for (const allowed of ["internal", "wiki.internal:1", "iki.internal"]) {
    const error = await rejection(createFetchUrlTool(deps, { allowHosts: [allowed] }).execute({ url }, context));
    expect(error).toMatchObject({ code: "ADDRESS_REFUSED" });
  }
});
