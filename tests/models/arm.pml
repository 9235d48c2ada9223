/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arming a completion queue (src/client/hca/queue/cq_event.c and the announcement of an arrival): two senders, one of
 * whom may die at every step, the program that polls and sleeps, and the daemon. Two queue pairs
 * complete on the CQ. DIRECT 1: the first is looked at without being told, the other by its bit in
 * the ready map. DIRECT 0: both by their bits. One bit can be watched at a time.
 *
 * What is proven: a program that polls until there is nothing, arms, polls once more and then
 * sleeps is woken if something comes; an arrival that the program is awake for is found by
 * polling; a claim of the dead does not block the arrivals behind it.
 *
 * A ring is a list of positions here: ring.pml proves the rest. All that matters here is that a
 * store is seen before the same process loads something else, which only a full barrier does. A
 * mutant without it does the load first.
 *
 * Mutants:
 *  1 the sender looks at the ready bit before its arrival can be seen
 *  2 the sender looks at arm before its arrival can be seen
 *  3 the sender looks at arm before the ready bit can be seen
 *  4 the program's last poll looks before arm can be seen
 *  5 unwatch looks at the ring before the cleared bit can be seen
 *  6 unwatch does not look at all	7 the daemon sets no ready bit
 *  8 the daemon wakes nobody		9 a poll that finds nothing does not look at the map
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/link/deliver.h hca_deliver_into 55785bb65996
 *  src/client/hca/queue/cq.h hca_cq_announce 088c83f2a6e8
 *  src/client/hca/queue/cq.h hca_cq_notify_arrival 838022ddef71
 *  src/client/hca/queue/cq_event.c hca_cq_wake_arrival dda54b2abe59
 *  src/client/hca/queue/cq_event.c hca_cq_wake e9cb4da4d577
 *  src/client/hca/queue/cq.c hca_cq_set_ready ef8e591efac4
 *  src/client/hca/queue/cq_event.c hca_cq_arm 151fe616b1cc
 *  src/client/hca/queue/cq_poll.c poll_once 5fb75fe248bd
 *  src/client/hca/queue/cq_poll.c poll_map 6311653ebb3e
 *  src/client/hca/queue/cq_poll.c map_is_due 461c6e4de3cf
 *  src/client/hca/queue/cq_poll.c due_sources 4e80bdd6796e
 *  src/client/hca/queue/cq_poll.c poll_in_turn 230f5c4ec0c4
 *  src/client/hca/queue/cq_poll.c poll_due 32112a93b377
 *  src/client/hca/queue/cq_poll.c poll_watched ad56803d37ae
 *  src/client/hca/queue/cq_poll.c watch f4787c0003e7
 *  src/client/hca/queue/cq_poll.c unwatch 18fbad706c5e
 *  src/server/daemon/clients/cq.c daemon_cq_wake ad7f8578309f
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef DIRECT
#define DIRECT 0
#endif
#ifndef MESSAGES
#define MESSAGES 1	/* of each sender */
#endif
#ifndef MESSAGES_1
#define MESSAGES_1 MESSAGES	/* of sender 1 */
#endif

#define QPS	2
#define NONE	QPS

/* A position: claimed by sender 0 or 1; or published or void. */
#define CLAIMED	1
#define DONE	3

/* ---- the shared memory ---- */

typedef ring_t {
	byte at[MESSAGES + MESSAGES_1];
};
ring_t ring[QPS];
byte tail[QPS];
bit ready[QPS];
bit armed;
byte events;		/* of the channel's eventfd */
byte target[2];		/* 1 + QP */

bit dead, undone, finished[2];
byte taken[QPS];	/* positions that the program has taken out */

active proctype killer()
{
end:
	!dead && !finished[0] ->
	dead = 1
}

/* ---- senders ---- */

