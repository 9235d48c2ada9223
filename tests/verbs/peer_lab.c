/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connected queue pairs for tests: see peer_lab.h. A peer is told what to do by a command, which is
 * carried out here or sent to the peer's process.
 */
#include "peer_lab.h"
#include "deadline.h"

#include <linux/aio_abi.h>
#include <sys/ptrace.h>

#include "base/pause.h"

enum what {
	MAKE,
	MODIFY,
	STATE,
	RECEIVE,
	POST,
	POST_LIST,
	POLL_SENT,
	POLL_RECEIVED,
	PUT,
	GET,
	EVENT,
	NO_EVENT,
	DEREGISTER,
	DESTROY_QP,
	ARM,
	SLEEP,
	RIOT,
	FLOOD,
	EXEC,
	PART,
};

struct command {
	enum what what;
	struct lab_peer_options options;
	struct lab_peer_address address; /* of the peer that the work is for; the reply to MAKE */
	uint32_t lkey;
	struct ibv_qp_attr attr;
	int mask;
	struct lab_work work;
	struct ibv_wc wc;
	uint64_t at;
	size_t bytes; /* that follow: of PUT and of lists, and of the reply to GET */
	int result;
};

/* ---- carrying out ---- */

static uint32_t or_else(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

#define GUARD 65536u

static void make_guards(struct lab_peer_objects *p)
{
	memset(p->memory - GUARD, 0xA5, GUARD);
	memset(p->memory + p->bytes, 0xA5, GUARD);
}

static void check_guards(const struct lab_peer_objects *p)
{
	for (size_t i = 0; i < GUARD; i++)
		if ((uint8_t)p->memory[-1 - (ssize_t)i] != 0xA5 ||
		    (uint8_t)p->memory[p->bytes + i] != 0xA5) {
			fprintf(stderr, "memory outside of a region was changed\n");
			abort();
		}
}

static void unmap(void *o)
{
	struct lab_peer_objects *p = o;

	check_guards(p);
	munmap(p->memory - GUARD, p->bytes + 2 * GUARD);
	free(p);
}

/* Maps a file of @period bytes there, again and again: much memory that takes little. */
static void map_again(char *memory, size_t bytes, size_t period)
{
	int fd = memfd_create("period", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)period), 0);
	for (size_t at = 0; at < bytes; at += period)
		assert_ptr_equal(mmap(memory + at, period, PROT_READ | PROT_WRITE,
		                      MAP_SHARED | MAP_FIXED, fd, 0),
		                 memory + at);
	close(fd);
}

static void undo_qp(void *o)
{
	ibv_destroy_qp(o);
}

/* Reads what a peer may be writing just now, as a program does that waits for a WRITE: that is no
 * data race of the library's. */
__attribute__((no_sanitize_thread)) static void look_at(char *to, const volatile char *from,
                                                        size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = from[i];
}

static void undo_mr(void *o)
{
	ibv_dereg_mr(o);
}

static void make_qp(struct lab_peer_objects *p, const struct lab_peer_options *o)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = o->type,
		.send_cq = p->send_cq,
		.recv_cq = o->one_cq ? p->send_cq : p->recv_cq,
		.sq_sig_all = o->signal_all,
		.cap = { .max_send_wr = or_else(o->cap.max_send_wr, 64),
		         .max_recv_wr = or_else(o->cap.max_recv_wr, 64),
		         .max_send_sge = or_else(o->cap.max_send_sge, 4),
		         .max_recv_sge = or_else(o->cap.max_recv_sge, 4),
		         .max_inline_data = or_else(o->cap.max_inline_data, 64) },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = p->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
		                  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
	};

	if (o->type == IBV_QPT_RC)
		init.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ |
		                       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		                       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | LAB_EX_WITH_FLUSH |
		                       LAB_EX_WITH_ATOMIC_WRITE;
	assert_non_null(p->qp = ibv_create_qp_ex(p->context, &init));
	lab_undo(undo_qp, p->qp);
}

void lab_without_moving(void (*call)(void *), void *arg)
{
	aio_context_t aio = 0;

	assert_int_equal(syscall(SYS_io_setup, 1, &aio), 0);
	call(arg);
	assert_int_equal(syscall(SYS_io_destroy, aio), 0);
}

struct making {
	struct lab_peer_objects *p;
	const struct lab_peer_options *o;
};

static void make_mr_and_qp(void *arg)
{
	struct lab_peer_objects *p = ((struct making *)arg)->p;
	const struct lab_peer_options *o = ((struct making *)arg)->o;

	assert_non_null(p->mr = ibv_reg_mr(p->pd, p->memory, o->bytes,
	                                   (LAB_ALL_ACCESS & ~o->no_access) |
	                                           (o->flush_access & ~o->no_flush_access)));
	lab_undo(undo_mr, p->mr);
	make_qp(p, o);
}

static struct lab_peer_objects *make(struct command *c)
{
	const struct lab_peer_options *o = &c->options;
	struct lab_peer_objects *p = calloc(1, sizeof(*p));
	struct making making = { .p = p, .o = o };

