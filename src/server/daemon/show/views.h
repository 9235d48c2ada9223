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

/* Writes the next part of a view. False: there was none left. */
typedef bool daemon_view(const struct daemon_show *s, struct show_at *at, struct show_json *o);

daemon_view daemon_show_status, daemon_show_host, daemon_show_node, daemon_show_group,
        daemon_show_ports, daemon_show_tables, daemon_show_counters, daemon_show_router,
        daemon_show_fault, daemon_show_past_fault, daemon_show_qps, daemon_show_connections,
        daemon_show_processes, daemon_show_mrs, daemon_show_key;
/* The meaning of each counter: its text by its name; and of those alone that count losses. */
daemon_view daemon_show_counter_texts, daemon_show_loss_texts;

/* Collects a slice of what senders have counted, by ->n. True: that was the last; ->n is 0 again.
 */
bool daemon_show_collect(const struct daemon_show *s, struct show_at *at);

#endif
