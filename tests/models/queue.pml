/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of a connected queue pair that wait for receives (src/client/hca/transport/connected_wait.c,
 * connected_help.c): the requester, and two threads of the responder, which post receives and go on
 * with the requests. The requester may take the lock from the responder at any time: it cannot tell
 * one that is stopped from one that is slow. Memory is sequentially consistent here: all accesses
 * to waited_for, lock and head are seq_cst, or ordered by fences.
 *
 * What is proven: a requester that sleeps is woken when its requests are done; a request is done
 * once at most, and once if it succeeds; what arrives was copied before the requester gave the
 * request up; head does not go back.
 *
 * Mutants:
 *  1 the requester does not look again behind the lock	2 the responder does not
 *  3 the responder does not look whether the lock is its own before it publishes
 *  4 it stores head instead of comparing it
 *  5 who finds no receive does not try again behind waited_for
 *  6 the responder tells nobody	7 its threads are not told apart
 *  8 it looks again only if a receive was posted, not if a request was
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/transport/connected_wait.c hca_connected_lock 465d95a71493
 *  src/client/hca/transport/connected_wait.c hca_connected_go_on 7374d66f8d79
 *  src/client/hca/transport/connected_wait.c work_off 175fed68e68b
 *  src/client/hca/transport/connected_wait.c must_look_again ccdb1fb0dca8
 *  src/client/hca/transport/connected_wait.c hca_connected_note_wait 7f3fa7002886
 *  src/client/hca/transport/connected_wait.c bear_helper f8f21a671419
 *  src/client/hca/transport/connected_help.c hca_connected_help c3a28b720765
 *  src/client/hca/transport/connected_help.c work_for 9f889aeb11ce
 *  src/client/hca/transport/connected_help.c next_request f72499b2b99a
 *  src/client/hca/transport/connected_help.c work_locked c3c112bd10f2
 *  src/client/hca/transport/connected_help.c must_look_again e2cbdb0b4fa7
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#define REQUESTS  2
#define NOBODY    0
#define REQUESTER 1
#define RESPONDER 2	/* and 3: its threads are told apart by a tag */

byte head, tail, credits, lock;
byte done[REQUESTS];
bit waited_for, armed, event;
bit given_up;		/* the requester has taken the lock, and uses its buffers for other things */

/* hca_exchange(): claims a receive, copies, publishes. */
inline exchange_one(me, got, stale)
{
	atomic {
		got = (credits > 0);
		if
		:: got -> credits--
		:: else
		fi
	}
	stale = given_up;	/* copied */
	if
	:: got && me != REQUESTER && lock != me && MUTANT != 3 ->
		credits++;
		got = 2
	:: else
	fi
}

/* work_off() and work_for(). @told: something was done. */
inline work(me, at, got, stale, was, told)
{
	parked = 0;
	at = head;
	do
	:: at == tail || given_up -> break
	:: else ->
		exchange_one(me, got, stale);
		if
		:: got == 2 -> break
		:: got == 1 ->
			assert(!stale);
			done[at]++;
			assert(done[at] == 1);
			told = 1;
#if MUTANT == 4
			head = at + 1;
			at++
#else
			atomic {
				if
				:: head == at -> head = at + 1; at++
				:: else -> break
				fi
			}
#endif
		:: else ->
			atomic {
				was = waited_for;
				waited_for = 1
			}
			if
			:: was || MUTANT == 5 -> parked = 1; break
			:: else
			fi
		fi
	od
}

inline unlock(me)
{
	atomic {
		if
		:: lock == me -> lock = NOBODY
		:: else
		fi
	}
}

/* hca_connected_go_on() */
inline go_on()
{
	do
	:: head == tail || given_up -> break
	:: else ->
		locked = 0;
		atomic {
			if
			:: lock == NOBODY -> lock = REQUESTER; locked = 1
			:: else
			fi
		}
		if
		:: !locked ->
			if
			:: skip
			:: atomic {	/* bear_helper() */
				lock > REQUESTER -> lock = REQUESTER;
				given_up = 1;
				completed = head;
				head = tail
			   }
			   unlock(REQUESTER)
			fi;
			break
		:: else ->
			work(REQUESTER, at, got, stale, was, told);
			unlock(REQUESTER);
			if
			:: MUTANT != 1 && head != tail && !waited_for
			:: else -> break
			fi
		fi
	od
}

active proctype requester()
{
	byte at, got, completed = REQUESTS, i;
	bit stale, was, told, locked, parked;

	do
	:: tail < REQUESTS && !given_up -> tail++; go_on()
	:: else -> break
	od;
	do
	:: head == tail -> break
	:: else ->
		armed = 1;
		go_on();
		if
		:: head == tail -> break
		:: else -> event -> event = 0
		fi
	od;
	/* those below completed succeeded */
	do
	:: i < completed -> assert(done[i] == 1); i++
	:: else -> break
	od
}

active [2] proctype responder()
{
	byte at, got, me = RESPONDER + (MUTANT != 7 && _pid % 2);
	bit stale, was, told, locked, parked;

	credits++;
	atomic {
		was = waited_for;
		waited_for = 0
	}
	do
	:: !was || head == tail -> break
	:: else ->
		locked = 0;
		atomic {
			if
			:: lock == NOBODY -> lock = me; locked = 1
			:: else
			fi
		}
		if
		:: !locked -> break
		:: else
		fi;
		work(me, at, got, stale, was, told);
		unlock(me);
		was = 1;
		if
		:: MUTANT != 2 && head != tail && !given_up &&
			(!parked && MUTANT != 8 || !waited_for)
		:: else -> break
		fi
	od;
	if
	:: told && MUTANT != 6 ->
		atomic {
			if
			:: armed -> armed = 0; event = 1
			:: else
			fi
		}
	:: else
	fi
}

/* Both are at their ends: nothing moves head any more. */
active proctype last()
{
end:
	timeout -> assert(head == tail)
}