	assert_non_null(p);
	p->memory = mmap(NULL, o->bytes + 2 * GUARD, PROT_READ | PROT_WRITE,
	                 MAP_PRIVATE | MAP_ANONYMOUS | (o->period ? MAP_NORESERVE : 0), -1, 0);
	assert_true(p->memory != MAP_FAILED);
	p->memory += GUARD;
	p->bytes = o->bytes;
	if (o->period)
		map_again(p->memory, o->bytes, o->period);
	make_guards(p);
	lab_undo(unmap, p);
	p->context = o->neighbour ? o->neighbour->here->context : lab_open(o->host);
	p->pd = o->neighbour ? o->neighbour->here->pd : lab_pd(p->context);
	if (o->channel)
		p->channel = lab_channel(p->context);
	p->send_cq = o->shares_cqs ? o->neighbour->here->send_cq
	                           : lab_cq(p->context, o->cqe, p->channel);
	p->recv_cq = o->shares_cqs ? o->neighbour->here->recv_cq
	                           : lab_cq(p->context, o->cqe, p->channel);
	if (o->far) /* regions are published by the first queue pair at the latest */
		lab_without_moving(make_mr_and_qp, &making);
	else
		make_mr_and_qp(&making);
	c->address = (struct lab_peer_address){ .qpn = p->qp->qp_num,
		                                .rkey = p->mr->rkey,
		                                .path = lab_path(p->context),
		                                .addr = (uintptr_t)p->memory };
	c->lkey = p->lkey = p->mr->lkey;
	return p;
}

static void entries_of(struct lab_peer_objects *p, const struct lab_work *w, struct ibv_sge *sge)
{
	for (int i = 0; i < w->n; i++)
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)p->memory + w->piece[i].at,
			                   .length = w->piece[i].length,
			                   .lkey = p->lkey ^ w->piece[i].key_xor };
}

static int receive(struct lab_peer_objects *p, const struct command *c)
{
	struct ibv_sge sge[LAB_PEER_SGE];
	struct ibv_recv_wr wr = { .wr_id = c->work.wr_id, .sg_list = sge, .num_sge = c->work.n },
	                   *bad;

	entries_of(p, &c->work, sge);
	if (c->work.stops)
		raise(SIGSTOP);
	return ibv_post_recv(p->qp, &wr, &bad);
}

static bool is_atomic(const struct lab_work *w)
{
	return w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

typedef void (*flush_fn)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, size_t length,
                         uint8_t type, uint8_t level);

/* ibv_wr_flush(): the function lies behind the end of struct ibv_qp_ex of older headers. */
static void wr_flush(struct ibv_qp_ex *ex, const struct command *c)
{
	const struct lab_work *w = &c->work;
	flush_fn fn;

	memcpy(&fn, (char *)ex + offsetof(struct ibv_qp_ex, wr_abort) + 2 * sizeof(void *),
	       sizeof(fn));
	fn(ex, c->address.rkey ^ w->rkey_xor, c->address.addr + w->remote, w->flush_bytes,
	   w->flush_type, w->flush_level);
}

static void begin_wr(struct ibv_qp_ex *ex, const struct command *c)
{
	const struct lab_work *w = &c->work;
	uint32_t rkey = c->address.rkey ^ w->rkey_xor;
	uint64_t addr = c->address.addr + w->remote;

	ex->wr_id = w->wr_id;
	ex->wr_flags = w->flags | (w->unsignalled ? 0 : IBV_SEND_SIGNALED);
	ex->wr_flags &= ~(unsigned)IBV_SEND_INLINE;
	switch ((unsigned)w->opcode) {
	case LAB_WR_FLUSH:
		wr_flush(ex, c);
		break;
	case LAB_WR_ATOMIC_WRITE:
		ibv_wr_atomic_write(ex, rkey, addr, &w->swap);
		break;
	case IBV_WR_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, w->imm);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, rkey, addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, rkey, addr, w->imm);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(ex, rkey, addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(ex, rkey, addr, w->compare_add, w->swap);
		break;
	default:
		ibv_wr_atomic_fetch_add(ex, rkey, addr, w->compare_add);
	}
}

/* Between ibv_wr_start() and ibv_wr_complete(). */
static void add_by_wr(struct lab_peer_objects *p, const struct command *c)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p->qp);
	struct ibv_data_buf buf[LAB_PEER_SGE];
	struct ibv_sge sge[LAB_PEER_SGE];

	entries_of(p, &c->work, sge);
	begin_wr(ex, c);
	if ((unsigned)c->work.opcode == LAB_WR_FLUSH ||
	    (unsigned)c->work.opcode == LAB_WR_ATOMIC_WRITE)
		return;
	if (c->work.flags & IBV_SEND_INLINE) {
		for (int i = 0; i < c->work.n; i++)
			buf[i] = (struct ibv_data_buf){ (void *)(uintptr_t)sge[i].addr,
				                        sge[i].length };
		ibv_wr_set_inline_data_list(ex, (size_t)c->work.n, buf);
	} else {
		ibv_wr_set_sge_list(ex, (size_t)c->work.n, sge);
	}
}

