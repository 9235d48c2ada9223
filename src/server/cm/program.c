/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that join groups by MADs of their own: see cm.h. The SA is asked for the same as they
 * ask for, but in the group's turn and with the group's repetitions. The SA's answer goes to the
 * program. A program has joined in the states that the SA has granted it, once each.
 *
 * A program leaves the states that nobody else holds. If others hold all of them, or some that it
 * does not hold itself, nothing is sent: it gets the answer that the SA would give if it had a port
 * of its own.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cm/cm.h"
#include "cm/group.h"
#include "wire/rmpp.h"

#define MAX_REQUESTS 16384 /* of a program, */
#define MAX_OF_GROUP 8     /* and for one group: others have their turn as well */
#define AT_ONCE      16    /* memberships of a program that ends; the others end in slices */

struct cm_program {
	struct cm *cm;
	struct fabric_port *port;
	struct cm_program_ops ops;
	bool leaves_at_end;
	bool gone; /* it is freed with its last membership */
	unsigned n_requests;
	LIST_HEAD(, cm_membership) idle, waiting; /* these for responses */
	TAILQ_ENTRY(cm_program) of_gone;          /* if it is gone, and has idle ones */
};

/* A program's in a group. */
struct cm_membership {
	struct base_hash_node node;
	LIST_ENTRY(cm_membership) of_program;
	struct cm_program *program;
	struct cm_group *group;
	uint8_t states;      /* that it has joined in, */
	unsigned generation; /* if it is the group's */
	unsigned n_requests;
};

struct cm_program_request {
	TAILQ_ENTRY(cm_program_request) of_group;
	struct base_hash_node by_tid;
	struct cm_membership *membership;
	uint8_t method;
	uint8_t states;
	struct fabric_mad mad;
};

/* ---- what a program holds ---- */

static uint8_t states_of(const struct cm_membership *m)
{
	return m->generation == m->group->generation ? m->states : 0;
}

static void set_states(struct cm_membership *m, uint8_t states)
{
	const uint8_t before = states_of(m);

	for (unsigned i = 0; i < CM_GROUP_STATES; i++) {
		m->group->held[i].programs += states >> i & 1;
		m->group->held[i].programs -= before >> i & 1;
	}
	m->states = states;
	m->generation = m->group->generation;
}

/* A membership that one program leaves behind is ended by the next program that leaves the group.
 * But a program whose end leaves for it ends its own membership first. */
static uint8_t states_spared(const struct cm_membership *m)
{
	return m->program->leaves_at_end ? m->group->left_behind & states_of(m) : 0;
}

static void joined(struct cm_membership *m, uint8_t states)
{
	set_states(m, states_of(m) | states);
	m->group->left_behind &= (uint8_t)~states | states_spared(m);
}

static void left(struct cm_membership *m, uint8_t states)
{
	m->group->left_behind &= (uint8_t)~states | states_spared(m);
	set_states(m, states_of(m) & (uint8_t)~states);
}

/* The states that the port keeps if @m ends. */
static uint8_t states_of_others(const struct cm_membership *m)
{
	const uint8_t own = states_of(m);
	uint8_t states = states_spared(m);

	for (unsigned i = 0; i < CM_GROUP_STATES; i++)
		if (m->group->held[i].joins ||
		    m->group->held[i].programs > (unsigned)(own >> i & 1))
			states |= (uint8_t)(1u << i);
	return states;
}

/* ---- memberships ---- */

static uint64_t membership_hash(const struct cm_program *p, const struct cm_group *g)
{
	return base_hash_of(&g, sizeof(const struct cm_group *), (uintptr_t)p);
}

static struct cm_membership *membership_find(const struct cm_program *p, const struct cm_group *g)
{
	struct cm_membership *m;

	BASE_HASH_FOREACH(m, &p->cm->memberships, membership_hash(p, g), node)
		if (m->program == p && m->group == g)
			return m;
	return NULL;
}

static struct cm_membership *membership_new(struct cm_program *p, struct cm_group *g)
{
	struct cm_membership *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->program = p;
	m->group = g;
	if (base_hash_add(&p->cm->memberships, &m->node, membership_hash(p, g))) {
		free(m);
		return NULL;
	}
	LIST_INSERT_HEAD(&p->idle, m, of_program);
	g->n_memberships++;
	return m;
}

/* The group is to go on. */
static void membership_end(struct cm_membership *m)
{
	const uint8_t states = states_of(m);
	struct cm_program *p = m->program;

	set_states(m, 0);
	if (p->gone && !p->leaves_at_end)
		m->group->left_behind |= states;
	m->group->n_memberships--;
	base_hash_remove(&p->cm->memberships, &m->node);
	LIST_REMOVE(m, of_program);
	free(m);
	if (p->gone && LIST_EMPTY(&p->idle) && LIST_EMPTY(&p->waiting))
		free(p);
}

