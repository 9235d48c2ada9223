/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How identifiers of rdma_cm end (src/shared/shm/events.h, cm_event_post() and cm_id_free() in src/server/cm,
 * rdmacm_channel_destroy_id() in src/client/api/rdmacm/channel.c): the daemon, which has events to tell at
 * any moment, and the process, which makes, uses and destroys identifiers of one number, one after
 * the other. Requests that nobody waits for and the datagrams of the events are queues.
 *
 * What is proven: while no call is under way, no datagram there is of an identifier that the process
 * has destroyed, nor does one come later; an identifier that the process has gets all its events;
 * and nobody waits for ever.
 *
 * All decisions are read-modify-writes of one word, so memory is the same for everybody here. What
 * is sent and received is ordered by the kernel.
 *
 * Mutants:
 *  1 the daemon sends an event and counts it then
 *  2 the daemon clears the word when it makes an identifier, not when it destroys one
 *  3 the process clears the word when it makes an identifier
 *  4 the process looks at the word, and marks it then
 *  5 the daemon does not clear the word
 *  6 the daemon does not look whether the identifier is gone
 *
 * Functions that it models (tools/check-models.py):
 *  src/shared/shm/events.h shm_events_send 09ef99de2d03
 *  src/shared/shm/events.h shm_events_end 000f56239068
 *  src/shared/shm/events.h shm_events_clear bcbed4e64a02
 *  src/server/cm/channel.c is_wanted 11568f7261d5
 *  src/server/cm/channel.c cm_event_post 0763d024145c
 *  src/server/cm/id.c clear_word 54570b3f2e08
 *  src/server/cm/id.c cm_id_free 288f0cdeecc5
 *  src/client/api/rdmacm/channel.c rdmacm_channel_destroy_id 577cb0f6a06d
 *  src/client/api/rdmacm/channel.c destroy_silent 84b4264a7387
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#define LIVES  3 /* identifiers of the number */
#define EVENTS 2 /* of each, at most */

#define COUNT(word) ((word) >> 1)
#define GONE(word)  ((word) & 1)

mtype = { CREATE, DESTROY, DESTROY_AND_TELL };

chan requests = [4] of { mtype, byte };	/* and the life */
chan datagrams = [6] of { byte };	/* whose event it is */
chan reply = [0] of { byte };		/* how many were sent of it */

byte word;
bit finished;

/* ---- the daemon ---- */

byte life;	/* of the identifier that it has; 0: none */
byte told, sent;

inline send_event()
{
	told++;
#if MUTANT == 1
	gone = GONE(word);
	if
	:: !gone -> datagrams!life; sent++
	:: else
	fi;
	word = word + 2
#elif MUTANT == 6
	word = word + 2;
	datagrams!life;
	sent++
#else
	d_step { gone = GONE(word); word = word + 2 };
	if
	:: !gone -> datagrams!life; sent++
	:: else
	fi
#endif
}

active proctype manager()
{
	bit gone;
	byte which;
	mtype what;

end:
	do
	:: life && told < EVENTS -> send_event()
	:: requests?what, which ->
		if
		:: what == CREATE ->
			assert(!life);
			life = which; told = 0; sent = 0;
#if MUTANT == 2
			word = 0
#endif
		:: else ->
			assert(life == which);
			life = 0;
#if MUTANT != 2 && MUTANT != 5 && MUTANT != 3
			word = 0;
#endif
			if
			:: what == DESTROY_AND_TELL -> reply!sent
			:: else
			fi
		fi
	od
}

/* ---- the process ---- */

active proctype process()
{
	byte mine, got, whose, all;
	bit ended;

	do
	:: mine < LIVES ->
		mine++;
		got = 0;
#if MUTANT == 3
		word = 0;
#endif
		requests!CREATE, mine;
		/* it gets some of its events, or all */
		do
		:: atomic { nempty(datagrams) -> datagrams?whose };
			assert(whose == mine);
			got++
		:: true -> break
		od;
		/* shm_events_end() */
#if MUTANT == 4
		ended = (word == got * 2);
		if
		:: ended -> word = 1
		:: else
		fi;
#else
		atomic {
			ended = (word == got * 2);
			if
			:: ended -> word = 1
			:: else
			fi
		}
#endif
		if
		:: ended -> requests!DESTROY, mine
		:: else ->
			requests!DESTROY_AND_TELL, mine;
			reply?all;
			do
			:: got < all ->
				datagrams?whose;
				assert(whose == mine);
				got++
			:: else -> break
			od
		fi;
		assert(empty(datagrams))
	:: else -> break
	od;
	/* nothing comes behind the last one */
	(empty(requests) && !life);
	assert(empty(datagrams));
	/* once more: such an identifier gets its events */
	requests!CREATE, LIVES + 1;
	got = 0;
	do
	:: got < EVENTS -> datagrams?whose; assert(whose == LIVES + 1); got++
	:: else -> break
	od;
	finished = 1
}