static int post_by_wr(struct lab_peer_objects *p, const struct command *c)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p->qp);

	ibv_wr_start(ex);
	add_by_wr(p, c);
	return ibv_wr_complete(ex);
}

/* A request of ibv_post_send(); @sge has room for LAB_PEER_SGE. */
static struct ibv_send_wr request_of(struct lab_peer_objects *p, const struct command *c,
                                     const struct lab_work *w, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = { .wr_id = w->wr_id,
		                  .sg_list = sge,
		                  .num_sge = w->n,
		                  .opcode = w->opcode,
		                  .imm_data = w->imm,
		                  .send_flags = w->flags };

	if (!w->unsignalled)
		wr.send_flags |= IBV_SEND_SIGNALED;
	entries_of(p, w, sge);
	if (is_atomic(w)) {
		wr.wr.atomic.remote_addr = c->address.addr + w->remote;
		wr.wr.atomic.rkey = c->address.rkey ^ w->rkey_xor;
		wr.wr.atomic.compare_add = w->compare_add;
		wr.wr.atomic.swap = w->swap;
	} else {
		wr.wr.rdma.remote_addr = c->address.addr + w->remote;
		wr.wr.rdma.rkey = c->address.rkey ^ w->rkey_xor;
	}
	return wr;
}

static int post(struct lab_peer_objects *p, const struct command *c)
{
	const struct lab_work *w = &c->work;
	struct ibv_sge sge[LAB_PEER_SGE];
	struct ibv_send_wr wr, *bad;

	if (w->by_wr)
		return post_by_wr(p, c);
	wr = request_of(p, c, w, sge);
	if (w->stops)
		raise(SIGSTOP);
	return ibv_post_send(p->qp, &wr, &bad);
}

static int post_list_by_wr(struct lab_peer_objects *p, const struct command *c,
                           const struct lab_work *w, size_t n)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p->qp);
	struct command one = *c;

	ibv_wr_start(ex);
	for (size_t i = 0; i < n; i++) {
		one.work = w[i];
		add_by_wr(p, &one);
	}
	return ibv_wr_complete(ex);
}

