/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A shared receive queue that moves to a larger ring (the table before begin_move() in
 * src/client/hca/queue/srq.c): its owner, who posts one more receive before or after, two requesters that take
 * receives, and the daemon, which may refuse the larger ring. Requester 0 may die at every step, or
 * be stopped for longer than the owner waits.
 *
 * What is proven: a receive is used by one message at most; a requester says RNR only if there was
 * no credit at some moment of its last look; who sleeps until there is a receive is woken; and what
 * a dead requester had claimed in the old ring is a credit in the new one, unless the owner has
 * stopped waiting for it: then, and where the queue does not move, it comes back when the owner finds
 * the dead one's position in the queue pair's ring void (src/client/hca/queue/srq_test.c).
 *
 * All steps are seen in one order: what is written between claiming and publishing is in ring.pml,
 * and so is what hints may say. A requester that is to try again does so once it would find anything
 * else: if it never would, the search ends there. The limit is not in this model.
 *
 * Mutants:
 *  1 withdraw is no compare-and-swap	 2 the owner does not wait for claims
 *  3 the old ring is not marked as moving before its credits go
 *  4 the new ring is not marked as moving before its credits come
 *  5 the mark of the new ring goes before its credits come
 *  6 a requester that finds no credit does not look twice
 *  7 it does not look at the mark behind its second look
 *  8 the old ring goes on to say that somebody waits
 *  9 nobody is helped when the queue has moved
 * 10 the daemon changes the records of queue pairs before that of the queue
 * 11 receives that were used are posted in the new ring, too
 * 12 the mark stays when the daemon has refused
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/queue/srq.c reclaim 36cae7be44f7
 *  src/client/hca/queue/srq.c hca_srq_post 3d37d03337aa
 *  src/client/hca/queue/srq.c begin_move ffd479785b6a
 *  src/client/hca/queue/srq.c end_move 93d43abb2888
 *  src/client/hca/queue/srq.c wait_for_senders 712c53c6d358
 *  src/client/hca/queue/srq.c withdraw 0cb8ec5872fd
 *  src/client/hca/queue/srq.c move 40010a0cc442
 *  src/client/hca/queue/srq.c grow 4898f2b94256
 *  src/client/hca/queue/srq.c hca_srq_modify 2d5ba85f76e2
 *  src/client/hca/transport/responder.h hca_responder_try_shared 3e7d9a38096b
 *  src/client/hca/transport/responder.c hca_responder_without_receive 8e0d2b2ef706
 *  src/client/hca/transport/connected.h hca_connected_park d56931864101
 *  src/client/hca/transport/connected_wait.c must_look_again ccdb1fb0dca8
 *  src/server/daemon/clients/srq.c publish de60bdb1d847
 *  src/server/daemon/clients/srq.c daemon_srq_resize 7d33ce1f478d
 *  src/server/daemon/top/verbs.c resize_srq 94168ba2e2a4
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#define OLD 0
#define NEW 1

#ifndef RECEIVES
#define RECEIVES 3	/* all but one of them are posted at the start */
#endif
#define SIZE	 4	/* positions of a ring, none of which is used twice */
#define AT(ring, pos) ((ring) * SIZE + (pos))

mtype = { EMPTY, CREDIT, CLAIMED, DONE, VOID, WITHDRAWN /* void by the owner */ };

mtype = { BLIND, LOOKS, SAW_NONE /* at some moment there was no credit */ };

/* ---- the shared memory ---- */

mtype state[8] = EMPTY;
byte receive[8];	/* that the position is for */
bit claimer[8];
byte posted[2];
bit moving[2], waited_for[2];
bit record;	/* the ring that the queue's record names */
bit renewed;	/* the records of its queue pairs say that it has changed */

/* Of each requester's queue: a request is not done; a thread works on it; another one has come. */
bit waits[2], locked[2], helped[2];

/* ---- what nobody sees ---- */

byte used[RECEIVES];
byte credits;		/* in the rings, or on their way from one to the other */
mtype look[2] = BLIND;	/* each requester's last one */
bit dead, has_moved, gave_up;
byte ended;

