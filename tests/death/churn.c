/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps a crowd of participants busy in one multicast group and kills them with SIGKILL
 * at random moments: churn KILLS [SEED]. A killed one is replaced at once. Two survivors
 * exchange messages in the same group all the while and check the contents of all that
 * reaches them, from any sender. Ends with status 0 if they never waited too long and found
 * everything whole.
 *
 * The process that forks and kills never touches the libraries, so that a new
 * participant costs no more than a fork.
 */
#include "posix.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define CROWD     8
#define HOSTS     4
#define QKEY      0x01234567 /* of RDMA_PS_UDP */
#define MAX_BYTES 4000
#define GRH       40
#define SLOT      (GRH + MAX_BYTES)
#define RECEIVES  512
#define STALL_S   20 /* that a survivor may wait for the other */
#define ECHO_MS   50 /* after which a message is sent again: the group may be flooded */

enum kind { FROM_CROWD = 1, PING, ECHO, STOP };

struct message {
	uint32_t kind;
	uint32_t bytes; /* with this head */
	uint32_t seed;
	uint32_t sum; /* of the head: tells a whole message */
	uint64_t serial;
	uint8_t data[];
};

/* Shared by the processes. */
static struct shared {
	atomic_bool stop;
	atomic_ulong exchanges, repeats, checked;
} * shared;

static uint64_t state;

static uint32_t random_number(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 32);
}

static uint32_t below(uint32_t n)
{
	return random_number() % n;
}

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "churn: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	_exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- a participant ---- */

struct member {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* NULL: it polls */
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_mr *mr;
	struct ibv_ah *group;
	struct sockaddr_in address;
	char *memory; /* RECEIVES slots and one to send from */
};

static void post_receive(struct member *m, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)m->memory + slot * SLOT, SLOT, m->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(m->id->qp, &wr, &bad))
		die("cannot post a receive: %s", strerror(errno));
}

static void bind_to_host(struct member *m, unsigned host)
{
	struct sockaddr_in local = { .sin_family = AF_INET };

	local.sin_addr.s_addr = htonl(0x0A000000 + host);
	m->events = rdma_create_event_channel();
	if (!m->events || rdma_create_id(m->events, &m->id, m, RDMA_PS_UDP) ||
	    rdma_bind_addr(m->id, (struct sockaddr *)&local))
		die("cannot bind to host %u: %s", host, strerror(errno));
}

static void create_queues(struct member *m, bool blocks)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD,
		                         .cap = { .max_send_wr = 16,
		                                  .max_recv_wr = RECEIVES,
		                                  .max_send_sge = 1,
		                                  .max_recv_sge = 1 } };

	m->pd = ibv_alloc_pd(m->id->verbs);
	m->memory = malloc((RECEIVES + 1) * SLOT);
	if (!m->pd || !m->memory)
		die("no memory");
	m->mr = ibv_reg_mr(m->pd, m->memory, (RECEIVES + 1) * SLOT, IBV_ACCESS_LOCAL_WRITE);
	if (blocks)
		m->channel = ibv_create_comp_channel(m->id->verbs);
	m->recv_cq = ibv_create_cq(m->id->verbs, RECEIVES, m, m->channel, 0);
	m->send_cq = ibv_create_cq(m->id->verbs, 16, m, NULL, 0);
	attr.recv_cq = m->recv_cq;
	attr.send_cq = m->send_cq;
	if (!m->mr || !m->recv_cq || !m->send_cq || rdma_create_qp(m->id, m->pd, &attr))
		die("cannot create queues: %s", strerror(errno));
	for (uint64_t slot = 0; slot < RECEIVES; slot++)
		post_receive(m, slot);
}

static void join_group(struct member *m, unsigned group)
{
	struct rdma_cm_event *event;

	m->address = (struct sockaddr_in){ .sin_family = AF_INET };
	m->address.sin_addr.s_addr = htonl(0xEF010100 + group);
	if (rdma_join_multicast(m->id, (struct sockaddr *)&m->address, NULL) ||
	    rdma_get_cm_event(m->events, &event))
		die("cannot join: %s", strerror(errno));
	if (event->event != RDMA_CM_EVENT_MULTICAST_JOIN)
		die("joined with %s, status %d", rdma_event_str(event->event), event->status);
	if (m->pd)
		m->group = ibv_create_ah(m->pd, &event->param.ud.ah_attr);
	if (m->pd && !m->group)
		die("no address handle for the group: %s", strerror(errno));
	rdma_ack_cm_event(event);
}

