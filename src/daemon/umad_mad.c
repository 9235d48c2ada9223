/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MADs from programs to the fabric, and from the fabric to programs: whose they are, what
 * waits for an answer, and for how long. See umad.h.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon/umad.h"

#define HEADER_BYTES sizeof(struct ib_user_mad)
#define NS_PER_MS    1000000ull
#define MIN_BYTES    36 /* of what a program sends */
#define FAILED_BYTES 24 /* of what it gets back: the common header */
#define TID_AT       8
#define OUI_AT       37
#define MAX_REQUESTS (1u << 18) /* of an agent */
#define SEND_AT_ONCE 4096       /* MADs, before others have their turn */

bool daemon_umad_is_response(const struct wire_mad *head)
{
	return (head->method & MAD_METHOD_RESPONSE) || head->method == MAD_TRAP_REPRESS ||
	       (head->mgmt_class == MAD_CLASS_BM && (head->attribute_modifier & 1));
}

static bool is_smp(const struct wire_mad *head)
{
	return head->mgmt_class == MAD_CLASS_SUBN_LID ||
	       head->mgmt_class == MAD_CLASS_SUBN_DIRECTED;
}

/* ---- the queue ---- */

void daemon_umad_queue(struct daemon_umad *u, struct fabric_port *from,
                       const struct fabric_mad *mad)
{
	struct umad_out *o = malloc(sizeof(*o));

	if (!o) {
		base_log("out of memory: a MAD is lost");
		return;
	}
	o->from = from;
	o->mad = *mad;
	STAILQ_INSERT_TAIL(&u->out, o, entry);
}

void daemon_umad_send_from(void *arg, struct fabric_port *from, const struct fabric_mad *mad)
{
	daemon_umad_queue(((struct daemon *)arg)->umad, from, mad);
}

static int on_more(sd_event_source *s, void *arg)
{
	(void)s;
	daemon_umad_send_queued(arg);
	return 0;
}

static void send_soon(struct daemon_umad *u)
{
	if (!u->more && sd_event_add_defer(u->d->loop, &u->more, on_more, u) < 0) {
		base_log("cannot go on sending MADs: some are delayed");
		return;
	}
	sd_event_source_set_enabled(u->more, SD_EVENT_ONESHOT);
}

void daemon_umad_send_queued(struct daemon_umad *u)
{
	struct umad_out *o;

	if (u->sending)
		return; /* whoever does will see to it */
	u->sending = true;
	for (int n = 0; n < SEND_AT_ONCE && (o = STAILQ_FIRST(&u->out)); n++) {
		STAILQ_REMOVE_HEAD(&u->out, entry);
		fabric_mad_send(u->d->f, o->from, &o->mad);
		free(o);
	}
	u->sending = false;
	if (!STAILQ_EMPTY(&u->out))
		send_soon(u);
}

/* ---- to the program ---- */

static int make_memfd(const uint8_t *data, size_t bytes)
{
	int fd = memfd_create("umad", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, data, bytes) != (ssize_t)bytes) {
		close(fd);
		return -1;
	}
	return fd;
}

static void hand_over(struct umad_agent *agent, struct ib_user_mad *header, const uint8_t *data,
                      size_t bytes)
{
	uint8_t *packet = agent->port->u->packet;
	size_t in_packet = bytes;
	int memfd = -1;

	header->agent_id = agent->id;
	header->length = (uint32_t)(HEADER_BYTES + bytes);
	if (header->length > CONTROL_UMAD_DATAGRAM) {
		in_packet = MAD_BYTES;
		memfd = make_memfd(data, bytes);
		if (memfd < 0) {
			base_log("no memory for a message of %zu bytes: it is lost", bytes);
			return;
		}
	}
	memcpy(packet, header, HEADER_BYTES);
	memcpy(packet + HEADER_BYTES, data, in_packet);
	daemon_outbox_send_fd(agent->port->box, packet, HEADER_BYTES + in_packet, memfd);
}

/* What a program sent comes back to it: just the beginning. */
static void send_back(struct umad_agent *agent, const struct ib_user_mad *header,
                      const uint8_t *data, int status)
{
	struct ib_user_mad h = *header;

	h.status = (uint32_t)status;
	hand_over(agent, &h, data, FAILED_BYTES);
}

/* ---- requests ---- */

static uint64_t request_hash(const struct umad_agent *agent, uint64_t tid)
{
	return base_hash_of(&tid, sizeof(tid), agent->tid_high);
}

