/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ports and their subnet administrators. A join fails at once if it cannot succeed, so two facts
 * are asked of an SA beforehand: whether it supports send-only full members (ClassPortInfo), and
 * the record of a partition's IPoIB broadcast group, after which other groups are made. The facts
 * are the same for all ports of an SA: one port asks for all.
 *
 * The facts are asked for again when a port becomes ACTIVE or something changes there. If an SA
 * does not respond, another port asks, after ever longer waits. If it refuses, it is asked again
 * when a join needs the fact.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "cm/cm.h"
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
	struct base_timer again;
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

/* Has cm_addr_find() find it. 0 or -ENOMEM. */
static int index_port(struct cm *cm, struct cm_port *p)
{
	const struct shm_port *s = shm_port_at(cm->f->region, p->port->index);
	struct cm_port **first = &cm->of_host[cm_port_host(cm, p->port)];

	p->of_host = *first;
	*first = p;
	if (p->port->ethernet || !s->ipv4)
		return 0;
	return base_hash_add(&cm->by_ipv4, &p->by_ipv4, cm_ipv4_hash(s->ipv4));
}

int cm_ports_init(struct cm *cm)
{
	int ret = 0;

	LIST_INIT(&cm->sas);
	cm->port = calloc(cm->f->n_hca_ports, sizeof(*cm->port));
	cm->of_host = calloc(cm->f->n_hosts + 1, sizeof(struct cm_port *));
	if (!cm->port || !cm->of_host)
		return -ENOMEM;
	for (unsigned i = cm->f->n_hca_ports; i-- > 0 && !ret;) {
		cm->port[i].cm = cm;
		cm->port[i].port = cm->f->hca_port[i];
		TAILQ_INIT(&cm->port[i].groups);
		if (cm->port[i].port->ethernet) {
			cm->port[i].gid_users = calloc(SHM_GIDS, sizeof(uint32_t));
			if (!cm->port[i].gid_users)
				return -ENOMEM;
		}
		ret = index_port(cm, &cm->port[i]);
	}
	return ret;
}

struct cm_port *cm_port_of(const struct cm *cm, const struct fabric_port *port)
{
	return &cm->port[port->index];
}

int cm_port_pkey_index(const struct fabric_port *port, uint16_t pkey, uint16_t *index)
{
	int ret = -ENOENT;

	for (uint16_t i = 0; i < SHM_PKEYS; i++) {
		if (!port->pkey[i] || (port->pkey[i] ^ pkey) & IB_PKEY_BASE_MASK)
			continue;
		if (port->pkey[i] & IB_PKEY_FULL_MEMBER) {
			*index = i;
			return 0;
		}
		if (ret) {
			*index = i;
			ret = 0;
		}
	}
	return ret;
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
		base_log_warning(cm, "out of memory: nobody joins in partition 0x%04x", pkey);
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
	base_timer_stop(&fact->again);
	LIST_REMOVE(fact, entry);
	free(fact);
}

/* ---- asking ---- */

static void ask(struct cm_fact *fact);

static void on_wait_over(struct base_timer *t)
{
	ask(container_of(t, struct cm_fact, again));
}

/* Later, and by another port. */
static void ask_again(struct cm_fact *fact)
{
	struct cm_sa *sa = fact->sa;

	TAILQ_REMOVE(&sa->ports, fact->by, of_sa);
	TAILQ_INSERT_TAIL(&sa->ports, fact->by, of_sa);
	base_timer_set_in(sa->cm->ops.timers, &fact->again, fact->wait_s * 1000 * CM_NS_PER_MS,
	                  on_wait_over);
	fact->wait_s = fact->wait_s < MAX_WAIT_S / 2 ? 2 * fact->wait_s : MAX_WAIT_S;
}

static void learn(struct cm_fact *fact, const struct fabric_mad *response)
{
	struct wire_class_port_info info;

	if (fact->pkey == CLASS_PORT_INFO) {
		wire_class_port_info_decode(cm_sa_record(response), &info);
		fact->capability_mask2 = info.capability_mask2;
	} else {
		wire_mcmember_decode(cm_sa_record(response), &fact->broadcast);
	}
}

static void on_response(void *arg, int status, const struct fabric_mad *response)
{
	struct cm_fact *fact = arg;

	fact->asked = NULL;
	if (status == -ETIMEDOUT) {
		ask_again(fact);
		return;
	}
	fact->known = !status;
	if (fact->known)
		learn(fact, response);
}

/* The first port that is in the partition asks. If none is, the fact is not needed. */
static void ask(struct cm_fact *fact)
{
	struct wire_mcmember record = { 0 };
	struct cm_sa_request request = { .method = MAD_GET,
		                         .attribute = SA_ATTR_CLASS_PORT_INFO,
		                         .timeout_ms = TIMEOUT_MS,
		                         .done = on_response,
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

/* Asks for it, also if it is known: the known fact stays valid until the response. */
static void want(struct cm_port *p, uint16_t pkey)
{
	struct cm_fact *fact = fact_find(p->sa, pkey);

	if (!fact)
		fact = fact_new(p->sa, pkey);
	if (!fact || fact->asked)
		return;
	fact->wait_s = FIRST_WAIT_S;
	base_timer_stop(&fact->again);
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
		base_log_warning(cm, "out of memory: nobody joins by the SA at LID %u", lid);
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

/* Another port takes over the query that this port had under way. */
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

/* Whether the port has an SA: not on Ethernet, and not without an SM. */
static bool has_sa(const struct fabric_port *port)
{
	return port->state == IB_PORT_ACTIVE && port->sm_lid && !port->ethernet;
}

void cm_port_follow_sa(struct cm_port *p)
{
	const struct fabric_port *port = p->port;

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
	for (unsigned i = cm->f->n_ib_ports; cm->port && i < cm->f->n_hca_ports; i++)
		free(cm->port[i].gid_users);
	free(cm->port);
	free(cm->of_host);
	base_hash_fini(&cm->by_ipv4);
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
	if (!fact || !base_timer_is_set(&fact->again))
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