static int post_list(struct lab_peer_objects *p, const struct command *c, const struct lab_work *w)
{
	const size_t n = c->bytes / sizeof(*w);
	struct ibv_sge(*sge)[LAB_PEER_SGE] = calloc(n, sizeof(*sge));
	struct ibv_send_wr *wr = calloc(n, sizeof(*wr)), *bad;
	int ret;

	assert_non_null(sge);
	assert_non_null(wr);
	for (size_t i = 0; i < n; i++) {
		wr[i] = request_of(p, c, &w[i], sge[i]);
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	ret = w->by_wr ? post_list_by_wr(p, c, w, n) : ibv_post_send(p->qp, wr, &bad);
	free(wr);
	free(sge);
	return ret;
}

/* But for changes of GIDs: link-local addresses of Ethernet go and come with the link. */
static int next_event(struct lab_peer_objects *p, struct command *c)
{
	struct pollfd fd = { .fd = p->context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	do {
		if (c->what == EVENT ? !deadline_allows(fd.fd) : poll(&fd, 1, 0) != 1)
			return -1;
		assert_int_equal(ibv_get_async_event(p->context, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_GID_CHANGE);
	return (int)event.event_type;
}

/* Sleeps until the CQ that was armed has an event. */
static int sleep_until_event(struct lab_peer_objects *p)
{
	struct ibv_cq *cq;
	void *context;

	lab_await(p->channel->fd);
	assert_int_equal(ibv_get_cq_event(p->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	return 0;
}

/* ---- riots ---- */

#define RIOT_LIST 8

static uint32_t chance(struct lab_riot *r, uint32_t n)
{
	r->random = r->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(r->random >> 33) % n;
}

/* Half of the memory is what others write to; from the other half requests are sent. */
static struct lab_piece any_piece(struct lab_riot *r, size_t half, bool target, uint32_t length)
{
	return (struct lab_piece){ (target ? 0 : half) + chance(r, (uint32_t)half - length), length,
		                   0 };
}

/* Memory and flags of that request, of so many bytes. */
static void choose_places(const struct lab_peer_objects *p, struct lab_work *w, struct lab_riot *r,
                          uint32_t length)
{
	w->piece[0] = any_piece(r, p->bytes / 2, false, length);
	w->remote = any_piece(r, p->bytes / 2, true, length).at & ~7ull;
	if (length <= 64 && w->opcode != IBV_WR_RDMA_READ && !is_atomic(w) && chance(r, 2))
		w->flags = IBV_SEND_INLINE;
}

/* A list of short ones, of which several are carried out at a time. */
static void riot_posts_list(struct lab_peer_objects *p, struct command *c, struct lab_riot *r)
{
	const enum ibv_wr_opcode opcode = chance(r, 2) ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
	struct ibv_sge sge[RIOT_LIST][LAB_PEER_SGE];
	struct ibv_send_wr wr[RIOT_LIST], *bad;
	const unsigned n = 2 + chance(r, RIOT_LIST - 1);

	for (unsigned i = 0; i < n; i++) {
		c->work = (struct lab_work){ .opcode = opcode, .n = 1 };
		choose_places(p, &c->work, r, chance(r, 65));
		wr[i] = request_of(p, c, &c->work, sge[i]);
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	r->sent += ibv_post_send(p->qp, wr, &bad) ? (unsigned)(bad - wr) : n;
}

static void riot_posts(struct lab_peer_objects *p, struct command *c, struct lab_riot *r)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct lab_work *w = &c->work;
	uint32_t length = chance(r, 4) ? chance(r, 200) : chance(r, (uint32_t)p->bytes / 4);

	*w = (struct lab_work){ .opcode = opcodes[chance(r, LAB_ARRAY(opcodes))], .n = 1 };
	if (is_atomic(w))
		length = 8;
	choose_places(p, w, r, length);
	if (!post(p, c))
		r->sent++;
}

static void riot_polls(struct lab_peer_objects *p, struct lab_riot *r)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(p->send_cq, 1, &wc) == 1) {
		r->sent--;
		if (!r->error)
			r->error = wc.status;
	}
	if (ibv_poll_cq(p->recv_cq, 1, &wc) == 1) {
		r->received--;
		if (!r->receive_error)
			r->receive_error = wc.status;
	}
}

static void riot_step(struct lab_peer_objects *p, struct command *c, struct lab_riot *r)
{
	switch (chance(r, 8)) {
	case 0:
		(chance(r, 4) ? riot_posts : riot_posts_list)(p, c, r);
		break;
	case 1:
	case 2:
		c->work = (struct lab_work){ .n = 1 };
		c->work.piece[0] = any_piece(r, p->bytes / 2, true, (uint32_t)p->bytes / 4);
		if (!receive(p, c))
			r->received++;
		break;
	default:
		riot_polls(p, r);
	}
}

/* Memory comes and goes meanwhile. */
static void riot(struct lab_peer_objects *p, struct command *c)
{
	struct lab_riot r = { .random = c->at };

	for (unsigned i = 0;; i++) {
		riot_step(p, c, &r);
		if (i % 32 == 0)
			ibv_dereg_mr(ibv_reg_mr(p->pd, p->memory, p->bytes, LAB_ALL_ACCESS));
	}
}

static void flood(struct lab_peer_objects *p, const struct command *c)
{
	struct ibv_wc wc[16];

	for (;;) {
		post(p, c);
		ibv_poll_cq(p->send_cq, 16, wc);
	}
}

static void perform(struct lab_peer_objects **objects, struct command *c, void *data)
{
	struct lab_peer_objects *p = *objects;
	struct ibv_qp_init_attr init;

	switch (c->what) {
	case MAKE:
		*objects = make(c);
		break;
	case MODIFY:
		c->result = ibv_modify_qp(p->qp, &c->attr, c->mask);
		break;
	case STATE:
		c->result = ibv_query_qp(p->qp, &c->attr, IBV_QP_STATE, &init);
		break;
	case RECEIVE:
		c->result = receive(p, c);
		break;
	case POST:
		c->result = post(p, c);
		break;
	case POST_LIST:
		c->result = post_list(p, c, data);
		break;
	case POLL_SENT:
		c->result = ibv_poll_cq(p->send_cq, 1, &c->wc);
		break;
	case POLL_RECEIVED:
		c->result = ibv_poll_cq(p->recv_cq, 1, &c->wc);
		break;
	case PUT:
		memcpy(p->memory + c->at, data, c->bytes);
		break;
	case GET:
		look_at(data, p->memory + c->at, c->bytes);
		break;
	case EVENT:
	case NO_EVENT:
		c->result = next_event(p, c);
		break;
	case DEREGISTER:
		lab_forget(p->mr);
		c->result = ibv_dereg_mr(p->mr);
		break;
	case DESTROY_QP:
		lab_forget(p->qp);
		c->result = ibv_destroy_qp(p->qp);
		break;
	case ARM:
		c->result = ibv_req_notify_cq(p->send_cq, 0);
		break;
	case SLEEP:
		c->result = sleep_until_event(p);
		break;
	case RIOT:
		riot(p, c);
		break;
	case FLOOD:
		flood(p, c);
		break;
	case EXEC: /* by go_on() */
	case PART:
		break;
	}
}

/* ---- another process ---- */

static int nursery = -1;

static bool transfer(int fd, void *data, size_t bytes, bool out)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = out ? send(fd, (char *)data + done, bytes - done, MSG_NOSIGNAL)
		                : recv(fd, (char *)data + done, bytes - done, 0);

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* The test has failed here: the peer's fails, too, when the socket closes. */
static void leave(void *o)
{
	(void)o;
	fflush(stderr);
	_exit(1);
}

/* Becomes another run of this program, which has memory where the region was (lab_peer_look()). All
 * files stay open, so nobody is told that the process has ended. */
static void become_another(const struct lab_peer_objects *objects, int fd)
{
	char at[24], bytes[24], file[12];

	snprintf(at, sizeof(at), "%" PRIuPTR, (uintptr_t)objects->mr->addr);
	snprintf(bytes, sizeof(bytes), "%zu", objects->mr->length);
	snprintf(file, sizeof(file), "%d", fd);
	for (int i = 0; i < 256; i++)
		fcntl(i, F_SETFD, 0);
	execl("/proc/self/exe", "another", at, bytes, file, (char *)NULL);
	_exit(1);
}

int lab_peer_look(char *const argv[])
{
	size_t page = 4096, bytes = (strtoul(argv[2], NULL, 10) + 2 * page - 1) & ~(page - 1);
	char *at = (char *)(strtoul(argv[1], NULL, 10) & ~(page - 1)), byte = 0;
	int fd = atoi(argv[3]);

	if (mmap(at, bytes, PROT_READ | PROT_WRITE,
	         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_POPULATE, -1, 0) != at)
		return 1;
	transfer(fd, &byte, 1, true);
	transfer(fd, &byte, 1, false);
	byte = 1;
	for (size_t i = 0; i < bytes; i++)
		byte = byte && !at[i];
	transfer(fd, &byte, 1, true);
	return 0;
}

/* Whether data follow the command. */
static bool carries(const struct command *c)
{
	return c->what == PUT || c->what == POST_LIST;
}

static void go_on(int fd);

/* Its first thread has ended: the kernel shows no memory of the process by its PID any more. */
static bool has_first_ended(void)
{
	char path[40], stat[64] = "";
	const char *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
	f = fopen(path, "r");
	state = f && fgets(stat, sizeof(stat), f) ? strrchr(stat, ')') : NULL;
	if (f)
		fclose(f);
	return state && state[2] == 'Z';
}

static void *take_part(void *arg)
{
	const int fd = (int)(intptr_t)arg;
	struct command c = { .what = PART };
	struct base_pause pause = { 0 };

	while (!has_first_ended())
		base_pause_sleep(&pause);
	transfer(fd, &c, sizeof(c), true);
	go_on(fd);
	return NULL;
}

/* Another thread goes on. */
static void part(int fd)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, take_part, (void *)(intptr_t)fd))
		_exit(1);
	pthread_exit(NULL);
}

static void serve(int fd)
{
	static char mark;
	pid_t pid = getpid();

	lab_undo(leave, &mark);
	transfer(fd, &pid, sizeof(pid), true);
	go_on(fd);
}

static void go_on(int fd)
{
	static struct lab_peer_objects *objects;
	struct command c;
	char *data;

	while (transfer(fd, &c, sizeof(c), false)) {
		data = malloc(c.bytes + 1);
		if (!data || (carries(&c) && !transfer(fd, data, c.bytes, false)))
			break;
		if (c.what == EXEC)
			become_another(objects, fd);
		if (c.what == PART)
			part(fd);
		perform(&objects, &c, data);
		transfer(fd, &c, sizeof(c), true);
		if (c.what == GET)
			transfer(fd, data, c.bytes, true);
		free(data);
	}
	_exit(0);
}

/* A peer's process runs this as a test, which may fail there. */
static void serve_test(void **state)
{
	serve((int)(intptr_t)*state);
}

static void run_peer(int fd)
{
	const struct CMUnitTest tests[] = { { "peer", serve_test, NULL, lab_clean_up,
		                              (void *)(intptr_t)fd } };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(nursery);
	harness_serve();
	fclose(stdout);
	_exit(cmocka_run_group_tests(tests, NULL, NULL));
}

/* Receives sockets, and makes a process for each. */
static void nurse(int fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		char byte, control[CMSG_SPACE(sizeof(int))];
		struct iovec iov = { &byte, 1 };
		struct msghdr m = { .msg_iov = &iov,
			            .msg_iovlen = 1,
			            .msg_control = control,
			            .msg_controllen = sizeof(control) };
		int peer;

		if (recvmsg(fd, &m, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&m))
			_exit(0);
		memcpy(&peer, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(peer));
		if (!fork())
			run_peer(peer);
		close(peer);
	}
}

