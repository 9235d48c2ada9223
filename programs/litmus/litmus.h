/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Litmus tests of RDMA: short programs, and which outcomes the specification allows. table.c has
 * them, parse.c reads their small language, world.c has the queue pairs, run.c runs them.
 */
#ifndef LITMUS_H
#define LITMUS_H

#include <stdbool.h>
#include <stdint.h>

#define LITMUS_NODES     3 /* A, B, C */
#define LITMUS_WORDS     8 /* of memory that each has, of 8 bytes */
#define LITMUS_REGISTERS 6 /* r0 and on: what programs have seen */
#define LITMUS_THREADS   3
#define LITMUS_STEPS     12 /* of a thread */
#define LITMUS_OUTCOMES  8

/* A test, as it stands in the table. */
enum litmus_kind {
	LITMUS_STRONG, /* allowed, and seen on any fabric */
	LITMUS_WEAK,   /* allowed, and seen on a weak fabric only */
	LITMUS_NEVER,  /* not allowed */
};

struct litmus {
	const char *name;
	const char *shows;  /* a sentence */
	const char *source; /* of what is allowed */
	const char *init;   /* "A.0=1 B.2=5"; all else is 0 */
	/*
	 * Threads, separated by "||", of steps, separated by ";". NODE.WORD is a word of memory, Q
	 * a queue pair of world.h, N a number of words, FLAGS of "u" (not signaled), "i" (inline),
	 * "f" (fence):
	 *
	 *   st NODE.WORD VALUE      a processor stores
	 *   ld REGISTER NODE.WORD   a processor loads
	 *   put Q TO FROM N FLAGS   RDMA WRITE
	 *   get Q TO FROM N FLAGS   RDMA READ
	 *   faa Q TO FROM ADD FLAGS fetch and add; the old value goes to TO
	 *   rcv Q TO                posts a receive of one word at the other end
	 *   snd Q FROM FLAGS        SEND of one word
	 *   poll Q                  waits for a completion of a send
	 *   try REGISTER Q          1: there is one now
	 *   rpoll Q                 waits for the completion of a receive at the other end
	 *   rtry REGISTER Q         1: there is one now
	 */
	const char *program;
	/* "r0=1 B.0=2": all of it is so at the end. The first that fits counts. */
	struct litmus_outcome {
		const char *is;
		enum litmus_kind kind;
	} outcome[LITMUS_OUTCOMES];
};

extern const struct litmus litmus_table[];
extern const unsigned litmus_n;

/* A test, as it is run. */
enum litmus_op {
	LITMUS_ST,
	LITMUS_LD,
	LITMUS_PUT,
	LITMUS_GET,
	LITMUS_FAA,
	LITMUS_RCV,
	LITMUS_SND,
	LITMUS_POLL,
	LITMUS_TRY,
	LITMUS_RPOLL,
	LITMUS_RTRY,
};

struct litmus_step {
	enum litmus_op op;
	unsigned q, reg;
	unsigned to, from; /* node * LITMUS_WORDS + word */
	uint64_t value;    /* or a number of words */
	bool unsignaled, is_inline, fence;
};

struct litmus_thread {
	struct litmus_step step[LITMUS_STEPS];
	unsigned n;
};

/* The values at one moment: each NODE.WORD and each register. */
struct litmus_state {
	uint64_t reg[LITMUS_REGISTERS];
	uint64_t word[LITMUS_NODES * LITMUS_WORDS];
};

struct litmus_parsed {
	struct litmus_thread thread[LITMUS_THREADS];
	unsigned n;
	struct litmus_state init;
};

/* False: the test is not well-formed, which is said. */
bool litmus_parse(const struct litmus *t, struct litmus_parsed *p);
/* Whether the condition, an init or an outcome, holds. */
bool litmus_holds(const char *condition, const struct litmus_state *s);

/* How the rounds of a test ended. */
struct litmus_result {
	uint64_t seen[LITMUS_OUTCOMES];
	uint64_t other; /* an outcome that is not listed */
	struct litmus_state an_other;
	char failed[160]; /* "": no call failed */
};

struct litmus_world;

/* NULL: it says why. */
struct litmus_world *litmus_world_new(void);
void litmus_world_free(struct litmus_world *w);

/* Runs the test so many times; @seed: of the order in which threads and polls come. */
void litmus_run(struct litmus_world *w, const struct litmus *t, uint64_t rounds, uint64_t seed,
                struct litmus_result *r);

#endif
