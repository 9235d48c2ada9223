/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requesters of atomic operations on a word that a key gives access to, of which one dies at some
 * step, with the lock or without (lock_atomics() in src/client/hca/transport/responder.c); the daemon, which
 * undoes what it had (src/server/daemon/clients/qp_undo.c); and the owner of the key, which deregisters the
 * memory meanwhile, and may have destroyed the queue pair that was the dead one's peer. Requester 0,
 * the one that dies, also sends a message that invalidates the key. Requester 0 may be on a weak
 * fabric: it begins an operation, and goes on with it later (hca_responder_begin_change()).
 *
 * What is proven: each operation that is carried out counts once, and none is carried out beside
 * another one, or when the deregistration has returned; nobody waits for the dead for ever: neither
 * the owner, nor who wants the lock, though the daemon releases the lock of a live peer's process
 * only.
 *
 * What is left out: a process that stands still, for which the owner waits a second, and a queue pair
 * number that comes again, after 255 others in its place, while the lock names the one of before.
 * The owner's own death is in registration.pml.
 *
 * Mutants:
 *  1 the daemon does not say that the dead do nothing
 *  2 the daemon releases the lock whoever holds it
 *  3 the record of the dead one's queue pair stays
 *  4 nobody takes the lock that a queue pair holds which is gone
 *  5 it is taken by a plain store			6 it is taken from the living, too
 *  7 the owner does not wait			8 the record goes before its process has died
 *  9 who does not get the lock goes on without it
 * 10 an operation that has begun goes on, though another one came in between
 * 11 one that has begun keeps the others out
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/transport/responder.c lock_atomics e7455be1acce
 *  src/client/hca/transport/responder.c try_atomics a0d10b8b8d2d
 *  src/client/hca/transport/responder.c unlock_atomics 69aaa98cf869
 *  src/client/hca/transport/responder.c hca_responder_begin_change 2abb55b4b902
 *  src/client/hca/transport/responder.c hca_responder_change f301c7c14718
 *  src/client/hca/transport/responder.c is_gone c8c5f2880d8c
 *  src/client/hca/transport/responder.c hca_responder_invalidate d3577e9f0fb6
 *  src/client/hca/transport/connected_help.c wait_for_user db875f2c0314
 *  src/client/hca/transport/connected_help.c wait_until_done 760a6cab792c
 *  src/client/hca/memory/keys.c hca_keys_remove 15106abb3318
 *  src/server/daemon/clients/qp_undo.c release_lock 7f24a84285d2
 *  src/server/daemon/clients/qp_undo.c release_connection 210b8ec1c7ca
 *  src/server/daemon/clients/qp_undo.c begin_undo c617085fca37
 *  src/server/daemon/clients/objects.c daemon_objects_release eede69fb4040
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#define REQUESTERS 3
#define TURNS	   1

/* ---- the shared memory ---- */

bit key = 1;
byte says[REQUESTERS];		/* target_qpn: another one each time; 0: it is not at work */
bit record[REQUESTERS] = 1;	/* of its queue pair */
#define BEGUN	   10
byte lock;			/* 1 + the requester that has it; BEGUN more: that has begun; 0: nobody */
byte word;
bit owners_record = 1;		/* of the queue pair that was the peer of requester 0 */

/* ---- what nobody sees ---- */

byte carried_out;
bit dead, gone;

#define IS_GONE(holder) ((holder) && (holder) <= BEGUN && !record[(holder) - 1])

/* ---- requesters ---- */

/* lock_atomics(): once; the request waits if that fails, and is begun anew */
inline try_lock()
{
	holder = 0;
	atomic {
		if
		:: lock == 0 || (lock > BEGUN && MUTANT != 11) -> lock = me + 1; got = 1
		:: else -> holder = lock
		fi
	};
	if
	:: !got && MUTANT != 4 && (IS_GONE(holder) || (MUTANT == 6 && holder)) ->
		atomic {
			if
			:: lock == holder || MUTANT == 5 -> lock = me + 1; got = 1
			:: else
			fi
		}
	:: else
	fi;
	holder = 0;
	if
	:: MUTANT == 9 -> got = 1
	:: else
	fi
}

/* hca_responder_begin_change() */
inline begin()
{
	says[me] = BEGUN + turn;
	if
	:: key ->
		atomic {
			if
			:: lock == 0 || lock == BEGUN + me + 1 -> lock = BEGUN + me + 1; begun = 1
			:: else
			fi
		};
		if
		:: begun -> d_step { assert(!gone); old = word }
		:: else
		fi
	:: else
	fi;
	says[me] = 0
}

/* The first thing that hca_responder_change() does */
inline go_on()
{
	atomic {
		if
		:: begun && lock == BEGUN + me + 1 -> lock = me + 1; got = 1
		:: else -> begun = begun && MUTANT == 10; old = (begun -> old : 0)
		fi
	}
}

proctype requester(byte me)
{
	byte turn, old, holder;
	bit got, found, begun;

	{
		do
		:: turn == TURNS -> break
		:: else ->
			if
			:: me == 0 && !begun -> begin()
			:: true
			fi;
			says[me] = 1 + turn;
			found = key;
			if
			:: found ->
				go_on();
				if
				:: !got -> try_lock()
				:: else
				fi
			:: else -> turn++	/* it fails */
			fi;
			if
			:: got ->
				if
				:: !begun -> old = word
				:: else
				fi;
				d_step {
					assert(!gone);
					word = old + 1;
					carried_out++;
					old = 0;
					begun = 0;
					turn++
				};
				atomic {
					if
					:: lock == me + 1 -> lock = 0
					:: else
					fi
				}
			:: else
			fi;
			if	/* hca_responder_invalidate() */
			:: me == 0 && got -> key = 0
			:: skip
			fi;
			says[me] = 0;
			if
			:: found && !got -> lock == 0 || (lock > BEGUN && MUTANT != 11) || (IS_GONE(lock) && MUTANT != 4) || !key
			:: else
			fi;
			d_step { got = 0; found = 0 }
		od
	} unless {
		me == 0 && dead
	}
}

/* ---- the daemon ---- */

active proctype daemon()
{
	if
	:: skip
	:: skip;
#if MUTANT == 8
		record[0] = 0;
#endif
		dead = 1;
		if
		:: owners_record || MUTANT == 2 ->
			atomic {
				if
				:: lock == 1 || lock == BEGUN + 1 || (MUTANT == 2 && lock) -> lock = 0
				:: else
				fi
			}
		:: else
		fi;
#if MUTANT != 1
		says[0] = 0;
#endif
#if MUTANT != 3
		record[0] = 0
#endif
	fi
}

/* ---- the owner ---- */

/* wait_until_done() */
inline wait(i)
{
	seen = says[i];
	if
	:: seen == 0 || MUTANT == 7
	:: seen && says[i] != seen
	fi;
	seen = 0
}

active proctype owner()
{
	byte seen;

	if
	:: owners_record = 0
	:: skip
	fi;
	if
	:: true ->
		key = 0;	/* it may be gone already */
		wait(0);
		wait(1);
		wait(2);
		gone = 1
	:: true	/* it deregisters later than all this */
	fi
}

active proctype end_of_all()
{
	timeout;
	assert(word == carried_out)
}

init {
	atomic {
		run requester(0);
		run requester(1);
		run requester(2)
	}
}
