/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that sleeps on a completion channel is woken, however many sleep and however few
 * descriptors the sender may have; and how many of its descriptors that takes.
 */
#include "lab.h"

#include <sys/epoll.h>

#define THREADS   300
#define WATCHED   1300
#define SLEEPERS  (THREADS + WATCHED) /* on completion channels */
#define LISTENERS 400                 /* on channels of rdma_cm */
#define SOME      100

struct sleeper {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void set_limit(rlim_t n)
{
	struct rlimit r;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	r.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
}

/* Without an address: the message is its GRH and nothing. */
static void post_and_arm(struct sleeper *s, struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, LAB_GRH, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(s->qp, &wr, &bad), 0);
	assert_int_equal(ibv_req_notify_cq(s->cq, 0), 0);
}

static void make_sleeper(struct sleeper *s, struct ibv_pd *pd, struct ibv_mr *mr)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
		                         .cap = { .max_recv_wr = 1, .max_recv_sge = 1 } };

	assert_non_null(s->channel = ibv_create_comp_channel(pd->context));
	assert_non_null(s->cq = ibv_create_cq(pd->context, 1, s, s->channel, 0));
	init.send_cq = init.recv_cq = s->cq;
	assert_non_null(s->qp = ibv_create_qp(pd, &init));
	lab_start(s->qp, LAB_QKEY);
	post_and_arm(s, mr);
}

static void end_sleeper(struct sleeper *s)
{
	assert_int_equal(ibv_destroy_qp(s->qp), 0);
	assert_int_equal(ibv_destroy_cq(s->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(s->channel), 0);
}

static void get_event(struct sleeper *s)
{
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *its;

	assert_int_equal(ibv_get_cq_event(s->channel, &cq, &its), 0);
	assert_ptr_equal(its, s);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* ---- the sender: a child with a limit of its own ---- */

struct order {
	uint16_t lid;
	unsigned n;
	uint32_t qpn[SLEEPERS];
};

static void read_all(int fd, void *to, size_t bytes)
{
	for (ssize_t n; bytes; bytes -= (size_t)n, to = (char *)to + n) {
		n = read(fd, to, bytes);
		if (n <= 0)
			exit(2);
	}
}

static void write_all(int fd, const void *from, size_t bytes)
{
	for (ssize_t n; bytes; bytes -= (size_t)n, from = (const char *)from + n) {
		n = write(fd, from, bytes);
		assert_true(n > 0);
	}
}

/* Returns how many descriptors it has more than before. */
static unsigned send_to_all(rlim_t limit, const struct order *o)
{
	struct lab_end *e = lab_end(1);
	struct ibv_ah_attr attr = { .dlid = o->lid, .port_num = 1 };
	struct ibv_ah *ah = lab_ah(e->pd, &attr);
	unsigned before;

	set_limit(limit);
	before = harness_descriptors();
	for (unsigned i = 0; i < o->n; i++)
		lab_send(e, ah, o->qpn[i], "", 0);
	return harness_descriptors() - before;
}

struct sender {
	pid_t pid;
	int to, from;
};

static struct sender start_sender(rlim_t limit)
{
	struct sender s;
	int to[2], from[2];

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	s.pid = fork();
	assert_true(s.pid >= 0);
	if (!s.pid) {
		struct order *o = malloc(sizeof(*o));
		unsigned more;

		close(to[1]);
		read_all(to[0], o, sizeof(*o));
		more = send_to_all(limit, o);
		write_all(from[1], &more, sizeof(more));
		read_all(to[0], o, 1); /* until the parent has gone on */
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	s.to = to[1];
	s.from = from[0];
	return s;
}

static unsigned run_sender(const struct sender *s, const struct sleeper *all, unsigned n)
{
	struct order *o = calloc(1, sizeof(*o));
	struct ibv_port_attr port;
	unsigned more;

	assert_non_null(o);
	assert_int_equal(ibv_query_port(all[0].qp->context, 1, &port), 0);
	o->lid = port.lid;
	o->n = n;
	for (unsigned i = 0; i < n; i++)
		o->qpn[i] = all[i].qp->qp_num;
	write_all(s->to, o, sizeof(*o));
	free(o);
	read_all(s->from, &more, sizeof(more));
	return more;
}

static void end_sender(const struct sender *s)
{
	close(s->to);
	close(s->from);
	kill(s->pid, SIGKILL);
	assert_int_equal(waitpid(s->pid, NULL, 0), s->pid);
}

/* ---- a crowd ---- */

static void *sleep_for_event(void *arg)
{
	get_event(arg);
	return NULL;
}

static void await_watched(int epoll, struct sleeper *all, unsigned n)
{
	struct epoll_event e[64];

	while (n) {
		int got = epoll_wait(epoll, e, 64, LAB_SECONDS * 1000);

		if (got <= 0)
			fail_msg("%u sleepers are not woken", n);
		for (int i = 0; i < got; i++) {
			get_event(&all[e[i].data.u32]);
			epoll_ctl(epoll, EPOLL_CTL_DEL, all[e[i].data.u32].channel->fd, NULL);
		}
		n -= (unsigned)got;
	}
}

static void join_thread(pthread_t thread)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += LAB_SECONDS;
	assert_int_equal(pthread_timedjoin_np(thread, NULL, &end), 0);
}

static void sleep_and_be_woken(rlim_t limit, unsigned most)
{
	static struct sleeper all[SLEEPERS];
	struct sender s = start_sender(limit); /* before this process has a connection */
	struct ibv_context *context = lab_open(2);
	struct ibv_pd *pd = lab_pd(context);
	static char memory[LAB_GRH];
	struct ibv_mr *mr = lab_mr(pd, memory, sizeof(memory));
	int epoll = epoll_create1(0);
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < SLEEPERS; i++)
		make_sleeper(&all[i], pd, mr);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, sleep_for_event, &all[i]), 0);
	for (unsigned i = THREADS; i < SLEEPERS; i++) {
		struct epoll_event e = { .events = EPOLLIN, .data.u32 = i };

		assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].channel->fd, &e), 0);
	}
	assert_in_range(run_sender(&s, all, SLEEPERS), 0, most);
	await_watched(epoll, all, WATCHED);
	for (unsigned i = 0; i < THREADS; i++)
		join_thread(thread[i]);
	for (unsigned i = 0; i < SLEEPERS; i++)
		end_sleeper(&all[i]);
	close(epoll);
	end_sender(&s);
}

