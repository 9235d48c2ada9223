/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ports and the subnet administrators that they have, with what joins must know of one beforehand,
 * since a program is told at once that it cannot: whether it takes send-only full members
 * (ClassPortInfo), and what the IPoIB broadcast group of a partition is like, which other
 * groups are made like. All ports of an SA hear the same of it; so it is asked once for all,
 * by one of them.
 *
 * It is asked anew whenever one of its ports becomes ACTIVE or something changes there. An SA that
 * does not answer is asked again and again, by another port each time, ever more seldom. One
 * that refuses knows what it does: it is asked again when somebody misses the answer.
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

/* One thing that an SA is asked for. */
struct cm_fact {
	LIST_ENTRY(cm_fact) entry;
	struct cm_sa *sa;
	uint16_t pkey; /* whose broadcast group: without the membership bit */
	bool known;
	struct wire_mcmember broadcast;
	uint32_t capability_mask2;
	struct cm_transaction *asked;
	struct cm_port *by; /* while it is asked */
	struct cm_timer again;
	unsigned wait_s;
};

/* An SA, by the LID at which ports have it. */
struct cm_sa {
	LIST_ENTRY(cm_sa) entry;
	struct cm *cm;
	uint16_t lid;
	TAILQ_HEAD(, cm_port) ports; /* ACTIVE; the next one to ask by comes first */
	LIST_HEAD(, cm_fact) facts;
};

