/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UD queue pairs that share a receive queue. On h2 there are MEMBERS of a group; its sender is on
 * h1, so each message takes MEMBERS receives at once.
 */
#include "lab.h"

#include "base/pause.h"

#define GROUP    "239.5.0.9"
#define MEMBERS  4
#define POLLERS  2   /* threads, with a completion queue each */
#define WINDOW   16  /* messages that not all members have received */
#define RECEIVES 128 /* slots; more than WINDOW * MEMBERS */
#define ROUNDS   3
#define LARGEST  16384
#define BYTES    (LAB_GRH + sizeof(uint32_t))

struct fixture {
	struct lab_end *from, *to; /* whose own queue pair on h2 is not used */
	struct lab_group *group;
	struct ibv_ah *ah;
	struct ibv_srq *srq;
	struct ibv_cq *cq[POLLERS];
	struct ibv_qp *member[MEMBERS];
};

static void undo_srq(void *srq)
{
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void make(struct fixture *f)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = RECEIVES, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { .max_send_wr = 1 } };

	f->from = lab_end(1);
	f->to = lab_end(2);
	f->group = lab_join(2, GROUP);
	f->ah = lab_ah_group(f->from, f->group);
	assert_non_null(f->srq = ibv_create_srq(f->to->pd, &srq));
	lab_undo(undo_srq, f->srq);
	for (int i = 0; i < POLLERS; i++)
		f->cq[i] = lab_cq(f->to->context, MEMBERS * RECEIVES, NULL);
	for (int i = 0; i < MEMBERS; i++) {
		init.srq = f->srq;
		init.send_cq = init.recv_cq = f->cq[i % POLLERS];
		f->member[i] = lab_qp(f->to->pd, &init);
		lab_start(f->member[i], LAB_QKEY);
		lab_attach(f->member[i], &f->group->mgid, f->group->mlid);
	}
}

/* Posts the receive in slot @i. */
static int post(const struct fixture *f, uint64_t i)
{
	struct ibv_sge sge = { (uintptr_t)f->to->slot + i * BYTES, BYTES, f->to->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(f->srq, &wr, &bad);
}

static uint32_t number_in(const struct fixture *f, uint64_t slot)
{
	uint32_t n;

	memcpy(&n, f->to->slot + slot * BYTES + LAB_GRH, sizeof(n));
	return n;
}

static void send_number(struct fixture *f, uint32_t n)
{
	lab_send(f->from, f->ah, LAB_MCAST, &n, sizeof(n));
}

/* ---- while it grows ---- */

static struct {
	_Atomic uint32_t got; /* by all members */
	_Atomic uint32_t wrong;
	_Atomic bool over;
	uint32_t next[MEMBERS]; /* number of the message that a member gets next */
} seen;

static int member_of(const struct fixture *f, uint32_t qpn)
{
	for (int i = 0; i < MEMBERS; i++)
		if (f->member[i]->qp_num == qpn)
			return i;
	return -1;
}

static void take(const struct fixture *f, const struct ibv_wc *wc)
{
	int i = wc->status ? -1 : member_of(f, wc->qp_num);

	if (i < 0 || number_in(f, wc->wr_id) != seen.next[i]++)
		seen.wrong++;
	if (post(f, wc->wr_id))
		seen.wrong++;
	seen.got++;
}

struct poller {
	struct fixture *f;
	struct ibv_cq *cq;
};

static void *poll_members(void *arg)
{
	const struct poller *p = arg;
	struct ibv_wc wc[8];
	bool over;
	int n;

	do {
		over = seen.over; /* all that was sent comes before */
		n = ibv_poll_cq(p->cq, 8, wc);
		for (int i = 0; i < n; i++)
			take(p->f, &wc[i]);
		if (n < 0)
			seen.wrong++;
	} while (n > 0 || !over);
	return NULL;
}

/* Makes it larger, again and again, each time that some messages have come. */
static void *grow(void *arg)
{
	struct fixture *f = arg;
	uint32_t at = 0;

	for (uint32_t size = 2 * RECEIVES; size <= LARGEST && !seen.over; size *= 2) {
		struct ibv_srq_attr attr = { .max_wr = size };
		struct base_pause pause = { 0 };

		while (seen.got < at && !seen.over)
			base_pause(&pause);
		if (ibv_modify_srq(f->srq, &attr, IBV_SRQ_MAX_WR))
			seen.wrong++;
		at = seen.got + WINDOW * MEMBERS;
	}
	return NULL;
}

/* False: messages are missing, and nothing more comes. */
static bool may_send(uint32_t sent)
{
	time_t end = time(NULL) + LAB_SECONDS;

	while (sent - seen.got / MEMBERS >= WINDOW && !seen.wrong)
		if (time(NULL) > end)
			return false;
	return !seen.wrong;
}

static void send_while_it_grows(void)
{
	pthread_t poller[POLLERS], grower;
	struct poller p[POLLERS];
	struct fixture f;
	uint32_t sent = 0;

	memset(&seen, 0, sizeof(seen));
	make(&f);
	for (uint64_t i = 0; i < RECEIVES; i++)
		assert_int_equal(post(&f, i), 0);
	for (int i = 0; i < POLLERS; i++) {
		p[i] = (struct poller){ .f = &f, .cq = f.cq[i] };
		assert_int_equal(pthread_create(&poller[i], NULL, poll_members, &p[i]), 0);
	}
	assert_int_equal(pthread_create(&grower, NULL, grow, &f), 0);
	while (sent < 4000 && may_send(sent))
		send_number(&f, sent++);
	seen.over = true;
	pthread_join(grower, NULL);
	for (int i = 0; i < POLLERS; i++)
		pthread_join(poller[i], NULL);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(sent, 4000);
	assert_int_equal(seen.got, sent * MEMBERS);
}

LAB_CASE(nothing_is_lost_while_it_grows)
{
	uint64_t lost = lab_counter(2, "no_receive");

	for (int i = 0; i < ROUNDS; i++) {
		send_while_it_grows();
		lab_clean_up(state);
	}
	assert_int_equal(lab_counter(2, "no_receive"), lost);
}

/* ---- without receives ---- */

/* Expects what files under /sys say. */
static void expect_out_of_buffer(uint64_t lost)
{
#ifdef __SANITIZE_THREAD__ /* its runtime cannot be loaded into Debian's programs */
	(void)lost;
#else
	FILE *f = popen("umbel exec h2 -- cat "
	                "/sys/class/infiniband/umbel_h2_0/ports/1/hw_counters/out_of_buffer",
	                "r");
	unsigned long n;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &n), 1);
	assert_int_equal(pclose(f), 0);
	assert_int_equal(n, lost);
