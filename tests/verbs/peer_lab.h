/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connected queue pairs for the tests of this folder. A peer is a queue pair with its memory; it is
 * in this process, or elsewhere: in a process of its own, which does what it is told to. So a test
 * is written once and runs both ways: LAB_CASE_BOTH(name) { ... }.
 *
 * Addresses are offsets in the peer's memory. Calls that should not fail fail the test.
 */
#ifndef TESTS_VERBS_PEER_LAB_H
#define TESTS_VERBS_PEER_LAB_H

#include "lab.h"

#define LAB_PEER_BYTES (64 << 10)
#define LAB_ALL_ACCESS                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* A case that runs with its second peer here, and with that elsewhere (*state tells). */
#define LAB_CASE_BOTH(name)                                                \
	CASE_AS(name, harness_add(#name, name, NULL, lab_clean_up, NULL);  \
	        harness_add(#name "__elsewhere", name, NULL, lab_clean_up, \
	                    (void *)(uintptr_t)lab_open))
/* With that elsewhere only. */
#define LAB_CASE_ELSEWHERE(name)                                                 \
	CASE_AS(name, harness_add(#name "__elsewhere", name, NULL, lab_clean_up, \
	                          (void *)(uintptr_t)lab_open))

/* First of all in main(): the process from which peers elsewhere come is forked before the library
 * is used. */
void lab_peers_begin(void);

struct lab_peer_options {
	enum ibv_qp_type type; /* RC if not said */
	int host;              /* 1 if not said */
	bool elsewhere;
	size_t bytes;          /* of its memory; LAB_PEER_BYTES if not said */
	size_t period;         /* not 0: it is so many bytes, mapped again and again */
	bool far;              /* other processes reach it by system calls only */
	unsigned no_access;    /* of LAB_ALL_ACCESS: what its region has not */
	unsigned no_qp_access; /* likewise, its queue pair */
	struct ibv_qp_cap cap; /* what is 0 becomes 64 requests, 4 entries, 64 bytes inline */
	int cqe;               /* of each CQ; 256 */
	bool channel;          /* both CQs have one */
	bool one_cq;           /* its receives complete in the CQ of its sends */
	bool signal_all;
	uint8_t timeout, retry_cnt, rnr_retry; /* as they are: 0 is for ever, no retry, no retry */
	uint8_t min_rnr_timer;                 /* 1 (10 us) if not said */
	uint8_t no_read;                       /* max_dest_rd_atomic is 0 */
	uint8_t no_reading;                    /* max_rd_atomic is 0 */
	uint8_t path_mtu;                      /* enum ibv_mtu; 1024 bytes if not said */
	uint32_t sq_psn, rq_psn;
	uint16_t lid_xor; /* not 0: the LID of its path is a wrong one */
	uint16_t pkey_index;
	unsigned flush_access;    /* LAB_ACCESS_FLUSH_...: its region's and its queue pair's */
	unsigned no_flush_access; /* of these: what its region has not */
	/* shares its context and protection domain; it is here */
	const struct lab_peer *neighbour;
	bool shares_cqs; /* and its completion queues */
};

/* Where the other queue pair is. */
struct lab_peer_address {
	uint32_t qpn, rkey;
	struct ibv_ah_attr path;
	uint64_t addr;
};

struct lab_peer {
	struct lab_peer_options o;
	struct lab_peer_address address;
	uint32_t lkey;
	struct lab_peer_objects *here; /* NULL: it is elsewhere */
	int socket;                    /* then: to its process */
	pid_t pid;
};

/* In its process. */
struct lab_peer_objects {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* or NULL */
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint32_t lkey; /* its, also when it is deregistered */
	char *memory;  /* all of the region; guards lie before and behind it */
	size_t bytes;
};

/* One in RESET. */
struct lab_peer *lab_peer(const struct lab_peer_options *o);
/* Another one in the process of @p, elsewhere, which does nothing by @p from now on. */
struct lab_peer *lab_peer_beside(const struct lab_peer *p);
/* Two in RTS, on h1 and h2: an array, of the lab's. Retries are for ever, unless the options say
 * otherwise. @options may be NULL. */
struct lab_peer **lab_peers(const struct lab_peer_options *options, void *const *state);

/* States; the return value of ibv_modify_qp(). */
int lab_peer_modify(struct lab_peer *p, const struct ibv_qp_attr *attr, int mask);
void lab_peer_to_init(struct lab_peer *p);
void lab_peer_to_rtr(struct lab_peer *p, const struct lab_peer *to);
void lab_peer_to_rts(struct lab_peer *p);
void lab_peer_to(struct lab_peer *p, enum ibv_qp_state state); /* nothing but the state */
void lab_peer_connect(struct lab_peer *p, const struct lab_peer *to);
enum ibv_qp_state lab_peer_state(struct lab_peer *p);
void lab_peer_expect_state(struct lab_peer *p, enum ibv_qp_state state);

/* ---- requests ---- */

#define LAB_PEER_SGE 8

/* Of newer headers: enum ibv_wr_opcode, ibv_wc_opcode, ibv_access_flags, ibv_placement_type,
 * ibv_selectivity_level, ibv_qp_create_send_ops_flags. */
enum {
	LAB_WR_FLUSH = 14,
	LAB_WR_ATOMIC_WRITE = 15,
	LAB_WC_FLUSH = 8,
	LAB_WC_ATOMIC_WRITE = 9,
	LAB_ACCESS_FLUSH_GLOBAL = 1 << 8,
	LAB_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	LAB_FLUSH_GLOBAL = 1,
	LAB_FLUSH_PERSISTENT = 2,
	LAB_FLUSH_RANGE = 0,
	LAB_FLUSH_MR = 1,
	LAB_EX_WITH_FLUSH = 1 << 11,
	LAB_EX_WITH_ATOMIC_WRITE = 1 << 12,
};

struct lab_piece {
	uint64_t at; /* in the peer's memory */
	uint32_t length;
	uint32_t key_xor; /* not 0: the key is a wrong one */
};

/* A request or a receive. Signalled unless it says not. */
struct lab_work {
	enum ibv_wr_opcode opcode;
	uint64_t wr_id;
	int n; /* pieces */
	struct lab_piece piece[LAB_PEER_SGE];
	unsigned flags;
	bool unsignalled;
	uint32_t imm;
	const struct lab_peer *to;
	uint64_t remote; /* in @to's memory */
	uint32_t rkey_xor;
	uint64_t compare_add, swap;
	/* of a flush; and its pieces, or those of an atomic write by ibv_wr_...(), are not set */
	size_t flush_bytes;
	uint8_t flush_type, flush_level;
	bool by_wr; /* posted by ibv_wr_...() */
	bool stops; /* its process stops (SIGSTOP) directly before it posts */
};

/* The return values of ibv_post_recv() and ibv_post_send(). */
int lab_peer_try_receive(struct lab_peer *p, const struct lab_work *w);
int lab_peer_try_post(struct lab_peer *p, const struct lab_work *w);
/* The same of a list of @n, all to one peer; by_wr is that of the first. */
int lab_peer_try_post_list(struct lab_peer *p, const struct lab_work *w, unsigned n);

/* A receive of one piece; a request of one piece, which is posted. */
void lab_peer_receive(struct lab_peer *p, uint64_t wr_id, uint64_t at, uint32_t length);
void lab_peer_post(struct lab_peer *p, const struct lab_work *w);
/* The same, and its completion, which must have this status. */
struct ibv_wc lab_peer_do(struct lab_peer *p, const struct lab_work *w, enum ibv_wc_status status);

/* The next completion of sends or receives, which must have this status. */
struct ibv_wc lab_peer_sent(struct lab_peer *p, enum ibv_wc_status status);
struct ibv_wc lab_peer_received(struct lab_peer *p, enum ibv_wc_status status);
/* Polls once: 0 if there is none. */
int lab_peer_try_sent(struct lab_peer *p, struct ibv_wc *wc);
int lab_peer_try_received(struct lab_peer *p, struct ibv_wc *wc);

/* ---- memory ---- */

void lab_peer_put(struct lab_peer *p, uint64_t at, const void *data, size_t bytes);
void lab_peer_get(struct lab_peer *p, uint64_t at, void *data, size_t bytes);
/* A pattern that @seed makes; and that nothing else is there. */
void lab_peer_fill(struct lab_peer *p, uint64_t at, size_t bytes, unsigned seed);
void lab_peer_expect(struct lab_peer *p, uint64_t at, size_t bytes, unsigned seed);
uint8_t lab_pattern(unsigned seed, size_t i);

/* Calls it while the kernel could be writing to memory by AIO: what it registers stays where it is,
 * and is reached by system calls. */
void lab_without_moving(void (*call)(void *), void *arg);

/* ---- the rest ---- */

/* The next asynchronous event, acknowledged. */
void lab_peer_event(struct lab_peer *p, enum ibv_event_type type);
void lab_peer_no_event(struct lab_peer *p);
/* Its region or its queue pair goes. */
int lab_peer_deregister(struct lab_peer *p);
void lab_peer_destroy_qp(struct lab_peer *p);
/* Arms its CQ of sends; sleeps until a CQ has an event. */
void lab_peer_arm(struct lab_peer *p);
void lab_peer_sleep(struct lab_peer *p);
/* A signal to its process. SIGKILL: returns when it has ended. */
void lab_peer_signal(struct lab_peer *p, int signal);

/* Has its process, elsewhere, post the request, and stops it after @steps instructions of that.
 * UINT32_MAX: when it has come to the end. Returns how many these were. */
unsigned lab_peer_post_steps(struct lab_peer *p, const struct lab_work *w, unsigned steps);
/* It goes on by itself; returns when it has posted the request. */
void lab_peer_post_end(struct lab_peer *p);
/* Kills that process. */
void lab_peer_die(struct lab_peer *p);
/* Both. */
unsigned lab_peer_post_and_die(struct lab_peer *p, const struct lab_work *w, unsigned steps);
/* The same of a receive. */
unsigned lab_peer_receive_and_die(struct lab_peer *p, const struct lab_work *w, unsigned steps);

/* The first thread of its process, elsewhere, ends; another one goes on. */
void lab_peer_part(struct lab_peer *p);
/* Its process, elsewhere, calls exec(): it becomes another program, with other memory where its
 * region was. Returns when that is so. The program of the test calls lab_peer_look() first of all
 * in main() if its name is "another". */
void lab_peer_exec(struct lab_peer *p);
int lab_peer_look(char *const argv[]);
/* Whether nobody has written to that memory. The process ends. */
bool lab_peer_is_untouched(struct lab_peer *p);

/*
 * A riot: random requests of all kinds to @to, lists of short ones, random receives, and whatever
 * completes. A riot goes on as long as its process lives; a step of one, of a peer here, is a
 * request, a list or a poll. All is signalled.
 */
struct lab_riot {
	uint64_t random;
	unsigned sent, received;  /* completions that are still to come */
	enum ibv_wc_status error; /* that came first; IBV_WC_SUCCESS: none */
	enum ibv_wc_status receive_error;
};
void lab_peer_riot(struct lab_peer *p, const struct lab_peer *to, uint64_t seed);
void lab_peer_riot_step(struct lab_peer *p, const struct lab_peer *to, struct lab_riot *r);
/* Posts the request again and again, and polls, as long as its process lives; it is elsewhere. */
void lab_peer_flood(struct lab_peer *p, const struct lab_work *w);
/* Posts nothing more: polls once. Whether nothing is to come any more. */
bool lab_peer_riot_ends(struct lab_peer *p, struct lab_riot *r);

#endif