void lab_peers_begin(void)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		abort();
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		abort();
	nursery = pair[!pid];
	close(pair[!!pid]);
	if (!pid)
		nurse(nursery);
}

static void start_process(struct lab_peer *p)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
		            .msg_iovlen = 1,
		            .msg_control = control,
		            .msg_controllen = sizeof(control) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &pair[1], sizeof(int));
	assert_int_equal(sendmsg(nursery, &m, MSG_NOSIGNAL), 1);
	close(pair[1]);
	p->socket = pair[0];
	assert_true(transfer(p->socket, &p->pid, sizeof(p->pid), false));
}

static void told(struct lab_peer *p, struct command *c, void *data)
{
	if (p->here) {
		perform(&p->here, c, data);
		return;
	}
	if (!transfer(p->socket, c, sizeof(*c), true) ||
	    (carries(c) && !transfer(p->socket, data, c->bytes, true)))
		fail_msg("the peer's process is gone");
}

static void replied(struct lab_peer *p, struct command *c, void *data)
{
	if (!p->here && (!transfer(p->socket, c, sizeof(*c), false) ||
	                 (c->what == GET && !transfer(p->socket, data, c->bytes, false))))
		fail_msg("the peer's process has failed");
}

static void tell(struct lab_peer *p, struct command *c, void *data)
{
	told(p, c, data);
	replied(p, c, data);
}

