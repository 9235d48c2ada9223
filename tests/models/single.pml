/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Claims in the header of a connected queue pair's ring (src/shared/shm/ring.h): two senders, the ring's
 * owner, the daemon. Two, because the requester's thread and the responder's may take turns, and
 * one that is stopped may not know that it is another's turn. Sender 0 may die at every step; so
 * may the owner (LIVES 2), whose ring's memory then serves a ring of another generation.
 *
 * What is proven: a position is claimed by one sender at most; what a live sender has claimed it
 * can publish; what was published is received once, and what the dead had claimed becomes void;
 * nobody writes to the memory of a ring that has gone; and in the end each credit can be claimed.
 *
 * Weak memory. Each decision is one compare-and-swap on one word, of the header or of a slot. A
 * claim moves from the one to the other by two, in this order, each a release: who finds that the
 * header has gone on finds the mark. The rest is as in ring.pml, which has store buffers.
 *
 * Mutants:
 *  1 who claims does not mark the claim before
 *  2 withdraw does not mark		3 the daemon's walk does not mark
 *  4 close does not mark		5 who claims marks when it has claimed, not before
 *  6 what is marked cannot be published
 *  7 the claim is no compare-and-swap	8 the mark is no compare-and-swap
 *  9 withdraw leaves the header as it is
 *
 * Functions that it models (tools/check-models.py):
 *  src/shared/shm/ring.h shm_ring_claim_single 1f650909a8ba
 *  src/shared/shm/ring.h shm_ring_publish_single c5515d3d70ff
 *  src/shared/shm/ring.c mark a512b59065ff
 *  src/shared/shm/ring.c move_claim 32b8d1f3d9b7
 *  src/shared/shm/ring.c shm_ring_claim_single_slowly 563e2d6a35b2
 *  src/shared/shm/ring.c shm_ring_publish_single_slowly 10727b4f82b1
 *  src/shared/shm/ring.c withdraw_claims 4436945771d2
 *  src/shared/shm/ring.c shm_ring_close_claim 5c3997ee4f12
 *  src/shared/shm/ring.c shm_ring_walk_begin 6c7bef453f44
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef LIVES
#define LIVES 1	/* of owners */
#endif
#ifndef RESETS
#define RESETS 1	/* how often an owner moves to RESET and on */
#endif
#ifndef SIZE
#define SIZE 2	/* slots of the ring: 1 or 2 */
#endif
#ifndef RECEIVES
#define RECEIVES 3	/* of each owner */
#endif
#ifndef MESSAGES
#define MESSAGES 2	/* of each sender */
#endif
#ifndef MESSAGES_1
#define MESSAGES_1 MESSAGES	/* of sender 1 */
#endif

#define CLOSED	0
#define DONE	1
#define CLAIMED	2
#define VOID	3

#define ID(me, m) ((me) * MESSAGES + (m) + 1)

/* ---- the shared memory ---- */

typedef state_t {
	byte kind, writer, gen, pos;
};
typedef slot_t {
	byte kind, writer, gen, pos;
	byte word;	/* the message */
};
state_t head;
slot_t slot[SIZE];
byte posted;
byte record_gen;	/* of the QP's record; 0: there is no QP */
byte target[2];		/* shm_sender, by the generation of the ring */

/* ---- what nobody can see ---- */

byte memory_of;		/* generation of the ring that lies in the memory; 0: none */
bit dead, undone, finished[2], owner_dead;
byte published[ID(2, 0)];	/* by message: in a ring of which generation, not received yet */

/* Somebody dies. */
active proctype world()
{
end:
	do
	:: d_step { !dead && !finished[0] -> dead = 1 }
#if LIVES > 1
	:: d_step { !owner_dead && record_gen == 1 -> owner_dead = 1 }
#endif
	od
}

/* ---- the header ---- */

inline look(h)
{
	d_step {
		h.kind = head.kind;
		h.writer = head.writer;
		h.gen = head.gen;
		h.pos = head.pos
	}
}

#define IS_HEAD(h) \
	(head.kind == h.kind && head.writer == h.writer && head.gen == h.gen && head.pos == h.pos)
#define CAN_BE_MARKED(h) \
	(h.kind == CLAIMED && slot[h.pos % SIZE].gen == h.gen && \
	 slot[h.pos % SIZE].pos == h.pos - SIZE)

inline put_mark(h)
{
	slot[h.pos % SIZE].kind = CLAIMED;
	slot[h.pos % SIZE].writer = h.writer;
	slot[h.pos % SIZE].pos = h.pos
}

