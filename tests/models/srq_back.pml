/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receives of a shared receive queue that come back (src/client/hca/queue/srq.c): their sender died with one
 * in its hands, or gave the message up; and a ring that is full, as the sender that holds its oldest
 * position stands still. The owner posts, polls and returns; requester 0 is as slow as it likes, and
 * requester 1 gives up one of its messages. DEATH 1: requester 0 dies at some step, and the daemon
 * undoes what it had. TAKEN 1: the owner no longer waits for it.
 *
 * What is proven: a receive has one credit, or one message; no more are posted than the ring has
 * positions; the owner can post as many as the queue is for, however slow a sender is; and no
 * message waits for ever for a receive that the owner has posted. If the owner has stopped waiting
 * for a sender, which goes on later, the last may be: what that had comes back with the next message
 * or receive.
 *
 * Positions of a queue pair's ring that its owner withdraws are not here: no sender had them, and
 * nothing comes back by them.
 *
 * All steps are seen in one order, and positions count up without end: what senders and the owner
 * see of slots is in ring.pml, and how a requester comes to sleep and is woken in srq.pml.
 *
 * Mutants:
 *  1 a receive cannot be posted while the ring is full
 *  2 nobody looks for room when a message is polled
 *  3 who waits is not helped then
 *  4 a receive has another credit before its own is used up
 *  5 the daemon undoes what the dead one had of the queue pair's ring first
 *  6 which use of a receive is meant is not looked at
 *  7 the full ring is not looked at
 *  8 what the dead one had behind another one's position waits for that
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/queue/srq.c add_first_credit f4e81f1ede24
 *  src/client/hca/queue/srq.c must_be_posted df782fde3f70
 *  src/client/hca/queue/srq.c post_void efc09dd5fad2
 *  src/client/hca/queue/srq.c post_due a87faa09a4f3
 *  src/client/hca/queue/srq.c reclaim 36cae7be44f7
 *  src/client/hca/queue/srq.c has_room 9a7c5b83ddde
 *  src/client/hca/queue/srq.c post_one 6bc41c58c2ae
 *  src/client/hca/queue/srq.c look_for_returned 05943a64992e
 *  src/client/hca/queue/srq.c find 3d2a245003dc
 *  src/client/hca/queue/srq.c take 35d08d67c584
 *  src/client/hca/queue/srq.c hca_srq_return 530432a7a9a4
 *  src/client/hca/queue/rq.c return_shared a29242c8a2fb
 *  src/client/hca/transport/responder.h hca_responder_try_shared 3e7d9a38096b
 *  src/client/hca/transport/responder.c hca_responder_give_back 50a90558efdf
 *  src/server/daemon/clients/qp_undo.c begin_undo_ring 948262cd6578
 *  src/server/daemon/clients/qp_undo.c undo_slot e151ac035e2f
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#ifndef DEATH
#define DEATH 0
#endif
#ifndef TAKEN
#define TAKEN 0
#endif

#define SIZE	  3	/* positions of the ring */
#define MAX_WR	  2	/* receives of the queue */
#ifndef MESSAGES
#define MESSAGES  3	/* of requester 1 */
#endif
#define GIVEN_UP  1	/* of its messages, at most */
#define POSTS	  (1 + MESSAGES)
#define POSITIONS 8

mtype = { EMPTY, CREDIT, CLAIMED, DONE, VOID };

/* ---- the shared memory ---- */

mtype slot[POSITIONS] = EMPTY;	/* of the shared queue's ring */
bit number[POSITIONS];		/* the receive that it is for */
byte use_of[POSITIONS];		/* and which use of that */
bit claimer[POSITIONS];
byte posted;
bit waited_for;

/* Each requester's position in the ring of its queue pair, and the receive that it names. */
mtype arrival[2] = EMPTY;
bit named[2], receive[2];
byte use[2];

/* ---- the owner's ---- */

