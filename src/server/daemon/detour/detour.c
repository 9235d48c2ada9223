/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that go by the daemon: see detour.h. They come in, wait for their turn, pass the rules,
 * and land (landing.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/reason.h"
#include "base/util.h"
#include "control/message.h"
#include "daemon/core/pair.h"
#include "daemon/detour/detour.h"
#include "fabric/forwarding/flow.h"
#include "fabric/forwarding/mcast_path.h"
#include "fabric/model/event.h"
#include "shm/packets.h"
#include "wire/roce.h"

#define ROOM (sizeof(struct control_detour) + WIRE_ROCE_MAX_PAYLOAD)
/* Packets of one socket, and of the list, before others have a turn: some 3 us each. */
#define AT_ONCE 64
#define TURN_NS (2 * DAEMON_NS_PER_MS) /* likewise: a message to a large group takes longer */
/* So many packets wait for their turn, and no socket is read. */
#define MOST_WAITING 1024
/* So many wait, and nothing is taken ahead of its turn: at most 70 MB. */
#define MOST_TAKEN 16384
/* As many as a socket may hold, and more. */
#define ALL_OF_A_SOCKET 1024
/* So many bytes are held; further packets are lost. */
#define MOST_HELD (64 << 20)
#define NOTE      sizeof(((struct control_captured *)0)->note)
/* A queue pair's packet that waits for the next one does not wait for longer. */
#define REORDER_NS (10 * DAEMON_NS_PER_MS)

/* A process's socket. */
struct daemon_detour_end {
	struct base_hash_node node; /* by client */
	struct daemon_detour *d;
	struct daemon_source source;
	uint32_t client; /* its number */
	int host_index;  /* it sees that one; -1: all */
};

/* A packet on its way. */
struct daemon_parcel {
	TAILQ_ENTRY(daemon_parcel) entry;
	struct base_timer timer; /* it is held */
	struct daemon_detour *d;
	struct fabric_flow *flow; /* of its sender, which may be gone */
	bool is_held_for_next;
	uint8_t *cut; /* as in struct daemon_verdict */
	bool is_foreign;
	struct ib_gid sgid; /* is_foreign: it comes from another subnet */
	struct control_detour packet;
	uint8_t payload[];
};

static void work(struct daemon_detour *d);

static void on_turn(struct base_timer *t)
{
	work(container_of(t, struct daemon_detour, turn));
}

static void work_soon(struct daemon_detour *d)
{
	if (!base_timer_is_set(&d->turn))
		base_timer_set_in(&d->loop->timers, &d->turn, 0, on_turn);
}

/* ---- packets that come in ---- */

/* NULL: no memory; it is counted. */
static struct daemon_parcel *wrap(struct daemon_detour *d, struct fabric_flow *flow,
                                  const struct control_detour *packet, const void *payload)
{
	struct daemon_parcel *p = malloc(sizeof(*p) + packet->payload_bytes);

	if (!p) {
		HCA_COUNT(d->self->process, flow->from->index, xmit_discards);
		return NULL;
	}
	memset(p, 0, sizeof(*p));
	p->d = d;
	p->flow = flow;
	fabric_flow_depart(flow);
	p->packet = *packet;
	if (packet->payload_bytes)
		memcpy(p->payload, payload, packet->payload_bytes);
	return p;
}

static void throw_away(struct daemon_parcel *p)
{
	fabric_flow_arrive(p->d->f, p->flow);
	free(p->cut);
	free(p);
}

/* A second one of the same, that misses the same ports. */
static struct daemon_parcel *twin_of(struct daemon_detour *d, const struct daemon_parcel *p)
{
	struct daemon_parcel *twin = wrap(d, p->flow, &p->packet, p->payload);

	if (twin) {
		twin->is_foreign = p->is_foreign;
		twin->sgid = p->sgid;
	}
	if (!twin || !p->cut)
		return twin;
	twin->cut = malloc(d->f->n_hca_ports);
	if (!twin->cut) {
		throw_away(twin);
		return NULL;
	}
	memcpy(twin->cut, p->cut, d->f->n_hca_ports);
	return twin;
}

static void append(struct daemon_detour *d, const struct control_detour *packet,
                   const void *payload)
{
	struct fabric_flow *flow = fabric_flow_find(d->f, packet->flow);
	struct daemon_parcel *p = NULL;

	if (flow && flow->key.qpn == packet->src_qpn)
		p = wrap(d, flow, packet, payload);
	if (!p)
		return;
	TAILQ_INSERT_TAIL(&d->waiting, p, entry);
	d->n_waiting++;
}

/* Whether the process may send that in the queue pair's name: it is its own; or the packet leaves
 * the fabric, and the process, which receives for all queue pairs of the port, answers for it. It
 * has the port's sockets for that, and so could send the same to the network itself. */
static bool may_send(const struct daemon_detour_end *e, const struct shm_qp *q,
                     const struct control_detour *packet)
{
	const struct fabric *f = e->d->f;
	const struct shm_flow *flow = shm_flow_at(f->region, packet->flow % SHM_MAX_FLOWS);

	if (q->client == e->client)
		return true;
	return (q->type == IBV_QPT_RC || q->type == IBV_QPT_UC) && q->port < f->n_hca_ports &&
	       (flow->flags & SHM_FLOW_ROCE) && !flow->count &&
	       (e->host_index < 0 ||
	        (uint32_t)e->host_index ==
	                shm_hca_at(f->region, f->hca_port[q->port]->node->hca)->host_index);
}

/* Whether the process may send what it has sent. */
static bool is_sound(const struct daemon_detour_end *e, const struct control_detour *packet,
                     size_t bytes)
{
	const struct shm_qp *q;

	if (bytes < sizeof(*packet) || packet->payload_bytes > WIRE_ROCE_MAX_PAYLOAD ||
	    bytes != sizeof(*packet) + packet->payload_bytes)
		return false;
	q = shm_qp_at(e->d->f->region, SHM_QP_INDEX(packet->src_qpn));
	return q->qpn == packet->src_qpn && may_send(e, q, packet) &&
	       wire_opcodes[packet->h.bth.opcode].name;
}

/* Any byte may stand where there is to be 0 or 1. */
static void make_bool(bool *b)
{
	const uint8_t byte = *(const uint8_t *)b;

	*b = byte != 0;
}

static void make_bools(struct wire_bth *bth)
{
	make_bool(&bth->solicited);
	make_bool(&bth->migrated);
	make_bool(&bth->fecn);
	make_bool(&bth->becn);
	make_bool(&bth->ack_requested);
}

/* Reads packets, @most at the most. How many there were; -1: the socket has ended. */
static int read_end(struct daemon_detour_end *e, unsigned most)
{
	union {
		struct control_detour packet;
		uint8_t bytes[ROOM + 1];
	} in;
	unsigned n = 0;

	atomic_store_explicit(&e->d->f->region->control->detour_ns, base_now_ns(),
	                      memory_order_relaxed);
	for (; n < most; n++) {
		ssize_t bytes = recv(e->source.fd, &in, sizeof(in), MSG_DONTWAIT);

		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes < 0)
			return errno == EAGAIN ? (int)n : -1;
		if (!bytes)
			return -1;
		if ((size_t)bytes >= sizeof(in.packet) && in.packet.flow == CONTROL_DETOUR_CALL) {
			daemon_wires_begin(e->d->times);
		} else if (is_sound(e, &in.packet, (size_t)bytes)) {
			make_bools(&in.packet.h.bth);
			append(e->d, &in.packet, in.bytes + sizeof(in.packet));
		}
	}
	return (int)n;
}