/* ---- peers ---- */

static void undo_peer(void *o)
{
	struct lab_peer *p = o;
	char byte;

	if (!p->here) {
		shutdown(p->socket, SHUT_WR);
		while (recv(p->socket, &byte, 1, 0) > 0)
			;
		close(p->socket);
	}
	free(p);
}

static void complete_options(struct lab_peer_options *o)
{
	if (!o->type)
		o->type = IBV_QPT_RC;
	o->host = (int)or_else((uint32_t)o->host, 1);
	o->bytes = o->bytes ? o->bytes : LAB_PEER_BYTES;
	o->cqe = (int)or_else((uint32_t)o->cqe, 256);
	o->min_rnr_timer = (uint8_t)or_else(o->min_rnr_timer, 1);
}

struct lab_peer *lab_peer(const struct lab_peer_options *o)
{
	struct lab_peer *p = calloc(1, sizeof(*p));
	struct command c = { .what = MAKE };

	assert_non_null(p);
	p->o = *o;
	complete_options(&p->o);
	c.options = p->o;
	if (p->o.elsewhere) {
		start_process(p);
		lab_undo(undo_peer, p);
		tell(p, &c, NULL);
	} else {
		perform(&p->here, &c, NULL);
		lab_undo(undo_peer, p);
	}
	p->address = c.address;
	p->lkey = c.lkey;
	return p;
}

struct lab_peer *lab_peer_beside(const struct lab_peer *p)
{
	struct lab_peer *q = calloc(1, sizeof(*q));
	struct command c = { .what = MAKE, .options = p->o };

	assert_non_null(q);
	lab_undo(free, q);
	*q = *p;
	tell(q, &c, NULL);
	q->address = c.address;
	q->lkey = c.lkey;
	return q;
}

struct lab_peer **lab_peers(const struct lab_peer_options *options, void *const *state)
{
	struct lab_peer_options o = { .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	struct lab_peer **p = calloc(2, sizeof(struct lab_peer *));

	assert_non_null(p);
	lab_undo(free, p);
	if (options)
		o = *options;
	for (int i = 0; i < 2; i++) {
		o.host = i + 1;
		o.elsewhere = i && state && *state;
		p[i] = lab_peer(&o);
	}
	for (int i = 0; i < 2; i++) {
		lab_peer_to_init(p[i]);
		lab_peer_to_rtr(p[i], p[!i]);
	}
	for (int i = 0; i < 2; i++)
		lab_peer_to_rts(p[i]);
	return p;
}

/* ---- states ---- */

int lab_peer_modify(struct lab_peer *p, const struct ibv_qp_attr *attr, int mask)
{
	struct command c = { .what = MODIFY, .attr = *attr, .mask = mask };

	tell(p, &c, NULL);
	return c.result;
}

void lab_peer_to_init(struct lab_peer *p)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.pkey_index = p->o.pkey_index,
		.qp_access_flags = (LAB_ALL_ACCESS & ~p->o.no_qp_access) | p->o.flush_access,
	};

	assert_int_equal(lab_peer_modify(p, &a,
	                                 IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
	                                         IBV_QP_ACCESS_FLAGS),
	                 0);
}

void lab_peer_to_rtr(struct lab_peer *p, const struct lab_peer *to)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = p->o.path_mtu ? p->o.path_mtu : IBV_MTU_1024,
		.dest_qp_num = to->address.qpn,
		.rq_psn = p->o.rq_psn,
		.max_dest_rd_atomic = p->o.no_read ? 0 : 16,
		.min_rnr_timer = p->o.min_rnr_timer,
		.ah_attr = to->address.path,
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	a.ah_attr.dlid ^= p->o.lid_xor;
	if (p->o.type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	assert_int_equal(lab_peer_modify(p, &a, mask), 0);
}

void lab_peer_to_rts(struct lab_peer *p)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = p->o.sq_psn,
		.timeout = p->o.timeout,
		.retry_cnt = p->o.retry_cnt,
		.rnr_retry = p->o.rnr_retry,
		.max_rd_atomic = p->o.no_reading ? 0 : 16,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (p->o.type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		        IBV_QP_MAX_QP_RD_ATOMIC;
	assert_int_equal(lab_peer_modify(p, &a, mask), 0);
}

void lab_peer_to(struct lab_peer *p, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };

	assert_int_equal(lab_peer_modify(p, &a, IBV_QP_STATE), 0);
}

void lab_peer_connect(struct lab_peer *p, const struct lab_peer *to)
{
	lab_peer_to_init(p);
	lab_peer_to_rtr(p, to);
	lab_peer_to_rts(p);
}

enum ibv_qp_state lab_peer_state(struct lab_peer *p)
{
	struct command c = { .what = STATE };