byte consumed;
bit in_use[MAX_WR], is_back[MAX_WR], is_late[MAX_WR];
bit has_void, passed[POSITIONS];	/* at_position has no number there */
byte use_now[MAX_WR], credit[MAX_WR];

/* ---- what nobody sees ---- */

bit dead, gave_up, waits[2], helped[2];
byte ended;

#define IS_FULL (posted - consumed == SIZE && MUTANT != 7)

/* ---- requesters ---- */

/* hca_responder_try_shared(), and what becomes of the message */
proctype requester(bit me; byte messages, may_give_up)
{
	byte pos;

	{
		do
		:: messages == 0 -> break
		:: else ->
			atomic { arrival[me] == EMPTY -> arrival[me] = CLAIMED };
again:
			atomic {
				pos = 0;
				do
				:: pos < posted && slot[pos] != CREDIT -> pos++
				:: else -> break
				od;
				if
				:: pos < posted ->
					slot[pos] = CLAIMED;
					claimer[pos] = me
				:: else ->
					pos = 0;
					waited_for = 1;
					waits[me] = 1
				fi
			};
			if
			:: waits[me] ->
				if
				:: atomic { helped[me] -> helped[me] = 0; waits[me] = 0 };
					goto again
				:: atomic { gave_up -> waits[me] = 0; messages = 0; arrival[me] = EMPTY }
					goto leave
				fi
			:: else
			fi;
			d_step { named[me] = 1; receive[me] = number[pos]; use[me] = use_of[pos] };
			d_step {
				if
				:: slot[pos] == CLAIMED && claimer[pos] == me ->
					/* until now it may have written there */
					assert(use_of[pos] == use_now[number[pos]]);
					slot[pos] = DONE;
					claimer[pos] = 0
				:: else
				fi;
				pos = 0
			};
			atomic {
				if
				:: arrival[me] == CLAIMED ->
					if
					:: may_give_up -> may_give_up--; arrival[me] = VOID
					:: arrival[me] = DONE; messages--
					fi
				:: else -> messages--	/* it was taken away */
				fi
			}
leave:
			skip
		od
	} unless {
		me == 0 && dead
	};
	ended++
}

/* daemon_qp_undo_sending(), of requester 0 */
inline undo_shared()
{
	d_step {
		for (k : 0 .. POSITIONS - 1) {
			if
			:: slot[k] == CLAIMED && claimer[k] == 0 -> slot[k] = VOID
			:: else
			fi
		}
		k = 0
	}
}

inline undo_own()
{
	d_step {
		if
		:: arrival[0] == CLAIMED -> arrival[0] = VOID
		:: else
		fi
	}
}

proctype daemon()
{
	byte k;

	if
	:: !DEATH
	:: DEATH -> d_step { dead = 1; waits[0] = 0; helped[0] = 0 };
#if MUTANT == 5
		undo_own();
		undo_shared()
#else
		undo_shared();
		undo_own()
#endif
	fi;
	ended++
}

/* ---- the owner, with the queue's lock ---- */

inline add_credit(n)
{
	is_back[n] = 0;
	is_late[n] = 0;
	use_now[n]++;
	credit[n] = posted;
	number[posted] = n;
	use_of[posted] = use_now[n];
	slot[posted] = CREDIT;
	posted++;
	assert(posted - consumed <= SIZE)
}

inline post_void()
{
	d_step {
		has_void = 0;
		before = posted;
		k = consumed;
		do
		:: k == before -> break
		:: k != before && (slot[k] != VOID || passed[k]) -> k++
		:: k != before && slot[k] == VOID && !passed[k] && IS_FULL -> has_void = 1; break
		:: k != before && slot[k] == VOID && !passed[k] && !IS_FULL ->
			passed[k] = 1;
			add_credit(number[k]);
			k++
		od;
		k = 0
	}
}