static void end_free(struct daemon_detour_end *e)
{
	int fd = e->source.fd;

	base_hash_remove(&e->d->ends, &e->node);
	daemon_source_stop(&e->source);
	daemon_loop_close_end(e->d->loop, fd);
	free(e);
}

static struct daemon_detour_end *end_of(const struct daemon_detour *d, uint32_t client)
{
	struct base_hash_node *node = base_hash_first(&d->ends, client);

	while (node && container_of(node, struct daemon_detour_end, node)->client != client)
		node = base_hash_next(node);
	return node ? container_of(node, struct daemon_detour_end, node) : NULL;
}

static void on_packets(struct daemon_source *s, uint32_t events)
{
	struct daemon_detour_end *e = container_of(s, struct daemon_detour_end, source);
	struct daemon_detour *d = e->d;

	(void)events;
	if (!daemon_detour_is_full(d) && read_end(e, AT_ONCE) < 0)
		end_free(e);
	work(d);
}

bool daemon_detour_is_full(const struct daemon_detour *d)
{
	return d->n_waiting >= MOST_WAITING;
}

void daemon_detour_hold_back(struct daemon_detour *d, bool is)
{
	d->is_held_back = is;
	for (struct base_hash_node *n = base_hash_walk(&d->ends, NULL); n;
	     n = base_hash_walk(&d->ends, n))
		daemon_source_change(&container_of(n, struct daemon_detour_end, node)->source,
		                     is ? 0 : EPOLLIN);
}

