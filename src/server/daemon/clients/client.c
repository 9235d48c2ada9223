/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clients: accept, check the user, read a request, reply. See client.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/newer_libc.h"
#include "base/reason.h"
#include "base/util.h"
#include "daemon/clients/client.h"
#include "fabric/forwarding/flow.h"
#include "fabric/model/event.h"

#define MAX_CLIENTS (1u << 20)

#define AGAIN_NS 100000000ull /* until a daemon without descriptors listens again */

#ifndef SO_PEERPIDFD /* a C library older than Linux 6.5 */
#define SO_PEERPIDFD 77
#endif

/* Datagrams of one client that are served before others have their turn, and for how long. */
#define TURN    16
#define TURN_NS 500000

/* ---- hello ---- */

static void on_next_turn(struct base_timer *t);
static void on_request(struct daemon_source *s, uint32_t events);

/* How many of the daemon's descriptors it has. */
static void count_descriptors(struct daemon_client *c)
{
	unsigned n = c->n_objects + (c->sock >= 0) + daemon_source_is_watched(&c->exit_source);

	for (unsigned kind = 0; kind < CONTROL_MEMORY_KINDS; kind++)
		n += c->holds->memory_fd[kind] >= 0;
	daemon_shares_count(&c->all->shares, &c->member, n);
}

static void close_source(struct daemon_source *s)
{
	if (!daemon_source_is_watched(s))
		return;
	daemon_source_stop(s);
	close(s->fd);
}

/*
 * A child that the process forked may hold the connection open beyond its death. The
 * objects then stay, as with a kernel's file; but nobody else may wait for what it was
 * about to do.
 */
static void on_exit_of_process(struct daemon_source *s, uint32_t events)
{
	struct daemon_client *c = container_of(s, struct daemon_client, exit_source);

	(void)events;
	daemon_objects_undo(c->all->objects, c->holds);
	close_source(&c->exit_source);
	count_descriptors(c);
	if (c->posts.ring) /* it may have died before it told us */
		base_timer_set_in(&c->all->loop->timers, &c->next_turn, 0, on_next_turn);
}

/* A descriptor of the client's process, -1 if there is none. The kernel has it with the connection,
 * whatever PID namespace the process is in; before Linux 6.5 only one that has a PID here is found.
 */
static int open_process(const struct daemon_client *c)
{
	int fd = -1;
	socklen_t len = sizeof(fd);

	if (!getsockopt(c->sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len))
		return fd;
	return c->pid > 0 ? pidfd_open(c->pid, 0) : -1;
}

static void watch_process(struct daemon_client *c)
{
	int fd = open_process(c);

	if (fd < 0)
		return; /* it is in another namespace: the end of its connection has to do */
	c->exit_source.ready = on_exit_of_process;
	c->exit_source.patient = EPOLLIN;
	if (daemon_source_watch(c->all->loop, &c->exit_source, fd, EPOLLIN))
		close(fd);
}

/* Its name is kept: when it is gone, nobody has it. */
static void tell(struct daemon_client *c, const char *what)
{
	const struct fabric *f = c->all->f;

	if (!daemon_client_is_program(c) || !fabric_has_listeners(f))
		return;
	if (!*c->program && !daemon_program_name(c->pid, c->program))
		*c->program = '\0';
	fabric_tell(f, &(struct fabric_event){
	                       .kind = "program",
	                       .what = what,
	                       .host = c->host_index < 0 ? NULL : f->host[c->host_index].name,
	                       .pid = c->pid > 0 ? c->pid : 0,
	                       .program = *c->program ? c->program : NULL,
	                       .interface = c->role == CONTROL_ROLE_VERBS ? "verbs" : "umad" });
}

static int find_host(struct daemon_client *c, const char *host)
{
	c->host_index = -1;
	if (!*host)
		return 0;
	c->host_index = fabric_host_find(c->all->f, host);
	return c->host_index < 0 ? -EHOSTUNREACH : 0;
}

/* The shared memory. */
static int give_region(struct daemon_call *call, const struct shm_region *r)
{
	int ret = daemon_call_give_copy(call, r->part.control.fd);

	if (!ret)
		ret = daemon_call_give_copy(call, r->part.data.fd);
	return ret ? -EMFILE : 0;
}

