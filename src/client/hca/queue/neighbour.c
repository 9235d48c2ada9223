/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Neighbours on Ethernet: see neighbour.h. The daemon never waits, so this asks it again and again.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/reason.h"
#include "base/signals.h"
#include "base/util.h"
#include "hca/queue/neighbour.h"
#include "wire/ip.h"

#define WAIT_NS        1000000000ull /* as Linux */
#define KNOWN_NS       1000000000ull
#define FIRST_PAUSE_NS 50000 /* a neighbour that is there answers sooner */
#define MAX_PAUSE_NS   25600000

/* ---- those that have answered ---- */

static struct hca_neighbour *place_of(struct hca_process *p, const struct hca_neighbour *n)
{
	return &p->neighbours
	                .known[base_hash_of(&n->dgid, sizeof(n->dgid), n->hca) % HCA_NEIGHBOURS];
}

/* Nobody waits for the lock: in a child of fork() its holder is not there. */
static bool is_known(struct hca_process *p, const struct hca_neighbour *n)
{
	const struct hca_neighbour *k = place_of(p, n);
	bool known;

	if (!base_trylock(&p->neighbours.lock))
		return false;
	known = k->hca == n->hca && ib_gid_equal(&k->sgid, &n->sgid) &&
	        ib_gid_equal(&k->dgid, &n->dgid) && base_now_ns() < k->until_ns;
	base_unlock(&p->neighbours.lock);
	return known;
}

static void remember(struct hca_process *p, const struct hca_neighbour *n)
{
	struct hca_neighbour *k = place_of(p, n);

	if (!base_trylock(&p->neighbours.lock))
		return;
	*k = *n;
	k->until_ns = base_now_ns() + KNOWN_NS;
	base_unlock(&p->neighbours.lock);
}

/* ---- asking ---- */

static int ask(struct hca_context *ctx, const struct hca_neighbour *n)
{
	const struct control_find_neighbour request = { .hca_handle = ctx->handle,
		                                        .sgid = n->sgid,
		                                        .dgid = n->dgid };

	return hca_request(ctx->process, CONTROL_FIND_NEIGHBOUR, &request, sizeof(request));
}

/* -EINPROGRESS: nobody has answered for a second. */
static int ask_for_a_second(struct hca_context *ctx, const struct hca_neighbour *n)
{
	const uint64_t end = base_now_ns() + WAIT_NS;
	struct timespec pause = { .tv_nsec = FIRST_PAUSE_NS };
	int ret = ask(ctx, n);

	while (ret == -EINPROGRESS && base_now_ns() < end) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		if (pause.tv_nsec < MAX_PAUSE_NS)
			pause.tv_nsec *= 2;
		ret = ask(ctx, n);
	}
	return ret;
}

static int explain(int error, const struct ib_gid *dgid)
{
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(AF_INET6, dgid->raw, text, sizeof(text));
	if (error == -EINPROGRESS)
		return base_because(-ETIMEDOUT,
		                    "nobody on the network has grh.dgid, %s, or the gateway on the "
		                    "way: ARP and neighbour discovery had no answer for a second",
		                    text);
	if (error == -ENETUNREACH || error == -EHOSTUNREACH)
		return base_because(error, "no route of this host leads to grh.dgid, %s", text);
	return error;
}

int hca_neighbour_await(struct hca_context *ctx, const struct ib_gid *sgid,
                        const struct ib_gid *dgid)
{
	struct hca_process *p = ctx->process;
	const struct hca_neighbour n = { .hca = ctx->hca, .sgid = *sgid, .dgid = *dgid };
	int ret, cancel_state;

	if (wire_gid_is_ip_mcast(dgid) || ib_gid_equal(sgid, dgid) || p->must_not_block ||
	    is_known(p, &n))
		return 0;
	cancel_state = base_cancel_off();
	ret = ask_for_a_second(ctx, &n);
	base_cancel_restore(cancel_state);
	if (!ret)
		remember(p, &n);
	return ret ? explain(ret, dgid) : 0;
}
