/** Leases by the `LeaseStore` port alone: an author of that port runs these. */
import assert from "node:assert/strict";
import type { ConformanceCase, LeaseOnly } from "../conformance-case.ts";
import { grantOf, holderOf, session, take, ttlMs } from "../scene.ts";

/** Runs `act`, which must leave the session's lease as it was. */
async function leavesLease<Answer>(store: LeaseOnly, act: () => Promise<Answer>): Promise<Answer> {
  const before = await store.leases.read(session);
  const answer = await act();
  assert.deepEqual(await store.leases.read(session), before, "the refused call changed the lease");
  return answer;
}

async function isHeld(store: LeaseOnly, by: string): Promise<void> {
  const answer = await leavesLease(store, () =>
    store.leases.acquire({ sessionId: session, holder: holderOf("contender"), ttlMs }),
  );
  assert.equal(answer.kind, "held", `the lease of ${by} was not held`);
  assert.equal(answer.lease.holder.holderId, holderOf(by).holderId);
}

export const leaseCases: readonly ConformanceCase<LeaseOnly>[] = [
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
      assert.ok(granted.fencingToken > 1);
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
      assert.ok(b.granted.fencingToken > a.granted.fencingToken);
      await (await reopen()).leases.release(b.grant);
      const c = await take(await reopen(), "c");
      assert.ok(c.granted.fencingToken > b.granted.fencingToken);
    },
  },
  {
    id: "LEASE-4",
    title: "a release or a renewal under a replaced grant is told so and changes nothing",
    async run({ open, host }) {
      const store = await open();
      const a = await take(store, "a", { ttlMs: 5_000 });
      await host.advance(5_000);
      await take(store, "b");
      assert.deepEqual(await leavesLease(store, () => store.leases.release(a.grant)), { kind: "stale" });
      const renewal = await leavesLease(store, () => store.leases.renew(a.grant, ttlMs));
      assert.equal(renewal.kind, "lost");
      assert.equal(renewal.lease?.holder.holderId, holderOf("b").holderId);
    },
  },
  {
    id: "LEASE-4b",
    title: "a grant is its holder and its token: with one of them wrong nothing is renewed or released",
    async run({ open }) {
      const store = await open();
      const { grant } = await take(store, "a");
      const wrong = [
        { ...grant, fencingToken: grant.fencingToken - 1 },
        { ...grant, fencingToken: grant.fencingToken + 1 },
        { ...grant, holderId: "holder-b" },
        { ...grant, sessionId: "session-2" },
      ];
      for (const other of wrong) {
        assert.equal((await leavesLease(store, () => store.leases.renew(other, 1))).kind, "lost");
        assert.equal((await leavesLease(store, () => store.leases.release(other))).kind, "stale");
      }
    },
  },
  {
    id: "LEASE-4c",
    title: "a released grant is over: a second release is stale, a renewal is lost and brings nothing back",
    async run({ open }) {
      const store = await open();
      const { grant } = await take(store, "a");
      assert.deepEqual(await store.leases.release(grant), { kind: "released", pendingCount: 0 });
      assert.deepEqual(await store.leases.release(grant), { kind: "stale" });
      assert.deepEqual(await store.leases.renew(grant, ttlMs), { kind: "lost" });
      assert.equal(await store.leases.read(session), undefined);
    },
  },
  {
    id: "LEASE-4d",
    title: "a lease that ran out and was not claimed may be revived or released by its holder",
    async run({ open, host }) {
      const store = await open();
      const { grant } = await take(store, "a", { ttlMs: 5_000 });
      await host.advance(60_000);
      assert.equal((await store.leases.renew(grant, 5_000)).kind, "renewed");
      await isHeld(store, "a");
      await host.advance(60_000);
      assert.equal((await store.leases.release(grant)).kind, "released");
      assert.equal(await store.leases.read(session), undefined);
    },
  },
  {
    id: "LEASE-5",
    title: "a reclaim takes a live lease when it names the grant that stands, and that grant is lost",
    async run({ open }) {
      const store = await open();
      const a = await take(store, "a");
      await take(store, "b", { reclaim: { ...a.grant, renewCount: 0 } });
      const renewal = await store.leases.renew(a.grant, ttlMs);
      assert.equal(renewal.kind, "lost");
      assert.equal(renewal.lease?.holder.holderId, holderOf("b").holderId);
    },
  },
  {
    id: "LEASE-5b",
    title: "a reclaim that names another grant, or an earlier renewal of this one, takes nothing",
    async run({ open }) {
      const store = await open();
      const { grant } = await take(store, "a");
      await store.leases.renew(grant, ttlMs);
      const wrong = [
        { ...grant, renewCount: 0 },
        { ...grant, fencingToken: grant.fencingToken + 1 },
        { ...grant, holderId: "holder-b" },
      ];
      for (const reclaim of wrong) {
        const answer = await leavesLease(store, () =>
          store.leases.acquire({ sessionId: session, holder: holderOf("contender"), ttlMs, reclaim }),
        );
        assert.equal(answer.kind, "held");
      }
      await take(store, "b", { reclaim: grant });
    },
  },
  {
    id: "LEASE-5c",
    title: "a reclaim of a grant that is gone is an ordinary request",
    async run({ open }) {
      const store = await open();
      const a = await take(store, "a");
      await store.leases.release(a.grant);
      const b = await take(store, "b", { reclaim: a.grant });
      assert.ok(b.granted.fencingToken > a.granted.fencingToken);
      const answer = await leavesLease(store, () =>
        store.leases.acquire({ sessionId: session, holder: holderOf("c"), ttlMs, reclaim: a.grant }),
      );
      assert.equal(answer.kind, "held");
    },
  },
];