void daemon_detour_bring(struct daemon_detour *d, struct fabric_flow *flow,
                         const struct control_detour *packet, const void *payload,
                         const struct ib_gid *sgid)
{
	struct daemon_parcel *p = wrap(d, flow, packet, payload);

	if (!p)
		return;
	p->is_foreign = true;
	p->sgid = *sgid;
	TAILQ_INSERT_TAIL(&d->waiting, p, entry);
	d->n_waiting++;
	work_soon(d);
}

/* Takes all that the client's process has sent so far: it comes before what the daemon sends in the
 * name of a queue pair, and before a queue pair or a flow goes. If it has sent far too much, the
 * rest stays in its socket. */
static void take_sent(void *arg, uint32_t client)
{
	struct daemon_detour *d = arg;
	struct daemon_detour_end *e = d->n_waiting < MOST_TAKEN ? end_of(d, client) : NULL;

	if (!e)
		return;
	read_end(e, ALL_OF_A_SOCKET);
	work_soon(d);
}

/* Takes a packet that the daemon itself sends in the name of a queue pair: behind the packets of
 * its process. */
static void take(void *arg, const struct control_detour *packet, const void *payload)
{
	struct daemon_detour *d = arg;

	if (packet->flow == CONTROL_DETOUR_CALL) {
		daemon_wires_begin(d->times);
		return;
	}
	take_sent(d, shm_qp_at(d->f->region, SHM_QP_INDEX(packet->src_qpn))->client);
	append(d, packet, payload);
	work_soon(d);
}

/* ---- rules ---- */

/* Its sender's GID. */
static const struct ib_gid *sgid_of(const struct daemon_detour *d, const struct daemon_parcel *p)
{
	const struct shm_port *from = shm_port_at(d->f->region, p->flow->from->index);

	return p->is_foreign ? &p->sgid : &from->gid[p->packet.sgid_index % SHM_GIDS];
}

static void land(struct daemon_detour *d, const struct daemon_parcel *p)
{
	const struct daemon_leaving leaving = { .flow = p->flow,
		                                .packet = &p->packet,
		                                .payload = p->payload,
		                                .sgid = sgid_of(d, p),
		                                .is_foreign = p->is_foreign,
		                                .cut = p->cut };
	const bool fits = daemon_land(&d->landing, p->flow, &p->packet, p->payload, p->cut,
	                              p->is_foreign ? &p->sgid : NULL);

	if (fits && p->flow->path->routers && p->flow->start == FABRIC_FLOW_IN && d->leave &&
	    wire_opcode_transport(p->packet.h.bth.opcode) == WIRE_TRANSPORT_UD)
		d->leave(d->leave_arg, &leaving);
}