struct umad_request *daemon_umad_request_find(struct umad_agent *agent, const struct wire_mad *head,
                                              bool sent_response)
{
	struct daemon_umad *u = agent->port->u;
	uint64_t hash = request_hash(agent, head->transaction_id);

	for (struct base_hash_node *n = base_hash_first(&u->requests_by_tid, hash); n;
	     n = base_hash_next(n)) {
		struct umad_request *r = container_of(n, struct umad_request, by_tid);

		if (r->agent == agent && r->head.transaction_id == head->transaction_id &&
		    r->head.mgmt_class == head->mgmt_class &&
		    daemon_umad_is_response(&r->head) == sent_response)
			return r;
	}
	return NULL;
}

void daemon_umad_request_free(struct umad_request *r)
{
	struct daemon_umad *u = r->agent->port->u;

	base_hash_remove(&u->requests_by_tid, &r->by_tid);
	LIST_REMOVE(r, entry);
	r->agent->n_requests--;
	u->message_bytes -= r->message_bytes;
	free(r->message);
	free(r);
}

void daemon_umad_request_fail(struct umad_request *r, int status)
{
	send_back(r->agent, &r->header, r->mad.data, status);
	daemon_umad_request_free(r);
}

static int request_new(struct umad_agent *agent, const struct ib_user_mad *header,
                       const struct fabric_mad *mad, struct umad_request **out)
{
	struct daemon_umad *u = agent->port->u;
	struct umad_request *r;
	int ret;

	if (agent->n_requests >= MAX_REQUESTS)
		return -ENOMEM;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->agent = agent;
	r->header = *header;
	r->mad = *mad;
	r->retries = header->retries;
	wire_mad_decode(mad->data, &r->head);
	ret = base_hash_add(&u->requests_by_tid, &r->by_tid,
	                    request_hash(agent, r->head.transaction_id));
	if (ret) {
		free(r);
		return ret;
	}
	LIST_INSERT_HEAD(&u->requests, r, entry);
	agent->n_requests++;
	*out = r;
	return 0;
}

static void request_send(struct umad_request *r)
{
	struct daemon_umad *u = r->agent->port->u;

	r->deadline = base_now_ns() + r->header.timeout_ms * NS_PER_MS;
	daemon_umad_wake_at(u, r->deadline);
	daemon_umad_queue(u, r->agent->port->at, &r->mad);
}

static void request_expire(struct umad_request *r, uint64_t now)
{
	if (r->message) {
		daemon_umad_message_expire(r, now);
	} else if (r->retries) {
		r->retries--;
		request_send(r);
	} else {
		daemon_umad_request_fail(r, ETIMEDOUT);
	}
}

/* ---- time ---- */

static uint64_t expire_all(struct daemon_umad *u, uint64_t now)
{
	struct umad_request *r, *next_r;
	struct umad_reassembly *a, *next_a;
	uint64_t next = UINT64_MAX;

	for (r = LIST_FIRST(&u->requests); r; r = next_r) {
		next_r = LIST_NEXT(r, entry);
		if (r->deadline <= now)
			request_expire(r, now); /* to come again it wakes itself */
		else if (r->deadline < next)
			next = r->deadline;
	}
	for (a = LIST_FIRST(&u->reassemblies); a; a = next_a) {
		next_a = LIST_NEXT(a, entry);
		if (a->deadline <= now)
			daemon_umad_reassembly_expire(a, now);
		else if (a->deadline < next)
			next = a->deadline;
	}
	return next;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon_umad *u = arg;
	uint64_t next = expire_all(u, base_now_ns());

	(void)s;
	(void)usec;
	if (next != UINT64_MAX)
		daemon_umad_wake_at(u, next);
	daemon_umad_send_queued(u);
	return 0;
}

void daemon_umad_wake_at(struct daemon_umad *u, uint64_t ns)
{
	uint64_t at = ns / 1000 + 1, old;
	int enabled = SD_EVENT_OFF;

	if (!u->timer) {
		sd_event_add_time(u->d->loop, &u->timer, CLOCK_MONOTONIC, at, 1, on_timer, u);
		return;
	}
	sd_event_source_get_enabled(u->timer, &enabled);
	if (enabled != SD_EVENT_OFF && sd_event_source_get_time(u->timer, &old) >= 0 && old <= at)
		return;
	sd_event_source_set_time(u->timer, at);
	sd_event_source_set_enabled(u->timer, SD_EVENT_ONESHOT);
}

/* ---- from the program ---- */