inline mark(h)
{
#if MUTANT == 8
	if
	:: CAN_BE_MARKED(h) -> d_step { put_mark(h) }
	:: else
	fi
#else
	d_step {
		if
		:: CAN_BE_MARKED(h) -> put_mark(h)
		:: else
		fi
	}
#endif
}

inline set_head(kind_, writer_, gen_, pos_)
{
	head.kind = kind_;
	head.writer = writer_;
	head.gen = gen_;
	head.pos = pos_
}

inline forget_look(h)
{
	h.kind = 0;
	h.writer = 0;
	h.gen = 0;
	h.pos = 0
}

/* ---- senders ---- */

/* shm_ring_claim_single(); @last: 1 + the position that it had claimed last in this ring. */
inline claim(me, g, t, last, h)
{
	do
	:: !t ->
		look(h);
		if
		:: h.gen != g -> break
		:: h.gen == g && h.pos + 1 >= posted -> break
		:: else
		fi;
		if
		:: MUTANT != 1 && MUTANT != 5 && !(h.writer == me && h.pos + 1 == last) -> mark(h)
		:: else
		fi;
		d_step {
			if
			:: MUTANT == 7 || IS_HEAD(h) ->
				t = h.pos + 1;
				last = t + 1;
				set_head(CLAIMED, me, g, t);
				assert(memory_of == g && t < posted)
			:: else
			fi
		}
		if
		:: MUTANT == 5 && t -> mark(h)
		:: else
		fi
	:: t -> break
	od;
	atomic { forget_look(h) }
}

inline publish(me, g, t, m)
{
	d_step {
		/* nobody but the daemon takes a claim from the living */
		assert(memory_of == g && slot[t % SIZE].gen == g);
		assert(slot[t % SIZE].pos == t - SIZE ||
		       MUTANT != 6 && slot[t % SIZE].pos == t &&
			       slot[t % SIZE].kind == CLAIMED && slot[t % SIZE].writer == me);
		slot[t % SIZE].kind = DONE;
		slot[t % SIZE].writer = 0;
		slot[t % SIZE].pos = t;
		published[ID(me, m)] = g
	}
}

proctype sender(byte me)
{
	byte m, g, t, last, last_gen;
	state_t h;
	{
		do
		:: m < (me -> MESSAGES_1 : MESSAGES) ->
			atomic {
				g = record_gen;
				target[me] = g;
				last = (last_gen == g -> last : 0);
				last_gen = g
			}
			if
			:: g ->
				claim(me, g, t, last, h);
				if
				:: t ->
					d_step {
						assert(memory_of == g);
						slot[t % SIZE].word = ID(me, m)
					}
					publish(me, g, t, m)
				:: else
				fi
			:: else
			fi;
			d_step { target[me] = 0; t = 0; g = 0; m++ }
		:: else -> break
		od;
		finished[me] = 1
	} unless {
		me == 0 && dead
	}
}

/* ---- the owner ---- */

byte c, p;		/* consumed and posted, as the owner has them */
byte void_below;	/* positions that were withdrawn */
byte left;		/* receives that the program may yet post */
byte wanted;		/* receives that were posted and not used */
byte resets;

#define KIND(q) \
	(slot[(q) % SIZE].pos != q || slot[(q) % SIZE].kind == CLAIMED -> CLOSED : \
	 slot[(q) % SIZE].kind)
#define ALL_QUIET ((finished[0] || undone) && finished[1])

inline post(gen_)
{
	d_step {
		if
		:: p < 2 * SIZE ->
			slot[p % SIZE].pos = p - SIZE;
			slot[p % SIZE].gen = gen_;
			slot[p % SIZE].kind = DONE
		:: else
		fi;
		p++;
		posted = p
	}
}

/* The message at c is done with. */
inline forget()
{
	published[slot[c % SIZE].word] = 0;
	slot[c % SIZE].word = 0
}

inline take(gen_)
{
	if
	:: KIND(c) == DONE ->
		d_step {
			if
			:: c >= void_below ->
				assert(published[slot[c % SIZE].word] == gen_);
				assert(wanted);
				wanted--
			:: else
			fi;
			forget();
			c++
		}
	:: KIND(c) == VOID ->
		c++;
		if
		:: c - 1 >= void_below -> post(gen_)
		:: else
		fi
	fi
}