/* The list that it is held in. */
static struct daemon_parcels *list_of(struct daemon_parcel *p)
{
	return p->is_held_for_next ? &p->d->held_for_next : &p->d->held;
}

static void let_go(struct daemon_parcel *p)
{
	TAILQ_REMOVE(list_of(p), p, entry);
	p->d->held_bytes -= sizeof(*p) + p->packet.payload_bytes;
}

static void on_held(struct base_timer *t)
{
	struct daemon_parcel *p = container_of(t, struct daemon_parcel, timer);
	struct daemon_detour *d = p->d;

	let_go(p);
	land(d, p);
	throw_away(p);
	work_soon(d); /* what that has set off */
}

static void hold(struct daemon_detour *d, struct daemon_parcel *p, uint64_t ns)
{
	if (d->held_bytes > MOST_HELD) {
		HCA_COUNT(d->self->process, p->flow->from->index, xmit_discards);
		throw_away(p);
		return;
	}
	d->held_bytes += sizeof(*p) + p->packet.payload_bytes;
	TAILQ_INSERT_TAIL(list_of(p), p, entry);
	base_timer_set_in(&d->loop->timers, &p->timer, ns, on_held);
}

/* A packet of the queue pair has landed: those that waited for that land now. */
static void release(struct daemon_detour *d, uint32_t src_qpn)
{
	struct daemon_parcel *p, *next;

	for (p = TAILQ_FIRST(&d->held_for_next); p; p = next) {
		next = TAILQ_NEXT(p, entry);
		if (p->packet.src_qpn != src_qpn)
			continue;
		base_timer_stop(&p->timer);
		on_held(&p->timer);
	}
}

/* Of the first request that the queue pair waits for. */
static uint32_t first_psn(const struct shm_region *r, uint32_t qpn)
{
	const struct shm_connection *c = shm_connection_at(r, SHM_QP_INDEX(qpn));

	return shm_wire_head(shm_wire_at(r, SHM_QP_INDEX(qpn)),
	                     atomic_load_explicit(&c->head, memory_order_relaxed))
	        ->psn;
}

/* Where the packet stands in its connection, and in its message: a requester that reads much asks
 * for one part after the other, each of which has a first response. */
static void place(const struct shm_region *r, struct daemon_rule_packet *p)
{
	const struct shm_wire *own = shm_wire_at(r, SHM_QP_INDEX(p->src_qpn));
	const unsigned flags = wire_opcodes[p->opcode].flags;
	const bool responds = flags & WIRE_OPCODE_RESPONSE;

	p->first_psn = responds ? own->path.first_expected : own->path.first_psn;
	p->leaves = own->path.detours == SHM_WIRE_AWAY;
	p->begins = (flags & WIRE_OPCODE_FIRST) &&
	            (!responds || p->leaves || first_psn(r, p->dest_qpn) == p->psn);
}

static struct daemon_verdict judge(struct daemon_detour *d, const struct daemon_parcel *parcel)
{
	const struct control_detour *packet = &parcel->packet;
	const struct fabric_flow *flow = parcel->flow;
	/* the number of a queue pair of another subnet says nothing here */
	struct daemon_rule_packet p = { .src_qpn = parcel->is_foreign ? 0 : packet->src_qpn,
		                        .dest_qpn = packet->h.bth.dest_qpn,
		                        .opcode = packet->h.bth.opcode,
		                        .psn = packet->h.bth.psn,
		                        .now_ns = base_now_ns(),
		                        .from = flow->from,
		                        .path = flow->path };

	place(d->f->region, &p);
	if (flow->path->roce && !ib_lid_is_mcast(flow->key.dlid))
		p.to = fabric_ethernet_find_anywhere(d->f, flow->from, &flow->key.dgid);
	return daemon_rules_judge(&d->rules, &p);
}

