/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of a connected queue pair that exchanges packets with its peer: how far they are, both
 * ways. By queue pair index, in the data part. Any thread that takes datagrams off the port's
 * sockets, or sees that a time is over, works on it, in any process, the daemon included
 * (hca/transport/packet_connection.h).
 *
 * There are two halves, the requester's and the responder's, each with a lock that names its
 * holder, so that the daemon can release the locks of a dead process. The requester's is the lock
 * of the send queue (shm_connection.lock). All programs of the fabric can write here, so nothing
 * that stands here is used as an address or an index unchecked.
 */
#ifndef SHM_PACKETS_H
#define SHM_PACKETS_H

#include "shm/layout.h"

/* READs and atomic operations that a responder may have to answer: as many as max_dest_rd_atomic
 * may be. */
#define SHM_WIRE_RESPONSES 16

/* The contents of a response. */
enum shm_wire_answer {
	SHM_WIRE_NO_ANSWER,
	SHM_WIRE_MEMORY, /* of a READ */
	SHM_WIRE_WORD,   /* of an atomic operation: what the word was */
	SHM_WIRE_DONE,   /* of an atomic WRITE or a FLUSH: nothing else */
};

/* One that is yet to be answered. */
struct shm_wire_response {
	uint32_t psn;     /* of its first packet */
	uint32_t packets; /* that it has */
	uint32_t sent;    /* of these */
	uint32_t msn;     /* of the message that asked for it */
	uint32_t rkey;
	uint32_t length; /* READ: bytes from addr on */
	uint64_t addr;
	uint64_t value;  /* SHM_WIRE_WORD */
	uint32_t answer; /* enum shm_wire_answer */
	uint32_t reserved;
};
static_assert(sizeof(struct shm_wire_response) == 48, "layout");

/* The answer to what must not be carried out twice, for requests that come again. */
struct shm_wire_saved {
	uint64_t value;
	uint32_t psn;
	uint32_t answer; /* enum shm_wire_answer */
};

/* How far what comes in is: of the responder's half. */
struct shm_wire_in {
	uint32_t expected;        /* PSN */
	uint32_t expected_rounds; /* that PSNs have come around before it */
	uint32_t msn;             /* messages that were carried out, modulo 2^24 */
	uint8_t nak_sent;         /* bool: the gap before the next packet was told */
	uint8_t nak_due;          /* syndrome: it is told once all responses are sent; or 0 */
	uint8_t fails_with;       /* enum ibv_wc_status: of the receive, when that is told */
	uint8_t operation;        /* enum shm_wire_operation: the message under way */
	uint32_t n_responses;     /* that are yet to be sent */
	uint32_t next_response;   /* where the next one goes; counts up */
	uint32_t next_saved;      /* likewise */
	uint32_t offset;          /* bytes of the message under way that were placed */
	uint32_t claimed;         /* position in the ring of the receive that it uses */
	uint32_t keeps;           /* bool: the next message uses that receive */
	uint32_t rkey;            /* WRITE: to where */
	uint32_t length;          /* WRITE: of the whole message */
	uint64_t addr;
};

/* The numbers before the first request that is not done. */
struct shm_wire_head {
	uint32_t psn;   /* of its first packet */
	uint32_t ssn;   /* messages before, modulo 2^24 */
	uint32_t takes; /* of these, that take a receive */
};

/* The attributes by which its packets go. Its owner writes them when it moves to RTR and RTS, and
 * when the program changes them there or in SQD. */
struct shm_wire_path {
	struct ib_gid sgid, dgid;
	uint32_t class_flow; /* traffic class << 20 | flow label */
	uint8_t hop_limit, sgid_index;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer; /* as in struct ibv_qp_attr */
	uint8_t max_rd_atomic, mtu_shift;                     /* log2 of the path MTU in bytes */
	uint32_t first_psn, first_expected; /* its first PSN, and its peer's; for rules of faults */
	uint32_t detours;                   /* enum shm_wire_detours */
	uint32_t flow;                      /* then: by which they go */
};

