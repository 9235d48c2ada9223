/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The traffic of both ends of a connection: see wire_traffic.h.
 */
#include "wire_traffic.h"
#include "base/pause.h"
#include "base/util.h"
#include "../qp_states.h"

#define DEPTH     16   /* requests under way */
#define RECEIVES  16   /* few: now and then the sender must wait for one */
#define SLOTS     64   /* that are written to, one after the other */
#define MOST      5000 /* bytes of one request */
#define WORDS     (MOST / 8)
#define KINDS     7
#define TURN      (SLOTS / 2 * KINDS) /* requests until a slot is written to again */
#define RECEIVE   (1ull << 63)        /* in wr_id */
#define GID_INDEX 1
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL)

enum kind { A_WRITE, A_READ, A_SEND, AN_ADD, A_WRITE_IMM, A_WORD, A_FLUSH };

/* Missing in older headers: annex A19. */
enum {
	WR_FLUSH = 14,
	WR_ATOMIC_WRITE = 15,
	ACCESS_FLUSH_GLOBAL = 1 << 8,
	EX_WITH_FLUSH = 1 << 11,
};

/* The memory that the other end reaches, and that messages are sent from: of the thread that has
 * called traffic_open().
 */
static _Thread_local struct memory {
	uint64_t counter;
	uint64_t word; /* the number of the last atomic WRITE, + 1 */
	uint64_t slot[SLOTS][WORDS];
	uint64_t constant[WORDS]; /* to read */
	uint64_t receive[RECEIVES][WORDS];
	uint64_t send[DEPTH][WORDS];
} * memory;

char traffic_name[64] = "traffic";

void traffic_check(bool ok, const char *what)
{
	if (!ok)
		err(EXIT_FAILURE, "%s: %s", traffic_name, what);
}

void traffic_wrong(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", traffic_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(EXIT_FAILURE);
}