/* A program that may have few descriptors has all of them for itself. */
LAB_CASE(a_crowd_is_woken_by_a_small_program)
{
	sleep_and_be_woken(64, 0);
}

LAB_CASE(a_crowd_is_woken_by_an_ordinary_program)
{
	sleep_and_be_woken(1024, 1024 / 16);
}

/* Each on a channel of its own, as programs have that use one identifier. */
LAB_CASE(a_crowd_on_channels_of_rdma_cm_is_woken)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct pollfd p[LISTENERS] = { { 0 } };
	struct rdma_cm_id *id[LISTENERS];

	inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
	for (int i = 0; i < LISTENERS; i++) {
		struct rdma_event_channel *channel = rdma_create_event_channel();

		assert_non_null(channel);
		assert_int_equal(rdma_create_id(channel, &id[i], NULL, RDMA_PS_UDP), 0);
		p[i] = (struct pollfd){ .fd = channel->fd, .events = POLLIN };
		assert_int_equal(poll(&p[i], 1, 0), 0);
		assert_int_equal(rdma_resolve_addr(id[i], NULL, (struct sockaddr *)&to, 1000), 0);
	}
	for (int i = 0; i < LISTENERS; i++) {
		struct rdma_event_channel *channel = id[i]->channel;

		lab_await(p[i].fd);
		assert_int_equal(rdma_destroy_id(id[i]), 0);
		assert_int_equal(poll(&p[i], 1, 0), 0); /* its event went with it */
		rdma_destroy_event_channel(channel);
	}
}

/* ---- descriptors ---- */

/* A process that sleeps, is woken, and dies as it is. */
static pid_t start_mortal(int *qpn)
{
	int tell[2];
	pid_t pid;

	assert_int_equal(pipe(tell), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		static char memory[LAB_GRH];
		struct ibv_pd *pd = lab_pd(lab_open(2));
		struct sleeper s;

		make_sleeper(&s, pd, lab_mr(pd, memory, sizeof(memory)));
		write_all(tell[1], &s.qp->qp_num, sizeof(s.qp->qp_num));
		get_event(&s);
		_exit(0);
	}
	close(tell[1]);
	*qpn = tell[0];
	return pid;
}

