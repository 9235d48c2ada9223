/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The queue pair of a stream rsocket with its buffers, and its completions. See rsocket_stream.h,
 * which has the protocol, and rsocket.h, which has the rules of locking.
 */
#include <byteswap.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/rdmacm/rsocket/rsocket_memory.h"
#include "api/rdmacm/rsocket/rsocket_stream.h"

#define MIN_DEPTH 16
#define MAX_DEPTH 0xFFFE /* credits are 16 bits */
#define BATCH     32

/* The work that a completion is of: in the upper half of wr_id. Below: bytes of the ring. */
enum work { WORK_RECEIVE, WORK_DATA, WORK_CONTROL };

static uint64_t work_id(enum work work, uint32_t bytes)
{
	return (uint64_t)work << 32 | bytes;
}

/* ---- objects ---- */

static int register_part(struct rsocket_stream *s, void *at, size_t bytes, int access,
                         struct ibv_mr **mr)
{
	*mr = ibv_reg_mr(s->rs.id->pd, at, bytes, access);
	return *mr ? 0 : -errno;
}

/* Each part begins a page: of memory that is no segment peers reach whole pages without a system
 * call. */
static int open_buffers(struct rsocket_stream *s)
{
	const int local = IBV_ACCESS_LOCAL_WRITE, remote = local | IBV_ACCESS_REMOTE_WRITE;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t list =
	        RSOCKET_N_TARGETS * sizeof(*s->targets) + s->n_mappings * sizeof(*s->mappings);
	size_t in_at, list_at;
	int ret;

	s->out.bytes = s->out.free = s->rs.options.sndbuf;
	s->out.next_target = 1;
	s->in.window = s->in.freed = s->in.freed_at = s->rs.options.rcvbuf / 2;
	s->in.bytes = 2 * s->in.window;
	in_at = base_align_up(s->out.bytes, page);
	list_at = in_at + base_align_up(s->in.bytes, page);
	s->memory = rsocket_memory_get(list_at + list);
	if (!s->memory)
		return -ENOMEM;
	s->out.ring = s->memory;
	s->in.ring = s->memory + in_at;
	s->targets = (struct rsocket_place *)(s->memory + list_at);
	s->mappings = (struct rsocket_mapping *)(s->targets + RSOCKET_N_TARGETS);
	ret = register_part(s, s->out.ring, s->out.bytes, local, &s->out.mr);
	if (!ret)
		ret = register_part(s, s->targets, list, remote, &s->targets_mr);
	return ret ? ret : register_part(s, s->in.ring, s->in.bytes, remote, &s->in.mr);
}

static uint32_t between(uint32_t low, uint32_t value, uint32_t high)
{
	if (value > high)
		value = high;
	return value < low ? low : value;
}

/* Depths that the device has. */
static int set_depths(struct rsocket_stream *s)
{
	struct rsocket_options *o = &s->rs.options;
	struct ibv_device_attr device;
	uint32_t most;
	int ret = ibv_query_device(s->rs.id->verbs, &device);

	if (ret)
		return -ret;
	most = between(MIN_DEPTH, (uint32_t)device.max_qp_wr, MAX_DEPTH) - RSOCKET_SPARE;
	o->n_send = between(MIN_DEPTH, o->n_send, most);
	o->n_recv = between(MIN_DEPTH, o->n_recv, most);
	if (o->inline_bytes > RSOCKET_MAX_INLINE)
		o->inline_bytes = RSOCKET_MAX_INLINE;
	s->out.n_control = RSOCKET_N_CONTROL;
	s->out.n_data = o->n_send - RSOCKET_N_CONTROL;
	s->in.credits = o->n_recv;
	s->in.tell_at = (uint16_t)(o->n_recv / 2);
	return 0;
}