/* ---- requests ---- */

static uint64_t tid_of(const struct fabric_mad *mad)
{
	struct wire_mad head;

	wire_mad_decode(mad->data, &head);
	return head.transaction_id;
}

static uint64_t tid_hash(const struct cm_program *p, uint64_t tid)
{
	return base_hash_of(&tid, sizeof(tid), (uintptr_t)p);
}

static bool is_under_way(const struct cm_program *p, uint64_t tid)
{
	struct cm_program_request *r;

	BASE_HASH_FOREACH(r, &p->cm->requests, tid_hash(p, tid), by_tid)
		if (r->membership->program == p && tid_of(&r->mad) == tid)
			return true;
	return false;
}

/* The last one of its group. -ENOMEM: there is none. */
static int request_new(struct cm_membership *m, const struct fabric_mad *mad)
{
	struct cm_program_request *r = calloc(1, sizeof(*r));
	struct wire_mcmember rec;
	struct wire_mad head;

	if (!r)
		return -ENOMEM;
	wire_mad_decode(mad->data, &head);
	wire_mcmember_decode(mad->data + SA_DATA_AT, &rec);
	r->membership = m;
	r->method = head.method;
	r->states = rec.join_state;
	r->mad = *mad;
	memset(r->mad.data + RMPP_AT, 0, wire_rmpp_bytes); /* it is one of one segment */
	if (base_hash_add(&m->program->cm->requests, &r->by_tid,
	                  tid_hash(m->program, head.transaction_id))) {
		free(r);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&m->group->requests, r, of_group);
	m->program->n_requests++;
	if (!m->n_requests++) {
		LIST_REMOVE(m, of_program);
		LIST_INSERT_HEAD(&m->program->waiting, m, of_program);
	}
	return 0;
}

static void request_end(struct cm_program_request *r)
{
	struct cm_membership *m = r->membership;

	base_hash_remove(&m->program->cm->requests, &r->by_tid);
	TAILQ_REMOVE(&m->group->requests, r, of_group);
	m->program->n_requests--;
	free(r);
	if (--m->n_requests)
		return;
	if (m->program->gone || !states_of(m)) {
		membership_end(m);
		return;
	}
	LIST_REMOVE(m, of_program);
	LIST_INSERT_HEAD(&m->program->idle, m, of_program);
}

void cm_program_drop_requests(struct cm_group *g)
{
	while (!TAILQ_EMPTY(&g->requests))
		request_end(TAILQ_FIRST(&g->requests));
}

/* ---- responses ---- */

static void respond(const struct cm_program_request *r, const struct fabric_mad *response)
{
	const struct cm_program *p = r->membership->program;
	struct fabric_mad mad = *response;

	memcpy(mad.data + MAD_TID_AT, r->mad.data + MAD_TID_AT, sizeof(uint64_t));
	if (!p->gone)
		p->ops.respond(p->ops.arg, p->port, &mad);
}

/* The response that the SA would give. */
static void respond_for_sa(const struct cm_program_request *r, uint16_t status)
{
	const struct fabric_port *port = r->membership->program->port;
	struct fabric_mad mad = r->mad;
	struct wire_mad head;

	wire_mad_decode(mad.data, &head);
	head.method = wire_mad_response_method(head.method);
	head.status = status;
	wire_mad_encode(&head, mad.data);
	mad.slid = port->sm_lid;
	mad.dlid = port->lid;
	mad.src_qpn = IB_QPN_GSI;
	mad.has_grh = false;
	respond(r, &mad);
}

/* ---- the group's turn ---- */

static void ask_to_leave(struct cm_group *g, const struct cm_program_request *r, uint8_t states)
{
	uint8_t mad[MAD_BYTES];
	struct wire_mcmember rec;

	memcpy(mad, r->mad.data, sizeof(mad));
	wire_mcmember_decode(mad + SA_DATA_AT, &rec);
	rec.join_state = states;
	wire_mcmember_encode(&rec, mad + SA_DATA_AT);
	cm_group_ask(g, mad, MAD_DELETE, states);
}

/* Whether it would leave states that others hold, and it does not. */
static bool is_for_others(const struct cm_group *g, const struct cm_program_request *r)
{
	const struct cm_membership *m = r->membership;

	return r->states & states_of_others(m) & (uint8_t) ~(states_of(m) | g->left_behind);
}

void cm_program_begin(struct cm_group *g)
{
	struct cm_program_request *r = TAILQ_FIRST(&g->requests);
	const uint8_t alone = r->states & (uint8_t)~states_of_others(r->membership);

	g->programs_turn = false;
	if (r->method == MAD_SET) {
		cm_group_ask(g, r->mad.data, MAD_SET, r->states);
	} else if (is_for_others(g, r)) {
		respond_for_sa(r, SA_REQ_INVALID);
	} else if (alone || !r->states) {
		ask_to_leave(g, r, alone);
	} else {
		left(r->membership, r->states);
		respond_for_sa(r, SA_OK);
	}
	if (!cm_group_is_asking(g->state)) /* it is over, or lost */
		request_end(r);
}