inline post_credit(ring, r)
{
	receive[AT(ring, posted[ring])] = r;
	state[AT(ring, posted[ring])] = CREDIT;
	posted[ring]++
}

/* ---- requesters ---- */

inline see_none(i)
{
	if
	:: look[i] == LOOKS && credits == 0 -> look[i] = SAW_NONE
	:: else
	fi
}

inline claim()
{
	d_step {
		pos = 0;
		do
		:: pos < posted[ring] && state[AT(ring, pos)] != CREDIT -> pos++
		:: else -> break
		od;
		got = pos < posted[ring];
		if
		:: got ->
			state[AT(ring, pos)] = CLAIMED;
			claimer[AT(ring, pos)] = me;
			credits--;
			see_none(0);
			see_none(1)
		:: else -> pos = 0
		fi
	}
}

inline publish()
{
	d_step {
		if
		:: state[AT(ring, pos)] == CLAIMED && claimer[AT(ring, pos)] == me ->
			state[AT(ring, pos)] = DONE;
			used[receive[AT(ring, pos)]]++;
			assert(used[receive[AT(ring, pos)]] == 1)
		:: else
		fi;
		claimer[AT(ring, pos)] = 0;
		pos = 0
	}
}

/* has_credits() is left out: who finds none by it would find none by claiming, either. */
inline try_shared()
{
	got = 0;
	if
	:: moving[ring] -> goto later
	:: else ->
		claim();
		if
		:: got -> publish()
		:: else
		fi
	fi
}

proctype requester(bit me; byte messages)
{
	bit ring, seen, got;
	byte pos;

	{
		d_step { seen = renewed; ring = record };
		do
		:: messages == 0 -> break
		:: else ->
again:
			atomic {
				waits[me] = 1;
				locked[me] = 1;
				helped[me] = 0;
				/* hca_exchange_is_current(), hca_exchange_prepare() */
				if
				:: seen != renewed -> seen = renewed; ring = record
				:: else
				fi
			};
			try_shared();
			if
			:: got -> goto done
			:: else
			fi;
			/* hca_responder_without_receive() */
			atomic {
				look[me] = LOOKS;
				see_none(me);
				if
				:: moving[ring] -> goto later
				:: else
				fi
			};
#if MUTANT != 6
			try_shared();
			if
			:: got -> goto done
			:: else
			fi;
#endif
			atomic {
				if
				:: moving[ring] && MUTANT != 7 -> goto later
				:: else
				fi;
				assert(look[me] == SAW_NONE);
				look[me] = BLIND
			};
			/* hca_connected_park() */
			atomic {
				got = waited_for[ring];
				waited_for[ring] = 1;
				if
				:: !got -> goto again
				:: else -> got = 0
				fi
			};
			locked[me] = 0;
			/* must_look_again() */
			if
			:: !waited_for[ring] -> goto again
			:: else
			fi;
			helped[me];
			goto again;
later:
			atomic { look[me] = BLIND; locked[me] = 0 };
			!moving[ring] || seen != renewed;
			goto again;
done:
			atomic {
				got = 0;
				look[me] = BLIND;
				waits[me] = 0;
				locked[me] = 0;
				messages--
			}
		od
	} unless {
		me == 0 && dead
	};
	ended++
}

/* ---- the daemon ---- */

proctype daemon()
{
	byte k;

	if
	:: skip
	:: dead = 1;
		d_step {	/* it has one claim at most */
			for (k : 0 .. 2 * SIZE - 1) {
				if
				:: state[k] == CLAIMED && claimer[k] == 0 -> state[k] = VOID
				:: else
				fi
			}
			k = 0;
			/* what it had locked its requester's process no longer has */
			waits[0] = 0;
			locked[0] = 0;
			helped[0] = 0;
			look[0] = BLIND
		}
	fi;
	ended++
}

/* ---- the owner, with the queue's lock ---- */

