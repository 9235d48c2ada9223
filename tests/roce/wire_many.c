// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * wire_many hub PATH PEERS CONNECTIONS: RC connections to that many processes of another host, each
 * of which is "wire_many peer PATH CONNECTIONS" and has so many. They find each other by a socket
 * at PATH. On each connection both ends send a few messages, whose bytes are checked. Then every
 * second process is killed, and the hub sends on all connections again: those that are left answer,
 * the others end by RETRY_EXC and flushes.
 *
 * wire_many ask PID asks the daemon, that process, for one small thing after the other, until
 * SIGTERM: how long it worked on something else at most before it answered: the clock's time, or
 * its processor time if that is less, as others may have had its processor.
 */
#include "must.h"

#include <infiniband/verbs.h>

#include "../qp_states.h"

#define MESSAGES  4    /* each way, each time */
#define BYTES     1500 /* two packets */
#define GID_INDEX 1
#define TIMEOUT   17 /* 0.5 s, 7 times again: on a busy machine no living peer is given up */
#define STALL_NS  120000000000

struct address {
	union ibv_gid gid;
	uint32_t qpn;
};

/* Of one connection. */
struct slots {
	uint8_t send[MESSAGES][BYTES], receive[MESSAGES][BYTES];
};

/* The connections between the hub and one process: an end of them. */
struct bundle {
	bool is_hub;
	int other;
	pid_t pid;
	unsigned n, number;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct slots *slots;
	struct ibv_qp **qp;
	bool *has_failed;
	unsigned sent, received, failed, flushed;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static union ibv_gid gid;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	check(list && list[0], "ibv_get_device_list");
	MUST(context = ibv_open_device(list[0]));
	pd = ibv_alloc_pd(context);
	check(pd && !ibv_query_gid(context, 1, GID_INDEX, &gid), "ibv_alloc_pd");
}

static uint8_t byte_of(bool of_hub, unsigned bundle, unsigned i, unsigned turn, unsigned at)
{
	return (uint8_t)((of_hub * 97 + bundle * 31 + i * 7 + turn * 13 + at) ^ (at >> 3) ^
	                 (i >> 8));
}

static void tell(int fd, const void *bytes, size_t length)
{
	check(send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length, "send");
}

static void hear(int fd, void *bytes, size_t length)
{
	check(recv(fd, bytes, length, MSG_WAITALL) == (ssize_t)length, "recv");
}

static void post_receives(struct bundle *b, unsigned i)
{
	for (unsigned m = 0; m < MESSAGES; m++) {
		struct ibv_sge sge = { (uintptr_t)b->slots[i].receive[m], BYTES, b->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i * MESSAGES + m,
			                  .sg_list = &sge,
			                  .num_sge = 1 };
		struct ibv_recv_wr *bad;

		errno = ibv_post_recv(b->qp[i], &wr, &bad);
		check(!errno, "ibv_post_recv");
	}
}

static void post_sends(struct bundle *b, unsigned i, unsigned turn)
{
	for (unsigned m = 0; m < MESSAGES; m++) {
		struct ibv_sge sge = { (uintptr_t)b->slots[i].send[m], BYTES, b->mr->lkey };
		struct ibv_send_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		for (unsigned at = 0; at < BYTES; at++)
			b->slots[i].send[m][at] =
			        byte_of(b->is_hub, b->number, i, turn * MESSAGES + m, at);
		wr.opcode = IBV_WR_SEND;
		wr.send_flags = IBV_SEND_SIGNALED;
		errno = ibv_post_send(b->qp[i], &wr, &bad);
		check(!errno, "ibv_post_send");
	}
}

static void make(struct bundle *b)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		                         .cap = { MESSAGES, MESSAGES, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	size_t size = b->n * sizeof(*b->slots);

	b->slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	b->qp = calloc(b->n, sizeof(struct ibv_qp *));
	b->has_failed = calloc(b->n, sizeof(bool));
	check(b->slots != MAP_FAILED && b->qp && b->has_failed, "memory");
	b->mr = ibv_reg_mr(pd, b->slots, size, IBV_ACCESS_LOCAL_WRITE);
	b->cq = ibv_create_cq(context, (int)b->n * 2 * MESSAGES, NULL, NULL, 0);
	check(b->mr && b->cq, "ibv_create_cq");
	init.send_cq = init.recv_cq = b->cq;
	for (unsigned i = 0; i < b->n; i++) {
		MUST(b->qp[i] = ibv_create_qp(pd, &init));
		check(!qp_to_init(b->qp[i], &attr), "INIT");
		post_receives(b, i);
	}
}

