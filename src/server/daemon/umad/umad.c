/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Open ports and agents of libibumad's programs: see umad.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/reason.h"
#include "base/util.h"
#include "daemon/clients/client.h"
#include "daemon/core/pair.h"
#include "daemon/umad/umad.h"
#include "daemon/umad/umad_agents.h"
#include "daemon/umad/umad_issm.h"
#include "daemon/umad/umad_long.h"
#include "daemon/umad/umad_mad.h"
#include "daemon/umad/umad_memory.h"
#include "daemon/umad/umad_request.h"
#include "daemon/umad/umad_rmpp.h"

#define MAX_CLASS   0x50 /* the kernel's limits: none beyond but directed routes, */
#define MAX_VERSION 0x83
#define OUI_BITS    24
#define MAX_PORTS   (1u << 20)
/* Batches of one program before others have their turn, and for how long. */
#define AT_ONCE    2
#define AT_ONCE_NS 500000
#define MOST_KEEP  8 /* ports that keep a batch; others receive one datagram at a time */

/* ---- receiving from programs ---- */

#define UMAD_BATCH 8 /* datagrams that one system call receives */
/* That can come with a datagram (SCM_MAX_FD of Linux): one is expected, but those for which there
 * is no room the kernel closes, here. */
#define MOST_DESCRIPTORS 253

/* A datagram of a program. The bytes behind the header are received with it. */
struct umad_datagram {
	struct ib_user_mad header;
	uint8_t data[CONTROL_UMAD_DATAGRAM];
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * MOST_DESCRIPTORS)];
	} control;
};

/* The datagrams that one system call has received. */
struct umad_batch {
	struct mmsghdr m[UMAD_BATCH];
	struct umad_datagram in[UMAD_BATCH];
	unsigned most;    /* that were asked for */
	unsigned next, n; /* those from `next` on are not taken yet */
};

/* The descriptor that came with a message, the first one, or -1. */
static int descriptor_of(struct msghdr *msg)
{
	int fd = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c && fd < 0; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
		    c->cmsg_len >= CMSG_LEN(sizeof(fd)))
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* All of them but @kept. */
static void close_descriptors(struct daemon_umad *u, struct msghdr *msg, int kept)
{
	int fd;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			for (size_t at = 0; CMSG_LEN(at + sizeof(fd)) <= c->cmsg_len;
			     at += sizeof(fd)) {
				memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
				if (fd != kept)
					daemon_loop_close(u->d.loop, fd);
			}
}

static void long_free(struct umad_open *port)
{
	struct umad_long *l = port->reading;

	port->reading = NULL;
	daemon_loop_close(port->u->d.loop, l->fd);
	umad_memory_free(port, l->message, l->bytes);
	free(l);
}

/* A message beside its datagram. True: it is being read, and @fd is kept for that. */
static bool take_beside(struct umad_open *port, const struct ib_user_mad *header, int fd)
{
	size_t bytes = umad_long_bytes(header, fd);
	uint8_t first[CONTROL_UMAD_DATAGRAM];
	struct umad_long *l;

	if (bytes <= sizeof(first)) {
		if (bytes && pread(fd, first, bytes, 0) == (ssize_t)bytes)
			umad_mad_submit(port, header, first, bytes);
		return false;
	}
	if (pread(fd, first, MAD_BYTES, 0) != MAD_BYTES)
		return false;
	l = malloc(sizeof(*l));
	if (!l)
		return false;
	*l = (struct umad_long){ .header = *header, .fd = fd, .bytes = bytes };
	l->message = umad_mad_expect(port, header, first, bytes);
	if (!l->message) {
		free(l);
		return false;
	}
	port->reading = l;
	return true;
}

/* Reads on until @until, a piece at least. False: there is more to read. */
static bool read_on(struct umad_open *port, uint64_t until)
{
	struct umad_long *l = port->reading;
	int ret;

	do
		ret = umad_long_read(l);
	while (!ret && base_now_ns() < until);
	if (!ret)
		return false;
	if (ret > 0) {
		umad_mad_submit_long(port, &l->header, l->message, l->bytes);
		l->message = NULL;
		daemon_mads_send(port->u->d.mads);
	}
	long_free(port);
	return true;
}