	tell(p, &c, NULL);
	assert_int_equal(c.result, 0);
	return c.attr.qp_state;
}

void lab_peer_expect_state(struct lab_peer *p, enum ibv_qp_state state)
{
	assert_int_equal(lab_peer_state(p), state);
}

/* ---- requests ---- */

int lab_peer_try_receive(struct lab_peer *p, const struct lab_work *w)
{
	struct command c = { .what = RECEIVE, .work = *w };

	tell(p, &c, NULL);
	return c.result;
}

int lab_peer_try_post(struct lab_peer *p, const struct lab_work *w)
{
	struct command c = { .what = POST, .work = *w };

	if (w->to)
		c.address = w->to->address;
	tell(p, &c, NULL);
	return c.result;
}

int lab_peer_try_post_list(struct lab_peer *p, const struct lab_work *w, unsigned n)
{
	struct command c = { .what = POST_LIST,
		             .address = w->to->address,
		             .bytes = n * sizeof(*w) };

	tell(p, &c, (void *)(uintptr_t)w);
	return c.result;
}

void lab_peer_receive(struct lab_peer *p, uint64_t wr_id, uint64_t at, uint32_t length)
{
	struct lab_work w = { .wr_id = wr_id, .n = 1, .piece = { { at, length, 0 } } };

	assert_int_equal(lab_peer_try_receive(p, &w), 0);
}

void lab_peer_post(struct lab_peer *p, const struct lab_work *w)
{
	assert_int_equal(lab_peer_try_post(p, w), 0);
}

struct ibv_wc lab_peer_do(struct lab_peer *p, const struct lab_work *w, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	lab_peer_post(p, w);
	wc = lab_peer_sent(p, status);
	assert_int_equal(wc.wr_id, w->wr_id);
	return wc;
}

static int try_poll(struct lab_peer *p, enum what what, struct ibv_wc *wc)
{
	struct command c = { .what = what };

	tell(p, &c, NULL);
	*wc = c.wc;
	return c.result;
}

static struct ibv_wc next(struct lab_peer *p, enum what what, enum ibv_wc_status status)
{
	struct deadline deadline = { 0 };
	struct base_pause pause = { 0 };
	struct ibv_wc wc;
	int n;

