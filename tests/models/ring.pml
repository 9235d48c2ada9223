/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receive ring (src/shared/shm/ring.h): two senders, the ring's owner, the daemon. Sender 0 may die
 * at every step; so may the owner (LIVES 2), whose ring's memory then serves a ring of another
 * generation.
 *
 * What is proven: a credit is used by one arrival at most; whoever finds no credit could not have
 * had one; what was published is received once, whole and in a ring of its own generation; nobody
 * writes to the memory of a ring that has gone; a void position is posted anew once; nobody waits
 * for ever.
 *
 * Weak memory. A sender's plain and relaxed stores (the message, the hint `tail`) wait in a store
 * buffer, from which they leave in any order and at any time. A release waits until the buffer is
 * empty. The buffer of a dead process empties as well: the kernel sees to that before anybody
 * hears of the death. Early loads, where a mutant lacks an acquire, are written out.
 *
 * Positions begin at SIZE, so that "one lap earlier" is never negative. They do not wrap here:
 * see wrap.pml.
 *
 * Mutants:
 *  1 publish is relaxed		 2 peek is relaxed: the owner reads the message first
 *  3 post is relaxed: the owner reads the message afterwards
 *  4 claim is relaxed: the message is written first
 *  5 claim is no compare-and-swap	 6 the hint tail is moved before the claim
 *  7 the state of the first lap is stored after posted
 *  8 the daemon voids nothing		 9 void positions are not posted anew
 * 10 withdrawn positions are posted anew
 * 11 withdraw is no compare-and-swap	12 peek takes a claimed slot for a published one
 * 13 close does not wait for claims	14 the state has no generation
 * 15 close forgets claims of the dead	16 the daemon voids before the dead one's stores are there
 *
 * Functions that it models (tools/check-models.py):
 *  src/shared/shm/ring.h shm_ring_claim 468b130581e5
 *  src/shared/shm/ring.h shm_ring_publish e6bcee511b0b
 *  src/shared/shm/ring.h shm_ring_peek 809368e0ada8
 *  src/shared/shm/ring.h shm_ring_post 8e67648f2ecb
 *  src/shared/shm/ring.h shm_ring_consume 0e91a4482c9f
 *  src/shared/shm/ring.h shm_ring_take_line d3cdff1dcd5d
 *  src/shared/shm/ring.h shm_ring_take_data a76594212d85
 *  src/shared/shm/ring.c shm_ring_claim_slowly af8646b6a610
 *  src/shared/shm/ring.c shm_ring_post_first_lap 900a8c00c875
 *  src/shared/shm/ring.c shm_ring_void 417b5a0564e4
 *  src/shared/shm/ring.c shm_ring_withdraw b477287a3539
 *  src/shared/shm/ring.c shm_ring_close 76458eaa3a37
 *  src/client/hca/queue/rq.h hca_rq_poll_locked 2f7e459ca00b
 *  src/client/hca/queue/rq.c hca_rq_reset b37734c5d595
 *  src/server/daemon/clients/qp_undo.c daemon_qp_undo_sending 784b4fe771bd
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef LIVES
#define LIVES 1	/* of owners */
#endif
#ifndef RESETS
#define RESETS 0	/* how often an owner moves to RESET and on */
#endif
#ifndef MESSAGES
#define MESSAGES 2	/* of each sender */
#endif
#ifndef SIZE
#define SIZE 2	/* slots of the ring: 1 or 2 */
#endif
#ifndef RECEIVES
#define RECEIVES 3	/* of each owner */
#endif

#define SENDERS 2

#define CLOSED	0
#define DONE	1
#define CLAIMED	2
#define VOID	3

#ifndef MESSAGES_1
#define MESSAGES_1 MESSAGES	/* of sender 1 */
#endif
#define SENDS(me) (me -> MESSAGES_1 : MESSAGES)
#define ID(me, m) ((me) * MESSAGES + (m) + 1)

/* ---- the shared memory ---- */

typedef slot_t {
	byte kind, writer, gen, pos;
	byte word[2];	/* the message: both are its ID */
};
slot_t slot[SIZE];
byte posted, consumed, tail, posted_seen;
byte record_gen;		/* of the QP's record; 0: there is no QP */
byte target[SENDERS];		/* shm_sender, by the generation of the ring */

/* ---- what nobody can see ---- */

