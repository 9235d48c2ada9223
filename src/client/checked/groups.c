/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast groups: see groups.h.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "checked/groups.h"
#include "checked/places.h"
#include "checked/report.h"
#include "hca/process/context.h"

#define MOST      4096          /* groups: of more, nothing is known */
#define FRESH_NS  100000000ull  /* so long an answer holds */
#define PATIENCE  2000000000ull /* a program has this to join again, ns */
#define MCAST_QPN 0xFFFFFF
#define RECEIVES  (1 | 2)     /* join states by which a port receives: full, and non-member */
#define QKEY_OWN  0x80000000u /* a request's Q_Key that means the queue pair's */

struct attachment {
	struct attachment *next;
	const struct ibv_qp *qp;
	uint32_t qpn;
	uint16_t mlid;
	uint32_t place;
};

/* A group as a port of ours sees it. */
struct group {
	struct base_hash_node node;
	struct checked_group_key key;
	uint32_t hca;
	struct checked_membership m; /* the last answer */
	uint64_t asked_ns;           /* 0: there is none that holds */
	uint16_t pkey_index;         /* that it is about */
	/* when the port was last seen as a member, and as one that receives; 0: never */
	uint64_t member_ns, receiver_ns;
	struct attachment *attached;
	bool was_attached;
	/* by rdma_cm in this process */
	bool is_joined, sends_only;
	uint32_t joined_at, left_at; /* places; 0: none */
};

static struct base_hash groups;

/* librdmacm has HCAs open, too: a group is one for all contexts of an HCA. */
static uint32_t hca_of(const struct checked_group_key *key)
{
	return hca_context(key->context)->hca;
}

static uint64_t hash_of(const struct checked_group_key *key)
{
	return base_hash_of(&key->mgid, sizeof(key->mgid), (uint64_t)hca_of(key) << 8 | key->port);
}

static struct group *find(const struct checked_group_key *key)
{
	struct group *g;

	BASE_HASH_FOREACH(g, &groups, hash_of(key), node)
		if (g->hca == hca_of(key) && g->key.port == key->port &&
		    !memcmp(&g->key.mgid, &key->mgid, sizeof(key->mgid)))
			return g;
	return NULL;
}

static struct group *get(const struct checked_group_key *key)
{
	struct group *g = find(key);

