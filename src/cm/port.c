/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of each HCA port while it is ACTIVE, as the subnet administrator tells it: whether
 * there are send-only full members (ClassPortInfo), and for each P_Key of the port the record
 * of the IPoIB broadcast group, after which joins ask for theirs. Asked for beforehand, since a
 * program that joins is told at once that it cannot.
 *
 * An SA that does not answer is asked again and again, ever more seldom. One that refuses knows
 * what it does: it is asked again when something has changed, or somebody misses the answer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cm/mad.h"
#include "cm/state.h"
#include "wire/mgid.h"

#define TIMEOUT_MS   3000
#define FIRST_WAIT_S 1 /* until it is asked again; as long as IPoIB waits for its group */
#define MAX_WAIT_S   16

#define CLASS_PORT_INFO 0 /* in place of a P_Key */

/* One thing that the SA is asked for. */
struct cm_fact {
	LIST_ENTRY(cm_fact) entry;
	struct cm_port *port;
	uint16_t pkey; /* whose broadcast group: without the membership bit */
	bool known, wanted;
	struct wire_mcmember broadcast;
	uint32_t capability_mask2;
	struct cm_transaction *asked;
	struct cm_timer again;
	unsigned wait_s;
};

int cm_ports_init(struct cm *cm)
{
	cm->port = calloc(cm->f->n_hca_ports, sizeof(*cm->port));
	if (!cm->port)
		return -ENOMEM;
	for (unsigned i = 0; i < cm->f->n_hca_ports; i++) {
		cm->port[i].cm = cm;
		cm->port[i].port = cm->f->hca_port[i];
		LIST_INIT(&cm->port[i].facts);
		LIST_INIT(&cm->port[i].groups);
	}
	return 0;
}

struct cm_port *cm_port_of(const struct cm *cm, const struct fabric_port *port)
{
	return &cm->port[port->index];
}

int cm_port_pkey_index(const struct fabric_port *port, uint16_t pkey, uint16_t *index)
{
	for (uint16_t i = 0; i < SHM_PKEYS; i++) {
		if (port->pkey[i] && ib_pkey_match(port->pkey[i], pkey)) {
			*index = i;
			return 0;
		}
	}
	return -ENOENT;
}

/* ---- asking ---- */

static void ask(struct cm_fact *fact);

static void on_wait_over(struct cm_timer *t)
{
	ask(container_of(t, struct cm_fact, again));
}

static void take(struct cm_fact *fact, const uint8_t *record)
{
	struct wire_class_port_info info;

	if (fact->pkey == CLASS_PORT_INFO) {
		wire_class_port_info_decode(record, &info);
		fact->capability_mask2 = info.capability_mask2;
	} else {
		wire_mcmember_decode(record, &fact->broadcast);
	}
}

static void on_answer(void *arg, int status, const uint8_t *record)
{
	struct cm_fact *fact = arg;

	fact->asked = NULL;
	if (status == -ETIMEDOUT) {
		cm_timer_set(fact->port->cm, &fact->again, fact->wait_s * 1000ull, on_wait_over);
		fact->wait_s = fact->wait_s < MAX_WAIT_S / 2 ? 2 * fact->wait_s : MAX_WAIT_S;
		return;
	}
	fact->known = !status;
	if (fact->known)
		take(fact, record);
}

static void ask(struct cm_fact *fact)
{
	struct wire_mcmember record = { 0 };
	struct cm_sa_request request = { .port = fact->port->port,
		                         .method = MAD_GET,
		                         .attribute = SA_ATTR_CLASS_PORT_INFO,
		                         .timeout_ms = TIMEOUT_MS,
		                         .done = on_answer,
		                         .arg = fact };

	if (fact->pkey != CLASS_PORT_INFO) {
		wire_mgid_broadcast(&record.mgid, fact->pkey | IB_PKEY_FULL_MEMBER);
		request.attribute = SA_ATTR_MCMEMBER;
		request.layout = &wire_mcmember_layout;
		request.record = &record;
		request.mask = SA_MCM_MGID;
	}
	if (cm_sa_ask(fact->port->cm, &request, &fact->asked))
		on_answer(fact, -ETIMEDOUT, NULL); /* there may be memory later */
}

