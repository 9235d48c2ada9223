/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends bad packets to an interface of IPoIB, from a queue pair of another host: forge LID QPN GID
 * VICTIM-GID SECONDS. A part of them is random; most are nearly right packets of IP, ARP and
 * neighbour discovery. In ARP and advertisements the sender says that it has the addresses
 * 192.0.2.2 and 2001:db8::2, at VICTIM-GID, or that of half the prefix it has all addresses.
 *
 * Without SECONDS: one of each kind that says that they are at VICTIM-GID, without a GRH, and then
 * a packet of unknown type.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "claim.h"

#define QKEY  0x0B1B
#define BATCH 64
#define LEAST 20000 /* packets, also on a machine that has no time for us */
#define BYTES 512
#define GRH   40
#define CHECK(what)                                            \
	do {                                                   \
		if (!(what)) {                                 \
			fprintf(stderr, "forge: %s\n", #what); \
			exit(1);                               \
		}                                              \
	} while (0)

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

static void randomize(uint8_t *at, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (uint8_t)below(256);
}

/* ---- packets; each function returns the bytes ---- */

/* A link-layer address: of that port, with any queue pair. */
static void any_address(uint8_t *at, const union ibv_gid *gid)
{
	put_address(at, gid, below(2) << 16 | below(65536));
}

static unsigned arp(uint8_t *p, const union ibv_gid *claimed)
{
	uint8_t address[CLAIM_ADDRESS_BYTES];

	any_address(address, claimed);
	return claim_arp(p, below(2) ? CLAIM_ARP_REQUEST : CLAIM_ARP_REPLY,
	                 (uint8_t)(below(2) ? 2 : below(256)), address);
}

static unsigned advertisement(uint8_t *p, const union ibv_gid *claimed)
{
	uint8_t address[CLAIM_ADDRESS_BYTES];
	unsigned bytes;

	any_address(address, claimed);
	bytes = claim_nd(p, below(2) ? CLAIM_SOLICITATION : CLAIM_ADVERTISEMENT, 2, address);
	if (!below(4))
		p[4 + 40 + 25] = (uint8_t)below(256);
	return bytes;
}

/* IPv4 or IPv6 whose lengths and protocol are anything. */
static unsigned ip(uint8_t *p)
{
	unsigned bytes = 4 + below(BYTES - 4);

	randomize(p, bytes);
	put16(p, below(2) ? 0x0800 : 0x86DD);
	if (bytes > 4 && below(8))
		p[4] = (uint8_t)(p[0] == 0x08 ? 0x45 : 0x60);
	if (bytes > 24 && below(2))
		put16(p + (p[0] == 0x08 ? 6 : 8), bytes - (p[0] == 0x08 ? 4 : 44));
	if (bytes > 24 && below(2))
		p[p[0] == 0x08 ? 13 : 10] = 6; /* TCP */
	return bytes;
}

static unsigned make(uint8_t *p, const union ibv_gid *victim, const union ibv_gid *us)
{
	const union ibv_gid *claimed = below(2) ? victim : us;
	unsigned bytes;

	switch (below(6)) {
	case 0:
		bytes = below(BYTES);
		randomize(p, bytes);
		return bytes;
	case 1:
		return ip(p);
	case 2:
		/* of our own address anybody may tell, but not that it is the victim's */
		bytes = arp(p, claimed);
		if (claimed == us)
			p[35] = (uint8_t)(128 + below(127));
		return bytes;
	case 3:
		return advertisement(p, victim);
	case 4:
		bytes = arp(p, victim);
		p[4 + below(8)] = (uint8_t)below(256);
		return below(2) ? bytes : below(bytes);
	default:
		bytes = advertisement(p, victim);
		p[below(bytes)] ^= (uint8_t)(1 + below(255));
		return below(2) ? bytes : below(bytes);
	}
}

/* ---- sending ---- */

struct sender {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah[2]; /* without a GRH, and with one */
	uint8_t memory[BATCH][BYTES];
};

static void start(struct sender *s, uint16_t lid, const union ibv_gid *gid)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { BATCH, 1, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_ah_attr ah = { .dlid = lid, .port_num = 1 };

	CHECK(list && list[0]);
	CHECK((s->context = ibv_open_device(list[0])));
	CHECK((s->pd = ibv_alloc_pd(s->context)));
	CHECK((s->cq = ibv_create_cq(s->context, BATCH, NULL, NULL, 0)));
	init.send_cq = init.recv_cq = s->cq;
	CHECK((s->qp = ibv_create_qp(s->pd, &init)));
	CHECK(!ibv_modify_qp(s->qp, &attr,
	                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(s->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	CHECK((s->mr = ibv_reg_mr(s->pd, s->memory, sizeof(s->memory), 0)));
	CHECK((s->ah[0] = ibv_create_ah(s->pd, &ah)));
	ah.is_global = 1;
	ah.grh.dgid = *gid;
	ah.grh.hop_limit = 1;
	CHECK((s->ah[1] = ibv_create_ah(s->pd, &ah)));
}

static void post(struct sender *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	CHECK(!ibv_post_send(s->qp, wr, &bad));
	while (!(n = ibv_poll_cq(s->cq, 1, &wc)))
		;
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void send_batch(struct sender *s, uint32_t qpn, const union ibv_gid *victim,
                       const union ibv_gid *us)
{
	struct ibv_send_wr wr[BATCH];
	struct ibv_sge sge[BATCH];

	for (unsigned i = 0; i < BATCH; i++) {
		unsigned bytes = make(s->memory[i], victim, us);

		sge[i] = (struct ibv_sge){ (uintptr_t)s->memory[i], bytes, s->mr->lkey };
		wr[i] = (struct ibv_send_wr){
			.next = i + 1 < BATCH ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = i + 1 < BATCH ? 0 : IBV_SEND_SIGNALED,
			.wr.ud = { s->ah[below(2)], qpn, QKEY },
		};
	}
	post(s, wr);
}

static void send_claims(struct sender *s, uint32_t qpn, const union ibv_gid *claimed)
{
	static const uint8_t unknown[] = { 0x12, 0x34, 0, 0, 0, 0, 0, 0 };
	uint8_t address[CLAIM_ADDRESS_BYTES], *p = s->memory[0];

	put_address(address, claimed, 0x234567);
	for (unsigned kind = 0; kind <= CLAIM_KINDS; kind++) {
		struct ibv_sge sge = { (uintptr_t)p, sizeof(unknown), s->mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge,
			                  .num_sge = 1,
			                  .opcode = IBV_WR_SEND,
			                  .send_flags = IBV_SEND_SIGNALED,
			                  .wr.ud = { s->ah[0], qpn, QKEY } };

		if (kind < CLAIM_KINDS)
			sge.length = claim(p, kind, 2, address);
		else
			memcpy(p, unknown, sizeof(unknown));
		post(s, &wr);
	}
}

int main(int argc, char **argv)
{
	static struct sender s;
	union ibv_gid gid, victim, us;
	unsigned long sent = 0;
	time_t end;

	CHECK(argc == 5 || argc == 6);
	CHECK(inet_pton(AF_INET6, argv[3], gid.raw) == 1);
	CHECK(inet_pton(AF_INET6, argv[4], victim.raw) == 1);
	start(&s, (uint16_t)atoi(argv[1]), &gid);
	if (argc == 5) {
		send_claims(&s, (uint32_t)atoi(argv[2]), &victim);
		return 0;
	}
	CHECK(!ibv_query_gid(s.context, 1, 0, &us));
	end = time(NULL) + atoi(argv[5]);
	do {
		send_batch(&s, (uint32_t)atoi(argv[2]), &victim, &us);
		sent += BATCH;
	} while (sent < LEAST || time(NULL) < end);
	printf("sent %lu\n", sent);
	return 0;
}
