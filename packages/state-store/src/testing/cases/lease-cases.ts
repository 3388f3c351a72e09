/** Who holds a session, and until when: by the `LeaseStore` port alone. */
import assert from "node:assert/strict";
import type { ConformanceCase, LeaseOnly } from "../conformance-case.ts";
import { assertGrew, grantOf, holderOf, session, take, ttlMs, isHeld } from "../scene.ts";

export const leaseTermCases: readonly ConformanceCase<LeaseOnly>[] = [
  {
    id: "LEASE-1",
    title: "a live lease is held: every other acquire is told who holds it, and changes nothing",
    async run({ open }) {
      const store = await open();
      await take(store, "a");
      await isHeld(store, "a");
      await isHeld(store, "a");
    },
  },
  {
    id: "LEASE-1b",
    title: "of acquires that race for a free session exactly one is granted",
    async run({ open }) {
      const store = await open();
      const names = ["a", "b", "c", "d", "e"];
      const answers = await Promise.all(
        names.map((name) => store.leases.acquire({ sessionId: session, holder: holderOf(name), ttlMs })),
      );
      const winners = names.filter((_, index) => answers[index]?.kind === "granted");
      assert.equal(winners.length, 1, `granted: ${winners.join(", ")}`);
      assert.equal((await store.leases.read(session))?.holder.holderId, holderOf(winners[0] ?? "").holderId);
      for (const answer of answers) assert.ok(answer.kind === "granted" || answer.kind === "held", answer.kind);
    },
  },
  {
    id: "LEASE-1c",
    title: "a lease lapses ttlMs after its grant by the store's clock, not a millisecond before",
    async run({ open, host }) {
      const store = await open();
      await take(store, "a", { ttlMs: 5_000 });
      await host.advance(4_999);
      await isHeld(store, "a");
      assert.equal((await store.leases.read(session))?.standing, "live");
      await host.advance(1);
      assert.equal((await store.leases.read(session))?.standing, "expired");
      await take(store, "b");
      await isHeld(store, "b");
    },
  },
  {
    id: "LEASE-1d",
    title: "a renewal counts its ttlMs from its own moment, longer or shorter than before",
    async run({ open, host }) {
      const store = await open();
      const { grant } = await take(store, "a", { ttlMs: 5_000 });
      await host.advance(4_000);
      assert.equal((await store.leases.renew(grant, 10_000)).kind, "renewed");
      await host.advance(9_999);
      await isHeld(store, "a");
      assert.equal((await store.leases.renew(grant, 1_000)).kind, "renewed");
      await host.advance(999);
      await isHeld(store, "a");
      await host.advance(1);
      await take(store, "b");
    },
  },
  {
    id: "LEASE-1e",
    title: "a step of the wall clock, forward or back, neither frees nor prolongs a lease",
    async run({ open, host }) {
      const store = await open();
      await take(store, "a", { ttlMs: 5_000 });
      host.jumpWall(3_600_000);
      await isHeld(store, "a");
      host.jumpWall(-7_200_000);
      await isHeld(store, "a");
      await host.advance(5_000);
      await take(store, "b");
    },
  },
  {
    id: "LEASE-1f",
    title: "a lease of one session says nothing about another",
    async run({ open }) {
      const store = await open();
      const { grant } = await take(store, "a");
      const other = await take(store, "b", { sessionId: "session-2" });
      assert.equal((await store.leases.release(other.grant)).kind, "released");
      await isHeld(store, "a");
      assert.equal((await store.leases.renew(grant, ttlMs)).kind, "renewed");
      assert.equal(await store.leases.read("session-2"), undefined);
    },
  },
  {
    id: "LEASE-1g",
    title: "the time a machine sleeps counts: its lease lapses over a suspend",
    needs: "boot-clock",
    async run({ open, host }) {
      const store = await open();
      await take(store, "a", { ttlMs: 5_000 });
      host.suspend(5_000);
      assert.equal((await store.leases.read(session))?.standing, "expired");
      await take(store, "b");
    },
  },
  {
    id: "LEASE-1h",
    title: "a lease of another boot is held however old it is, and only a reclaim that names it takes it",
    needs: "boot-clock",
    async run({ open, reopen, host }) {
      await take(await open(), "a", { ttlMs: 5_000 });
      host.reboot();
      const store = await reopen();
      assert.equal((await store.leases.read(session))?.standing, "other-boot");
      await isHeld(store, "a");
      await host.advance(10_000_000);
      await isHeld(store, "a");
      const { granted } = await take(store, "b", { reclaim: grantOf("a", 1) });
      assertGrew("fencing token", 1, granted.fencingToken);
      assert.equal((await store.leases.read(session))?.standing, "live");
    },
  },
  {
    id: "LEASE-1i",
    title: "a renewal brings a lease of another boot under the clock of this one",
    needs: "boot-clock",
    async run({ open, reopen, host }) {
      const { grant } = await take(await open(), "a");
      host.reboot();
      const store = await reopen();
      assert.equal((await store.leases.renew(grant, 5_000)).kind, "renewed");
      assert.equal((await store.leases.read(session))?.standing, "live");
      await host.advance(5_000);
      await take(store, "b");
    },
  },
  {
    id: "LEASE-1j",
    title: "a read tells the holder, the token, the ttl, the renewals and the standing; a free session reads as absent",
    async run({ open, host }) {
      const store = await open();
      assert.equal(await store.leases.read(session), undefined);
      const holder = {
        ...holderOf("a"),
        pidStart: "4711",
        pidNamespace: "pid:[4026531836]",
        socketPath: "/run/turnkeeper/a.sock",
      };
      const granted = await store.leases.acquire({ sessionId: session, holder, ttlMs: 5_000 });
      assert.equal(granted.kind, "granted");
      await host.advance(1_000);
      const { acquiredAtMs, expiresAtMs, ...lease } = (await store.leases.read(session)) ?? assert.fail("no lease");
      const { fencingToken } = granted;
      const view = { sessionId: session, holder, fencingToken, ttlMs: 5_000, standing: "live" };
      assert.deepEqual(lease, { ...view, renewCount: 0, expiresInMs: 4_000 });
      assert.equal(expiresAtMs - acquiredAtMs, 5_000);
      await store.leases.renew({ sessionId: session, holderId: holder.holderId, fencingToken }, 7_000);
      const renewed = (await store.leases.read(session)) ?? assert.fail("no lease");
      assert.deepEqual(
        { renewCount: renewed.renewCount, ttlMs: renewed.ttlMs, expiresInMs: renewed.expiresInMs },
        { renewCount: 1, ttlMs: 7_000, expiresInMs: 7_000 },
      );
      assert.equal(renewed.acquiredAtMs, acquiredAtMs);
    },
  },
  {
    id: "LEASE-1k",
    title: "a grant outlives a crash: it is still held, and its holder still renews and releases it",
    async run({ open, reopen }) {
      const { grant } = await take(await open(), "a");
      const store = await reopen();
      await isHeld(store, "a");
      assert.equal((await store.leases.renew(grant, ttlMs)).kind, "renewed");
      const again = await reopen();
      assert.equal((await again.leases.read(session))?.renewCount, 1);
      assert.equal((await again.leases.release(grant)).kind, "released");
      assert.equal(await (await reopen()).leases.read(session), undefined);
    },
  },
  {
    id: "LEASE-1l",
    title: "an acquire repeated by the holder it was granted to answers that grant again, with a whole ttl from then",
    async run({ open, host }) {
      const store = await open();
      const first = await take(store, "a", { ttlMs: 5_000 });
      await host.advance(4_000);
      const second = await take(store, "a", { ttlMs: 5_000 });
      assert.deepEqual(second.grant, first.grant);
      // The repeater counts its ttl from the repeat: were expiry left where it was, it would believe too long (LEASE-3).
      await host.advance(4_999);
      await isHeld(store, "a");
      // A contender that watched the first grant stand still has seen it move.
      const reclaim = { ...first.grant, renewCount: 0 };
      const contender = await store.leases.acquire({ sessionId: session, holder: holderOf("b"), ttlMs, reclaim });
      assert.equal(contender.kind, "held");
      assert.equal((await store.leases.release(first.grant)).kind, "released");
    },
  },
  {
    id: "LEASE-2",
    title: "each grant's token is greater than every earlier one: after release, lapse and reclaim",
    async run({ open, host }) {
      const store = await open();
      const a = await take(store, "a", { ttlMs: 5_000 });
      await store.leases.release(a.grant);
      const b = await take(store, "b", { ttlMs: 5_000 });
      await host.advance(5_000);
      const c = await take(store, "c", { ttlMs: 5_000 });
      const d = await take(store, "d", { reclaim: c.grant });
      const tokens = [a, b, c, d].map(({ granted }) => granted.fencingToken);
      assert.deepEqual(
        tokens,
        [...new Set(tokens)].toSorted((left, right) => left - right),
        "tokens did not grow",
      );
      assert.ok((tokens[0] ?? 0) >= 1 && tokens.every(Number.isSafeInteger), `tokens: ${tokens.join(", ")}`);
    },
  },
  {
    id: "LEASE-2b",
    title: "tokens go on growing when every process has crashed between two grants",
    async run({ open, reopen, host }) {
      const a = await take(await open(), "a", { ttlMs: 5_000 });
      await host.advance(5_000);
      const b = await take(await reopen(), "b");
      assertGrew("fencing token", a.granted.fencingToken, b.granted.fencingToken);
      await (await reopen()).leases.release(b.grant);
      const c = await take(await reopen(), "c");
      assertGrew("fencing token", b.granted.fencingToken, c.granted.fencingToken);
    },
  },
];
