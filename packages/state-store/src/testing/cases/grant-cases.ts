/** What a grant allows once it was replaced, and how one is taken over: by the `LeaseStore` port alone. */
import assert from "node:assert/strict";
import type { ConformanceCase, LeaseOnly } from "../conformance-case.ts";
import { assertGrew, holderOf, session, take, ttlMs, leavesLease, isHeld } from "../scene.ts";

export const grantCases: readonly ConformanceCase<LeaseOnly>[] = [
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
      assertGrew("fencing token", a.granted.fencingToken, b.granted.fencingToken);
      const answer = await leavesLease(store, () =>
        store.leases.acquire({ sessionId: session, holder: holderOf("c"), ttlMs, reclaim: a.grant }),
      );
      assert.equal(answer.kind, "held");
    },
  },
];