byte memory_of;			/* generation of the ring that lies in the memory; 0: none */
bit dead[SENDERS], undone[SENDERS], finished[SENDERS];
bit owner_dead;
byte published[ID(SENDERS, 0)];	/* by message: in a ring of which generation, not received yet */

/* Store buffers of the senders. */
typedef buffer_t {
	bit word[2], tail;	/* which stores are on their way */
	byte value, at, tail_value, gen;
};
buffer_t buffer[SENDERS];

#define MESSAGE_STORED(b) (!buffer[b].word[0] && !buffer[b].word[1])
#define ALL_STORED(b)	  (MESSAGE_STORED(b) && !buffer[b].tail)

inline store_word(b, k)
{
	d_step {
		buffer[b].word[k] ->
		assert(memory_of == buffer[b].gen);
		slot[buffer[b].at].word[k] = buffer[b].value;
		buffer[b].word[k] = 0;
	}
}

inline store_tail(b)
{
	d_step {
		buffer[b].tail ->
		assert(memory_of == buffer[b].gen);
		tail = buffer[b].tail_value;
		buffer[b].tail = 0;
		buffer[b].tail_value = 0;
	}
}

/* Stores arrive; somebody dies. */
active proctype world()
{
end:
	do
	:: store_word(0, 0)
	:: store_word(0, 1)
	:: store_tail(0)
	:: store_word(1, 0)
	:: store_word(1, 1)
	:: store_tail(1)
	:: d_step { !dead[0] && !finished[0] -> dead[0] = 1 }
#if LIVES > 1
	:: d_step { !owner_dead && record_gen == 1 -> owner_dead = 1 }
#endif
	od
}

/* ---- senders ---- */

inline fill(me, m, t, g)
{
	d_step {
		MESSAGE_STORED(me) ->
		buffer[me].value = ID(me, m);
		buffer[me].at = (t) % SIZE;
		buffer[me].gen = g;
		buffer[me].word[0] = 1;
		buffer[me].word[1] = 1;
	}
}

inline move_tail(me, to, g)
{
	d_step {
		!buffer[me].tail ->
		buffer[me].tail_value = to;
		buffer[me].gen = g;
		buffer[me].tail = 1;
	}
}

/* A sender sees its own store. */
#define TAIL(me) (buffer[me].tail -> buffer[me].tail_value : tail)

#if MUTANT == 14
#define IS_GEN(s, g) (slot[s].gen != 0)
#else
#define IS_GEN(s, g) (slot[s].gen == g)
#endif

/* A credit that nobody has used. */
#define IS_FREE(s, g) (slot[s].gen == g && slot[s].pos + SIZE < posted)

/* Whether @t is beyond the credits that the sender knows of; then it looks how many there are. */
inline look_at_posted(g, t, seen, slow)
{
	seen = posted;
	slow = 1;
	if
	:: seen <= t ->
		assert(record_gen != g || !(IS_FREE(0, g) || IS_FREE(SIZE - 1, g)));
		t = 0
	:: else
	fi
}

/* One look at the slot, and the compare-and-swap. @t gets 0: the ring has gone; @got: it is ours. */
inline try(me, g, t, slow, got)
{
	if
	:: !IS_GEN(t % SIZE, g) ->
		assert(record_gen != g);
		t = 0
	:: MUTANT == 5 && looked == 1 ->
		got = 1
	:: MUTANT != 5 && IS_GEN(t % SIZE, g) && slot[t % SIZE].pos == t - SIZE ->
		got = 1
	:: else ->
		slow = 1;
		if
		:: slot[t % SIZE].pos != t && consumed > t -> t = consumed
		:: else -> t++
		fi
	fi;
	if
	:: got ->
		assert(memory_of == g && t < posted);
		assert(slot[t % SIZE].pos == t - SIZE);
		slot[t % SIZE].kind = CLAIMED;
		slot[t % SIZE].writer = me;
		slot[t % SIZE].pos = t
	:: else
	fi
}

/* @g: of the record that the sender has read; 0 in @t: no credit. */
inline claim(me, g, t, seen, slow, got)
{
	t = TAIL(me);
	do
	:: t && !got && seen <= t -> d_step { look_at_posted(g, t, seen, slow) }
	:: t && !got && seen > t ->
#if MUTANT == 6
		move_tail(me, t + 1, g);
#endif
#if MUTANT == 4
		fill(me, m, t, g);
#endif
#if MUTANT == 5
		looked = IS_GEN(t % SIZE, g) && slot[t % SIZE].pos == t - SIZE;
#endif
		d_step { try(me, g, t, slow, got) }
	:: !t || got -> break
	od;
	if
	:: t ->
#if MUTANT != 6
		move_tail(me, t + 1, g);
#endif
		if
		:: slow ->
			d_step {
#if MUTANT != 1
				ALL_STORED(me) ->
#endif
				posted_seen = seen
			}
		:: else
		fi
	:: else
	fi
}

