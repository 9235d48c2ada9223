/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests of adopted memory (src/client/hca/memory/adopt.h): a region of this process, and a peer
 * in another process that writes to it. Calls that should not fail fail the test.
 */
#ifndef TESTS_VERBS_ADOPTED_LAB_H
#define TESTS_VERBS_ADOPTED_LAB_H

#include "peer_lab.h"

#include <semaphore.h>

#define LAB_ADOPTED_PAGE  4096u
#define LAB_ADOPTED_PAGES 8u
#define LAB_ADOPTED_BYTES (LAB_ADOPTED_PAGES * LAB_ADOPTED_PAGE)

/* @p[0] is here, @p[1] elsewhere. */
struct lab_peer **lab_adopted_begin(void);

/* LAB_ADOPTED_BYTES of private memory, which holds pattern 1. */
char *lab_adopted_memory(void);

/* How many of the pages from @at on are shared with peers by the file of adopted memory. */
unsigned lab_adopted_pages(const void *at, unsigned pages);
void lab_adopted_expect(const void *at, unsigned pages, unsigned n);
/* All of them are; or none, if this process may not hold what other threads write meanwhile. */
void lab_adopted_beside_threads(const void *at, unsigned pages);

/* The bytes of @m from @from to before @to are those of a pattern that begins at @m. */
void lab_adopted_holds(const char *m, unsigned from, unsigned to, unsigned seed);

/* MADV_DONTNEED of the memory gives zeros, as allocators count on. */
void lab_adopted_is_emptied(char *m);

/* A region of @p, which the functions below mean. */
struct ibv_mr *lab_adopted_region(struct lab_peer *p, char *at, size_t bytes);
void lab_adopted_deregister(struct ibv_mr *mr);

/* A request for @length bytes at offset @remote of the region of @to. */
struct lab_work lab_adopted_work(struct lab_peer *to, enum ibv_wr_opcode opcode, uint64_t remote,
                                 uint32_t length);
/* The peer writes a pattern there, which begins at offset 0 of what it names; or reads it. */
void lab_adopted_write(struct lab_peer *p[2], uint64_t remote, uint32_t length, unsigned seed);
void lab_adopted_read(struct lab_peer *p[2], uint64_t remote, uint32_t length);

/* A second thread, which sleeps until it is to end. */
struct lab_sleeper {
	pthread_t thread;
	sem_t may_end;
};
void lab_sleeper_begin(struct lab_sleeper *s);
void lab_sleeper_end(struct lab_sleeper *s);

#endif