/* Answers a request of RC as its responder would that refuses it. */
static void refuse(struct daemon_detour *d, const struct control_detour *request, uint8_t syndrome)
{
	const struct shm_wire *w = shm_wire_at(d->f->region, SHM_QP_INDEX(request->h.bth.dest_qpn));
	struct control_detour nak = {
		.src_qpn = request->h.bth.dest_qpn,
		.flow = w->path.flow,
		.h.bth = { .opcode = WIRE_OPCODE(WIRE_TRANSPORT_RC, WIRE_ACKNOWLEDGE),
		           .migrated = true,
		           .pkey = request->h.bth.pkey,
		           .dest_qpn = request->src_qpn,
		           .psn = request->h.bth.psn },
		.h.aeth = { .syndrome = syndrome, .msn = w->in.msn },
	};

	if (syndrome == WIRE_AETH_SYNDROME(WIRE_AETH_RNR, 0))
		nak.h.aeth.syndrome |= w->path.min_rnr_timer & 31;
	append(d, &nak, "");
}

/* The fate of the packet, as a comment of captures. */
static const char *note_of(const struct daemon_verdict *v, char note[static NOTE])
{
	static const struct {
		unsigned fault;
		const char *text;
	} texts[] = {
		{ DAEMON_FAULT_DROP, "dropped" },  { DAEMON_FAULT_CORRUPT, "damaged" },
		{ DAEMON_FAULT_ECN, "marked" },    { DAEMON_FAULT_DUPLICATE, "duplicated" },
		{ DAEMON_FAULT_DELAY, "delayed" }, { DAEMON_FAULT_REORDER, "reordered" },
		{ DAEMON_FAULT_NAK, "refused" },
	};
	size_t n = 0;

	note[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(texts) && n < NOTE; i++)
		if (v->faults & texts[i].fault)
			n += (size_t)snprintf(note + n, NOTE - n, "%s%s",
			                      n ? ", " : "fault: ", texts[i].text);
	if (v->cut && n < NOTE)
		snprintf(note + n, NOTE - n, "%s",
		         n ? ", some copies dropped" : "fault: some copies dropped");
	return note;
}

static void show(struct daemon_detour *d, const struct daemon_parcel *p,
                 const struct daemon_verdict *v)
{
	const struct control_detour *packet = &p->packet;
	char note[NOTE];

	daemon_captures_packet(d->captures,
	                       &(struct daemon_seen_packet){ .flow = p->flow,
	                                                     .h = &packet->h,
	                                                     .payload = p->payload,
	                                                     .payload_bytes = packet->payload_bytes,
	                                                     .class_flow = packet->class_flow,
	                                                     .hop_limit = packet->hop_limit,
	                                                     .sgid = sgid_of(d, p),
	                                                     .note = note_of(v, note) });
}

/* Adds the packet to the counters of the ports that it crosses, by what rules do to it.
 * Acknowledgements are in no counter, whichever way they go. */
static void count(struct daemon_detour *d, const struct daemon_parcel *p)
{
	const struct control_detour *packet = &p->packet;
	struct fabric_mishap m = { .fate = daemon_rules_fate, .arg = &d->rules };

	if (packet->h.bth.opcode == WIRE_OPCODE(WIRE_TRANSPORT_RC, WIRE_ACKNOWLEDGE) ||
	    packet->h.bth.opcode == WIRE_OPCODE_CNP)
		return;
	if (d->rules.n_losing)
		m.behind = daemon_rules_scratch(&d->rules);
	fabric_flow_count_packet(d->f, p->flow, packet->payload_bytes,
	                         d->rules.n_losing ? &m : NULL);
}