inline publish(me, g, t, m)
{
	d_step {
#if MUTANT != 1
		ALL_STORED(me) ->
#endif
		/* nobody but the daemon takes a claim from the living */
		assert(slot[t % SIZE].kind == CLAIMED && slot[t % SIZE].writer == me);
		assert(slot[t % SIZE].gen == g && slot[t % SIZE].pos == t && memory_of == g);
		slot[t % SIZE].kind = DONE;
		slot[t % SIZE].writer = 0;
		published[ID(me, m)] = g;
	}
}

proctype sender(byte me)
{
	byte m, g, t, seen;
	bit slow, got, looked;
	{
		do
		:: m < SENDS(me) ->
			atomic {
				g = record_gen;
				target[me] = g
			}
			if
			:: g ->
				seen = posted_seen;
				claim(me, g, t, seen, slow, got);
				if
				:: t ->
#if MUTANT != 4
					fill(me, m, t, g);
#endif
					publish(me, g, t, m)
				:: else
				fi
			:: else
			fi;
			d_step {
				target[me] = 0;
				t = 0;
				g = 0;
				seen = 0;
				slow = 0;
				got = 0;
				looked = 0;
				m++
			}
		:: else -> break
		od;
		finished[me] = 1
	} unless {
		dead[me]
	}
}

/* ---- the owner ---- */

byte c, p;		/* consumed and posted, as the owner has them */
/* positions of this run are few; hca/queue/rq.c, whose positions go round, counts what is left below them */
byte void_below, discard_below;
byte left;		/* receives that the program may yet post */
byte wanted;		/* receives in the FIFO */
byte resets;

#define KIND(q) \
	(slot[(q) % SIZE].pos != q || slot[(q) % SIZE].kind == CLAIMED -> CLOSED : \
	 slot[(q) % SIZE].kind)
#define ALL_QUIET ((finished[0] || undone[0]) && (finished[1] || undone[1]))

inline first_lap(q, gen_)
{
	if
	:: (q) < 2 * SIZE ->
		slot[(q) % SIZE].pos = (q) - SIZE;
		slot[(q) % SIZE].gen = gen_;
		slot[(q) % SIZE].kind = DONE
	:: else
	fi
}

inline post(gen_)
{
	d_step {
#if MUTANT != 7
		first_lap(p, gen_);
#endif
		posted = p + 1;
		p++
	}
#if MUTANT == 7
	first_lap(p - 1, gen_)
#endif
}

/* The message at c is done with; its bytes stay, but that would only make more states. */
inline forget(id)
{
	published[id] = 0;
	slot[c % SIZE].word[0] = 0;
	slot[c % SIZE].word[1] = 0
}

/* The message at c: two loads. */
inline read_message(w0, w1)
{
	w0 = slot[c % SIZE].word[0];
	w1 = slot[c % SIZE].word[1]
}

inline accept(w0, w1, gen_)
{
	d_step {
		if
		:: c >= discard_below ->
			assert(w0 == w1 && w0);
			assert(published[w0] == gen_);
			assert(wanted);
			wanted--
		:: else
		fi;
		forget(w0);
		w0 = 0;
		w1 = 0
	}
}

/* hca_rq_poll_locked() for one position. */
inline take(gen_, w0, w1)
{
#if MUTANT == 2
	read_message(w0, w1);
#endif
	if
#if MUTANT == 12
	:: slot[c % SIZE].pos == c && slot[c % SIZE].kind != VOID ->
#else
	:: KIND(c) == DONE ->
#endif
#if MUTANT == 3
		consumed = c + 1;
		if
		:: left ->
			d_step { left--; wanted++ }
			post(gen_)
		:: else
		fi;
#endif
#if MUTANT != 2
		read_message(w0, w1);
#endif
		accept(w0, w1, gen_);
		atomic { c++; consumed = c }
	:: KIND(c) == VOID ->
		atomic { c++; consumed = c }
#if MUTANT != 9
		if
		:: MUTANT == 10 || c - 1 >= void_below -> post(gen_)
		:: else
		fi
#endif
	:: MUTANT == 2 && KIND(c) == CLOSED -> d_step { w0 = 0; w1 = 0 }
	fi
}

