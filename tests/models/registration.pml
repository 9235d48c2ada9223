/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registration against copies under way (src/client/hca/memory/keys.c, connected_help.c, adopt.c, exchange.h): a
 * program registers two regions on one page, and deregisters them, while its peer carries out
 * requests there. The peer may be stopped, go on, or die at every step.
 *
 * By default the page is adopted if it can be, and given back. HELP 1: the peer's requests are ours,
 * which waited, and two threads of its process go on with them; one of the two may be stopped, and
 * lose the lock. RESET 1: another thread of the program resets the queue pair meanwhile. DEATH 1: the
 * program's process dies, and the memory of its keys serves others (src/server/daemon/clients/memory.c).
 *
 * What is proven: when a deregistration, or a reset, has returned, nobody reads or writes there but
 * who had begun and was then stopped for longer than the bound; what has been written is in the
 * memory, wherever the page has moved; a deregistration ends: it waits for one copy, not for the
 * next ones, and for the dead only until the daemon has seen that. Nobody becomes a user of a key in
 * memory that serves others, or takes the lock of atomic operations there, which goes the same way.
 *
 * Weak memory. The peer's stores wait in a store buffer and leave it in any order; a release waits
 * until the others have left it, a full barrier until it is empty.
 *
 * Mutants:
 *  1 no barrier between what the peer says that it does and its look at the key
 *  2 the end of a copy is relaxed
 *  3 nobody waits for the peer			4 who deregisters looks before the key is gone
 *  5 the daemon does not say that the dead do nothing
 *  6 a page is adopted though another region is on it
 *  7 it is given back though another region is on it
 *  8 a thread that has lost the lock says that nobody helps any more
 *  9 who deregisters looks at the present peer only, not at the last one
 * 10 a reset makes the peer the last one after it has told others
 * 11 a thread that has lost the lock says that it helps
 * 12 who becomes a user of a key does not look at it again
 * 13 who finds that its process is a user does not either
 * 14 the memory of the dead program's keys serves others at once
 * 15 the daemon looks who deals with the dead before it changes the record
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/memory/keys.c hca_keys_put 8c36ab07b88d
 *  src/client/hca/memory/keys.c hca_keys_remove 15106abb3318
 *  src/shared/shm/key.h shm_key_join b343e57d0608
 *  src/shared/shm/key.h shm_key_write cc6756567f37
 *  src/shared/shm/key.h shm_key_remove 21f1fb2a1515
 *  src/shared/shm/key.h shm_key_read_at e0461d82149c
 *  src/client/hca/memory/parts.c hca_parts_read_key 85fa300342e5
 *  src/client/hca/transport/connected_send.c hca_connected_carry_out d5a8c733faf9
 *  src/client/hca/transport/connected_help.c say_whom f36fe91d1583
 *  src/client/hca/transport/connected_help.c say_nobody 749474535d16
 *  src/client/hca/transport/connected_help.c work_locked c3c112bd10f2
 *  src/client/hca/transport/connected_help.c hca_connections_wait 5fa47ffca057
 *  src/client/hca/transport/connected_help.c wait_until_done 760a6cab792c
 *  src/client/hca/transport/connected_wait.c bear_helper f8f21a671419
 *  src/client/hca/memory/adopt.c hca_adopt 5fab6c5fb251
 *  src/client/hca/memory/adopt.c hca_adopt_end 74c3a8e700cc
 *  src/server/daemon/clients/memory.c daemon_memory_retire_keys f00461be397c
 *  src/server/daemon/clients/memory.c look_again cc22ebca625d
 *  src/server/daemon/clients/memory.c free_keys 3ebf649e9838
 *  src/server/daemon/clients/objects.c daemon_objects_release eede69fb4040
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef HELP
#define HELP 0
#endif
#ifndef RESET
#define RESET 0
#endif
#ifndef DEATH
#define DEATH 0
#endif
#ifndef TURNS
#define TURNS 3		/* requests that the peer carries out */
#endif

/* ---- the shared memory ---- */

