/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asks an interface of IPoIB in connected mode for connections (RFC 4755), as no interface does:
 * asker bad|many|garbage|claims GID QPN, the interface's. Or is asked, in place of an interface
 * that has had this GID and queue pair: asker posing GID QPN.
 *
 *	bad      requests that break a rule: each is refused
 *	many     many connections: each is made, and the oldest are ended meanwhile
 *	garbage  on one after the other, messages that are no packets, and one that is too long
 *	claims   says by a connection that 192.0.2.2 and 2001:db8::2 are at a port that nobody has,
 *	         and at another of its own queue pairs than the named one; then, that 192.0.2.9 is
 *	         at its own port; then sends a packet of unknown type. It stays connected
 *	posing   accepts twice: with bad private data, which the other end refuses; and as a
 *	         receiver of messages of 2004 bytes, of which it takes a few and then none
 */
#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "claim.h"

#define MANY     400
#define BYTES    70000
#define MESSAGES 200
#define ROUNDS   3
#define RC_BYTES 65524
#define TAKEN    64
#define CHECK(what)                                            \
	do {                                                   \
		if (!(what)) {                                 \
			fprintf(stderr, "asker: %s\n", #what); \
			exit(1);                               \
		}                                              \
	} while (0)

static struct rdma_event_channel *channel;
static struct sockaddr_ib victim = { .sib_family = AF_IB, .sib_sid_mask = UINT64_MAX };
static unsigned disconnected;
static char memory[BYTES];

/* The end of a connection; by a rejection if the other side did not know yet that it was one. */
static bool is_end(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_REJECTED;
}

/* The next event that is not the end of some other connection. */
static enum rdma_cm_event_type next_event(const struct rdma_cm_id *id)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;
	bool ours;

	do {
		CHECK(!rdma_get_cm_event(channel, &event));
		type = event->event;
		ours = event->id == id;
		disconnected += type == RDMA_CM_EVENT_DISCONNECTED || (!ours && is_end(type));
		CHECK(ours || is_end(type));
		rdma_ack_cm_event(event);
	} while (!ours);
	return type;
}

/* An identifier with a route to the victim. */
static struct rdma_cm_id *resolve(void)
{
	struct rdma_cm_id *id;

	CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_IB));
	CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&victim, 10000));
	CHECK(next_event(id) == RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!rdma_resolve_route(id, 10000));
	CHECK(next_event(id) == RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

struct data {
	uint32_t qpn, bytes; /* big endian */
};

/* Asks; what the interface says to it. Without a queue pair of its own it names @qpn. */
static enum rdma_cm_event_type ask(struct rdma_cm_id *id, uint32_t qpn, const struct data *data)
{
	struct rdma_conn_param param = { .private_data = data,
		                         .private_data_len = data ? sizeof(*data) : 0,
		                         .qp_num = qpn };

	CHECK(!rdma_connect(id, &param));
	return next_event(id);
}

static void bad(uint32_t qpn)
{
	const struct data all[] = {
		{ htobe32(qpn), 0 },
		{ htobe32(qpn), htobe32(4) },
		{ htobe32(qpn), htobe32(1283) },
		{ htobe32(0), htobe32(RC_BYTES) },
		{ htobe32(1), htobe32(RC_BYTES) },
		{ htobe32(0xFFFFFF), htobe32(RC_BYTES) },
	};
	struct rdma_cm_id *id;

	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) {
		id = resolve();
		CHECK(ask(id, 0x100000 + i, &all[i]) == RDMA_CM_EVENT_REJECTED);
		rdma_destroy_id(id);
	}
	id = resolve();
	CHECK(ask(id, 0x100100, NULL) == RDMA_CM_EVENT_REJECTED);
	rdma_destroy_id(id);
	/* nobody listens for another queue pair */
	victim.sib_sid = htobe64(be64toh(victim.sib_sid) ^ 0x800000);
	id = resolve();
	CHECK(ask(id, 0x100101, &(struct data){ htobe32(2), htobe32(RC_BYTES) }) ==
	      RDMA_CM_EVENT_REJECTED);
	rdma_destroy_id(id);
}

static void many(uint32_t qpn)
{
	for (unsigned i = 0; i < MANY; i++) {
		const struct data data = { htobe32(qpn + i % 3), htobe32(RC_BYTES) };
		struct rdma_cm_id *id = resolve();

		CHECK(ask(id, 0x200000 + i, &data) == RDMA_CM_EVENT_CONNECT_RESPONSE);
		CHECK(!rdma_establish(id));
	}
}

/* Sends messages of random bytes, then a long one, after which the connection is no more. */
static void send_garbage(struct rdma_cm_id *id, struct ibv_mr *mr)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };

	for (unsigned i = 0; i <= MESSAGES; i++) {
		unsigned bytes = i < MESSAGES ? (unsigned)rand() % (i % 2 ? 40 : 65536) : BYTES;
		struct ibv_sge sge = { (uintptr_t)memory, bytes, mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge,
			                  .num_sge = 1,
			                  .opcode = IBV_WR_SEND,
			                  .send_flags = IBV_SEND_SIGNALED },
		                   *failed;

		memory[0] = i % 3 ? 0x08 : (char)0x86;
		memory[1] = (char)(i % 3 == 1 ? 0x00 : i % 3 == 2 ? 0x06 : 0xDD);
		memory[4] = (char)(i % 3 ? 0x45 : 0x60);
		CHECK(!ibv_post_send(id->qp, &wr, &failed));
		while (!ibv_poll_cq(id->send_cq, 1, &wc))
			;
		CHECK((wc.status == IBV_WC_SUCCESS) == (i < MESSAGES));
	}
}

