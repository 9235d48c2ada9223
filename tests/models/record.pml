/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sequence-locked records (shm_write_begin() to shm_read_retry() in src/shared/shm/region.h): the daemon
 * rewrites a record twice and may die at every step; two readers read it at any time. A reader
 * that has read keeps its copy and compares seq before it uses it, as hca's flows and receivers do.
 *
 * What is proven: no copy in use is torn; a copy that was current when it was looked at is what
 * the record said; a reader of a record that the daemon died over finds none, and does not wait
 * for ever.
 *
 * Weak memory. The writer's stores wait in a store buffer and leave it in any order; a release
 * fence or store waits until it is empty. The reader's loads run in any order that its acquires
 * leave.
 *
 * Mutants:
 *  1 no release fence behind the odd seq	2 the even seq is relaxed
 *  3 the first look at seq is relaxed		4 no acquire fence before the second
 *  5 no second look				6 an odd seq is not waited for
 *  7 nobody looks whether the daemon lives
 *
 * Functions that it models (tools/check-models.py):
 *  src/shared/shm/region.h shm_write_begin 97f57c302bda
 *  src/shared/shm/region.h shm_write_end 882493b1c5f4
 *  src/shared/shm/region.h shm_read_begin d39428aeeb7f
 *  src/shared/shm/region.h shm_read_retry 98cfcd136d91
 *  src/shared/shm/region.c shm_read_wait 963130ef8e73
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#define READERS	 2
#define REWRITES 2

byte seq, field[2];	/* a whole record: both fields are seq / 2 */
bit dead;		/* the kernel says so after all stores have arrived */

/* Store buffer of the writer. */
bit to_store_seq, to_store[2];
byte new_seq, new_value;

#define ALL_STORED (!to_store_seq && !to_store[0] && !to_store[1])

active proctype world()
{
end:
	do
	:: d_step { to_store_seq -> seq = new_seq; to_store_seq = 0 }
	:: d_step { to_store[0] -> field[0] = new_value; to_store[0] = 0 }
	:: d_step { to_store[1] -> field[1] = new_value; to_store[1] = 0 }
	:: d_step { !dead -> dead = 1 }
	od
}

active proctype writer()
{
	byte n;

	{
		do
		:: n < REWRITES ->
			/* shm_write_begin() */
			d_step { !to_store_seq -> new_seq = 2 * n + 1; to_store_seq = 1 }
#if MUTANT != 1
			ALL_STORED;
#endif
			d_step { !to_store[0] && !to_store[1] -> new_value = n + 1; to_store[0] = 1 }
			to_store[1] = 1;
			/* shm_write_end() */
#if MUTANT != 2
			ALL_STORED;
#endif
			d_step { !to_store_seq -> new_seq = 2 * n + 2; to_store_seq = 1; n++ }
		:: else -> break
		od
	} unless {
		dead
	}
}

#define GONE (dead && ALL_STORED)

/* The first look at seq has found it even. */
#define BEGUN (done & 1 && (MUTANT == 6 || first % 2 == 0))

/* shm_qp_read(): the loads in any order that is allowed. @first, @second: of seq. */
inline read(first, second, f0, f1, done)
{
	do
	:: done == 15 -> break
	/* 1: the first look at seq; 2 and 4: the fields; 8: the second look */
	:: !(done & 1) -> d_step { first = seq; done = done | 1 }
	:: !(done & 2) && (MUTANT == 3 || BEGUN) -> d_step { f0 = field[0]; done = done | 2 }
	:: !(done & 4) && (MUTANT == 3 || BEGUN) -> d_step { f1 = field[1]; done = done | 4 }
	:: !(done & 8) && BEGUN && (MUTANT == 4 || done == 7) ->
		d_step { second = seq; done = done | 8 }
	/* shm_read_wait() */
	:: MUTANT != 6 && done & 1 && first % 2 && seq != first ->
		d_step { done = 0; first = 0; second = 0; f0 = 0; f1 = 0 }
	:: MUTANT != 6 && MUTANT != 7 && done & 1 && first % 2 && GONE && seq == first ->
		d_step { first = 255; done = 15 }
	od
}

active [READERS] proctype reader()
{
	byte copy_seq = 1, copy, first, second, f0, f1, done;	/* odd: no record that can be read */
	byte uses;

	do
	:: uses == 2 -> break
	:: uses < 2 && copy_seq != seq ->
again:
		read(first, second, f0, f1, done);
		if
		:: first == 255 -> break	/* there is no such record */
		:: first != 255 && MUTANT != 5 && first != second ->
			atomic { done = 0; first = 0; second = 0; f0 = 0; f1 = 0; goto again }
		:: else ->
			atomic {
				assert(f0 == f1);
				assert(f0 == first / 2);
				copy_seq = first;
				copy = f0;
				done = 0; first = 0; second = 0; f0 = 0; f1 = 0
			}
		fi
	/* acquire: what the copy says was so at this moment */
	:: d_step { uses < 2 && copy_seq == seq -> assert(copy == seq / 2); uses++ }
	od
}