/* A program has the same number each time that programs start in the same order. */
static uint32_t number_program(struct daemon_client *c)
{
	uint32_t *n = c->host_index < 0 ? &c->all->n_programs
	                                : &c->all->f->host[c->host_index].n_programs;

	return c->role == CONTROL_ROLE_VERBS ? (*n)++ : 0;
}

static int hello(struct daemon_call *call)
{
	struct control_hello req = *(const struct control_hello *)call->body;
	struct daemon_client *c = call->client;
	struct control_hello_reply *rep;
	int ret;

	req.host[sizeof(req.host) - 1] = '\0';
	if (c->greeted || req.version != CONTROL_VERSION || req.role > CONTROL_ROLE_SYSFS)
		return -EPROTO;
	ret = find_host(c, req.host);
	if (ret)
		return ret;
	c->role = req.role;
	c->greeted = true;
	if (c->role == CONTROL_ROLE_VERBS)
		watch_process(c);
	tell(c, "connected");
	rep = daemon_call_reply(call, sizeof(*rep));
	*rep = (struct control_hello_reply){ .client = c->id,
		                             .host_index = c->host_index,
		                             .number = number_program(c) };
	return c->role == CONTROL_ROLE_CLI ? 0 : give_region(call, c->all->f->region);
}

static int stop(struct daemon_call *call)
{
	struct daemon_clients *all = call->client->all;

	daemon_loop_end(all->loop, 0);
	return all->stopping ? all->stopping(all->stopping_arg) : 0;
}

static int open_posts(struct daemon_call *call)
{
	struct daemon_client *c = call->client;
	int fd, ret;

	if (c->posts.ring)
		return -EBUSY;
	ret = control_posts_make(&c->posts, &fd);
	if (!ret)
		daemon_call_give(call, fd);
	return ret;
}

/* The requests that were posted have been served ahead of this one. */
static int posted(struct daemon_call *call)
{
	(void)call;
	return 0;
}

static const struct daemon_request requests[] = {
	DAEMON_REQUEST(HELLO, control_hello, DAEMON_STRANGER | DAEMON_ANYBODY, hello),
	{ .type = CONTROL_OPEN_POSTS, .who = DAEMON_VERBS, .serve = open_posts },
	{ .type = CONTROL_POSTED, .who = DAEMON_VERBS, .serve = posted },
	{ .type = CONTROL_STOP,
	  .bytes = DAEMON_ANY_BYTES,
	  .is_owners = true,
	  .who = DAEMON_CLI,
	  .serve = stop },
};

/* ---- requests ---- */

/* A request is refused: the reply says why, if that is known. */
static void tell_why(struct control_packet *reply)
{
	char why[BASE_REASON_MAX];

	base_reason_take(reply->header.status, why);
	reply->header.bytes = (uint32_t)strlen(why);
	memcpy(reply->body, why, reply->header.bytes);
}

/* How many objects with a descriptor there are more after a request: each is one that the daemon
 * keeps open. */
static int objects_by(uint32_t type)
{
	switch (type) {
	case CONTROL_OPEN_HCA:
	case CONTROL_CREATE_CHANNEL:
	case CONTROL_CM_CREATE_CHANNEL:
		return 1;
	case CONTROL_CLOSE_HCA:
	case CONTROL_DESTROY_CHANNEL:
	case CONTROL_CM_DESTROY_CHANNEL:
		return -1;
	default:
		return 0;
	}
}

/* Whether the daemon may have one descriptor more after it. */
static bool takes_descriptor(uint32_t type)
{
	return objects_by(type) > 0 || type == CONTROL_HELLO || type == CONTROL_OFFER_MEMORY;
}