static void become_member(struct member *m, unsigned host, bool blocks)
{
	memset(m, 0, sizeof(*m));
	bind_to_host(m, host);
	create_queues(m, blocks);
	join_group(m, 1);
}

static void end_membership(struct member *m)
{
	if (rdma_leave_multicast(m->id, (struct sockaddr *)&m->address) || ibv_destroy_ah(m->group))
		die("cannot leave: %s", strerror(errno));
	rdma_destroy_qp(m->id);
	if (ibv_destroy_cq(m->recv_cq) || ibv_destroy_cq(m->send_cq) ||
	    (m->channel && ibv_destroy_comp_channel(m->channel)) || ibv_dereg_mr(m->mr) ||
	    ibv_dealloc_pd(m->pd) || rdma_destroy_id(m->id))
		die("cannot clean up: %s", strerror(errno));
	rdma_destroy_event_channel(m->events);
	free(m->memory);
}

/* ---- messages ---- */

static uint32_t sum_of(const struct message *msg)
{
	return msg->kind * 3 + msg->bytes * 5 + msg->seed * 7 + (uint32_t)msg->serial * 11 + 1;
}

static void make_message(struct message *msg, enum kind kind, uint64_t serial, bool large)
{
	uint32_t bytes = (uint32_t)sizeof(*msg) + below(large ? MAX_BYTES - sizeof(*msg) : 40);

	*msg = (struct message){ .kind = kind, .bytes = bytes, .seed = random_number() };
	msg->serial = serial;
	msg->sum = sum_of(msg);
	for (uint32_t i = 0; i < bytes - sizeof(*msg); i++)
		msg->data[i] = (uint8_t)(msg->seed + i * 13);
}

static void check_message(const struct message *msg, uint32_t byte_len)
{
	if (byte_len < GRH + sizeof(*msg) || byte_len != GRH + msg->bytes ||
	    msg->sum != sum_of(msg))
		die("a broken message: %u bytes arrived, head says kind %u, %u bytes", byte_len,
		    msg->kind, msg->bytes);
	for (uint32_t i = 0; i < msg->bytes - sizeof(*msg); i++)
		if (msg->data[i] != (uint8_t)(msg->seed + i * 13))
			die("a message of kind %u is broken at byte %u of %u", msg->kind, i,
			    msg->bytes);
	atomic_fetch_add(&shared->checked, 1);
}

/* Waits for the send before, then sends what is in the last slot. */
static void send_message(struct member *m, struct ibv_ah *ah, uint32_t qpn)
{
	struct message *msg = (void *)(m->memory + (size_t)RECEIVES * SLOT);
	struct ibv_sge sge = { (uintptr_t)msg, msg->bytes, m->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_SEND,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .wr.ud = { ah, qpn, QKEY } },
	                   *bad;
	struct ibv_wc wc;
	int n;

	if (ibv_post_send(m->id->qp, &wr, &bad))
		die("cannot send: %s", strerror(errno));
	while ((n = ibv_poll_cq(m->send_cq, 1, &wc)) == 0)
		;
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		die("a send failed: %s", n < 0 ? "poll" : ibv_wc_status_str(wc.status));
}

static struct message *to_send(struct member *m)
{
	return (void *)(m->memory + (size_t)RECEIVES * SLOT);
}

/* The next message, checked; its slot is to be posted again. NULL: none is there. */
static struct message *receive(struct member *m, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(m->recv_cq, 1, wc);
	struct message *msg;

	if (!n)
		return NULL;
	if (n < 0 || wc->status != IBV_WC_SUCCESS)
		die("a receive failed: %s", n < 0 ? "poll" : ibv_wc_status_str(wc->status));
	msg = (void *)(m->memory + wc->wr_id * SLOT + GRH);
	check_message(msg, wc->byte_len);
	return msg;
}