uint64_t traffic_mix(uint64_t z)
{
	z += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* ---- requests and their contents ---- */

static enum kind kind_of(uint64_t i)
{
	return (enum kind)(i % KINDS);
}

/* Of a WRITE: the slot of its place, so that a later WRITE covers it. */
static unsigned slot_of(uint64_t i)
{
	return (unsigned)((i / KINDS * 2 + (kind_of(i) == A_WRITE_IMM)) % SLOTS);
}

static unsigned words_of(uint64_t i)
{
	const bool is_write = kind_of(i) == A_WRITE || kind_of(i) == A_WRITE_IMM;

	return 1 + (unsigned)(traffic_mix(is_write ? slot_of(i) : i + SLOTS) % WORDS);
}

/* Word @at of request @i of an end. The first one is its number. */
static uint64_t word_of(bool of_peer, uint64_t i, unsigned at)
{
	return at ? traffic_mix(i << 20 ^ (uint64_t)at << 1 ^ of_peer) : i + 1;
}

static uint64_t constant_word(bool of_peer, unsigned at)
{
	return word_of(of_peer, UINT32_MAX, at + 1);
}

/* Message @j that an end sends: its request. */
static uint64_t request_of_message(uint64_t j)
{
	return j / 2 * KINDS + (j % 2 ? A_WRITE_IMM : A_SEND);
}

static void expect_whole(const uint64_t *got, bool of_peer, uint64_t i, const char *what)
{
	for (unsigned at = 0; at < words_of(i); at++)
		if (got[at] != word_of(of_peer, i, at))
			traffic_wrong("%s %lu: word %u of %u is 0x%lx", what, i, at, words_of(i),
			              got[at]);
}

/* The last WRITE to a slot among the first @n requests, + 1. 0: there is none. */
static uint64_t last_of(unsigned s, uint64_t n)
{
	const uint64_t first = s / 2 * KINDS + (s % 2 ? A_WRITE_IMM : A_WRITE);

	return n > first ? first + (n - 1 - first) / TURN * TURN + 1 : 0;
}

/* WRITE @i to a slot is whole, or if it @may_be_a_part there is the rest of the one before. */
static void expect_write(bool of_peer, uint64_t i, bool may_be_a_part)
{
	const uint64_t *slot = memory->slot[slot_of(i)];
	unsigned at = 0;

	while (at < words_of(i) && slot[at] == word_of(of_peer, i, at))
		at++;
	if (at < words_of(i) && !may_be_a_part)
		traffic_wrong("WRITE %lu: word %u is 0x%lx", i, at, slot[at]);
	for (; at < words_of(i); at++)
		if (slot[at] != (i < TURN ? 0 : word_of(of_peer, i - TURN, at)))
			traffic_wrong("a part of WRITE %lu: word %u is 0x%lx", i, at, slot[at]);
}

/* The slots are what the first @n of the other end's requests have made of them; or if @n is less
 * than @most, up to so many, the last WRITE of them perhaps in part. */
static void expect_slots(bool of_peer, uint64_t n, uint64_t most)
{
	uint64_t last = n;

	for (unsigned s = 0; s < SLOTS; s++)
		last = memory->slot[s][0] > last ? memory->slot[s][0] : last;
	if (last > most)
		traffic_wrong("request %lu has come, of %lu", last - 1, most);
	for (unsigned s = 0; s < SLOTS; s++) {
		const uint64_t it = last_of(s, last);

		if (memory->slot[s][0] != it)
			traffic_wrong("slot %u is of WRITE %lu, not %lu", s, memory->slot[s][0] - 1,
			              it - 1);
		if (it)
			expect_write(of_peer, it - 1, it > n && it == last);
	}
}

/* Adds among the first @n requests. */
static uint64_t adds_in(uint64_t n)
{
	return (n + KINDS - 1 - AN_ADD) / KINDS;
}

/* The word that the last atomic WRITE among the first @n requests has left. */
static uint64_t word_after(uint64_t n)
{
	return n > A_WORD ? A_WORD + (n - 1 - A_WORD) / KINDS * KINDS + 1 : 0;
}

/* All that the other end has done, as expect_slots(). */
void traffic_expect(bool of_peer, uint64_t n, uint64_t most)
{
	expect_slots(of_peer, n, most);
	if (memory->counter < adds_in(n) || memory->counter > adds_in(most))
		traffic_wrong("the counter is %lu, by %lu to %lu requests", memory->counter, n,
		              most);
	if (memory->word < word_after(n) || memory->word > word_after(most))
		traffic_wrong("the word is %lu, by %lu to %lu requests", memory->word, n, most);
	for (unsigned at = 0; at < WORDS; at++)
		if (memory->constant[at] != constant_word(!of_peer, at))
			traffic_wrong("what is to be read was written to");
}

/* ---- queue pairs ---- */

void traffic_open_device(struct traffic *e)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	traffic_check(list && list[0], "ibv_get_device_list");
	e->context = ibv_open_device(list[0]);
	traffic_check(e->context, "ibv_open_device");
	ibv_free_device_list(list);
	e->pd = ibv_alloc_pd(e->context);
	traffic_check(e->pd, "ibv_alloc_pd");
	e->channel = ibv_create_comp_channel(e->context);
	traffic_check(e->channel, "ibv_create_comp_channel");
	traffic_check(!ibv_query_gid(e->context, 1, GID_INDEX, &e->here.gid), "ibv_query_gid");
}

static void prepare_memory(struct traffic *e)
{
	memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	              -1, 0);
	traffic_check(memory != MAP_FAILED, "mmap");
	for (unsigned at = 0; at < WORDS; at++)
		memory->constant[at] = constant_word(e->is_peer, at);
	e->mr = ibv_reg_mr(e->pd, memory, sizeof(*memory), ACCESS);
	traffic_check(e->mr, "ibv_reg_mr");
}

/* Whether a call has failed, with errno, as the queue pair or the device is no more. */
static bool refused(struct traffic *e, const char *what)
{
	if (!errno)
		return false;
	traffic_check(e->failed_ns || (e->may_lose_device && errno == EIO), what);
	if (!e->failed_ns)
		e->failed_ns = base_now_ns();
	return true;
}

