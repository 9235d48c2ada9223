/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause *
 * Functions that it models (tools/check-models.py):
 *
 *  src/client/hca/queue/cq_event.c hca_cq_leave_channel 40f1dab76f4e
 *  src/client/hca/queue/cq_event.c hca_cq_take_events_along 933c521b3616
 *  src/client/hca/queue/channel.c hca_channel_settle b88f1f6bf700
 *  src/client/hca/queue/channel.c hca_channel_get_event afe5e3e421f8
 */
/*
 * A CQ of a channel is destroyed while its event, and those of another CQ, come and are got
 * (hca_cq_fire(), hca_cq_leave_channel(), hca_cq_take_events_along(), hca_channel_settle() and the
 * channel's get_event): two CQs, a sender to each, a thread that destroys CQ 0, and a program that
 * sleeps on the channel. Nobody dies: notify.pml is about that.
 *
 * What is proven: the events of CQ 1 come; and once all is done no unit is left in the eventfd,
 * which would make it readable for no event.
 *
 * Mutants:
 *  1 the CQ's senders are not waited for		2 the CQ is not disarmed
 *  3 units are taken while a CQ has an event	4 the other CQ's senders are not waited for
 *  5 a unit and what it stands for are taken without the channel's lock in between
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/queue/cq_event.c hca_cq_fire 17b5cb2db386
 *  src/client/hca/queue/cq_event.c hca_cq_leave_channel 40f1dab76f4e
 *  src/shared/shm/region.h shm_cq_waker_ends cad6ea9afefc
 *  src/client/hca/queue/cq_event.c hca_cq_await_wakers c2592e86aa55
 *  src/client/hca/queue/cq_event.c hca_cq_take_events_along 933c521b3616
 *  src/client/hca/queue/channel.c take_event 1733f82ed676
 *  src/client/hca/queue/channel.c hca_channel_settle b88f1f6bf700
 *  src/client/hca/queue/channel.c get_event c45cab8838a2
 */
#ifndef MUTANT
#define MUTANT 0
#endif

byte waiting;		/* arrivals of CQ 1 that nobody has polled */
bit armed[2] = 1;
byte notified[2], waking[2], units;
bit linked = 1;		/* CQ 0 is the channel's */
bit lock;		/* the channel's */
bit surplus;		/* events are gone whose units may be there */
bit destroyed, finished[2];

#define HAS_EVENT ((linked && notified[0]) || notified[1])

inline fire(cq, was)
{
	waking[cq]++;
	atomic {
		was = armed[cq];
		armed[cq] = 0
	}
	if
	:: was ->
		notified[cq]++;
		units++
	:: else
	fi;
	waking[cq]--;
	was = 0
}

/* hca_channel_settle() */
inline settle()
{
	if
	:: surplus && !HAS_EVENT && MUTANT != 4 -> !waking[1]
	:: else
	fi;
	do
	:: units ->
		if
		:: MUTANT == 3 || !HAS_EVENT -> units--
		:: else -> break
		fi
	:: else -> break
	od;
	surplus = surplus && HAS_EVENT
}

active proctype sender_0()
{
	bit was;

	fire(0, was);
	finished[0] = 1
}

active proctype sender_1()
{
	byte m;
	bit was;

	do
	:: m < 2 ->
		waiting++;
		fire(1, was);
		m++
	:: else -> break
	od;
	finished[1] = 1
}

active proctype destroyer()
{
	atomic { !lock -> lock = 1 }
	linked = 0;
	lock = 0;
	if
	:: MUTANT != 2 -> armed[0] = 0
	:: else
	fi;
	if
	:: MUTANT != 1 -> !waking[0]
	:: else
	fi;
	atomic { !lock -> lock = 1 }
	surplus = surplus || notified[0];
	settle();
	lock = 0;
	destroyed = 1
}

#define ALL_DONE (finished[0] && finished[1] && destroyed)

/* Events of CQ 0 mean nothing to it. */
active proctype program()
{
	bit first, got;

	do
	:: ALL_DONE && !units -> assert(!waiting); break
	:: d_step {
			units && !lock ->
			/* of what is done with nothing is left over */
			assert(!ALL_DONE || HAS_EVENT);
			units--;
#if MUTANT != 5
			lock = 1
#endif
		}
		if
		:: MUTANT == 5 -> atomic { !lock -> lock = 1 }
		:: else
		fi;
		got = 0;
		/* the list begins with either */
		select(first : 0 .. 1);
		if
		:: linked && notified[0] && (!first || !notified[1]) -> notified[0]--
		:: notified[1] && (first || !linked || !notified[0]) -> notified[1]--; got = 1
		:: else
		fi;
		settle();
		lock = 0;
		if
		:: got -> armed[1] = 1; waiting = 0
		:: else
		fi
	od
}
