/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traps: see traps.h.
 */
#include <stdlib.h>
#include <string.h>

#include "fabric/agents/traps.h"
#include "wire/notice.h"

#define TRAP_TID_FIRST 0x5452000000000000ull /* the transaction IDs of traps begin here */
#define TIMEOUT_UNIT   4096ull               /* ns, of SubnetTimeOut */

/* A trap without TrapRepress, or one whose timeout is not over. */
struct fabric_trap {
	LIST_ENTRY(fabric_trap) entry;   /* of all */
	LIST_ENTRY(fabric_trap) of_port; /* of from's */
	struct fabric_port *from;        /* an HCA's port or a switch's port 0 */
	uint8_t notice[SMP_DATA_BYTES];
	uint16_t number;
	uint64_t tid; /* its transaction ID when it was last sent */
	uint64_t due_ns;
	bool newer; /* the notice has changed since it was sent */
	bool repressed;
};

LIST_HEAD(trap_list, fabric_trap);

/* ---- sending ---- */

/* Whether the port knows a subnet manager to send to. */
static bool can_send(const struct fabric_port *own)
{
	return own->sm_lid && own->lid;
}

static void send_notice(struct fabric *f, struct fabric_port *own, uint64_t tid,
                        const uint8_t *notice)
{
	struct fabric_mad mad = { .slid = own->lid,
		                  .dlid = own->sm_lid,
		                  .src_qpn = IB_QPN_SMI,
		                  .dest_qpn = IB_QPN_SMI,
		                  .sl = own->sm_sl };
	struct wire_smp smp = { .mad = { .base_version = MAD_BASE_VERSION,
		                         .mgmt_class = MAD_CLASS_SUBN_LID,
		                         .class_version = MAD_VERSION_SUBN,
		                         .method = MAD_TRAP,
		                         .transaction_id = tid,
		                         .attribute_id = SMP_ATTR_NOTICE } };

	memcpy(smp.data, notice, SMP_DATA_BYTES);
	wire_smp_encode(&smp, mad.data);
	fabric_mad_send(f, own, &mad);
}

static uint64_t next_tid(struct fabric *f)
{
	return TRAP_TID_FIRST + ++f->mads->n_traps;
}

static void wake(struct fabric *f, uint64_t at_ns)
{
	if (f->mads->clock.wake)
		f->mads->clock.wake(f->mads->clock.arg, at_ns);
}

static void trap_free(struct fabric_trap *t)
{
	LIST_REMOVE(t, entry);
	LIST_REMOVE(t, of_port);
	free(t);
}

/* Sends @t. Its TrapRepress may arrive and end it before this returns. */
static void transmit(struct fabric *f, struct fabric_trap *t)
{
	struct fabric_port *from = t->from;
	uint8_t notice[SMP_DATA_BYTES];

	if (!can_send(from)) {
		trap_free(t);
		return;
	}
	if (t->newer || !t->tid)
		t->tid = next_tid(f);
	t->newer = t->repressed = false;
	t->due_ns = fabric_now_ns(f) + (TIMEOUT_UNIT << from->subnet_timeout);
	memcpy(notice, t->notice, sizeof(notice));
	wake(f, t->due_ns);
	send_notice(f, from, t->tid, notice);
}

static struct fabric_trap *find(const struct fabric_port *own, uint16_t number)
{
	struct fabric_trap *t;

	LIST_FOREACH(t, &own->traps, of_port)
	if (t->number == number)
		return t;
	return NULL;
}

static struct fabric_trap *trap_new(struct fabric *f, struct fabric_port *own, uint16_t number)
{
	struct fabric_trap *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->from = own;
	t->number = number;
	LIST_INSERT_HEAD(&f->mads->traps, t, entry);
	LIST_INSERT_HEAD(&own->traps, t, of_port);
	return t;
}

/* Sends @notice, with its details, from @own: an HCA's port or a switch's port 0. */
static void send_trap(struct fabric *f, struct fabric_port *own, struct wire_notice *notice)
{
	struct fabric_trap *t = find(own, notice->trap_number);
	uint8_t data[SMP_DATA_BYTES];
	bool is_new = !t;

	if (!can_send(own))
		return;
	notice->is_generic = 1;
	notice->producer_type =
	        own->node->type == FABRIC_SWITCH ? NOTICE_FROM_SWITCH : NOTICE_FROM_CA;
	notice->issuer_lid = own->lid;
	memset(data, 0, sizeof(data));
	wire_smp_notice_encode(notice, data);
	if (is_new && f->mads->clock.now_ns)
		t = trap_new(f, own, notice->trap_number);
	if (!t) { /* without a clock, or without memory: it is sent once */
		send_notice(f, own, next_tid(f), data);
		return;
	}
	memcpy(t->notice, data, sizeof(data));
	if (is_new)
		transmit(f, t);
	else
		t->newer = true;
}