static void post_receive(struct traffic *e, uint64_t i)
{
	struct ibv_sge sge = { (uintptr_t)memory->receive[i % RECEIVES], MOST, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = RECEIVE | i, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(e->qp, &wr, &bad);
	if (refused(e, "ibv_post_recv"))
		return;
	e->receives++;
}

void traffic_open(struct traffic *e)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_RC,
		                            .sq_sig_all = 1,
		                            .cap = { DEPTH, RECEIVES, 1, 1, 0 },
		                            .pd = e->pd,
		                            .comp_mask = IBV_QP_INIT_ATTR_PD |
		                                         IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		                            .send_ops_flags = EX_WITH_FLUSH };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		                    .port_num = 1,
		                    .qp_access_flags = ACCESS };

	prepare_memory(e);
	e->cq = init.send_cq = init.recv_cq =
	        ibv_create_cq(e->context, DEPTH + RECEIVES, NULL, e->channel, 0);
	traffic_check(e->cq, "ibv_create_cq");
	e->qp = ibv_create_qp_ex(e->context, &init);
	traffic_check(e->qp, "ibv_create_qp_ex");
	traffic_check(!qp_to_init(e->qp, &attr), "INIT");
	for (uint64_t i = 0; i < RECEIVES; i++)
		post_receive(e, i);
	e->here.qpn = e->qp->qp_num;
	e->here.memory = (uintptr_t)memory;
	e->here.rkey = e->mr->rkey;
}

void traffic_connect(struct traffic *e)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
		                    .path_mtu = IBV_MTU_1024,
		                    .dest_qp_num = e->there.qpn,
		                    .rq_psn = 0xfffff0,
		                    .max_dest_rd_atomic = DEPTH,
		                    .min_rnr_timer = 3,
		                    .timeout = e->timeout,
		                    .retry_cnt = e->retries,
		                    .rnr_retry = 7, /* for ever */
		                    .sq_psn = 0xfffff0,
		                    .max_rd_atomic = DEPTH };

	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = e->there.gid;
	attr.ah_attr.grh.sgid_index = GID_INDEX;
	attr.ah_attr.grh.hop_limit = 64;
	traffic_check(!qp_to_rtr(e->qp, &attr), "RTR");
	traffic_check(!qp_to_rts(e->qp, &attr), "RTS");
}

void traffic_close(struct traffic *e)
{
	traffic_check(!ibv_destroy_qp(e->qp), "ibv_destroy_qp");
	traffic_check(!ibv_destroy_cq(e->cq), "ibv_destroy_cq");
	traffic_check(!ibv_dereg_mr(e->mr), "ibv_dereg_mr");
	munmap(memory, sizeof(*memory));
}

/* ---- traffic ---- */

/* ibv_wr_flush() lies behind the end of struct ibv_qp_ex of older headers. */
static int post_flush(struct traffic *e, const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(e->qp);
	void (*flush)(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t);

	memcpy(&flush, (char *)ex + offsetof(struct ibv_qp_ex, wr_abort) + 2 * sizeof(void *),
	       sizeof(flush));
	ibv_wr_start(ex);
	ex->wr_id = wr->wr_id;
	ex->wr_flags = 0;
	flush(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, sizeof(memory->slot[0]), 1, 0);
	return ibv_wr_complete(ex);
}