static int serve_counted(struct daemon_client *c, uint32_t who, struct daemon_call *call)
{
	const struct control_header *h = &call->request->header;
	const bool is_settled = c->settled || !h->serial; /* or nobody waits for it */
	const struct daemon_share *full = NULL;
	int ret;

	c->settled = false;
	if (takes_descriptor(h->type))
		full = daemon_shares_full(&c->all->shares, &c->member);
	if (full && !is_settled)
		return DAEMON_SERVE_SETTLED;
	if (full)
		return daemon_share_refuses(full, h->type == CONTROL_HELLO ? -ENFILE : -EMFILE);
	ret = daemon_requests_serve(&c->all->requests, who, call);
	if (!ret)
		c->n_objects += (unsigned)objects_by(h->type);
	count_descriptors(c);
	return ret;
}

/* Those of a request that nobody has kept. */
static void close_fds(struct daemon_client *c, struct control_packet *p)
{
	while (p->n_fds)
		daemon_loop_close(c->all->loop, p->fd[--p->n_fds]);
}

/* Those of a reply are its own, but for what a client offers: that is its holder's. */
static void close_reply(struct control_packet *reply)
{
	if (reply->header.type == CONTROL_GET_MEMORY)
		reply->n_fds = 0;
	else
		control_close_fds(reply);
}

/* Makes @reply, which is all zero. */
static void serve(struct daemon_client *c, const struct control_packet *request,
                  struct control_packet *reply)
{
	struct daemon_call call = {
		.client = c, .request = request, .reply = reply, .collected = c->collected
	};
	uint32_t who =
	        (c->greeted ? 1u << c->role : DAEMON_STRANGER) | (c->is_owner ? DAEMON_OWNER : 0);

	c->collected = false;
	reply->header.type = request->header.type;
	reply->header.serial = request->header.serial;
	reply->header.status = serve_counted(c, who, &call);
	if (reply->header.status < 0) {
		tell_why(reply);
		close_reply(reply);
	}
}

void daemon_client_serve(void *client, struct control_packet *p)
{
	struct control_packet reply = { 0 };

	serve(client, p, &reply);
	if (reply.header.status == DAEMON_REPLY_FOLLOWED)
		reply.header.status = 0; /* the daemon cannot wait for itself */
	if (reply.header.type == CONTROL_GET_MEMORY && reply.n_fds) {
		/* which closes what it gets */
		reply.fd[0] = fcntl(reply.fd[0], F_DUPFD_CLOEXEC, 0);
		if (reply.fd[0] < 0) {
			reply.header.status = -errno;
			reply.n_fds = 0;
		}
	}
	*p = reply;
}

/* The kernel lets a user have only so many descriptors on their way (unix(7)). The client is told.
 */
static int send_without_descriptors(struct daemon_client *c, struct control_packet *reply)
{
	close_reply(reply);
	reply->header.status =
	        base_because(-ETOOMANYREFS, "the daemon's user has more descriptors on their way "
	                                    "through sockets than the daemon may have open");
	tell_why(reply);
	return control_send(c->sock, reply);
}

static void send_reply(struct daemon_client *c, struct control_packet *reply)
{
	int ret = 0;

	if (reply->header.serial) { /* without one nobody waits for it */
		fabric_pass_on_events(c->all->f);
		ret = control_send(c->sock, reply);
	}
	if (ret == -ETOOMANYREFS)
		ret = send_without_descriptors(c, reply);
	close_reply(reply);
	if (ret) /* it does not read its replies, or is gone */
		daemon_client_free(c);
}

/* Again: nothing of it waits. */
static void hear(struct daemon_client *c)
{
	daemon_source_stop(&c->source);
	c->source.ready = on_request;
	if (daemon_source_watch(c->all->loop, &c->source, c->sock, EPOLLIN))
		base_log_warning(daemon, "no memory: a client is not heard any more");
}

static void on_collected(struct fabric *f, struct fabric_reader *r);
static void on_settled(struct daemon_source *s, uint32_t events);

/* Has on_settled() called behind all clients that have hung up by now; it is not heard meanwhile. 0
 * or -errno. */
static int settle(struct daemon_client *c)
{
	daemon_source_stop(&c->source);
	c->source.ready = on_settled;
	return daemon_source_watch(c->all->loop, &c->source, c->sock, EPOLLOUT);
}

