/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tools that the program's memory is watched by: AddressSanitizer, ThreadSanitizer, valgrind's
 * memcheck. They are told which ranges the card has, and name the line that touches them before the
 * completion is polled. We are not built with them: the program's own is found at run time. Of
 * none all functions do nothing. With the lock of the checker held.
 *
 * AddressSanitizer	memory that the card writes is poisoned until then.
 * memcheck	likewise; then it is defined as far as the card has written, else as it was.
 * ThreadSanitizer	the card is a fiber, a thread that only it knows: the fiber reads or writes
 *the range behind the post, and before the poll of the completion.
 */
#ifndef CHECKED_TOOLS_H
#define CHECKED_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

/* A range of memory that a request uses. */
struct checked_lent {
	uint64_t from, to;
	bool is_written; /* by the card; else it is read */
	uint32_t place;  /* where it was posted */
	uintptr_t queue; /* any number of the queue of the request */
	bool is_peers;   /* not the poster's: messages order it for its own threads */
	/* the tools' own */
	bool is_poisoned, is_declared;
	uint8_t *defined; /* which bits are: for each byte, one */
};

void checked_tools_start(void);

/* The library that carries requests out: a function of it. */
void checked_tools_library(const void *within);

/* The card has the range; then the program has it again, in whose first @bytes the card may have
 * written. @bytes of UINT32_MAX: all of it. */
void checked_tools_lend(struct checked_lent *l);
void checked_tools_return(struct checked_lent *l, uint32_t bytes);

/* Whether the program has one of them. */
bool checked_tools_any(void);

/* Whether it is of use to lend memory of a peer. */
bool checked_tools_see_peers(void);

/* The contents of so many bytes are not specified. */
void checked_tools_undefine(uint64_t at, uint32_t bytes);

/* The thread sends a message; it has received one. */
void checked_tools_sends(void);
void checked_tools_received(void);

/* libibverbs begins to carry requests out in this thread, or has ended: may touch what is lent. */
void checked_tools_carry(bool begins);

/* ---- one of them: tools.c asks them all. Starting returns whether the program has it ---- */

bool checked_asan_start(void);
void checked_asan_lend(struct checked_lent *l);
void checked_asan_return(struct checked_lent *l);

bool checked_tsan_start(void);
void checked_tsan_lend(struct checked_lent *l);
void checked_tsan_return(struct checked_lent *l);
void checked_tsan_sends(void);
void checked_tsan_received(void);
bool checked_tsan_runs(void);

bool checked_memcheck_start(void);
void checked_memcheck_lend(struct checked_lent *l);
void checked_memcheck_return(struct checked_lent *l, uint32_t bytes);
void checked_memcheck_undefine(uint64_t at, uint32_t bytes);
void checked_memcheck_carry(bool begins);

#endif
