// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Small programs that touch memory while the card has it, each with its right twin, for tools.sh,
 * which builds them for AddressSanitizer, for ThreadSanitizer, and for valgrind. Two RC queue pairs
 * of this process are connected to each other.
 *
 * tools wrong a|t|v: those whose mistake the tool finds, by its first letter, one after the other.
 * tools right a|t|v: all. To standard error goes a line before each.
 */
#include "../posix.h"
#include "../qp_states.h"

#define BYTES   8192
#define SECONDS 20
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_port_attr port;
static struct ibv_qp *qp[2];
static struct ibv_cq *sent[2], *come[2];
static struct ibv_mr *mr[2];
static char *memory[2]; /* of the heap */
static volatile char sink;

static void must(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(3);
	}
}

/* The line of which the tools tell. */
static __attribute__((noipa)) void look(const char *at)
{
	sink = *at;
}

static __attribute__((noipa)) void change(char *at)
{
	(*at)++;
}

static struct ibv_wc complete(struct ibv_cq *cq, enum ibv_wc_status status)
{
	const time_t end = time(NULL) + SECONDS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)) && time(NULL) < end)
		nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	must(n == 1 && wc.status == status, "a completion");
	return wc;
}

static void receive(int at, char *to, uint32_t bytes, const struct ibv_mr *of)
{
	struct ibv_sge sge = { (uintptr_t)to, bytes, of->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(qp[at], &wr, &bad), "ibv_post_recv");
}

static void post_send(int at, struct ibv_sge *sge)
{
	struct ibv_send_wr *bad, wr = {
		.sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED
	};

	must(!ibv_post_send(qp[at], &wr, &bad), "ibv_post_send");
}

static void request(int at, enum ibv_wr_opcode opcode, char *local, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)local, bytes, mr[at]->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED
	};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)memory[!at];
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = mr[!at]->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)memory[!at];
		wr.wr.rdma.rkey = mr[!at]->rkey;
	}
	must(!ibv_post_send(qp[at], &wr, &bad), "ibv_post_send");
}

static void move(int at, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };

	must(!ibv_modify_qp(qp[at], &a, IBV_QP_STATE), "ibv_modify_qp");
}

/* ---- programs ---- */

/* The message comes while the program looks: on a card, too, it may be there, or not. */
static void receive_read_early(bool wrong)
{
	receive(1, memory[1], BYTES, mr[1]);
	request(0, IBV_WR_SEND, memory[0], 100);
	complete(sent[0], IBV_WC_SUCCESS);
	if (wrong)
		look(memory[1] + 99);
	must(complete(come[1], IBV_WC_SUCCESS).byte_len == 100, "100 bytes");
	look(memory[1] + 99);
	change(memory[1] + 100);
	change(memory[1] + BYTES - 1);
}

/* The first receive has completed, and says nothing of the second. */
static void second_receive_read_early(bool wrong)
{
	receive(1, memory[1], 4096, mr[1]);
	receive(1, memory[1] + 4096, 4096, mr[1]);
	request(0, IBV_WR_SEND, memory[0], 5000 - 4096);
	complete(come[1], IBV_WC_SUCCESS);
	look(memory[1]);
	if (wrong)
		look(memory[1] + 4096);
	request(0, IBV_WR_SEND, memory[0], 4096);
	complete(come[1], IBV_WC_SUCCESS);
	look(memory[1] + 4096);
	complete(sent[0], IBV_WC_SUCCESS);
	complete(sent[0], IBV_WC_SUCCESS);
}

static void read_read_early(bool wrong)
{
	request(0, IBV_WR_RDMA_READ, memory[0] + 4096, 640);
	if (wrong)
		look(memory[0] + 4096);
	complete(sent[0], IBV_WC_SUCCESS);
	look(memory[0] + 4096);
}

static void read_written_early(bool wrong)
{
	request(0, IBV_WR_RDMA_READ, memory[0] + 4096, 4000);
	if (wrong)
		change(memory[0] + 4096 + 3999);
	complete(sent[0], IBV_WC_SUCCESS);
	change(memory[0] + 4096 + 3999);
}

static void atomic_read_early(bool wrong)
{
	request(0, IBV_WR_ATOMIC_FETCH_AND_ADD, memory[0] + 64, 8);
	look(memory[0] + 63);
	look(memory[0] + 72);
	if (wrong)
		look(memory[0] + 71);
	complete(sent[0], IBV_WC_SUCCESS);
	look(memory[0] + 71);
}

static void *change_it(void *at)
{
	change(at);
	return at;
}

/* A thread that knows the buffer and nothing of its completion. */
static void sent_by_thread(bool wrong)
{
	pthread_t thread;

	receive(1, memory[1], BYTES, mr[1]);
	request(0, IBV_WR_SEND, memory[0], 1000);
	if (wrong)
		must(!pthread_create(&thread, NULL, change_it, memory[0] + 500), "a thread");
	complete(sent[0], IBV_WC_SUCCESS);
	complete(come[1], IBV_WC_SUCCESS);
	if (!wrong)
		must(!pthread_create(&thread, NULL, change_it, memory[0] + 500), "a thread");
	pthread_join(thread, NULL);
}