static bool set_addresses(const struct umad_agent *agent, const struct ib_user_mad *header,
                          struct fabric_mad *mad)
{
	const struct ib_mad_addr *addr = &header->addr;
	const struct fabric_port *at = agent->port->at;
	const struct shm_port *shared = &agent->port->u->d->f->region->ports[at->index];

	mad->dlid = be16toh(addr->lid);
	mad->slid = at->lid | (addr->path_bits & ((1u << at->lmc) - 1));
	mad->src_qpn = agent->as.qpn;
	mad->dest_qpn = be32toh(addr->qpn) & IB_QPN_MASK;
	mad->qkey = agent->as.qpn == IB_QPN_GSI ? IB_QKEY_GSI : 0; /* not addr->qkey */
	mad->pkey_index = addr->pkey_index;
	mad->sl = addr->sl;
	mad->has_grh = addr->grh_present;
	if (addr->pkey_index >= SHM_PKEYS)
		return false;
	if (!mad->has_grh)
		return true;
	if (addr->gid_index >= SHM_GIDS)
		return false;
	mad->sgid = shared->gid[addr->gid_index];
	memcpy(mad->dgid.raw, addr->gid, sizeof(mad->dgid.raw));
	return true;
}

/*
 * In a request the high half of the transaction ID becomes the agent's own: requests of
 * different agents are different, and answers find back.
 */
static void set_tid(const struct umad_agent *agent, uint8_t *mad)
{
	uint32_t high = htobe32(agent->tid_high);

	memcpy(mad + TID_AT, &high, sizeof(high));
}

/* With something to wait for. 0 or -errno. */
static int submit_request(struct umad_agent *agent, const struct ib_user_mad *header,
                          const struct fabric_mad *mad, const uint8_t *data, size_t bytes)
{
	struct umad_request *r;
	struct wire_mad head;
	int ret;

	wire_mad_decode(mad->data, &head);
	if (daemon_umad_request_find(agent, &head, daemon_umad_is_response(&head)))
		return -EINVAL;
	ret = request_new(agent, header, mad, &r);
	if (ret)
		return ret;
	if (!data) {
		request_send(r);
		return 0;
	}
	ret = daemon_umad_message_new(r, data, bytes);
	if (ret)
		daemon_umad_request_free(r);
	else
		daemon_umad_message_send(r);
	return ret;
}

/* What is wrong with it the library has told already, or the program gets it back. */
void daemon_umad_submit(struct umad_open *port, const struct ib_user_mad *header,
                        const uint8_t *data, size_t bytes)
{
	struct umad_agent *agent =
	        header->agent_id < UMAD_CA_MAX_AGENTS ? port->agent[header->agent_id] : NULL;
	struct fabric_mad mad = { 0 };
	struct wire_mad head;
	bool message;
	int ret = 0;

	if (!agent || bytes < MIN_BYTES)
		return;
	memcpy(mad.data, data, bytes < MAD_BYTES ? bytes : MAD_BYTES);
	wire_mad_decode(mad.data, &head);
	if (!daemon_umad_is_response(&head))
		set_tid(agent, mad.data);
	message = agent->reassembles &&
	          wire_rmpp_is_active(mad.data); /* whatever else its header says */
	if (bytes > MAD_BYTES && !message)
		ret = -EINVAL;
	else if (!set_addresses(agent, header, &mad))
		ret = -EINVAL;
	else if (is_smp(&head) != (agent->as.qpn == IB_QPN_SMI))
		ret = -EINVAL; /* the kernel drops it at the other end */
	else if (message || header->timeout_ms)
		ret = submit_request(agent, header, &mad, message ? data : NULL, bytes);
	else
		daemon_umad_queue(port->u, port->at, &mad);
	if (ret)
		send_back(agent, header, mad.data, -ret);
}

/* ---- from the fabric ---- */

static struct umad_agent *agent_of_answer(struct daemon_umad *u, const struct fabric_port *at,
                                          const struct wire_mad *head)
{
	uint32_t high = (uint32_t)(head->transaction_id >> 32);
	struct umad_open *port;

	LIST_FOREACH(port, &u->at[at->index], entry)
	for (unsigned i = 0; i < UMAD_CA_MAX_AGENTS; i++)
		if (port->agent[i] && port->agent[i]->tid_high == high)
			return port->agent[i];
	return NULL;
}