/* ---- TrapRepress and timeouts ---- */

static struct fabric_trap *awaited(const struct fabric_port *own, const struct fabric_mad *mad)
{
	struct fabric_trap *t;
	struct wire_mad h;

	wire_mad_decode(mad->data, &h);
	if (h.method != MAD_TRAP_REPRESS || h.attribute_id != SMP_ATTR_NOTICE)
		return NULL;
	LIST_FOREACH(t, &own->traps, of_port)
	if (t->tid == h.transaction_id && !t->repressed)
		return t;
	return NULL;
}

bool fabric_trap_is_awaited(struct fabric *f, const struct fabric_port *at,
                            const struct fabric_mad *mad)
{
	(void)f;
	return awaited(fabric_own_port((struct fabric_port *)at), mad);
}

/* Whether programs can cause the trap as often as they like: then it waits for its timeout. */
static bool is_paced(const struct fabric_trap *t)
{
	return t->number >= TRAP_BAD_MKEY;
}

void fabric_trap_repressed(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct fabric_trap *t = awaited(fabric_own_port(at), mad);

	if (!t)
		return;
	if (is_paced(t))
		t->repressed = true;
	else if (t->newer)
		transmit(f, t);
	else
		trap_free(t);
}

void fabric_traps_run(struct fabric *f, uint64_t now_ns)
{
	struct trap_list due = LIST_HEAD_INITIALIZER(due);
	struct fabric_trap *t, *next;
	uint64_t soonest = UINT64_MAX;

	for (t = LIST_FIRST(&f->mads->traps); t; t = next) {
		next = LIST_NEXT(t, entry);
		if (t->due_ns <= now_ns) {
			LIST_REMOVE(t, entry);
			LIST_INSERT_HEAD(&due, t, entry);
		} else if (t->due_ns < soonest) {
			soonest = t->due_ns;
		}
	}
	if (soonest != UINT64_MAX)
		wake(f, soonest);
	while ((t = LIST_FIRST(&due))) { /* a TrapRepress may end others meanwhile */
		LIST_REMOVE(t, entry);
		LIST_INSERT_HEAD(&f->mads->traps, t, entry);
		if (t->repressed && !t->newer)
			trap_free(t);
		else
			transmit(f, t);
	}
}

void fabric_traps_free(struct fabric *f)
{
	while (!LIST_EMPTY(&f->mads->traps))
		trap_free(LIST_FIRST(&f->mads->traps));
}

/* ---- links and capabilities ---- */

void fabric_trap_link_state(struct fabric *f, struct fabric_node *sw)
{
	struct wire_notice notice = { .type = NOTICE_URGENT,
		                      .trap_number = TRAP_LINK_STATE_CHANGED };
	struct wire_trap_link_state details;

	if (sw->type != FABRIC_SWITCH || sw->dead)
		return;
	details.lid = sw->port[0].lid;
	wire_trap_link_state_encode(&details, notice.details);
	send_trap(f, &sw->port[0], &notice);
}

void fabric_trap_local_changes(struct fabric *f, struct fabric_port *p, unsigned flags)
{
	struct wire_notice notice = { .type = NOTICE_INFORMATIONAL,
		                      .trap_number = TRAP_LOCAL_CHANGES };
	struct wire_trap_local_changes details = { .lid = p->lid,
		                                   .other_local_changes = flags != 0,
		                                   .capability_mask = fabric_port_capabilities(p),
		                                   .capability_mask2 = fabric_port_capabilities2(p),
		                                   .change_flags = (uint8_t)flags };

	wire_trap_local_changes_encode(&details, notice.details);
	send_trap(f, p, &notice);
}

/* ---- keys ---- */

void fabric_trap_bad_m_key(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct wire_notice notice = { .type = NOTICE_SECURITY, .trap_number = TRAP_BAD_MKEY };
	struct wire_trap_bad_mkey details = { .lid = mad->slid };
	struct wire_smp smp;
	unsigned hops;

	wire_smp_decode(mad->data, &smp);
	details.method = smp.mad.method;
	details.attribute_id = smp.mad.attribute_id;
	details.attribute_modifier = smp.mad.attribute_modifier;
	details.m_key = smp.m_key;
	if (smp.mad.mgmt_class == MAD_CLASS_SUBN_DIRECTED) {
		hops = smp.hop_count & SMP_MAX_HOPS;
		details.dr_notice = 1;
		details.dr_slid = smp.dr_slid;
		details.dr_path_truncated = hops > sizeof(details.dr_return_path);
		if (details.dr_path_truncated)
			hops = sizeof(details.dr_return_path);
		details.dr_hop_count = (uint8_t)hops;
		memcpy(details.dr_return_path, smp.return_path + 1, hops);
	}
	wire_trap_bad_mkey_encode(&details, notice.details);
	send_trap(f, fabric_own_port(at), &notice);
}

