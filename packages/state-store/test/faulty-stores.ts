/** Stores that lack one guard each. The controls run a case on them, and see the outcome that the guard prevents. */
import type { Entry, Grant, LeaseView, PendingInput, SpoolStep, StateStore } from "@turnkeeper/state-store";
import { digestOf } from "@turnkeeper/state-store";
import type { Fault } from "./memory-harness.ts";

/** The port with some of its methods replaced. */
function replacing<Port extends object>(port: Port, methods: Partial<Port>): Port {
  return new Proxy(port, {
    get: (target, name): unknown => Reflect.get(name in methods ? methods : target, name),
  });
}

const grantOf = ({ sessionId, holder, fencingToken }: LeaseView): Grant => ({
  sessionId,
  holderId: holder.holderId,
  fencingToken,
});

/** LEASE-1: takes a session without looking whether its lease stands. */
export const takesStandingLeases: Fault = (store) => ({
  ...store,
  leases: replacing(store.leases, {
    acquire: async (request) => {
      let answer = await store.leases.acquire(request);
      while (answer.kind === "held")
        answer = await store.leases.acquire({ ...request, reclaim: grantOf(answer.lease) });
      return answer;
    },
  }),
});

/** Rule 7.19: goes on with a suspended turn though nobody has answered it. */
export const resumesUnanswered: Fault = (store) => ({
  ...store,
  leases: replacing(store.leases, {
    acquire: async (request) => {
      const answer = await store.leases.acquire(request);
      if (answer.kind !== "suspended" || !request.begin?.resumes) return answer;
      const { sessionId, turnId, approvals } = answer.turn;
      for (const { callId } of approvals)
        await store.turns.answer({ sessionId, callId, turnId, decision: "allow", by: "nobody" });
      return store.leases.acquire(request);
    },
  }),
});

/** Rule 7.19: settles a suspended turn for whoever asks for its session. */
export const givesSuspendedAway: Fault = (store) => ({
  ...store,
  leases: replacing(store.leases, {
    acquire: async (request) => {
      const answer = await store.leases.acquire(request);
      if (answer.kind !== "suspended") return answer;
      await store.turns.requestStop(request.sessionId, { hard: true, reason: "crashed", by: "nobody" });
      return store.leases.acquire(request);
    },
  }),
});

/** SPOOL-1: replays the spool after the grant has settled the turn it belongs to. */
export const replaysAfterSettling: Fault = (store) => {
  const kept: SpoolStep[] = [];
  return {
    ...store,
    spool: replacing(store.spool, {
      keep: async (step) => {
        kept.push(step);
        return { place: "memory" };
      },
      waiting: async () => [
        { sessionId: "session-1", stepCount: kept.length, turnIds: [], damagedCount: 0, place: "memory" },
      ],
    }),
    leases: replacing(store.leases, {
      acquire: async (request) => {
        const { reclaim } = request;
        if (reclaim) await store.turns.settleForeign(reclaim);
        for (const step of kept.splice(0)) await store.spool.keep(step);
        return store.leases.acquire(request);
      },
    }),
  };
};

/** SPOOL-1: keeps nothing. */
export const keepsNothing: Fault = (store) => ({
  ...store,
  spool: replacing(store.spool, { keep: async () => ({ place: "nowhere" }) }),
});

/** LEASE-1: judges expiry by the wall clock. */
export const judgesByWallClock: Fault = (store, host) => ({
  ...store,
  leases: replacing(store.leases, {
    acquire: async (request) => {
      const lease = await store.leases.read(request.sessionId);
      const hasLapsed = lease !== undefined && lease.expiresAtMs <= host.clock.wallMs();
      return store.leases.acquire(hasLapsed ? { ...request, reclaim: grantOf(lease) } : request);
    },
  }),
});

/** LEASE-2: deletes the row of a lease on release, so tokens begin anew. */
export const restartsTokens: Fault = (store) => {
  const before = new Map<string, number>();
  const inner = (grant: Grant): Grant => ({
    ...grant,
    fencingToken: grant.fencingToken + (before.get(grant.sessionId) ?? 0),
  });
  return {
    ...store,
    leases: replacing(store.leases, {
      acquire: async (request) => {
        const { reclaim } = request;
        const answer = await store.leases.acquire(reclaim ? { ...request, reclaim: inner(reclaim) } : request);
        if (answer.kind !== "granted") return answer;
        return { ...answer, fencingToken: answer.fencingToken - (before.get(request.sessionId) ?? 0) };
      },
      release: async (grant) => {
        const { fencingToken } = inner(grant);
        const answer = await store.leases.release(inner(grant));
        if (answer.kind === "released") before.set(grant.sessionId, fencingToken);
        return answer;
      },
    }),
  };
};

/** LEASE-2: keeps the token with the session, and forgets both. */
export const forgetsTokensOnDelete: Fault = (store) => ({
  ...store,
  leases: replacing(store.leases, {
    acquire: async (request) => {
      const isNew = (await store.transcript.load(request.sessionId)).revision === 0;
      const answer = await store.leases.acquire(request);
      return answer.kind === "granted" && isNew ? { ...answer, fencingToken: 1 } : answer;
    },
  }),
});

/** LEASE-2: an imported session brings its own token, whatever was granted here. */
export const importsTokensOfElsewhere: Fault = (store) => {
  const brought = new Map<string, number>();
  return {
    ...store,
    sessions: replacing(store.sessions, {
      importSession: (records) => {
        brought.set(records.session.sessionId, records.fencingToken);
        return store.sessions.importSession(records);
      },
    }),
    leases: replacing(store.leases, {
      acquire: async (request) => {
        const token = brought.get(request.sessionId);
        const answer = await store.leases.acquire(request);
        if (answer.kind !== "granted" || token === undefined) return answer;
        brought.delete(request.sessionId);
        return { ...answer, fencingToken: token + 1 };
      },
    }),
  };
};