/* The packet has its turn. */
static void pass(struct daemon_detour *d, struct daemon_parcel *p)
{
	const struct daemon_verdict v = judge(d, p);
	const uint32_t src_qpn = p->is_foreign ? 0 : p->packet.src_qpn;

	p->cut = v.cut;
	count(d, p);
	if (d->captures->n_data)
		show(d, p, &v);
	if (v.faults & DAEMON_FAULT_NAK)
		refuse(d, &p->packet, v.syndrome);
	if (v.faults & (DAEMON_FAULT_DROP | DAEMON_FAULT_CORRUPT | DAEMON_FAULT_NAK)) {
		throw_away(p);
		return;
	}
	if (v.faults & DAEMON_FAULT_ECN)
		p->packet.class_flow |= DAEMON_ECN_MARKED << 20;
	if (v.faults & DAEMON_FAULT_DUPLICATE) {
		struct daemon_parcel *twin = twin_of(d, p);

		if (twin)
			hold(d, twin, v.delay_ns);
	}
	if (v.faults & (DAEMON_FAULT_DELAY | DAEMON_FAULT_REORDER)) {
		p->is_held_for_next = v.faults & DAEMON_FAULT_REORDER;
		hold(d, p, v.faults & DAEMON_FAULT_DELAY ? v.delay_ns : REORDER_NS);
		return;
	}
	land(d, p);
	throw_away(p);
	if (!TAILQ_EMPTY(&d->held_for_next))
		release(d, src_qpn);
}

static void work(struct daemon_detour *d)
{
	const uint64_t began = base_now_ns();
	struct daemon_parcel *p;
	bool more;

	for (unsigned n = 0; (p = TAILQ_FIRST(&d->waiting)) && n < AT_ONCE; n++) {
		if (n && base_now_ns() - began > TURN_NS)
			break;
		TAILQ_REMOVE(&d->waiting, p, entry);
		d->n_waiting--;
		pass(d, p);
	}
	more = d->landing.is_ready && daemon_landing_finish(&d->landing);
	if (more || !TAILQ_EMPTY(&d->waiting))
		work_soon(d);
}

/* ---- open and closed ---- */

/* The daemon gets what it delivers by. 0 or -errno. */
static int make_ready(struct daemon_detour *d)
{
	struct hca_process *process = d->self->process;
	int ret;

	if (d->landing.is_ready)
		return 0;
	ret = daemon_landing_open(&d->landing);
	if (ret)
		return ret;
	process->detour.take = take;
	process->detour.arg = d;
	d->times->detour = &d->landing.wires;
	d->qps->take_sent = take_sent;
	d->qps->take_arg = d;
	return 0;
}

/* Rules judge all packets, so that they count alike whatever is captured. */
static bool has_rules(const struct daemon_detour *d)
{
	return d->rules.n > d->rules.n_calls + d->rules.n_links + d->rules.n_mads;
}

static bool takes_flow(void *arg, const struct fabric_flow *flow)
{
	const struct daemon_detour *d = arg;

	return has_rules(d) || daemon_captures_want_flow(d->captures, flow);
}

/* Which connections that are made from now on make it. */
static void choose_connections(struct daemon_detour *d)
{
	struct shm_control *c = d->f->region->control;
	uint32_t qpns[SHM_DETOUR_QPNS] = { 0 };
	const enum shm_detour open = has_rules(d) ? SHM_DETOUR_RULES : SHM_DETOUR_CAPTURES;
	uint32_t n =
	        has_rules(d) ? DAEMON_CAPTURES_ALL : daemon_captures_connections(d->captures, qpns);

	static_assert(SHM_DETOUR_QPNS == DAEMON_CAPTURES_QPNS, "there is room for all");
	if (n == DAEMON_CAPTURES_ALL)
		memset(qpns, 0, sizeof(qpns));
	for (unsigned i = 0; i < SHM_DETOUR_QPNS; i++)
		atomic_store_explicit(&c->detour_qpns[i], qpns[i], memory_order_relaxed);
	atomic_store_explicit(&c->detour, n ? open : SHM_DETOUR_CLOSED, memory_order_relaxed);
	d->f->flows->detoured |= n > 0;
}

/* Opens or closes it, as there is need, and for what there is need. 0 or -errno. */
static int adapt(struct daemon_detour *d)
{
	int ret = has_rules(d) || d->captures->n_data ? make_ready(d) : 0;

	atomic_store_explicit(&d->f->region->control->faulty_calls, d->rules.n_calls,
	                      memory_order_relaxed);
	if (ret)
		return ret;
	daemon_late_mads_adapt(&d->late_mads);
	choose_connections(d);
	d->f->flows->detour =
	        (struct fabric_flow_detour){ .takes = d->landing.is_ready ? takes_flow : NULL,
		                             .arg = d };
	fabric_flow_detour_changed(d->f);
	return 0;
}