inline post_due()
{
	for (k : 0 .. MAX_WR - 1) {
		d_step {
			if
			:: is_late[k] && !IS_FULL -> add_credit(k)
			:: !is_late[k] && is_back[k] && !IS_FULL &&
			   (slot[credit[k]] == DONE || MUTANT == 4) -> add_credit(k)
			:: else
			fi
		}
	}
	k = 0
}

#define forget(pos) number[pos] = 0; use_of[pos] = 0; claimer[pos] = 0; passed[pos] = 0

inline reclaim()
{
	before = posted;
	do
	:: consumed != before && slot[consumed] == DONE -> d_step { forget(consumed); consumed++ }
	:: consumed != before && slot[consumed] == VOID && passed[consumed] ->
		d_step { forget(consumed); consumed++ }
	:: consumed != before && slot[consumed] == VOID && !passed[consumed] ->
		d_step { consumed++; add_credit(number[consumed - 1]); forget(consumed - 1) }
	:: else -> break
	od;
	if
	:: has_void -> post_void()
	:: else
	fi;
	before = 0;
	post_due()
}

inline help_if_waited_for()
{
	d_step {
		if
		:: waited_for ->
			waited_for = 0;
			helped[0] = waits[0];
			helped[1] = waits[1]
		:: else
		fi
	}
}

#define IS_MEANT(n, i) (named[i] && receive[i] == (n) && in_use[n] && \
			(use[i] == use_now[n] || MUTANT == 6))

/* post_one() */
inline post()
{
	if
	:: IS_FULL -> reclaim()
	:: else
	fi;
	d_step {
		n = (in_use[0] -> 1 : 0);
		in_use[n] = 1;
		if
		:: !IS_FULL -> add_credit(n)
		:: else ->
			assert(MUTANT != 1);
			is_late[n] = 1
		fi;
		posts++;
		n = 0
	};
	help_if_waited_for()
}

/* A message is polled: take(), look_for_returned() */
inline poll(i)
{
	d_step {
		n = receive[i];
		assert(IS_MEANT(n, i));
		is_back[n] = 0;
		is_late[n] = 0;
		in_use[n] = 0;
		n = 0;
		arrival[i] = EMPTY	/* the name stays, as that of the ring's former lap does */
	};
#if MUTANT != 2
	if
	:: has_void || is_back[0] || is_back[1] || is_late[0] || is_late[1] ->
		reclaim();
#if MUTANT != 3
		help_if_waited_for()
#endif
	:: else
	fi
#endif
}

/* return_shared(), hca_srq_return() */
inline give_back(i)
{
	d_step {
		n = receive[i];
		if
		:: IS_MEANT(n, i) -> is_back[n] = 1
		:: else
		fi;
		n = 0;
		named[i] = 0;
		arrival[i] = EMPTY
	};
#if MUTANT != 8
	has_void = 1;
#endif
	reclaim();
	help_if_waited_for()
}

proctype owner()
{
	byte posts, k, n, before;

	do
	:: posts < POSTS && !(in_use[0] && in_use[1]) -> post()
	:: arrival[0] == DONE -> poll(0)
	:: arrival[1] == DONE -> poll(1)
	:: arrival[0] == VOID -> give_back(0)
	:: arrival[1] == VOID -> give_back(1)
	/* take_from_stopped() */
	:: d_step { TAKEN && !gave_up && arrival[0] == CLAIMED -> gave_up = 1; arrival[0] = VOID }
	:: ended == 3 && (posts == POSTS || gave_up) && arrival[0] == EMPTY && arrival[1] == EMPTY -> break
	od;
	/* one is left at most */
	assert(in_use[0] + in_use[1] <= 1 || gave_up);
	n = in_use[1];
	assert(!in_use[n] || slot[credit[n]] == CREDIT || gave_up)
}

init {
	atomic {
		run requester(0, 1, 0);
		run requester(1, MESSAGES, GIVEN_UP);
		run owner();
		run daemon()
	}
}