/* Whether its packets go by the daemon. */
enum shm_wire_detours {
	SHM_WIRE_NO_DETOUR,
	SHM_WIRE_HERE, /* the peer is of this fabric: the daemon delivers them */
	SHM_WIRE_AWAY, /* it is not: the daemon sends them; what comes from it makes no detour */
};

struct shm_wire {
	/* enum shm_wire_open: whether packets are sent and received. The owner writes it when the
	 * queue pair's state or path changes; the bits above 8 are a number that differs each time,
	 * so that others copy the path anew */
	_Atomic uint32_t open;
	/* of the responder's half: as shm_connection.lock */
	_Atomic uint32_t lock;
	struct shm_wire_path path;
	/* Packets that were put off have numbers, whichever process received them. put_off: the
	 * number of the next packet that is put off; taken_up: of the packet that is worked on
	 * next. Equal: no packet is put off */
	_Atomic uint32_t put_off, taken_up;

	/* ---- requester: under shm_connection.lock ---- */

	_Alignas(64) uint32_t next; /* position of the request that is sent next */
	/* without that lock, too: whose packets, of either half, were made and have not left yet:
	 * as in locks, and the number of that worker's turn, and SHM_WIRE_WANTED; 0: nobody's */
	_Atomic uint32_t egress;
	uint32_t offset;              /* packets of it that were sent */
	uint32_t psn;                 /* of the packet that is sent next */
	uint32_t acked;               /* PSNs before are acknowledged */
	uint32_t beyond;              /* PSNs from here on were never sent */
	uint32_t answered;            /* READs and atomic operations under way */
	uint32_t window;              /* packets that may be under way */
	uint32_t grown;               /* that were acknowledged since the window grew */
	uint8_t retries, rnr_retries; /* that were used up */
	uint8_t recovers;             /* enum shm_wire_recovers */
	uint8_t slowed;               /* by a CNP, until slowed_until is acknowledged */
	uint32_t slowed_until;        /* PSN */
	uint8_t early;                /* times that it went back before the timeout was over */
	uint8_t ran_short;            /* bool: the peer has once had no receive */
	uint8_t has_limit;            /* bool: besides it tells credits, which are kept to */
	uint8_t limited;              /* bool: only the first packet of `next` may go */
	/* by the first request's position: so a request is done by one store, of the next one's */
	struct shm_wire_head heads[2];
	/* messages that take a receive: before `next`; and as many as the peer has receives for */
	uint32_t takes, credits;
	/* CLOCK_MONOTONIC, ns; 0: none. Others read them without the lock */
	_Atomic uint64_t deadline_ns; /* when what was sent is taken for lost */
	_Atomic uint64_t resume_ns;   /* when to send again after a RNR NAK */
	uint64_t retransmissions;     /* packets that were sent again */
	uint64_t waits_since_ns;      /* nothing was acknowledged since then */
	uint64_t round_ns;            /* how long it takes until a packet is acknowledged */
	uint64_t timed_ns;            /* when the packet was sent whose time is taken; 0: none */
	uint32_t timed_psn;
	uint32_t unasked; /* packets sent behind the last that asked for an acknowledgement */
	/* bool: after a loss only one packet goes, until something is acknowledged: the peer may
	 * have kept what came behind that one */
	uint8_t probes;
	uint8_t in_vain;       /* so often it had kept nothing, the last times */
	uint8_t has_gap;       /* bool: responses up to gap_end got lost; those behind are kept */
	uint8_t cuts;          /* bool: it has asked for such a gap once, and for nothing behind */
	uint32_t gap_end;      /* PSN */
	uint32_t acked_rounds; /* that PSNs have come around before acked */
	struct shm_reader reader;
	/* bool: what comes next is a READ, and others have their turn */
	_Atomic uint8_t awaits_turn;
	_Atomic uint8_t held_up; /* bool: what comes next was not sent, as another had the egress */

	/* ---- responder: under lock ---- */

