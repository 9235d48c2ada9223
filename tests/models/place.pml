/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SENDs that are yet to be placed (src/client/hca/transport/place.c, hca_rq_take(), undo_slot() in
 * src/server/daemon/clients/qp_undo.c): a requester sends MESSAGES, places those that are not polled, and then writes to
 * the memory of all receives. Its receiver polls at any time, and has the memory back with each
 * completion. The requester may die at every step; then the daemon undoes what it had begun.
 *
 * What is proven: what the requester wrote last stays; a message that is polled lies in its memory;
 * no message is copied to memory that the receiver has back; and each message that was sent is
 * polled, also if its sender has died.
 *
 * Weak memory. A compare-and-swap on the slot's state, an acquire, decides who has the arrival. What
 * is written by who has it comes before the release by which it is put back or consumed. But whether
 * it is placed is looked at before, too: what was seen then may be old.
 *
 * Mutants:
 *  1 the receiver does not take what it polls
 *  2 the requester does not take what it places
 *  3 the receiver does not look again, once it has taken an arrival, whether it is placed
 *  4 the requester does not wait for what the receiver has taken
 *  5 what the requester had taken is void when it has died, like what it had claimed
 *  6 the requester says that it is placing when it has taken the arrival, not before
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/transport/place.c place b1785933ff69
 *  src/client/hca/transport/place.c see_to 207e966fb6b4
 *  src/client/hca/transport/place.c hca_place_until 4926c76e0731
 *  src/client/hca/queue/rq.c hca_rq_take 8ec80d3c8c6a
 *  src/client/hca/transport/connected_receive.c complete d24a5cd76f8a
 *  src/shared/shm/ring.h shm_ring_take 0700dabbdb78
 *  src/shared/shm/ring.h shm_ring_put_back bfeead1e9d51
 *  src/server/daemon/clients/qp_undo.c undo_slot e151ac035e2f
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#define MESSAGES 2
#define WRITTEN	 100

mtype = { CREDIT, CLAIMED, DONE, VOID };

/* ---- the shared memory ---- */

mtype state[MESSAGES] = CREDIT;
bit receivers[MESSAGES];	/* whose claim it is */
bit placed[MESSAGES];
byte consumed;
byte word[MESSAGES];		/* the memory of the receives */
byte placing;			/* 1 + the message that the requester is placing; 0: none */

/* ---- what nobody sees ---- */

bit sent[MESSAGES], polled[MESSAGES];
bit dead, wrote, undone;

#define MAY(i, is) (!dead && state[i] == is)

/* A step of the requester, if it lives. */
#define STEP(what) atomic { if :: !dead -> what :: else fi }

inline copy(i)
{
	assert(!polled[i]);
	word[i] = i + 1
}

inline send(i)
{
	STEP(state[i] = CLAIMED);
	atomic {
		if
		:: MAY(i, CLAIMED) -> state[i] = DONE; sent[i] = 1
		:: else
		fi
	}
}

/* place() in place.c */
inline place_it(i)
{
#if MUTANT != 6
	STEP(placing = 1 + i);
#endif
	atomic {
		taken = MAY(i, DONE);
#if MUTANT != 2
		if
		:: taken -> state[i] = CLAIMED; receivers[i] = 0
		:: else
		fi
#endif
	};
#if MUTANT == 6
	STEP(placing = 1 + i);
#endif
	if
	:: taken ->
		STEP(copy(i));
		STEP(placed[i] = 1);
#if MUTANT != 2
		STEP(state[i] = DONE);
#endif
	:: else
	fi;
	STEP(placing = 0)
}

/* see_to() */
inline see_to(i)
{
	do
	:: dead || consumed > i -> break
	:: MAY(i, DONE) && placed[i] -> break
	:: MAY(i, DONE) && !placed[i] && consumed <= i -> place_it(i)
#if MUTANT == 4
	:: MAY(i, CLAIMED) && receivers[i] -> break
#endif
	od
}

active proctype requester()
{
	byte i;
	bit taken;

	for (i : 0 .. MESSAGES - 1) {
		send(i)
	}
	for (i : 0 .. MESSAGES - 1) {
		see_to(i)
	}
	atomic {
		if
		:: !dead ->
			for (i : 0 .. MESSAGES - 1) {
				word[i] = WRITTEN
			}
			wrote = 1
		:: else
		fi
	}
}

active proctype daemon()
{
	byte k;

	if
	:: atomic { !wrote -> dead = 1 };
		for (k : 0 .. MESSAGES - 1) {
			atomic {
				if
				:: state[k] == CLAIMED && !receivers[k] ->
					if
#if MUTANT != 5
					:: placing == 1 + k -> state[k] = DONE
#endif
					:: else -> state[k] = VOID
					fi
				:: else
				fi
			}
		}
	:: wrote
	fi;
	undone = 1
}

/* complete() in connected_receive.c */
active proctype receiver()
{
	byte i;
	bit seen;

	do
	:: i == MESSAGES || (undone && state[i] == CREDIT) -> break
	:: i < MESSAGES && state[i] == VOID -> i++; consumed = i
	:: i < MESSAGES && state[i] == DONE ->
		seen = placed[i];
#if MUTANT != 1
		if
		:: seen
		:: !seen ->
			atomic {
				if
				:: state[i] == DONE -> state[i] = CLAIMED; receivers[i] = 1
				:: else -> goto later
				fi
			}
#if MUTANT != 3
			seen = placed[i]
#endif
		fi;
#endif
		if
		:: seen
		:: !seen -> copy(i)
		fi;
		atomic {
			assert(word[i] == i + 1 || word[i] == WRITTEN);
			assert(!polled[i]);
			polled[i] = 1;
			i++;
			consumed = i
		}
later:
		skip
	od;
	undone;
	for (i : 0 .. MESSAGES - 1) {
		assert(polled[i] == sent[i]);
		assert(!wrote || word[i] == WRITTEN)
	}
}
