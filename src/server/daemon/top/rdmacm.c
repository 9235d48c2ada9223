/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's part of rdma_cm: see rdmacm.h.
 */
#include <errno.h>
#include <sys/random.h>

#include "base/util.h"
#include "daemon/core/outbox.h"
#include "daemon/network/roce_groups.h"
#include "daemon/network/roce_neighbours.h"
#include "daemon/top/rdmacm.h"

static_assert(CONTROL_CM_BYTES <= DAEMON_OUTBOX_RINGS, "bytes");

static int outbox_open(void *arg, struct cm_outbox **box, int *process_fd)
{
	struct daemon_rdmacm *r = arg;

	return daemon_outbox_open(r->loop, box, process_fd);
}

static void mad_send(void *arg, struct fabric_port *from, const struct fabric_mad *mad)
{
	struct daemon_rdmacm *r = arg;

	daemon_mads_queue(r->mads, from, mad);
}

static void *memory_get(void *arg, uint32_t bytes, uint64_t *off)
{
	struct daemon_rdmacm *r = arg;

	*off = daemon_memory_payload(r->memory, bytes);
	return *off ? shm_data_at(r->memory->region, *off) : NULL;
}

static void memory_put(void *arg, uint64_t off)
{
	struct daemon_rdmacm *r = arg;

	daemon_memory_free_payload(r->memory, off);
}

static int route(void *arg, int host, const union control_cm_addr *dst, union control_cm_addr *src)
{
	const struct daemon_rdmacm *r = arg;

	return daemon_roce_route(r->roce, host, dst, src);
}

static int search(void *arg, const struct cm_sought *sought, struct cm_search **found)
{
	const struct daemon_rdmacm *r = arg;

	return daemon_roce_search(r->roce, sought, found);
}

static int join(void *arg, struct fabric_port *port, const struct ib_gid *mgid)
{
	struct daemon_rdmacm *r = arg;

	return daemon_roce_join(r->roce, port, mgid);
}

static void leave(void *arg, struct fabric_port *port, const struct ib_gid *mgid)
{
	struct daemon_rdmacm *r = arg;

	daemon_roce_leave(r->roce, port, mgid);
}

/* Requests of rdma_cm to the embedded SA are done before the reply. Requests to another SA have
 * been sent then. */
static int serve(struct daemon_call *call)
{
	struct daemon_rdmacm *r = call->module;
	const struct daemon_client *client = call->client;
	struct cm_client **cm = &client->holds->cm;
	int ret = *cm ? 0 : cm_client_new(r->cm, client->host_index, cm);

	if (!ret)
		ret = cm_request(r->cm, *cm, call->request, call->reply);
	daemon_mads_send(r->mads);
	return ret;
}

/* Its peers hear of it at once; its identifiers end in slices (cm_client_free()). */
static void gone(void *arg, struct daemon_holder *holder)
{
	const struct daemon_rdmacm *r = arg;

	if (holder->cm)
		cm_client_free(r->cm, holder->cm);
	holder->cm = NULL;
}

static const struct daemon_request requests[] = {
	{ .type = CONTROL_CM_FIRST,
	  .last = CONTROL_CM_LAST,
	  .bytes = DAEMON_ANY_BYTES,
	  .who = DAEMON_VERBS,
	  .serve = serve },
};

int daemon_rdmacm_init(struct daemon_rdmacm *r, struct daemon_clients *clients)
{
	struct cm_ops ops = { .outbox_open = outbox_open,
		              .outbox_send = daemon_outbox_send,
		              .outbox_ring = daemon_outbox_ring,
		              .outbox_waiting = daemon_outbox_waiting,
		              .outbox_closed = daemon_outbox_closed,
		              .outbox_close = daemon_outbox_close,
		              .mad_send = mad_send,
		              .memory_get = memory_get,
		              .memory_put = memory_put,
		              .route = route,
		              .search = search,
		              .search_end = daemon_roce_search_end,
		              .join = join,
		              .leave = leave,
		              .tid_high = DAEMON_TID_CM,
		              .arg = r,
		              .timers = &r->loop->timers };
	int ret;

	if (getrandom(&ops.random, sizeof(ops.random), 0) < 0)
		return -errno;
	ret = cm_new(&r->cm, r->f, &ops);
	if (ret)
		return ret;
	clients->cm = r->cm;
	r->ending.gone = gone;
	daemon_ending_register(&clients->objects->endings, &r->ending, NULL, r);
	daemon_requests_add(&clients->requests, requests, ARRAY_SIZE(requests), r);
	return 0;
}
