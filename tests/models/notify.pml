/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion events of one channel (hca_cq_wake(), the channel's get_event, and the daemon's
 * daemon_cq_wake()): two CQs, two senders, a program that sleeps on the channel. Sender 0 may die
 * at every step.
 *
 * What is proven: the event that a CQ's arming was used up for comes, and is of this CQ.
 *
 * An event has three parts: the CQ's count `notified`, a bit by which the CQ is found, and a unit
 * of the channel's eventfd. A bit may be too many: who finds it clears it, and looks again. Units
 * may be too many: who reads one and finds no CQ reads on, and while no CQ has an event they are
 * taken out. A count too many gives a unit to the wrong CQ, and the right one's event then stays
 * behind. So the daemon, who does not know how far the dead sender came, counts one event and
 * writes two units.
 *
 * Mutants:
 *  1 the daemon writes one unit
 *  2 another thread may destroy the queue pair that sender 0 sends to, while the program sleeps: a
 *    known gap, as the daemon finds the CQ by the queue pair (docs/memory-order.md)
 *  3 the daemon wakes nobody	4 the sender writes the unit before the count
 *  5 the sender sets the bit before the count, and then the program does not see the event
 *  6 who clears the bit does not look again
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/queue/cq_event.c hca_cq_wake e9cb4da4d577
 *  src/client/hca/queue/cq_event.c hca_cq_fire 17b5cb2db386
 *  src/client/hca/queue/channel.c take_event 1733f82ed676
 *  src/client/hca/queue/due.c hca_due_take 6041b14b123d
 *  src/client/hca/queue/due.c note 13191af08fa0
 *  src/client/hca/queue/due.c clear_bit dde0ee8c7d29
 *  src/shared/shm/region.h shm_cq_add_event 1aa6dcb59c31
 *  src/client/hca/queue/channel.c hca_channel_settle b88f1f6bf700
 *  src/client/hca/queue/channel.c get_event c45cab8838a2
 *  src/server/daemon/clients/cq.c daemon_cq_wake ad7f8578309f
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#define CQS 2

byte waiting[CQS];	/* arrivals that nobody has polled */
bit armed[CQS];
byte notified[CQS], units;
bit told[CQS];		/* of struct shm_cq_events */
byte target;		/* of sender 0: 1 + CQ */
bit dead, undone, finished[2];
bit destroyed;		/* the queue pair that sender 0 sends to */

active proctype world()
{
end:
	do
	:: d_step { !dead && !finished[0] -> dead = 1 }
#if MUTANT == 2
	:: d_step { !destroyed -> destroyed = 1 }
#endif
	od
}

/* hca_cq_wake() */
inline wake(cq, was)
{
	atomic {
		was = armed[cq];
		armed[cq] = 0
	}
	if
	:: was ->
#if MUTANT == 4
		units++;
		notified[cq]++;
		told[cq] = 1
#elif MUTANT == 5
		told[cq] = 1;
		notified[cq]++;
		units++
#else
		notified[cq]++;
		told[cq] = 1;
		units++
#endif
	:: else
	fi
}

active proctype sender_0()
{
	bit was;

	{
		target = 1;
		waiting[0]++;
		wake(0, was);
		target = 0;
		finished[0] = 1
	} unless {
		dead
	}
}

active proctype sender_1()
{
	byte m;
	bit was;

	do
	:: m < 3 ->
		if
		:: waiting[0]++; wake(0, was)
		:: waiting[1]++; wake(1, was)
		fi;
		m++;
		was = 0
	:: else -> break
	od;
	finished[1] = 1
}

active proctype daemon()
{
end:
	dead ->
	if
	:: target && !destroyed && MUTANT != 3 ->
		armed[0] = 0;
		notified[0]++;
		told[0] = 1;
#if MUTANT == 1
		units++
#else
		units = units + 2
#endif
	:: else
	fi;
	undone = 1
}

/* clear_bit() */
inline clear(cq)
{
	told[cq] = 0;
#if MUTANT != 6
	if
	:: notified[cq] -> told[cq] = 1
	:: else
	fi
#endif
}

/* note(): *@there: whether it has an event */
inline look(cq, there)
{
	there = 0;
	if
	:: told[cq] ->
		if
		:: notified[cq] -> there = 1
		:: else -> clear(cq)
		fi
	:: else
	fi
}

/* hca_due_take() */
inline take(which)
{
	d_step { notified[which]--; none_left = !notified[which] }
	if
	:: none_left -> clear(which)
	:: else
	fi
}

#define ALL_POLLED ((finished[0] || undone) && finished[1] && !waiting[0] && !waiting[1])

/* The program: an event of a CQ is a reason to arm and poll this CQ. */
active proctype program()
{
	byte first, cq;
	bit there, none_left;

	armed[0] = 1;
	waiting[0] = 0;
	armed[1] = 1;
	waiting[1] = 0;
	do
	:: ALL_POLLED -> break
	:: d_step { units -> units-- }
		/* take_event(): the others first next time */
		cq = CQS;
		look(first, there);
		if
		:: there -> cq = first
		:: else ->
			look(1 - first, there);
			if
			:: there -> cq = 1 - first
			:: else
			fi
		fi;
		if
		:: cq < CQS -> take(cq); first = 1 - cq
		:: else
		fi;
		/* hca_channel_settle(): with no event left, no unit is */
		do
		:: units ->
			look(0, there);
			if
			:: !there -> look(1, there)
			:: else
			fi;
			if
			:: there -> break
			:: else -> d_step { units -> units-- }
			fi
		:: else -> break
		od;
		if
		:: cq < CQS ->
			armed[cq] = 1;
			waiting[cq] = 0
		:: else		/* a unit too many */
		fi
	od
}
