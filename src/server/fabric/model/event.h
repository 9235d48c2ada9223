/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of the fabric, for listeners (`umbel monitor`). The code that makes something happen says
 * so here, whatever its folder; it does not know the listeners. While there are none, that costs a
 * load and a branch, and nothing is written.
 */
#ifndef FABRIC_EVENT_H
#define FABRIC_EVENT_H

#include <sys/types.h>

#include "fabric/model/fabric.h"

struct wire_mcmember;

/* Members that are zero or NULL are not told. Nobody keeps the pointers. */
struct fabric_event {
	const char *kind;               /* as listeners are told; umbel-monitor(1) has them all */
	const char *what;               /* what has happened, if the kind does not say it */
	const struct fabric_port *port; /* where; with tells_peer, and at the link's other end */
	const struct fabric_node *node;
	bool tells_peer, tells_state; /* tells_state: the port's */
	const char *host;
	const struct ib_gid *mgid;
	uint16_t mlid;
	uint8_t join_state;                /* of enum ib_join_state: it was added or taken away */
	const struct wire_mcmember *group; /* what it is like */
	uint32_t qpn;
	pid_t pid;
	const char *program, *interface;
	const char *key, *value; /* of a setting */
	uint32_t number;         /* of a rule of faults */
	uint64_t fired;          /* how often it has */
	const char *rule;
	const char *engine; /* of routing */
	uint64_t took_us;
};

static inline bool fabric_has_listeners(const struct fabric *f)
{
	return f->listener.hear;
}

static inline void fabric_tell(const struct fabric *f, const struct fabric_event *event)
{
	if (fabric_has_listeners(f))
		f->listener.hear(f->listener.arg, event);
}

/* The process that has made something happen is about to hear that it has. */
static inline void fabric_pass_on_events(const struct fabric *f)
{
	if (fabric_has_listeners(f))
		f->listener.pass_on(f->listener.arg);
}

/* The port's state has changed. */
static inline void fabric_tell_port(const struct fabric *f, const struct fabric_port *p)
{
	fabric_tell(f, &(struct fabric_event){ .kind = "port", .port = p, .tells_state = true });
}

/* Of a queue pair of an HCA; @mgid: with that group, or NULL. */
static inline void fabric_tell_qp(const struct fabric *f, uint32_t hca, uint32_t qpn,
                                  const char *what, const struct ib_gid *mgid)
{
	fabric_tell(f, &(struct fabric_event){ .kind = "qp",
	                                       .what = what,
	                                       .host = shm_hca_at(f->region, hca)->host,
	                                       .qpn = qpn,
	                                       .mgid = mgid });
}

#endif