static void garbage(uint32_t qpn)
{
	const struct data data = { htobe32(qpn), htobe32(RC_BYTES) };

	for (unsigned i = 0; i < sizeof(memory); i++)
		memory[i] = (char)rand();
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 1, 1, 1, 0 } };
		struct rdma_cm_id *id = resolve();
		struct ibv_mr *mr = ibv_reg_mr(id->pd, memory, sizeof(memory), 0);

		CHECK(mr && !rdma_create_qp(id, NULL, &init));
		CHECK(ask(id, 0, &data) == RDMA_CM_EVENT_ESTABLISHED);
		send_garbage(id, mr);
		CHECK(next_event(id) == RDMA_CM_EVENT_DISCONNECTED);
		rdma_destroy_qp(id);
		ibv_dereg_mr(mr);
		rdma_destroy_id(id);
	}
}

static void send_bytes(struct rdma_cm_id *id, struct ibv_mr *mr, unsigned bytes)
{
	struct ibv_sge sge = { (uintptr_t)memory, bytes, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_SEND,
		                  .send_flags = IBV_SEND_SIGNALED },
	                   *failed;
	struct ibv_wc wc;
	int n;

	CHECK(!ibv_post_send(id->qp, &wr, &failed));
	while (!(n = ibv_poll_cq(id->send_cq, 1, &wc)))
		;
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void claims(uint32_t qpn)
{
	const struct data data = { htobe32(qpn), htobe32(RC_BYTES) };
	const union ibv_gid nobody = { .raw = { 0xFE, 0x80, [8] = 0x12, [15] = 0x34 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 1, 1, 1, 0 } };
	struct rdma_cm_id *id = resolve();
	struct ibv_mr *mr = ibv_reg_mr(id->pd, memory, sizeof(memory), 0);
	uint8_t address[3][CLAIM_ADDRESS_BYTES], *p = (uint8_t *)memory;
	union ibv_gid gid;

	CHECK(mr && !rdma_create_qp(id, NULL, &init));
	CHECK(ask(id, 0, &data) == RDMA_CM_EVENT_ESTABLISHED);
	CHECK(!ibv_query_gid(id->verbs, id->port_num, 0, &gid));
	put_address(address[0], &nobody, qpn);
	put_address(address[1], &gid, qpn + 1);
	put_address(address[2], &gid, qpn);
	for (unsigned i = 0; i < 2 * CLAIM_KINDS; i++)
		send_bytes(id, mr, claim(p, i % CLAIM_KINDS, 2, address[i / CLAIM_KINDS]));
	send_bytes(id, mr, claim(p, CLAIM_ARP_REQUEST, 9, address[2]));
	memcpy(p, "\x12\x34\0\0\0\0\0", 8);
	send_bytes(id, mr, 8);
	printf("has said it\n");
	pause();
}

/* The next request. */
static struct rdma_cm_id *next_request(void)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CHECK(!rdma_get_cm_event(channel, &event));
	CHECK(event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

/* An end that waits for the other end's next step may send TAKEN packets meanwhile. */
static void post_receives(struct rdma_cm_id *id)
{
	struct ibv_mr *mr = ibv_reg_mr(id->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);

	CHECK(mr);
	for (unsigned i = 0; i < TAKEN; i++) {
		struct ibv_sge sge = { (uintptr_t)memory, sizeof(memory), mr->lkey };
		struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *failed;

		CHECK(!ibv_post_recv(id->qp, &wr, &failed));
	}
}

static void accept_with(struct rdma_cm_id *id, uint32_t qpn, uint32_t bytes)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, TAKEN, 1, 1, 0 } };
	const struct data data = { htobe32(qpn), htobe32(bytes) };
	struct rdma_conn_param param = { .private_data = &data, .private_data_len = sizeof(data) };

	CHECK(!rdma_create_qp(id, NULL, &init));
	post_receives(id);
	CHECK(!rdma_accept(id, &param));
}

static void pose(uint32_t qpn)
{
	struct rdma_cm_id *listener, *id;

	CHECK(!rdma_create_id(channel, &listener, NULL, RDMA_PS_IB));
	CHECK(!rdma_bind_addr(listener, (struct sockaddr *)&victim));
	CHECK(!rdma_listen(listener, 0));
	printf("listens\n");
	id = next_request();
	accept_with(id, qpn, 3);
	CHECK(next_event(id) == RDMA_CM_EVENT_REJECTED);
	printf("was refused\n");
	id = next_request();
	accept_with(id, qpn, 2004);
	CHECK(next_event(id) == RDMA_CM_EVENT_ESTABLISHED);
	printf("is connected\n");
	CHECK(next_event(id) == RDMA_CM_EVENT_DISCONNECTED);
}

int main(int argc, char **argv)
{
	uint32_t qpn;

	CHECK(argc == 4);
	qpn = (uint32_t)atoi(argv[3]);
	CHECK(inet_pton(AF_INET6, argv[2], &victim.sib_addr) == 1);
	victim.sib_sid = htobe64(0x1000000000000000 | qpn);
	CHECK((channel = rdma_create_event_channel()));
	if (!strcmp(argv[1], "bad"))
		bad(qpn);
	else if (!strcmp(argv[1], "many"))
		many(qpn);
	else if (!strcmp(argv[1], "posing"))
		pose(qpn);
	else if (!strcmp(argv[1], "claims"))
		claims(qpn);
	else
		garbage(qpn);
	printf("%s: done, %u were ended\n", argv[1], disconnected);
	return 0;
}
