/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links with finite buffers, in virtual time: packets wait for credits, and for each other. The
 * model:
 *
 * A link sends one packet at a time, at its rate. At its far end each lane has a buffer, a queue. A
 * packet is sent when that buffer has room for all of it, in blocks of 64 bytes (InfiniBand
 * specification volume 1, section 7.9). Its head is at the far end ->hop_ps later and may leave by
 * the next link at once (cut-through), unless that one is faster and would run out of bytes. Only
 * the first packet of a queue may leave, however free the others' links are. When its last byte has
 * left, and that of its last copy, the next one is the first, and ->hop_ps later the sender has the
 * credits again. A host takes what arrives as it comes.
 *
 * Packets that wait for one lane of a link leave in the order in which they began to wait; lanes
 * take turns, packet by packet, or as arbitration tables say, and so do the messages of a host.
 *
 * A message begins at its time: its first packet is ready in its host then. It is in the network
 * until its last copy has arrived.
 *
 * In this order: credits_open(), credits_add_hop() and credits_add_message(), credits_run(),
 * credits_find_circle() if ->stuck. A function that returns int returns 0 or -ENOMEM. Not
 * thread-safe.
 */
#ifndef SIMULATE_CREDITS_H
#define SIMULATE_CREDITS_H

#include <stdbool.h>
#include <stdint.h>

#include "simulate/events.h"

#define CREDITS_NONE  UINT32_MAX
#define CREDITS_LANES 8
#define CREDITS_BLOCK 64 /* bytes of a credit */

/* A packet crosses a link. Its ways on form a tree: the copies that a switch makes. */
struct credits_hop {
	uint32_t link;
	uint32_t next, also; /* the first copy that leaves the far end; the next one of this end */
	uint8_t lane;
	bool arrives; /* at a host that it is for */
};

struct credits_message {
	uint32_t hop;        /* its first, from the host; CREDITS_NONE: it is lost */
	uint32_t from, to;   /* hosts; or to, a group */
	bool to_group;       /* datagrams, with more headers */
	uint32_t left;       /* packets that the host has not sent */
	uint32_t copies;     /* of packets, that hosts are to get */
	uint32_t received;   /* those that they have */
	uint64_t begins_ps;  /* not before the message that was added before it */
	uint64_t arrived_ps; /* the last of these copies */
};

/* A packet, in the queue of a lane that it waits for, under way, or in a buffer. */
struct credits_packet {
	uint64_t last_ps; /* its last byte is at the end of the link */
	uint32_t message, hop;
	uint32_t from; /* the packet that it is a copy of; CREDITS_NONE: it is still in its host */
	uint32_t next; /* in a queue */
	uint16_t bytes, copies; /* copies that have not left its buffer */
};

struct credits_list {
	uint32_t first, last;
};

struct credits_lane {
	uint32_t credits;            /* blocks of the buffer that the sender may still use */
	struct credits_list waiting; /* packets that are to cross the link */
	struct credits_list buffer;  /* packets at the far end */
	uint32_t held, most;         /* packets in the buffer: now, and the most that were there */
};

/* A table of VLArbitration (section 7.6.9): lanes, each with the blocks that it may begin to send
 * in its turn. */
#define CREDITS_SHARES 64
struct credits_table {
	struct credits_share {
		uint8_t lane, weight;
	} share[CREDITS_SHARES];
	unsigned n;
};

/* Of all links. */
struct credits_arbitration {
	struct credits_table high, low;
	uint8_t limit; /* of high priority, in 4096 bytes: 0, one packet; CREDITS_NO_LIMIT */
};
#define CREDITS_NO_LIMIT 255

/* How far a link is with the tables. */
struct credits_turn {
	unsigned at;  /* in the table */
	int32_t left; /* blocks */
};
struct credits_arbiter {
	struct credits_turn high, low;
	int32_t high_left; /* blocks of high priority, until the others may send */
	uint64_t busy_ps[CREDITS_LANES];
	uint64_t shared[CREDITS_LANES]; /* bytes sent while another lane could have sent, too */
};