bit key[2];		/* of the regions: can be found */
bit joined[2];		/* the peer is among the key's users */
bit many;		/* there are more users than it says: all that may be are waited for */
bit by_file[2];		/* the region is reached by the file */
byte says;		/* target_qpn or helps: the number of an exchange, or of a thread; 0: nothing */
bit connected = 1;	/* the record */
bit last;		/* last_peer: it may be at work, though not the peer any more */
byte lock;		/* of the requests that wait: 1 or 2: a thread of the peer's */

/* The page: what it holds in the file and as private memory; which one the program sees. */
byte file, private;
bit is_adopted;

/* ---- what nobody can see ---- */

bit gone[2], was_reset;	/* the call has returned */
bit buried;		/* the memory of the keys serves others */
byte late[2];		/* by thread: the exchange that was not waited for any more */
byte written;		/* by the last copy */
bit stopped, was_stopped, dead, finished;
bit has_joined[4];		/* by thread and region: it is a user of the key */

#if HELP
#define THREAD(n) ((n) - 1)	/* that says this */
#else
#define THREAD(n) 0
#endif
#define MAY(me, n, region) assert(late[me] == (n) || (!gone[region] && !was_reset))

/* ---- stores of the peer's threads ---- */

bit to_say[2], to_write[2];
byte new_says[2], new_page[2];
bit in_file[2], in_region[2];

#define STORED(me) (!to_say[me] && !to_write[me])

inline leave(me)
{
	d_step { to_say[me] -> says = new_says[me]; to_say[me] = 0; new_says[me] = 0 }
}

inline arrive(me)
{
	d_step {
		to_write[me] ->
		MAY(me, new_page[me], in_region[me]);
		if
		:: in_file[me] || is_adopted -> file = new_page[me]
		:: else -> private = new_page[me]
		fi;
		to_write[me] = 0; new_page[me] = 0; in_file[me] = 0; in_region[me] = 0
	}
}

active proctype world()
{
end:
	do
	:: leave(0)
	:: arrive(0)
#if HELP
	:: leave(1)
	:: arrive(1)
#endif
	:: d_step { !was_stopped && !finished -> stopped = 1; was_stopped = 1 }
	:: d_step { stopped -> stopped = 0 }
	:: d_step { !dead && !finished -> dead = 1 }
	od
}

/* ---- the peer ---- */

inline say(me, n)
{
	d_step { !to_say[me] -> new_says[me] = n; to_say[me] = 1 }
}

/* hca_parts_read_key(). Each thread becomes a user once; two threads of a process are one user. */
inline find(me, region, found, file_too)
{
	d_step { found = key[region]; file_too = by_file[region] }
	if
#if MUTANT == 13
	:: found && !joined[region] ->
#else
	:: found && !has_joined[2 * me + region] ->
		has_joined[2 * me + region] = 1;
#endif
		d_step { assert(!buried); joined[region] = 1 }
#if MUTANT != 12
		d_step { found = key[region]; file_too = by_file[region] }
#endif
	:: else
	fi
}

/* A copy to @region, if its key is found. */
inline copy(me, n, region, found, file_too)
{
	find(me, region, found, file_too);
	if
	:: found ->
		d_step {
			MAY(me, n, region);
			new_page[me] = n;
			in_file[me] = file_too;
			in_region[me] = region;
			to_write[me] = 1;
			written = n
		}
	:: else
	fi
}

#if HELP
byte first;		/* process number of the one that may be stopped */

/* say_whom() */
inline begin_help(me, before)
{
	do
	:: before = says;
		if
		:: lock != me + 1 && MUTANT != 11 -> goto lost
		:: else
		fi;
		atomic {
			if
			:: says == before || MUTANT == 11 -> says = me + 1; break
			:: else
			fi
		}
	od
}

