/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of connections, and what is sent by them: see connections.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "ipoib/connections.h"

#define SECOND     1000000000ull
#define PATIENCE   (2 * SECOND) /* to connect */
#define TRY_AGAIN  (1 * SECOND) /* after the first failure; then twice as long each time */
#define MOST_TWICE 5
#define LOOK       (60 * SECOND)
#define IDLE       (600 * SECOND) /* as long as Linux keeps them, about */

/* ---- the table ---- */

static uint64_t hash_of_address(const struct ib_gid *gid, uint32_t qpn)
{
	return base_hash_of(gid, sizeof(*gid), qpn);
}

static uint64_t hash_of_qpn(uint32_t qpn)
{
	return base_hash_of(&qpn, sizeof(qpn), 0);
}

static struct ipoib_connection *find(const struct ipoib_connections *t, const struct ib_gid *gid,
                                     uint32_t qpn)
{
	struct ipoib_connection *c;

	BASE_HASH_FOREACH(c, &t->by_address, hash_of_address(gid, qpn), by_address)
		if (c->peer.qpn == qpn && ib_gid_equal(&c->peer.gid, gid))
			return c;
	return NULL;
}

const struct ipoib_connection *ipoib_connections_find(const struct ipoib_connections *t,
                                                      const struct ib_gid *gid, uint32_t qpn)
{
	return find(t, gid, qpn);
}

static struct ipoib_connection *find_qpn(const struct ipoib_connections *t, uint32_t qpn)
{
	struct ipoib_connection *c;

	BASE_HASH_FOREACH(c, &t->by_qpn, hash_of_qpn(qpn), by_qpn)
		if (c->qp->qp_num == qpn)
			return c;
	return NULL;
}

static struct ipoib_connection_list *list_of(struct ipoib_connection *c)
{
	return c->incoming ? &c->table->incoming : &c->table->outgoing;
}

static unsigned *count_of(struct ipoib_connection *c)
{
	return c->incoming ? &c->table->n_incoming : &c->table->n_outgoing;
}

static void mark_used(struct ipoib_connection *c)
{
	c->used_ns = base_timers_now(c->table->timers);
	if (!TAILQ_NEXT(c, entry))
		return;
	TAILQ_REMOVE(list_of(c), c, entry);
	TAILQ_INSERT_TAIL(list_of(c), c, entry);
}

struct ipoib_connection *ipoib_connections_received(struct ipoib_connections *t, uint32_t qpn)
{
	struct ipoib_connection *c = find_qpn(t, qpn);

	if (c)
		mark_used(c);
	return c;
}

struct ipoib_connection *ipoib_connection_new(struct ipoib_connections *t, bool incoming)
{
	struct ipoib_connection *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->table = t;
	c->incoming = incoming;
	ipoib_queue_init(&c->held, t->budget);
	if (*count_of(c) == IPOIB_CONNECTIONS_MAX)
		ipoib_connection_end(TAILQ_FIRST(list_of(c)));
	TAILQ_INSERT_TAIL(list_of(c), c, entry);
	++*count_of(c);
	mark_used(c);
	return c;
}

static struct ipoib_connection *add(struct ipoib_connections *t, const struct ipoib_address *peer)
{
	struct ipoib_connection *c = ipoib_connection_new(t, false);

	if (!c)
		return NULL;
	c->peer = *peer;
	if (!base_hash_add(&t->by_address, &c->by_address, hash_of_address(&peer->gid, peer->qpn)))
		return c;
	TAILQ_REMOVE(&t->outgoing, c, entry);
	t->n_outgoing--;
	free(c);
	return NULL;
}

int ipoib_connection_add_qp(struct ipoib_connection *c)
{
	struct ipoib_connections *t = c->table;
	int ret;

	c->qp = ipoib_rc_make_qp(t->rc, !c->incoming);
	if (!c->qp)
		return -errno;
	ret = base_hash_add(&t->by_qpn, &c->by_qpn, hash_of_qpn(c->qp->qp_num));
	if (!ret)
		return 0;
	ibv_destroy_qp(c->qp);
	c->qp = NULL;
	return ret;
}

/* ---- the end of one ---- */

static void give_slot(struct ipoib_connection *c, unsigned slot)
{
	struct ipoib_connections *t = c->table;

	c->slots &= ~(1u << slot);
	c->n_slots--;
	c->requests -= t->requests_of[slot];
	t->n_slots--;
	ipoib_slots_give(ipoib_link_slots(t->link), slot);
}

