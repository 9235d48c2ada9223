/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd QPS SENDERS: a crowd of queue pairs on all hosts. Each of SENDERS of them, spread over the
 * crowd, sends to all of them; and all that they send arrives. CI has a small crowd; the largest is
 * umbel run --hosts 4 -- crowd 65000 200 (or, all to all, 65000 65000: that takes hours).
 */
#include "posix.h"
#include "attributes.h"

#include <infiniband/verbs.h>

#define QKEY     0x11
#define RECEIVES 4
#define SIGNAL   16  /* of so many requests one completes */
#define PER_CQ   512 /* queue pairs */
#define HOSTS    16

#define CHECK(what)                                                                    \
	do {                                                                           \
		if (!(what)) {                                                         \
			fprintf(stderr, "%s:%d: %s: %m\n", __FILE__, __LINE__, #what); \
			exit(1);                                                       \
		}                                                                      \
	} while (0)

struct host {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *send_cq;
	struct ibv_port_attr port;
	struct ibv_ah *ah[HOSTS];
};

struct crowd {
	struct host host[HOSTS];
	int n_hosts;
	unsigned n, n_cqs;
	struct ibv_qp **qp;
	struct ibv_cq **cq;
	unsigned *by_index; /* number in the crowd, by the low bits of the QP number */
	char memory[64];
};

static void open_hosts(struct crowd *c)
{
	struct ibv_device **list = ibv_get_device_list(&c->n_hosts);

	CHECK(list && c->n_hosts > 0);
	if (c->n_hosts > HOSTS)
		c->n_hosts = HOSTS;
	for (int i = 0; i < c->n_hosts; i++) {
		struct host *h = &c->host[i];

		CHECK((h->context = ibv_open_device(list[i])));
		CHECK((h->pd = ibv_alloc_pd(h->context)));
		CHECK((h->mr = ibv_reg_mr(h->pd, c->memory, sizeof(c->memory),
		                          IBV_ACCESS_LOCAL_WRITE)));
		CHECK((h->send_cq = ibv_create_cq(h->context, 64, NULL, NULL, 0)));
		CHECK(!ibv_query_port(h->context, 1, &h->port));
	}
	for (int i = 0; i < c->n_hosts; i++)
		for (int k = 0; k < c->n_hosts; k++) {
			struct ibv_ah_attr attr = { .port_num = 1, .dlid = c->host[k].port.lid };

			CHECK((c->host[i].ah[k] = ibv_create_ah(c->host[i].pd, &attr)));
		}
	ibv_free_device_list(list);
}

static void to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	CHECK(!ibv_modify_qp(qp, &attr,
	                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

/* The queue pairs are on the hosts in turn, those with one CQ on one host. */
static int host_of(const struct crowd *c, unsigned i)
{
	return (int)(i / PER_CQ) % c->n_hosts;
}

static void post_receive(const struct crowd *c, unsigned i)
{
	struct ibv_sge sge = { (uintptr_t)c->memory, sizeof(c->memory),
		               c->host[host_of(c, i)].mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK(!ibv_post_recv(c->qp[i], &wr, &bad));
}

static void gather_crowd(struct crowd *c, unsigned n)
{
	c->n = n;
	c->n_cqs = (n + PER_CQ - 1) / PER_CQ;
	c->qp = calloc(n, sizeof(struct ibv_qp *));
	c->cq = calloc(c->n_cqs, sizeof(struct ibv_cq *));
	c->by_index = calloc(65536, sizeof(*c->by_index));
	CHECK(c->qp && c->cq && c->by_index);
	for (unsigned i = 0; i < c->n_cqs; i++)
		CHECK((c->cq[i] = ibv_create_cq(c->host[host_of(c, i * PER_CQ)].context,
		                                PER_CQ * RECEIVES, NULL, NULL, 0)));
	for (unsigned i = 0; i < n; i++) {
		struct host *h = &c->host[host_of(c, i)];
		struct ibv_qp_init_attr init = { .send_cq = h->send_cq,
			                         .recv_cq = c->cq[i / PER_CQ],
			                         .cap = { 2 * SIGNAL, RECEIVES, 1, 1, 8 },
			                         .qp_type = IBV_QPT_UD };

		CHECK((c->qp[i] = ibv_create_qp(h->pd, &init)));
		to_rts(c->qp[i]);
		c->by_index[c->qp[i]->qp_num & 0xFFFF] = i;
		post_receive(c, i);
	}
}

/* Number @from sends its number to all. */
static void send_to_all(struct crowd *c, unsigned from)
{
	struct host *h = &c->host[host_of(c, from)];
	struct ibv_sge sge = { (uintptr_t)&from, sizeof(from), 0 };

	for (unsigned i = 0; i < c->n; i++) {
		struct ibv_send_wr wr = request_of(&sge, IBV_WR_SEND, IBV_SEND_INLINE), *bad;
		struct ibv_wc wc;

		wr.wr.ud.ah = h->ah[host_of(c, i)];
		wr.wr.ud.remote_qpn = c->qp[i]->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
		if (i % SIGNAL == SIGNAL - 1)
			wr.send_flags |= IBV_SEND_SIGNALED;
		CHECK(!ibv_post_send(c->qp[from], &wr, &bad));
		if (wr.send_flags & IBV_SEND_SIGNALED)
			CHECK(ibv_poll_cq(h->send_cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	}
}

/* Each of the crowd has one message from @from. */
static void receive_all(struct crowd *c, unsigned from)
{
	for (unsigned q = 0; q < c->n_cqs; q++) {
		unsigned left = q == c->n_cqs - 1 ? c->n - q * PER_CQ : PER_CQ;
		struct ibv_wc wc[64];
		int n;

		for (; left; left -= (unsigned)n) {
			n = ibv_poll_cq(c->cq[q], 64, wc);
			CHECK(n > 0); /* it was there when the sender's call returned */
			for (int i = 0; i < n; i++) {
				CHECK(wc[i].status == IBV_WC_SUCCESS);
				CHECK(wc[i].src_qp == c->qp[from]->qp_num);
				post_receive(c, c->by_index[wc[i].qp_num & 0xFFFF]);
			}
		}
		CHECK(ibv_poll_cq(c->cq[q], 1, wc) == 0);
	}
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 2000;
	unsigned senders = argc > 2 ? (unsigned)atoi(argv[2]) : n;
	static struct crowd c;

	open_hosts(&c);
	gather_crowd(&c, n);
	for (unsigned i = 0; i < senders; i++) {
		unsigned from = (unsigned)((uint64_t)i * n / senders);

		send_to_all(&c, from);
		receive_all(&c, from);
	}
	for (unsigned i = 0; i < n; i++)
		CHECK(!ibv_destroy_qp(c.qp[i]));
	printf("%u queue pairs, %u of them sent to all: %llu messages\n", n, senders,
	       (unsigned long long)n * senders);
	free(c.qp);
	free(c.cq);
	free(c.by_index);
	return 0;
}