static void wake_mortals(struct lab_end *e, struct ibv_ah *ah, unsigned n)
{
	pid_t pid[SOME];
	int qpn[SOME];

	for (unsigned i = 0; i < n; i++)
		pid[i] = start_mortal(&qpn[i]);
	for (unsigned i = 0; i < n; i++) {
		uint32_t number;

		read_all(qpn[i], &number, sizeof(number));
		lab_send(e, ah, number, "", 0);
		close(qpn[i]);
	}
	for (unsigned i = 0; i < n; i++)
		harness_expect_success(pid[i]);
}

LAB_CASE(own_channels_take_no_further_descriptors)
{
	static struct sleeper all[SOME];
	static char memory[LAB_GRH];
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = lab_mr(e->pd, memory, sizeof(memory));
	struct ibv_ah *ah = lab_ah_to(e, e);
	unsigned before = harness_descriptors();

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < SOME; i++)
			make_sleeper(&all[i], e->pd, mr);
		for (unsigned i = 0; i < SOME; i++)
			lab_send(e, ah, all[i].qp->qp_num, "", 0);
		assert_int_equal(harness_descriptors(), before + SOME);
		for (unsigned i = 0; i < SOME; i++) {
			if (round)
				get_event(&all[i]);
			end_sleeper(&all[i]);
		}
		assert_int_equal(harness_descriptors(), before);
	}
}

LAB_CASE(descriptors_of_channels_that_are_gone_are_closed)
{
	struct lab_end *e = lab_end(1), *to = lab_end(2);
	struct ibv_ah *ah = lab_ah_to(e, to);
	unsigned before = harness_descriptors(), kept;

	wake_mortals(e, ah, 20);
	/* the daemon hears of a death by and by */
	for (unsigned tries = 0; (kept = harness_descriptors() - before) > 1; tries++) {
		assert_in_range(tries, 0, 1000);
		wake_mortals(e, ah, 1);
	}
}

/* ---- events that go with their queue ---- */

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Of @n queues on one channel, each with an unread event, those of odd numbers are destroyed. */
LAB_CASE(a_destroyed_queue_takes_its_unread_events_along)
{
	struct lab_end *e = lab_end(1);
	struct ibv_comp_channel *channel = lab_channel(e->context);
	struct ibv_cq *cq[8], *got;
	struct ibv_qp *qp[8];
	struct lab_request r;
	void *its;

	lab_set_nonblocking(channel->fd);
	for (int i = 0; i < 8; i++) {
		struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
			                         .cap = { .max_send_wr = 4, .max_send_sge = 1 } };
		struct ibv_send_wr *bad;

		assert_non_null(cq[i] = ibv_create_cq(e->context, 8, NULL, channel, 0));
		init.send_cq = init.recv_cq = cq[i];
		assert_non_null(qp[i] = ibv_create_qp(e->pd, &init));
		lab_start(qp[i], LAB_QKEY);
		lab_request(e, &r, lab_ah_to(e, e), e->qp->qp_num, "", 0);
		for (int k = 0; k < 2; k++) { /* two events of each */
			assert_int_equal(ibv_req_notify_cq(cq[i], 0), 0);
			assert_int_equal(ibv_post_send(qp[i], &r.wr, &bad), 0);
		}
	}
	for (int i = 1; i < 8; i += 2) {
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
	}
	for (int left = 8; left; left--) {
		assert_true(is_readable(channel->fd));
		assert_int_equal(ibv_get_cq_event(channel, &got, &its), 0);
		assert_true(got == cq[0] || got == cq[2] || got == cq[4] || got == cq[6]);
		ibv_ack_cq_events(got, 1);
	}
	assert_false(is_readable(channel->fd));
	assert_int_equal(ibv_get_cq_event(channel, &got, &its), -1);
	assert_int_equal(errno, EAGAIN);
	for (int i = 0; i < 8; i += 2) {
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
	}
	assert_false(is_readable(channel->fd));
}

int main(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return 1;
	r.rlim_cur = r.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &r) ? 1 : harness_run(NULL, NULL);
}