void cm_program_answered(struct cm_group *g, int status, const struct fabric_mad *response)
{
	struct cm_program_request *r = TAILQ_FIRST(&g->requests);

	if (r->method == MAD_SET && !status)
		joined(r->membership, r->states);
	if (r->method == MAD_DELETE && status != -EINVAL)
		left(r->membership, r->states);
	if (response)
		respond(r, response);
	request_end(r);
}

/* ---- programs ---- */

int cm_program_new(struct cm *cm, struct fabric_port *port, const struct cm_program_ops *ops,
                   struct cm_program **out)
{
	struct cm_program *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->cm = cm;
	p->port = port;
	p->ops = *ops;
	LIST_INIT(&p->idle);
	LIST_INIT(&p->waiting);
	*out = p;
	return 0;
}

void cm_program_leave_at_end(struct cm_program *p)
{
	p->leaves_at_end = true;
}

/* A program of few memberships: they have ended for any request that comes after this. */
void cm_program_free(struct cm_program *p)
{
	struct cm *cm = p->cm;

	p->gone = true;
	if (LIST_EMPTY(&p->idle)) {
		if (LIST_EMPTY(&p->waiting))
			free(p);
		return;
	}
	TAILQ_INSERT_HEAD(&cm->gone, p, of_gone);
	for (unsigned n = 0; n < AT_ONCE && TAILQ_FIRST(&cm->gone) == p; n++)
		cm_programs_work(cm);
	if (TAILQ_FIRST(&cm->gone) == p) {
		TAILQ_REMOVE(&cm->gone, p, of_gone);
		TAILQ_INSERT_TAIL(&cm->gone, p, of_gone);
	}
	if (cm_programs_wait(cm))
		cm_sweep_begin(cm);
}

bool cm_programs_wait(const struct cm *cm)
{
	return !TAILQ_EMPTY(&cm->gone);
}

void cm_programs_work(struct cm *cm)
{
	struct cm_program *p = TAILQ_FIRST(&cm->gone);
	struct cm_membership *m = LIST_FIRST(&p->idle);
	struct cm_group *g = m->group;

	if (!LIST_NEXT(m, of_program))
		TAILQ_REMOVE(&cm->gone, p, of_gone);
	membership_end(m);
	cm_group_go_on(g);
}

/* ---- what a program sends ---- */

/* By any of its LIDs. */
static bool is_to_sa(const struct fabric_port *port, const struct fabric_mad *mad)
{
	return port->sm_lid && mad->dlid >> port->lmc == port->sm_lid >> port->lmc &&
	       mad->src_qpn == IB_QPN_GSI && mad->dest_qpn == IB_QPN_GSI;
}

/* By its GUID, one of several: not every subnet administrator looks at the subnet prefix. */
static bool is_of_port(const struct fabric_port *port, const struct ib_gid *gid)
{
	uint64_t guid;

	memcpy(&guid, gid->raw + 8, sizeof(guid));
	for (unsigned i = 0; guid && i < SHM_IB_GIDS; i++)
		if (fabric_port_guid(port, i) == be64toh(guid))
			return true;
	return false;
}

bool cm_program_wants(const struct cm_program *p, const struct fabric_mad *mad)
{
	struct wire_mcmember rec;
	struct wire_mad head;

	wire_mad_decode(mad->data, &head);
	if (p->port->ethernet || !is_to_sa(p->port, mad) || head.base_version != MAD_BASE_VERSION ||
	    head.mgmt_class != MAD_CLASS_SUBN_ADM || head.attribute_id != SA_ATTR_MCMEMBER ||
	    (head.method != MAD_SET && head.method != MAD_DELETE))
		return false;
	wire_mcmember_decode(mad->data + SA_DATA_AT, &rec);
	return is_of_port(p->port, &rec.port_gid);
}

void cm_program_send(struct cm_program *p, const struct fabric_mad *mad)
{
	struct wire_mcmember rec;
	struct cm_membership *m;
	struct cm_group *g;

	if (p->n_requests >= MAX_REQUESTS || is_under_way(p, tid_of(mad)))
		return;
	wire_mcmember_decode(mad->data + SA_DATA_AT, &rec);
	g = cm_group_get(cm_port_of(p->cm, p->port), &rec);
	if (!g)
		return;
	m = membership_find(p, g);
	if (!m)
		m = membership_new(p, g);
	if (m && m->n_requests < MAX_OF_GROUP)
		request_new(m, mad);
	if (m && !m->n_requests && !states_of(m))
		membership_end(m); /* there was no memory */
	cm_group_go_on(g);
}
