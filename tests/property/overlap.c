/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random SENDs, WRITEs, READs and atomics to one piece of memory, in which the receives lie, too,
 * against a model that executes them in order, no matter which end polls when. A request waits
 * until a receive is posted, and those behind it do.
 *
 * UMBEL_PROPERTY_STEPS, UMBEL_PROPERTY_SEED: other than usual.
 */
#include "overlap.h"

#define STEPS   15000u
#define LONGEST 200u /* bytes of a message; receives have as many or more */
#define SLOT    AREA /* of the requester's memory, for each request */

struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	uint32_t queue;
	uint8_t expected[SLOT]; /* what it brings */
};

struct expected {
	uint64_t wr_id;
	uint32_t bytes;
	enum ibv_wc_opcode opcode;
};

struct queue {
	struct receive posted[DEPTH]; /* and not used */
	unsigned head, tail;
	struct expected arrived[DEPTH]; /* and not polled */
	unsigned polled, received;
};

static struct {
	enum kind kind;
	bool elsewhere;
	struct command address;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory; /* DEPTH slots */
	/* the model */
	uint8_t area[AREA];
	struct request request[DEPTH];
	unsigned completed, executed, posted;
	struct queue queue[QUEUES];
	uint64_t next_receive;
} m;

static uint64_t seed, chance_state;

static uint32_t chance(uint32_t n)
{
	chance_state = chance_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(chance_state >> 33) % n;
}

static unsigned number_of(const char *name, unsigned usual)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 0) : usual;
}

static struct command command(enum what what, uint32_t queue)
{
	return (struct command){ .what = what, .queue = queue };
}

/* ---- the model ---- */

static uint8_t *slot_of(unsigned request)
{
	return m.memory + request % DEPTH * SLOT;
}

static bool needs_receive(const struct request *q)
{
	return q->wr.opcode == IBV_WR_SEND || q->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void use_receive(const struct request *q, const uint8_t *message)
{
	struct queue *to = &m.queue[q->queue];
	const struct receive *rcv = &to->posted[to->head++ % DEPTH];
	uint32_t left = q->wr.opcode == IBV_WR_SEND ? q->sge.length : 0;

	to->arrived[to->received++ % DEPTH] = (struct expected){
		.wr_id = rcv->wr_id,
		.bytes = q->sge.length,
		.opcode = q->wr.opcode == IBV_WR_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM
	};
	for (unsigned i = 0; i < rcv->n && left; i++) {
		uint32_t part = rcv->entry[i].length < left ? rcv->entry[i].length : left;

		memcpy(m.area + rcv->entry[i].at, message, part);
		message += part;
		left -= part;
	}
}

static void execute(struct request *q, unsigned number)
{
	const uint8_t *here = slot_of(number);
	uint64_t at = q->wr.wr.rdma.remote_addr - m.address.addr, word;

	if (needs_receive(q))
		use_receive(q, here);
	switch (q->wr.opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		memcpy(m.area + at, here, q->sge.length);
		break;
	case IBV_WR_RDMA_READ:
		memcpy(q->expected, m.area + at, q->sge.length);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		at = q->wr.wr.atomic.remote_addr - m.address.addr;
		memcpy(q->expected, m.area + at, sizeof(word));
		memcpy(&word, m.area + at, sizeof(word));
		word += q->wr.wr.atomic.compare_add;
		memcpy(m.area + at, &word, sizeof(word));
		break;
	default:
		break;
	}
}

/* Executes what can be. */
static void go_on(void)
{
	while (m.executed != m.posted) {
		struct request *q = &m.request[m.executed % DEPTH];
		const struct queue *to = &m.queue[q->queue];

		if (needs_receive(q) && to->head == to->tail)
			return;
		execute(q, m.executed++);
	}
}

/* ---- the requester ---- */

static void check_completion(const struct ibv_wc *wc)
{
	const struct request *q = &m.request[m.completed % DEPTH];

	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->wr_id, m.completed);
	if (q->wr.opcode == IBV_WR_RDMA_READ || q->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		assert_memory_equal(slot_of(m.completed), q->expected, q->sge.length);
	m.completed++;
}

/* Until all is done that can be. */
static void catch_up(void)
{
	while (m.completed != m.executed) {
		struct ibv_wc wc = lab_complete(m.cq, IBV_WC_SUCCESS);

		check_completion(&wc);
	}
}

static void describe_remote(struct request *q, uint32_t at)
{
	if (q->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		q->sge.length = sizeof(uint64_t);
		q->wr.wr.atomic.remote_addr = m.address.addr + at / 8 * 8;
		q->wr.wr.atomic.rkey = m.address.rkey;
		q->wr.wr.atomic.compare_add = chance(1 << 20);
	} else {
		q->wr.wr.rdma.remote_addr = m.address.addr + at;
		q->wr.wr.rdma.rkey = m.address.rkey;
	}
}

static void post_request(enum ibv_wr_opcode opcode, uint32_t bytes, uint32_t at)
{
	struct request *q = &m.request[m.posted % DEPTH];
	uint8_t *data = slot_of(m.posted);
	struct ibv_send_wr *bad;

	memset(q, 0, sizeof(*q));
	q->queue = m.kind == XRC ? chance(QUEUES) : 0;
	q->sge = (struct ibv_sge){ .addr = (uintptr_t)data, .length = bytes, .lkey = m.mr->lkey };
	q->wr = (struct ibv_send_wr){ .wr_id = m.posted,
		                      .sg_list = &q->sge,
		                      .num_sge = 1,
		                      .opcode = opcode,
		                      .send_flags = IBV_SEND_SIGNALED };
	if (opcode != IBV_WR_SEND)
		describe_remote(q, at);
	q->wr.qp_type.xrc.remote_srqn = m.address.srqn[q->queue];
	for (uint32_t i = 0; i < q->sge.length; i++)
		data[i] = (uint8_t)chance(256);
	if (opcode != IBV_WR_RDMA_READ && opcode != IBV_WR_ATOMIC_FETCH_AND_ADD &&
	    q->sge.length <= 64 && chance(2))
		q->wr.send_flags |= IBV_SEND_INLINE;
	m.posted++;
	go_on(); /* before the memory that it brings something to is written */
	assert_int_equal(ibv_post_send(m.qp, &q->wr, &bad), 0);
}

static void request_something(void)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,
		IBV_WR_SEND,
		IBV_WR_SEND,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	enum ibv_wr_opcode opcode =
	        opcodes[chance(m.kind == UC ? 5 : (uint32_t)LAB_ARRAY(opcodes))];
	uint32_t bytes = 1 + chance(chance(2) ? 64 : LONGEST);

	if (m.posted - m.completed == DEPTH)
		return;
	if (m.kind == UC && m.queue[0].head == m.queue[0].tail) /* it would be lost */
		opcode = IBV_WR_RDMA_WRITE;
	post_request(opcode, bytes, chance(AREA - LONGEST));
}

