/*
 * The take-over of one session's lease by processes that may crash, and that stand still whenever another moves on.
 * The store grants a lease that is free or expired, and one whose holder a contender probed and found dead, if that
 * very grant still stands. Sending, the store's transaction and its answer are steps of their own.
 *
 * Without a define this is our protocol. Each define puts one race back:
 *   TAKE_ANY            the take is not conditional on the probed grant
 *   SILENCE_IS_DEATH    a holder that does not answer is taken for dead
 *   WALL_CLOCK          the lease expires by a clock that can be set
 *   APPEND_UNFENCED     an append is not checked against the grant
 *   RENEW_UNFENCED      a renewal is not checked against the grant
 *   RELEASE_UNFENCED    a release is not checked against the grant
 *   TOKEN_REUSED        the token starts anew when the lease was free
 *   BELIEF_FROM_ANSWER  belief counts from the answer, not from the sending
 *   BELIEF_UNASKED      a side effect starts without asking whether the lease is still believed in
 */
#define PROCESSES 3
#define TTL 2
#define END 3                     /* boot time stands still here: later moments show nothing new */
#define NOBODY 255
#define me (_pid - 1)             /* Time is process 0 */

byte now;                         /* boot time */
byte holder = NOBODY;             /* the row */
byte token;
byte expires;
bool isCrashed[PROCESSES];
byte written;                     /* the greatest token of an accepted append */
#ifdef TOKEN_REUSED
byte granted;                     /* the greatest token ever granted */
#endif

#ifdef WALL_CLOCK
byte wall;
#define TODAY wall
#else
#define TODAY now
#endif

#define isExpired (TODAY >= expires)
#define stands(who, its) (holder == who && token == its)
#define believes(since) (now - since < TTL)

inline grant(who, its) {
  /* LEASE-1, LEASE-5: nobody who may live loses a lease that has not expired on boot time. */
  assert(holder == NOBODY || now >= expires || isCrashed[holder]);
#ifdef TOKEN_REUSED
  if :: holder == NOBODY -> token = 1 :: else -> token++ fi;
  assert(token > granted);        /* LEASE-2 */
  granted = token;
#else
  token++;
#endif
  holder = who;
  its = token;
  expires = TODAY + TTL
}

active proctype Time() {
  do
  :: atomic { now < END -> now++;
#ifdef WALL_CLOCK
       wall = now
#endif
     }
#ifdef WALL_CLOCK
  :: atomic { wall == now -> wall = wall + TTL }
#endif
  :: now == END -> break
  od
}

active [PROCESSES] proctype Process() {
  byte mine, sent, since, seen, seenToken;
  bool isJudged;                  /* the grant that was seen has been found dead */
  bool isOurs;

  do                              /* asking */
  :: sent = now;
     atomic {
       if
       :: holder == NOBODY || isExpired -> grant(me, mine)
#ifdef TAKE_ANY
       :: holder != NOBODY && !isExpired && isJudged -> grant(me, mine)
       :: holder != NOBODY && !isExpired && !isJudged -> seen = holder; seenToken = token
#else
       :: holder != NOBODY && !isExpired && isJudged && stands(seen, seenToken) -> grant(me, mine)
       :: holder != NOBODY && !isExpired && !(isJudged && stands(seen, seenToken)) -> seen = holder; seenToken = token
#endif
       fi;
       isJudged = false
     };
     if
     :: mine != 0 -> break        /* the answer has come */
     :: else ->
#ifdef SILENCE_IS_DEATH
        isJudged = true
#else
        isJudged = isCrashed[seen]
#endif
     fi
  od;
  /* What is not read again is forgotten, so that states that differ in nothing else are one. */
  atomic {
#ifdef BELIEF_FROM_ANSWER
    since = now;
#else
    since = sent;
#endif
    sent = 0; seen = 0; seenToken = 0
  };

  do                              /* holding */
#ifdef BELIEF_UNASKED
  :: assert(token == mine)
#else
  :: atomic { believes(since) -> assert(token == mine) }  /* LEASE-3: no side effect after the next grant */
#endif
  :: atomic {                     /* an append */
#ifdef APPEND_UNFENCED
       isOurs = true;
#else
       isOurs = stands(me, mine);
#endif
       if
       :: isOurs ->
          assert(mine >= written);                     /* APPEND-1 */
          written = mine
       :: else
       fi
     };
     if :: atomic { isOurs -> isOurs = false } :: else -> break fi
  :: sent = now;                  /* a renewal */
     atomic {
#ifdef RENEW_UNFENCED
       isOurs = true;
#else
       isOurs = stands(me, mine);
#endif
       if
       :: isOurs ->
          assert(stands(me, mine));                    /* LEASE-4 */
          expires = TODAY + TTL
       :: else
       fi
     };
     if
     :: atomic { isOurs ->
#ifdef BELIEF_FROM_ANSWER
          since = now;
#else
          since = sent;
#endif
          sent = 0; isOurs = false }
     :: else -> break
     fi
  :: atomic {                     /* the release */
#ifdef RELEASE_UNFENCED
       isOurs = true;
#else
       isOurs = stands(me, mine);
#endif
       if
       :: isOurs ->
          assert(stands(me, mine));                    /* LEASE-4 */
          holder = NOBODY;
          expires = 0
       :: else
       fi
     };
     break
  :: isCrashed[me] = true; goto gone
  od;
gone:
  atomic { mine = 0; sent = 0; since = 0; isOurs = false }
}
