/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * engine SOCKET target | initiator: two programs that make the calls of Mooncake's transfer engine
 * in its order, with four HCAs a host. Memory is registered with each HCA, every HCA is connected
 * to every one of the peer's, and a transfer is cut into slices, which go over all of these pairs.
 * Four threads of the initiator write and read at once, and post slices as lists; a thread for each
 * HCA sleeps in epoll until a completion comes. The target does nothing meanwhile. Ends with 0 if
 * all that was read is what was written; prints how many slices each HCA has carried.
 */
#include "posix.h"

#include <infiniband/verbs.h>
#include <sys/epoll.h>

#include "pair.h"

enum {
	HCAS = 4,
	THREADS = 4,
	TRANSFERS = 6,
	SLICE = 65536,
	SLICES = 12, /* of the longest transfer */
	LIST = 4,    /* slices that are posted at once */
	ROOM = SLICE * SLICES,
	TIMEOUT = 14,
};

struct peer {
	uint64_t addr;
	uint32_t rkey[HCAS];
};

struct engine {
	struct ai_device hca[AI_MAX_DEVICES];
	struct ibv_comp_channel *channel[HCAS];
	struct ibv_qp *qp[HCAS][HCAS]; /* ours, the peer's */
	unsigned char *memory;         /* of each thread what it writes, and what it reads */
	struct ibv_mr *mr[HCAS];
	struct peer peer;
	int sock;
	atomic_uint under_way[THREADS], carried[HCAS];
	atomic_bool over;
};

/* With a completion queue that has a channel, which never blocks. */
static void add_channel(struct engine *e, int i)
{
	struct ai_device *d = &e->hca[i];
	struct ibv_gid_entry entry;

	AI_CHECK(!ibv_query_gid_ex(d->context, d->port, d->gid_index, &entry, 0));
	AI_CHECK(!memcmp(&entry.gid, &d->gid, sizeof(d->gid)));
	AI_CHECK(entry.gid_type == (d->attr.link_layer == IBV_LINK_LAYER_ETHERNET
	                                    ? IBV_GID_TYPE_ROCE_V2
	                                    : IBV_GID_TYPE_IB));
	AI_CHECK(!ibv_destroy_cq(d->cq));
	AI_CHECK(e->channel[i] = ibv_create_comp_channel(d->context));
	AI_CHECK(
	        !fcntl(e->channel[i]->fd, F_SETFL, fcntl(e->channel[i]->fd, F_GETFL) | O_NONBLOCK));
	AI_CHECK(d->cq = ibv_create_cq(d->context, 4 * AI_MAX_SENDS, NULL, e->channel[i], 0));
	AI_CHECK(!ibv_req_notify_cq(d->cq, 0));
}

static void prepare(struct engine *e)
{
	struct peer mine;
	struct ai_end ours[HCAS][HCAS], theirs[HCAS][HCAS];

	AI_CHECK(ai_find_devices(e->hca) == HCAS);
	AI_CHECK(e->memory = calloc(2 * THREADS, ROOM));
	mine.addr = (uintptr_t)e->memory;
	for (int i = 0; i < HCAS; i++) {
		add_channel(e, i);
		AI_CHECK(e->mr[i] = ibv_reg_mr(e->hca[i].pd, e->memory, (size_t)2 * THREADS * ROOM,
		                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		                                       IBV_ACCESS_REMOTE_READ));
		mine.rkey[i] = e->mr[i]->rkey;
		for (int k = 0; k < HCAS; k++) {
			e->qp[i][k] = ai_make_qp(&e->hca[i]);
			ours[i][k] = ai_end_of(e->qp[i][k], &e->hca[i]);
		}
	}
	ai_swap(e->sock, &mine, &e->peer, sizeof(mine));
	ai_swap(e->sock, ours, theirs, sizeof(ours));
	for (int i = 0; i < HCAS; i++)
		for (int k = 0; k < HCAS; k++)
			ai_connect_qp(e->qp[i][k], &e->hca[i], &theirs[k][i], TIMEOUT);
}

/* ---- a thread for each HCA */

struct worker {
	struct engine *e;
	int number;
};

/* All that there is. */
static void drain(struct engine *e, int hca)
{
	struct ibv_wc wc[16];
	int n;

	while ((n = ibv_poll_cq(e->hca[hca].cq, 16, wc)) > 0) {
		for (int i = 0; i < n; i++) {
			AI_CHECK(wc[i].status == IBV_WC_SUCCESS);
			atomic_fetch_sub(&e->under_way[wc[i].wr_id], 1);
		}
		atomic_fetch_add(&e->carried[hca], (unsigned)n);
	}
	AI_CHECK(!n);
}

