/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events for readers: see monitor.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "daemon/core/feed.h"
#include "daemon/show/monitor.h"
#include "fabric/model/event.h"
#include "wire/sa.h"

/* So few that to write them all does not take a turn of the loop longer than others may wait. */
#define BYTES (256 << 10) /* that wait for one reader */

struct monitor {
	LIST_ENTRY(monitor) entry;
	struct daemon_monitors *all;
	struct daemon_feed feed; /* of lines */
	uint64_t lost;           /* events, since the reader was told last */
};

static void hear(void *arg, const struct fabric_event *e);
static void pass_on(void *arg);

/* Has hear() called, if there is somebody to write for. */
static void listen_or_not(struct daemon_monitors *all)
{
	all->f->listener = (struct fabric_listener){ .hear = all->n ? hear : NULL,
		                                     .pass_on = pass_on,
		                                     .arg = all };
}

static void monitor_free(struct monitor *m)
{
	LIST_REMOVE(m, entry);
	m->all->n--;
	listen_or_not(m->all);
	daemon_feed_close(&m->feed);
	free(m);
}

/* ---- an event as a line ---- */

static void begin_line(struct show_json *o, const char *kind)
{
	o->n = 0;
	o->after = o->failed = false;
	show_open(o, NULL, '{');
	show_add_u64(o, "time_ns", base_real_ns());
	show_add_string(o, "event", kind);
}

static void end_line(struct show_json *o)
{
	show_close(o, '}');
	show_close(o, '\n');
}

static void add_some(struct show_json *o, const char *key, const char *text)
{
	if (text)
		show_add_string(o, key, text);
}

static void add_port(struct show_json *o, const struct fabric *f, const struct fabric_event *e)
{
	const struct fabric_port *p = e->port;

	if (p->node->type == FABRIC_HCA)
		show_add_text(o, "host", "%s", shm_hca_at(f->region, p->node->hca)->host);
	show_add_string(o, "node", p->node->name);
	show_add_u64(o, "port", p->num);
	if (e->mgid)
		show_add_gid(o, "port_gid", &shm_port_at(f->region, p->index)->gid[0]);
	if (e->tells_peer && p->peer) {
		show_add_string(o, "peer", p->peer->node->name);
		show_add_u64(o, "peer_port", p->peer->num);
	}
	if (e->tells_state)
		show_add_string(o, "state", show_state_name(p->state));
}

/* As the view "groups" has it. */
static void add_group(struct show_json *o, const struct wire_mcmember *group)
{
	show_add_text(o, "qkey", "0x%08x", group->qkey);
	show_add_text(o, "pkey", "0x%04x", group->pkey);
	show_add_u64(o, "mtu", IB_MTU_BYTES(group->mtu));
	show_add_u64(o, "rate", group->rate);
	show_add_u64(o, "sl", group->sl);
	if (group->tclass)
		show_add_u64(o, "tclass", group->tclass);
	if (group->flow_label)
		show_add_u64(o, "flow_label", group->flow_label);
}

static void add_rule(struct show_json *o, const struct fabric_event *e)
{
	if (e->number)
		show_add_u64(o, "number", e->number);
	if (e->fired)
		show_add_u64(o, "fired", e->fired);
	add_some(o, "rule", e->rule);
}

static void add_program(struct show_json *o, const struct fabric_event *e)
{
	if (e->pid)
		show_add_u64(o, "pid", (uint64_t)e->pid);
	add_some(o, "program", e->program);
	add_some(o, "uses", e->interface);
}

static void write_line(struct show_json *o, const struct fabric *f, const struct fabric_event *e)
{
	begin_line(o, e->kind);
	add_some(o, "what", e->what);
	add_some(o, "host", e->host);
	if (e->port)
		add_port(o, f, e);
	if (e->node)
		show_add_string(o, "node", e->node->name);
	add_program(o, e);
	if (e->qpn)
		show_add_text(o, "qpn", "0x%06x", e->qpn);
	if (e->mgid)
		show_add_gid(o, "mgid", e->mgid);
	if (e->mlid)
		show_add_text(o, "mlid", "0x%04x", e->mlid);
	if (e->join_state)
		show_add_string(o, "join_state", show_join_name(e->join_state));
	if (e->group)
		add_group(o, e->group);
	add_some(o, "key", e->key);
	add_some(o, "value", e->value);
	add_rule(o, e);
	add_some(o, "engine", e->engine);
	if (e->took_us)
		show_add_u64(o, "took_us", e->took_us);
	end_line(o);
}

