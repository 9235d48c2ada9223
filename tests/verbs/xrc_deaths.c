/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XRC with processes that are killed at any instruction: a requester, the owner or a user of a
 * target, the owner of a shared receive queue. The others go on, or hear of it; and what ordinary
 * shared receive queues have is free again, too.
 */
#include "xrc_lab.h"

#include "base/pause.h"
#include "attributes.h"

#define ROUNDS 8
#define QUEUES 160 /* times ROUNDS: more rings of the largest size than there is memory for */

/* ---- processes ---- */

enum { SOCKET = 100, DOMAIN_FILE }; /* descriptors of a child: to this process, of the domain */

struct child {
	pid_t pid;
	int socket;
};

static void put(int fd, uint32_t value)
{
	assert_int_equal(send(fd, &value, sizeof(value), MSG_NOSIGNAL), sizeof(value));
}

static uint32_t get(int fd)
{
	uint32_t value;

	assert_int_equal(recv(fd, &value, sizeof(value), MSG_WAITALL), sizeof(value));
	return value;
}

static void undo_child(void *o)
{
	struct child *c = o;

	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->socket);
	free(c);
}

/* This program again, which plays @role. */
static struct child *start(const char *role, int domain)
{
	struct child *c = malloc(sizeof(*c));
	int pair[2];

	assert_non_null(c);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	c->socket = pair[0];
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dup2(pair[1], SOCKET) == SOCKET && dup2(domain, DOMAIN_FILE) == DOMAIN_FILE)
			execl("/proc/self/exe", "xrc_deaths", role, NULL);
		_exit(1);
	}
	close(pair[1]);
	lab_undo(undo_child, c);
	return c;
}

static void kill_child(struct child *c)
{
	lab_forget(c);
	undo_child(c);
}

/* On h1: sends messages of all sizes to the target and the queue whose numbers come, and polls, as
 * long as it lives. */
static void play_requester(void **state)
{
	static const uint32_t sizes[] = { 8, 3000, XRC_LAB_BYTES };
	struct ibv_context *context = lab_open(1), *there = lab_open(2);
	struct ibv_pd *pd = lab_pd(context);
	struct ibv_cq *cq = lab_cq(context, 64, NULL);
	struct ibv_qp *qp = xrc_lab_sender(pd, cq);
	struct ibv_mr *mr;
	struct ibv_sge sge = { .addr = (uintptr_t)xrc_lab_memory(pd, &mr), .lkey = mr->lkey };
	struct ibv_send_wr wr = request_of(&sge, IBV_WR_SEND, IBV_SEND_SIGNALED), *bad;
	struct ibv_wc wc[16];

	(void)state;
	put(SOCKET, qp->qp_num);
	xrc_lab_connect(qp, get(SOCKET), there);
	wr.qp_type.xrc.remote_srqn = get(SOCKET);
	for (unsigned i = 0;; i++) {
		sge.length = sizes[i % LAB_ARRAY(sizes)];
		ibv_post_send(qp, &wr, &bad);
		ibv_poll_cq(cq, 16, wc);
	}
}

/* On h2: a target of the requester on h1 whose number comes. */
static void play_target(void **state)
{
	struct ibv_context *context = lab_open(2), *there = lab_open(1);
	struct ibv_qp *qp = xrc_lab_target(context, xrc_lab_domain(context, DOMAIN_FILE));

	(void)state;
	xrc_lab_connect(qp, get(SOCKET), there);
	put(SOCKET, qp->qp_num);
	pause();
}

/* On h2: a shared receive queue, whose receives are posted again and again. */
static void play_queue(void **state)
{
	struct ibv_context *context = lab_open(2);
	struct xrc_lab_queue q;
	struct ibv_wc wc;

	(void)state;
	xrc_lab_queue(&q, context, xrc_lab_domain(context, DOMAIN_FILE));
	for (unsigned i = 0; i < XRC_LAB_WR; i++)
		assert_int_equal(xrc_lab_receive(&q, i, XRC_LAB_BYTES), 0);
	put(SOCKET, q.number);
	for (;;)
		if (ibv_poll_cq(q.cq, 1, &wc) == 1)
			assert_int_equal(xrc_lab_receive(&q, wc.wr_id, XRC_LAB_BYTES), 0);
}

/* On h2: opens another process's target, too. The target's number comes by the socket. */
static void play_user(void **state)
{
	struct ibv_context *context = lab_open(2);
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
		                                      IBV_QP_OPEN_ATTR_TYPE,
		                         .xrcd = xrc_lab_domain(context, DOMAIN_FILE),
		                         .qp_type = IBV_QPT_XRC_RECV,
		                         .qp_num = get(SOCKET) };

	(void)state;
	put(SOCKET, ibv_open_qp(context, &open) != NULL);
	pause();
}

/* On h2: many ordinary shared receive queues, as large as they can be. Tells how many there are. */
static void play_owner(void **state)
{
	struct ibv_context *context = lab_open(2);
	struct ibv_pd *pd = lab_pd(context);
	struct ibv_srq_init_attr init = { .attr = { .max_sge = 1 } };
	struct ibv_device_attr limits;
	uint32_t n = 0;

	(void)state;
	assert_int_equal(ibv_query_device(context, &limits), 0);
	init.attr.max_wr = (uint32_t)limits.max_srq_wr;
	while (n < QUEUES && ibv_create_srq(pd, &init))
		n++;
	put(SOCKET, n);
	pause();
}