int daemon_detour_prepare(struct daemon_detour *d)
{
	int ret = make_ready(d);

	d->f->flows->detoured = true;
	return ret ? ret : adapt(d);
}

/* ---- requests ---- */

static int open_end(struct daemon_call *call)
{
	struct daemon_detour *d = call->module;
	struct daemon_detour_end *before = end_of(d, call->client->id);
	struct daemon_detour_end *e = calloc(1, sizeof(*e));
	int pair[2], ret = -ENOMEM;

	if (!e)
		return ret;
	if (before) /* it needs one */
		end_free(before);
	ret = daemon_pair(d->loop, SOCK_SEQPACKET, pair);
	if (ret) {
		free(e);
		return ret;
	}
	e->d = d;
	e->client = call->client->id;
	e->host_index = call->client->host_index;
	e->source.ready = on_packets;
	ret = base_hash_add(&d->ends, &e->node, e->client);
	if (ret)
		goto err_close;
	ret = daemon_source_watch(d->loop, &e->source, pair[0], d->is_held_back ? 0 : EPOLLIN);
	if (ret)
		goto err_hash;
	daemon_call_give(call, pair[1]);
	return 0;
err_hash:
	base_hash_remove(&d->ends, &e->node);
err_close:
	daemon_loop_close_end(d->loop, pair[0]);
	close(pair[1]);
	free(e);
	return ret;
}

/* The status of a request: if the subnet sweeps because of it, it waits for that. */
static int when_swept(const struct daemon_detour *d, bool changed)
{
	return changed && daemon_subnet_is_sweeping(d->subnet) ? DAEMON_REPLY_THEN : 0;
}

static int add_fault(struct daemon_call *call)
{
	struct daemon_detour *d = call->module;
	const struct control_fault *req = call->body;
	struct control_fault_reply *rep;
	struct daemon_rule *rule;
	char why[BASE_REASON_MAX] = "";
	int ret;

	if (!memchr(req->rule, '\0', sizeof(req->rule)))
		return -EINVAL;
	ret = daemon_rules_add(&d->rules, req->rule, base_now_ns(), &rule, why, sizeof(why));
	if (ret)
		return *why ? base_because(ret, "%s", why) : ret;
	ret = adapt(d);
	if (ret) {
		daemon_rules_remove(&d->rules, rule->number);
		return ret;
	}
	fabric_tell(d->f, &(struct fabric_event){ .kind = "fault",
	                                          .what = "added",
	                                          .number = rule->number,
	                                          .rule = rule->text });
	rep = daemon_call_reply(call, sizeof(*rep));
	rep->number = rule->number;
	return daemon_rule_is_about_link(rule) ? when_swept(d, daemon_bad_links_run(&d->bad_links))
	                                       : 0;
}

static int clear_fault(struct daemon_call *call)
{
	struct daemon_detour *d = call->module;
	const struct control_handle *req = call->body;
	const bool changed = daemon_bad_links_end(&d->bad_links, req->handle);
	int ret;

	if (!daemon_rules_remove(&d->rules, req->handle))
		return -ENOENT;
	fabric_tell(d->f, &(struct fabric_event){ .kind = "fault",
	                                          .what = req->handle ? "cleared" : "all cleared",
	                                          .number = req->handle });
	ret = adapt(d);
	return ret ? ret : when_swept(d, changed);
}