inline help_all()
{
	for (k : 0 .. 1) {
		d_step {
			if
			:: waits[k] && !locked[k] -> helped[k] = 1
			:: else
			fi
		}
	}
}

inline post()
{
	d_step { post_credit(mine, RECEIVES - 1); credits++ };
	d_step { helps = waited_for[mine]; waited_for[mine] = 0 };
	if
	:: helps -> help_all()
	:: else
	fi
}

inline reclaim()
{
	do
	:: consumed < posted[OLD] && state[AT(OLD, consumed)] == DONE -> consumed++
	:: consumed < posted[OLD] && state[AT(OLD, consumed)] == VOID ->
		d_step {
			post_credit(OLD, receive[AT(OLD, consumed)]);
			credits++;
			consumed++
		}
	:: else -> break
	od
}

inline withdraw()
{
	for (k : consumed .. posted[OLD] - 1) {
#if MUTANT == 1
		if
		:: state[AT(OLD, k)] == CREDIT -> state[AT(OLD, k)] = WITHDRAWN
#else
		d_step {
		if
		:: state[AT(OLD, k)] == CREDIT -> state[AT(OLD, k)] = WITHDRAWN
#endif
		:: else
		fi
#if MUTANT != 1
		}
#endif
	};
	/* wait_for_senders() */
#if MUTANT != 2
	for (k : consumed .. posted[OLD] - 1) {
		if
		:: state[AT(OLD, k)] != CLAIMED
		:: state[AT(OLD, k)] == CLAIMED && claimer[AT(OLD, k)] == 0 -> gave_up = 1
		fi
	}
#endif
	atomic {
		for (k : consumed .. posted[OLD] - 1) {
			if
			:: state[AT(OLD, k)] == VOID || state[AT(OLD, k)] == WITHDRAWN ||
			   (MUTANT == 11 && state[AT(OLD, k)] == DONE) ->
				moved[n] = k;
				n++
			:: else
			fi
		}
	}
}

inline move()
{
	withdraw();
	mine = NEW;
#if MUTANT == 5
	moving[NEW] = 0;
#endif
	for (k : 0 .. n - 1) {
		d_step {
			post_credit(NEW, receive[AT(OLD, moved[k])]);
			credits = credits + (state[AT(OLD, moved[k])] != WITHDRAWN)
		}
	};
	atomic {
		moving[NEW] = 0;
		has_moved = 1;
		consumed = 0;
		n = 0;
		moved[0] = 0;
		moved[1] = 0;
		moved[2] = 0;
		moved[3] = 0
	};
#if MUTANT != 8
	waited_for[OLD] = 0;
#endif
}

inline grow()
{
	reclaim();
#if MUTANT != 3
	moving[OLD] = 1;
#endif
	if
	:: true ->	/* resize_srq() */
#if MUTANT != 4
		moving[NEW] = 1;
#endif
#if MUTANT == 10
		renewed = 1;
#endif
		record = NEW;
		renewed = 1;
		move();
#if MUTANT != 9
		help_all()
#endif
	:: true ->	/* the daemon refuses */
		skip;
#if MUTANT != 12
		moving[OLD] = 0
#endif
	fi
}

proctype owner()
{
	bit mine, helps;
	byte k, n, consumed, moved[SIZE];

	if
	:: post(); grow()
	:: grow(); post()
	fi;
	ended++
}

init {
	atomic {
		do
		:: credits < RECEIVES - 1 -> post_credit(OLD, credits); credits++
		:: else -> break
		od;
		run requester(0, 1);
		run requester(1, RECEIVES - 1);	/* so there is a receive for each message */
		run owner();
		run daemon()
	};
	ended == 4;
	d_step {
		byte r, at;

		for (r : 0 .. RECEIVES - 1) {
			at = AT(NEW, 0);
			do
			:: at < AT(NEW, posted[NEW]) && receive[at] != r -> at++
			:: else -> break
			od;
			assert(used[r] || !has_moved || gave_up || at < AT(NEW, posted[NEW]))
		}
	}
}