static const struct {
	const char *name;
	void (*play)(void **state);
} roles[] = {
	{ "requester", play_requester }, { "target", play_target }, { "queue", play_queue },
	{ "user", play_user },           { "owner", play_owner },
};

/* ---- here ---- */

struct fixture {
	int file;
	struct ibv_context *from, *to; /* h1, h2 */
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char *memory;
	struct ibv_xrcd *xrcd;
	struct xrc_lab_queue q;
	bool posted[XRC_LAB_WR]; /* by wr_id */
	unsigned n_posted;
};

static void undo_fd(void *o)
{
	close((int)(intptr_t)o);
}

static void make(struct fixture *f)
{
	char name[] = "/tmp/umbel-xrc-XXXXXX";

	memset(f, 0, sizeof(*f));
	f->file = mkstemp(name);
	assert_true(f->file >= 0);
	unlink(name);
	lab_undo(undo_fd, (void *)(intptr_t)f->file);
	f->from = lab_open(1);
	f->pd = lab_pd(f->from);
	f->cq = lab_cq(f->from, 64, NULL);
	f->memory = xrc_lab_memory(f->pd, &f->mr);
	f->to = lab_open(2);
	f->xrcd = xrc_lab_domain(f->to, f->file);
	xrc_lab_queue(&f->q, f->to, f->xrcd);
}

/* Returns the error, if there is one: that of the request itself. */
static int post_as(struct fixture *f, struct ibv_qp *qp, uint32_t queue, uint32_t length,
                   uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)f->memory, length, f->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id,
		                  .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_SEND,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .qp_type.xrc.remote_srqn = queue },
	                   *bad;

	return ibv_post_send(qp, &wr, &bad);
}

static int post(struct fixture *f, struct ibv_qp *qp, uint32_t queue, uint32_t length)
{
	return post_as(f, qp, queue, length, 0);
}

/* The queue pair is in ERR: takes what is left of its completions. */
static void drain(struct fixture *f, struct ibv_qp *qp)
{
	struct ibv_wc wc;

	while (post_as(f, qp, 0, 0, 1))
		ibv_poll_cq(f->cq, 1, &wc);
	while (!lab_complete(f->cq, IBV_WC_WR_FLUSH_ERR).wr_id)
		;
}

static void post_all_receives(struct fixture *f)
{
	for (unsigned i = 0; i < XRC_LAB_WR; i++) {
		if (f->posted[i])
			continue;
		assert_int_equal(xrc_lab_receive(&f->q, i, XRC_LAB_BYTES), 0);
		f->posted[i] = true;
		f->n_posted++;
	}
}

/* A completion of the queue, if there is one: of a receive that is posted. */
static bool poll_queue(struct fixture *f)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(f->q.cq, 1, &wc);

	assert_true(n >= 0);
	if (!n)
		return false;
	assert_true(wc.wr_id < XRC_LAB_WR && f->posted[wc.wr_id]);
	f->posted[wc.wr_id] = false;
	f->n_posted--;
	return true;
}

/* A requester here with a target here, which both work. */
static struct ibv_qp *pair(struct fixture *f)
{
	struct ibv_qp *sender = xrc_lab_sender(f->pd, f->cq);
	struct ibv_qp *target = xrc_lab_target(f->to, f->xrcd);

	xrc_lab_connect(target, sender->qp_num, f->from);
	xrc_lab_connect(sender, target->qp_num, f->to);
	return sender;
}

static void expect_all_receives_used(struct fixture *f)
{
	struct ibv_qp *sender = pair(f);
	time_t deadline = time(NULL) + LAB_SECONDS;
	struct base_pause pause = { 0 };
	unsigned sent = 0;
	struct ibv_wc wc;

	for (unsigned i = f->n_posted; i; i--, sent++)
		assert_int_equal(post(f, sender, f->q.number, 100), 0);
	while (f->n_posted) {
		if (!poll_queue(f) && !ibv_poll_cq(f->cq, 1, &wc))
			base_pause(&pause);
		else
			pause.looks = 0;
		if (time(NULL) > deadline)
			fail_msg("%u receives are lost", f->n_posted);
	}
}

/* ---- tests ---- */

LAB_CASE(receives_survive_requesters_that_are_killed)
{
	struct fixture f;

	make(&f);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ibv_qp *target = xrc_lab_target(f.to, f.xrcd);
		struct child *c = start("requester", f.file);

		xrc_lab_connect(target, get(c->socket), f.from);
		put(c->socket, target->qp_num);
		put(c->socket, f.q.number);
		for (unsigned k = 0; k < 20 + 7 * i;) {
			post_all_receives(&f);
			k += poll_queue(&f);
		}
		kill_child(c);
	}
	post_all_receives(&f);
	expect_all_receives_used(&f);
}