static int open_queues(struct rsocket_stream *s)
{
	struct rsocket_options *o = &s->rs.options;
	struct rdma_cm_id *id = s->rs.id;
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
		                         .sq_sig_all = 1,
		                         .cap = { .max_send_wr = o->n_send,
		                                  .max_recv_wr = o->n_recv + RSOCKET_SPARE,
		                                  .max_send_sge = 2,
		                                  .max_recv_sge = 1,
		                                  .max_inline_data = o->inline_bytes } };

	s->channel = ibv_create_comp_channel(id->verbs);
	if (!s->channel || fcntl(s->channel->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	s->cq = ibv_create_cq(id->verbs, (int)(o->n_send + o->n_recv + RSOCKET_SPARE), s,
	                      s->channel, 0);
	if (!s->cq)
		return -errno;
	attr.send_cq = attr.recv_cq = s->cq;
	if (rdma_create_qp(id, NULL, &attr))
		return -errno;
	o->inline_bytes = attr.cap.max_inline_data < RSOCKET_MAX_INLINE ? attr.cap.max_inline_data
	                                                                : RSOCKET_MAX_INLINE;
	return rsocket_watch(&s->rs, s->channel->fd, s->channel);
}

/* They are for immediate data alone, and all alike. */
static int post_receives(struct rsocket_stream *s, unsigned n)
{
	struct ibv_recv_wr wr[BATCH], *bad;
	int ret = 0;

	for (unsigned now; !ret && n; n -= now) {
		now = n < BATCH ? n : BATCH;
		for (unsigned i = 0; i < now; i++)
			wr[i] = (struct ibv_recv_wr){ .wr_id = work_id(WORK_RECEIVE, 0),
				                      .next = i + 1 < now ? &wr[i + 1] : NULL };
		ret = -ibv_post_recv(s->rs.id->qp, wr, &bad);
	}
	return ret;
}

int rsocket_stream_open(struct rsocket_stream *s)
{
	int ret = set_depths(s);

	if (!ret)
		ret = open_queues(s);
	if (!ret)
		ret = open_buffers(s);
	return ret ? ret : post_receives(s, s->rs.options.n_recv + RSOCKET_SPARE);
}

/* A peer that is stopped in the middle of a copy to a region holds up its end, but not for ever,
 * and goes on with the copy later. */
#define STOPPED_NS 1000000000ull /* no longer than that: HCA_STOPPED_WAIT_NS */

/* Ends the region. False: a peer may yet write there. */
static bool end_region(struct ibv_mr *mr)
{
	const uint64_t began = base_now_ns();

	if (mr)
		ibv_dereg_mr(mr);
	return !mr || base_now_ns() - began < STOPPED_NS;
}

void rsocket_stream_close(struct rsocket_stream *s)
{
	bool is_quiet;

	if (s->rs.id && s->rs.id->qp)
		rdma_destroy_qp(s->rs.id);
	rsocket_stream_free_maps(s);
	if (s->cq)
		ibv_destroy_cq(s->cq);
	if (s->channel) {
		rsocket_unwatch(&s->rs, s->channel->fd);
		ibv_destroy_comp_channel(s->channel);
	}
	is_quiet = end_region(s->in.mr);
	is_quiet = end_region(s->out.mr) && is_quiet;
	is_quiet = end_region(s->targets_mr) && is_quiet;
	rsocket_memory_put(s->memory, is_quiet);
}

/* ---- waking ---- */

void rsocket_stream_arm(struct rsocket *rs)
{
	struct rsocket_stream *s = rsocket_stream(rs);

	if (!s->cq || s->armed)
		return;
	s->armed = true;
	ibv_req_notify_cq(s->cq, 0);
}

void rsocket_stream_disarm(struct rsocket_stream *s)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(s->channel, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	s->armed = false; /* it was once, so there is one event */
}

/* ---- posting ---- */

static int post(struct rsocket_stream *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return -ibv_post_send(s->rs.id->qp, wr, &bad);
}

static uint32_t message(enum rsocket_op op, uint32_t value)
{
	return (uint32_t)op << RSOCKET_OP_SHIFT | (value & RSOCKET_VALUE_MASK);
}

/* Posts a message that is no data of the program's; a few sends are kept for these. @imm NULL: the
 * peer is not to know; @data NULL: nothing is written. False: it must wait. */
static bool post_control(struct rsocket_stream *s, const uint32_t *imm,
                         const struct rsocket_place *data, uint64_t addr)
{
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = data ? sizeof(*data) : 0 };
	struct ibv_send_wr wr = { .wr_id = work_id(WORK_CONTROL, 0),
		                  .sg_list = &sge,
		                  .num_sge = data ? 1 : 0,
		                  .opcode = imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		                  .send_flags = data ? IBV_SEND_INLINE : 0,
		                  .imm_data = imm ? htobe32(*imm) : 0 };

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = data ? s->peer_targets.key : 0;
	if (!s->out.n_control || post(s, &wr))
		return false;
	s->out.n_control--;
	return true;
}

