/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reuse of payload memory (src/client/hca/link/payload.c and the daemon's retired payloads): a sender with one or
 * two payload slots, a receiver, another sender whose small messages only move the ring on, and the
 * daemon. The sender may die at every step; then its payload memory goes to somebody else. The
 * receiver may die at every step; then its ring's memory serves the ring of another receiver.
 *
 * What is proven: a receiver that copies a message copies that message, whole, wherever others
 * are; a slot comes free again; nobody waits for ever.
 *
 * The ring itself is ring.pml's: here a claim, the fill and the publishing are one step. Positions
 * are compared as 3-bit signed numbers, so that they wrap within a run; the real ones have 32 bits,
 * which a busy ring uses up in minutes.
 *
 * Weak memory. The sender's stores to the payload wait in a store buffer.
 *
 * Mutants:
 *  1 consumed is relaxed: it moves before the copy is done
 *  2 publish is relaxed			3 a slot is used again without a look
 *  4 what was seen of a ring, at any time, is believed of the next one in its memory
 *  5 what was seen before the message was sent is believed
 *  6 the daemon does not look whether a ring refers to the memory of the dead
 *  7 the daemon looks only at the oldest position of a ring
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/link/payload.c held baf2f7f42c3d
 *  src/client/hca/link/payload.c search b4f58c38da66
 *  src/client/hca/link/payload.c next_slot f032434249af
 *  src/client/hca/link/payload.c hca_payload_get 2089ed323ad3
 *  src/server/daemon/clients/memory.c mark_ring 88dbae79c953
 *  src/server/daemon/clients/memory.c sweep_one a5746a982cf7
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef DEATH
#define DEATH 1		/* of the sender; 2: of the receiver */
#endif
#ifndef SLOTS
#define SLOTS 2		/* of payload: 1 or 2 */
#endif
#ifndef MESSAGES
#define MESSAGES 3
#endif
#ifndef SMALL
#define SMALL 5		/* messages of the other sender */
#endif

#define SIZE	2
#define FOREIGN	200	/* what the memory's next user writes */

/* (int32_t)(a - b) > 0, in 3 bits */
#define AHEAD(a, b) (((a) - (b) + 64) % 8 >= 1 && ((a) - (b) + 64) % 8 <= 3)

/* ---- the shared memory ---- */

byte word[4];		/* payload: both words of a slot are the message's ID */
byte gen, consumed, tail;	/* of the ring in the receiver's memory */
byte arrival[SIZE];		/* by position: 0: small; else 1 + payload slot */
byte id[SIZE];			/* what nobody can see: the message's ID */

/* Store buffer of the sender. */
bit to_store[2];
byte store_at, store_value;

#define ALL_STORED (!to_store[0] && !to_store[1])

bit dead, finished, small_done, receiver_dead;
byte small_sent;

active proctype world()
{
end:
	do
	:: d_step { to_store[0] -> word[2 * store_at] = store_value; to_store[0] = 0 }
	:: d_step { to_store[1] -> word[2 * store_at + 1] = store_value; to_store[1] = 0 }
#if DEATH == 1
	:: d_step { !dead && !finished -> dead = 1 }
#elif DEATH == 2
	:: d_step { !receiver_dead && gen == 1 -> receiver_dead = 1 }
#endif
	od
}

#define HAS_CREDIT (gen && tail - consumed < SIZE)

/* Messages that ride in the arrival. */
active proctype other()
{
	do
	:: d_step {
		small_sent < SMALL && HAS_CREDIT ->
		arrival[tail % SIZE] = 0;
		tail++;
		small_sent++
	   }
	:: d_step { small_sent == SMALL || (finished || dead) -> small_done = 1 } break
	od
}

/* ---- the sender ---- */

/* Its account of slots. */
bit held[SLOTS];
byte hold_gen[SLOTS], hold_pos[SLOTS];
/* struct hca_payload_seen; by slot: whether it is younger than the slot's message */
byte seen_gen, seen_consumed;
bit is_younger[2];

inline release(k)
{
	held[k] = 0;
	hold_gen[k] = 0;
	hold_pos[k] = 0
}

/* held() of payload.c: @k is free if there is no hold any more */
inline look(k)
{
	if
	:: atomic { (MUTANT == 4 || seen_gen == hold_gen[k]) && (MUTANT == 4 || MUTANT == 5 || is_younger[k]) &&
	   AHEAD(seen_consumed, hold_pos[k]) ->
		release(k) }
	:: else ->
		seen_gen = gen;
		atomic {
			seen_consumed = consumed;
			is_younger[0] = 1;
			is_younger[1] = 1;
			held[k] = seen_gen == hold_gen[k] && !AHEAD(seen_consumed, hold_pos[k]);
			if
			:: !held[k] -> release(k)
			:: else
			fi
		}
	fi
}

active proctype sender()
{
	byte m = 1, k;

	{
		do
		:: m <= MESSAGES ->
			k = m % SLOTS;
			if
			:: held[k] && MUTANT != 3 -> look(k)
			:: else
			fi;
			if
			:: held[k] && MUTANT != 3 -> goto lost	/* there is no free slot */
			:: else
			fi;
			is_younger[k] = 0;
			d_step {
				ALL_STORED ->
				store_at = k;
				store_value = m;
				to_store[0] = 1;
				to_store[1] = 1
			}
			if
			:: d_step {
				HAS_CREDIT && (MUTANT == 2 || ALL_STORED) ->
				arrival[tail % SIZE] = 1 + k;
				id[tail % SIZE] = m;
				held[k] = 1;
				hold_gen[k] = gen;
				hold_pos[k] = tail;
				tail++
			   }
			:: d_step { !HAS_CREDIT && ALL_STORED -> skip }
			fi;
lost:
			m++
		:: else -> break
		od;
		finished = 1
	} unless {
		dead
	}
}

/* ---- the receiver ---- */

inline receive(c, w0, w1)
{
	if
	:: arrival[c % SIZE] ->
#if MUTANT == 1
		consumed = c + 1;
#endif
		w0 = word[2 * (arrival[c % SIZE] - 1)];
		w1 = word[2 * (arrival[c % SIZE] - 1) + 1];
		d_step {
			assert(w0 == w1 && w0 == id[c % SIZE]);
			w0 = 0;
			w1 = 0
		}
	:: else
	fi;
	d_step {
		arrival[c % SIZE] = 0;
		id[c % SIZE] = 0;
		c++;
		consumed = c
	}
}

inline live(g, c, w0, w1)
{
	atomic { gen == g -> c = 0 }
	do
	:: c != tail -> receive(c, w0, w1)
	:: c == tail && (finished || dead) && small_done -> break
	od
}

active proctype receiver()
{
	byte c, w0, w1;

	{
		live(1, c, w0, w1)
	} unless {
		receiver_dead
	}
	if
	:: receiver_dead -> w0 = 0; w1 = 0; live(2, c, w0, w1)
	:: else
	fi
}

/* ---- the daemon ---- */

bit given_away;

#define REFERS(p) (gen && consumed <= p && p < tail && arrival[(p) % SIZE])

active proctype daemon()
{
	gen = 1;
end:
	do
	:: receiver_dead && gen == 1 ->
		d_step {	/* the pages go back */
			gen = 0; consumed = 0; tail = 0;
			arrival[0] = 0; arrival[1] = 0;
			id[0] = 0; id[1] = 0
		}
		gen = 2
	:: d_step {
		dead && ALL_STORED && !given_away && !(receiver_dead && gen == 1) &&
		(MUTANT == 6 || !REFERS(consumed)) &&
		(MUTANT == 6 || MUTANT == 7 || !REFERS(consumed + 1)) ->
		word[0] = FOREIGN;
		word[1] = FOREIGN;
		word[2] = FOREIGN;
		word[3] = FOREIGN;
		given_away = 1
	   }
	od
}