/* ---- facts of a port ---- */

static void fact_free(struct cm_fact *fact)
{
	cm_mad_cancel(&fact->asked);
	cm_timer_stop(&fact->again);
	LIST_REMOVE(fact, entry);
	free(fact);
}

static void forget_all(struct cm_port *p)
{
	while (!LIST_EMPTY(&p->facts))
		fact_free(LIST_FIRST(&p->facts));
}

static struct cm_fact *fact_find(const struct cm_port *p, uint16_t pkey)
{
	struct cm_fact *fact;

	LIST_FOREACH(fact, &p->facts, entry)
	if (fact->pkey == pkey)
		return fact;
	return NULL;
}

/* Asks for it, anew if it is known: what is known holds until there is an answer. */
static void want(struct cm_port *p, uint16_t pkey)
{
	struct cm_fact *fact = fact_find(p, pkey);

	if (fact && fact->wanted)
		return; /* the P_Key is in the table twice */
	if (!fact) {
		fact = calloc(1, sizeof(*fact));
		if (!fact) {
			base_log("out of memory: nobody joins on %s port %u", p->port->node->name,
			         p->port->num);
			return;
		}
		fact->port = p;
		fact->pkey = pkey;
		LIST_INSERT_HEAD(&p->facts, fact, entry);
	}
	fact->wanted = true;
	fact->wait_s = FIRST_WAIT_S;
	cm_mad_cancel(&fact->asked);
	cm_timer_stop(&fact->again);
	ask(fact);
}

void cm_port_active(struct cm *cm, struct fabric_port *port)
{
	struct cm_port *p = cm_port_of(cm, port);
	struct cm_fact *fact, *next;

	if (port->state != IB_PORT_ACTIVE || port->ethernet) { /* which has no SA */
		forget_all(p);
		return;
	}
	LIST_FOREACH(fact, &p->facts, entry)
	fact->wanted = false;
	want(p, CLASS_PORT_INFO);
	for (unsigned i = 0; i < SHM_PKEYS; i++)
		if (port->pkey[i] & IB_PKEY_BASE_MASK)
			want(p, port->pkey[i] & IB_PKEY_BASE_MASK);
	for (fact = LIST_FIRST(&p->facts); fact; fact = next) {
		next = LIST_NEXT(fact, entry);
		if (!fact->wanted)
			fact_free(fact);
	}
}

void cm_ports_fini(struct cm *cm)
{
	for (unsigned i = 0; i < cm->f->n_hca_ports; i++)
		forget_all(&cm->port[i]);
	free(cm->port);
}

/* ---- what is known ---- */

/* NULL: it is not known, though it may be soon. */
static const struct cm_fact *known(const struct cm *cm, const struct fabric_port *port,
                                   uint16_t pkey)
{
	struct cm_fact *fact = NULL;

	if (port && port->state == IB_PORT_ACTIVE)
		fact = fact_find(cm_port_of(cm, port), pkey);
	if (!fact || fact->known)
		return fact;
	if (!fact->asked && !fact->again.is_set)
		ask(fact);
	return NULL;
}

const struct wire_mcmember *cm_port_broadcast(const struct cm *cm, const struct fabric_port *port,
                                              uint16_t pkey)
{
	const struct cm_fact *fact = NULL;

	pkey &= IB_PKEY_BASE_MASK;
	if (pkey)
		fact = known(cm, port, pkey);
	return fact ? &fact->broadcast : NULL;
}

bool cm_port_allows_send_only(const struct cm *cm, const struct fabric_port *port)
{
	const struct cm_fact *fact = known(cm, port, CLASS_PORT_INFO);

	return fact && (fact->capability_mask2 & SA_CAP2_SEND_ONLY_FULL);
}