/* Both packets are the waiting request's from now on, with their descriptors. 0 or -errno. */
static int serve_later(struct daemon_client *c, const struct control_packet *request,
                       const struct control_packet *reply)
{
	struct daemon_later *l = malloc(sizeof(*l));

	if (!l)
		return -ENOMEM;
	*l = (struct daemon_later){ .client = c,
		                    .wait = (enum daemon_wait)reply->header.status,
		                    .request = *request,
		                    .reply = *reply };
	l->change = c->all->f->flows->changes.added;
	l->reply.header.status = 0;
	if (l->wait == DAEMON_SERVE_SETTLED && settle(c)) {
		free(l);
		hear(c);
		return -ENOMEM;
	}
	c->later = l;
	if (l->wait == DAEMON_SERVE_SETTLED)
		return 0;
	if (l->wait == DAEMON_SERVE_COLLECTED)
		fabric_collect_wait(c->all->f, &l->reader, on_collected);
	else if (l->wait == DAEMON_REPLY_FOLLOWED)
		TAILQ_INSERT_TAIL(&c->all->following, l, entry);
	else
		TAILQ_INSERT_TAIL(&c->all->waiting, l, entry);
	daemon_source_stop(&c->source);
	return 0;
}

/* It is in no queue any more. */
static void end_wait(struct daemon_client *c)
{
	free(c->later);
	c->later = NULL;
	hear(c);
}

/* Serves the request, whose descriptors it closes, and replies, or has it wait. @failed: the status
 * of one ahead of it, if that is not 0; it is not served then. */
static void answer(struct daemon_client *c, struct control_packet *request, int failed)
{
	struct control_packet reply = { 0 };

	if (failed)
		reply.header = (struct control_header){ .type = request->header.type,
			                                .serial = request->header.serial,
			                                .status = failed };
	else
		serve(c, request, &reply);
	if (reply.header.status == DAEMON_REPLY_FOLLOWED && !reply.header.serial)
		reply.header.status = 0; /* nobody waits for it */
	if (reply.header.status > 0 && !serve_later(c, request, &reply))
		return;
	if (reply.header.status == DAEMON_REPLY_FOLLOWED) { /* too late to refuse it */
		fabric_flow_follow_all(c->all->f);
		reply.header.status = 0;
	}
	if (reply.header.status > 0)
		reply.header.status = -ENOMEM;
	close_fds(c, request);
	send_reply(c, &reply);
}

/* Serves a request that goes ahead of others, and that nobody waits for. The status. */
static int serve_ahead(struct daemon_client *c, const struct control_packet *request)
{
	struct control_packet reply = { 0 };

	if (request->header.serial || !c->greeted || c->role != CONTROL_ROLE_VERBS)
		return -EPROTO;
	serve(c, request, &reply);
	if (reply.header.status == DAEMON_REPLY_FOLLOWED)
		reply.header.status = 0; /* nobody waits for it */
	close_reply(&reply);
	/* one that is served later cannot be waited for here */
	return reply.header.status > 0 ? -EPROTO : reply.header.status;
}

/* Has the rest of the datagram served by the client's next turn; it is not heard meanwhile. False:
 * there is no memory. */
static bool put_off(struct daemon_client *c, const struct control_packet *request)
{
	c->rest = malloc(sizeof(*c->rest));
	if (!c->rest)
		return false;
	*c->rest = *request;
	daemon_source_stop(&c->source);
	base_timer_set_in(&c->all->loop->timers, &c->next_turn, 0, on_next_turn);
	return true;
}

/* Serves all requests of a datagram, up to the first one that fails; or until then, of
 * base_now_ns(), and the others later. Whether all have been served, and nobody waits for a reply:
 * the client is there then. */
static bool answer_all(struct daemon_client *c, struct control_packet *request, uint64_t until)
{
	int failed = 0;
	bool is_post;

	while (request->behind) {
		failed = failed ? failed : serve_ahead(c, request);
		control_packet_next(request);
		if (!failed && base_now_ns() >= until && put_off(c, request))
			return false;
	}
	is_post = !request->header.serial;
	answer(c, request, failed);
	return is_post;
}

