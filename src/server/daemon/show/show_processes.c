/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The views "processes": programs that are connected, and how many objects each has; "mrs":
 * memory regions, of processes that publish their keys for peers; and "key": in which of these
 * processes one key names something. Others keep their regions to themselves: a registration costs
 * no message then.
 *
 * Each object names its process itself. So a first pass through the tables of objects counts them
 * for all processes, a place of a table in each part; then each part is a client.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "daemon/show/views.h"
#include "shm/key.h"

/* Units of work (chores.h). */
#define EMPTY_COST   1
#define PROCESS_COST 256 /* its name is read from /proc */
#define KEYS_AT_ONCE 256
#define KEY_COST     1
#define PLACE_COST   4

enum kind { QPS, CQS, SRQS, CHANNELS, KINDS };

struct census {
	enum kind kind; /* KINDS: all are counted */
	uint32_t at;    /* in the table of these, and then of clients */
	uint32_t n;     /* clients that there are counts for; later ones have none */
	uint32_t *host; /* by index: 1 + the client that was found there last */
	uint32_t count[][KINDS];
};

static const struct base_idtable *table_of(const struct daemon_show *s, enum kind kind)
{
	const struct daemon_objects *o = s->objects;

	switch (kind) {
	case QPS:
		return &o->qps.ids;
	case CQS:
		return &o->cqs.ids;
	case SRQS:
		return &o->srqs.ids;
	default:
		return &o->channels.ids;
	}
}

/* The holder of the object; NULL: none that is shown. */
static const struct daemon_holder *holder_of(enum kind kind, const void *object)
{
	const struct daemon_qp *qp = object;

	switch (kind) {
	case QPS:
		return qp->is_roce_sender || !qp->hca ? NULL : qp->holder;
	case CQS:
		return ((const struct daemon_cq *)object)->holder;
	case SRQS:
		return ((const struct daemon_srq *)object)->holder;
	default:
		return ((const struct daemon_channel *)object)->holder;
	}
}

static struct census *census_of(const struct daemon_show *s, struct show_at *at,
                                struct show_json *o)
{
	const uint32_t n = s->clients->ids.size;
	struct census *c = show_state(at, o,
	                              sizeof(*c) + (size_t)n * sizeof(c->count[0]) +
	                                      s->f->n_hosts * sizeof(*c->host));

	if (c && !c->host) {
		c->n = n;
		c->host = (uint32_t *)&c->count[n];
	}
	return c;
}

/* Counts what is at the next place. */
static void count_next(const struct daemon_show *s, struct show_at *at, struct census *c)
{
	const struct base_idtable *table = table_of(s, c->kind);
	const struct daemon_holder *holder;
	void *object;

	at->work += EMPTY_COST;
	if (c->at >= table->size) {
		c->kind++;
		c->at = 0;
		return;
	}
	object = base_idtable_get(table, c->at++);
	if (object == &s->objects->qps) /* QP 0 and QP 1 */
		object = NULL;
	holder = object ? holder_of(c->kind, object) : NULL;
	if (holder && !holder->dead && holder->client < c->n)
		c->count[holder->client][c->kind]++;
	at->work += object != NULL;
}

static void add_program(struct show_json *o, pid_t pid)
{
	char name[DAEMON_PROGRAM];

	if (pid > 0) /* else it is in another PID namespace */
		show_add_u64(o, "pid", (uint32_t)pid);
	if (daemon_program_name(pid, name))
		show_add_string(o, "program", name);
}

/* The host of the process; of a process that sees all hosts, the hosts whose HCAs it has open. */
static void add_hosts(const struct daemon_show *s, struct show_at *at, struct show_json *o,
                      const struct daemon_client *client)
{
	struct census *c = at->state;
	const struct daemon_hca *h;

	show_open(o, "hosts", '[');
	if (client->host_index >= 0)
		show_add_text(o, NULL, "%s", s->f->host[client->host_index].name);
	LIST_FOREACH(h, &client->holds->hcas, entry)
	{
		uint32_t host = shm_hca_at(s->f->region, h->hca)->host_index;

		at->work += EMPTY_COST;
		if (client->host_index >= 0 || c->host[host] == client->id + 1)
			continue;
		c->host[host] = client->id + 1;
		show_add_text(o, NULL, "%s", s->f->host[host].name);
	}
	show_close(o, ']');
}

/* Where its keys are; NULL: it has published none. */
static struct shm_keys *keys_of(const struct daemon_show *s, const struct daemon_client *client)
{
	const struct daemon_holder *holder = client->holds;

	return holder->keys_off ? shm_data_at(s->f->region, holder->keys_off) : NULL;
}