bool rsocket_stream_control(struct rsocket_stream *s, enum rsocket_control control)
{
	const uint32_t imm = message(RSOCKET_OP_CONTROL, control);

	/* whether the peer can be reached shows without telling it */
	return post_control(s, control == RSOCKET_KEEPALIVE ? NULL : &imm, NULL, 0);
}

/* Half of our ring is free again: the peer may write there. */
static bool tell_target(struct rsocket_stream *s, const uint32_t *imm)
{
	struct rsocket_in *in = &s->in;
	uint32_t half = in->bytes / 2;
	struct rsocket_place p = { .addr = (uintptr_t)in->ring + in->freed_at,
		                   .key = in->mr->rkey,
		                   .length = half };

	if (s->swap)
		p = (struct rsocket_place){ .addr = bswap_64(p.addr),
			                    .key = bswap_32(p.key),
			                    .length = bswap_32(p.length) };
	if (!post_control(s, imm, &p, s->peer_targets.addr + s->at_peer_target * sizeof(p)))
		return false;
	in->freed -= half;
	in->window += half;
	in->freed_at = in->freed_at ? 0 : half;
	s->at_peer_target = (s->at_peer_target + 1) % s->peer_targets.length;
	return true;
}

void rsocket_stream_tell_credits(struct rsocket_stream *s)
{
	struct rsocket_in *in = &s->in;
	const bool has_room = in->freed >= in->bytes / 2;
	const uint32_t imm = message(RSOCKET_OP_CREDITS, in->received + in->credits);

	if (s->state != RSOCKET_CONNECTED || !s->out.n_control)
		return;
	if (!has_room && (int16_t)(in->received - in->tell_at) < 0)
		return;
	if (has_room ? tell_target(s, &imm) : post_control(s, &imm, NULL, 0))
		in->tell_at = (uint16_t)(in->received + in->credits / 2);
}

/* Of the ring, from its position on: one entry, or two around its end. */
static int ring_entries(const struct rsocket_out *out, uint32_t n, struct ibv_sge sge[2])
{
	uint32_t first = out->bytes - out->at;

	if (first > n)
		first = n;
	sge[0] = (struct ibv_sge){ .addr = (uintptr_t)out->ring + out->at,
		                   .length = first,
		                   .lkey = out->mr->lkey };
	sge[1] = (struct ibv_sge){ .addr = (uintptr_t)out->ring,
		                   .length = n - first,
		                   .lkey = out->mr->lkey };
	return first < n ? 2 : 1;
}

int rsocket_stream_write(struct rsocket_stream *s, const void *addr, uint32_t n,
                         const struct rsocket_place *to, const uint32_t *imm)
{
	struct rsocket_out *out = &s->out;
	struct ibv_sge sge[2] = { { .addr = (uintptr_t)addr, .length = n } };
	uint32_t taken = addr ? 0 : n;
	struct ibv_send_wr wr = { .wr_id = work_id(WORK_DATA, taken),
		                  .sg_list = sge,
		                  .num_sge = addr ? 1 : ring_entries(out, n, sge),
		                  .opcode = imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		                  .send_flags = addr ? IBV_SEND_INLINE : 0,
		                  .imm_data = imm ? htobe32(*imm) : 0 };
	int ret;

	wr.wr.rdma.remote_addr = to->addr;
	wr.wr.rdma.rkey = to->key;
	ret = post(s, &wr);
	if (ret)
		return ret;
	out->n_data--;
	out->free -= taken;
	out->at = (out->at + taken) % out->bytes;
	out->sent += imm != NULL;
	return 0;
}

/* ---- what can be done ---- */

bool rsocket_stream_can_send(const struct rsocket_stream *s)
{
	const struct rsocket_out *out = &s->out;
	uint32_t enough = out->bytes < RSOCKET_ENOUGH ? out->bytes : RSOCKET_ENOUGH;

	return out->n_data && out->free >= enough && out->sent != out->may_send &&
	       out->target[out->at_target].length;
}

bool rsocket_stream_all_sent(const struct rsocket_stream *s)
{
	return s->out.n_data + s->out.n_control == s->rs.options.n_send ||
	       s->state != RSOCKET_CONNECTED;
}

/* ---- completions ---- */

/*
 * The peer may have updated the next target. It does so before the message that we have here; if
 * that was about something else, it may just be at it: key and length, which are read at once, may
 * be there before the address is. Then the message about this target is still to come.
 */