/* ---- what waits ---- */

/* False: there is no room, or was no memory for the line. */
static bool append(struct monitor *m, const struct show_json *line)
{
	if (line->failed || !daemon_feed_fits(&m->feed, line->n))
		return false;
	daemon_feed_put(&m->feed, line->text, line->n);
	return true;
}

/* If the reader has lost events, the next line says how many. False: there is no room for it. */
static bool tell_lost(struct monitor *m)
{
	struct show_json *o = &m->all->line;

	if (!m->lost)
		return true;
	begin_line(o, "lost");
	show_add_u64(o, "count", m->lost);
	end_line(o);
	if (!append(m, o))
		return false;
	m->lost = 0;
	return true;
}

/* A reader that has lost events gets no more until it has read those that wait: it loses few long
 * runs, not many short ones. */
static bool is_behind(const struct monitor *m)
{
	return m->lost;
}

static void hear(void *arg, const struct fabric_event *e)
{
	struct daemon_monitors *all = arg;
	bool written = false;
	struct monitor *m;

	LIST_FOREACH(m, &all->all, entry)
	{
		if (!is_behind(m) && !written) {
			write_line(&all->line, all->f, e);
			written = true;
		}
		if (is_behind(m) || !append(m, &all->line))
			m->lost++;
	}
}

/* ---- sending ---- */

/* Sends what there is room for. False: the reader is gone. */
static bool flush(struct monitor *m)
{
	bool there = daemon_feed_send(&m->feed);

	if (there && m->lost && !m->feed.used && tell_lost(m))
		there = daemon_feed_send(&m->feed);
	if (!there)
		monitor_free(m);
	return there;
}

void daemon_monitors_flush(struct daemon_monitors *all)
{
	struct monitor *m, *next;

	for (m = LIST_FIRST(&all->all); m; m = next) {
		next = LIST_NEXT(m, entry);
		if ((m->feed.used || m->lost) && !m->feed.full)
			flush(m);
	}
}

static void pass_on(void *arg)
{
	daemon_monitors_flush(arg);
}

/* The reader has nothing to say: it takes what comes, or is gone. */
static void on_event(struct daemon_source *source, uint32_t events)
{
	struct monitor *m = container_of(source, struct monitor, feed.source);

	if (events & (EPOLLHUP | EPOLLERR | EPOLLIN))
		monitor_free(m);
	else
		flush(m);
}

/* ---- requests ---- */

static int monitor(struct daemon_call *call)
{
	struct daemon_monitors *all = call->module;
	struct monitor *m;
	int reader, ret;

	if (all->n == DAEMON_MONITORS)
		return -EUSERS;
	m = malloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	*m = (struct monitor){ .all = all };
	ret = daemon_feed_open(&m->feed, all->loop, BYTES, on_event, &reader);
	if (ret) {
		free(m);
		return ret;
	}
	LIST_INSERT_HEAD(&all->all, m, entry);
	all->n++;
	listen_or_not(all);
	daemon_call_give(call, reader);
	return 0;
}

static const struct daemon_request requests[] = {
	{ .type = CONTROL_MONITOR, .is_owners = true, .who = DAEMON_CLI, .serve = monitor },
};

void daemon_monitors_init(struct daemon_monitors *all, struct daemon_requests *table)
{
	LIST_INIT(&all->all);
	daemon_requests_add(table, requests, ARRAY_SIZE(requests), all);
}

void daemon_monitors_stop(struct daemon_monitors *all)
{
	struct monitor *m;

	while ((m = LIST_FIRST(&all->all)))
		if (flush(m))
			monitor_free(m);
	show_json_fini(&all->line);
}