	_Alignas(64) struct shm_wire_in in;
	/* bool: once all responses are sent. The owner looks without the lock */
	_Atomic uint8_t ack_due;
	/* enum shm_wire_broken: a process died while it had the lock, in the middle of something.
	 * The daemon writes it; the next holder of the lock mends that half */
	_Atomic uint8_t broken;
	/* whether its owner mostly posts a request after what has come; hints, without a lock */
	_Atomic uint8_t unanswered;  /* bool: it has not, since something came */
	_Atomic uint8_t replies;     /* so often it did, the last times; see
	                                hca/transport/packet_connection.c */
	_Atomic uint8_t ack_waits;   /* bool: a poll has put the acknowledgement off */
	_Atomic uint8_t credits_due; /* bool: receives were posted, and the peer was told of none */
	/* whether its program waits to hear that what was begun before SQD is done: enum
	 * shm_wire_drains. Written with shm_connection.lock held, but by the daemon, which tells it
	 */
	_Atomic uint8_t drains;
	_Atomic uint8_t step;      /* enum shm_wire_step: of the packet that is worked on, */
	uint8_t publishes;         /* enum ibv_wr_opcode: of its message, when that arrives, */
	uint8_t publishes_packets; /* the packets that are worked on with its last one, */
	struct shm_wire_in before; /* and `in` as it was before it came */
	/* a process that received was lost with what it had taken, acknowledgements perhaps: until
	 * the peer acknowledges again nothing is carried out that may be an answer. 0: none was */
	uint64_t doubt_since_ns;
	uint32_t turns_lost; /* of shm_roce_port.overtakes: as far as this is known */
	struct shm_wire_response response[SHM_WIRE_RESPONSES];
	struct shm_wire_saved saved[SHM_WIRE_RESPONSES];
};

static inline struct shm_wire_head *shm_wire_head(struct shm_wire *w, uint32_t position)
{
	return &w->heads[position % 2];
}

/* A bit for each queue pair index: it waits for a time, or has responses to send. */
struct shm_wire_busy {
	_Atomic uint64_t bits;
};

enum shm_wire_open {
	SHM_WIRE_RECEIVES = 1,
	SHM_WIRE_SENDS = 2,
	SHM_WIRE_PAUSED = 4,      /* besides: but no request is begun (SQD) */
	SHM_WIRE_OPENED = 1 << 8, /* added each time */
};

enum shm_wire_drains {
	SHM_WIRE_TELLS_NOBODY,
	SHM_WIRE_DRAINS,
	SHM_WIRE_DRAINED, /* a thread that saw that asks the daemon for IBV_EVENT_SQ_DRAINED */
};

/* In shm_wire.egress: another worker has something to send, which its holder sees to. */
#define SHM_WIRE_WANTED (1u << 31)

/* Releases the egress, if the worker, which has died, has it. @by: the word that stood there.
 * Others may want it by now, once; a program that writes there more often writes nonsense, and is
 * not waited for. */
static inline void shm_wire_release_egress(struct shm_wire *w, uint32_t worker, uint32_t by)
{
	for (unsigned tries = 0; tries < 4 && (by & IB_QPN_MASK) == worker; tries++)
		/* release: what it had done comes before the next holder's work */
		if (atomic_compare_exchange_strong_explicit(
		            &w->egress, &by, 0, memory_order_release, memory_order_relaxed))
			return;
}

/* Since something was acknowledged. Of a loss the peer's packets tell more than once. */
enum shm_wire_recovers {
	SHM_WIRE_GOES_ON,    /* nothing got lost */
	SHM_WIRE_RECOVERS,   /* it goes back, and hears of no other loss */
	SHM_WIRE_HAS_WAITED, /* it went back and waited for a receive of the peer */
};

enum shm_wire_broken { SHM_WIRE_RESPONDER = 1, SHM_WIRE_REQUESTER = 2 };

/* How far the responder is with a packet, for the worker that mends its half. */
enum shm_wire_step {
	SHM_WIRE_AT_REST,   /* there is none */
	SHM_WIRE_CHANGES,   /* what it has changed can be undone */
	SHM_WIRE_PUBLISHES, /* all is ready for its message to arrive */
	SHM_WIRE_ONCE,      /* it does what must not be done twice, and cannot be undone */
};

enum shm_wire_operation { SHM_WIRE_NONE, SHM_WIRE_SEND, SHM_WIRE_WRITE };

#endif