int cm_ports_init(struct cm *cm)
{
	LIST_INIT(&cm->sas);
	cm->port = calloc(cm->f->n_hca_ports, sizeof(*cm->port));
	if (!cm->port)
		return -ENOMEM;
	for (unsigned i = 0; i < cm->f->n_hca_ports; i++) {
		cm->port[i].cm = cm;
		cm->port[i].port = cm->f->hca_port[i];
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

static bool in_partition(const struct cm_port *p, uint16_t pkey)
{
	uint16_t index;

	return pkey == CLASS_PORT_INFO ||
	       !cm_port_pkey_index(p->port, pkey | IB_PKEY_FULL_MEMBER, &index);
}

/* ---- facts ---- */

static struct cm_fact *fact_find(const struct cm_sa *sa, uint16_t pkey)
{
	struct cm_fact *fact;

	LIST_FOREACH(fact, &sa->facts, entry)
	if (fact->pkey == pkey)
		return fact;
	return NULL;
}

static struct cm_fact *fact_new(struct cm_sa *sa, uint16_t pkey)
{
	struct cm_fact *fact = calloc(1, sizeof(*fact));

	if (!fact) {
		base_log("out of memory: nobody joins in partition 0x%04x", pkey);
		return NULL;
	}
	fact->sa = sa;
	fact->pkey = pkey;
	LIST_INSERT_HEAD(&sa->facts, fact, entry);
	return fact;
}

static void fact_free(struct cm_fact *fact)
{
	cm_mad_cancel(&fact->asked);
	cm_timer_stop(&fact->again);
	LIST_REMOVE(fact, entry);
	free(fact);
}

/* ---- asking ---- */

static void ask(struct cm_fact *fact);

static void on_wait_over(struct cm_timer *t)
{
	ask(container_of(t, struct cm_fact, again));
}

/* Later, and by another port. */
static void ask_again(struct cm_fact *fact)
{
	struct cm_sa *sa = fact->sa;

	TAILQ_REMOVE(&sa->ports, fact->by, of_sa);
	TAILQ_INSERT_TAIL(&sa->ports, fact->by, of_sa);
	cm_timer_set(sa->cm, &fact->again, fact->wait_s * 1000ull, on_wait_over);
	fact->wait_s = fact->wait_s < MAX_WAIT_S / 2 ? 2 * fact->wait_s : MAX_WAIT_S;
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
		ask_again(fact);
		return;
	}
	fact->known = !status;
	if (fact->known)
		take(fact, record);
}

/* By the first port that is in the partition. If none is any more, nobody wants to know. */
static void ask(struct cm_fact *fact)
{
	struct wire_mcmember record = { 0 };
	struct cm_sa_request request = { .method = MAD_GET,
		                         .attribute = SA_ATTR_CLASS_PORT_INFO,
		                         .timeout_ms = TIMEOUT_MS,
		                         .done = on_answer,
		                         .arg = fact };

	TAILQ_FOREACH(fact->by, &fact->sa->ports, of_sa)
	if (in_partition(fact->by, fact->pkey))
		break;
	if (!fact->by) {
		fact_free(fact);
		return;
	}
	request.port = fact->by->port;
	if (fact->pkey != CLASS_PORT_INFO) {
		wire_mgid_broadcast(&record.mgid, fact->pkey | IB_PKEY_FULL_MEMBER);
		request.attribute = SA_ATTR_MCMEMBER;
		request.layout = &wire_mcmember_layout;
		request.record = &record;
		request.mask = SA_MCM_MGID;
	}
	if (cm_sa_ask(fact->sa->cm, &request, &fact->asked))
		ask_again(fact); /* there may be memory later */
}

/* Asks for it, anew if it is known: what is known holds until there is an answer. */
static void want(struct cm_port *p, uint16_t pkey)
{
	struct cm_fact *fact = fact_find(p->sa, pkey);

	if (!fact)
		fact = fact_new(p->sa, pkey);
	if (!fact || fact->asked)
		return;
	fact->wait_s = FIRST_WAIT_S;
	cm_timer_stop(&fact->again);
	ask(fact);
}

/* ---- ports of an SA ---- */

static struct cm_sa *sa_find(const struct cm *cm, uint16_t lid)
{
	struct cm_sa *sa;

	LIST_FOREACH(sa, &cm->sas, entry)
	if (sa->lid == lid)
		return sa;
	return NULL;
}

static struct cm_sa *sa_new(struct cm *cm, uint16_t lid)
{
	struct cm_sa *sa = calloc(1, sizeof(*sa));

	if (!sa) {
		base_log("out of memory: nobody joins by the SA at LID %u", lid);
		return NULL;
	}
	sa->cm = cm;
	sa->lid = lid;
	TAILQ_INIT(&sa->ports);
	LIST_INIT(&sa->facts);
	LIST_INSERT_HEAD(&cm->sas, sa, entry);
	return sa;
}

static void sa_free(struct cm_sa *sa)
{
	while (!LIST_EMPTY(&sa->facts))
		fact_free(LIST_FIRST(&sa->facts));
	LIST_REMOVE(sa, entry);
	free(sa);
}

static void enter(struct cm_port *p)
{
	struct cm_sa *sa = sa_find(p->cm, p->port->sm_lid);

	if (!sa)
		sa = sa_new(p->cm, p->port->sm_lid);
	p->sa = sa;
	if (sa)
		TAILQ_INSERT_HEAD(&sa->ports, p, of_sa);
}

/* What it has been asked by this port, it is asked by another. */
static void leave(struct cm_port *p)
{
	struct cm_sa *sa = p->sa;
	struct cm_fact *fact, *next;

	TAILQ_REMOVE(&sa->ports, p, of_sa);
	p->sa = NULL;
	if (TAILQ_EMPTY(&sa->ports)) {
		sa_free(sa);
		return;
	}
	for (fact = LIST_FIRST(&sa->facts); fact; fact = next) {
		next = LIST_NEXT(fact, entry);
		if (fact->asked && fact->by == p) {
			cm_mad_cancel(&fact->asked);
			ask(fact);
		}
	}
}

/* Whether there is somebody to ask for the port: Ethernet has no SA, nor has a port without SM. */
static bool has_sa(const struct fabric_port *port)
{
	return port->state == IB_PORT_ACTIVE && port->sm_lid && !port->ethernet;
}

void cm_port_active(struct cm *cm, struct fabric_port *port)
{
	struct cm_port *p = cm_port_of(cm, port);

	cm_group_pkeys_changed(p);
	if (p->sa && (!has_sa(port) || p->sa->lid != port->sm_lid))
		leave(p);
	if (!p->sa && has_sa(port))
		enter(p);
	if (!p->sa)
		return;
	want(p, CLASS_PORT_INFO);
	for (unsigned i = 0; i < SHM_PKEYS; i++)
		if (port->pkey[i] & IB_PKEY_BASE_MASK)
			want(p, port->pkey[i] & IB_PKEY_BASE_MASK);
}

void cm_ports_fini(struct cm *cm)
{
	while (!LIST_EMPTY(&cm->sas))
		sa_free(LIST_FIRST(&cm->sas));
	free(cm->port);
}

/* ---- what is known ---- */

/* NULL: it is not known, though it may be soon. */
static const struct cm_fact *known(const struct cm *cm, const struct fabric_port *port,
                                   uint16_t pkey)
{
	struct cm_port *p = port ? cm_port_of(cm, port) : NULL;
	struct cm_fact *fact;

	if (!p || !p->sa || !has_sa(port) || !in_partition(p, pkey))
		return NULL;
	fact = fact_find(p->sa, pkey);
	if (fact && fact->known)
		return fact;
	if (!fact || !fact->again.is_set)
		want(p, pkey);
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