/* Without a queue pair nothing is on its way, and no completion of it will come. */
static void destroy_qp(struct ipoib_connection *c)
{
	if (!c->qp)
		return;
	base_hash_remove(&c->table->by_qpn, &c->by_qpn);
	ibv_destroy_qp(c->qp);
	c->qp = NULL;
	for (unsigned slot = 0; slot < IPOIB_SLOTS; slot++) {
		if (c->slots & 1u << slot)
			give_slot(c, slot);
	}
}

/* The peer is told. */
static void disconnect(struct ipoib_connection *c)
{
	base_timer_stop(&c->timer);
	destroy_qp(c);
	if (c->id)
		rdma_destroy_id(c->id);
	c->id = NULL;
}

/* Packets that have waited are sent again: they find the state that there is now. If the connection
 * fails by that, this is called once more meanwhile, and the rest goes as datagrams. */
static void send_held(struct ipoib_connection *c)
{
	struct ipoib_connections *t = c->table;
	struct ipoib_address peer = c->peer;
	struct ipoib_held *held;

	while (c->state != IPOIB_CONNECTING && (held = ipoib_queue_take(&c->held))) {
		t->send(t->arg, &peer, &held->packet);
		ipoib_held_free(held);
	}
}

void ipoib_connection_end(struct ipoib_connection *c)
{
	struct ipoib_connections *t = c->table;

	disconnect(c);
	t->dropped += ipoib_queue_drop(&c->held);
	if (!c->incoming)
		base_hash_remove(&t->by_address, &c->by_address);
	TAILQ_REMOVE(list_of(c), c, entry);
	--*count_of(c);
	free(c);
}

void ipoib_connection_fail(struct ipoib_connection *c)
{
	struct ipoib_connections *t = c->table;
	unsigned twice = (unsigned)base_min((int)c->failures, MOST_TWICE);

	t->failed++;
	if (c->incoming) {
		ipoib_connection_end(c);
		return;
	}
	disconnect(c);
	c->state = IPOIB_FAILED;
	c->failures++;
	c->not_before_ns = base_timers_now(t->timers) + (TRY_AGAIN << twice);
	send_held(c);
}

static void took_too_long(struct base_timer *timer)
{
	ipoib_connection_fail(container_of(timer, struct ipoib_connection, timer));
}

void ipoib_connection_ready(struct ipoib_connection *c)
{
	base_timer_stop(&c->timer);
	c->state = IPOIB_CONNECTED;
	c->since_ns = base_timers_now(c->table->timers);
	c->table->made++;
	mark_used(c);
	if (!c->incoming)
		send_held(c);
}

/* ---- sending ---- */

static void begin(struct ipoib_connection *c)
{
	c->state = IPOIB_CONNECTING;
	base_timer_set_in(c->table->timers, &c->timer, PATIENCE, took_too_long);
	if (ipoib_connections_ask(c))
		ipoib_connection_fail(c);
}

enum ipoib_connection_use ipoib_connections_use(struct ipoib_connections *t,
                                                const struct ipoib_address *to,
                                                const struct ipoib_packet *p,
                                                struct ipoib_connection **out)
{
	struct ipoib_connection *c = find(t, &to->gid, to->qpn);
	bool is_new = !c;

	if (is_new)
		c = add(t, to);
	if (!c)
		return IPOIB_BY_DATAGRAM;
	*out = c;
	if (c->state == IPOIB_CONNECTED)
		return IPOIB_BY_CONNECTION;
	if (is_new || (c->state == IPOIB_FAILED && base_timers_now(t->timers) >= c->not_before_ns))
		begin(c);
	if (c->state == IPOIB_CONNECTING) {
		t->dropped += !ipoib_queue_add(&c->held, p, to->qpn);
		return IPOIB_BY_NOTHING;
	}
	return IPOIB_BY_DATAGRAM;
}

/* Whether a packet of @n requests may be on its way as well. A peer that takes none must not keep
 * others waiting. */
static bool has_room(const struct ipoib_connection *c, unsigned n)
{
	return c->n_slots < IPOIB_CONNECTION_SLOTS &&
	       c->table->n_slots < IPOIB_CONNECTION_SLOTS_ALL &&
	       c->requests + n <= IPOIB_RC_SEND_DEPTH;
}