/* 0; -EPIPE: the datagram is empty, as the client sends no more. */
static int take(struct umad_open *port, struct mmsghdr *m, const struct umad_datagram *in)
{
	const uint64_t left = port->u->d.loop->closer.left;
	const int fd = descriptor_of(&m->msg_hdr);
	bool kept = false;

	port->taken += m->msg_len;
	if (m->msg_len >= sizeof(in->header) && !(m->msg_hdr.msg_flags & MSG_TRUNC)) {
		if (fd >= 0)
			kept = take_beside(port, &in->header, fd);
		else
			umad_mad_submit(port, &in->header, in->data,
			                m->msg_len - sizeof(in->header));
	}
	close_descriptors(port->u, &m->msg_hdr, kept ? fd : -1);
	daemon_giver_gave(&port->giver, left);
	daemon_mads_send(port->u->d.mads);
	return m->msg_len ? 0 : -EPIPE;
}

/* Receives the datagrams that are there, up to a batch, by one system call. 0, also if there is
 * nothing but more may come; -EAGAIN: there is none; -EPIPE: there will be none. */
static int receive(struct umad_open *port, struct umad_batch *b)
{
	struct iovec iov[UMAD_BATCH];
	int n;

	b->next = b->n = 0;
	if (!daemon_giver_may_give(&port->giver))
		return daemon_outbox_closed(port->box) ? -EPIPE : -EAGAIN;
	b->most = port->u->n_kept < MOST_KEEP && !daemon_closer_waiting(&port->u->d.loop->closer)
	                  ? UMAD_BATCH
	                  : 1;
	for (unsigned i = 0; i < b->most; i++) {
		struct umad_datagram *in = &b->in[i];

		iov[i] = (struct iovec){ &in->header, sizeof(in->header) + sizeof(in->data) };
		b->m[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i],
			                           .msg_iovlen = 1,
			                           .msg_control = &in->control,
			                           .msg_controllen = sizeof(in->control) };
	}
	/* MSG_TRUNC: lengths are those that were sent */
	n = recvmmsg(port->fd, b->m, b->most, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC, NULL);
	b->n = n < 0 ? 0 : (unsigned)n;
	for (unsigned i = 0; i < b->n; i++)
		port->received += b->m[i].msg_len;
	if (n < 0 && errno != EINTR && errno != ECONNRESET)
		return errno == EAGAIN ? -EAGAIN : -EPIPE;
	return 0; /* ECONNRESET: it did not read all that it got; its own datagrams still come */
}

static void batch_free(struct daemon_umad *u, struct umad_batch *b)
{
	while (b->next < b->n)
		close_descriptors(u, &b->m[b->next++].msg_hdr, -1);
	if (u->spare)
		free(b);
	else
		u->spare = b;
}

static void on_turn(struct base_timer *t);

static void turn_soon(struct daemon_umad *u)
{
	if (!TAILQ_EMPTY(&u->waiting) && !base_timer_is_set(&u->turn))
		base_timer_set_in(&u->d.loop->timers, &u->turn, 0, on_turn);
}

/* Others come before its next turn. */
static void wait_for_turn(struct umad_open *port)
{
	port->waits = true;
	TAILQ_INSERT_TAIL(&port->u->waiting, port, wait_entry);
	turn_soon(port->u);
}

static void stop_waiting(struct umad_open *port)
{
	if (port->waits)
		TAILQ_REMOVE(&port->u->waiting, port, wait_entry);
	port->waits = false;
}

/* The port keeps what is left of the batch for its next turn. */
static void keep(struct umad_open *port, struct umad_batch *b)
{
	port->kept = b;
	port->u->n_kept++;
}

/* The batch that it has kept; NULL: none. */
static struct umad_batch *unkeep(struct umad_open *port)
{
	struct umad_batch *b = port->kept;

