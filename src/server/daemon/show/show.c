/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's views of its fabric, as JSON text: see show.h. One view a subject, in a table. The
 * command line makes tables of it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "daemon/core/pair.h"
#include "daemon/show/list_objects.h"
#include "daemon/show/show.h"

#define SLICE 32768 /* bytes of text, after which others have a turn */

struct view {
	const char *name;
	const char *open, *close; /* around the parts */
	daemon_view *part;
	/* Instead of parts: another process writes it. Gives the reader's end. 0 or -errno. */
	int (*give)(const struct daemon_show *s, struct daemon_call *call);
	bool of_key; /* what it is of is no switch */
};

/* The daemon does not know the interfaces: the keeper of the hosts writes this view. */
static int give_interfaces(const struct daemon_show *s, struct daemon_call *call)
{
	int fd, ret = daemon_hosts_show(s->hosts, &fd);

	if (!ret)
		daemon_call_give(call, fd);
	return ret;
}

static const struct view views[] = {
	{ "status", "", "", .part = daemon_show_status },
	{ "hosts", "[", "]", .part = daemon_show_host },
	{ "topology", "{\"nodes\":[", "]}", .part = daemon_show_node },
	{ "groups", "[", "]", .part = daemon_show_group },
	{ "routes", "[", "]", .part = daemon_show_tables },
	{ "ports", "[", "]", .part = daemon_show_ports },
	{ "counters", "{\"ports\":[", "]}", .part = daemon_show_counters },
	{ "faults", "[", "]", .part = daemon_show_fault },
	{ "past_faults", "[", "]", .part = daemon_show_past_fault },
	{ "routers", "[", "]", .part = daemon_show_router },
	{ "qps", "[", "]", .part = daemon_show_qps },
	{ "connections", "[", "]", .part = daemon_show_connections },
	{ "processes", "[", "]", .part = daemon_show_processes },
	{ "mrs", "[", "]", .part = daemon_show_mrs },
	{ "key", "[", "]", .part = daemon_show_key, .of_key = true },
	{ "counter_texts", "", "", .part = daemon_show_counter_texts },
	{ "loss_texts", "", "", .part = daemon_show_loss_texts },
	{ .name = "interfaces", .give = give_interfaces },
};

/* A view on its way to a client. */
struct show_stream {
	LIST_ENTRY(show_stream) entry;
	const struct daemon_show *s;
	const struct view *view;
	char of[FABRIC_NAME];
	uint32_t client;
	int fd;
	struct daemon_source source;
	struct show_at at;
	struct show_json text;
	size_t sent; /* of the text */
	bool opened, closed;
};

static void stream_free(struct show_stream *t)
{
	LIST_REMOVE(t, entry);
	daemon_source_stop(&t->source);
	daemon_loop_close_end(t->s->loop, t->fd);
	show_json_fini(&t->text);
	free(t->at.state);
	free(t);
}

/* Text that is not the view's. */
static void put(struct show_stream *t, const char *text)
{
	bool after = t->text.after;

	while (*text)
		show_close(&t->text, *text++);
	t->text.after = after;
}

/* Writes parts until there is a slice of text, or of work, or no part left. */
static void fill(struct show_stream *t)
{
	if (!t->opened)
		put(t, t->view->open);
	t->opened = true;
	t->at.work = 0;
	while (!t->closed && t->text.n < SLICE && t->at.work < DAEMON_SLICE) {
		if (t->view->part(t->s, &t->at, &t->text)) {
			t->at.part++;
			continue;
		}
		put(t, t->view->close);
		t->closed = true;
	}
}

/* Sends a slice. 0: there is more to come; 1: that was the last; -errno. */
static int turn(struct show_stream *t)
{
	ssize_t n;

	if (t->sent == t->text.n) {
		t->text.n = t->sent = 0;
		fill(t);
	}
	if (t->text.failed)
		return -ENOMEM;
	n = send(t->fd, t->text.text + t->sent, t->text.n - t->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	t->sent += (size_t)n;
	return t->closed && t->sent == t->text.n;
}

/* There is room in the socket, or the reader has gone. */
static void on_room(struct daemon_source *source, uint32_t events)
{
	struct show_stream *t = container_of(source, struct show_stream, source);

	if ((events & (EPOLLHUP | EPOLLERR)) || turn(t))
		stream_free(t);
}

/* A client reads one view at a time: an older one of the same client ends. */
static void end_older(const struct daemon_show *s, uint32_t client)
{
	struct show_stream *t;

	LIST_FOREACH(t, &s->streams, entry)
	{
		if (t->client != client)
			continue;
		stream_free(t);
		return;
	}
}

/* Makes the stream and its first slice; *@fd: the reader's end. A short view is complete then. */
static int start(struct daemon_show *s, const struct view *view, const struct control_show *req,
                 struct daemon_call *call)
{
	struct show_stream *t = calloc(1, sizeof(*t));
	int pair[2], ret;

	if (!t)
		return -ENOMEM;
	if (daemon_pair(s->loop, SOCK_STREAM, pair)) {
		free(t);
		return -EMFILE;
	}
	t->source.ready = on_room;
	t->s = s;
	t->view = view;
	t->client = call->client->id;
	t->fd = pair[0];
	memcpy(t->of, req->of, sizeof(t->of));
	t->at.of = t->of;
	LIST_INSERT_HEAD(&s->streams, t, entry);
	ret = turn(t);
	if (!ret)
		ret = daemon_source_watch(s->loop, &t->source, t->fd, EPOLLOUT);
	if (ret < 0)
		close(pair[1]);
	else
		daemon_call_give(call, pair[1]);
	if (ret)
		stream_free(t);
	return ret < 0 ? ret : 0;
}

static bool is_node(const struct daemon_show *s, const char *name)
{
	for (unsigned i = 0; i < s->f->n_switches; i++)
		if (!strcmp(s->switches[i]->name, name))
			return true;
	return false;
}

static const struct view *find_view(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(views); i++)
		if (!strcmp(views[i].name, name))
			return &views[i];
	return NULL;
}

static int show(struct daemon_call *call)
{
	struct daemon_show *s = call->module;
	struct control_show req = *(const struct control_show *)call->body;
	const struct view *view;

	static_assert(sizeof(req.of) == FABRIC_NAME, "a node's name fits the request");
	req.what[sizeof(req.what) - 1] = req.of[sizeof(req.of) - 1] = '\0';
	end_older(s, call->client->id);
	view = find_view(req.what);
	if (*req.of && !(view && view->of_key) && !is_node(s, req.of))
		return -ENOENT;
	if (!view)
		return -EINVAL;
	return view->give ? view->give(s, call) : start(s, view, &req, call);
}

static const struct daemon_request requests[] = {
	DAEMON_REQUEST(SHOW, control_show, DAEMON_ANYBODY, show),
};

int daemon_show_init(struct daemon_show *s, struct daemon_requests *all)
{
	LIST_INIT(&s->streams);
	s->switches = calloc(s->f->n_switches + 1, sizeof(struct fabric_node *));
	if (!s->switches)
		return -ENOMEM;
	for (unsigned i = 0; i < s->f->n_nodes; i++)
		if (s->f->node[i]->type == FABRIC_SWITCH)
			s->switches[s->f->node[i]->index] = s->f->node[i];
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), s);
	daemon_list_objects_init(s, all);
	return 0;
}