/* The ends of what is posted lie within words whose other bytes are the program's. */
static void neighbours(bool wrong)
{
	char near[64] = { 0 };
	struct ibv_mr *of = ibv_reg_mr(pd, near, sizeof(near), ACCESS);

	must(of != NULL, "ibv_reg_mr");
	receive(1, near + 3, 30, of);
	change(near + 2);
	change(near + 33);
	if (wrong)
		look(near + 20);
	request(0, IBV_WR_SEND, memory[0], 30);
	complete(sent[0], IBV_WC_SUCCESS);
	complete(come[1], IBV_WC_SUCCESS);
	for (int i = 0; i < 64; i++)
		change(near + i);
	must(!ibv_dereg_mr(of), "ibv_dereg_mr");
}

/* Memory of which a part was never written: it may be sent. Behind a message it is as it was. */
static void undefined(bool wrong)
{
	char *never = malloc(4096);
	struct ibv_mr *of = ibv_reg_mr(pd, never, 4096, ACCESS);

	must(of != NULL, "ibv_reg_mr");
	receive(1, never, 2048, of);
	request(0, IBV_WR_SEND, memory[0], 100);
	complete(sent[0], IBV_WC_SUCCESS);
	complete(come[1], IBV_WC_SUCCESS);
	if (never[wrong ? 100 : 99])
		puts("it is something");
	receive(1, memory[1], BYTES, mr[1]);
	post_send(0, &(struct ibv_sge){ (uintptr_t)never, 4096, of->lkey });
	complete(sent[0], IBV_WC_SUCCESS);
	complete(come[1], IBV_WC_SUCCESS);
	must(!ibv_dereg_mr(of), "ibv_dereg_mr");
	free(never);
}

/* Half of the receives are flushed, the others dropped. */
static void queue_ended(bool wrong)
{
	memset(memory[1], 7, BYTES);
	receive(1, memory[1], 4096, mr[1]);
	if (wrong)
		look(memory[1] + 1);
	move(1, IBV_QPS_ERR);
	complete(come[1], IBV_WC_WR_FLUSH_ERR);
	must(memory[1][4095] == 7, "what was there");
	move(1, IBV_QPS_RESET);
	move(0, IBV_QPS_RESET);
}

static void child_reads(bool wrong)
{
	pid_t child;
	int status;

	receive(1, memory[1], BYTES, mr[1]);
	child = fork();
	if (!child) {
		for (int i = 0; i < BYTES; i += 100)
			change(memory[1] + i);
		_exit(0);
	}
	if (wrong)
		look(memory[1] + 99);
	must(waitpid(child, &status, 0) == child && !status, "the child");
	move(1, IBV_QPS_RESET);
	change(memory[1]);
}

/* One thread posts, the other one polls: completions order them, and nothing else. */
static void *post(void *wrong)
{
	for (int i = 0; i < 20; i++) {
		memset(memory[0], i, 700);
		request(0, IBV_WR_SEND, memory[0], 700);
		if (wrong)
			change(memory[0] + 650);
		complete(sent[0], IBV_WC_SUCCESS);
		complete(come[0], IBV_WC_SUCCESS);
		must(memory[0][BYTES - 1] == i, "the response");
		if (i < 19)
			receive(0, memory[0] + 4096, 4096, mr[0]);
	}
	return NULL;
}

static void two_threads(bool wrong)
{
	pthread_t thread;

	receive(0, memory[0] + 4096, 4096, mr[0]);
	receive(1, memory[1], BYTES, mr[1]);
	must(!pthread_create(&thread, NULL, post, wrong ? &thread : NULL), "a thread");
	for (int i = 0; i < 20; i++) {
		complete(come[1], IBV_WC_SUCCESS);
		must(memory[1][0] == i, "the request");
		memset(memory[1], i, BYTES);
		if (i < 19)
			receive(1, memory[1], 4095, mr[1]);
		request(1, IBV_WR_SEND, memory[1] + 4096, 4096);
		complete(sent[1], IBV_WC_SUCCESS);
	}
	pthread_join(thread, NULL);
}

/* The peer's thread looks before a message says that all is there. The first word may be polled. */
static void *look_at_written(void *wrong)
{
	const time_t end = time(NULL) + SECONDS;

	while (!__atomic_load_n((uint64_t *)memory[1], __ATOMIC_RELAXED) && time(NULL) < end)
		nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	if (wrong)
		look(memory[1] + 999);
	complete(come[1], IBV_WC_SUCCESS);
	look(memory[1] + 999);
	change(memory[1] + 999);
	return NULL;
}

