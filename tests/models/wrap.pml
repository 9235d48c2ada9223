/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sender that falls asleep anywhere in a claim (shm_ring_claim(), shm_ring_claim_slowly()) while
 * others move the ring on by any number of positions: it never claims one that is not posted.
 *
 * Positions are compared as 3-bit signed numbers, so that they wrap within a run; the real ones
 * have 32 bits. The state's position counts on: a state that is the same again after 2^30 positions
 * is not in this model (docs/memory-order.md).
 *
 * Mutants:
 *  1 the fast path loads posted_seen before tail
 *  2 the slow path keeps what it knows of posted when it leaps a lap or more
 *  3 the slow path loads posted_seen before tail
 *
 * Functions that it models (tools/check-models.py):
 *  src/shared/shm/ring.h shm_ring_claim 468b130581e5
 *  src/shared/shm/ring.c shm_ring_claim_slowly af8646b6a610
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#define SIZE	2
#define LAST	12	/* positions in a run */

/* (int32_t)(a - b) > 0, in 3 bits */
#define AHEAD(a, b) (((a) - (b) + 64) % 8 >= 1 && ((a) - (b) + 64) % 8 <= 3)

byte posted = SIZE, consumed = SIZE, tail = SIZE, posted_seen = SIZE;
byte pos[SIZE];		/* of the states */
bit done[SIZE];		/* whether they are published */

/* The owner, who posts and takes out what he can. */
active proctype owner()
{
end:
	do
	:: d_step { posted < LAST && posted - consumed < SIZE -> posted++ }
	:: d_step {
		consumed < posted && pos[consumed % SIZE] == consumed && done[consumed % SIZE] ->
		consumed++
	   }
	od
}

/* Everybody else: claims, hints and publishing at one go. */
active proctype others()
{
end:
	do
	:: d_step {
		pos[0] + SIZE < posted && pos[0] <= pos[1] ->
		pos[0] = pos[0] + SIZE;
		done[0] = 1;
		tail = pos[0] + 1;
		posted_seen = posted
	   }
	:: d_step {
		pos[1] + SIZE < posted && pos[1] < pos[0] ->
		pos[1] = pos[1] + SIZE;
		done[1] = 1;
		tail = pos[1] + 1;
		posted_seen = posted
	   }
	od
}

inline swap(t)
{
	assert(t < posted);
	pos[t % SIZE] = t;
	done[t % SIZE] = 0
}

active proctype sender()
{
	byte t, seen, c;
	bit slow;

	/* the fast path */
#if MUTANT == 1
	seen = posted_seen;
	t = tail;
#else
	t = tail;
	seen = posted_seen;
#endif
	d_step {
		if
		:: AHEAD(seen, t) && pos[t % SIZE] + SIZE == t -> swap(t)
		:: else -> slow = 1
		fi
	}
	if
	:: !slow -> goto claimed
	:: else
	fi;
#if MUTANT == 3
	seen = posted_seen;
	t = tail;
#else
	t = tail;
	seen = posted_seen;
#endif
	do
	:: !AHEAD(seen, t) ->
		seen = posted;
		if
		:: !AHEAD(seen, t) -> goto none
		:: else
		fi
	:: AHEAD(seen, t) && t <= LAST ->
		d_step {
			slow = 0;
			if
			:: pos[t % SIZE] == t -> t++
			:: pos[t % SIZE] + SIZE == t -> swap(t); slow = 1
			:: else -> c = 1
			fi
		}
		if
		:: slow -> goto claimed
		:: !slow && c ->
			atomic {
				c = consumed;
				if
				:: AHEAD(c, t) ->
					t = c;
#if MUTANT != 2
					seen = t
#endif
				:: else -> t++
				fi;
				c = 0
			}
		:: !slow && !c
		fi
	:: t > LAST -> goto none	/* it has walked long enough */
	od;
claimed:
	if
	:: t < LAST + SIZE ->
		tail = t + 1;
		posted_seen = seen;
		done[t % SIZE] = 1
	:: else
	fi;
none:
	skip
}

init {
	pos[0] = 0;
	pos[1] = 1
}