static void take_target(struct rsocket_stream *s)
{
	struct rsocket_place *from = &s->targets[s->out.next_target];
	struct rsocket_place *to = &s->out.target[s->out.next_target];
	struct {
		uint32_t key, length;
	} last;
	uint64_t word, addr;

	if (to->length)
		return; /* it has more to come: not its turn */
	/* acquire: pairs with the completion that the peer's write came before */
	word = atomic_load_explicit((_Atomic uint64_t *)&from->key, memory_order_acquire);
	addr = atomic_load_explicit((_Atomic uint64_t *)&from->addr, memory_order_relaxed);
	memcpy(&last, &word, sizeof(last));
	if (!last.length || !addr)
		return;
	*to = (struct rsocket_place){ .addr = addr, .key = last.key, .length = last.length };
	*from = (struct rsocket_place){ 0 };
	s->out.next_target = (s->out.next_target + 1) % RSOCKET_N_TARGETS;
}

static void on_data(struct rsocket_stream *s, uint32_t bytes)
{
	if (bytes > s->in.window) {
		s->is_fault = true;
		rsocket_stream_break(s, EPROTO); /* the peer wrote where it may not, or it lies */
		return;
	}
	s->in.window -= bytes;
	s->in.readable += bytes;
	s->in.received++;
}

static void on_control(struct rsocket_stream *s, uint32_t control)
{
	if (control == RSOCKET_DISCONNECT || control == RSOCKET_SHUTDOWN)
		s->peer_done = true;
	if (control == RSOCKET_DISCONNECT)
		rsocket_stream_break(s, 0);
	if (s->peer_done && s->rs.no_write)
		rsocket_stream_break(s, 0);
}

static void on_message(struct rsocket_stream *s, uint32_t imm)
{
	uint32_t value = imm & RSOCKET_VALUE_MASK;

	switch (imm >> RSOCKET_OP_SHIFT) {
	case RSOCKET_OP_DATA:
		on_data(s, value);
		break;
	case RSOCKET_OP_CREDITS:
		s->out.may_send = (uint16_t)value;
		take_target(s);
		break;
	case RSOCKET_OP_MAP: /* as data, it was sent on credit */
		s->in.received++;
		break;
	case RSOCKET_OP_CONTROL:
		on_control(s, value);
		break;
	default:
		break;
	}
}

/* Of a send: the room that it had taken is free again. */
static void on_sent(struct rsocket_stream *s, uint64_t id)
{
	if (id >> 32 == WORK_CONTROL) {
		s->out.n_control++;
	} else {
		s->out.n_data++;
		s->out.free += (uint32_t)id;
	}
}

/* Why it is over, as a socket says it. */
static int error_of(const struct ibv_wc *wc)
{
	return wc->status == IBV_WC_RETRY_EXC_ERR ? ETIMEDOUT : ECONNRESET;
}

static unsigned serve(struct rsocket_stream *s, const struct ibv_wc *wc)
{
	const bool is_receive = wc->wr_id >> 32 == WORK_RECEIVE;

	if (!is_receive)
		on_sent(s, wc->wr_id);
	if (wc->status != IBV_WC_SUCCESS) {
		if (s->state == RSOCKET_CONNECTED)
			s->is_fault = wc->status != IBV_WC_WR_FLUSH_ERR;
		rsocket_stream_break(s, error_of(wc));
		return 0;
	}
	if (is_receive && wc->wc_flags & IBV_WC_WITH_IMM)
		on_message(s, be32toh(wc->imm_data));
	s->rs.news += is_receive;
	return is_receive;
}

void rsocket_stream_poll(struct rsocket_stream *s)
{
	struct ibv_wc wc[BATCH];
	unsigned receives;
	int n = BATCH;

	if (s->state < RSOCKET_CONNECTED)
		return;
	while (n == BATCH) {
		n = ibv_poll_cq(s->cq, BATCH, wc);
		receives = 0;
		for (int i = 0; i < n; i++)
			receives += serve(s, &wc[i]);
		if (n < 0 || (s->state == RSOCKET_CONNECTED && post_receives(s, receives)))
			rsocket_stream_break(s, ECONNRESET);
		if (n > 0)
			rsocket_changed(&s->rs);
	}
	rsocket_stream_tell_credits(s);
}