static int meet_fault(struct daemon_call *call)
{
	struct daemon_detour *d = call->module;
	const struct control_meet_fault *req = call->body;
	struct control_meet_fault_reply *rep;
	const struct daemon_rule *rule, *made = NULL;
	const uint64_t now_ns = base_now_ns();

	if (req->hca >= d->f->region->control->n_hcas || req->kind > CONTROL_CALL_REGISTER ||
	    !daemon_client_sees(call->client, shm_hca_at(d->f->region, req->hca)->host_index))
		return -EINVAL;
	rep = daemon_call_reply(call, sizeof(*rep));
	rule = daemon_rules_judge_call(&d->rules, req->kind, req->hca, req->qpn, now_ns);
	if (req->kind == CONTROL_CALL_COMPLETION)
		made = daemon_rules_judge_call(&d->rules, CONTROL_CALL_MADE, req->hca, req->qpn,
		                               now_ns);
	*rep = (struct control_meet_fault_reply){ .value = rule ? rule->value : 0 };
	if (made) {
		rep->made = 1 + (uint32_t)made->value;
		rep->has_wr_id = made->has_wr_id;
		rep->wr_id = made->wr_id;
	}
	return 0;
}

static const struct daemon_request requests[] = {
	DAEMON_REQUEST(MEET_FAULT, control_meet_fault, DAEMON_VERBS, meet_fault),
	{ .type = CONTROL_OPEN_DETOUR, .who = DAEMON_VERBS, .serve = open_end },
	DAEMON_OWNERS_REQUEST(ADD_FAULT, control_fault, DAEMON_CLI, add_fault),
	DAEMON_OWNERS_REQUEST(CLEAR_FAULT, control_handle, DAEMON_CLI, clear_fault),
};

static void on_begins(void *arg, uint32_t hca, uint32_t qpn)
{
	struct daemon_detour *d = arg;

	daemon_rules_begins(&d->rules, hca, qpn);
}

static void on_data_wanted(void *arg)
{
	if (adapt(arg))
		base_log_warning(daemon, "no memory: captures see no messages of queue pairs");
}

void daemon_detour_init(struct daemon_detour *d, struct daemon_requests *all)
{
	d->captures->data_wanted = on_data_wanted;
	d->captures->data_arg = d;
	daemon_rules_init(&d->rules, d->f);
	d->qps->begins = on_begins;
	d->qps->begins_arg = d;
	d->bad_links = (struct daemon_bad_links){
		.f = d->f, .loop = d->loop, .subnet = d->subnet, .rules = &d->rules
	};
	d->late_mads = (struct daemon_late_mads){ .f = d->f, .loop = d->loop, .rules = &d->rules };
	daemon_late_mads_init(&d->late_mads);
	d->weak_events.subnet = d->subnet;
	daemon_weak_events_init(&d->weak_events);
	d->landing.f = d->f;
	d->landing.self = d->self;
	d->landing.roce = d->roce;
	TAILQ_INIT(&d->waiting);
	TAILQ_INIT(&d->held);
	TAILQ_INIT(&d->held_for_next);
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), d);
}

static void drop_all(struct daemon_parcels *parcels)
{
	struct daemon_parcel *p;

	while ((p = TAILQ_FIRST(parcels))) {
		TAILQ_REMOVE(parcels, p, entry);
		base_timer_stop(&p->timer);
		throw_away(p);
	}
}

void daemon_detour_stop(struct daemon_detour *d)
{
	struct base_hash_node *node;

	if (d->captures)
		d->captures->data_wanted = NULL;
	if (d->f)
		d->f->flows->detour.takes = NULL;
	if (d->qps)
		d->qps->take_sent = NULL, d->qps->begins = NULL;
	while ((node = base_hash_walk(&d->ends, NULL)) != NULL)
		end_free(container_of(node, struct daemon_detour_end, node));
	base_hash_fini(&d->ends);
	base_timer_stop(&d->turn);
	drop_all(&d->waiting);
	drop_all(&d->held);
	drop_all(&d->held_for_next);
	daemon_bad_links_stop(&d->bad_links);
	daemon_weak_events_stop(&d->weak_events);
	daemon_late_mads_stop(&d->late_mads);
	daemon_rules_fini(&d->rules);
	daemon_landing_close(&d->landing);
}
