/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lease of payload memory (src/client/hca/link/payload.c, daemon_qp_revoke() and the pass in
 * src/server/daemon/clients/memory.c): a sender with one payload slot, a receiver that reads late, and the daemon,
 * which wants the memory for somebody else. The sender may die at every step.
 *
 * What is proven: a receiver that copies a message copies that message, whole; what somebody else
 * wrote to memory that was revoked stays as he wrote it; and the sender gets memory again.
 *
 * Weak memory. The sender's stores to the slot, its publishing and its store to the lease wait in a
 * store buffer, and leave it in any order, but for a release after all that was stored before.
 *
 * Mutants:
 *  1 the sender stores IN_USE without a swap
 *  2 the sender writes to the slot before its swap
 *  3 the sender's store of FREE is relaxed: what it published may be seen after it
 *  4 a sender that finds REVOKED uses its slot all the same
 *  5 the daemon frees memory that it revoked without a pass
 *  6 the daemon revokes memory that is in use
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/link/payload.c begin 34df6e16ce39
 *  src/client/hca/link/payload.c hca_payload_end 6a8eb5d90e2f
 *  src/server/daemon/clients/qp.c daemon_qp_revoke 228602c7c1c7
 *  src/server/daemon/clients/memory.c revoke_idle f2ffd565f5ff
 *  src/server/daemon/clients/memory.c pass 412e721d0498
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#define MESSAGES 3
#define FREE	0
#define IN_USE	1
#define REVOKED	2
#define FOREIGN	200	/* what the memory's next user writes */

/* ---- the shared memory ---- */

byte lease;
byte word[2];		/* a slot in each of two pieces of memory */
bit unread;		/* the ring has one position: an arrival waits there */
byte arrival, id;	/* its slot; and what nobody can see: the message */

/* The sender's store buffer: an entry each. */
bit to_word, to_publish, to_free;
byte word_at, word_value;

#define ALL_STORED (!to_word && !to_publish)

bit dead, finished;
bit taken;		/* slot 0's memory is somebody else's */

active proctype world()
{
end:
	do
	:: d_step { to_word -> word[word_at] = word_value; to_word = 0 }
	:: d_step { to_publish && !to_word -> unread = 1; to_publish = 0 }
#if MUTANT == 3
	:: d_step { to_free -> lease = FREE; to_free = 0 }
#else
	:: d_step { to_free && ALL_STORED -> lease = FREE; to_free = 0 }
#endif
	:: d_step { !dead && !finished -> dead = 1 }
	od
}

active proctype sender()
{
	byte message, slot;
	bit revoked;

	do
	:: message < MESSAGES ->
		message++;
		/* the ring has room, and its own last store is no news to it */
		(!unread && !to_publish && !to_free) || dead;
		if
		:: dead -> break
		:: else
		fi;
#if MUTANT == 2
		word_at = slot; word_value = message; to_word = 1;
#endif
		/* begin() */
#if MUTANT == 1
		revoked = (lease == REVOKED);
		if
		:: dead -> break
		:: else -> lease = IN_USE
		fi;
#else
		d_step {
			revoked = (lease == REVOKED);
			if
			:: dead || lease != FREE
			:: else -> lease = IN_USE
			fi
		}
#endif
		if
		:: dead -> break
		:: !dead && revoked ->
			lease = IN_USE;
#if MUTANT != 4
			slot = 1
#endif
		:: !dead && !revoked
		fi;
#if MUTANT != 2
		d_step {
			!to_word || dead;
			if
			:: dead
			:: else -> word_at = slot; word_value = message; to_word = 1
			fi
		}
#endif
		/* claim, fill, publish: a release */
		d_step {
			if
			:: dead
			:: else -> arrival = slot; id = message; to_publish = 1
			fi
		}
		if
		:: dead -> break
		:: else
		fi;
		to_free = 1	/* hca_payload_end() */
	:: else -> break
	od;
	finished = 1
}

/* The arrival, if there is one, stays until this has copied. */
active proctype receiver()
{
end:
	do
	:: unread ->
		assert(word[arrival] == id);
		unread = 0
	od
}

active proctype manager()
{
	bit mine;

end:
	do
	:: !taken ->
		/* daemon_qp_revoke(); or the process is dead, and its stores have come before the
		 * daemon heard of that */
		d_step {
			if
#if MUTANT == 6
			:: lease != REVOKED -> lease = REVOKED; mine = 1
#else
			:: lease == FREE -> lease = REVOKED; mine = 1
#endif
			:: else -> mine = (dead && !to_word && !to_publish && !to_free)
			fi
		}
		if
		:: mine ->
			/* the pass: nobody reads it */
#if MUTANT != 5
			!(unread && arrival == 0);
#endif
			taken = 1;
			word[0] = FOREIGN
		:: else
		fi
	:: taken ->
		assert(word[0] == FOREIGN);
		(finished && !to_word && !to_publish) -> break
	od
}