/* Sends until that fails, and returns how. */
static enum ibv_wc_status send_until_it_fails(struct fixture *f, struct ibv_qp *sender,
                                              uint32_t queue)
{
	time_t deadline = time(NULL) + LAB_SECONDS;
	struct ibv_wc wc;

	for (;;) {
		post(f, sender, queue, 3000); /* or the queue is full */
		if (ibv_poll_cq(f->cq, 1, &wc) == 1 && wc.status)
			return wc.status;
		if (time(NULL) > deadline)
			fail_msg("nobody notices");
	}
}

/* Its queue is gone: that is an invalid request, and no more. Others of the domain go on. */
LAB_CASE(who_sends_to_a_queue_hears_that_its_owner_is_killed)
{
	struct fixture f;

	make(&f);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct child *c = start("queue", f.file);
		uint32_t queue = get(c->socket);
		struct ibv_qp *sender = pair(&f);
		struct ibv_wc wc;

		for (unsigned k = 0; k < 10 + 7 * i;) {
			post(&f, sender, queue, k % 2 ? 8 : XRC_LAB_BYTES); /* or it is full */
			k += ibv_poll_cq(f.cq, 1, &wc) == 1;
		}
		kill_child(c);
		assert_int_equal(send_until_it_fails(&f, sender, queue), IBV_WC_REM_INV_REQ_ERR);
		lab_async_event(f.to, IBV_EVENT_QP_REQ_ERR);
		drain(&f, sender);
	}
	post_all_receives(&f);
	expect_all_receives_used(&f);
}

/* Sends @n messages to the queue here, which all arrive. */
static void send_many(struct fixture *f, struct ibv_qp *sender, unsigned n)
{
	time_t deadline = time(NULL) + LAB_SECONDS;
	unsigned posted = 0, sent = 0;
	struct ibv_wc wc;

	while (sent < n) {
		post_all_receives(f);
		poll_queue(f);
		posted += posted < n && !post(f, sender, f->q.number, posted % 2 ? 8 : 3000);
		if (ibv_poll_cq(f->cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			sent++;
		}
		if (time(NULL) > deadline)
			fail_msg("%u messages are not sent", n - sent);
	}
}

static void undo_target(void *target)
{
	ibv_destroy_qp(target);
}

LAB_CASE(a_target_outlives_its_owner_if_another_has_it_open)
{
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
		                                      IBV_QP_OPEN_ATTR_TYPE,
		                         .qp_type = IBV_QPT_XRC_RECV };
	struct fixture f;

	make(&f);
	open.xrcd = f.xrcd;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct child *c = start("target", f.file);
		struct ibv_qp *sender = xrc_lab_sender(f.pd, f.cq), *target;

		put(c->socket, sender->qp_num);
		open.qp_num = get(c->socket);
		assert_non_null(target = ibv_open_qp(f.to, &open));
		lab_undo(undo_target, target);
		xrc_lab_connect(sender, open.qp_num, f.to);
		send_many(&f, sender, 10 + i);
		kill(c->pid, SIGKILL);
		send_many(&f, sender, 50);
		kill_child(c);
		send_many(&f, sender, 10);
		assert_int_equal(lab_state(target), IBV_QPS_RTS);
	}
	expect_all_receives_used(&f);
}

/* A process opens the target and is killed. */
static void use_and_die(struct fixture *f, uint32_t target)
{
	struct child *c = start("user", f->file);

	put(c->socket, target);
	assert_true(get(c->socket));
	kill_child(c);
}

LAB_CASE(a_requester_hears_that_its_targets_owner_is_killed)
{
	struct fixture f;

	make(&f);
	for (unsigned i = 0; i < 2; i++) {
		struct child *c = start("target", f.file);
		struct ibv_qp *sender = xrc_lab_sender(f.pd, f.cq);
		enum ibv_wc_status status;
		uint32_t target;

		put(c->socket, sender->qp_num);
		target = get(c->socket);
		if (i) /* the other process that had it open is dead as well */
			use_and_die(&f, target);
		xrc_lab_connect(sender, target, f.to);
		send_many(&f, sender, 10 + i);
		kill_child(c);
		post_all_receives(&f);
		status = send_until_it_fails(&f, sender, f.q.number);
		assert_int_equal(status, IBV_WC_RETRY_EXC_ERR);
		drain(&f, sender);
		while (poll_queue(&f))
			;
	}
	post_all_receives(&f);
	expect_all_receives_used(&f);
}

LAB_CASE(the_queues_of_who_is_killed_are_free_again)
{
	struct fixture f;

	make(&f);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct child *c = start("owner", f.file);

		assert_int_equal(get(c->socket), QUEUES);
		kill_child(c);
	}
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < LAB_ARRAY(roles) && argc > 1; i++) {
		struct CMUnitTest role = { argv[1], roles[i].play, NULL, lab_clean_up, NULL };

		if (!strcmp(argv[1], roles[i].name)) {
			unsetenv("CMOCKA_TEST_FILTER");
			fclose(stdout);
			return _cmocka_run_group_tests(argv[1], &role, 1, NULL, NULL);
		}
	}
	return harness_run(NULL, NULL);
}