static void send_bad_key(struct fabric *f, struct fabric_port *own, uint16_t number,
                         const struct wire_trap_bad_key *details)
{
	struct wire_notice notice = { .type = NOTICE_SECURITY, .trap_number = number };

	wire_trap_bad_key_encode(details, notice.details);
	send_trap(f, own, &notice);
}

/* Counts it where PortInfo:P_KeyViolations reads it. */
static void count_p_key(struct fabric *f, struct fabric_port *own)
{
	if (own->node->type == FABRIC_HCA) {
		atomic_fetch_add_explicit(&shm_port_count_at(f->region, own->index)->bad_pkey, 1,
		                          memory_order_relaxed);
		own->p_key_told++; /* the caller reports it at once */
	} else if (own->p_key_violations < UINT16_MAX) {
		own->p_key_violations++;
	}
}

void fabric_trap_bad_p_key(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad,
                           uint16_t pkey)
{
	struct wire_trap_bad_key details = { .lid1 = mad->slid,
		                             .lid2 = mad->dlid,
		                             .key = pkey,
		                             .sl = mad->sl,
		                             .qp1 = mad->src_qpn,
		                             .qp2 = mad->dest_qpn };
	struct fabric_port *own = fabric_own_port(at);

	if (mad->has_grh) {
		details.gid1 = mad->sgid;
		details.gid2 = mad->dgid;
	}
	count_p_key(f, own);
	send_bad_key(f, own, TRAP_BAD_PKEY, &details);
}

void fabric_trap_switch_p_key(struct fabric *f, struct fabric_port *at,
                              const struct fabric_trap_packet *packet)
{
	struct wire_notice notice = { .type = NOTICE_SECURITY,
		                      .trap_number = TRAP_BAD_SWITCH_PKEY };
	struct wire_trap_bad_switch_pkey details = {
		.data_valid = BAD_SWITCH_PKEY_LIDS | BAD_SWITCH_PKEY_PKEY | BAD_SWITCH_PKEY_QP1,
		.lid1 = packet->slid,
		.lid2 = packet->dlid,
		.pkey = packet->pkey,
		.qp1 = packet->src_qpn,
		.switch_lid = at->node->port[0].lid,
		.port = at->num,
	};

	if (packet->mad) {
		details.data_valid |= BAD_SWITCH_PKEY_SL | BAD_SWITCH_PKEY_QP2;
		details.sl = packet->mad->sl;
		details.qp2 = packet->mad->dest_qpn;
	}
	if (packet->mad && packet->mad->has_grh) {
		details.data_valid |= BAD_SWITCH_PKEY_GIDS;
		details.gid1 = packet->mad->sgid;
		details.gid2 = packet->mad->dgid;
	}
	wire_trap_bad_switch_pkey_encode(&details, notice.details);
	send_trap(f, &at->node->port[0], &notice);
}

/* Reports the last packet that a program has noted. The program may have written anything there. */
static void tell_last(struct fabric *f, struct fabric_port *p, uint16_t number,
                      const struct shm_bad_key *last)
{
	uint64_t ends = atomic_load_explicit(&last->ends, memory_order_relaxed);
	uint64_t key = atomic_load_explicit(&last->key, memory_order_relaxed);
	struct wire_trap_bad_key details = { .lid1 = (uint16_t)(ends >> 48),
		                             .lid2 = p->lid,
		                             .key = (uint32_t)key,
		                             .sl = (uint8_t)(key >> 32 & 0xF),
		                             .qp1 = (uint32_t)(ends >> 24) & IB_QPN_MASK,
		                             .qp2 = (uint32_t)ends & IB_QPN_MASK };

	send_bad_key(f, p, number, &details);
}

static void notice_port(struct fabric *f, struct fabric_port *p)
{
	struct shm_port_count *c = shm_port_count_at(f->region, p->index);
	uint64_t bad_p = atomic_load_explicit(&c->bad_pkey, memory_order_relaxed);
	uint64_t bad_q = atomic_load_explicit(&c->bad_qkey, memory_order_relaxed);

	if (bad_p != p->p_key_told)
		tell_last(f, p, TRAP_BAD_PKEY, &c->last_bad_pkey);
	if (bad_q != p->q_key_told)
		tell_last(f, p, TRAP_BAD_QKEY, &c->last_bad_qkey);
	p->p_key_told = bad_p;
	p->q_key_told = bad_q;
}

void fabric_traps_notice_keys(struct fabric *f)
{
	/*
	 * acquire: pairs with the release of the process that counted, so that we see the ports'
	 * counts
	 */
	uint64_t n = atomic_load_explicit(&f->region->data->bad_keys, memory_order_acquire);

	if (n == f->mads->bad_keys_seen)
		return;
	f->mads->bad_keys_seen = n;
	for (unsigned i = 0; i < f->n_ib_ports; i++)
		notice_port(f, f->hca_port[i]);
}