	port->kept = NULL;
	if (b)
		port->u->n_kept--;
	return b;
}

/* An empty batch, or NULL. */
static struct umad_batch *batch_new(struct daemon_umad *u)
{
	struct umad_batch *b = u->spare;

	u->spare = NULL;
	return b ? b : malloc(sizeof(*b));
}

static void agent_end(struct umad_agent *agent);

/* Those agents that leave end of which all has been taken. */
static void end_leaving(struct umad_open *port)
{
	for (unsigned i = 0; i < UMAD_CA_MAX_AGENTS && port->n_leaving; i++) {
		struct umad_agent *a = port->agent[i];

		if (a && a->leaving && port->taken >= a->ends_at)
			agent_end(a);
	}
}

/* Takes of the batch: one datagram, and more until @until. 0 or -EPIPE. */
static int take_some(struct umad_open *port, struct umad_batch *b, uint64_t until)
{
	int ret = 0;

	while (!ret && b->next < b->n) {
		ret = take(port, &b->m[b->next], &b->in[b->next]);
		b->next++;
		if (port->reading && !read_on(port, until))
			break;
		end_leaving(port);
		if (base_now_ns() >= until)
			break;
	}
	return ret;
}

/* The same of what was kept, or else is there, up to a batch. Also -EAGAIN: there is none. */
static int take_batch(struct umad_open *port, uint64_t until)
{
	struct umad_batch *b = unkeep(port);
	int ret = 0;

	if (!b) {
		b = batch_new(port->u);
		if (!b)
			return -EAGAIN;
		ret = receive(port, b);
	}
	if (!ret)
		ret = take_some(port, b, until);
	if (b->next < b->n) {
		keep(port, b);
		return ret;
	}
	if (!ret && !port->reading && b->n && b->n < b->most)
		ret = -EAGAIN;
	batch_free(port->u, b);
	return ret;
}

/* Reads on, or takes what was kept, or else what is there: one datagram at least, or a piece of
 * one, and more until @until. 0: there may be more; -EAGAIN: there is none; -EPIPE: there will be
 * none. */
static int receive_some(struct umad_open *port, uint64_t until)
{
	int ret = 0;

	stop_waiting(port);
	if (!port->reading)
		ret = take_batch(port, until);
	else if (read_on(port, until))
		end_leaving(port);
	if (port->kept || port->reading)
		wait_for_turn(port);
	return ret;
}

/* Takes what is there, and looks at the clock in between. The same. */
static int receive_until(struct umad_open *port, uint64_t until)
{
	int ret;

	do
		ret = receive_some(port, until);
	while (!ret && base_now_ns() < until);
	return ret;
}

static void port_free(struct umad_open *port);

static void on_datagrams(struct daemon_source *s, uint32_t events)
{
	struct umad_open *port = container_of(s, struct umad_open, source);
	uint64_t until = base_now_ns() + AT_ONCE_NS;
	int ret, n = 0;

	(void)events;
	do
		ret = receive_some(port, until);
	while (!ret && ++n < AT_ONCE && base_now_ns() < until);
	if (ret == -EPIPE)
		port_free(port);
}

/* The kernel does not tell of what was received already: one port has a turn, then the loop. */
static void on_turn(struct base_timer *t)
{
	struct daemon_umad *u = container_of(t, struct daemon_umad, turn);
	struct umad_open *port = TAILQ_FIRST(&u->waiting);

	if (!port)
		return;
	on_datagrams(&port->source, 0);
	turn_soon(u);
}

/* ---- ports ---- */

static bool agent_free(struct daemon_chore *c, uint32_t *budget)
{
	struct umad_agent *agent = container_of(c, struct umad_agent, end);
	struct umad_open *port = agent->port;

	if (!umad_request_forget(agent, budget) || !umad_rmpp_forget(agent, budget))
		return false;
	free(agent);
	port->n_agents--;
	if (port->ended && !port->n_agents)
		free(port);
	return true;
}