/* Of the queue in which it is. */
static void take_out(struct daemon_later *l)
{
	struct daemon_clients *all = l->client->all;

	if (l->wait == DAEMON_SERVE_SETTLED)
		return;
	if (l->wait == DAEMON_SERVE_COLLECTED)
		fabric_collect_cancel(all->f, &l->reader);
	else if (l->wait == DAEMON_REPLY_FOLLOWED)
		TAILQ_REMOVE(&all->following, l, entry);
	else
		TAILQ_REMOVE(&all->waiting, l, entry);
}

static void reply_now(struct daemon_later *l, int status)
{
	struct daemon_client *c = l->client;
	struct control_packet reply = l->reply;

	if (l->wait == DAEMON_REPLY_RESULT)
		reply.header.status = status;
	close_fds(c, &l->request);
	take_out(l);
	end_wait(c);
	send_reply(c, &reply);
}

/* The request is in no queue any more. */
static void serve_now(struct daemon_later *l)
{
	struct daemon_client *c = l->client;
	struct control_packet request = l->request;

	end_wait(c);
	answer(c, &request, 0);
}

static void on_collected(struct fabric *f, struct fabric_reader *r)
{
	struct daemon_later *l = container_of(r, struct daemon_later, reader);

	(void)f;
	l->client->collected = true;
	serve_now(l);
}

void daemon_clients_go_on(struct daemon_clients *all, int status)
{
	struct daemon_later *l, *next;
	unsigned n = 0;

	if (TAILQ_EMPTY(&all->waiting))
		return;
	for (l = TAILQ_FIRST(&all->waiting); l; l = next) {
		next = TAILQ_NEXT(l, entry);
		if (l->wait != DAEMON_SERVE_AGAIN)
			reply_now(l, status);
		else
			n++;
	}
	/* a client that has to wait now has changed something: those behind have their turn later.
	 * Each has one turn: a client that is to be served again waits for the sweep that has
	 * begun */
	for (; n && (l = TAILQ_LAST(&all->waiting, daemon_laters)) && l->wait == DAEMON_SERVE_AGAIN;
	     n--) {
		l = TAILQ_FIRST(&all->waiting);
		TAILQ_REMOVE(&all->waiting, l, entry);
		serve_now(l);
	}
}

void daemon_clients_followed(struct daemon_clients *all)
{
	struct daemon_later *l;

	while ((l = TAILQ_FIRST(&all->following)) && l->change <= all->f->flows->changes.done)
		reply_now(l, 0);
}

/* Serves what has been posted to the ring by now, until then, of base_now_ns(). 0: all; -EAGAIN:
 * not all; -EPROTO: the ring has bytes that are no request. */
static int serve_posts(struct daemon_client *c, uint64_t until)
{
	const uint32_t written = c->posts.ring ? control_posts_written(&c->posts) : c->posts.tail;
	struct control_packet request;
	int ret;

	while (c->posts.tail != written) {
		ret = control_posts_take(&c->posts, written, &request);
		if (ret || !control_packet_is_post(&request))
			return -EPROTO;
		answer_all(c, &request, until);
		if (c->rest)
			return -EAGAIN;
		if (base_now_ns() >= until)
			return c->posts.tail == written ? 0 : -EAGAIN;
	}
	return 0;
}

/* The client's turn is over: it tells us when it has posted more, or has another turn. */
static void leave_posts(struct daemon_client *c)
{
	if (!control_posts_sleep(&c->posts))
		base_timer_set_in(&c->all->loop->timers, &c->next_turn, 0, on_next_turn);
}

/* Goes on with the datagram of which something is left. False: the client is gone. */
static bool serve_rest(struct daemon_client *c, uint64_t until)
{
	const struct daemon_clients *all = c->all;
	const uint32_t id = c->id;
	struct control_packet rest = *c->rest;

	free(c->rest);
	c->rest = NULL;
	hear(c);
	answer_all(c, &rest, until);
	return base_idtable_get(&all->ids, id) == c;
}

