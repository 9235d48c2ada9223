/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The neighbours: see neighbours.h. Times and tries are those of RFC 4861, section 10.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/util.h"
#include "ipoib/neighbours.h"

#define SECOND       1000000000ull
#define ASK_AGAIN    (1 * SECOND)
#define REACHABLE    (30 * SECOND)
#define DELAY        (5 * SECOND)
#define FORGET_STALE (600 * SECOND)
#define MAX_ASKED    3

void ipoib_neighbours_init(struct ipoib_neighbours *t, struct base_timers *timers,
                           struct ipoib_budget *budget, const struct ipoib_neighbour_ops *ops,
                           void *arg)
{
	*t = (struct ipoib_neighbours){ .timers = timers,
		                        .budget = budget,
		                        .ops = ops,
		                        .arg = arg,
		                        .max = IPOIB_NEIGHBOURS_MAX };
	TAILQ_INIT(&t->used);
	TAILQ_INIT(&t->unused);
	if (getrandom(&t->seed, sizeof(t->seed), GRND_NONBLOCK) < 0)
		t->seed = base_now_ns();
}

static struct ipoib_neighbour_list *list_of(struct ipoib_neighbour *n)
{
	return n->used ? &n->table->used : &n->table->unused;
}

static void forget(struct ipoib_neighbour *n)
{
	struct ipoib_neighbours *t = n->table;

	t->dropped += ipoib_queue_drop(&n->queue);
	base_timer_stop(&n->timer);
	TAILQ_REMOVE(list_of(n), n, entry);
	base_hash_remove(&t->by_ip, &n->node);
	free(n);
}

void ipoib_neighbours_flush(struct ipoib_neighbours *t)
{
	struct ipoib_neighbour *n;

	while ((n = TAILQ_FIRST(&t->unused)) || (n = TAILQ_FIRST(&t->used)))
		forget(n);
}

void ipoib_neighbours_fini(struct ipoib_neighbours *t)
{
	ipoib_neighbours_flush(t);
	base_hash_fini(&t->by_ip);
}

static uint64_t hash_of(const struct ipoib_neighbours *t, const struct ib_gid *ip)
{
	return base_hash_of(ip, sizeof(*ip), t->seed);
}

struct ipoib_neighbour *ipoib_neighbours_find(const struct ipoib_neighbours *t,
                                              const struct ib_gid *ip)
{
	struct ipoib_neighbour *n;

	BASE_HASH_FOREACH(n, &t->by_ip, hash_of(t, ip), node)
		if (ib_gid_equal(&n->ip, ip))
			return n;
	return NULL;
}

static struct ipoib_neighbour *add(struct ipoib_neighbours *t, const struct ib_gid *ip, bool used)
{
	struct ipoib_neighbour *n;