static void connect_one(struct ibv_qp *qp, const struct address *there)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
		                    .path_mtu = IBV_MTU_1024,
		                    .dest_qp_num = there->qpn,
		                    .min_rnr_timer = 12,
		                    .timeout = TIMEOUT,
		                    .retry_cnt = 7,
		                    .rnr_retry = 7 };

	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = there->gid;
	attr.ah_attr.grh.sgid_index = GID_INDEX;
	attr.ah_attr.grh.hop_limit = 64;
	check(!qp_to_rtr(qp, &attr), "RTR");
	check(!qp_to_rts(qp, &attr), "RTS");
}

/* The other end does the same. */
static void meet(struct bundle *b)
{
	struct address *here = calloc(b->n, sizeof(*here)), *there = calloc(b->n, sizeof(*there));
	char ready = 0;

	check(here && there, "memory");
	for (unsigned i = 0; i < b->n; i++)
		here[i] = (struct address){ gid, b->qp[i]->qp_num };
	if (b->is_hub) {
		hear(b->other, there, b->n * sizeof(*there));
		tell(b->other, here, b->n * sizeof(*here));
	} else {
		tell(b->other, here, b->n * sizeof(*here));
		hear(b->other, there, b->n * sizeof(*there));
	}
	for (unsigned i = 0; i < b->n; i++)
		connect_one(b->qp[i], &there[i]);
	tell(b->other, &ready, 1);
	hear(b->other, &ready, 1);
	free(here);
	free(there);
}

static void check_message(const struct bundle *b, const struct ibv_wc *wc, unsigned turn)
{
	const unsigned i = (unsigned)wc->wr_id / MESSAGES, m = (unsigned)wc->wr_id % MESSAGES;

	must(wc->byte_len == BYTES, "a message of %u bytes", wc->byte_len);
	for (unsigned at = 0; at < BYTES; at++)
		must(b->slots[i].receive[m][at] ==
		             byte_of(!b->is_hub, b->number, i, turn * MESSAGES + m, at),
		     "connection %u of %u, message %u: byte %u is wrong", i, b->number, m, at);
}

/* A connection fails once, with its first request; all else is flushed. */
static void take_failure(struct bundle *b, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		b->flushed++;
		return;
	}
	must(wc->status == IBV_WC_RETRY_EXC_ERR && !b->has_failed[wc->wr_id], "%s",
	     ibv_wc_status_str(wc->status));
	b->has_failed[wc->wr_id] = true;
	b->failed++;
}

/* Takes what there is. Whether all is there that this time brings, if the other end lives or
 * @is_dead. */
static bool look(struct bundle *b, unsigned turn, bool is_dead)
{
	const unsigned all = b->n * MESSAGES;
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(b->cq, 16, wc);

	check(n >= 0, "ibv_poll_cq");
	for (int i = 0; i < n; i++) {
		if (wc[i].status && !is_dead)
			errx(EXIT_FAILURE, "%s, and the peer lives",
			     ibv_wc_status_str(wc[i].status));
		if (wc[i].status) {
			take_failure(b, &wc[i]);
		} else if (wc[i].opcode == IBV_WC_RECV) {
			check_message(b, &wc[i], turn);
			b->received++;
		} else if (!is_dead) {
			b->sent++;
		} else {
			errx(EXIT_FAILURE, "a dead peer acknowledges");
		}
	}
	return is_dead ? b->failed == b->n && b->flushed == 2 * all - b->n
	               : b->sent == all && b->received == all;
}

static void begin(struct bundle *b, unsigned turn)
{
	b->sent = b->received = 0;
	for (unsigned i = 0; i < b->n; i++)
		post_sends(b, i, turn);
}

static void receive_again(struct bundle *b)
{
	for (unsigned i = 0; i < b->n; i++)
		post_receives(b, i);
}

/* Until all is done on all of them. @dead: of every second one the peer is. */
static void finish(struct bundle *b, unsigned n, unsigned turn, bool dead)
{
	const uint64_t began = now_ns(CLOCK_MONOTONIC);
	unsigned done = 0;

	while (done < n) {
		done = 0;
		for (unsigned i = 0; i < n; i++)
			done += look(&b[i], turn, dead && i % 2);
		for (unsigned i = 0; done < n && i < n; i++)
			must(now_ns(CLOCK_MONOTONIC) - began <= STALL_NS,
			     "%u of %u: %u sent, %u received, %u failed, %u flushed", i, n,
			     b[i].sent, b[i].received, b[i].failed, b[i].flushed);
	}
}

