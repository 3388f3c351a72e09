/*
 * The watchdog's stop of one turn. The turn makes progress, compacts, stalls or ends; the watch looks, observes,
 * reserves a claim, waits for a commit in flight, and consumes the claim and publishes the stop in one step.
 * What an event loop does without an await is one atomic step here; between two steps anything may happen.
 *
 * Without a define this is our protocol. Each define puts one race back:
 *   COMPARE_THEN_PUBLISH   the generation is compared in one step and the stop published in the next
 *   COMPARE_BEFORE_WAIT    the generation is compared before the wait for the commit, and not again
 *   CONSUME_THEN_PUBLISH   an await stands between the consumed claim and the publication
 *   CANCEL_BEFORE_CLAIM    the pending commit is cancelled before the claim is consumed
 *   CANCEL_WITHOUT_LOOK    the commit is cancelled also while it runs
 *   SAY_ON_OBSERVATION     "aborted" is said when the stall is observed
 *   WITHDRAW_ON_RESERVE    renewal is withdrawn when the claim is reserved
 *   NO_POLL_PHASE          judged when the timer fires, before data that has arrived is delivered
 *   STOP_AFTER_END         the end of the turn does not close it to the stop
 *   WATCH_ENDS_WITH_VETO   the watch ends with the first abort that is vetoed
 */
#define MOVES 3

byte generation;
byte moves;
bool hasArrived;    /* data is in the socket, and not delivered */
bool wasEarly;      /* it had arrived before the look began, and is still not delivered */
byte reservedFor;
bool isReserved;
bool isCommitting, isCancelled;
bool isPublished, isSaid, isWithdrawn;
bool isStalled, isOver;

inline deliver() {
  if
  :: hasArrived -> hasArrived = false; wasEarly = false; generation++
  :: else
  fi
}

/* What a stop does, with what must hold when it does. */
inline publish(seen) {
  assert(seen == generation);     /* INT-1, LIVE-2: nothing moved since it was judged silent */
  assert(!wasEarly);              /* LIVE-2: nor had anything arrived that nobody had looked at */
  assert(!isOver);                /* INT-2: the turn that is stopped is the one that was judged */
  isPublished = true
}
inline cancelPending() {
  assert(isPublished);            /* COMP-2: a stop that may still be vetoed cancels nothing */
  assert(!isCommitting);          /* COMP-2: a commit that has begun owns itself */
  isCancelled = true
}
inline say() {
  assert(isPublished);            /* LIVE-3: "aborted" is said of nothing but an abort */
  isSaid = true
}
inline withdraw() {
  assert(isSaid);                 /* LIVE-3: the lease is renewed until the stop has been said */
  isWithdrawn = true
}

active proctype Network() {
  do
  :: atomic { moves < MOVES && !hasArrived && !isStalled && !isOver -> moves++; hasArrived = true }
  :: moves == MOVES || isStalled || isOver -> break
  od
}

active proctype Turn() {
  do
  :: atomic { hasArrived -> deliver() }
  :: atomic { !isPublished && !isCancelled && !isCommitting && moves < MOVES -> isCommitting = true }
  :: atomic { isCommitting -> isCommitting = false }
  :: atomic { !isCommitting -> isOver = true }; break
  :: isPublished -> atomic { isCommitting = false; isOver = true }; break
  :: isStalled = true; break
  od
}

active proctype Watch() {
  byte seen;
  bool isClaimed;
  do
  :: isOver -> break
  :: else ->
     atomic { seen = generation; wasEarly = hasArrived };
#ifndef NO_POLL_PHASE
     atomic { deliver() };
#endif
     if
     :: atomic { generation == seen && !isOver ->
#ifdef SAY_ON_OBSERVATION
          say();
#endif
          isReserved = true; reservedFor = seen }
#ifdef WITHDRAW_ON_RESERVE
        withdraw();
#endif
#ifdef CANCEL_BEFORE_CLAIM
        atomic { if :: !isCommitting -> cancelPending() :: else fi };
#endif
#ifdef COMPARE_BEFORE_WAIT
        isClaimed = (seen == generation);
#endif
        if
        :: !isCommitting
        :: isCommitting           /* the wait is bounded: past its bound the commit is left running */
        fi;
#if defined(COMPARE_THEN_PUBLISH)
        isClaimed = (seen == generation && !isOver);
        atomic { if :: isClaimed && !isOver -> publish(seen) :: else fi };
#elif defined(COMPARE_BEFORE_WAIT)
        atomic { if :: isClaimed && !isOver -> publish(seen) :: else fi };
#elif defined(CONSUME_THEN_PUBLISH)
        atomic { isClaimed = (isReserved && reservedFor == generation && !isOver); isReserved = false };
        atomic { if :: isClaimed && !isOver -> publish(seen) :: else fi };
#else
        atomic {
#ifdef STOP_AFTER_END
          isClaimed = (isReserved && reservedFor == generation);
#else
          isClaimed = (isReserved && reservedFor == generation && !isOver);
#endif
          isReserved = false;
          if
          :: isClaimed ->
             publish(seen);
#ifdef CANCEL_WITHOUT_LOOK
             cancelPending()
#else
             if :: !isCommitting -> cancelPending() :: else fi
#endif
          :: else
          fi
        };
#endif
        if
        :: isPublished -> say(); withdraw(); break
        :: else ->
           /* LIVE-3, INT-3: a vetoed abort leaves no trace but the observation. */
           assert(!isCancelled && !isSaid && !isWithdrawn);
#ifdef WATCH_ENDS_WITH_VETO
           break
#endif
        fi
     :: else                      /* it moved: nothing to judge */
     fi
  od
}

/* LIVE-1: a turn that has stopped moving is stopped. */
ltl stuckIsStopped { [] (isStalled -> <> isPublished) }