static void written_by_peer(bool wrong)
{
	struct ibv_sge word = { (uintptr_t)memory[0], 8, mr[0]->lkey };
	struct ibv_send_wr *bad,
	        wr = { .sg_list = &word, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };
	pthread_t thread;

	wr.wr.rdma.remote_addr = (uintptr_t)memory[1];
	wr.wr.rdma.rkey = mr[1]->rkey;
	memory[0][0] = 1;
	receive(1, memory[1] + 4096, 4096, mr[1]);
	must(!pthread_create(&thread, NULL, look_at_written, wrong ? &thread : NULL), "a thread");
	word.addr += 8, wr.wr.rdma.remote_addr += 8, word.length = 1000;
	must(!ibv_post_send(qp[0], &wr, &bad), "ibv_post_send");
	word.addr -= 8, wr.wr.rdma.remote_addr -= 8, word.length = 8;
	must(!ibv_post_send(qp[0], &wr, &bad), "ibv_post_send");
	request(0, IBV_WR_SEND, memory[0], 8);
	complete(sent[0], IBV_WC_SUCCESS);
	pthread_join(thread, NULL);
}

/* The peer's thread adds to what is added to by the card. */
static void *add_at_peer(void *at)
{
	change(at);
	return at;
}

static void changed_by_atomic(bool wrong)
{
	pthread_t thread;

	request(0, IBV_WR_ATOMIC_FETCH_AND_ADD, memory[0] + 64, 8);
	if (wrong)
		must(!pthread_create(&thread, NULL, add_at_peer, memory[1]), "a thread");
	complete(sent[0], IBV_WC_SUCCESS);
	if (!wrong)
		must(!pthread_create(&thread, NULL, add_at_peer, memory[1]), "a thread");
	pthread_join(thread, NULL);
}

/* ---- */

static const struct {
	const char *name, *found_by;
	void (*make)(bool wrong);
} programs[] = {
	{ "receive-read-early", "atv", receive_read_early },
	{ "second-receive-read-early", "atv", second_receive_read_early },
	{ "read-read-early", "atv", read_read_early },
	{ "read-written-early", "atv", read_written_early },
	{ "atomic-read-early", "atv", atomic_read_early },
	{ "sent-by-thread", "t", sent_by_thread },
	{ "neighbours", "atv", neighbours },
	{ "undefined", "v", undefined },
	{ "queue-ended", "atv", queue_ended },
	{ "child-reads", "atv", child_reads },
	{ "two-threads", "t", two_threads },
	{ "written-by-peer", "t", written_by_peer },
	{ "changed-by-atomic", "t", changed_by_atomic },
};

static void connect_to(int at)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
		                 .port_num = 1,
		                 .qp_access_flags = ACCESS,
		                 .path_mtu = IBV_MTU_1024,
		                 .dest_qp_num = qp[!at]->qp_num,
		                 .ah_attr = { .dlid = port.lid, .port_num = 1 },
		                 .max_rd_atomic = 1,
		                 .max_dest_rd_atomic = 1,
		                 .min_rnr_timer = 12,
		                 .timeout = 18,
		                 .retry_cnt = 7,
		                 .rnr_retry = 7 };

	must(!qp_to_init(qp[at], &a), "INIT");
	must(!qp_to_rtr(qp[at], &a), "RTR");
	must(!qp_to_rts(qp[at], &a), "RTS");
}

static void begin(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	context = ibv_open_device(list[0]);
	pd = ibv_alloc_pd(context);
	must(pd && !ibv_query_port(context, 1, &port), "the device");
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

		init.send_cq = sent[i] = ibv_create_cq(context, 8, NULL, NULL, 0);
		init.recv_cq = come[i] = ibv_create_cq(context, 8, NULL, NULL, 0);
		memory[i] = calloc(1, BYTES);
		mr[i] = ibv_reg_mr(pd, memory[i], BYTES, ACCESS);
		qp[i] = ibv_create_qp(pd, &init);
		must(mr[i] && qp[i], "objects");
	}
	ibv_free_device_list(list);
	for (int i = 0; i < 2; i++)
		connect_to(i);
}

static void end(void)
{
	for (int i = 0; i < 2; i++) {
		must(!ibv_destroy_qp(qp[i]) && !ibv_dereg_mr(mr[i]), "the end");
		must(!ibv_destroy_cq(sent[i]) && !ibv_destroy_cq(come[i]), "the queues' end");
		free(memory[i]);
	}
	must(!ibv_dealloc_pd(pd) && !ibv_close_device(context), "the device's end");
}

int main(int argc, char **argv)
{
	const bool wrong = argc == 3 && !strcmp(argv[1], "wrong");

	must(!ibv_fork_init(), "ibv_fork_init");
	for (unsigned i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		if (argc != 3 || (wrong && !strstr(programs[i].found_by, argv[2])))
			continue;
		fprintf(stderr, "begins: %s\n", programs[i].name);
		begin();
		programs[i].make(wrong);
		end();
	}
	fprintf(stderr, "begins: done\n");
	return 0;
}
