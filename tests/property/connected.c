/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random programs of all operations between two RC queue pairs, against a simple model: the bytes
 * of both memories, which requests and receives complete, in which order and how. Some requests are
 * wrong; then both ends are reset and connected again.
 *
 * The model executes a request when all before it are executed and, if it needs one, a receive is
 * posted. UMBEL_PROPERTY_STEPS, UMBEL_PROPERTY_SEED: other than usual.
 */
#include "verbs/peer_lab.h"

#define BYTES 32768u
#define DEPTH 16
#define STEPS 50000
/* Behind BYTES that requests use, each receive has as much for itself until it is polled: before
 * that, its memory is nobody's business. */
#define ALL (BYTES * (DEPTH + 1))

/* A request or a receive, as the model has it. */
struct item {
	struct lab_work w;
	uint8_t inline_data[64];
};

struct fifo {
	struct item item[DEPTH];
	unsigned head, tail;
};

struct expected {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t byte_len, imm;
	uint64_t at;       /* of a receive: its memory */
	unsigned sq_after; /* requests that have left the send queue once it is polled */
};

struct completions {
	struct expected item[4 * DEPTH];
	unsigned head, tail;
};

struct side {
	struct lab_peer *peer;
	uint8_t memory[ALL];
	struct fifo sends, receives;
	struct completions sent, received;
	unsigned posted, left; /* requests posted, and those that have left the send queue */
	bool failed;
};

static struct side side[2];
static uint64_t seed, chance_state, next_wr_id;

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

/* ---- the model ---- */

static struct item *first(struct fifo *f)
{
	return f->head == f->tail ? NULL : &f->item[f->head % DEPTH];
}

static void complete_send(struct side *s, const struct lab_work *w, enum ibv_wc_status status)
{
	static const enum ibv_wc_opcode opcodes[] = {
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
	};

	s->sends.head++;
	if (!w->unsignalled || status)
		s->sent.item[s->sent.tail++ % (4 * DEPTH)] =
		        (struct expected){ .wr_id = w->wr_id,
			                   .status = status,
			                   .opcode = opcodes[w->opcode],
			                   .sq_after = s->sends.head };
}

static void complete_receive(struct side *s, const struct expected *e)
{
	struct expected *to = &s->received.item[s->received.tail++ % (4 * DEPTH)];

	*to = *e;
	to->wr_id = first(&s->receives)->w.wr_id;
	to->at = first(&s->receives)->w.piece[0].at / BYTES * BYTES;
	s->receives.head++;
}

/* It flushes all that it has. */
static void flush(struct side *s)
{
	const struct expected flushed = { .status = IBV_WC_WR_FLUSH_ERR };

	s->failed = true;
	while (first(&s->sends))
		complete_send(s, &first(&s->sends)->w, IBV_WC_WR_FLUSH_ERR);
	while (first(&s->receives))
		complete_receive(s, &flushed);
}

static uint32_t length_of(const struct lab_work *w)
{
	uint32_t bytes = 0;

	for (int i = 0; i < w->n; i++)
		bytes += w->piece[i].length;
	return bytes;
}

