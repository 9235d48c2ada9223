/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clients: see client.h.
 */
#define _GNU_SOURCE
#include "ibsim/client.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "base/newer_libc.h"
#include "base/util.h"
#include "wire/rmpp.h"

#define AT_ONCE 32 /* messages of one client before others have their turn */

/*
 * The protocol does not say how long a client waits. Agents of subnet management answer at once,
 * and OpenSM sends nothing else until they have or have been given up; others are programs that may
 * take longer, and their clients have their own patience.
 */
#define SMP_TIMEOUT_MS 200
#define SMP_RETRIES    3
#define GMP_TIMEOUT_MS 4000

#define METHOD(m) (1ull << (m))

/* ---- to the client ---- */

/*
 * While the client takes nothing, MADs of the fabric for it wait in the port. MADs that it sends
 * are still served, as it may be waiting for room itself.
 */
static void watch(struct ibsim_client *c)
{
	ibsim_source_watch(c->common->loop, &c->socket, EPOLLIN | (c->is_late ? EPOLLOUT : 0));
	ibsim_source_watch(c->common->loop, &c->port, c->is_late ? 0 : EPOLLIN);
}

/* 0; -EAGAIN: it takes nothing now; else it is gone. */
static int try_give(struct ibsim_client *c, const struct ibsim_mad *m)
{
	if (send(c->socket.fd, m, sizeof(*m), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return errno == EWOULDBLOCK || errno == ENOBUFS ? -EAGAIN : -errno;
}

/* False: the client is gone. A message that comes while another one waits for room is lost. */
static bool give(struct ibsim_client *c, const struct ibsim_mad *m)
{
	int ret;

	if (c->is_late)
		return true;
	ret = try_give(c, m);
	if (ret == -EAGAIN) {
		c->late = *m;
		c->is_late = true;
		watch(c);
		return true;
	}
	if (!ret)
		return true;
	c->common->gone(c->common, c);
	return false;
}

/* A request goes back to the client, and why. */
static bool give_back(struct ibsim_client *c, const uint8_t mad[static MAD_BYTES], int error)
{
	struct ibsim_mad m = { .status = htobe32((uint32_t)error), .bytes = htobe64(MAD_BYTES) };

	memcpy(m.data, mad, MAD_BYTES);
	return give(c, &m);
}

/* ---- from the client ---- */

/* To a Trap it is TrapRepress: OpenSM waits for it before it goes on. */
static bool is_response(const struct wire_mad *head)
{
	return head->method & MAD_METHOD_RESPONSE || head->method == MAD_TRAP_REPRESS;
}

static int agent_for(const struct ibsim_client *c, const struct wire_mad *head)
{
	switch (head->mgmt_class) {
	case MAD_CLASS_SUBN_LID:
	case MAD_CLASS_SUBN_DIRECTED:
		return c->smi;
	case MAD_CLASS_SUBN_ADM:
		return c->sa;
	default:
		return c->gsi;
	}
}

/* The MAD as libibumad wants it. Returns its length: a MAD that a client has cut is a message of
 * RMPP. */
static int make_umad(struct ibsim_client *c, const struct ibsim_mad *m)
{
	uint64_t bytes = be64toh(m->bytes);
	struct ib_user_mad *umad = c->common->umad;
	uint8_t *mad = umad_get_mad(umad);

	if (bytes > MAD_BYTES)
		bytes = MAD_BYTES;
	memset(umad, 0, umad_size() + MAD_BYTES);
	memcpy(mad, m->data, bytes);
	umad->addr.lid = (uint16_t)m->dlid;
	umad->addr.qpn = m->dest_qpn;
	umad->addr.qkey = m->dest_qpn ? htobe32(IB_QKEY_GSI) : 0;
	return wire_rmpp_is_active(mad) ? (int)bytes : MAD_BYTES;
}

static void set_number(uint8_t *mad, uint32_t number)
{
	struct wire_mad head;

	wire_mad_decode(mad, &head);
	head.transaction_id = number;
	wire_mad_encode(&head, mad);
}

/* False: the client is gone. */
static bool forward(struct ibsim_client *c, const struct ibsim_mad *m)
{
	int bytes = make_umad(c, m), timeout = 0, retries = 0;
	uint8_t *mad = umad_get_mad(c->common->umad), original[MAD_BYTES];
	struct wire_mad head;
	uint32_t number = 0;

	wire_mad_decode(mad, &head);
	if (wire_mad_response_method(head.method)) {
		bool is_smp = agent_for(c, &head) == c->smi;

		number = ibsim_requests_add(&c->requests, mad, base_now_ns());
		if (!number)
			return true; /* so many get lost */
		set_number(mad, number);
		timeout = is_smp ? SMP_TIMEOUT_MS : GMP_TIMEOUT_MS;
		retries = is_smp ? SMP_RETRIES : 0;
	}
	if (!umad_send(c->port.fd, agent_for(c, &head), c->common->umad, bytes, timeout, retries))
		return true;
	base_log_debug(ibsim, "client %u: a MAD of class 0x%02x is not sent: %s", c->id,
	               head.mgmt_class, strerror(errno));
	return !ibsim_requests_take(&c->requests, number, original) ||
	       give_back(c, original, ETIMEDOUT);
}

static void receive(struct ibsim_client *c)
{
	for (int i = 0; i < AT_ONCE; i++) {
		struct ibsim_sender sender;
		struct ibsim_mad m = { 0 };
		int ret = ibsim_socket_receive(c->socket.fd, &m, sizeof(m), &sender);

		if (!ret && sender.is_served && !forward(c, &m))
			return;
		if (ret && ret != -EMSGSIZE)
			return;
	}
}

static void on_socket(struct ibsim_source *s, uint32_t events)
{
	struct ibsim_client *c = container_of(s, struct ibsim_client, socket);

	if (events & EPOLLOUT && c->is_late) {
		int ret = try_give(c, &c->late);

		if (ret && ret != -EAGAIN) {
			c->common->gone(c->common, c);
			return;
		}
		c->is_late = ret == -EAGAIN;
		watch(c);
	}
	receive(c);
}

/* ---- from the fabric ---- */

/* Takes the message of @bytes, which is longer than a MAD. The client has room for one, which is
 * what ibsim's clients send each other of such a message. */
static int take_long(struct ibsim_client *c, int bytes)
{
	void *all = umad_alloc(1, umad_size() + (size_t)bytes);
	int ret = -ENOMEM;

	if (!all)
		return ret;
	ret = umad_recv(c->port.fd, all, &bytes, 0);
	if (ret >= 0)
		memcpy(c->common->umad, all, umad_size() + MAD_BYTES);
	umad_free(all);
	return ret;
}

/* Its length, at most that of a MAD, or -errno. */
static int take(struct ibsim_client *c)
{
	int bytes = MAD_BYTES;
	int ret = umad_recv(c->port.fd, c->common->umad, &bytes, 0);

	if (ret == -ENOSPC)
		ret = take_long(c, bytes);
	return ret < 0 ? ret : base_min(bytes, MAD_BYTES);
}

/* Gives the client the MAD that libibumad has received. False: the client is gone. */
static bool deliver(struct ibsim_client *c, int bytes)
{
	const struct ib_user_mad *umad = c->common->umad;
	struct ibsim_mad m = { .slid = umad->addr.lid,
		               .src_qpn = umad->addr.qpn,
		               .bytes = htobe64((uint64_t)bytes) };
	int status = umad_status(c->common->umad);
	uint8_t original[MAD_BYTES];
	struct wire_mad head, sent;

	memcpy(m.data, umad->data, (size_t)bytes);
	wire_mad_decode(m.data, &head);
	if (status && is_response(&head))
		return true; /* nobody has taken what the client responded */
	if (status || is_response(&head)) {
		if (!ibsim_requests_take(&c->requests, (uint32_t)head.transaction_id, original))
			return true;
		if (status)
			return give_back(c, original, status);
		wire_mad_decode(original, &sent);
		head.transaction_id = sent.transaction_id;
		wire_mad_encode(&head, m.data);
	}
	return give(c, &m);
}

static void on_port(struct ibsim_source *s, uint32_t events)
{
	struct ibsim_client *c = container_of(s, struct ibsim_client, port);

	if (events & EPOLLHUP && c->is_late) {
		c->common->fabric_gone(c->common);
		return;
	}
	for (int i = 0; i < AT_ONCE && !c->is_late; i++) {
		int ret = take(c);

		if (ret == -EWOULDBLOCK || ret == -EINTR)
			return;
		if (ret == -ENOMEM) {
			c->common->gone(c->common, c);
			return;
		}
		if (ret < 0) {
			c->common->fabric_gone(c->common);
			return;
		}
		if (!deliver(c, ret))
			return;
	}
}

/* ---- a subnet manager ---- */

/* The requests that a subnet manager and administrator gets. */
static const struct {
	uint8_t mgmt_class, version, rmpp_version;
	uint64_t methods;
} sm_classes[IBSIM_SM_AGENTS] = {
	{ MAD_CLASS_SUBN_LID, MAD_VERSION_SUBN, 0,
	  METHOD(MAD_GET) | METHOD(MAD_SET) | METHOD(MAD_TRAP) },
	{ MAD_CLASS_SUBN_DIRECTED, MAD_VERSION_SUBN, 0,
	  METHOD(MAD_GET) | METHOD(MAD_SET) | METHOD(MAD_TRAP) },
	{ MAD_CLASS_SUBN_ADM, MAD_VERSION_SUBN_ADM, RMPP_VERSION,
	  METHOD(MAD_GET) | METHOD(MAD_SET) | METHOD(MAD_GET_TABLE) | METHOD(MAD_GET_TRACE_TABLE) |
	          METHOD(MAD_GET_MULTI) | METHOD(MAD_DELETE) },
};

static void stop_sm(struct ibsim_client *c)
{
	if (c->is_sm >= 0)
		close(c->is_sm);
	c->is_sm = -1;
	for (int i = 0; i < IBSIM_SM_AGENTS; i++) {
		if (c->sm_agent[i] >= 0)
			umad_unregister(c->port.fd, c->sm_agent[i]);
		c->sm_agent[i] = -1;
	}
}

static int register_sm(struct ibsim_client *c)
{
	for (int i = 0; i < IBSIM_SM_AGENTS; i++) {
		long mask[16 / sizeof(long)] = { 0 };

		memcpy(mask, &sm_classes[i].methods, sizeof(sm_classes[i].methods));
		c->sm_agent[i] =
		        umad_register(c->port.fd, sm_classes[i].mgmt_class, sm_classes[i].version,
		                      sm_classes[i].rmpp_version, mask);
		if (c->sm_agent[i] < 0)
			return -EBUSY;
	}
	return 0;
}

int ibsim_client_set_sm(struct ibsim_client *c, bool is_sm)
{
	char path[512];
	int ret;

	if (is_sm == (c->is_sm >= 0))
		return 0;
	if (!is_sm) {
		stop_sm(c);
		return 0;
	}
	ret = register_sm(c);
	if (!ret)
		ret = umad_get_issm_path(c->at.device, c->at.port, path, sizeof(path));
	if (!ret) {
		c->is_sm = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		ret = c->is_sm < 0 ? -errno : 0;
	}
	if (ret)
		stop_sm(c);
	return ret;
}

/* ---- coming and going ---- */

static void on_process(struct ibsim_source *s, uint32_t events)
{
	struct ibsim_client *c = container_of(s, struct ibsim_client, process);

	(void)events;
	c->common->gone(c->common, c);
}

/* The sockets of a process that is killed say nothing. Without a PID the next MAD for it will. */
static int watch_process(struct ibsim_client *c, pid_t pid)
{
	if (pid <= 0)
		return 0;
	c->process.fd = pidfd_open(pid, 0);
	if (c->process.fd < 0)
		return -errno;
	return ibsim_source_watch(c->common->loop, &c->process, EPOLLIN);
}

/* The socket for its MADs: from now on nobody else can send to it. */
static int open_socket(struct ibsim_client *c, uint32_t peer)
{
	struct ibsim_address mine, its;
	int ret;

	if (!ibsim_address_make(&mine, c->common->base, "out", c->id) ||
	    !ibsim_address_make(&its, c->common->base, "in", peer))
		return -ENAMETOOLONG;
	ret = c->socket.fd = ibsim_socket_open(&mine);
	if (ret < 0)
		return ret;
	if (connect(c->socket.fd, (struct sockaddr *)&its.name, its.bytes))
		return -errno;
	return ibsim_source_watch(c->common->loop, &c->socket, EPOLLIN);
}

static int open_port(struct ibsim_client *c)
{
	int ret = c->port.fd = umad_open_port(c->at.device, c->at.port);

	if (ret < 0)
		return ret;
	c->smi = umad_register(ret, MAD_CLASS_SUBN_LID, MAD_VERSION_SUBN, 0, NULL);
	c->sa = umad_register(ret, MAD_CLASS_SUBN_ADM, MAD_VERSION_SUBN_ADM, RMPP_VERSION, NULL);
	c->gsi = umad_register(ret, 0, 0, 0, NULL); /* any class: it gets responses alone */
	if (c->smi < 0 || c->sa < 0 || c->gsi < 0)
		return -EIO;
	return ibsim_source_watch(c->common->loop, &c->port, EPOLLIN);
}

int ibsim_client_open(struct ibsim_client **out, struct ibsim_common *common, uint32_t id,
                      const struct ibsim_connect *hello, const struct ibsim_sender *sender)
{
	struct ibsim_client *c = calloc(1, sizeof(*c));
	char node[IBSIM_NODE_BYTES];
	int ret;

	if (!c)
		return -ENOMEM;
	c->common = common;
	c->id = id;
	c->control = sender->address;
	c->socket = (struct ibsim_source){ .fd = -1, .ready = on_socket };
	c->port = (struct ibsim_source){ .fd = -1, .ready = on_port };
	c->process = (struct ibsim_source){ .fd = -1, .ready = on_process };
	c->is_sm = -1;
	memset(c->sm_agent, -1, sizeof(c->sm_agent));
	snprintf(node, sizeof(node), "%.*s", IBSIM_NODE_BYTES - 1, hello->node);
	ret = open_socket(c, hello->id);
	if (!ret)
		ret = ibsim_node_find(node, &c->at);
	if (!ret)
		ret = open_port(c);
	if (!ret && hello->is_sm)
		ret = ibsim_client_set_sm(c, true);
	if (!ret)
		ret = watch_process(c, sender->pid);
	if (ret)
		ibsim_client_close(c);
	else
		*out = c;
	return ret;
}

static void source_close(struct ibsim_client *c, struct ibsim_source *s)
{
	if (s->fd < 0)
		return;
	ibsim_source_forget(c->common->loop, s);
	close(s->fd);
}

void ibsim_client_close(struct ibsim_client *c)
{
	if (c->port.fd >= 0) {
		stop_sm(c);
		ibsim_source_forget(c->common->loop, &c->port);
		umad_close_port(c->port.fd);
	}
	source_close(c, &c->socket);
	source_close(c, &c->process);
	ibsim_requests_fini(&c->requests);
	free(c);
}