/* Its requests may be many: they are freed in slices. */
static void agent_end(struct umad_agent *agent)
{
	struct umad_open *port = agent->port;

	umad_agents_remove(&port->u->agents, agent);
	port->agent[agent->id] = NULL;
	port->n_leaving -= agent->leaving;
	agent->ended = true;
	daemon_chore_add(port->u->d.chores, &agent->end, agent_free);
}

/* It gets nothing from now on. MADs that its program has sent are still taken, as that may take
 * several turns. */
static void agent_leave(struct umad_agent *agent)
{
	struct umad_open *port = agent->port;
	int unread = 0;

	if (agent->leaving)
		return;
	if (ioctl(port->fd, SIOCINQ, &unread) < 0)
		unread = 0;
	umad_agents_remove(&port->u->agents, agent);
	agent->leaving = true;
	agent->ends_at = port->received + (uint64_t)unread;
	port->n_leaving++;
	if (port->reading && port->reading->header.agent_id == agent->id)
		long_free(port); /* no more than its first segments would be sent */
}

static void port_free(struct umad_open *port)
{
	for (unsigned i = 0; i < UMAD_CA_MAX_AGENTS; i++)
		if (port->agent[i])
			agent_end(port->agent[i]);
	stop_waiting(port);
	if (port->reading)
		long_free(port);
	if (port->kept)
		batch_free(port->u, unkeep(port));
	daemon_source_stop(&port->source);
	daemon_giver_stop(&port->giver);
	close(port->fd);
	daemon_outbox_close(port->box);
	base_idtable_remove(&port->u->ports, port->handle);
	cm_program_free(port->program);
	port->ended = true;
	if (!port->n_agents)
		free(port);
}

/* All processes have closed it, though the loop may not have got to it yet: MADs that they sent
 * before are taken, in turns if there are many. */
static void port_closed(struct umad_open *port, uint64_t until)
{
	for (unsigned i = 0; i < UMAD_CA_MAX_AGENTS; i++)
		if (port->agent[i])
			agent_leave(port->agent[i]);
	if (receive_until(port, until) == -EPIPE)
		port_free(port);
}

static void respond(void *arg, struct fabric_port *at, const struct fabric_mad *mad)
{
	umad_mad_deliver(arg, at, mad);
}

/* @process_fd: the program's end of the socket. */
static int port_new(struct daemon_umad *u, struct fabric_port *at, struct umad_open **out,
                    int *process_fd)
{
	struct umad_open *port = calloc(1, sizeof(*port));
	const struct cm_program_ops ops = { .respond = respond, .arg = u };
	int ret = -ENOMEM;

	if (!port)
		return ret;
	port->u = u;
	port->at = at;
	ret = cm_program_new(u->d.cm, at, &ops, &port->program);
	if (ret)
		goto err_free;
	ret = base_idtable_add(&u->ports, port, &port->handle);
	if (ret)
		goto err_program;
	ret = daemon_outbox_open(u->d.loop, &port->box, process_fd);
	if (ret)
		goto err_id;
	daemon_pair_take_descriptors(daemon_outbox_fd(port->box));
	port->fd = dup(daemon_outbox_fd(port->box));
	ret = port->fd < 0 ? -errno : 0;
	if (ret)
		goto err_box;
	port->giver.source = &port->source;
	port->source.ready = on_datagrams;
	port->source.patient = EPOLLHUP;
	ret = daemon_source_watch(u->d.loop, &port->source, port->fd, EPOLLIN);
	if (ret)
		goto err_fd;
	*out = port;
	return 0;
err_fd:
	close(port->fd);
err_box:
	close(*process_fd);
	daemon_outbox_close(port->box);
err_id:
	base_idtable_remove(&u->ports, port->handle);
err_program:
	cm_program_free(port->program);
err_free:
	free(port);
	return ret;
}

/* The HCA port of that index, if the program is on its host. */
static struct fabric_port *port_in_sight(const struct daemon_call *call, uint32_t index)
{
	const struct daemon_umad *u = call->module;
	const struct fabric *f = u->d.f;
	struct fabric_port *at = index < f->n_hca_ports ? f->hca_port[index] : NULL;