/* ---- the responder ---- */

static void post_receive(void)
{
	struct command c = command(POST, m.kind == XRC ? chance(QUEUES) : 0);
	struct queue *to = &m.queue[c.queue];
	struct receive *rcv = &to->posted[to->tail % DEPTH];

	if (to->tail - to->polled == DEPTH)
		return;
	rcv->wr_id = m.next_receive++;
	rcv->n = 1 + chance(2) * chance(ENTRIES);
	for (unsigned i = 0; i < rcv->n; i++) {
		rcv->entry[i].length = i + 1 < rcv->n ? 1 + chance(50) : LONGEST;
		rcv->entry[i].at = chance(AREA - LONGEST);
	}
	c.receive = *rcv;
	to->tail++;
	go_on();
	overlap_do(m.elsewhere, &c);
}

static void poll_receive(void)
{
	struct command c = command(POLL, m.kind == XRC ? chance(QUEUES) : 0);
	struct queue *from = &m.queue[c.queue];
	const struct expected *e = &from->arrived[from->polled % DEPTH];

	catch_up();
	overlap_do(m.elsewhere, &c);
	assert_int_equal(c.n, from->polled != from->received);
	if (!c.n)
		return;
	assert_int_equal(c.wc.status, IBV_WC_SUCCESS);
	assert_int_equal(c.wc.wr_id, e->wr_id);
	assert_int_equal(c.wc.byte_len, e->bytes);
	assert_int_equal(c.wc.opcode, e->opcode);
	from->polled++;
}

/* All that has come is polled; then the memory is as the model has it. */
static void poll_all_and_compare(void)
{
	struct command c = command(GET, 0);
	bool more;

	do {
		more = false;
		for (int i = 0; i < QUEUES; i++)
			more |= m.queue[i].polled != m.queue[i].received;
		poll_receive();
	} while (more);
	overlap_do(m.elsewhere, &c);
	assert_memory_equal(c.memory, m.area, AREA);
}