/* Both ends have done with this time, and have receives for the next. */
static void agree(const struct bundle *b)
{
	char byte = 0;

	tell(b->other, &byte, 1);
	hear(b->other, &byte, 1);
}

static long resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long size, resident;

	check(f && fscanf(f, "%ld %ld", &size, &resident) == 2, "statm");
	fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void say(const char *what, uint64_t *since)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	printf("%s: %lu ms, %ld KiB resident\n", what, (now - *since) / 1000000, resident_kib());
	*since = now_ns(CLOCK_MONOTONIC);
}

/* On all; then every second peer is killed. */
static void send_and_kill(struct bundle *b, unsigned n, uint64_t *since)
{
	char byte;

	for (unsigned i = 0; i < n; i++) {
		agree(&b[i]);
		begin(&b[i], 0);
	}
	finish(b, n, 0, false);
	for (unsigned i = 0; i < n; i++) {
		receive_again(&b[i]);
		agree(&b[i]);
	}
	say("all have sent", since);
	for (unsigned i = 1; i < n; i += 2)
		kill(b[i].pid, SIGKILL);
	for (unsigned i = 1; i < n; i += 2)
		while (recv(b[i].other, &byte, 1, 0) > 0)
			;
}

static void be_hub(struct sockaddr_un *path, unsigned n, unsigned connections)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct bundle *b = calloc(n, sizeof(*b));
	uint64_t since = now_ns(CLOCK_MONOTONIC);

	check(fd >= 0 && b && !bind(fd, (struct sockaddr *)path, sizeof(*path)) && !listen(fd, 64),
	      "listen");
	say("listens", &since);
	for (unsigned i = 0; i < n; i++) {
		b[i] = (struct bundle){ .is_hub = true, .n = connections, .number = i };
		b[i].other = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		check(b[i].other >= 0, "accept");
		hear(b[i].other, &b[i].pid, sizeof(b[i].pid));
		tell(b[i].other, &i, sizeof(i));
		make(&b[i]);
		meet(&b[i]);
	}
	say("all are connected", &since);
	send_and_kill(b, n, &since);
	for (unsigned i = 0; i < n; i += 2) {
		agree(&b[i]);
		begin(&b[i], 1);
	}
	for (unsigned i = 1; i < n; i += 2)
		begin(&b[i], 1);
	finish(b, n, 1, true);
	for (unsigned i = 0; i < n; i += 2)
		agree(&b[i]);
	say("half have failed, half have sent again", &since);
	puts("all is well");
}

static void be_peer(const struct sockaddr_un *path, unsigned connections)
{
	struct bundle b = { .n = connections };
	pid_t pid = getpid();

	b.other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(b.other >= 0 && !connect(b.other, (const struct sockaddr *)path, sizeof(*path)),
	      "connect");
	tell(b.other, &pid, sizeof(pid));
	hear(b.other, &b.number, sizeof(b.number));
	make(&b);
	meet(&b);
	for (unsigned turn = 0; turn < 2; turn++) {
		agree(&b);
		begin(&b, turn);
		finish(&b, 1, turn, false);
		if (!turn)
			receive_again(&b);
		agree(&b);
	}
	puts("all is well");
}

static volatile sig_atomic_t is_over;

static void end(int signal)
{
	(void)signal;
	is_over = 1;
}

static void ask(pid_t daemon)
{
	uint64_t longest = 0;
	clockid_t clock;

	signal(SIGTERM, end);
	errno = clock_getcpuclockid(daemon, &clock);
	check(!errno, "clock_getcpuclockid");
	puts("asks");
	while (!is_over) {
		const uint64_t began = now_ns(CLOCK_MONOTONIC), before = now_ns(clock);
		struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
		const uint64_t took = now_ns(CLOCK_MONOTONIC) - began,
		               work = now_ns(clock) - before;

		check(cq && !ibv_destroy_cq(cq), "ibv_create_cq");
		if ((work < took ? work : took) > longest)
			longest = work < took ? work : took;
		usleep(200);
	}
	printf("held up for %lu us\n", longest / 1000);
}

int main(int argc, char **argv)
{
	struct sockaddr_un path = { .sun_family = AF_UNIX };

	setlinebuf(stdout);
	if (argc < 3)
		errx(2, "usage: wire_many hub|peer|ask ARGUMENT...");
	open_device();
	strncpy(path.sun_path, argv[2], sizeof(path.sun_path) - 1);
	if (!strcmp(argv[1], "hub") && argc == 5)
		be_hub(&path, (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
	else if (!strcmp(argv[1], "peer") && argc == 4)
		be_peer(&path, (unsigned)atoi(argv[3]));
	else
		ask(atoi(argv[2]));
	return 0;
}
