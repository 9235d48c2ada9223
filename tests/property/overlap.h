/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The responder of the program overlap: a queue pair, or a target, whose receives lie anywhere in
 * the memory that its peer reads and writes. The responder is in this process or in another one.
 */
#ifndef TESTS_PROPERTY_OVERLAP_H
#define TESTS_PROPERTY_OVERLAP_H

#include "verbs/lab.h"

#define AREA    1024u
#define QUEUES  2 /* of XRC; others have one */
#define DEPTH   16
#define ENTRIES 3
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

enum kind { RC, SRQ, XRC, UC };

struct receive {
	uint64_t wr_id;
	unsigned n;
	struct {
		uint32_t at, length;
	} entry[ENTRIES];
};

/* A command to its program, and the outcome. */
enum what { OPEN, CONNECT, POST, POLL, REGISTER, GET, CLOSE };

struct command {
	enum what what;
	/* of OPEN: far memory is reached by system calls only */
	enum kind kind;
	bool far;
	uint32_t queue, peer;
	struct receive receive;
	/* out: */
	uint32_t qpn, srqn[QUEUES], rkey;
	uint64_t addr;
	int n; /* completions */
	struct ibv_wc wc;
	uint8_t memory[AREA];
};

/* First of all in main(): forks the process of responders elsewhere. */
void overlap_begin(void);

/* Has the responder, here or elsewhere, carry it out. */
void overlap_do(bool elsewhere, struct command *c);

#endif