/* deliver() from the claim on. */
inline deliver(me, q, pos, was_ready, was_armed)
{
	atomic {
		pos = tail[q];
		ring[q].at[pos] = CLAIMED + me;
		tail[q]++;
		target[me] = q + 1
	}
#if MUTANT == 1
	was_ready = ready[q];
#endif
#if MUTANT == 2
	was_armed = armed;
#endif
	ring[q].at[pos] = DONE;
	if
	:: q >= DIRECT ->
#if MUTANT != 1
		was_ready = ready[q];
#endif
#if MUTANT == 3
		was_armed = armed;
#endif
		if
		:: !was_ready -> ready[q] = 1
		:: else
		fi
	:: else
	fi;
#if MUTANT != 2 && MUTANT != 3
	was_armed = armed;
#elif MUTANT == 3
	if
	:: q < DIRECT -> was_armed = armed
	:: else
	fi;
#endif
	/* hca_cq_wake() */
	if
	:: was_armed ->
		atomic {
			was_armed = armed;
			armed = 0
		}
		if
		:: was_armed -> events++
		:: else
		fi
	:: else
	fi
}

proctype sender(byte me)
{
	byte m, q, pos;
	bit was_ready, was_armed;

	{
		do
		:: m < (me -> MESSAGES_1 : MESSAGES) ->
			if
			:: q = 0
			:: me == 1 || DIRECT -> q = 1
			fi;
			deliver(me, q, pos, was_ready, was_armed);
			d_step {
				target[me] = 0; q = 0; pos = 0; was_ready = 0; was_armed = 0;
				m++
			}
		:: else -> break
		od;
		finished[me] = 1
	} unless {
		me == 0 && dead
	}
}

/* ---- the program ---- */

#define PENDING(q) (taken[q] < tail[q] && ring[q].at[taken[q]] == DONE)
#define ALL_TAKEN  ((finished[0] || undone) && finished[1] && taken[0] == tail[0] && \
		    taken[1] == tail[1])

byte watched = NONE;
bit found;

inline poll_ring(q)
{
	/* at one go: what arrives between two looks might as well have come before the first */
	atomic {
		do
		:: PENDING(q) -> taken[q]++; found = 1
		:: else -> break
		od
	}
}

inline unwatch(pending)
{
#if MUTANT == 5
	pending = PENDING(watched);
#endif
	ready[watched] = 0;
#if MUTANT != 5 && MUTANT != 6
	pending = PENDING(watched);
#endif
	if
	:: pending -> atomic { ready[watched] = 1; pending = 0; watched = NONE }
	:: else -> watched = NONE
	fi
}

inline poll_map(q, pending)
{
	do
	:: q < DIRECT -> q = DIRECT
	:: q >= DIRECT && q < QPS && ready[q] && watched != q ->
		if
		:: watched != NONE -> unwatch(pending)
		:: else
		fi;
		watched = q;
		poll_ring(q);
		q++
	:: q >= DIRECT && q < QPS && (!ready[q] || watched == q) -> q++
	:: atomic { q == QPS -> q = 0; break }
	od
}

/* poll_once(); whether it found something: @found */
inline poll(q, pending)
{
	found = 0;
#if DIRECT
	poll_ring(0);
#endif
	if
	:: watched != NONE ->
		poll_ring(watched);
		if
		:: !found -> unwatch(pending)	/* it has been idle for long */
		:: skip
		fi
	:: else
	fi;
	if
#if MUTANT == 9
	:: found -> poll_map(q, pending)
	:: else
#else
	:: poll_map(q, pending)
	:: found
#endif
	fi
}

active proctype program()
{
	byte q;
	bit pending;

	do
	:: ALL_TAKEN -> break
	:: else ->
		poll(q, pending);
		if
		:: found -> skip
		:: else ->
#if MUTANT == 4
			poll(q, pending);
			armed = 1;
#else
			armed = 1;
			poll(q, pending);
#endif
			if
			:: !found ->
				/* asleep */
				if
				:: d_step { events -> events-- }
				:: ALL_TAKEN -> break
				fi
			:: else
			fi
		fi
	od
}

/* ---- the daemon ---- */

active proctype daemon()
{
	byte q, i;

end:
	dead ->
	if
	:: target[0] ->
		q = target[0] - 1;
		do
		:: i < tail[q] ->
			d_step {
				if
				:: ring[q].at[i] == CLAIMED ->
					ring[q].at[i] = DONE
				:: else
				fi;
				i++
			}
		:: else -> break
		od;
#if MUTANT != 7
		if
		:: q >= DIRECT -> ready[q] = 1
		:: else
		fi;
#endif
#if MUTANT != 8
		/* cq_wake() */
		armed = 0;
		events++
#endif
	:: else
	fi;
	undone = 1
}

init {
	atomic {
		run sender(0);
		run sender(1)
	}
}