/* hca_rq_reset(): shm_ring_withdraw(), and what has come is passed over. */
inline reset(gen_, q, h)
{
	resets++;
	do
	:: MUTANT == 9 || c == p -> break
	:: MUTANT != 9 && c != p ->
		look(h);
#if MUTANT != 2
		mark(h);
#endif
		if
		:: atomic { IS_HEAD(h) -> set_head(VOID, 0, gen_, p - 1) } break
		:: atomic { !IS_HEAD(h) -> skip }
		fi
	od;
	atomic { forget_look(h); q = c }
	do
	:: q != p ->
		d_step {
			if
			:: slot[q % SIZE].pos != q ->
				slot[q % SIZE].kind = VOID;
				slot[q % SIZE].writer = 0;
				slot[q % SIZE].pos = q
			:: else
			fi;
			q++
		}
	:: else -> break
	od;
	atomic { void_below = p; wanted = 0; q = 0 }
	do
	:: c != p && KIND(c) != CLOSED ->
		d_step {
			if
			:: KIND(c) == DONE -> forget()
			:: else
			fi;
			c++
		}
	:: else -> break
	od
}

/* What was published has been received, and what was posted can be claimed. */
inline check_end(gen_)
{
	atomic {
		assert(p - c == wanted);
		assert(head.gen == gen_ && head.pos == c - 1);
		assert(published[1] != gen_);
		assert(published[2] != gen_);
#if MESSAGES > 1
		assert(published[3] != gen_);
		assert(published[4] != gen_);
#endif
	}
}

inline live(gen_)
{
	atomic {
		record_gen == gen_ ->
		c = SIZE; p = SIZE; left = RECEIVES; wanted = 0; resets = 0; void_below = 0
	}
	do
	:: left && p - c < SIZE ->
		d_step { left--; wanted++ }
		post(gen_)
	:: c != p && KIND(c) != CLOSED -> take(gen_)
#if RESETS
	:: resets < RESETS -> reset(gen_, q, h)
#endif
	:: atomic { ALL_QUIET && (c == p || slot[c % SIZE].pos != c) -> skip } break
	od;
	check_end(gen_)
}

active proctype owner()
{
	byte q;
	state_t h;

#if LIVES > 1
	{
		live(1)
	} unless {
		owner_dead
	}
	if
	:: owner_dead ->
		q = 0;
		forget_look(h);
		goto second
	:: else -> goto done
	fi;
second:
	live(2);
done:
	skip
#else
	live(1)
#endif
}

/* ---- the daemon ---- */

/* By somebody who lives. */
#define IS_CLAIMED(s) \
	(slot[s].kind == CLAIMED && (slot[s].writer == 1 || !undone))

inline start_ring(g)
{
	d_step {
		posted = SIZE;
		set_head(VOID, 0, g, SIZE - 1);
		memory_of = g;
		record_gen = g
	}
}

/* daemon_qp_undo_sending() of sender 0. */
inline undo(i, h)
{
	if
	:: target[0] && target[0] == record_gen ->
#if MUTANT != 3
		look(h);
		mark(h);
#endif
		do
		:: i < SIZE ->
			d_step {
				if
				:: slot[i].kind == CLAIMED && slot[i].writer == 0 ->
					slot[i].kind = VOID
				:: else
				fi;
				i++
			}
		:: else -> break
		od
	:: else
	fi;
	atomic { target[0] = 0; i = 0; undone = 1; forget_look(h) }
}

/* shm_ring_close_claim(), shm_ring_close(), and then the memory serves another ring. */
inline retire(i, waiting, h)
{
	d_step {
		look(h);
		set_head(CLOSED, 0, 0, 0)
	}
#if MUTANT != 4
	mark(h);
#endif
	do
	:: i < SIZE ->
		d_step {
			if
			:: IS_CLAIMED(i) -> waiting++
			:: else ->
				slot[i].kind = CLOSED;
				slot[i].writer = 0;
				slot[i].gen = 0;
				slot[i].pos = 0
			fi;
			i++
		}
	:: else -> break
	od;
	atomic {
		i = 0;
		forget_look(h);
		if
		:: !waiting ->
			slot[0].word = 0;
			slot[SIZE - 1].word = 0;
			memory_of = 0
		:: else
		fi
	}
	if
	:: !waiting -> start_ring(2); closing = 0
	:: else -> atomic { waiting = 0; closed = 1 }
	fi
}

active proctype daemon()
{
	byte i, waiting;
	bit closing, closed;	/* the second: of all slots only claimed ones are left */
	state_t h;

	start_ring(1);
end:
	do
	:: dead && !undone -> undo(i, h)
	:: owner_dead && record_gen == 1 -> record_gen = 0; closing = 1
	:: closing && (!closed || !IS_CLAIMED(0) && !IS_CLAIMED(SIZE - 1)) ->
		retire(i, waiting, h)
	od
}

init {
	atomic {
		run sender(0);
		run sender(1)
	}
}