	if (g)
		return g;
	if (groups.n >= MOST) {
		checked_say("groups beyond the first 4096");
		return NULL;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->key = *key;
	g->hca = hca_of(key);
	if (base_hash_add(&groups, &g->node, hash_of(key))) {
		free(g);
		return NULL;
	}
	return g;
}

static const char *name(const struct group *g)
{
	static char text[INET6_ADDRSTRLEN];

	return inet_ntop(AF_INET6, g->key.mgid.raw, text, sizeof(text)) ? text : "?";
}

/* ---- what the daemon knows ---- */

static void note_member(struct group *g, uint8_t join_state)
{
	const uint64_t now = base_now_ns();

	if (join_state)
		g->member_ns = now;
	if (join_state & RECEIVES)
		g->receiver_ns = now;
}

static void note(struct group *g, const struct checked_question *q)
{
	if (!q->is_answered)
		return;
	g->m = q->m;
	g->pkey_index = q->pkey_index;
	g->asked_ns = base_now_ns();
	if (q->m.is_known)
		note_member(g, q->m.join_state);
}

/* Whether the port has lost its memberships since it was seen as a member, at @seen_ns if that is
 * not 0. */
static bool has_lost(const struct group *g, uint64_t seen_ns)
{
	return seen_ns && g->m.reset_age_ns != UINT64_MAX &&
	       g->asked_ns - g->m.reset_age_ns > seen_ns;
}

bool checked_group_is_known(struct checked_question *q)
{
	const struct group *g = find(&q->of);

	if (!g || !g->asked_ns || g->pkey_index != q->pkey_index ||
	    base_now_ns() - g->asked_ns > FRESH_NS)
		return false;
	q->m = g->m;
	q->is_answered = true;
	return true;
}

void checked_groups_changed(void)
{
	for (struct base_hash_node *n = base_hash_walk(&groups, NULL); n;
	     n = base_hash_walk(&groups, n))
		container_of(n, struct group, node)->asked_ns = 0;
}

/* ---- sends ---- */

bool checked_group_of_send(const struct hca_record *r, struct checked_question *q)
{
	const struct checked_object *ah = r->ah ? checked_object_find(CHECKED_AH, r->ah) : NULL;
	const struct checked_object *qp = checked_object_find(CHECKED_QP, r->qp);

	/* without a GRH it is not said which group it is */
	if (!qp || !ah || !ah->is_group || !ah->ah.is_global)
		return false;
	*q = (struct checked_question){ .of = { .context = r->qp->context,
		                                .mgid = ah->ah.grh.dgid,
		                                .port = ah->ah.port_num },
		                        .mlid = ah->ah.dlid,
		                        .pkey_index = qp->pkey_index };
	return true;
}

/* A send of a wrong kind. Where it is posted: a place by the return address would be that of the
 * first message that a function of the program's has sent. */
static struct checked_report sent_wrong(enum checked_rule rule, const struct checked_object *ah)
{
	return (struct checked_report){ .rule = rule,
		                        .at = { { ah ? "handle" : "", ah ? ah->place : 0 },
		                                { "posted", checked_place(NULL) } } };
}

#define REPORT_SENT(rule, ah, ...)                                                         \
	do {                                                                               \
		const struct checked_report report_ = sent_wrong(CHECKED_RULE_##rule, ah); \
                                                                                           \
		checked_report(&report_, __VA_ARGS__);                                     \
	} while (0)

static void compare_with_record(const struct hca_record *r, const struct checked_object *ah,
                                const struct checked_object *qp, const struct group *g)
{
	const struct checked_membership *m = &g->m;
	const uint32_t qkey = r->remote_qkey & QKEY_OWN ? qp->qkey : r->remote_qkey;
	const uint32_t mbps = ah->mbps ? ah->mbps : m->port_mbps;

	if (qkey != m->qkey)
		REPORT_SENT(GROUP_QKEY, ah, "the Q_Key is 0x%08x, and that of %s is 0x%08x", qkey,
		            name(g), m->qkey);
	if (r->bytes > m->mtu)
		REPORT_SENT(GROUP_MTU, ah, "%" PRIu32 " bytes, and the MTU of %s is %" PRIu32,
		            r->bytes, name(g), m->mtu);
	if (m->is_ethernet) /* which has no SA: what follows is nobody's record */
		return;
	if (m->port_pkey && ((m->port_pkey ^ m->pkey) & 0x7FFF))
		REPORT_SENT(GROUP_PKEY, ah,
		            "the P_Key at index %u of port %u is 0x%04x, and that of %s is 0x%04x",
		            qp->pkey_index, g->key.port, m->port_pkey, name(g), m->pkey);
	if (ah->ah.sl != m->sl)
		REPORT_SENT(GROUP_SL, ah, "the SL is %u, and that of %s is %u", ah->ah.sl, name(g),
		            m->sl);
	if (m->mbps && mbps > m->mbps)
		REPORT_SENT(GROUP_RATE, ah,
		            "the handle's rate is %" PRIu32 " Mbit/s%s, and that of %s %" PRIu32,
		            mbps, ah->mbps ? "" : ", its port's", name(g), m->mbps);
}

/* On Ethernet a sender need not be a member. */
static void judge_sender(const struct checked_object *ah, const struct group *g)
{
	const struct checked_membership *m = &g->m;
	const bool lost = has_lost(g, g->member_ns);
	struct checked_report report;

	if (!m->is_known || m->join_state || m->is_ethernet || (lost && m->reset_age_ns < PATIENCE))
		return;
	report =
	        sent_wrong(lost ? CHECKED_RULE_NOT_JOINED_AGAIN : CHECKED_RULE_SENT_NOT_JOINED, ah);
	if (g->left_at) {
		report.at[0].is = "left";
		report.at[0].place = g->left_at;
	}
	checked_report(&report, "port %u is no member of %s%s", g->key.port, name(g),
	               lost            ? ": it was one, and lost that"
	               : g->member_ns  ? ": it has left"
	               : m->has_record ? ", which exists"
	                               : ", which does not exist");
}

void checked_group_sent(const struct hca_record *r, const struct checked_question *q)
{
	const struct checked_object *ah = checked_object_find(CHECKED_AH, r->ah);
	const struct checked_object *qp = checked_object_find(CHECKED_QP, r->qp);
	struct group *g = ah && qp ? get(&q->of) : NULL;

	if (!g)
		return;
	if (r->remote_qpn != MCAST_QPN)
		REPORT_SENT(GROUP_QPN, NULL, "the message to %s is for QP 0x%06x", name(g),
		            r->remote_qpn);
	if (!q->is_answered)
		return;
	note(g, q);
	if (g->m.has_record)
		compare_with_record(r, ah, qp, g);
	judge_sender(ah, g);
}

/* ---- attachments ---- */

bool checked_group_of_attached(const struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid,
                               struct checked_question *q)
{
	const struct checked_object *o = checked_object_find(CHECKED_QP, qp);

	if (!o)
		return false;
	*q = (struct checked_question){
		.of = { .context = qp->context, .mgid = *gid, .port = o->port ? o->port : 1 },
		.mlid = lid,
		.pkey_index = o->pkey_index
	};
	return true;
}

void checked_group_attached(const struct ibv_qp *qp, const struct checked_question *q)
{
	struct group *g = get(&q->of);
	struct attachment *a = g ? malloc(sizeof(*a)) : NULL;

	if (!a)
		return;
	*a = (struct attachment){ g->attached, qp, qp->qp_num, q->mlid, checked_place(NULL) };
	g->attached = a;
	g->was_attached = true;
	g->key.context = qp->context;
	note(g, q);
}

/* @is, @place: what ends the attachment. */
static void judge_attached(const struct group *g, const struct attachment *a, const char *is,
                           uint32_t place)
{
	const struct checked_membership *m = &g->m;
	const bool lost = has_lost(g, g->receiver_ns);
	struct checked_report report = { .rule = CHECKED_RULE_NOT_JOINED,
		                         .at = { { "attached", a->place }, { is, place } } };

	if (!m->is_known || (m->join_state & RECEIVES))
		return;
	if (lost && m->reset_age_ns < PATIENCE)
		return;
	if (g->receiver_ns)
		report.rule = lost ? CHECKED_RULE_NOT_JOINED_AGAIN : CHECKED_RULE_LEFT_FIRST;
	if (g->receiver_ns && !lost && g->left_at) {
		report.at[1].is = "left";
		report.at[1].place = g->left_at;
	}
	checked_report(&report, "QP 0x%06x is attached to %s, and port %u is %s", a->qpn, name(g),
	               g->key.port,
	               m->join_state    ? "a send-only member, which receives nothing"
	               : g->receiver_ns ? "no member any more"
	                                : "no member");
}

void checked_group_detached(const struct ibv_qp *qp, const struct checked_question *q)
{
	struct group *g = find(&q->of);
	struct attachment **at = g ? &g->attached : NULL, *a;

	while (at && *at && ((*at)->qp != qp || (*at)->mlid != q->mlid))
		at = &(*at)->next;
	if (!at || !*at)
		return;
	a = *at;
	*at = a->next;
	note(g, q);
	if (q->is_answered)
		judge_attached(g, a, "detached", checked_place(NULL));
	free(a);
}

void checked_groups_moved(const struct ibv_qp *qp)
{
	for (struct base_hash_node *n = base_hash_walk(&groups, NULL); n;
	     n = base_hash_walk(&groups, n)) {
		struct attachment **at = &container_of(n, struct group, node)->attached, *a;

		while ((a = *at)) {
			if (a->qp != qp) {
				at = &a->next;
				continue;
			}
			*at = a->next;
			free(a);
		}
	}
}

uint32_t checked_groups_of(const struct ibv_qp *qp, uint32_t *place)
{
	uint32_t count = 0;

	for (struct base_hash_node *n = base_hash_walk(&groups, NULL); n;
	     n = base_hash_walk(&groups, n)) {
		const struct attachment *a = container_of(n, struct group, node)->attached;

		for (; a; a = a->next) {
			if (a->qp != qp)
				continue;
			*place = a->place;
			count++;
		}
	}
	return count;
}

/* ---- joins ---- */

static void judge_joined(const struct group *g)
{
	const struct checked_report report = { .rule = CHECKED_RULE_NOT_ATTACHED,
		                               .at = { { "joined", g->joined_at }, { .is = "" } } };

	if (g->is_joined && !g->sends_only && !g->was_attached)
		checked_report(&report, "port %u is a member of %s", g->key.port, name(g));
}

void checked_group_joined(const struct checked_group_key *of, bool sends_only)
{
	struct group *g = get(of);

	if (!g)
		return;
	g->sends_only = sends_only && (!g->is_joined || g->sends_only);
	g->is_joined = true;
	g->joined_at = checked_place(NULL);
	g->left_at = 0;
	g->asked_ns = 0;
	note_member(g, sends_only ? 8 : 1);
}

void checked_group_left(const struct checked_group_key *of)
{
	struct group *g = find(of);

	if (!g)
		return;
	judge_joined(g);
	g->is_joined = false;
	g->left_at = checked_place(NULL);
	g->asked_ns = 0;
}

/* ---- ends ---- */

static void remove_group(struct group *g)
{
	while (g->attached) {
		struct attachment *a = g->attached;

		g->attached = a->next;
		free(a);
	}
	base_hash_remove(&groups, &g->node);
	free(g);
}

bool checked_group_next(const struct ibv_context *context, struct checked_question *q)
{
	const struct group *g;
	struct base_hash_node *n = base_hash_walk(&groups, NULL);

	while (n && context && container_of(n, struct group, node)->key.context != context)
		n = base_hash_walk(&groups, n);
	if (!n)
		return false;
	g = container_of(n, struct group, node);
	*q = (struct checked_question){ .of = g->key, .mlid = g->attached ? g->attached->mlid : 0 };
	return true;
}

void checked_group_ends(const struct checked_question *q)
{
	struct group *g = find(&q->of);

	if (!g)
		return;
	note(g, q);
	for (const struct attachment *a = g->attached; a && q->is_answered; a = a->next)
		judge_attached(g, a, "", 0);
	judge_joined(g);
	remove_group(g);
}

void checked_groups_forget(void)
{
	groups = (struct base_hash){ 0 };
}