/* The requester reads all: it is as the model has it, though not all is polled. */
static void read_and_compare(void)
{
	if (m.kind == UC || m.posted - m.completed == DEPTH) {
		poll_all_and_compare();
		return;
	}
	post_request(IBV_WR_RDMA_READ, AREA, 0);
	catch_up();
}

/* Receives are in another region from now on; the one before goes, though messages have come there
 * that nobody has polled. */
static void change_region(void)
{
	struct command c = command(REGISTER, 0);

	for (int i = 0; i < QUEUES; i++)
		if (m.queue[i].head != m.queue[i].tail)
			return;
	catch_up();
	overlap_do(m.elsewhere, &c);
}

/* ---- programs ---- */

static void make(const struct command *plan)
{
	const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_XRC_SEND, IBV_QPT_UC };
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = lab_pd(context);
	struct ibv_qp_init_attr init = {
		.qp_type = types[plan->kind],
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1, .max_inline_data = 64 }
	};
	struct command c = *plan;

	memset(&m, 0, sizeof(m));
	m.kind = plan->kind;
	m.elsewhere = plan->peer;
	overlap_do(m.elsewhere, &c);
	m.address = c;
	m.cq = init.send_cq = init.recv_cq = lab_cq(context, 4 * DEPTH, NULL);
	m.qp = lab_qp(pd, &init);
	m.memory = calloc(DEPTH, SLOT);
	lab_undo(free, m.memory);
	m.mr = lab_mr(pd, m.memory, DEPTH * SLOT);
	lab_connect(m.qp, c.qpn, lab_open(2), ACCESS);
	c.what = CONNECT;
	c.peer = m.qp->qp_num;
	overlap_do(m.elsewhere, &c);
}

static void step(void)
{
	uint32_t n = chance(100);

	if (n < 45)
		request_something();
	else if (n < 70)
		post_receive();
	else if (n < 90)
		poll_receive();
	else if (n < 96)
		read_and_compare();
	else if (n < 98)
		change_region();
	else
		poll_all_and_compare();
}

static void everything_takes_effect_in_order(void **state)
{
	const struct command *plan = *state;
	unsigned steps = number_of("UMBEL_PROPERTY_STEPS", STEPS);

	print_message("UMBEL_PROPERTY_SEED=%llu\n", (unsigned long long)seed);
	chance_state = seed;
	make(plan);
	for (unsigned i = 0; i < steps; i++)
		step();
	while (m.executed != m.posted)
		post_receive(), poll_receive();
	catch_up();
	poll_all_and_compare();
}

static int clean_up(void **state)
{
	struct command c = command(CLOSE, 0);

	lab_clean_up(state);
	if (m.elsewhere)
		overlap_do(true, &c);
	return 0;
}

int main(void)
{
	static struct command plan[] = {
		{ .what = OPEN, .kind = RC, .peer = 0 },
		{ .what = OPEN, .kind = RC, .peer = 1 },
		{ .what = OPEN, .kind = RC, .peer = 1, .far = true },
		{ .what = OPEN, .kind = SRQ, .peer = 0 },
		{ .what = OPEN, .kind = SRQ, .peer = 1 },
		{ .what = OPEN, .kind = SRQ, .peer = 1, .far = true },
		{ .what = OPEN, .kind = XRC, .peer = 0 },
		{ .what = OPEN, .kind = XRC, .peer = 1 },
		{ .what = OPEN, .kind = XRC, .peer = 1, .far = true },
		{ .what = OPEN, .kind = UC, .peer = 0 },
		{ .what = OPEN, .kind = UC, .peer = 1 },
		{ .what = OPEN, .kind = UC, .peer = 1, .far = true },
	};
	static const char *const names[] = { "rc",  "rc__elsewhere",  "rc__far",
		                             "srq", "srq__elsewhere", "srq__far",
		                             "xrc", "xrc__elsewhere", "xrc__far",
		                             "uc",  "uc__elsewhere",  "uc__far" };
	struct CMUnitTest tests[LAB_ARRAY(plan)];

	overlap_begin();
	seed = number_of("UMBEL_PROPERTY_SEED", (unsigned)time(NULL));
	for (size_t i = 0; i < LAB_ARRAY(plan); i++)
		tests[i] = (struct CMUnitTest){ .name = names[i],
			                        .test_func = everything_takes_effect_in_order,
			                        .teardown_func = clean_up,
			                        .initial_state = &plan[i] };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
