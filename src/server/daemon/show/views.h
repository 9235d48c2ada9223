/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The views that commands ask for, `umbel show` above all: each writes JSON of what the fabric is
 * just now, part by part: a host, a switch, a group. Between two parts others have a turn, so the
 * fabric may change meanwhile. show.c has the table of views.
 */
#ifndef DAEMON_VIEWS_H
#define DAEMON_VIEWS_H

#include <stdlib.h>

#include "daemon/clients/client.h"
#include "daemon/core/chores.h"
#include "daemon/detour/detour.h"
#include "daemon/network/hosts.h"
#include "daemon/network/roce.h"
#include "daemon/show/show_json.h"
#include "daemon/subnet/subnet.h"

/* The parts of the daemon that the views look at. */
struct daemon_show {
	const char *name;
	uint64_t up_since; /* seconds since 1970 */
	struct fabric *f;
	struct daemon_loop *loop;
	const struct daemon_clients *clients;
	const struct daemon_objects *objects;
	const struct daemon_subnet *subnet;
	const struct daemon_hosts *hosts;
	const struct daemon_detour *detour;
	const struct daemon_routers *routers;
	const struct daemon_roce *roce;      /* NULL: the fabric is InfiniBand's */
	const struct fabric_node **switches; /* each at its index */
	LIST_HEAD(, show_stream) streams;
};

/* How far a view has come. */
struct show_at {
	uint32_t part;  /* from 0 */
	const char *of; /* the node, or key, that it is about; "": all */
	void *state;    /* a view's own; freed by free() at the end */
	uint32_t n;     /* likewise */
	bool collected; /* likewise */
	uint32_t work;  /* units (chores.h) that a view adds for work that leaves no text */
};

/* The view's state, zeroed the first time. NULL: no memory; @o has failed. */
static inline void *show_state(struct show_at *at, struct show_json *o, size_t bytes)
{
	if (!at->state)
		at->state = calloc(1, bytes);
	if (!at->state)
		o->failed = true;
	return at->state;
}

/* Adds "access", by enum ibv_access_flags and enum shm_key_access. */
void show_add_access(struct show_json *o, uint32_t access);

/* Each writes the next part. False: there was none left. */
bool daemon_show_status(const struct daemon_show *s, struct show_at *at, struct show_json *o);
bool daemon_show_host(const struct daemon_show *s, struct show_at *at, struct show_json *o);
bool daemon_show_node(const struct daemon_show *s, struct show_at *at, struct show_json *o);
bool daemon_show_group(const struct daemon_show *s, struct show_at *at, struct show_json *o);
bool daemon_show_ports(const struct daemon_show *s, struct show_at *at, struct show_json *o);
bool daemon_show_tables(const struct daemon_show *s, struct show_at *at, struct show_json *o);
bool daemon_show_counters(const struct daemon_show *s, struct show_at *at, struct show_json *o);

bool daemon_show_router(const struct daemon_show *s, struct show_at *at, struct show_json *o);
bool daemon_show_fault(const struct daemon_show *s, struct show_at *at, struct show_json *o);
bool daemon_show_past_fault(const struct daemon_show *s, struct show_at *at, struct show_json *o);
bool daemon_show_qps(const struct daemon_show *s, struct show_at *at, struct show_json *o);
bool daemon_show_connections(const struct daemon_show *s, struct show_at *at, struct show_json *o);
bool daemon_show_processes(const struct daemon_show *s, struct show_at *at, struct show_json *o);
bool daemon_show_mrs(const struct daemon_show *s, struct show_at *at, struct show_json *o);
bool daemon_show_key(const struct daemon_show *s, struct show_at *at, struct show_json *o);

/* Collects a slice of what senders have counted, by ->n. True: that was the last; ->n is 0 again.
 */
bool daemon_show_collect(const struct daemon_show *s, struct show_at *at);

/* Adds the meaning of each counter: its text by its name. */
bool daemon_show_counter_texts(const struct daemon_show *s, struct show_at *at,
                               struct show_json *o);
/* Likewise, of those counters alone that count losses. */
bool daemon_show_loss_texts(const struct daemon_show *s, struct show_at *at, struct show_json *o);

#endif
