/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by feed.c and broadcast.c: see setup.h.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "setup.h"

#define RESOLVE_MS 20000
#define BACKLOG    128
#define FOREVER    7 /* retries after RNR: without end */

void must(bool done, const char *what)
{
	if (!done)
		err(1, "%s", what);
}

uint64_t number(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno || *end || end == text || *text == '-' || n < least || n > most)
		errx(2, "'%s' is no number from %llu to %llu", text, (unsigned long long)least,
		     (unsigned long long)most);
	return n;
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct sockaddr_in address_of(const char *text, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (inet_pton(AF_INET, text, &a.sin_addr) != 1)
		errx(2, "'%s' is no IPv4 address", text);
	return a;
}

struct ibv_mr *allocate(struct ibv_pd *pd, size_t size, int access)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	must(memory != MAP_FAILED, "mmap");
	mr = ibv_reg_mr(pd, memory, size, access);
	must(mr, "ibv_reg_mr");
	return mr;
}

/* ---- groups ---- */

struct rdma_cm_id *open_port(const char *address)
{
	struct sockaddr_in a = address_of(address, 0);
	struct rdma_cm_id *id;

	must(!rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP), "rdma_create_id");
	must(!rdma_bind_addr(id, (struct sockaddr *)&a), address);
	return id;
}

void join(struct group *g, const char *address, uint32_t flags)
{
	struct sockaddr_in a = address_of(address, 0);
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = (struct sockaddr *)&a,
	};
	struct rdma_ud_param *to;

	must(!rdma_join_multicast_ex(g->id, &attr, NULL), "rdma_join_multicast_ex");
	to = &g->id->event->param.ud;
	g->qpn = to->qp_num;
	g->qkey = to->qkey;
	g->ah = ibv_create_ah(g->id->pd, &to->ah_attr);
	must(g->ah, "ibv_create_ah");
}

/* ---- connections ---- */

struct rdma_cm_id *connect_to(const char *local, const char *remote, struct ibv_qp_init_attr *init,
                              void *offer, uint8_t size)
{
	struct sockaddr_in from = address_of(local, 0), to = address_of(remote, SERVICE_PORT);
	struct rdma_conn_param param = {
		.initiator_depth =
		        RDMA_MAX_INIT_DEPTH, /* READs at a time: what the device allows */
		.retry_count = 7,
		.rnr_retry_count = FOREVER,
	};
	struct rdma_cm_id *id;

	must(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(!rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, RESOLVE_MS),
	     "rdma_resolve_addr");
	must(!rdma_resolve_route(id, RESOLVE_MS), "rdma_resolve_route");
	must(!rdma_create_qp(id, NULL, init), "rdma_create_qp");
	must(!rdma_connect(id, &param), "rdma_connect");
	if (id->event->param.conn.private_data_len < size)
		errx(1, "%s offers something else", remote);
	memcpy(offer, id->event->param.conn.private_data, size);
	return id;
}

void listen_at(struct rdma_event_channel *channel, const char *address)
{
	struct sockaddr_in a = address_of(address, SERVICE_PORT);
	struct rdma_cm_id *id;

	must(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(!rdma_bind_addr(id, (struct sockaddr *)&a), address);
	must(!rdma_listen(id, BACKLOG), "rdma_listen");
}

void accept_request(struct rdma_cm_id *id, struct ibv_qp_init_attr *init, const void *offer,
                    uint8_t size)
{
	struct rdma_conn_param param = {
		.private_data = offer,
		.private_data_len = size,
		.responder_resources = RDMA_MAX_RESP_RES,
		.rnr_retry_count = FOREVER,
	};

	must(!rdma_create_qp(id, NULL, init), "rdma_create_qp");
	must(!rdma_accept(id, &param), "rdma_accept");
}

void end_connection(struct rdma_cm_id *id)
{
	rdma_disconnect(id); /* it may have ended by itself */
	rdma_destroy_qp(id);
	must(!rdma_destroy_id(id), "rdma_destroy_id");
}

/* ---- completions ---- */

void check_completion(const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		errx(1, "QP 0x%06x: %s", wc->qp_num, ibv_wc_status_str(wc->status));
}

static int poll_completions(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got = ibv_poll_cq(cq, n, wc);

	must(got >= 0, "ibv_poll_cq");
	return got;
}

static void take_event(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;

	must(!ibv_get_cq_event(channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

static int sleep_until_some(struct ibv_cq *cq, int n, struct ibv_wc *wc,
                            struct pollfd fds[static 2], int timeout_ms, bool solicited)
{
	int got = poll_completions(cq, n, wc), readable;

	while (!got) {
		/* armed first, then looked at again: what comes between both is not missed */
		must(!(errno = ibv_req_notify_cq(cq, solicited)), "ibv_req_notify_cq");
		got = poll_completions(cq, n, wc);
		if (got)
			break;
		readable = poll(fds, 2, timeout_ms);
		must(readable >= 0, "poll");
		if (fds[0].revents)
			take_event(cq->channel);
		got = poll_completions(cq, n, wc);
		if (!got && fds[1].revents)
			return 0;
		if (!got && !readable)
			return -1;
	}
	return got;
}

int wait_completions(struct ibv_cq *cq, int n, struct ibv_wc *wc, int other, int timeout_ms)
{
	struct pollfd fds[2] = { { .fd = cq->channel->fd, .events = POLLIN },
		                 { .fd = other, .events = POLLIN } };

	return sleep_until_some(cq, n, wc, fds, timeout_ms, false);
}

int wait_solicited(struct ibv_cq *cq, int n, struct ibv_wc *wc, int other)
{
	struct pollfd fds[2] = { { .fd = cq->channel->fd, .events = POLLIN },
		                 { .fd = other, .events = POLLIN } };

	return sleep_until_some(cq, n, wc, fds, -1, true);
}
