/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A place of a process's keys, which is written again and again (src/shared/shm/key.h, src/client/hca/memory/keys.c):
 * its owner registers memory with the same key value each time, as keys come again, and deregisters
 * it. Peers in two other processes look the key up, keep what they have found, and use the memory.
 * There is room for one user: the second one writes that there are many.
 *
 * By default the key is a region's. WINDOW 1: it is a window's of type 2, which one peer alone uses,
 * and invalidates by a message; the owner unbinds it when it polls that, and waits for nobody.
 *
 * What is proven: who uses memory uses that which the key stands for now, with its own bounds; when a
 * deregistration has returned, nobody uses the memory, nor the next one by what is known of it; who
 * is at work whenever the owner asks is waited for until that request is done, and no longer.
 *
 * All steps are seen in one order; the barriers behind them are in registration.pml, and how a process
 * that died or stands still is waited for there and in keys_death.pml.
 *
 * Mutants:
 *  1 the owner does not wait			2 it looks at the users before the key is gone
 *  3 who joins does not look at the key again
 *  4 what is known is used without a look at the serial
 *  5 a key that is written anew has the serial of the last one
 *  6 the fields change while the key is there
 *  7 a third one takes the last user's place
 *  8 who joins reads the serial behind its entry
 *  9 the peer invalidates before its own use of the window is done
 *
 * Functions that it models (tools/check-models.py):
 *  src/shared/shm/key.h shm_key_read_at e0461d82149c
 *  src/shared/shm/key.h shm_key_join b343e57d0608
 *  src/shared/shm/key.h shm_key_write cc6756567f37
 *  src/shared/shm/key.h shm_key_remove 21f1fb2a1515
 *  src/client/hca/memory/keys.c hca_keys_put 8c36ab07b88d
 *  src/client/hca/memory/keys.c hca_keys_remove 15106abb3318
 *  src/client/hca/memory/parts.c join_key 1ff0cad61100
 *  src/client/hca/memory/parts.c hca_parts_read_key 85fa300342e5
 *  src/client/hca/memory/end.h hca_known_allows 51db6b309f5d
 *  src/client/hca/memory/end.h hca_known_keep dab4f37cd426
 *  src/client/hca/transport/connected_help.c wait_for_users 0ca7a480c1da
 *  src/client/hca/transport/connected_help.c wait_for_user db875f2c0314
 *  src/client/hca/transport/responder.c find_remote 317f35194d44
 *  src/client/hca/transport/responder.c hca_responder_invalidate d3577e9f0fb6
 *  src/client/hca/registration/mw.c unbind 37fead520a3e
 *  src/client/hca/registration/mw.c hca_mw_invalidated b7c5a74d2ddf
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef WINDOW
#define WINDOW 0
#endif
#ifndef LIVES
#define LIVES 3		/* how often the owner registers */
#endif
#define TURNS 2		/* requests of each peer */
#define MANY  3		/* as a user: others may be, too; 1, 2: a peer */

/* ---- the shared memory ---- */

bit key;		/* there is one */
byte first, second;	/* the fields: the life that they are of */
byte serial;
byte user;		/* the only place for one */
byte says[2];		/* target_qpn: of each peer, another one each time; 0: it is not at work */
bit arrived;		/* a message that has invalidated the key */

/* ---- what nobody sees ---- */

bit gone[LIVES + 1];	/* the call has returned */
byte ended;

/* ---- peers ---- */

/* shm_key_read_at() */
inline read_key()
{
	found = key;
	if
	:: found ->
		a = first;
		b = second;
		found = key
	:: else
	fi
}

/* shm_key_join() */
inline join()
{
#if MUTANT != 8
	joined = serial;
#endif
	was = user;
	if
	:: was == 0 ->
		atomic {	/* the last place, too */
			if
			:: user == 0 -> user = me + 1
			:: user != 0 && user != me + 1 -> was = user
			:: else
			fi
		}
	:: else
	fi;
	if
	:: was && was != me + 1 && was != MANY -> user = (MUTANT == 7 -> me + 1 : MANY)
	:: else
	fi;
#if MUTANT == 8
	joined = serial;
#endif
	d_step { was = 0; known = 0 }
}

/* hca_parts_read_key() */
inline look_up()
{
	read_key();
	if
	:: found && serial == joined
	:: found && serial != joined ->
		join();
#if MUTANT != 3
		read_key();
		if
		:: found && serial == joined
		:: found && serial != joined -> found = 0
		:: !found
		fi
#endif
	:: !found
	fi
}

#define IN_USE assert(a == b && !gone[a])

proctype peer(bit me)
{
	byte turn, joined, known, a, b, was;
	bit found;

	do
	:: turn == TURNS -> break
	:: else ->
		turn++;
		says[me] = turn;
		if
		:: known && key && (serial == joined || MUTANT == 4) ->
			d_step { a = known; b = known; found = 1 }
		:: !(known && key && (serial == joined || MUTANT == 4)) ->
			look_up();
			if
			:: found && !WINDOW -> known = a
			:: else
			fi
		fi;
		if
		:: found ->
			IN_USE;
#if WINDOW && MUTANT == 9
			if
			:: turn == TURNS -> key = 0; arrived = 1
			:: else
			fi;
#endif
			IN_USE
		:: else
		fi;
#if WINDOW && MUTANT != 9
		if	/* SEND with Invalidate, behind the requests before it */
		:: found -> atomic { key -> key = 0 }; arrived = 1
		:: skip
		fi;
#endif
		d_step { found = 0; a = 0; b = 0 };
		says[me] = 0
	od;
	ended++
}

/* ---- the owner ---- */

/* wait_until_done() */
inline wait(i)
{
	seen = says[i];
	if
	:: seen == 0 || MUTANT == 1
	:: seen && says[i] != seen
	fi;
	seen = 0
}

/* shm_key_write() */
inline put()
{
#if MUTANT == 6
	key = 1;
#else
	key = 0;
#endif
	user = 0;
#if MUTANT != 5
	serial = life;
#else
	serial = 1;
#endif
	first = life;
	second = life;
	key = 1
}

/* shm_key_remove(), wait_for_users() */
inline remove()
{
#if MUTANT == 2
	users = user;
	key = 0;
#else
	key = 0;
	users = user;
#endif
	if
	:: users == MANY -> wait(0); wait(1)
	:: users == 1 -> wait(0)
	:: users == 2 -> wait(1)
	:: users == 0
	fi;
	users = 0
}

proctype owner()
{
	byte life, users, seen;

	do
	:: life == LIVES -> break
	:: else ->
		life++;
		put();
		if
		:: WINDOW && arrived ->
			arrived = 0;
			key = 0;
			gone[life] = 1
		:: !WINDOW || ended ->
			remove();
			gone[life] = 1;
			arrived = 0
		fi
	od;
	ended++
}

init {
	atomic {
		run owner();
		run peer(0);
#if !WINDOW
		run peer(1)
#endif
	}
}