	while (!(n = try_poll(p, what, &wc))) {
		if (deadline_is_over(&deadline))
			fail_msg("no completion of a %s", what == POLL_SENT ? "send" : "receive");
		base_pause(&pause);
	}
	assert_int_equal(n, 1);
	if (wc.status != status)
		fail_msg("request %llu ends with '%s', not '%s'", (unsigned long long)wc.wr_id,
		         ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
	assert_int_equal(wc.qp_num, p->address.qpn);
	return wc;
}

struct ibv_wc lab_peer_sent(struct lab_peer *p, enum ibv_wc_status status)
{
	return next(p, POLL_SENT, status);
}

struct ibv_wc lab_peer_received(struct lab_peer *p, enum ibv_wc_status status)
{
	return next(p, POLL_RECEIVED, status);
}

int lab_peer_try_sent(struct lab_peer *p, struct ibv_wc *wc)
{
	return try_poll(p, POLL_SENT, wc);
}

int lab_peer_try_received(struct lab_peer *p, struct ibv_wc *wc)
{
	return try_poll(p, POLL_RECEIVED, wc);
}

/* ---- memory ---- */

void lab_peer_put(struct lab_peer *p, uint64_t at, const void *data, size_t bytes)
{
	struct command c = { .what = PUT, .at = at, .bytes = bytes };

	tell(p, &c, (void *)(uintptr_t)data);
}

void lab_peer_get(struct lab_peer *p, uint64_t at, void *data, size_t bytes)
{
	struct command c = { .what = GET, .at = at, .bytes = bytes };

	tell(p, &c, data);
}

uint8_t lab_pattern(unsigned seed, size_t i)
{
	return (uint8_t)(seed * 31 + i * 7 + i / 251);
}

void lab_peer_fill(struct lab_peer *p, uint64_t at, size_t bytes, unsigned seed)
{
	uint8_t *data = malloc(bytes + 1);

	assert_non_null(data);
	for (size_t i = 0; i < bytes; i++)
		data[i] = lab_pattern(seed, i);
	lab_peer_put(p, at, data, bytes);
	free(data);
}

void lab_peer_expect(struct lab_peer *p, uint64_t at, size_t bytes, unsigned seed)
{
	uint8_t *data = malloc(bytes + 1);
	size_t i = 0;

	assert_non_null(data);
	lab_peer_get(p, at, data, bytes);
	while (i < bytes && data[i] == lab_pattern(seed, i))
		i++;
	free(data);
	if (i < bytes)
		fail_msg("byte %zu of %zu differs", i, bytes);
}

/* ---- the rest ---- */

void lab_peer_event(struct lab_peer *p, enum ibv_event_type type)
{
	struct command c = { .what = EVENT };

	tell(p, &c, NULL);
	if (c.result < 0)
		fail_msg("no event comes, not '%s'", ibv_event_type_str(type));
	if (c.result != (int)type)
		fail_msg("the event is '%s', not '%s'", ibv_event_type_str(c.result),
		         ibv_event_type_str(type));
}

void lab_peer_no_event(struct lab_peer *p)
{
	struct command c = { .what = NO_EVENT };

	tell(p, &c, NULL);
	if (c.result >= 0)
		fail_msg("there is an event: '%s'", ibv_event_type_str(c.result));
}

int lab_peer_deregister(struct lab_peer *p)
{
	struct command c = { .what = DEREGISTER };

	tell(p, &c, NULL);
	return c.result;
}

void lab_peer_destroy_qp(struct lab_peer *p)
{
	struct command c = { .what = DESTROY_QP };

	tell(p, &c, NULL);
	assert_int_equal(c.result, 0);
}

void lab_peer_arm(struct lab_peer *p)
{
	struct command c = { .what = ARM };

	tell(p, &c, NULL);
	assert_int_equal(c.result, 0);
}

void lab_peer_sleep(struct lab_peer *p)
{
	struct command c = { .what = SLEEP };

	tell(p, &c, NULL);
}

void lab_peer_signal(struct lab_peer *p, int signal)
{
	char byte;

	assert_int_equal(kill(p->pid, signal), 0);
	if (signal == SIGKILL)
		while (recv(p->socket, &byte, 1, 0) > 0)
			;
}

/* It has answered: the command has come to its end. */
static bool has_answered(const struct lab_peer *p)
{
	char byte;

	return recv(p->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The command, whose work stops. As lab_peer_post_steps(). */
static unsigned take_steps(struct lab_peer *p, struct command *c, unsigned steps)
{
	unsigned n = 0;
	int status;

	c->work.stops = true;
	assert_int_equal(ptrace(PTRACE_SEIZE, p->pid, NULL, (void *)PTRACE_O_EXITKILL), 0);
	told(p, c, NULL);
	assert_int_equal(waitpid(p->pid, &status, __WALL), p->pid);
	/* how many there are is not the same each time; behind its answer it sleeps */
	for (; n < steps && !has_answered(p); n++) {
		assert_true(WIFSTOPPED(status));
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, p->pid, NULL, NULL), 0);
		assert_int_equal(waitpid(p->pid, &status, __WALL), p->pid);
	}
	return n;
}

unsigned lab_peer_post_steps(struct lab_peer *p, const struct lab_work *w, unsigned steps)
{
	struct command c = { .what = POST, .work = *w };

	if (w->to)
		c.address = w->to->address;
	return take_steps(p, &c, steps);
}

void lab_peer_post_end(struct lab_peer *p)
{
	struct command c = { .what = POST };

	assert_int_equal(ptrace(PTRACE_DETACH, p->pid, NULL, NULL), 0);
	replied(p, &c, NULL);
	assert_int_equal(c.result, 0);
}

void lab_peer_die(struct lab_peer *p)
{
	struct command c;
	int status;

	assert_int_equal(kill(p->pid, SIGKILL), 0);
	waitpid(p->pid, &status, __WALL);
	while (recv(p->socket, &c, sizeof(c), 0) > 0)
		;
}

unsigned lab_peer_post_and_die(struct lab_peer *p, const struct lab_work *w, unsigned steps)
{
	unsigned n = lab_peer_post_steps(p, w, steps);

	lab_peer_die(p);
	return n;
}

unsigned lab_peer_receive_and_die(struct lab_peer *p, const struct lab_work *w, unsigned steps)
{
	struct command c = { .what = RECEIVE, .work = *w };
	unsigned n = take_steps(p, &c, steps);

	lab_peer_die(p);
	return n;
}

void lab_peer_part(struct lab_peer *p)
{
	struct command c = { .what = PART };

	tell(p, &c, NULL);
}

void lab_peer_exec(struct lab_peer *p)
{
	struct command c = { .what = EXEC };
	char byte;

	told(p, &c, NULL);
	assert_true(transfer(p->socket, &byte, 1, false));
}

bool lab_peer_is_untouched(struct lab_peer *p)
{
	char byte = 0;

	assert_true(transfer(p->socket, &byte, 1, true));
	assert_true(transfer(p->socket, &byte, 1, false));
	return byte;
}

void lab_peer_riot(struct lab_peer *p, const struct lab_peer *to, uint64_t seed)
{
	struct command c = { .what = RIOT, .address = to->address, .at = seed };

	told(p, &c, NULL);
}

void lab_peer_flood(struct lab_peer *p, const struct lab_work *w)
{
	struct command c = { .what = FLOOD, .work = *w };

	if (w->to)
		c.address = w->to->address;
	told(p, &c, NULL);
}

void lab_peer_riot_step(struct lab_peer *p, const struct lab_peer *to, struct lab_riot *r)
{
	struct command c = { .address = to->address };

	riot_step(p->here, &c, r);
}

bool lab_peer_riot_ends(struct lab_peer *p, struct lab_riot *r)
{
	riot_polls(p->here, r);
	return !r->sent && !r->received;
}