static void on_next_turn(struct base_timer *t)
{
	struct daemon_client *c = container_of(t, struct daemon_client, next_turn);
	const uint64_t until = base_now_ns() + TURN_NS;

	if ((c->rest && !serve_rest(c, until)) || c->rest || !c->posts.ring)
		return;
	if (serve_posts(c, until) == -EPROTO)
		daemon_client_free(c);
	else if (!c->rest)
		leave_posts(c);
}

static void discard(void *loop, int fd)
{
	daemon_loop_close(loop, fd);
}

/* Serves what comes next. False: nothing has come, or somebody waits for the reply, and asks for
 * nothing more meanwhile; the client may be gone then. */
static bool serve_next(struct daemon_client *c, uint64_t until)
{
	const struct daemon_clients *all = c->all;
	const uint64_t left = all->loop->closer.left;
	const uint32_t id = c->id;
	struct control_packet request;
	bool is_post;
	int ret;

	if (!daemon_giver_may_give(&c->giver))
		return false;
	ret = control_receive_discarding(c->sock, &request, discard, c->all->loop);
	if (ret == -EAGAIN)
		return false;
	if (ret == -EPROTO) {
		/* what came is no packet: a reply without a request says so, once */
		const struct control_packet reply = { .header.status = -EPROTO };

		control_send(c->sock, &reply);
	}
	if (ret) {
		daemon_client_free(c);
		return false;
	}
	is_post = answer_all(c, &request, until);
	if (base_idtable_get(&all->ids, id) == c)
		daemon_giver_gave(&c->giver, left);
	if (!is_post || c->later)
		return false;
	if (request.header.type != CONTROL_POSTED || !c->posts.ring)
		return true;
	leave_posts(c);
	return false;
}

/* A request without a reply is likely to have others behind it: they have the same turn. */
static void on_request(struct daemon_source *s, uint32_t events)
{
	const uint64_t until = base_now_ns() + TURN_NS;
	struct daemon_client *c = container_of(s, struct daemon_client, source);
	unsigned n = 1;
	int ret = serve_posts(c, until);

	if (!ret && (events & EPOLLHUP) && !daemon_giver_may_give(&c->giver))
		ret = -EPROTO; /* nobody waits for what it has sent */
	if (ret == -EPROTO)
		daemon_client_free(c);
	if (ret) /* or the socket has its turn when they are served */
		return;
	/* the first datagram was there before; posts ahead of a second datagram have not been
	 * served yet */
	while (serve_next(c, until) && !c->posts.ring && n++ < TURN && base_now_ns() < until)
		;
}

/* ---- connections ---- */

static int client_new(struct daemon_clients *all, int sock, const struct ucred *process,
                      struct daemon_client **out)
{
	struct daemon_client *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	c->all = all;
	c->sock = sock;
	c->pid = process->pid;
	ret = base_idtable_add(&all->ids, c, &c->id);
	if (ret)
		goto err_free;
	ret = -ENOMEM;
	c->holds = daemon_objects_holder(all->objects, c->id, process->pid);
	if (!c->holds)
		goto err_id;
	c->holds->uid = process->uid;
	*out = c;
	return 0;
err_id:
	base_idtable_remove(&all->ids, c->id);
err_free:
	free(c);
	return ret;
}

int daemon_client_new_local(struct daemon_clients *all, struct daemon_client **out)
{
	const struct ucred self = { .pid = getpid(), .uid = geteuid() };
	int ret = client_new(all, -1, &self, out);

	if (ret)
		return ret;
	(*out)->role = CONTROL_ROLE_VERBS;
	(*out)->greeted = (*out)->is_owner = true;
	(*out)->host_index = -1;
	return 0;
}

static bool is_owner(uid_t uid)
{
	return uid == geteuid() || uid == 0;
}

static bool is_named(const struct daemon_clients *all, uid_t uid)
{
	for (unsigned i = 0; i < all->n_users; i++)
		if (all->user[i] == uid)
			return true;
	return false;
}

static bool is_named_group(const struct daemon_clients *all, gid_t gid)
{
	for (unsigned i = 0; i < all->n_groups; i++)
		if (all->group[i] == gid)
			return true;
	return false;
}

