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
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "daemon/show/monitor.h"
#include "fabric/model/event.h"
#include "wire/sa.h"

/* So few that to write them all does not take a turn of the loop longer than others may wait. */
#define BYTES (256 << 10) /* that wait for one reader */

struct monitor {
	LIST_ENTRY(monitor) entry;
	struct daemon_monitors *all;
	int fd;
	struct daemon_source source;
	bool full;          /* the socket has no room: we hear when it has */
	uint64_t lost;      /* events, since the reader was told last */
	size_t first, used; /* bytes of the ring */
	char ring[BYTES];
};

static void hear(void *arg, const struct fabric_event *e);

/* Has hear() called, if there is somebody to write for. */
static void listen_or_not(struct daemon_monitors *all)
{
	all->f->listener = (struct fabric_listener){ .hear = all->n ? hear : NULL, .arg = all };
}

static void monitor_free(struct monitor *m)
{
	LIST_REMOVE(m, entry);
	m->all->n--;
	listen_or_not(m->all);
	daemon_source_stop(&m->source);
	close(m->fd);
	free(m);
}

/* ---- an event as a line ---- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void begin_line(struct show_json *o, const char *kind)
{
	o->n = 0;
	o->after = o->failed = false;
	show_open(o, NULL, '{');
	show_add_u64(o, "time_ns", now_ns());
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
		show_add_text(o, "host", "%s", f->region->hcas[p->node->hca].host);
	show_add_string(o, "node", p->node->name);
	show_add_u64(o, "port", p->num);
	if (e->mgid)
		show_add_gid(o, "port_gid", &f->region->ports[p->index].gid[0]);
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

/* ---- the ring ---- */

/* Copies the line behind what is there. False: there is no room, or was no memory. */
static bool append(struct monitor *m, const struct show_json *line)
{
	size_t at = (m->first + m->used) % BYTES;
	size_t part = line->n < BYTES - at ? line->n : BYTES - at;

	if (line->failed || m->used + line->n > BYTES)
		return false;
	memcpy(m->ring + at, line->text, part);
	memcpy(m->ring, line->text + part, line->n - part);
	m->used += line->n;
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

/* Who has lost something gets nothing more until it has read what waits: it loses few long runs,
 * not many short ones. */
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

static void wait_for_room(struct monitor *m, bool full)
{
	if (m->full == full)
		return;
	m->full = full;
	daemon_source_change(&m->source, full ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Sends what there is room for. False: the reader is gone. */
static bool flush(struct monitor *m)
{
	size_t bytes;
	ssize_t n = 0;

	do {
		if (!m->used)
			tell_lost(m);
		bytes = m->used < BYTES - m->first ? m->used : BYTES - m->first;
		if (bytes)
			n = send(m->fd, m->ring + m->first, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != ENOBUFS && errno != EINTR) {
			monitor_free(m);
			return false;
		}
		if (n > 0) {
			m->first = (m->first + (size_t)n) % BYTES;
			m->used -= (size_t)n;
		}
	} while (n > 0 && (size_t)n == bytes && (m->used || m->lost));
	wait_for_room(m, m->used);
	return true;
}

void daemon_monitors_flush(struct daemon_monitors *all)
{
	struct monitor *m, *next;

	for (m = LIST_FIRST(&all->all); m; m = next) {
		next = LIST_NEXT(m, entry);
		if ((m->used || m->lost) && !m->full)
			flush(m);
	}
}

/* The reader has nothing to say: it takes what comes, or is gone. */
static void on_event(struct daemon_source *source, uint32_t events)
{
	struct monitor *m = container_of(source, struct monitor, source);

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
	int pair[2], ret;

	if (all->n == DAEMON_MONITORS)
		return -EUSERS;
	m = malloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	memset(m, 0, offsetof(struct monitor, ring));
	ret = -EMFILE;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		goto err_free;
	m->all = all;
	m->fd = pair[1];
	m->source.ready = on_event;
	ret = daemon_source_watch(all->loop, &m->source, m->fd, EPOLLIN);
	if (ret)
		goto err_pair;
	LIST_INSERT_HEAD(&all->all, m, entry);
	all->n++;
	listen_or_not(all);
	daemon_call_give(call, pair[0]);
	return 0;
err_pair:
	close(pair[0]);
	close(pair[1]);
err_free:
	free(m);
	return ret;
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