bool ipoib_connections_send(struct ipoib_connections *t, struct ipoib_connection *c,
                            const struct ipoib_packet *p)
{
	struct ipoib_slots *slots = ipoib_link_slots(t->link);
	struct ipoib_piece piece[IPOIB_MAX_SEGMENT];
	unsigned n = ipoib_slots_describe(slots, p, c->mtu, piece), slot;

	mark_used(c);
	if (!has_room(c, n))
		ipoib_connections_sent(t);
	/* it may have failed meanwhile */
	if (!n || c->state != IPOIB_CONNECTED || !has_room(c, n)) {
		t->dropped++;
		return false;
	}
	slot = ipoib_slots_use(slots);
	c->slots |= 1u << slot;
	c->n_slots++;
	c->requests += n;
	t->requests_of[slot] = (uint8_t)n;
	t->n_slots++;
	if (!ipoib_rc_send(c->qp, slot, piece, n)) {
		ipoib_connection_fail(c);
		return false;
	}
	ipoib_connections_sent(t); /* mostly it is there already, and the slot still in the cache */
	return true;
}

static void take_completion(struct ipoib_connection *c, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		ipoib_connection_fail(c);
		return;
	}
	give_slot(c, (unsigned)wc->wr_id);
	c->failures = 0; /* a connection that is made may yet be of no use */
}

void ipoib_connections_sent(struct ipoib_connections *t)
{
	struct ibv_wc wc[16];
	int n;

	do {
		n = t->n_slots ? ipoib_rc_poll_sent(t->rc, wc, ARRAY_SIZE(wc)) : 0;
		for (int i = 0; i < n; i++) {
			struct ipoib_connection *c = find_qpn(t, wc[i].qp_num);

			/* a connection that has failed has given back its slots */
			if (c)
				take_completion(c, &wc[i]);
		}
	} while (n == ARRAY_SIZE(wc));
}

/* ---- those that are not wanted any more ---- */

static void end_idle(struct ipoib_connection_list *list, uint64_t now)
{
	struct ipoib_connection *c;

	while ((c = TAILQ_FIRST(list)) && now - c->used_ns >= IDLE)
		ipoib_connection_end(c);
}

static void look_for_idle(struct base_timer *timer)
{
	struct ipoib_connections *t = container_of(timer, struct ipoib_connections, idle);
	uint64_t now = base_timers_now(t->timers);

	end_idle(&t->outgoing, now);
	end_idle(&t->incoming, now);
	base_timer_set_in(t->timers, &t->idle, LOOK, look_for_idle);
}

void ipoib_connections_doubt(struct ipoib_connections *t, const struct ib_gid *gid)
{
	struct ipoib_connection *c = TAILQ_FIRST(&t->outgoing), *next;

	for (; c; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (ib_gid_equal(&c->peer.gid, gid))
			ipoib_connection_end(c);
	}
}

static void end_all(struct ipoib_connections *t)
{
	struct ipoib_connection *c;

	while ((c = TAILQ_FIRST(&t->outgoing)) || (c = TAILQ_FIRST(&t->incoming)))
		ipoib_connection_end(c);
}

void ipoib_connections_reset(struct ipoib_connections *t)
{
	end_all(t);
	if (!ib_gid_equal(&t->gid, &t->port->gid) && ipoib_connections_listen(t))
		base_log_warning(ipoib, "cannot listen for connections");
}

/* ---- beginning and end ---- */

int ipoib_connections_open(struct ipoib_connections *t)
{
	int ret;

	TAILQ_INIT(&t->outgoing);
	TAILQ_INIT(&t->incoming);
	ret = ipoib_rc_open(&t->rc, t->link);
	if (ret)
		return ret;
	t->channel = rdma_create_event_channel();
	if (!t->channel)
		return -errno;
	if (fcntl(t->channel->fd, F_SETFL, fcntl(t->channel->fd, F_GETFL) | O_NONBLOCK))
		return -errno;
	base_timer_set_in(t->timers, &t->idle, LOOK, look_for_idle);
	return ipoib_connections_listen(t);
}

void ipoib_connections_close(struct ipoib_connections *t)
{
	if (!t->rc)
		return;
	end_all(t);
	base_timer_stop(&t->idle);
	if (t->listener)
		rdma_destroy_id(t->listener);
	if (t->channel)
		rdma_destroy_event_channel(t->channel);
	ipoib_rc_close(t->rc);
	base_hash_fini(&t->by_address);
	base_hash_fini(&t->by_qpn);
}

const char *ipoib_connection_state_name(enum ipoib_connection_state state)
{
	static const char *const names[] = { [IPOIB_CONNECTING] = "connecting",
		                             [IPOIB_CONNECTED] = "connected",
		                             [IPOIB_FAILED] = "failed" };

	return names[state];
}
