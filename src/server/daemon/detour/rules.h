/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules of faults: which packets, and what happens to them. A rule is a line of text, as `umbel
 * fault add` and files of faults have it (umbel-fault(1)):
 *
 *     qp=h1:0x105 psn=4 drop          link=sw1:3 loss=1% seed=5         group=ff12::1 delay=5ms
 *
 * Words NAME=VALUE choose: all must fit. psn, nth and chance say which of the packets that fit,
 * count how many times at most. One more word is what happens. Of several rules that fit, each
 * counts the packet, and what happens is what all say together. The choice depends on the packets
 * alone, and on the seed: the same packets in the same order meet the same faults, but for rules
 * with a time.
 *
 * Or a rule is about calls of programs that use verbs, which are counted and chosen alike:
 *
 *     qp=h1:* post=ENOMEM nth=3       qp=h1:* wc=RETRY_EXC nth=10       host=h2 register=ENOMEM
 *     qp=h1:* made=SUCCESS nth=3
 *
 * Or about a link, which is bad from some time on or several times:
 *
 *     link=sw1:3 width=1x             link=sw1:3 errors=5 every=1s      link=h2:1 flap=20ms
 *
 * Or about management datagrams, which no other rule concerns:
 *
 *     mad=REP host=h1 nth=1 drop      mad=SubnAdmSet(MCMemberRecord) loss=10% seed=2
 *
 * Who writes a rule before there are queue pairs numbers these, and their packets, from the first
 * one on (daemon_rules_begins(), rounds.h):
 *
 *     qp=h1:#2 psn=+4/1000 round=1 drop
 *
 * No system call: what a rule says is done by others (detour.h, api/verbs/faults.h, bad_links.h,
 * late_mads.h).
 */
#ifndef DAEMON_RULES_H
#define DAEMON_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "control/message.h"
#include "daemon/detour/rounds.h"
#include "fabric/forwarding/mcast_path.h"
#include "wire/ib.h"
#include "wire/mad_name.h"
#include "wire/text.h"

struct fabric;
struct fabric_mcast_path;
struct fabric_port;

#define DAEMON_RULES 256 /* at one time */

/* The faults of rules, as bits: several rules may fit. */
enum daemon_fault {
	DAEMON_FAULT_DROP = 1,
	DAEMON_FAULT_CORRUPT = 2,   /* it comes, but its ICRC is wrong: dropped there */
	DAEMON_FAULT_DUPLICATE = 4, /* it comes twice */
	DAEMON_FAULT_REORDER = 8,   /* it comes behind the queue pair's next packet */
	DAEMON_FAULT_DELAY = 16,
	DAEMON_FAULT_ECN = 32, /* it is marked as one that met congestion */
	DAEMON_FAULT_NAK = 64, /* a request of RC: it is answered by a NAK, and not carried out */
	/* of calls: the bit of enum control_call_kind, behind those of packets */
	DAEMON_FAULT_CALL = 256,
	/* of links, behind those of calls */
	DAEMON_FAULT_WIDTH = 1 << 16,
	DAEMON_FAULT_SPEED = 1 << 17,
	DAEMON_FAULT_ERRORS = 1 << 18,     /* of symbols, that the rule's port receives */
	DAEMON_FAULT_FLAP = 1 << 19,       /* it is down for a time */
	DAEMON_FAULT_RECOVERIES = 1 << 20, /* from errors, without going down */
};
#define DAEMON_FAULT_CALL_OF(kind) ((unsigned)DAEMON_FAULT_CALL << (kind))

struct daemon_rule {
	TAILQ_ENTRY(daemon_rule) entry;
	unsigned number;
	char text[CONTROL_RULE_BYTES];
	/* the subjects of the rule; a zero, or NULL, chooses nothing */
	unsigned from_host, to_host; /* 1 + the number of the host */
	uint32_t from_qpn, to_qpn;
	/* not 0: the queue pair is the one of its host that so many begin from now on, itself
	 * included; when it has begun, its number is above */
	uint32_t from_nth, to_nth, from_begun, to_begun;
	struct fabric_port *link; /* packets that cross its link, either way */
	unsigned n_groups;        /* GIDs that the group may have */
	struct ib_gid group[WIRE_GROUP_GIDS];
	unsigned opcode; /* 1 + the opcode */
	bool has_mad;    /* it is about MADs of this kind */
	struct wire_mad_kind mad;
	/* which of these */
	uint32_t psn;        /* 1 + the PSN */
	bool psn_from_first; /* it counts from the connection's first PSN on */
	uint32_t psn_of;     /* then: it is that of each so many packets; 0: of all */
	uint32_t round;      /* as in rounds.h */
	uint64_t nth;        /* from 1 */
	uint64_t count;      /* at most; 0: no end */
	uint32_t chance;     /* of 2^32 - 1; 0: each */
	uint64_t random;     /* state of the generator */
	uint64_t added_ns, after_ns,
	        until_ns;  /* it holds from so long after it was added, to then */
	uint64_t every_ns; /* links: it comes again; 0: once */
	/* what */
	unsigned fault; /* enum daemon_fault */
	uint64_t delay_ns;
	uint8_t syndrome; /* of the NAK */
	int value;        /* of a call: errno, or enum ibv_wc_status */
	bool has_wr_id;   /* of a completion that is made up; else it is that of another one */
	uint64_t wr_id;
	uint8_t up_to;               /* of a link: the widths or speeds that are left */
	uint64_t errors, recoveries; /* likewise: each time */
	uint64_t down_ns;            /* likewise: for so long */
	/* of a link: bad_links.c's */
	bool holds;               /* width and speed: the link has no more; flap: it is down */
	uint64_t due_ns, ends_ns; /* when it comes next; when it holds no more */
	/* what there was */
	uint64_t fitted, fired;
};