/* Whether the process was in a named group when it connected. It may be in 65,536 (NGROUPS_MAX). */
static bool is_member(const struct daemon_clients *all, int sock, gid_t primary)
{
	gid_t few[32], *gids = few;
	socklen_t len = sizeof(few);
	bool is = false;

	if (!all->n_groups)
		return false;
	if (is_named_group(all, primary))
		return true;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, gids, &len) < 0) {
		gids = errno == ERANGE ? malloc(len) : NULL; /* the kernel has said how many */
		if (!gids || getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, gids, &len) < 0)
			len = 0;
	}
	for (size_t i = 0; i < len / sizeof(*gids) && !is; i++)
		is = is_named_group(all, gids[i]);
	if (gids != few)
		free(gids);
	return is;
}

/* 0; -ENOMEM; -ENFILE: it has its share. */
static int add_client(struct daemon_clients *all, int sock, const struct ucred *process)
{
	struct daemon_share *full;
	struct daemon_client *c;
	int ret = client_new(all, sock, process, &c);

	if (ret)
		return ret;
	c->is_owner = is_owner(process->uid);
	c->giver.source = &c->source;
	c->source.ready = on_request;
	c->source.patient = EPOLLHUP | EPOLLOUT;
	ret = daemon_shares_join(&all->shares, &c->member, process->pid, process->uid, c->is_owner);
	if (ret)
		goto err_id;
	full = daemon_shares_full(&all->shares, &c->member);
	ret = -ENFILE;
	if (full && full->undecided >= daemon_shares_few()) {
		daemon_share_refuses(full, ret);
		goto err_leave;
	}
	ret = full ? settle(c) : daemon_source_watch(all->loop, &c->source, sock, EPOLLIN);
	if (ret)
		goto err_leave;
	c->undecided = full;
	if (full)
		full->undecided++;
	count_descriptors(c);
	return 0;
err_leave:
	daemon_shares_leave(&all->shares, &c->member);
err_id:
	base_idtable_remove(&all->ids, c->id);
	free(c->holds);
	free(c);
	return ret;
}

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Tells a process that has connected that and why this is in vain. @request: the first one. */
static void say_no(int sock, const struct control_header *request, int error)
{
	struct control_packet reply = { .header = *request };

	reply.header.status = error;
	tell_why(&reply);
	control_send(sock, &reply);
}

static const struct control_header first = { .type = CONTROL_HELLO,
	                                     .serial = CONTROL_FIRST_SERIAL };

static void turn_away(struct daemon_clients *all, int sock, int error)
{
	say_no(sock, &first, error);
	daemon_loop_close_end(all->loop, sock);
}

static void on_listen_again(struct base_timer *t)
{
	struct daemon_clients *all = container_of(t, struct daemon_clients, listen_again);

	if (all->spare_fd < 0)
		all->spare_fd = open_spare();
	if (daemon_source_watch(all->loop, &all->listening, all->listening.fd, EPOLLIN))
		base_timer_set_in(&all->loop->timers, t, AGAIN_NS, on_listen_again);
}

/* There are no more descriptors. Left waiting, the connection would wake the loop again and again:
 * it is turned away; or, if not even that can be, the daemon does not listen for a while. */
static void refuse(struct daemon_clients *all)
{
	int sock = -1;

	if (all->spare_fd >= 0) {
		close(all->spare_fd);
		sock = accept4(all->listening.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	}
	if (sock >= 0)
		turn_away(all, sock, base_because(-ENFILE, "the daemon has no descriptors left"));
	all->spare_fd = open_spare();
	if (sock >= 0)
		return;
	daemon_source_stop(&all->listening);
	base_timer_set_in(&all->loop->timers, &all->listen_again, AGAIN_NS, on_listen_again);
}

static void on_connection(struct daemon_source *s, uint32_t events)
{
	struct daemon_clients *all = container_of(s, struct daemon_clients, listening);
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int sock = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), ret;

	(void)events;
	if (sock < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			refuse(all);
		return;
	}
	daemon_loop_note_end(all->loop, sock);
	/* the directory is private already, unless users are named; this does not rely on it */
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
	    (!is_owner(cred.uid) && !is_named(all, cred.uid) && !is_member(all, sock, cred.gid))) {
		turn_away(all, sock, -CONTROL_REFUSED);
		return;
	}
	ret = add_client(all, sock, &cred);
	if (ret)
		turn_away(all, sock, ret);
	if (ret && ret != -ENFILE)
		base_log_warning(daemon, "no memory for a client");
}