/** LEASE-4: renews and releases whatever lease stands, whoever asks. */
export const ignoresTokensOfHolders: Fault = (store) => {
  const standing = async (grant: Grant): Promise<Grant> => {
    const lease = await store.leases.read(grant.sessionId);
    return lease ? grantOf(lease) : grant;
  };
  return {
    ...store,
    leases: replacing(store.leases, {
      renew: async (grant, ttlMs) => store.leases.renew(await standing(grant), ttlMs),
      release: async (grant) => store.leases.release(await standing(grant)),
    }),
  };
};

/** APPEND-1: writes for whoever asks, into the turn that runs. */
export const ignoresTokensOfWriters: Fault = (store) => ({
  ...store,
  transcript: replacing(store.transcript, {
    append: async (request) => {
      const lease = await store.leases.read(request.grant.sessionId);
      const [running] = await store.turns.running(request.grant.sessionId);
      if (!lease || !running) return store.transcript.append(request);
      const { entries } = request;
      return store.transcript.append({ grant: grantOf(lease), turnId: running.turn.turnId, entries });
    },
  }),
});

/** APPEND-2: settles in a step of its own, after the entries, and the process dies in between. */
export const settlesInASecondStep: Fault = (store) => ({
  ...store,
  transcript: replacing(store.transcript, {
    append: ({ grant, turnId, entries }) => store.transcript.append({ grant, turnId, entries }),
  }),
});

/** INBOX-1: says accepted first and stores with the next call, which a crash cuts off. */
export const acceptsBeforeItStores: Fault = (store) => {
  const unwritten: (() => Promise<unknown>)[] = [];
  const flush = async (): Promise<StateStore> => {
    for (const write of unwritten.splice(0)) await write();
    return store;
  };
  return {
    ...store,
    leases: replacing(store.leases, { acquire: async (request) => (await flush()).leases.acquire(request) }),
    inbox: replacing(store.inbox, {
      offer: async (request) => {
        unwritten.push(() => store.inbox.offer(request));
        const { sessionId, inputId, text, runner } = request;
        const facts = { sessionId, inputId, text, digest: digestOf(text), seq: 1, offeredAtMs: 0 };
        const input: PendingInput = { ...facts, delivery: "turn", state: "pending", runner };
        return { kind: "accepted", input };
      },
      read: async (...query) => (await flush()).inbox.read(...query),
    }),
  };
};

/** INBOX-2: takes every offer for a new input. */
export const forgetsInputIds: Fault = (store) => {
  let offerCount = 0;
  return {
    ...store,
    inbox: replacing(store.inbox, {
      offer: (request) => store.inbox.offer({ ...request, inputId: `${request.inputId}/${++offerCount}` }),
    }),
  };
};

/** COMP-1: applies a summary whatever came since its basis was read. */
export const ignoresBasis: Fault = (store) => ({
  ...store,
  transcript: replacing(store.transcript, {
    applyCompaction: async (request) => {
      const { compactionCount } = await store.transcript.load(request.grant.sessionId);
      return store.transcript.applyCompaction({ ...request, basis: { ...request.basis, compactionCount } });
    },
  }),
});

/** COMP-1: puts the summary in the place of everything, as a rewrite of the transcript would. */
export const summarisesEverything: Fault = (store) => ({
  ...store,
  transcript: replacing(store.transcript, {
    applyCompaction: async (request) => {
      const { entries } = await store.transcript.load(request.grant.sessionId, { all: true });
      const throughSeq = entries.at(-1)?.seq ?? 0;
      return store.transcript.applyCompaction({ ...request, basis: { ...request.basis, throughSeq } });
    },
  }),
});

const isLeft = ({ body }: Entry): boolean => body.role !== "tool" || body.status !== "unknown";

/** PAIR-1: leaves open what a turn left open. */
export const leavesCallsOpen: Fault = (store) => {
  return {
    ...store,
    transcript: replacing(store.transcript, {
      load: async (...query) => {
        const { entries, ...rest } = await store.transcript.load(...query);
        return { ...rest, entries: entries.filter(isLeft) };
      },
    }),
    sessions: replacing(store.sessions, {
      records: async (sessionId) => {
        const records = await store.sessions.records(sessionId);
        return records && { ...records, entries: records.entries.filter(isLeft) };
      },
    }),
  };
};

/** The queue: whoever asks first goes first, and takes what was another's to run. */
export const servesWhoeverAsks: Fault = (store) => ({
  ...store,
  leases: replacing(store.leases, {
    acquire: async (request) => {
      const answer = await store.leases.acquire(request);
      if (answer.kind !== "behind" || !request.begin) return answer;
      const runnerId = answer.head.runner?.runnerId ?? "";
      return store.leases.acquire({ ...request, begin: { ...request.begin, runnerId } });
    },
  }),
});

/** CHILD-NOTICE: nobody knows whose child a session is, so nobody is told. */
export const forgetsParents: Fault = (store) => ({
  ...store,
  inbox: replacing(store.inbox, { offer: ({ parent: _parent, ...request }) => store.inbox.offer(request) }),
});

/** CHILD-NOTICE: takes a notice into the turn that has its result already. */
export const leavesNoticesOfSteps: Fault = (store) => ({
  ...store,
  transcript: replacing(store.transcript, {
    append: ({ settledInputs = [], ...step }) =>
      store.transcript.append({
        ...step,
        settledInputs: settledInputs.filter(({ inputId }) => !inputId.startsWith("child/")),
      }),
  }),
});