struct daemon_rules {
	const struct fabric *f;
	uint8_t *behind; /* scratch, by switch and by HCA port: whether a packet crosses a link to
	                    there */
	TAILQ_HEAD(daemon_rule_list, daemon_rule) all;
	struct daemon_rule_list past; /* the last ones that had fired and were removed */
	unsigned n, n_past, last_number;
	unsigned n_calls, n_links, n_mads; /* of these are about calls, links, and MADs */
	struct daemon_rounds rounds;
	const struct daemon_rule
	        *losing[DAEMON_RULES]; /* that keep the packet that was judged last */
	unsigned n_losing;             /* from arriving, or copies of it */
};

/* A packet, for rules. */
struct daemon_rule_packet {
	const struct fabric_mcast_path *path;
	const struct fabric_port *from;
	const struct fabric_port
	        *to; /* which it reaches by the network; NULL: none of this fabric */
	uint32_t src_qpn, dest_qpn;
	uint8_t opcode;
	uint32_t psn;
	uint32_t first_psn; /* of RC and UC: the requests' first, sent or answered */
	bool begins;        /* as in rounds.h */
	bool leaves;        /* its connection is with another machine */
	uint32_t round;     /* set by daemon_rules_judge() */
	uint64_t now_ns;    /* of the clock that rules were added by */
};

struct daemon_verdict {
	unsigned faults; /* enum daemon_fault, ORed */
	uint64_t delay_ns;
	uint8_t syndrome;
	/* multicast: by HCA port index, 1 if its copy is dropped; to be freed. NULL: none is */
	uint8_t *cut;
};

void daemon_rules_init(struct daemon_rules *rules, const struct fabric *f);
void daemon_rules_fini(struct daemon_rules *rules);

/* Adds the rule that the text is. 0 and *@rule; -EINVAL, and @why says what is wrong; -ENOSPC;
 * -ENOMEM. */
int daemon_rules_add(struct daemon_rules *rules, const char *text, uint64_t now_ns,
                     struct daemon_rule **rule, char *why, size_t len);

/* Removes the rule with that number; 0: all. False: there is none. */
bool daemon_rules_remove(struct daemon_rules *rules, unsigned number);

/* A queue pair of that HCA begins to receive: rules that are about the n-th one count. */
void daemon_rules_begins(struct daemon_rules *rules, uint32_t hca, uint32_t qpn);

static inline bool daemon_rule_is_about_link(const struct daemon_rule *r)
{
	return r->fault >= DAEMON_FAULT_WIDTH;
}

/* Of what fits the rule: counts it. Whether the rule fires. */
bool daemon_rule_fires(const struct daemon_rules *rules, struct daemon_rule *r);

/* The rule that says what happens to a call of that kind (enum control_call_kind) by a program, to
 * @hca; @qpn 0: by no queue pair. NULL: nothing happens. Counts it. */
const struct daemon_rule *daemon_rules_judge_call(struct daemon_rules *rules, unsigned kind,
                                                  uint32_t hca, uint32_t qpn, uint64_t now_ns);

/* Decides on the MAD, of MAD_BYTES, from @from to @to, or if that is NULL to the network: drop,
 * delay or duplicate; counts it. */
struct daemon_verdict daemon_rules_judge_mad(struct daemon_rules *rules,
                                             const struct fabric_port *from,
                                             const struct fabric_port *to, const uint8_t *mad,
                                             uint64_t now_ns);

/* Where the packet that was judged last gets lost: a struct fabric_mishap's function and scratch.
 */
enum fabric_fate daemon_rules_fate(void *rules, const struct fabric_port *out);
uint8_t *daemon_rules_scratch(struct daemon_rules *rules);

/* Decides on the packet; counts it. */
struct daemon_verdict daemon_rules_judge(struct daemon_rules *rules,
                                         struct daemon_rule_packet *packet);

#endif