static void *complete(void *arg)
{
	const struct worker *w = arg;
	struct ibv_comp_channel *channel = w->e->channel[w->number];
	struct epoll_event event = { .events = EPOLLIN };
	int fd = epoll_create1(EPOLL_CLOEXEC);

	AI_CHECK(fd >= 0 && !epoll_ctl(fd, EPOLL_CTL_ADD, channel->fd, &event));
	while (!atomic_load(&w->e->over)) {
		struct ibv_cq *cq;
		void *context;

		if (epoll_wait(fd, &event, 1, 50) != 1)
			continue;
		AI_CHECK(!ibv_get_cq_event(channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		AI_CHECK(!ibv_req_notify_cq(cq, 0));
		drain(w->e, w->number);
	}
	close(fd);
	return NULL;
}

/* ---- threads that transfer */

/* Slices of one transfer, as lists on the pairs of HCAs in turn, and waits for them. */
static void transfer(struct engine *e, int thread, unsigned bytes, enum ibv_wr_opcode opcode)
{
	size_t ours = (size_t)(2 * thread + (opcode == IBV_WR_RDMA_READ)) * ROOM;
	size_t theirs = (size_t)2 * (unsigned)thread * ROOM;
	unsigned slices = (bytes + SLICE - 1) / SLICE;

	atomic_fetch_add(&e->under_way[thread], slices);
	for (unsigned first = 0; first < slices; first += LIST) {
		int from = (int)(first / LIST + (unsigned)thread) % HCAS,
		    to = (from * 3 + (int)first) % HCAS;
		struct ibv_send_wr wr[LIST] = { 0 }, *bad;
		struct ibv_sge sge[LIST];
		unsigned n = 0;

		for (; n < LIST && first + n < slices; n++) {
			size_t at = (size_t)(first + n) * SLICE;

			sge[n] = (struct ibv_sge){ (uintptr_t)e->memory + ours + at,
				                   bytes - at < SLICE ? (uint32_t)(bytes - at)
				                                      : SLICE,
				                   e->mr[from]->lkey };
			wr[n] = (struct ibv_send_wr){ .wr_id = (uint64_t)thread,
				                      .opcode = opcode,
				                      .send_flags = IBV_SEND_SIGNALED,
				                      .sg_list = &sge[n],
				                      .num_sge = 1 };
			wr[n].wr.rdma.remote_addr = e->peer.addr + theirs + at;
			wr[n].wr.rdma.rkey = e->peer.rkey[to];
			if (n)
				wr[n - 1].next = &wr[n];
		}
		AI_CHECK(!ibv_post_send(e->qp[from][to], wr, &bad));
	}
	while (atomic_load(&e->under_way[thread]))
		nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

static void *work(void *arg)
{
	const struct worker *w = arg;
	unsigned char *written = w->e->memory + (size_t)2 * (unsigned)w->number * ROOM,
	              *read = written + ROOM;

	for (unsigned i = 0; i < TRANSFERS; i++) {
		unsigned bytes = ROOM - i * 100003, message = i * THREADS + (unsigned)w->number;

		for (size_t at = 0; at < bytes; at++)
			written[at] = ai_byte(message, at);
		memset(read, 0xee, ROOM);
		transfer(w->e, w->number, bytes, IBV_WR_RDMA_WRITE);
		memset(written, 0, bytes);
		transfer(w->e, w->number, bytes, IBV_WR_RDMA_READ);
		for (size_t at = 0; at < bytes; at++)
			AI_CHECK(read[at] == ai_byte(message, at));
		AI_CHECK(bytes == ROOM || read[bytes] == 0xee);
	}
	return NULL;
}

static void initiate(struct engine *e)
{
	struct worker workers[HCAS], callers[THREADS];
	pthread_t completing[HCAS], working[THREADS];

	for (int i = 0; i < HCAS; i++) {
		workers[i] = (struct worker){ e, i };
		AI_CHECK(!pthread_create(&completing[i], NULL, complete, &workers[i]));
	}
	for (int i = 0; i < THREADS; i++) {
		callers[i] = (struct worker){ e, i };
		AI_CHECK(!pthread_create(&working[i], NULL, work, &callers[i]));
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(working[i], NULL);
	atomic_store(&e->over, true);
	for (int i = 0; i < HCAS; i++) {
		pthread_join(completing[i], NULL);
		AI_CHECK(atomic_load(&e->carried[i]));
		printf("%s: %u slices\n", e->hca[i].name, atomic_load(&e->carried[i]));
	}
}

int main(int argc, char **argv)
{
	static struct engine e;
	int done = 0;

	AI_CHECK(argc == 3);
	e.sock = ai_meet(argv[1], !strcmp(argv[2], "target"));
	prepare(&e);
	if (!strcmp(argv[2], "initiator"))
		initiate(&e);
	ai_swap(e.sock, &done, &done, sizeof(done));
	return 0;
}