static void post_next(struct traffic *e)
{
	const uint64_t i = e->posted;
	uint64_t *here = memory->send[i % DEPTH], there = e->there.memory;
	struct ibv_sge sge = { (uintptr_t)here, words_of(i) * 8, e->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;
	uint64_t at = offsetof(struct memory, slot) + slot_of(i) * sizeof(memory->slot[0]);

	static const unsigned opcodes[KINDS] = {
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ,
		IBV_WR_SEND,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		WR_ATOMIC_WRITE,
		WR_FLUSH,
	};

	wr.opcode = (enum ibv_wr_opcode)opcodes[kind_of(i)];
	wr.imm_data = htonl((uint32_t)i);
	if (kind_of(i) == A_READ)
		at = offsetof(struct memory, constant);
	if (kind_of(i) == A_WORD) {
		at = offsetof(struct memory, word);
		sge.length = 8; /* its number, + 1 */
	}
	wr.wr.rdma.remote_addr = there + at;
	wr.wr.rdma.rkey = e->there.rkey;
	if (kind_of(i) == A_READ || kind_of(i) == AN_ADD)
		memset(here, 0x55, MOST);
	else
		for (unsigned w = 0; w < words_of(i); w++)
			here[w] = word_of(e->is_peer, i, w);
	if (kind_of(i) == AN_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = there + offsetof(struct memory, counter);
		wr.wr.atomic.rkey = e->there.rkey;
		wr.wr.atomic.compare_add = 1;
	}
	e->posted++;
	if (e->log) /* first: it may die before the next instruction */
		atomic_store(&e->log->posted, e->posted);
	errno = kind_of(i) == A_FLUSH ? post_flush(e, &wr) : ibv_post_send(e->qp, &wr, &bad);
	if (refused(e, "ibv_post_send"))
		e->posted--;
}

static void check_done(struct traffic *e, const struct ibv_wc *wc)
{
	const uint64_t i = e->done, *here = memory->send[i % DEPTH];

	if (wc->wr_id != i)
		traffic_wrong("request %lu is done, %lu was next", wc->wr_id, i);
	if (kind_of(i) == AN_ADD && here[0] != adds_in(i))
		traffic_wrong("add %lu finds %lu, not %lu", i, here[0], adds_in(i));
	for (unsigned at = 0; kind_of(i) == A_READ && at < words_of(i); at++)
		if (here[at] != constant_word(!e->is_peer, at))
			traffic_wrong("READ %lu: word %u is 0x%lx", i, at, here[at]);
}

static void check_message(struct traffic *e, const struct ibv_wc *wc)
{
	const uint64_t j = e->received, i = request_of_message(j);
	const bool is_write = kind_of(i) == A_WRITE_IMM;

	if (wc->opcode != (is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		traffic_wrong("message %lu has opcode %d", j, wc->opcode);
	if (wc->byte_len != words_of(i) * 8)
		traffic_wrong("message %lu has %u bytes", j, wc->byte_len);
	if (is_write && ntohl(wc->imm_data) != i)
		traffic_wrong("message %lu says %u", j, ntohl(wc->imm_data));
	if (!is_write)
		expect_whole(memory->receive[wc->wr_id % RECEIVES], !e->is_peer, i, "SEND");
	else if (memory->slot[slot_of(i)][0] == i + 1)
		expect_whole(memory->slot[slot_of(i)], !e->is_peer, i, "WRITE with immediate");
	else if (memory->slot[slot_of(i)][0] < i + 1)
		traffic_wrong("WRITE %lu is announced, and not there", i);
}

/* Receives are flushed as well, and may be polled first. */
static void note_failure(struct traffic *e, enum ibv_wc_status status)
{
	if (!e->failed_ns)
		e->failed_ns = base_now_ns();
	if (status == IBV_WC_WR_FLUSH_ERR)
		return;
	if (e->status)
		traffic_wrong("%s after %s", ibv_wc_status_str(status),
		              ibv_wc_status_str(e->status));
	e->status = status;
}

static void take(struct traffic *e, const struct ibv_wc *wc)
{
	const bool is_receive = wc->wr_id & RECEIVE;

	if (is_receive)
		e->receives--;
	if (wc->status) {
		note_failure(e, wc->status);
		e->flushed += !is_receive;
		return;
	}
	if (is_receive) {
		check_message(e, wc);
		e->received++;
		post_receive(e, wc->wr_id & ~RECEIVE);
		return;
	}
	if (e->flushed)
		traffic_wrong("request %lu is done after one that failed", wc->wr_id);
	check_done(e, wc);
	e->done++;
	if (e->log)
		atomic_store(&e->log->done, e->done);
}

/* If it stalls it says whether it has been polling all the time: machines stand still, too. */
static void expect_progress(struct traffic *e)
{
	const uint64_t now = base_now_ns();
	const uint64_t away = e->looked_ns ? now - e->looked_ns : 0;

	e->away_ns = away > e->away_ns ? away : e->away_ns;
	if (e->found)
		e->found_ns = now;
	e->found = false;
	e->looked_ns = now;
	if (now - e->began_ns > TRAFFIC_STALL_NS)
		traffic_wrong(
		        "stalls: %lu posted, %lu done, %lu flushed, %lu received, %lu receives are "
		        "left; the last poll that found something is %lu ms ago, and once it did "
		        "not look for %lu ms",
		        e->posted, e->done, e->flushed, e->received, e->receives,
		        (now - e->found_ns) / 1000000, e->away_ns / 1000000);
}

/* Whether the program is to do something else than to poll: the other one has said something. */
bool traffic_look(struct traffic *e)
{
	struct ibv_wc wc[8];
	struct pollfd fds[2] = { { e->other, POLLIN, 0 }, { e->channel->fd, POLLIN, 0 } };
	struct ibv_cq *cq;
	struct base_pause pause = { 0 };
	void *context;
	int n = ibv_poll_cq(e->cq, 8, wc);

	traffic_check(n >= 0, "ibv_poll_cq");
	for (int i = 0; i < n; i++)
		take(e, &wc[i]);
	if (n)
		e->found = true;
	if (n || (!e->sleeps && ++e->looks % 64))
		return false;
	expect_progress(e);
	if (e->sleeps) {
		errno = ibv_req_notify_cq(e->cq, 0);
		e->sleeps = !refused(e, "ibv_req_notify_cq");
		n = ibv_poll_cq(e->cq, 1, wc);
		if (n > 0)
			take(e, wc);
		if (n > 0 || !e->sleeps)
			return false;
	} else {
		base_pause_sleep(&pause);
	}
	if (poll(fds, 2, e->sleeps ? 1000 : 0) < 0) {
		traffic_check(errno == EINTR, "poll");
		return false;
	}
	if (fds[1].revents) {
		traffic_check(!ibv_get_cq_event(e->channel, &cq, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
	return fds[0].revents;
}

uint64_t traffic_messages_in(uint64_t n)
{
	return n / KINDS * 2 + (n % KINDS > A_SEND) + (n % KINDS > A_WRITE_IMM);
}

bool traffic_hear(int fd, void *bytes, size_t length)
{
	return recv(fd, bytes, length, MSG_WAITALL) == (ssize_t)length;
}

bool traffic_tell(int fd, const void *bytes, size_t length)
{
	return send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

bool traffic_meet(struct traffic *e)
{
	return traffic_tell(e->other, &e->here, sizeof(e->here)) &&
	       traffic_hear(e->other, &e->there, sizeof(e->there));
}

static bool is_flushed(const struct traffic *e)
{
	return e->failed_ns && e->done + e->flushed == e->posted && !e->receives;
}

/* Sends until the other one tells how much it has sent, or @ends says so, or a request fails. */
void traffic_run(struct traffic *e, uint64_t *theirs, const _Atomic uint32_t *ends)
{
	bool heard = false;

	while (!e->failed_ns && !(ends && atomic_load(ends))) {
		while (!e->failed_ns && e->posted - e->done < DEPTH)
			post_next(e);
		if (!traffic_look(e) || e->is_gone)
			continue;
		heard = traffic_hear(e->other, theirs, sizeof(*theirs));
		if (heard)
			break;
		e->is_gone = true; /* it died; the queue pair is to tell */
	}
	while (!e->failed_ns && e->done < e->posted)
		traffic_look(e);
	while (!e->failed_ns && heard && e->received < traffic_messages_in(*theirs))
		traffic_look(e);
	while (e->failed_ns && !is_flushed(e))
		traffic_look(e);
}
