/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adopted memory that is given back while its region stays (src/hca/adopt.c: leave_all(), detach(),
 * shm/key.h: shm_key_unmap()): before fork() a program tells peers by the key that the memory is in no
 * object any more, waits for who is using it there, and makes the page its own again. Meanwhile its
 * other thread writes to the page, and a peer carries out requests, which knows the key already. A
 * request that comes meanwhile waits (shm_keys.busy): the kernel, which copies for it then, looks up
 * the page first and writes to it later.
 *
 * The page has two words: the peer's, and the thread's. While the page is adopted, program and peer
 * see the file. Then the program maps the file privately over itself, in one step: it sees the file
 * until the page is its own, which the next write of its own makes it (the kernel copies the page),
 * or the program itself does. Then it empties the file.
 *
 * What is proven: nobody writes to the file once the program does not see it any more, but who was
 * stopped for longer than the bound; no write of the thread is lost; what the peer has written by a
 * request that is done is in the page.
 *
 * Weak memory, as in registration.pml: stores wait, and leave in any order; a release waits until
 * the others have left, a full barrier until none is left.
 *
 * Mutants:
 *  1 the program looks who is at work before the key says so
 *  2 it waits for nobody
 *  3 no barrier between what the peer says that it does and its look at the key
 *  4 the end of a copy is relaxed
 *  5 the page is copied first, and then replaced
 *  6 the file is emptied before the page is the program's own
 *  7 the peer does not look at the key's serial
 *  8 it does not wait while the program moves memory
 *
 * Functions that it models (tools/check-models.py):
 *  src/hca/adopt.c leave_all 0b13214ad1ad
 *  src/hca/adopt.c detach a6559dfd6b1d
 *  src/hca/keys.c hca_keys_unmap f5e4132c52e1
 *  src/hca/keys.c hca_keys_set_busy 17053a782d97
 *  src/shm/key.h shm_key_unmap 2ad535aa2654
 *  src/hca/exchange.c is_busy 0125a3eb1e99
 *  src/hca/exchange.c read_key 7821986b5594
 *  src/hca/connected_help.c hca_connections_wait 246a0e24a714
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define TURNS  3	/* requests of the peer */
#define WRITES 3	/* of the thread */

/* ---- the shared memory ---- */

bit mapped = 1, serial;	/* of the key: its memory is in an object; another one each time */
bit busy;		/* the program is moving memory */
byte says;		/* target_qpn: the number of an exchange; 0: nothing */

/* ---- the page: what is in the file, and what is the program's own ---- */

byte file[2], own[2];
bit is_own;		/* the page is the program's own */
bit shared = 1;		/* the program's mapping of the file is a shared one */

#define PEER   0
#define THREAD 1
#define SEEN(word) (is_own -> own[word] : file[word])

/* ---- what nobody can see ---- */

byte late;		/* the exchange that was not waited for any more */
bit stopped, was_stopped, finished;
byte done;		/* the peer's last request that is done */

/* ---- the peer's stores ---- */

bit to_say, to_write, in_file;
byte new_says, new_word;

#define STORED (!to_say && !to_write)

inline leave()
{
	d_step { to_say -> says = new_says; to_say = 0; new_says = 0 }
}

inline arrive()
{
	d_step {
		to_write ->
		assert(!in_file || shared || late == new_word);
		if
		:: in_file -> file[PEER] = new_word
		:: else -> own[PEER] = new_word
		fi;
		to_write = 0; new_word = 0; in_file = 0
	}
}

active proctype world()
{
end:
	do
	:: leave()
	:: arrive()
	:: d_step { !was_stopped && !finished -> stopped = 1; was_stopped = 1 }
	:: d_step { stopped -> stopped = 0 }
	od
}

/* ---- the peer ---- */

active proctype sender() provided (!stopped)
{
	byte n;
	bit known = 0, by_file = 1;	/* as of serial 0 */

	do
	:: n < TURNS ->
		n++;
again:	skip;
		d_step { !to_say -> new_says = n; to_say = 1 }
#if MUTANT != 3
		STORED;
#endif
#if MUTANT != 7
		if
		:: serial != known ->
			by_file = mapped;
#if MUTANT != 8
			if
			:: busy ->
				d_step { !to_say -> new_says = 0; to_say = 1 }
				STORED;
				goto again
			:: else
			fi;
#endif
			known = serial
		:: else
		fi;
#endif
		d_step {
			if
			:: by_file || shared -> in_file = 1
			:: else ->	/* the kernel makes the page the program's own */
				if
				:: !is_own ->
					own[PEER] = file[PEER];
					own[THREAD] = file[THREAD];
					is_own = 1
				:: else
				fi;
				in_file = 0
			fi;
			new_word = n;
			to_write = 1
		}
#if MUTANT != 4
		STORED;
#endif
		d_step {
			if
			:: late != n && !to_write -> done = n
			:: else
			fi
		}
		d_step { !to_say -> new_says = 0; to_say = 1 }
		STORED
	:: n == TURNS -> break
	od;
	finished = 1
}

/* ---- the program's other thread ---- */

active proctype thread()
{
	byte n;

	do
	:: n < WRITES ->
		n++;
		d_step {
			if
			:: shared -> file[THREAD] = n
			:: else ->
				if
				:: !is_own -> own[PEER] = file[PEER]; is_own = 1
				:: else
				fi;
				own[THREAD] = n
			fi
		}
		assert(SEEN(THREAD) == n)
	:: n == WRITES -> break
	od
}

/* ---- the program, in fork() ---- */

/* wait_until_done() */
inline wait(seen)
{
#if MUTANT != 1
	seen = says;
#endif
#if MUTANT != 2
	if
	:: seen == 0
	:: seen && says != seen
	:: seen && stopped -> late = seen
	fi
#endif
}

inline punch()
{
	d_step { file[PEER] = 0; file[THREAD] = 0 }
}

active proctype program()
{
	byte seen, was[2];

#if MUTANT == 1
	seen = says;
#endif
	busy = 1;
	mapped = 0;
	serial = 1;
	wait(seen);
#if MUTANT == 5
	d_step { was[PEER] = file[PEER]; was[THREAD] = file[THREAD] }
	d_step { own[PEER] = was[PEER]; own[THREAD] = was[THREAD]; is_own = 1; shared = 0 }
#else
	shared = 0;
#if MUTANT == 6
	punch();
#endif
	d_step {
		if
		:: !is_own -> own[PEER] = file[PEER]; own[THREAD] = file[THREAD]; is_own = 1
		:: else
		fi
	}
#endif
	assert(SEEN(PEER) >= done);
	punch();
	busy = 0;
	d_step { finished && STORED -> assert(SEEN(PEER) == TURNS || late) }
}
