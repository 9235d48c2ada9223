/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who receives from an Ethernet port's sockets (hca/link/link_roce_receive.c and daemon/network/roce_port.c):
 * two processes that poll and then sleep, one of whom may die or stall at every step, and the
 * daemon, which receives when nobody polls.
 *
 * What is proven: one at a time receives, but for somebody who has stalled and was overtaken; a
 * datagram that comes at any time is received by somebody.
 *
 * That the daemon is called back at once, and not by its timer, is not proven, and is not so: who
 * makes the last look before he sleeps holds the turn, and the daemon then leaves him the sockets
 * (at most 8 ms).
 *
 * Mutants:
 *  1 a turn begins without a compare-and-swap	2 it ends whosever it is
 *  3 nobody overtakes, and the turn of the dead stays
 *  4 the daemon that is away has no timer
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/link/link_roce_receive.c claim_turn 39cef7921893
 *  src/client/hca/link/link_roce_receive.c end_turn 7ddb68fb1d88
 *  src/client/hca/link/link_roce_receive.c hca_roce_receive e6ab01c89ef1
 *  src/client/hca/link/link_roce_receive.c hca_roce_rest 962dcf20fc0c
 *  src/client/hca/link/link_roce_receive.c hca_roce_release f76af7f35882
 *  src/server/daemon/network/roce_port.c on_wake 13d953c08744
 *  src/server/daemon/network/roce_port.c on_receive 713759df790c
 *  src/server/daemon/network/roce_port.c on_away d45dda1ba33a
 *  src/server/daemon/network/roce_port.c come_back 6f00df4a8f9f
 *  src/server/daemon/network/roce_port.c go_away 99449d35d976
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#define DATAGRAMS 2

byte come, received;
/* struct shm_roce_port */
byte holder;		/* a turn: process in the low bits, and when it began */
bit polled, away;
bit wake;		/* the daemon's eventfd */

bit dead, stalled, resting[2];
byte inside;		/* how many receive who were not overtaken */
bit is_overtaken[3];

active proctype world()
{
end:
	do
	:: d_step { come < DATAGRAMS -> come++ }
	:: d_step { polled -> polled = 0 }	/* HCA_ROCE_POLL_NS have passed */
	:: d_step { !dead && !resting[0] -> dead = 1 }
	:: d_step { holder % 4 == 1 && !stalled -> stalled = 1 }	/* STALL_US have passed */
	od
}

/* A turn that does not count. */
#define IS_STALLED(h) (h % 4 == 1 && stalled && MUTANT != 3)
#define IS_HELD(h)    (h && !IS_STALLED(h))
#define IS_POLLED     (IS_HELD(holder) || polled)

inline claim_turn(me, held, mine)
{
	held = holder;
	if
	:: !IS_HELD(held) ->
		atomic {
			if
			:: MUTANT == 1 || holder == held ->
				if
				:: held && holder == held ->
					is_overtaken[held % 4 - 1] = 1;
					inside--
				:: else
				fi;
				rounds++;
				mine = 4 * rounds + me + 1;
				holder = mine;
				is_overtaken[me] = 0;
				inside++;
				assert(inside == 1)
			:: else
			fi
		}
	:: else
	fi;
	held = 0
}

inline end_turn(me, mine)
{
	atomic {
		if
		:: !is_overtaken[me] -> inside--
		:: else -> is_overtaken[me] = 0
		fi;
		if
		:: MUTANT == 2 || holder == mine -> holder = 0
		:: else
		fi;
		mine = 0
	}
}

byte rounds;

inline receive_all(me)
{
	do
	:: d_step { received < come -> received++ }
	:: else -> break
	od
}

inline look(me, held, mine)
{
	claim_turn(me, held, mine);
	if
	:: mine -> receive_all(me); end_turn(me, mine)
	:: else
	fi
}

proctype process(byte me)
{
	byte held, mine;

	{
		/* hca_roce_receive(again) */
		polled = 1;
		look(me, held, mine);
		/* hca_cq_arm(): hca_roce_rest() */
		polled = 0;
		if
		:: atomic { away -> away = 0; wake = 1 }
		:: else
		fi;
		/* the last look */
		look(me, held, mine);
		resting[me] = 1
	} unless {
		me == 0 && dead
	}
}

/* hca_roce_release() for process 0. */
inline undo()
{
	atomic {
		if
		:: MUTANT != 3 && holder % 4 == 1 && !is_overtaken[0] -> holder = 0; inside--
		:: else
		fi;
		undone = 1
	}
}

#define ALL_DONE ((resting[0] || undone) && resting[1] && received == DATAGRAMS && come == DATAGRAMS)

active proctype daemon()
{
	byte held, mine;
	bit listening = 1, timer, undone;

	do
	:: ALL_DONE -> break
	:: dead && !undone -> undo()
	/* on_receive() */
	:: listening && received < come ->
		if
		:: !IS_POLLED -> look(2, held, mine)
		:: else
		fi;
		if
		:: IS_POLLED ->
			listening = 0;
			away = 1;
			if
			:: IS_POLLED -> timer = (MUTANT != 4)
			:: else -> atomic { away = 0; listening = 1 }
			fi
		:: else
		fi
	/* on_away() */
	:: timer && !IS_POLLED -> atomic { timer = 0; away = 0; listening = 1 }
	/* on_wake() */
	:: wake -> atomic { wake = 0; timer = 0; away = 0; listening = 1 }
	od
}

init {
	atomic {
		run process(0);
		run process(1)
	}
}