static bool is_atomic(const struct lab_work *w)
{
	return w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool uses_receive(const struct lab_work *w)
{
	return w->opcode == IBV_WR_SEND || w->opcode == IBV_WR_SEND_WITH_IMM ||
	       w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void gather(const uint8_t *memory, const struct lab_work *w, uint8_t *to)
{
	for (int i = 0; i < w->n; i++) {
		memcpy(to, memory + w->piece[i].at, w->piece[i].length);
		to += w->piece[i].length;
	}
}

static void scatter(uint8_t *memory, const struct lab_work *w, const uint8_t *from, uint32_t bytes)
{
	for (int i = 0; i < w->n; i++) {
		uint32_t part = w->piece[i].length < bytes ? w->piece[i].length : bytes;

		memcpy(memory + w->piece[i].at, from, part);
		from += part;
		bytes -= part;
	}
}

static void change_word(struct side *to, const struct lab_work *w, uint8_t *old)
{
	uint64_t word;

	memcpy(&word, to->memory + w->remote, 8);
	memcpy(old, &word, 8);
	if (w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		word += w->compare_add;
	else if (word == w->compare_add)
		word = w->swap;
	memcpy(to->memory + w->remote, &word, 8);
}

/* The request's effect. Its receive, if it needs one, is there. */
static void execute(struct side *from, struct side *to, struct item *it)
{
	static uint8_t data[BYTES];
	const struct lab_work *w = &it->w;
	uint32_t bytes = length_of(w);

	if (w->flags & IBV_SEND_INLINE)
		memcpy(data, it->inline_data, bytes);
	else if (w->opcode != IBV_WR_RDMA_READ && !is_atomic(w))
		gather(from->memory, w, data);
	if (is_atomic(w)) {
		change_word(to, w, data);
		scatter(from->memory, w, data, 8);
	} else if (w->opcode == IBV_WR_RDMA_READ) {
		memcpy(data, to->memory + w->remote, bytes);
		scatter(from->memory, w, data, bytes);
	} else if (w->opcode == IBV_WR_SEND || w->opcode == IBV_WR_SEND_WITH_IMM) {
		scatter(to->memory, &first(&to->receives)->w, data, bytes);
	} else {
		memcpy(to->memory + w->remote, data, bytes);
	}
	if (uses_receive(w)) {
		struct expected e = { .byte_len = bytes,
			              .opcode = w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM
			                                ? IBV_WC_RECV_RDMA_WITH_IMM
			                                : IBV_WC_RECV };

		e.imm = w->opcode == IBV_WR_SEND ? 0 : w->imm;
		complete_receive(to, &e);
	}
	complete_send(from, w, IBV_WC_SUCCESS);
}

/* The request fails. */
static void refuse(struct side *from, struct side *to, const struct lab_work *w,
                   enum ibv_wc_status status)
{
	complete_send(from, w, status);
	flush(from);
	if (status != IBV_WC_LOC_PROT_ERR)
		flush(to);
}

/* All requests that can be executed are. */
static void run(struct side *from, struct side *to)
{
	struct item *it;

	while ((it = first(&from->sends)) && !from->failed) {
		const struct item *rcv = first(&to->receives);
		bool is_send = it->w.opcode == IBV_WR_SEND || it->w.opcode == IBV_WR_SEND_WITH_IMM;

		if (it->w.piece[0].key_xor) {
			refuse(from, to, &it->w, IBV_WC_LOC_PROT_ERR);
		} else if (it->w.rkey_xor) {
			refuse(from, to, &it->w, IBV_WC_REM_ACCESS_ERR);
		} else if (uses_receive(&it->w) && !rcv) {
			return;
		} else if (is_send && length_of(&rcv->w) < length_of(&it->w)) {
			const struct expected e = { .status = IBV_WC_LOC_LEN_ERR };

			complete_receive(to, &e);
			refuse(from, to, &it->w, IBV_WC_REM_INV_REQ_ERR);
		} else {
			execute(from, to, it);
		}
	}
}

/* ---- steps ---- */

static void any_pieces(struct lab_work *w, uint32_t most)
{
	w->n = (int)chance(4) + 1;
	for (int i = 0; i < w->n; i++) {
		uint32_t length = chance(most / (uint32_t)w->n + 1);

		/* each has a part of its own: what overlaps has no order */
		w->piece[i] = (struct lab_piece){ .length = length };
		w->piece[i].at = BYTES / (uint32_t)w->n * (uint32_t)i +
		                 chance(BYTES / (uint32_t)w->n - length);
	}
}

static uint32_t any_length(void)
{
	switch (chance(4)) {
	case 0:
		return 20000;
	case 1:
		return 4200;
	default:
		return 64;
	}
}

static struct lab_work any_request(struct side *to)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,
		IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct lab_work w = { .opcode = opcodes[chance(LAB_ARRAY(opcodes))],
		              .to = to->peer,
		              .wr_id = next_wr_id++,
		              .imm = chance(1 << 30),
		              .unsignalled = chance(3) == 0,
		              .compare_add = chance(3),
		              .swap = chance(3),
		              .by_wr = chance(2) };

	any_pieces(&w, any_length());
	if (is_atomic(&w)) {
		w.n = 1;
		w.piece[0] = (struct lab_piece){ chance(BYTES - 8), 8, 0 };
	}
	w.remote = chance(BYTES - length_of(&w)) & ~7u;
	if (length_of(&w) <= 64 && w.opcode != IBV_WR_RDMA_READ && !is_atomic(&w) && chance(2))
		w.flags = IBV_SEND_INLINE;
	if (chance(100) == 0 && !uses_receive(&w) && length_of(&w))
		w.rkey_xor = 1 + chance(200);
	else if (chance(100) == 0 && w.piece[0].length && !w.flags)
		w.piece[0].key_xor = 1 + chance(200);
	return w;
}

static void post_request(struct side *from, struct side *to)
{
	struct lab_work w = any_request(to);
	struct item *it = &from->sends.item[from->sends.tail % DEPTH];
	bool full = from->posted - from->left >= DEPTH;

	assert_int_equal(lab_peer_try_post(from->peer, &w), full ? ENOMEM : 0);
	if (full)
		return;
	from->posted++;
	it->w = w;
	if (w.flags & IBV_SEND_INLINE)
		gather(from->memory, &w, it->inline_data);
	from->sends.tail++;
	run(from, to);
}

static void post_receive(struct side *at, struct side *from)
{
	struct lab_work w = { .wr_id = next_wr_id++ };
	struct fifo *f = &at->receives;
	bool full = f->tail - f->head + at->received.tail - at->received.head >= DEPTH;

	if (full)
		return;
	any_pieces(&w, 31000);
	if (chance(40)) /* mostly large enough for all */
		w = (struct lab_work){ .wr_id = w.wr_id,
			               .n = 2,
			               .piece = { { 0, 10000, 0 }, { 10000, 10200, 0 } } };
	for (int i = 0; i < w.n; i++)
		w.piece[i].at += BYTES * (1 + f->tail % DEPTH);
	assert_int_equal(lab_peer_try_receive(at->peer, &w), 0);
	f->item[f->tail++ % DEPTH].w = w;
	run(from, at);
}

static void compare_memory(struct side *s, uint64_t at)
{
	static uint8_t got[BYTES];

	lab_peer_get(s->peer, at, got, BYTES);
	assert_memory_equal(got, s->memory + at, BYTES);
}

static void expect_sent(struct side *s)
{
	const struct expected *e = &s->sent.item[s->sent.head % (4 * DEPTH)];
	struct ibv_wc wc = lab_peer_sent(s->peer, e->status);

	s->sent.head++;
	s->left = e->sq_after;
	assert_int_equal(wc.wr_id, e->wr_id);
	if (!e->status)
		assert_int_equal(wc.opcode, e->opcode);
}

static void expect_received(struct side *s)
{
	const struct expected *e = &s->received.item[s->received.head++ % (4 * DEPTH)];
	struct ibv_wc wc = lab_peer_received(s->peer, e->status);

	assert_int_equal(wc.wr_id, e->wr_id);
	if (e->status)
		return;
	compare_memory(s, e->at);
	assert_int_equal(wc.opcode, e->opcode);
	assert_int_equal(wc.byte_len, e->byte_len);
	assert_int_equal(wc.wc_flags, e->imm || e->opcode != IBV_WC_RECV ? IBV_WC_WITH_IMM : 0);
	assert_int_equal(wc.imm_data, e->imm);
}

static void poll_some(struct side *s)
{
	struct ibv_wc wc;

	if (s->sent.head != s->sent.tail)
		expect_sent(s);
	else
		assert_int_equal(lab_peer_try_sent(s->peer, &wc), 0);
	if (s->received.head != s->received.tail)
		expect_received(s);
	else
		assert_int_equal(lab_peer_try_received(s->peer, &wc), 0);
}

static void poll_all(struct side *s)
{
	struct ibv_wc wc;

	while (s->sent.head != s->sent.tail)
		expect_sent(s);
	while (s->received.head != s->received.tail)
		expect_received(s);
	assert_int_equal(lab_peer_try_sent(s->peer, &wc), 0);
	assert_int_equal(lab_peer_try_received(s->peer, &wc), 0);
}

static void compare_memories(void)
{
	compare_memory(&side[0], 0);
	compare_memory(&side[1], 0);
}

/* A request that waits takes its data when it is carried out, as the model does. */
static void change_memory(struct side *s)
{
	uint32_t at = chance(BYTES - 16);

	for (int i = 0; i < 16; i++)
		s->memory[at + (uint32_t)i] = (uint8_t)chance(256);
	lab_peer_put(s->peer, at, s->memory + at, 16);
}

/* Both ends begin again. Sometimes without polling what was left. */
static void reset(void)
{
	for (int i = 0; i < 2; i++)
		if (chance(3) || side[i].failed)
			poll_all(&side[i]);
	compare_memories();
	for (int i = 0; i < 2; i++) {
		struct side *s = &side[i];

		lab_peer_expect_state(s->peer, s->failed ? IBV_QPS_ERR : IBV_QPS_RTS);
		lab_peer_to(s->peer, IBV_QPS_RESET);
		/* of receives that were not polled the memory may be anything */
		lab_peer_get(s->peer, BYTES, s->memory + BYTES, ALL - BYTES);
		s->sends.head = s->sends.tail = s->receives.head = s->receives.tail = 0;
		s->sent.head = s->sent.tail = s->received.head = s->received.tail = 0;
		s->posted = s->left = 0;
		s->failed = false;
	}
	for (int i = 0; i < 2; i++) {
		lab_peer_to_init(side[i].peer);
		lab_peer_to_rtr(side[i].peer, side[!i].peer);
	}
	for (int i = 0; i < 2; i++)
		lab_peer_to_rts(side[i].peer);
}

static void step(void)
{
	struct side *s = &side[chance(2)], *other = s == side ? side + 1 : side;

	if (side[0].failed || side[1].failed || chance(200) == 0) {
		reset();
		return;
	}
	switch (chance(8)) {
	case 0:
	case 1:
	case 2:
		post_request(s, other);
		break;
	case 3:
	case 4:
		post_receive(s, other);
		break;
	case 5:
		change_memory(s);
		break;
	default:
		poll_some(s);
	}
	if (chance(50) == 0)
		compare_memories();
}

LAB_CASE_BOTH(random_programs_do_what_the_model_says)
{
	const struct lab_peer_options o = {
		.bytes = ALL,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH },
		.rnr_retry = 7,
	};
	struct lab_peer **p;

	print_message("seed %llu\n", (unsigned long long)seed);
	chance_state = seed;
	p = lab_peers(&o, state);
	memset(side, 0, sizeof(side));
	side[0].peer = p[0];
	side[1].peer = p[1];
	for (unsigned n = number_of("UMBEL_PROPERTY_STEPS", STEPS); n; n--)
		step();
	reset();
}

int main(void)
{
	seed = number_of("UMBEL_PROPERTY_SEED", (unsigned)time(NULL));
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