	if (!at ||
	    !daemon_client_sees(call->client, shm_hca_at(f->region, at->node->hca)->host_index))
		return NULL;
	return at;
}

static int open_port(struct daemon_call *call)
{
	struct daemon_umad *u = call->module;
	const struct control_umad_at *req = call->body;
	struct fabric_port *at = port_in_sight(call, req->index);
	struct control_umad_port *rep;
	struct umad_open *port;
	int ret, fd;

	if (!at)
		return -ENODEV;
	ret = port_new(u, at, &port, &fd);
	if (ret)
		return ret;
	rep = daemon_call_reply(call, sizeof(*rep));
	rep->port = port->handle;
	daemon_call_give(call, fd);
	return 0;
}

/* ---- agents ---- */

static bool is_smp_class(uint8_t c)
{
	return c == MAD_CLASS_SUBN_LID || c == MAD_CLASS_SUBN_DIRECTED;
}

/* One flag is only known to agents that may join groups. */
static uint32_t known_flags(const struct control_umad_register *as)
{
	return UMAD_USER_RMPP | (as->mgmt_class == MAD_CLASS_SUBN_ADM ? MAD_AGENT_LEAVES : 0);
}

static int check_agent(const struct control_umad_register *as)
{
	uint8_t c = as->mgmt_class;

	if (as->qpn > IB_QPN_GSI || as->rmpp_version > RMPP_VERSION ||
	    (as->flags & ~known_flags(as)))
		return base_because(-EINVAL,
		                    "QP %u, RMPP version %u or flags 0x%x are not supported",
		                    as->qpn, as->rmpp_version, as->flags);
	if (!c) /* nothing unasked */
		return as->flags ? -EINVAL : 0;
	if (as->mgmt_class_version >= MAX_VERSION || as->oui >> OUI_BITS ||
	    (c >= MAX_CLASS && c != MAD_CLASS_SUBN_DIRECTED) ||
	    (umad_agents_is_oui_class(c) && !as->oui))
		return base_because(-EINVAL,
		                    "class 0x%02x, version %u or OUI 0x%06x is not one that "
		                    "agents can have",
		                    c, as->mgmt_class_version, as->oui);
	if (as->rmpp_version && !wire_rmpp_data_at(c))
		return base_because(-EINVAL, "class 0x%02x does not use RMPP", c);
	if (is_smp_class(c) != (as->qpn == IB_QPN_SMI))
		return base_because(-EINVAL, "class 0x%02x does not go by QP %u", c, as->qpn);
	return 0;
}

static int check_free(struct umad_open *port, const struct control_umad_register *as)
{
	uint64_t until = base_now_ns() + AT_ONCE_NS;
	struct umad_agent *other;

	while ((other = umad_agents_conflicting(&port->u->agents, port->at, as))) {
		if (other->port == port || !daemon_outbox_closed(other->port->box))
			return base_because(-EINVAL,
			                    "another agent at that port gets the requests of "
			                    "class 0x%02x already",
			                    as->mgmt_class);
		port_closed(other->port, until);
	}
	return 0;
}

/* A free one, or that of an agent that leaves; UMAD_CA_MAX_AGENTS: there is none. */
static uint32_t find_id(struct umad_open *port)
{
	uint32_t id = 0;

	while (id < UMAD_CA_MAX_AGENTS && port->agent[id])
		id++;
	if (id < UMAD_CA_MAX_AGENTS || !port->n_leaving)
		return id;
	for (id = 0; !port->agent[id]->leaving; id++)
		;
	agent_end(port->agent[id]);
	return id;
}