static bool wants(const struct control_umad_register *as, const struct wire_mad *head,
                  const uint8_t *data)
{
	unsigned method = head->method & ~MAD_METHOD_RESPONSE;
	uint32_t oui =
	        (uint32_t)data[OUI_AT] << 16 | (uint32_t)data[OUI_AT + 1] << 8 | data[OUI_AT + 2];

	return as->mgmt_class && as->mgmt_class == head->mgmt_class &&
	       as->mgmt_class_version == head->class_version &&
	       (as->method_mask[method / 64] >> (method % 64) & 1) &&
	       (head->mgmt_class < MAD_CLASS_VENDOR2_FIRST ||
	        head->mgmt_class > MAD_CLASS_VENDOR2_LAST || as->oui == oui);
}

static struct umad_agent *agent_of_request(struct daemon_umad *u, const struct fabric_port *at,
                                           const struct wire_mad *head, const uint8_t *data)
{
	struct umad_open *port;

	LIST_FOREACH(port, &u->at[at->index], entry)
	for (unsigned i = 0; i < UMAD_CA_MAX_AGENTS; i++)
		if (port->agent[i] && wants(&port->agent[i]->as, head, data))
			return port->agent[i];
	return NULL;
}

/* An answer nobody waits for is dropped, but for the later segments that an agent with an RMPP
 * of its own gets. */
static bool is_awaited(struct umad_agent *agent, const struct wire_mad *head, const uint8_t *data)
{
	struct umad_request *r = daemon_umad_request_find(agent, head, false);

	if (r && r->header.timeout_ms) {
		daemon_umad_request_free(r);
		return true;
	}
	return !agent->reassembles && wire_rmpp_is_active(data);
}

void daemon_umad_receive(struct umad_agent *agent, const struct fabric_mad *mad,
                         const uint8_t *data, size_t bytes)
{
	const struct fabric_port *at = agent->port->at;
	struct ib_user_mad header = { 0 };
	struct wire_mad head;

	wire_mad_decode(mad->data, &head);
	if (daemon_umad_is_response(&head) && !is_awaited(agent, &head, mad->data))
		return;
	header.addr.qpn = htobe32(mad->src_qpn);
	header.addr.lid = htobe16(mad->slid);
	header.addr.sl = mad->sl;
	header.addr.path_bits = (uint8_t)(mad->dlid & ((1u << at->lmc) - 1));
	header.addr.pkey_index = mad->pkey_index;
	header.addr.grh_present = mad->has_grh;
	if (mad->has_grh)
		memcpy(header.addr.gid, mad->sgid.raw, sizeof(header.addr.gid));
	hand_over(agent, &header, data, bytes);
}

static bool take(struct daemon_umad *u, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct umad_agent *agent;
	struct wire_mad head;

	wire_mad_decode(mad->data, &head);
	if (head.base_version != MAD_BASE_VERSION ||
	    mad->dest_qpn != (is_smp(&head) ? IB_QPN_SMI : IB_QPN_GSI))
		return false;
	agent = daemon_umad_is_response(&head) ? agent_of_answer(u, at, &head)
	                                       : agent_of_request(u, at, &head, mad->data);
	if (!agent || agent->as.qpn != mad->dest_qpn)
		return false;
	if (agent->reassembles && wire_rmpp_is_active(mad->data))
		daemon_umad_segment(agent, mad);
	else
		daemon_umad_receive(agent, mad, mad->data, MAD_BYTES);
	if (!u->sending && !STAILQ_EMPTY(&u->out))
		send_soon(u); /* not under the feet of whoever sends */
	return true;
}

bool daemon_umad_deliver(void *arg, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct daemon *d = arg;

	if (at->node->type == FABRIC_HCA && d->umad && take(d->umad, at, mad))
		return true;
	/* no program wants it: what the manager itself has asked for, or the embedded subnet
	 * manager and administrator, if it is their port */
	if (at->node->type == FABRIC_HCA && d->cm && cm_mad_input(d->cm, at, mad))
		return true;
	return daemon_subnet_mad(d, at, mad);
}

void daemon_umad_forget(struct umad_agent *agent)
{
	struct daemon_umad *u = agent->port->u;
	struct umad_request *r, *next_r;
	struct umad_reassembly *a, *next_a;

	for (r = LIST_FIRST(&u->requests); r && agent->n_requests; r = next_r) {
		next_r = LIST_NEXT(r, entry);
		if (r->agent == agent)
			daemon_umad_request_free(r);
	}
	for (a = LIST_FIRST(&u->reassemblies); a && agent->n_reassemblies; a = next_a) {
		next_a = LIST_NEXT(a, entry);
		if (a->agent == agent)
			daemon_umad_reassembly_free(a);
	}
}
