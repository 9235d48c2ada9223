/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counters of ports while there are so many flows that the daemon collects them in slices: a reader
 * waits, and reads all that was sent before. And a group of so many flows that they follow its
 * members in slices: a process that attaches or detaches waits for all of them, or dies.
 */
#include "lab.h"

#define QPS     10
#define FLOWS   4000 /* of each: to as many LIDs */
#define SENT    3
#define CROWD   9000 /* flows to a group; from 8,193 on they follow in slices */
#define DEATHS  40
#define SLS     8 /* flows of a queue pair to one destination */
#define SENDERS (CROWD / SLS)
#define ADDRESS "239.1.1.1"

/* Makes flows from @e to LIDs at which there is nobody. */
static void make_flows(struct lab_end *e)
{
	for (unsigned i = 0; i < FLOWS; i++) {
		struct ibv_ah_attr attr = { .dlid = (uint16_t)(0x1000 + i), .port_num = 1 };
		struct ibv_ah *ah = ibv_create_ah(e->pd, &attr);

		assert_non_null(ah);
		lab_send(e, ah, 1, NULL, 4);
		assert_int_equal(ibv_destroy_ah(ah), 0);
	}
}

/* The number that @command writes. */
static unsigned long long number_of(const char *command)
{
	FILE *f = popen(command, "r");
	unsigned long long n = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llu", &n), 1);
	assert_int_equal(pclose(f), 0);
	return n;
}

static unsigned long long sysfs_received(void)
{
	return number_of("umbel exec h2 -- cat "
	                 "/sys/class/infiniband/umbel_h2_0/ports/1/counters/port_rcv_packets");
}

static unsigned long long pma_received(void)
{
	return number_of("umbel exec h1 -- perfquery -x $(umbel exec h2 -- cat "
	                 "/sys/class/infiniband/umbel_h2_0/ports/1/lid) 1 | "
	                 "sed -n 's/^PortRcvPkts:\\.*//p'");
}

LAB_CASE(all_that_was_sent_is_counted)
{
	struct lab_end *to = lab_end(2), *from = lab_end(1);
	struct ibv_ah *ah = lab_ah_to(from, to);
	uint64_t before[3];

	for (unsigned i = 0; i < QPS; i++)
		make_flows(lab_end_with(&(struct lab_options){ .host = 1, .neighbour = from }));
	before[0] = lab_counter(2, "rcv_pkts");
	before[1] = sysfs_received();
	before[2] = pma_received();
	for (unsigned i = 1; i <= SENT; i++) {
		lab_send(from, ah, to->qp->qp_num, NULL, 4);
		assert_int_equal(pma_received() - before[2], i);
		assert_int_equal(sysfs_received() - before[1], i);
		assert_int_equal(lab_counter(2, "rcv_pkts") - before[0], i);
	}
	assert_in_range(lab_counter(1, "xmit_pkts"), QPS * FLOWS, UINT32_MAX);
}

struct crowd {
	struct ibv_qp *qp[SENDERS];
};

static void end_crowd(void *object)
{
	struct crowd *c = object;

	for (unsigned i = 0; i < SENDERS; i++)
		assert_int_equal(ibv_destroy_qp(c->qp[i]), 0);
	free(c);
}

static void send_by_all_sls(struct lab_end *e, struct ibv_ah_attr attr)
{
	for (attr.sl = 0; attr.sl < SLS; attr.sl++) {
		struct ibv_ah *ah = ibv_create_ah(e->pd, &attr);

		assert_non_null(ah);
		lab_send(e, ah, 0xFFFFFF, NULL, 4);
		assert_int_equal(ibv_destroy_ah(ah), 0);
	}
}

/* Makes a crowd of flows to the group, to which somebody listens: else they would not be kept. An
 * end beside them. */
static struct lab_end *crowd_to(const struct lab_group *g)
{
	struct lab_end *listens = lab_end(3), *from = lab_end(1), each = *from;
	struct ibv_qp_init_attr init = { .send_cq = from->send_cq,
		                         .recv_cq = from->cq,
		                         .qp_type = IBV_QPT_UD,
		                         .cap = { 1, 1, 1, 1, 0 } };
	struct lab_group *joined = lab_join(3, ADDRESS);
	struct crowd *c = calloc(1, sizeof(*c));

	lab_attach(listens->qp, &joined->mgid, joined->mlid);
	for (unsigned i = 0; i < SENDERS; i++) {
		assert_non_null(each.qp = c->qp[i] = ibv_create_qp(from->pd, &init));
		lab_start(each.qp, LAB_QKEY);
		send_by_all_sls(&each, g->attr);
	}
	lab_undo(end_crowd, c);
	return from;
}

LAB_CASE(who_is_attached_receives_at_once)
{
	struct lab_group *of_sender = lab_join(1, ADDRESS), *g = lab_join(2, ADDRESS);
	struct lab_end *from = crowd_to(of_sender), *to = lab_end(2);
	struct ibv_ah *ah = lab_ah_group(from, of_sender);

	for (unsigned i = 0; i < 5; i++) {
		lab_post(to, 2);
		lab_attach(to->qp, &g->mgid, g->mlid);
		lab_send_text(from, ah, 0xFFFFFF, "attached");
		lab_expect_text(to, "attached");
		lab_detach(to->qp, &g->mgid, g->mlid);
		lab_send_text(from, ah, 0xFFFFFF, "detached");
		lab_attach(to->qp, &g->mgid, g->mlid);
		lab_send_text(from, ah, 0xFFFFFF, "again");
		lab_expect_text(to, "again");
		lab_detach(to->qp, &g->mgid, g->mlid);
	}
}

/* Attaches and detaches until it is killed. */
static void change_for_ever(const struct lab_group *g)
{
	struct lab_end *e = lab_end(2);

	for (;;) {
		lab_attach(e->qp, &g->mgid, g->mlid);
		lab_detach(e->qp, &g->mgid, g->mlid);
	}
}

/* Wherever its request is: the daemon replies to nobody, and serves the others. */
LAB_CASE(who_waits_may_die)
{
	struct lab_group *of_sender = lab_join(1, ADDRESS), *g = lab_join(2, ADDRESS);
	struct lab_end *from = crowd_to(of_sender), *to = lab_end(2);
	struct ibv_ah *ah = lab_ah_group(from, of_sender);

	for (unsigned i = 0; i < DEATHS; i++) {
		pid_t child = fork();

		if (!child) {
			change_for_ever(g);
			_exit(1);
		}
		usleep(5000 + i * 937 % 9000);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		lab_post(to, 1);
		lab_attach(to->qp, &g->mgid, g->mlid);
		lab_send_text(from, ah, 0xFFFFFF, "goes on");
		lab_expect_text(to, "goes on");
		lab_detach(to->qp, &g->mgid, g->mlid);
	}
}