	if (t->by_ip.n >= t->max) {
		n = TAILQ_FIRST(&t->unused);
		forget(n ? n : TAILQ_FIRST(&t->used));
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->table = t;
	n->ip = *ip;
	n->used = used;
	ipoib_queue_init(&n->queue, t->budget);
	if (base_hash_add(&t->by_ip, &n->node, hash_of(t, ip))) {
		free(n);
		return NULL;
	}
	TAILQ_INSERT_TAIL(list_of(n), n, entry);
	return n;
}

/* ---- states ---- */

static void time_is_over(struct base_timer *timer);

static void enter(struct ipoib_neighbour *n, enum ipoib_neighbour_state state, uint64_t ns)
{
	n->state = state;
	n->asked = 0;
	base_timer_set_in(n->table->timers, &n->timer, ns, time_is_over);
}

static void ask(struct ipoib_neighbour *n)
{
	struct ipoib_neighbours *t = n->table;

	n->asked++;
	t->ops->ask(t->arg, &n->ip, n->state == IPOIB_PROBE ? &n->address : NULL);
}

/* Nobody answers. Asked for the next time, by everybody, it may be somewhere else. */
static void give_up(struct ipoib_neighbour *n)
{
	struct ipoib_neighbours *t = n->table;
	struct ipoib_held *held;

	while ((held = ipoib_queue_take(&n->queue))) {
		t->dropped++;
		t->ops->unreachable(t->arg, &held->packet);
		ipoib_held_free(held);
	}
	if (n->state == IPOIB_PROBE)
		t->ops->doubt(t->arg, &n->address);
	forget(n);
}

static void time_is_over(struct base_timer *timer)
{
	struct ipoib_neighbour *n = container_of(timer, struct ipoib_neighbour, timer);

	switch (n->state) {
	case IPOIB_REACHABLE:
		enter(n, IPOIB_STALE, FORGET_STALE);
		return;
	case IPOIB_STALE:
		forget(n);
		return;
	case IPOIB_DELAY:
		enter(n, IPOIB_PROBE, ASK_AGAIN);
		break;
	case IPOIB_INCOMPLETE:
	case IPOIB_PROBE:
		if (n->asked == MAX_ASKED) {
			give_up(n);
			return;
		}
		base_timer_set_in(n->table->timers, &n->timer, ASK_AGAIN, time_is_over);
		break;
	}
	ask(n);
}

static void mark_used(struct ipoib_neighbour *n)
{
	struct ipoib_neighbours *t = n->table;

	if (n->used && !TAILQ_NEXT(n, entry))
		return;
	TAILQ_REMOVE(list_of(n), n, entry);
	n->used = true;
	TAILQ_INSERT_TAIL(&t->used, n, entry);
}

const struct ipoib_address *ipoib_neighbours_use(struct ipoib_neighbours *t,
                                                 const struct ib_gid *ip,
                                                 const struct ipoib_packet *p)
{
	struct ipoib_neighbour *n = ipoib_neighbours_find(t, ip);
	bool is_new = !n;

	if (is_new)
		n = add(t, ip, true);
	if (!n) {
		t->dropped++;
		return NULL;
	}
	mark_used(n);
	if (is_new)
		enter(n, IPOIB_INCOMPLETE, ASK_AGAIN);
	if (n->state == IPOIB_STALE)
		enter(n, IPOIB_DELAY, DELAY);
	if (n->state != IPOIB_INCOMPLETE)
		return &n->address;
	t->dropped += !ipoib_queue_add(&n->queue, p, 0);
	if (is_new)
		ask(n);
	return NULL;
}

static void send_held(struct ipoib_neighbour *n)
{
	struct ipoib_neighbours *t = n->table;
	struct ipoib_address to = n->address;
	struct ipoib_held *held;

	while ((held = ipoib_queue_take(&n->queue))) {
		t->ops->send(t->arg, &to, &held->packet);
		ipoib_held_free(held);
	}
}

void ipoib_neighbours_learn(struct ipoib_neighbours *t, const struct ipoib_news *news)
{
	struct ipoib_neighbour *n = ipoib_neighbours_find(t, &news->ip);
	bool known = n && n->state != IPOIB_INCOMPLETE, same;

	if (!n && news->create)
		n = add(t, &news->ip, false);
	if (!n)
		return;
	same = known && ipoib_address_equal(&n->address, &news->address);
	/* RFC 4861, section 7.2.5: another address, which may not replace ours, casts doubt on it
	 */
	if (known && !(news->certain && (same || news->override))) {
		if (!same && n->state == IPOIB_REACHABLE)
			enter(n, IPOIB_STALE, FORGET_STALE);
		return;
	}
	n->address = news->address;
	if (news->answer && news->certain)
		enter(n, IPOIB_REACHABLE, REACHABLE);
	else if (!same)
		enter(n, IPOIB_STALE, FORGET_STALE);
	send_held(n);
}

const char *ipoib_neighbour_state_name(enum ipoib_neighbour_state state)
{
	static const char *const names[] = {
		[IPOIB_INCOMPLETE] = "incomplete", [IPOIB_REACHABLE] = "reachable",
		[IPOIB_STALE] = "stale",           [IPOIB_DELAY] = "delay",
		[IPOIB_PROBE] = "probe",
	};

	return names[state];
}