struct credits_link {
	double ps_per_byte;
	uint64_t busy_ps;    /* it sent */
	uint64_t blocked_ps; /* it could have sent, but for want of credits */
	uint64_t since_ps;   /* blocked */
	uint32_t from;       /* what it sends is a copy of this packet */
	uint8_t turn;        /* the lane that is asked first */
	bool busy, blocked, asked;
};

/* A part of a circle: a link's lane, whose buffer is full, and the message there whose packet waits
 * for the next lane of the circle. */
struct credits_wait {
	uint32_t link, message;
	uint8_t lane;
};

struct credits {
	/* set by the caller */
	uint64_t hop_ps;
	uint32_t bytes, mtu; /* of a message; of a packet, without headers */
	uint32_t headers, group_headers;
	uint32_t buffer;        /* blocks of a lane */
	uint32_t first_counted; /* ->queue_ps is of this message and those after it */
	const struct credits_arbitration
	        *arbitration; /* NULL: lanes take turns, packet by packet */
	void (*progress)(void *arg, uint64_t done, uint64_t of);
	void *arg;
	/* filled in by the caller, with credits_open() */
	struct credits_link *link;
	uint32_t n_links;
	/* results */
	uint64_t now_ps;        /* when the last thing happened */
	uint64_t arrived_ps;    /* when the last packet arrived */
	uint64_t to_send, sent; /* packets, by hosts */
	double queue_ps;        /* messages in the network, summed over time: exact below 2^53 */
	uint32_t queue;         /* those that are there now */
	uint32_t queue_last;    /* and when the last message had begun */
	uint64_t stuck;         /* packets that wait in buffers forever */
	uint64_t stuck_lanes;   /* those of links that have some of these at their end */
	struct credits_wait *circle;
	uint32_t n_circle;
	struct credits_message *message;
	uint32_t n_messages;
	struct credits_arbiter *arbiter; /* by link, with ->arbitration */
	/* inside */
	struct credits_lane (*lane)[CREDITS_LANES]; /* by link */
	struct credits_hop *hop;
	struct credits_packet *packet;
	uint32_t *asked; /* links that may be able to send */
	uint32_t n_asked, n_hops, hops_room, messages_room, n_packets, packets_room, free_packet;
	uint32_t n_begun;
	uint64_t queue_since_ps;
	struct simulate_events events;
	bool no_memory;
};

/* Makes room for @n_links links, all zero. credits_fini() is due in any case. */
int credits_open(struct credits *c, uint32_t n_links);
void credits_fini(struct credits *c);

/* Adds a copy to those of hop @parent, or with CREDITS_NONE the first hop of a message; *@index is
 * its number. */
int credits_add_hop(struct credits *c, uint32_t parent, const struct credits_hop *hop,
                    uint32_t *index);

/* Adds a message. ->hop, ->from, ->to, ->to_group, ->copies and ->begins_ps are set. */
int credits_add_message(struct credits *c, const struct credits_message *m);

/* Whether all copies of the message have come, and how long that took. */
static inline bool credits_has_arrived(const struct credits_message *m)
{
	return m->copies && m->received == m->copies;
}
static inline uint64_t credits_took_ps(const struct credits_message *m)
{
	return m->arrived_ps - m->begins_ps;
}

/* A lane that a hop has and no table: packets that are to cross there wait forever. CREDITS_LANES:
 * none. */
unsigned credits_unserved(const struct credits *c);

/* Has all messages sent, until nothing more can happen. With ->arbitration, no lane is unserved. */
int credits_run(struct credits *c);

/* Finds links that wait for each other, in their order: each for the next one, the last one for the
 * first. */
int credits_find_circle(struct credits *c);

/* Takes the lane whose turn it is by the tables, of those that can send. CREDITS_LANES: none can.
 */
unsigned credits_arbitrate(struct credits *c, uint32_t link);

/* Makes ->arbiter. 0 or -ENOMEM. */
int credits_arbiters_init(struct credits *c);

/* credits_run(): packets of a message, and blocks of a packet. */
uint32_t credits_packets(const struct credits *c);
static inline uint32_t credits_blocks(uint32_t bytes)
{
	return (bytes + CREDITS_BLOCK - 1) / CREDITS_BLOCK;
}

#endif