#endif
}

static unsigned poll_all(struct fixture *f)
{
	unsigned n = 0;

	for (int i = 0; i < POLLERS; i++) {
		struct ibv_wc wc;

		while (ibv_poll_cq(f->cq[i], 1, &wc) > 0)
			n += wc.status == IBV_WC_SUCCESS;
	}
	return n;
}

LAB_CASE(what_finds_no_receive_is_counted)
{
	uint64_t lost = lab_counter(2, "no_receive"), lost_at_1 = lab_counter(1, "no_receive");
	struct fixture f;

	make(&f);
	for (uint64_t i = 0; i < MEMBERS + 1; i++)
		assert_int_equal(post(&f, i), 0);
	send_number(&f, 1);
	send_number(&f, 2);
	assert_int_equal(poll_all(&f), MEMBERS + 1);
	assert_int_equal(lab_counter(2, "no_receive"), lost + MEMBERS - 1);
	expect_out_of_buffer(lost + MEMBERS - 1);
	send_number(&f, 3);
	assert_int_equal(poll_all(&f), 0);
	for (uint64_t i = 0; i < MEMBERS; i++)
		assert_int_equal(post(&f, i), 0);
	send_number(&f, 4);
	assert_int_equal(poll_all(&f), MEMBERS);
	assert_int_equal(lab_counter(2, "no_receive"), lost + 2 * MEMBERS - 1);
	expect_out_of_buffer(lost + 2 * MEMBERS - 1);
	assert_int_equal(lab_counter(1, "no_receive"), lost_at_1);
}

/* The completion queue has room for all receives; that more has arrived does not overrun it, though
 * it counts what arrives, as it is too small for the sends. */
LAB_CASE(what_finds_no_receive_does_not_overrun)
{
	struct fixture f;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { .max_send_wr = 256 } };
	struct ibv_qp *qp;
	struct ibv_wc wc;

	make(&f);
	init.srq = f.srq;
	init.send_cq = init.recv_cq = lab_cq(f.to->context, 16, NULL);
	qp = lab_qp(f.to->pd, &init);
	lab_start(qp, LAB_QKEY);
	for (uint64_t round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 16; i++)
			assert_int_equal(post(&f, i), 0);
		for (uint32_t i = 0; i < 40; i++)
			lab_send(f.from, lab_ah_to(f.from, f.to), qp->qp_num, &i, sizeof(i));
		for (int i = 0; i < 16; i++)
			lab_poll(init.recv_cq, 1, &wc);
		lab_quiet(init.recv_cq);
	}
}

/* ---- while it is attached ---- */

/* It is attached, so it cannot be destroyed: it goes on as if nobody had asked. Messages that had
 * arrived are there, too. */
LAB_CASE(a_refused_destruction_changes_nothing)
{
	struct fixture f;

	make(&f);
	for (uint64_t i = 0; i < 3 * MEMBERS; i++)
		assert_int_equal(post(&f, i), 0);
	send_number(&f, 1);
	for (int i = 0; i < MEMBERS; i++)
		assert_int_equal(ibv_destroy_qp(f.member[i]), EBUSY);
	assert_int_equal(poll_all(&f), MEMBERS);
	send_number(&f, 2);
	assert_int_equal(poll_all(&f), MEMBERS);
	for (int i = 0; i < MEMBERS; i++)
		assert_int_equal(ibv_destroy_qp(f.member[i]), EBUSY);
	send_number(&f, 3);
	assert_int_equal(poll_all(&f), MEMBERS);
}

/* ---- without memory ---- */

LAB_CASE(what_came_before_its_region_went_lies_there)
{
	struct fixture f;
	struct ibv_mr *mr;
	char *memory = calloc(2 * MEMBERS, BYTES);
	uint32_t n;

	assert_non_null(memory);
	lab_undo(free, memory);
	make(&f);
	assert_non_null(
	        mr = ibv_reg_mr(f.to->pd, memory, 2 * MEMBERS * BYTES, IBV_ACCESS_LOCAL_WRITE));
	for (uint64_t i = 0; i < 2 * MEMBERS; i++) {
		struct ibv_sge sge = { (uintptr_t)memory + i * BYTES, BYTES, mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		assert_int_equal(ibv_post_srq_recv(f.srq, &wr, &bad), 0);
	}
	send_number(&f, 7);
	send_number(&f, 7);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	for (unsigned i = 0; i < 2 * MEMBERS; i++) {
		memcpy(&n, memory + i * BYTES + LAB_GRH, sizeof(n));
		assert_int_equal(n, 7);
	}
	assert_int_equal(poll_all(&f), 2 * MEMBERS);
}