/* work_locked() */
proctype helper(byte me) provided (!stopped || _pid != first)
{
	byte before;
	bit found, file_too;

	{
		atomic { lock == 0 -> lock = me + 1 }
		begin_help(me, before);
		copy(me, me + 1, 0, found, file_too);
#if MUTANT != 2
		STORED(me);
#endif
		atomic {	/* likewise */
			if
			:: says == me + 1 || MUTANT == 8 -> says = 0
			:: else
			fi
		}
lost:
		atomic {
			if
			:: lock == me + 1 -> lock = 0
			:: else
			fi
		}
	} unless {
		dead
	}
}
#else
/* hca_connected_carry_out(), again and again. */
active proctype sender() provided (!stopped)
{
	byte n;
	bit region, found, file_too;

	{
		do
		:: n < TURNS ->
			d_step { n++; region = 0 }
#if !RESET
			if
			:: region = 1
			:: skip
			fi;
#endif
			say(0, n);
#if MUTANT != 1
			STORED(0);
#endif
			if
			:: connected -> copy(0, n, region, found, file_too)
			:: else
			fi;
#if MUTANT != 2
			STORED(0);
#endif
			say(0, 0);
			d_step { found = 0; file_too = 0 }
		:: n == TURNS -> break
		od;
		finished = 1
	} unless {
		dead
	}
}
#endif

/* ---- the daemon ---- */

active proctype daemon()
{
end:
	dead && STORED(0) && STORED(1) ->
#if MUTANT != 5
	says = 0
#endif
}

/* ---- the program ---- */

/* wait_until_done() */
inline wait(seen)
{
#if MUTANT != 4
	seen = says;
#endif
#if MUTANT != 3
	if
	:: seen == 0
	:: seen && says != seen
	:: seen && stopped && (!HELP || seen == 1) -> late[THREAD(seen)] = seen
	fi;
#endif
	seen = 0
}

/* No signal, no other thread: but the peer's stores come at every step. */
inline move_in(held)
{
	held = private;
	file = held;
	is_adopted = 1;
	held = 0
}

inline move_out(held)
{
	held = file;
	private = held;
	d_step { is_adopted = 0; held = 0; file = 0 }
}

inline enter(region, held)
{
	if
	:: is_adopted -> by_file[region] = 1
	:: !is_adopted && !RESET && !HELP && (n_regions == 0 || MUTANT == 6) ->
		move_in(held);
		by_file[region] = 1
	:: !is_adopted	/* it has threads, or the page is a stack's */
	fi;
	n_regions++;
	key[region] = 1
}

inline deregister(region, seen, held)
{
#if MUTANT == 4
	seen = says;
#endif
	key[region] = 0;
	if
	:: !many && joined[region] -> wait(seen)
	:: many && connected -> wait(seen)
	:: many && !connected && last && MUTANT != 9 -> wait(seen)
	:: else
	fi;
	d_step { gone[region] = 1; by_file[region] = 0; n_regions-- }
	if
	:: is_adopted && (n_regions == 0 || MUTANT == 7) -> move_out(held)
	:: else
	fi
}

#define ALL_IN (late[0] == 0 && late[1] == 0)

active proctype program()
{
	byte seen, held, n_regions;

#if DEATH
	enter(0, held);
	enter(1, held)
#else
	if
	:: many = 1
	:: skip
	fi;
	enter(0, held);
#if !RESET && !HELP
	enter(1, held);
	if
	:: deregister(1, seen, held)
	:: skip
	fi;
#endif
#if HELP
	/* bear_helper(): longer than the bound */
	if
	:: atomic { lock == 1 && stopped -> lock = 0; late[0] = 1 }
	:: skip
	fi;
#endif
	deregister(0, seen, held);
	if
	:: !gone[1] && n_regions -> deregister(1, seen, held)
	:: else
	fi;
	assert(!ALL_IN || was_reset || written == (is_adopted -> file : private))
#endif
}

#if DEATH
/* daemon_objects_release(), free_keys() */
active proctype undertaker()
{
	byte seen;

#if MUTANT == 15
	seen = says;
	connected = 0;
#else
	connected = 0;
	seen = says;
#endif
#if MUTANT != 14
	if
	:: seen == 0
	:: seen && says != seen
	fi;
#endif
	buried = 1
}
#endif

#if RESET
/* connected_flush(), the daemon, connected_progress() */
active proctype resetter()
{
	byte seen;

#if MUTANT == 10
	connected = 0;
	last = 1;
#else
	last = 1;
	connected = 0;
#endif
#if MUTANT == 4
	seen = says;
#endif
	wait(seen);
	d_step { was_reset = 1; last = 0 }
}
#endif

#if HELP
init {
	atomic {
		first = run helper(0);
		run helper(1)
	}
}
#endif