static uint32_t load(const _Atomic uint32_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

static void add_process(const struct daemon_show *s, struct show_at *at, struct show_json *o,
                        const struct daemon_client *client)
{
	static const char *const names[KINDS] = { "qps", "cqs", "srqs", "channels" };
	const struct census *c = at->state;
	const struct shm_keys *keys = keys_of(s, client);
	struct cm_client_counts cm = { 0 };

	at->work += PROCESS_COST;
	show_open(o, NULL, '{');
	show_add_u64(o, "client", client->id);
	add_program(o, client->pid);
	show_add_u64(o, "uid", client->holds->uid);
	show_add_string(o, "uses", client->role == CONTROL_ROLE_UMAD ? "umad" : "verbs");
	add_hosts(s, at, o, client);
	for (enum kind k = 0; k < KINDS; k++)
		show_add_u64(o, names[k], client->id < c->n ? c->count[client->id][k] : 0);
	if (keys)
		show_add_u64(o, "mrs", load(&keys->n_keys));
	if (client->holds->cm)
		cm_client_count(client->holds->cm, &cm);
	show_add_u64(o, "cm_ids", cm.ids);
	show_add_u64(o, "joins", cm.joins);
	show_close(o, '}');
}

bool daemon_show_processes(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	const struct daemon_client *client;
	struct census *c = census_of(s, at, o);

	if (!c)
		return false;
	if (c->kind < KINDS) {
		count_next(s, at, c);
		return true;
	}
	at->work += EMPTY_COST;
	if (c->at >= s->clients->ids.size)
		return false;
	client = base_idtable_get(&s->clients->ids, c->at++);
	if (client && daemon_client_is_program(client))
		add_process(s, at, o, client);
	return true;
}

/* ---- memory regions ---- */

struct position {
	uint32_t client, key; /* and the key's index */
};

void show_add_access(struct show_json *o, uint32_t access)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} names[] = {
		{ IBV_ACCESS_LOCAL_WRITE, "local_write" },
		{ IBV_ACCESS_REMOTE_WRITE, "remote_write" },
		{ IBV_ACCESS_REMOTE_READ, "remote_read" },
		{ IBV_ACCESS_REMOTE_ATOMIC, "remote_atomic" },
		{ IBV_ACCESS_MW_BIND, "mw_bind" },
		{ IBV_ACCESS_ZERO_BASED, "zero_based" },
		{ IBV_ACCESS_ON_DEMAND, "on_demand" },
		{ SHM_KEY_WINDOW, "window" },
		{ SHM_KEY_NULL, "null" },
	};

	show_open(o, "access", '[');
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (access & names[i].flag)
			show_add_string(o, NULL, names[i].name);
	show_close(o, ']');
}

static void add_reach(struct show_json *o, uint32_t key, const struct shm_reach *reach)
{
	show_add_text(o, "key", "0x%08x", key);
	show_add_text(o, "address", "0x%llx", (unsigned long long)reach->start);
	show_add_u64(o, "length", reach->length);
	show_add_text(o, "iova", "0x%llx", (unsigned long long)reach->iova);
	show_add_u64(o, "pd", reach->domain);
	if (reach->qpn)
		show_add_text(o, "qpn", "0x%06x", reach->qpn & IB_QPN_MASK);
	show_add_access(o, reach->access);
}

static void add_region(struct show_json *o, const struct daemon_client *client, uint32_t key,
                       const struct shm_reach *reach)
{
	show_open(o, NULL, '{');
	show_add_u64(o, "client", client->id);
	if (client->pid > 0)
		show_add_u64(o, "pid", (uint32_t)client->pid);
	add_reach(o, key, reach);
	show_close(o, '}');
}

/* Some keys of a client. False: that were all. */
static bool show_some(const struct daemon_show *s, struct show_at *at, struct show_json *o,
                      const struct daemon_client *client)
{
	const struct shm_keys *keys = keys_of(s, client);
	struct position *p = at->state;
	uint32_t end = keys ? load(&keys->key_end) : 0, to = p->key + KEYS_AT_ONCE;
	struct shm_reach reach;

	for (; p->key < end && p->key < to; p->key++) {
		struct shm_key *k = shm_key_at(s->f->region, client->holds->keys_off, p->key << 8);
		uint32_t key = k ? load(&k->key) : 0;

		at->work += KEY_COST;
		if (shm_key_read_at(k, key, &reach))
			add_region(o, client, key, &reach);
	}
	return p->key < end && p->key < SHM_KEY_CHUNK * SHM_KEY_CHUNKS;
}

bool daemon_show_mrs(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	const struct daemon_client *client;
	struct position *p = show_state(at, o, sizeof(*p));

	if (!p)
		return false;
	at->work += EMPTY_COST;
	if (p->client >= s->clients->ids.size)
		return false;
	client = base_idtable_get(&s->clients->ids, p->client);
	if (client && daemon_client_is_program(client) && show_some(s, at, o, client))
		return true;
	p->client++;
	p->key = 0;
	return true;
}

/* ---- one key ---- */

/* Adds the place among the keys of the client where the key belongs. It has the region or window
 * that the key names; or another key; or none, but the queue pair of the last one. */
static void add_place(const struct daemon_show *s, struct show_at *at, struct show_json *o,
                      const struct daemon_client *client, struct shm_key *k)
{
	uint32_t key = load(&k->key);
	struct shm_reach reach;

	at->work += PROCESS_COST;
	show_open(o, NULL, '{');
	show_add_u64(o, "client", client->id);
	add_program(o, client->pid);
	add_hosts(s, at, o, client);
	if (shm_key_read_at(k, key, &reach))
		add_reach(o, key, &reach);
	else if (load(&k->qpn)) /* a window of type 2 was bound */
		show_add_text(o, "was_qpn", "0x%06x", load(&k->qpn) & IB_QPN_MASK);
	show_close(o, '}');
}

bool daemon_show_key(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	const uint32_t key = (uint32_t)strtoul(at->of, NULL, 0);
	const struct daemon_client *client;
	struct census *c = census_of(s, at, o);
	struct shm_key *k = NULL;

	if (!c)
		return false;
	at->work += PLACE_COST;
	if (c->at >= s->clients->ids.size)
		return false;
	client = base_idtable_get(&s->clients->ids, c->at++);
	if (client && daemon_client_is_program(client) && client->holds->keys_off)
		k = shm_key_at(s->f->region, client->holds->keys_off, key);
	if (k && load(&k->serial)) /* else there never was a key */
		add_place(s, at, o, client, k);
	return true;
}