/* Nobody that has hung up before has what an undecided client may not have. */
static void decide(struct daemon_client *c)
{
	const struct daemon_share *full = daemon_shares_full(&c->all->shares, &c->member);
	struct control_packet request = { .header = first };

	c->undecided->undecided--;
	c->undecided = NULL;
	hear(c);
	if (!full)
		return;
	shutdown(c->sock, SHUT_RD); /* what it has sent by now is all */
	if (daemon_giver_may_give(&c->giver) &&
	    !control_receive_discarding(c->sock, &request, discard, c->all->loop))
		close_fds(c, &request);
	else
		request.header = first;
	say_no(c->sock, &request.header, daemon_share_refuses(full, -ENFILE));
	daemon_client_free(c);
}

/* Those that had hung up before are gone. */
static void on_settled(struct daemon_source *s, uint32_t events)
{
	struct daemon_client *c = container_of(s, struct daemon_client, source);

	(void)events;
	if (c->undecided) {
		decide(c);
		return;
	}
	c->settled = true;
	serve_now(c->later);
}

void daemon_client_free(struct daemon_client *c)
{
	struct daemon_clients *all = c->all;

	if (c->later) {
		take_out(c->later);
		close_fds(c, &c->later->request);
		close_reply(&c->later->reply);
		end_wait(c);
	}
	if (c->rest)
		close_fds(c, c->rest);
	free(c->rest);
	tell(c, "gone");
	base_timer_stop(&c->next_turn);
	daemon_giver_stop(&c->giver);
	control_posts_unmap(c->posts.ring);
	daemon_objects_release(all->objects, c->holds);
	close_source(&c->exit_source);
	daemon_source_stop(&c->source);
	if (c->sock >= 0)
		daemon_loop_close_end(all->loop, c->sock);
	base_idtable_remove(&all->ids, c->id);
	if (c->undecided)
		c->undecided->undecided--;
	daemon_shares_leave(&all->shares, &c->member); /* objects go soon */
	free(c);
}

/* ---- all ---- */

void daemon_clients_init(struct daemon_clients *all, struct daemon_loop *loop, struct fabric *f,
                         struct daemon_objects *objects)
{
	all->loop = loop;
	all->f = f;
	all->objects = objects;
	all->spare_fd = open_spare();
	TAILQ_INIT(&all->waiting);
	TAILQ_INIT(&all->following);
	base_idtable_init(&all->ids, MAX_CLIENTS);
	daemon_shares_init(&all->shares, &loop->closer);
	daemon_requests_add(&all->requests, requests, ARRAY_SIZE(requests), all);
}

int daemon_clients_listen(struct daemon_clients *all, int listen_fd)
{
	close(all->spare_fd);
	all->spare_fd = open_spare();
	/* the lowest number that is free: descriptors below it are the daemon's own */
	all->shares.n_fds = all->spare_fd < 0 ? 0 : (unsigned)all->spare_fd;
	all->listening.ready = on_connection;
	return daemon_source_watch(all->loop, &all->listening, listen_fd, EPOLLIN);
}

bool daemon_client_is_program(const struct daemon_client *c)
{
	return c->greeted && c->sock >= 0 &&
	       (c->role == CONTROL_ROLE_VERBS || c->role == CONTROL_ROLE_UMAD);
}

unsigned daemon_clients_count_verbs(const struct daemon_clients *all)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < all->ids.size; i++) {
		const struct daemon_client *c = base_idtable_get(&all->ids, i);

		n += c && c->role == CONTROL_ROLE_VERBS && c->greeted && c->sock >= 0;
	}
	return n;
}

bool daemon_client_sees(const struct daemon_client *c, uint32_t host_index)
{
	return c->host_index < 0 || (uint32_t)c->host_index == host_index;
}