/* hca_rq_reset() */
inline reset(gen_, q)
{
	resets++;
	q = c;
	do
	:: q != p ->
#if MUTANT == 11
		if
		:: slot[q % SIZE].pos != q -> skip
		:: else -> goto next
		fi;
		d_step {
			slot[q % SIZE].kind = VOID;
			slot[q % SIZE].writer = 0;
			slot[q % SIZE].pos = q
		}
next:
		skip;
#else
		d_step {
			if
			:: slot[q % SIZE].pos != q ->
				slot[q % SIZE].kind = VOID;
				slot[q % SIZE].writer = 0;
				slot[q % SIZE].pos = q
			:: else
			fi
		}
#endif
		q++
	:: else -> break
	od;
	atomic { void_below = p; discard_below = p; wanted = 0; q = 0 }
	do
	:: c != p && KIND(c) != CLOSED ->
		d_step {
			if
			:: KIND(c) == DONE -> forget(slot[c % SIZE].word[0])
			:: else
			fi;
			c++
		}
	:: else -> break
	od;
	consumed = c
}

/* Nothing is left over: what was published has been received, what was posted is there. */
inline check_end(gen_)
{
	atomic {
		assert(p - c == wanted);
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
		c = SIZE; p = SIZE; left = RECEIVES; wanted = 0; resets = 0;
		void_below = 0; discard_below = 0
	}
	do
	:: left && p - c < SIZE ->
		d_step { left--; wanted++ }
		post(gen_)
	:: c != p && (KIND(c) != CLOSED || MUTANT == 2 ||
		      MUTANT == 12 && slot[c % SIZE].pos == c) ->
		take(gen_, w0, w1)
#if RESETS
	:: resets < RESETS -> reset(gen_, q)
#endif
	:: d_step { ALL_QUIET && (c == p || slot[c % SIZE].pos != c) -> skip } break
	od;
	check_end(gen_)
}

active proctype owner()
{
	byte w0, w1, q;

#if LIVES > 1
	{
		live(1)
	} unless {
		owner_dead
	}
	if
	:: owner_dead ->
		w0 = 0; w1 = 0; q = 0;
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
	(slot[s].kind == CLAIMED && (MUTANT == 15 || !undone[slot[s].writer]))

inline start_ring(g)
{
	d_step {
		posted = SIZE; consumed = SIZE; tail = SIZE; posted_seen = SIZE;
		memory_of = g;
		record_gen = g
	}
}

inline clear(s)
{
	slot[s].kind = CLOSED;
	slot[s].writer = 0;
	slot[s].gen = 0;
	slot[s].pos = 0
}

/* daemon_qp_undo_sending() of sender 0. */
inline undo(i)
{
#if MUTANT != 16
	ALL_STORED(0);
#endif
	if
	:: target[0] && target[0] == record_gen ->
		do
		:: i < SIZE ->
			d_step {
#if MUTANT != 8
				if
				:: slot[i].kind == CLAIMED && slot[i].writer == 0 ->
					slot[i].kind = VOID
				:: else
				fi;
#endif
				i++
			}
		:: else -> break
		od
	:: else
	fi;
	atomic { target[0] = 0; i = 0; undone[0] = 1 }
}

/* shm_ring_close(), and then the memory serves another ring. */
inline retire(i, waiting)
{
	i = 0;
	waiting = 0;
	do
	:: i < SIZE ->
		d_step {
			if
			:: MUTANT != 13 && IS_CLAIMED(i) -> waiting++
			:: else -> clear(i)
			fi;
			i++
		}
	:: else -> break
	od;
	atomic {
		i = 0;
		if
		:: !waiting ->
			slot[0].word[0] = 0;
			slot[0].word[1] = 0;
			slot[SIZE - 1].word[0] = 0;
			slot[SIZE - 1].word[1] = 0;
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

	start_ring(1);
end:
	do
	:: dead[0] && !undone[0] -> undo(i)
	:: owner_dead && record_gen == 1 -> record_gen = 0; closing = 1
	:: closing && (!closed || !IS_CLAIMED(0) && !IS_CLAIMED(SIZE - 1)) -> retire(i, waiting)
	od
}

init {
	atomic {
		run sender(0);
		run sender(1)
	}
}
