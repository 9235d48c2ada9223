// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Asks for an address that somebody has or nobody has, in one of the ways that find that out.
 *
 *     nobody addr FROM TO MS    rdma_resolve_addr() with that timeout, from an identifier that is
 *                               used for FROM at once, if it fails
 *     nobody ah FROM TO         ibv_create_ah()
 *     nobody rtr FROM TO        a queue pair of RC, moved to RTR
 *
 * It says what came out, and whether it took the whole time: the timeout, or a second.
 */
#include "posix.h"

#include <netdb.h>

#include <rdma/rdma_cma.h>

#include "../qp_states.h"
#include "attributes.h"

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int fail(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static void tell(const char *what, int error, double began, double whole)
{
	double took = now_ms() - began;

	printf("%s: %s, %s\n", what, error ? strerror(abs(error)) : "somebody",
	       took < whole ? "at once" : "waited");
	fflush(stdout);
}

/* ---- rdma_cm ---- */

static struct addrinfo *address(const char *text)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM }, *ai;

	if (getaddrinfo(text, "7471", &hints, &ai))
		exit(2);
	return ai;
}

/* The outcome, an errno, 0 for ADDR_RESOLVED. */
static int resolve(struct rdma_cm_id *id, const char *to, int timeout_ms)
{
	struct rdma_cm_event *e;
	int status;

	if (rdma_resolve_addr(id, NULL, address(to)->ai_addr, timeout_ms))
		return errno;
	printf("asked\n");
	fflush(stdout);
	if (rdma_get_cm_event(id->channel, &e))
		fail("rdma_get_cm_event");
	status = e->event == RDMA_CM_EVENT_ADDR_RESOLVED ? 0 : e->status;
	if (!status != (e->event != RDMA_CM_EVENT_ADDR_ERROR) || !status != (id->verbs != NULL))
		printf("event %s, status %d\n", rdma_event_str(e->event), e->status);
	rdma_ack_cm_event(e);
	return status;
}

static void ask_rdma_cm(const char *from, const char *to, int timeout_ms)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	double began = now_ms();
	struct rdma_cm_id *id;
	int status;

	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		fail("rdma_create_id");
	status = resolve(id, to, timeout_ms);
	tell("addr", status, began, timeout_ms);
	if (status)
		tell("again", resolve(id, from, 20000), now_ms(), timeout_ms);
}

/* ---- verbs ---- */

static union ibv_gid gid_of(const char *text)
{
	union ibv_gid gid = { .raw = { [10] = 0xFF, [11] = 0xFF } };

	if (inet_pton(AF_INET6, text, &gid) != 1 && inet_pton(AF_INET, text, gid.raw + 12) != 1)
		exit(2);
	return gid;
}

/* The context of the HCA that has the GID, and its index. */
static struct ibv_context *find(const union ibv_gid *want, uint8_t *index)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (; list && *list; list++) {
		struct ibv_context *context = ibv_open_device(*list);
		union ibv_gid gid;

		for (*index = 0; !ibv_query_gid(context, 1, *index, &gid); ++*index)
			if (!memcmp(&gid, want, sizeof(gid)))
				return context;
		ibv_close_device(context);
	}
	exit(2);
}

static int make_handle(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	return ibv_create_ah(pd, attr) ? 0 : errno;
}

static int connect_qp(struct ibv_context *context, struct ibv_pd *pd,
                      const struct ibv_ah_attr *attr)
{
	struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr init = init_of(IBV_QPT_RC, cq, 4, 4);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp || qp_to_init(qp, &a))
		fail("INIT");
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
		                  .path_mtu = IBV_MTU_256,
		                  .dest_qp_num = 17,
		                  .ah_attr = *attr };
	return qp_to_rtr(qp, &a);
}

static void ask_verbs(const char *how, const char *from, const char *to)
{
	union ibv_gid gid = gid_of(from);
	struct ibv_ah_attr attr = { .is_global = 1,
		                    .port_num = 1,
		                    .grh = { .dgid = gid_of(to), .hop_limit = 64 } };
	struct ibv_context *context = find(&gid, &attr.grh.sgid_index);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	double began = now_ms();
	int error;

	if (!pd)
		fail("ibv_alloc_pd");
	error = !strcmp(how, "ah") ? make_handle(pd, &attr) : connect_qp(context, pd, &attr);
	tell(how, error, began, 1000);
}

int main(int argc, char **argv)
{
	if (argc > 4 && !strcmp(argv[1], "addr"))
		ask_rdma_cm(argv[2], argv[3], atoi(argv[4]));
	else if (argc > 3)
		ask_verbs(argv[1], argv[2], argv[3]);
	else
		return 2;
	return 0;
}