static int register_agent(struct daemon_call *call)
{
	struct daemon_umad *u = call->module;
	const struct control_umad_register *req = call->body;
	struct umad_open *port = base_idtable_get(&u->ports, req->port);
	struct control_umad_agent *rep;
	struct umad_agent *agent;
	uint32_t id;
	int ret;

	if (!port)
		return -EBADF;
	id = find_id(port);
	if (id == UMAD_CA_MAX_AGENTS)
		return base_because(-ENOMEM, "the descriptor has %d agents already",
		                    UMAD_CA_MAX_AGENTS);
	ret = check_agent(req);
	if (!ret)
		ret = check_free(port, req);
	if (ret)
		return ret;
	agent = calloc(1, sizeof(*agent));
	if (!agent)
		return -ENOMEM;
	agent->port = port;
	agent->as = *req;
	agent->id = id;
	agent->tid_high = ++port->u->last_tid_high;
	agent->reassembles = req->rmpp_version && !(req->flags & UMAD_USER_RMPP);
	ret = umad_agents_add(&u->agents, agent);
	if (ret) {
		free(agent);
		return ret;
	}
	port->agent[id] = agent;
	port->n_agents++;
	if (req->flags & MAD_AGENT_LEAVES)
		cm_program_leave_at_end(port->program);
	rep = daemon_call_reply(call, sizeof(*rep));
	*rep = (struct control_umad_agent){ .port = port->handle, .agent = id };
	return 0;
}

static int unregister_agent(struct daemon_call *call)
{
	struct daemon_umad *u = call->module;
	const struct control_umad_agent *req = call->body;
	struct umad_open *port = base_idtable_get(&u->ports, req->port);
	struct umad_agent *agent;

	if (!port)
		return -EBADF;
	agent = req->agent < UMAD_CA_MAX_AGENTS ? port->agent[req->agent] : NULL;
	if (!agent || agent->leaving)
		return -EINVAL;
	agent_leave(agent);
	end_leaving(port);
	if (port->n_leaving && receive_until(port, base_now_ns() + AT_ONCE_NS) == -EPIPE)
		port_free(port);
	return 0;
}

static int closed(struct daemon_call *call)
{
	struct daemon_umad *u = call->module;
	const struct control_umad_port *req = call->body;
	struct umad_open *port = base_idtable_get(&u->ports, req->port);

	/* others may have it still, a child for example */
	if (port && daemon_outbox_closed(port->box))
		port_closed(port, base_now_ns() + AT_ONCE_NS);
	return 0;
}

/* ---- requests ---- */

static int issm(struct daemon_call *call)
{
	struct daemon_umad *u = call->module;
	const struct control_umad_at *req = call->body;
	struct fabric_port *at = port_in_sight(call, req->index);

	return at ? umad_issm_open(u, at) : -ENODEV;
}

static const struct daemon_request requests[] = {
	DAEMON_OWNERS_REQUEST(UMAD_OPEN_PORT, control_umad_at, DAEMON_UMAD, open_port),
	DAEMON_OWNERS_REQUEST(UMAD_REGISTER, control_umad_register, DAEMON_UMAD, register_agent),
	DAEMON_OWNERS_REQUEST(UMAD_UNREGISTER, control_umad_agent, DAEMON_UMAD, unregister_agent),
	DAEMON_OWNERS_REQUEST(UMAD_CLOSED, control_umad_port, DAEMON_UMAD, closed),
	DAEMON_OWNERS_REQUEST(UMAD_ISSM, control_umad_at, DAEMON_UMAD | DAEMON_SYSFS, issm),
};

/* ---- start and end ---- */

int daemon_umad_init(struct daemon_umad **out, const struct daemon_umad_needs *needs,
                     struct daemon_requests *all)
{
	struct daemon_umad *u = calloc(1, sizeof(*u));
	int ret;

	if (!u)
		return -ENOMEM;
	u->d = *needs;
	ret = umad_issm_init(u);
	if (ret) {
		free(u);
		return ret;
	}
	base_idtable_init(&u->ports, MAX_PORTS);
	TAILQ_INIT(&u->waiting);
	u->last_tid_high = DAEMON_TID_PROGRAMS;
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), u);
	*out = u;
	return 0;
}

void daemon_umad_stop(struct daemon_umad *u)
{
	base_timer_stop(&u->turn);
	umad_issm_fini(u);
}