/* Blocks until there is a message. */
static struct message *await(struct member *m, struct ibv_wc *wc)
{
	struct message *msg;

	for (;;) {
		struct ibv_cq *cq;
		void *context;

		msg = receive(m, wc);
		if (msg)
			return msg;
		if (ibv_req_notify_cq(m->recv_cq, 0))
			die("cannot arm");
		msg = receive(m, wc);
		if (msg)
			return msg;
		if (ibv_get_cq_event(m->channel, &cq, &context))
			die("cannot wait: %s", strerror(errno));
		ibv_ack_cq_events(cq, 1);
	}
}

static void answer(struct member *m, const struct ibv_wc *wc, enum kind kind, uint64_t serial)
{
	struct ibv_ah_attr attr = { .dlid = wc->slid, .sl = wc->sl, .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(m->pd, &attr);

	if (!ah)
		die("no address handle for an answer: %s", strerror(errno));
	make_message(to_send(m), kind, serial, below(2));
	send_message(m, ah, wc->src_qp);
	ibv_destroy_ah(ah);
}

/* ---- the survivors ---- */

/* Polls, and waits for every message to come back. */
static void run_pinger(void)
{
	uint64_t serial = 0;
	struct member m;
	bool stopping = false;

	become_member(&m, 1, false);
	while (!stopping || shared->exchanges < 100) {
		double end = now() + STALL_S, again = 0;
		struct message *msg;
		struct ibv_wc wc;

		serial++;
		stopping = shared->stop;
		for (bool echoed = false; !echoed;) {
			if (now() > again) {
				if (again > 0)
					atomic_fetch_add(&shared->repeats, 1);
				make_message(to_send(&m), stopping ? STOP : PING, serial,
				             serial % 2);
				send_message(&m, m.group, 0xFFFFFF);
				again = now() + ECHO_MS / 1000.0;
			}
			msg = receive(&m, &wc);
			if (msg) {
				echoed = msg->kind == ECHO && msg->serial == serial;
				post_receive(&m, wc.wr_id);
			} else if (now() > end) {
				die("no echo of message %lu in %d s", (unsigned long)serial,
				    STALL_S);
			}
		}
		atomic_fetch_add(&shared->exchanges, 1);
	}
	end_membership(&m);
	_exit(0);
}

/* Sleeps until there is something, and sends it back. */
static void run_echoer(void)
{
	struct member m;
	enum kind kind;

	become_member(&m, 2, true);
	do {
		struct ibv_wc wc;
		struct message *msg = await(&m, &wc);

		kind = msg->kind;
		if (kind == PING || kind == STOP)
			answer(&m, &wc, ECHO, msg->serial);
		post_receive(&m, wc.wr_id);
	} while (kind != STOP || shared->exchanges < 100);
	end_membership(&m);
	_exit(0);
}

/* ---- the crowd ---- */

static void run_receiver(unsigned host, bool blocks)
{
	struct member m;
	struct ibv_wc wc;

	become_member(&m, host, blocks);
	for (;;) {
		if (blocks)
			await(&m, &wc);
		else if (!receive(&m, &wc))
			continue;
		post_receive(&m, wc.wr_id);
	}
}

/* Keeps what arrives until all its receives are used up, then starts over. */
static void run_hoarder(unsigned host)
{
	struct member m;

	become_member(&m, host, false);
	for (;;) {
		poll(NULL, 0, (int)below(20));
		for (unsigned n = below(RECEIVES); n; n--) {
			struct ibv_wc wc;

			if (!receive(&m, &wc))
				break;
			post_receive(&m, wc.wr_id);
		}
	}
}

static void run_sender(unsigned host, bool large)
{
	struct member m;

	become_member(&m, host, false);
	for (uint64_t serial = 0;; serial++) {
		struct ibv_wc wc;

		make_message(to_send(&m), FROM_CROWD, serial, large);
		send_message(&m, m.group, 0xFFFFFF);
		if (receive(&m, &wc))
			post_receive(&m, wc.wr_id);
		if (below(8) == 0)
			poll(NULL, 0, 1); /* leaves room for others in their receive queues */
	}
}

/* Sends many messages to each member that is heard in the group. */
static void run_unicaster(unsigned host, bool blocks)
{
	struct member m;

	become_member(&m, host, blocks);
	for (;;) {
		struct ibv_wc wc;

		if (blocks)
			await(&m, &wc);
		else if (!receive(&m, &wc))
			continue;
		for (unsigned n = below(20); n && wc.src_qp != m.id->qp->qp_num; n--)
			answer(&m, &wc, FROM_CROWD, n);
		post_receive(&m, wc.wr_id);
	}
}

/* Joins and leaves, with and without a queue pair, this group and others. */
static void run_joiner(unsigned host)
{
	for (;;) {
		struct member m = { 0 };

		if (below(2)) {
			become_member(&m, host, below(2));
			end_membership(&m);
			continue;
		}
		bind_to_host(&m, host);
		join_group(&m, 1 + below(4));
		if (below(2) && rdma_leave_multicast(m.id, (struct sockaddr *)&m.address))
			die("cannot leave: %s", strerror(errno));
		if (rdma_destroy_id(m.id))
			die("cannot destroy an identifier: %s", strerror(errno));
		rdma_destroy_event_channel(m.events);
	}
}

static void run_one_of_the_crowd(void)
{
	unsigned host = 1 + below(HOSTS);

	switch (below(9)) {
	case 0:
		run_receiver(host, false);
		break;
	case 1:
		run_receiver(host, true);
		break;
	case 2:
		run_hoarder(host);
		break;
	case 3:
		run_unicaster(host, false);
		break;
	case 4:
		run_unicaster(host, true);
		break;
	case 5:
	case 6:
		run_sender(host, true);
		break;
	case 7:
		run_sender(host, false);
		break;
	default:
		run_joiner(host);
	}
}

/* ---- the process that forks and kills ---- */

static pid_t start(void (*run)(void))
{
	uint32_t own = random_number();
	pid_t pid = fork();

	if (pid < 0)
		die("cannot fork: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	state ^= own;
	run();
	_exit(0);
}

/* A process that ends without having been killed has found something wrong, and said so. */
static void check_nobody_ended(void)
{
	int status;
	pid_t pid = waitpid(-1, &status, WNOHANG);

	if (pid > 0)
		die("process %d ended by itself, status 0x%x", (int)pid, status);
}

static void kill_one(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		die("process %d ended by itself, status 0x%x", (int)pid, status);
}

static void wait_for_exchanges(unsigned long n)
{
	double end = now() + STALL_S;

	for (n += shared->exchanges; shared->exchanges < n; poll(NULL, 0, 1)) {
		check_nobody_ended();
		if (now() > end)
			die("the survivors have stalled at %lu exchanges", shared->exchanges);
	}
}

static void end_survivor(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		die("a survivor ended with status 0x%x", status);
}

int main(int argc, char **argv)
{
	unsigned kills = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 100;
	pid_t pinger, echoer, crowd[CROWD];

	state = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
	printf("seed %llu\n", (unsigned long long)state);
	fflush(stdout);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	if (shared == MAP_FAILED)
		die("no memory");
	echoer = start(run_echoer);
	pinger = start(run_pinger);
	wait_for_exchanges(10);
	for (unsigned i = 0; i < CROWD; i++)
		crowd[i] = start(run_one_of_the_crowd);
	for (unsigned n = 0; n < kills; n++) {
		unsigned victim = below(CROWD);
		struct timespec moment = { .tv_nsec = below(20000000) };

		nanosleep(&moment, NULL);
		kill_one(crowd[victim]);
		check_nobody_ended();
		crowd[victim] = start(run_one_of_the_crowd);
		if (n % 50 == 49)
			wait_for_exchanges(1);
	}
	for (unsigned i = 0; i < CROWD; i++)
		kill_one(crowd[i]);
	wait_for_exchanges(100);
	shared->stop = true;
	end_survivor(pinger);
	end_survivor(echoer);
	printf("%u killed; %lu exchanges, %lu repeated; %lu messages checked\n", kills + CROWD,
	       shared->exchanges, shared->repeats, shared->checked);
	return 0;
}
