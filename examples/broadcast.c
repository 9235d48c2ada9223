/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A reliable broadcast of memory or of a file. The sender sends it once, to a multicast group, in
 * chunks of one MTU, the chunk's number as immediate data. Each receiver marks in a bitmap what has
 * come, and gets the rest by RDMA READ from the sender's memory. So a lost chunk costs only the
 * receiver that lost it; the sender's processor has no part in that.
 *
 * Chunks are received where they belong. The receives are posted for the chunks that come next, in
 * their order, so without a loss nothing is copied. Behind a loss the chunk lands one place below
 * its own: place p holds chunk held[p], which is p or more. New receives are posted for the right
 * places again, and in the end what is displaced moves up, the highest first, so that nothing is
 * overwritten.
 *
 * A receiver grants by its connection how far the sender may go: to the last chunk for which it has
 * a receive. A receiver that has granted nothing for a while is slow, or has lost all of that, and
 * is not waited for until it grants again.
 *
 * Numbers are in the byte order of the machines, which is one, but for immediate data.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "setup.h"

#define SEND_DEPTH  128
#define BATCH       64  /* completions that are taken at once */
#define WAKE_EVERY  128 /* chunks, receivers are woken */
#define PATIENCE_MS 100
#define MOST_READ   (1 << 20)
#define READS       16
#define GRANTS      4 /* that are under way */
#define NOTHING     UINT32_MAX
#define DONE        UINT32_MAX /* what a receiver says that has all */
#define END         0          /* what the sender says behind the last chunk */

/* The sender tells this to a receiver that connects. */
struct offer {
	uint64_t address, size, hash;
	uint32_t rkey, chunk;
};

struct options {
	const char *file;
	uint64_t size, chunk, receivers, window;
	bool verify;
};

static uint32_t n_chunks(const struct offer *o)
{
	return (uint32_t)((o->size + o->chunk - 1) / o->chunk);
}

/* Where chunk @i ends; it begins where the one before ends. */
static uint64_t end_of(const struct offer *o, uint32_t i)
{
	uint64_t end = (uint64_t)(i + 1) * o->chunk;

	return end < o->size ? end : o->size;
}

static uint64_t begin_of(const struct offer *o, uint32_t i)
{
	return (uint64_t)i * o->chunk;
}

static uint64_t hash_of(const char *memory, uint64_t size)
{
	uint64_t h = 0xcbf29ce484222325;

	for (uint64_t at = 0; at < size; at += sizeof(uint64_t)) {
		uint64_t word = 0;

		memcpy(&word, memory + at, size - at < sizeof(word) ? size - at : sizeof(word));
		h = (h ^ word) * 0x100000001b3;
	}
	return h;
}

static void report(const char *what, uint64_t size, uint64_t ns)
{
	double s = (double)ns / 1e9;

	printf("%s %llu bytes in %.6f s, %.3f GB/s", what, (unsigned long long)size, s,
	       (double)size / s / 1e9);
}

static struct ibv_cq *completion_queue(struct ibv_context *context, uint32_t depth)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq;

	must(channel, "ibv_create_comp_channel");
	cq = ibv_create_cq(context, (int)depth, NULL, channel, 0);
	must(cq, "ibv_create_cq");
	return cq;
}

/* Nothing but a number, to the connected peer. */
static void send_number(struct ibv_qp *qp, uint64_t wr_id, uint32_t value)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
		                  .opcode = IBV_WR_SEND_WITH_IMM,
		                  .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
		                  .imm_data = htonl(value) },
	                   *bad;

	must(!(errno = ibv_post_send(qp, &wr, &bad)), "ibv_post_send");
}

/* ---- the sender ---- */

struct peer {
	struct rdma_cm_id *id;
	uint32_t granted; /* it may be sent chunks below this one */
	bool is_late;
};

struct sender {
	struct group group;
	struct rdma_event_channel *channel;
	struct ibv_cq *cq; /* of the connections */
	struct ibv_srq *srq;
	struct ibv_mr *memory;
	struct offer offer;
	struct peer *peers;
	uint32_t n_peers, n_done, n_gone;
	uint32_t granted; /* the least of all that are there */
	uint64_t n_sent;
};

static void read_file(const char *path, char *memory, uint64_t size)
{
	int fd = open(path, O_RDONLY);
	uint64_t at = 0;

	must(fd >= 0, path);
	while (at < size) {
		ssize_t got = read(fd, memory + at, size - at);

		must(got >= 0, path);
		if (!got)
			errx(1, "%s has become shorter", path);
		at += (uint64_t)got;
	}
	close(fd);
}

static uint64_t size_of_file(const char *path)
{
	struct stat st;

	must(!stat(path, &st), path);
	if (!S_ISREG(st.st_mode) || !st.st_size)
		errx(1, "%s is no file, or empty", path);
	return (uint64_t)st.st_size;
}

/* Words that repeat nowhere (xorshift). */
static void fill(uint64_t *word, uint64_t size)
{
	uint64_t x = 88172645463325252;

	for (uint64_t i = 0; i < size / 8; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		word[i] = x;
	}
}

/* The bytes that are to be sent: all the memory is there from now on, and does not change. */
static void make_offer(struct sender *s, const struct options *o)
{
	struct ibv_port_attr port;
	struct offer *offer = &s->offer;

	must(!ibv_query_port(s->group.id->verbs, s->group.id->port_num, &port), "ibv_query_port");
	offer->size = o->file ? size_of_file(o->file) : o->size;
	offer->chunk = o->chunk ? (uint32_t)o->chunk : 128u << port.active_mtu;
	if ((offer->size - 1) / offer->chunk >= INT32_MAX)
		errx(1, "more chunks than immediate data can number");
	s->memory = allocate(s->group.id->pd, offer->size, IBV_ACCESS_REMOTE_READ);
	if (o->file)
		read_file(o->file, s->memory->addr, offer->size);
	else
		fill(s->memory->addr, offer->size);
	offer->address = (uintptr_t)s->memory->addr;
	offer->rkey = s->memory->rkey;
	offer->hash = hash_of(s->memory->addr, offer->size);
}

static void post_to_srq(struct sender *s, uint64_t n)
{
	struct ibv_recv_wr wr = { 0 }, *bad;

	while (n--)
		must(!(errno = ibv_post_srq_recv(s->srq, &wr, &bad)), "ibv_post_srq_recv");
}

static void open_sender(struct sender *s, const struct options *o, char **argv)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { SEND_DEPTH, 1, 1, 1, 0 } };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 2 * GRANTS * (uint32_t)o->receivers,
		                                   .max_sge = 1 } };

	s->group.id = open_port(argv[0]);
	must(!rdma_create_qp(s->group.id, NULL, &init), "rdma_create_qp");
	join(&s->group, argv[1], RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	make_offer(s, o);
	s->cq = completion_queue(s->group.id->verbs, srq.attr.max_wr + 2 * (uint32_t)o->receivers);
	s->srq = ibv_create_srq(s->group.id->pd, &srq);
	must(s->srq, "ibv_create_srq");
	post_to_srq(s, 2 * GRANTS * o->receivers);
	s->peers = calloc(o->receivers, sizeof(*s->peers));
	must(s->peers, "calloc");
	s->channel = rdma_create_event_channel();
	must(s->channel, "rdma_create_event_channel");
	listen_at(s->channel, argv[0]);
}

static void add_peer(struct sender *s, const struct options *o, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		                         .send_cq = s->cq,
		                         .recv_cq = s->cq,
		                         .srq = s->srq,
		                         .cap = { 1, 0, 1, 0, 0 } };

	if (s->n_sent || s->n_peers == o->receivers) {
		rdma_reject(id, NULL, 0);
		must(!rdma_destroy_id(id), "rdma_destroy_id");
		return;
	}
	accept_request(id, &init, &s->offer, sizeof(s->offer));
	s->peers[s->n_peers++] = (struct peer){ .id = id };
}

static void look_at_grants(struct sender *s)
{
	s->granted = n_chunks(&s->offer);
	for (uint32_t i = 0; i < s->n_peers; i++)
		if (s->peers[i].granted < s->granted && !s->peers[i].is_late)
			s->granted = s->peers[i].granted;
}

static void go_on_without(struct sender *s, uint32_t chunk)
{
	for (uint32_t i = 0; i < s->n_peers; i++)
		s->peers[i].is_late |= s->peers[i].granted <= chunk;
	look_at_grants(s);
}

/* Before the transfer begins another receiver may come instead. */
static void remove_peer(struct sender *s, struct rdma_cm_id *id)
{
	for (uint32_t i = 0; i < s->n_peers; i++)
		if (s->peers[i].id == id) {
			s->n_gone += s->n_sent && s->peers[i].granted != DONE;
			s->peers[i] = s->peers[--s->n_peers];
		}
	end_connection(id);
}

static void handle_event(struct sender *s, const struct options *o)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	must(!rdma_get_cm_event(s->channel, &event), "rdma_get_cm_event");
	type = event->event;
	id = event->id;
	must(!rdma_ack_cm_event(event), "rdma_ack_cm_event");
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		add_peer(s, o, id);
	else if (type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_CONNECT_ERROR ||
	         type == RDMA_CM_EVENT_UNREACHABLE)
		remove_peer(s, id);
}

static void take_grant(struct sender *s, uint32_t qpn, uint32_t value)
{
	for (uint32_t i = 0; i < s->n_peers; i++)
		if (s->peers[i].id->qp->qp_num == qpn) {
			s->peers[i].granted = value;
			s->peers[i].is_late = false;
			s->n_done += value == DONE;
		}
}

/* Waits for receivers. False: none says anything. A request that fails is of one that has gone: an
 * event says so. */
static bool hear_peers(struct sender *s, const struct options *o, int timeout_ms)
{
	struct ibv_wc wc[BATCH];
	int n = wait_completions(s->cq, BATCH, wc, s->channel->fd, timeout_ms);

	if (n < 0)
		return false;
	if (!n)
		handle_event(s, o);
	for (int i = 0; i < n; i++)
		if (wc[i].status == IBV_WC_SUCCESS && wc[i].opcode == IBV_WC_RECV) {
			take_grant(s, wc[i].qp_num, ntohl(wc[i].imm_data));
			post_to_srq(s, 1);
		}
	look_at_grants(s);
	return true;
}

/* A completion for half of the queue makes room in it. Receivers are woken now and then, and by the
 * last chunk before they are waited for. */
static void send_chunk(struct sender *s, uint32_t i)
{
	uint64_t begin = begin_of(&s->offer, i);
	struct ibv_sge sge = { s->offer.address + begin, (uint32_t)(end_of(&s->offer, i) - begin),
		               s->memory->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_SEND_WITH_IMM,
		                  .imm_data = htonl(i) },
	                   *bad;
	struct ibv_wc wc;
	bool is_half = ++s->n_sent % (SEND_DEPTH / 2) == 0;

	if (is_half)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (s->n_sent % WAKE_EVERY == 0 || i + 1 >= s->granted)
		wr.send_flags |= IBV_SEND_SOLICITED;
	wr.wr.ud.ah = s->group.ah;
	wr.wr.ud.remote_qpn = s->group.qpn;
	wr.wr.ud.remote_qkey = s->group.qkey;
	must(!(errno = ibv_post_send(s->group.id->qp, &wr, &bad)), "ibv_post_send");
	if (is_half) {
		wait_completions(s->group.id->send_cq, 1, &wc, -1, -1);
		check_completion(&wc);
	}
}

static void send_all(struct sender *s, const struct options *o)
{
	for (uint32_t i = 0; i < n_chunks(&s->offer); i++) {
		while (i >= s->granted)
			if (!hear_peers(s, o, PATIENCE_MS))
				go_on_without(s, i);
		send_chunk(s, i);
	}
	for (uint32_t i = 0; i < s->n_peers; i++)
		send_number(s->peers[i].id->qp, 0, END);
}

static int run_sender(const struct options *o, char **argv)
{
	struct sender s = { 0 };
	uint64_t start;

	open_sender(&s, o, argv);
	printf("listens\n");
	while (s.n_peers < o->receivers || !s.granted)
		hear_peers(&s, o, -1);
	start = now_ns();
	send_all(&s, o);
	while (s.n_done + s.n_gone < o->receivers)
		hear_peers(&s, o, -1);
	report("sent", s.offer.size, now_ns() - start);
	printf(" to %u receivers\n", s.n_done);
	while (s.n_peers) /* each hangs up when it knows that we have heard it */
		hear_peers(&s, o, -1);
	if (s.n_gone)
		errx(1, "%u receivers have gone", s.n_gone);
	return 0;
}

/* ---- a receiver ---- */

/* A work request is for a chunk's place, or is one of these. */
enum { FROM_SENDER = 1ull << 32, GRANT, READ };

struct receiver {
	struct group group;
	struct rdma_cm_id *peer;
	struct ibv_cq *cq; /* of both queue pairs */
	struct offer offer;
	struct ibv_mr *memory, *grh;
	uint32_t *held;   /* by each place: a chunk, or NOTHING */
	uint64_t *bitmap; /* of the chunks that are held */
	uint32_t next_place, n_posted;
	uint32_t next_chunk; /* behind the last one that has come */
	uint32_t granted;
	uint32_t n_grants, n_reads; /* under way */
	bool ended;
	uint64_t start_ns, repaired, moved;
};

static bool has(const struct receiver *r, uint32_t i)
{
	return r->bitmap[i / 64] >> i % 64 & 1;
}

/* The GRH goes where nobody looks, the chunk where it belongs. Each has room for a whole chunk, as
 * another one may come. */
static void post_place(struct receiver *r)
{
	uint32_t i = r->next_place++;
	struct ibv_sge sge[2] = {
		{ (uintptr_t)r->grh->addr, GRH_BYTES, r->grh->lkey },
		{ (uintptr_t)r->memory->addr + begin_of(&r->offer, i), r->offer.chunk,
		  r->memory->lkey },
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = sge, .num_sge = 2 }, *bad;

	must(!(errno = ibv_post_recv(r->group.id->qp, &wr, &bad)), "ibv_post_recv");
	r->n_posted++;
}

/* Chunk @i has come, in the receive of @place. One that came early or twice is not taken; what is
 * missing is READ. */
static void take_chunk(struct receiver *r, uint32_t place, uint32_t i)
{
	if (i >= n_chunks(&r->offer))
		return;
	if (r->next_chunk <= i)
		r->next_chunk = i + 1;
	if (i < place || has(r, i))
		return;
	r->held[place] = i;
	r->bitmap[i / 64] |= 1ull << i % 64;
}

static void take_completion(struct receiver *r, const struct ibv_wc *wc)
{
	if (!r->start_ns && wc->wr_id != GRANT)
		r->start_ns = now_ns();
	if (wc->wr_id == GRANT) {
		check_completion(wc);
		r->n_grants--;
	} else if (wc->wr_id == READ) {
		check_completion(wc);
		r->n_reads--;
	} else if (wc->wr_id == FROM_SENDER) {
		check_completion(wc);
		r->ended = true;
	} else {
		r->n_posted--;
		if (wc->status == IBV_WC_WR_FLUSH_ERR)
			return;
		check_completion(wc);
		take_chunk(r, (uint32_t)wc->wr_id, ntohl(wc->imm_data));
	}
}

/* Posts receives for the chunks behind those for which there are some, whatever got lost. */
static void post_places(struct receiver *r, uint32_t window)
{
	uint32_t n = n_chunks(&r->offer);

	if (r->next_place < r->next_chunk + r->n_posted)
		r->next_place = r->next_chunk + r->n_posted;
	while (r->next_place < n && r->n_posted < window)
		post_place(r);
}

/* Receives are posted before messages come. The first grant says that all is ready. */
static void open_receiver(struct receiver *r, const struct options *o, char **argv)
{
	uint32_t window = (uint32_t)o->window;
	struct ibv_qp_init_attr ud = { .qp_type = IBV_QPT_UD, .cap = { 1, window, 1, 2, 0 } };
	struct ibv_qp_init_attr rc = { .qp_type = IBV_QPT_RC,
		                       .cap = { GRANTS + READS + 1, 1, 1, 1, 0 } };
	struct ibv_recv_wr end = { .wr_id = FROM_SENDER }, *bad;
	uint32_t n;

	r->group.id = open_port(argv[0]);
	r->cq = completion_queue(r->group.id->verbs, window + rc.cap.max_send_wr + 2);
	ud.send_cq = ud.recv_cq = rc.send_cq = rc.recv_cq = r->cq;
	must(!rdma_create_qp(r->group.id, NULL, &ud), "rdma_create_qp");
	r->peer = connect_to(argv[0], argv[2], &rc, &r->offer, sizeof(r->offer));
	must(!(errno = ibv_post_recv(r->peer->qp, &end, &bad)), "ibv_post_recv");
	n = n_chunks(&r->offer);
	r->memory = allocate(r->group.id->pd, begin_of(&r->offer, n), IBV_ACCESS_LOCAL_WRITE);
	r->grh = allocate(r->group.id->pd, GRH_BYTES, IBV_ACCESS_LOCAL_WRITE);
	r->bitmap = calloc(n / 64 + 1, sizeof(*r->bitmap));
	r->held = malloc(n * sizeof(*r->held));
	must(r->bitmap && r->held, "malloc");
	memset(r->held, 0xff, n * sizeof(*r->held)); /* NOTHING */
	post_places(r, window);
	join(&r->group, argv[1], RDMA_MC_JOIN_FLAG_FULLMEMBER);
}

/* Tells the sender how far it may go: whenever that is a quarter of the window more, or all. */
static void grant(struct receiver *r, uint32_t window)
{
	uint32_t n = n_chunks(&r->offer), may_come = r->next_chunk + r->n_posted;

	if (may_come > n)
		may_come = n;
	if (r->n_grants == GRANTS || may_come <= r->granted ||
	    (may_come - r->granted < window / 4 && may_come < n))
		return;
	send_number(r->peer->qp, GRANT, may_come);
	r->granted = may_come;
	r->n_grants++;
}

static void take_completions(struct receiver *r, const struct ibv_wc *wc, int n)
{
	if (!n)
		errx(1, "the sender has gone");
	for (int i = 0; i < n; i++)
		take_completion(r, &wc[i]);
}

/* Most chunks are taken when a later one wakes it. */
static void wait_for_sender(struct receiver *r)
{
	struct ibv_wc wc[BATCH];

	take_completions(r, wc, wait_solicited(r->cq, BATCH, wc, r->peer->channel->fd));
}

static void wait_for_requests(struct receiver *r)
{
	struct ibv_wc wc[BATCH];

	take_completions(r, wc, wait_completions(r->cq, BATCH, wc, r->peer->channel->fd, -1));
}

static void wait_for_rest(struct receiver *r)
{
	while (r->n_posted || r->n_grants)
		wait_for_requests(r);
}

/* From now on nobody writes into the memory: a queue pair in error gives back what was posted. */
static void stop_receiving(struct receiver *r)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	must(!(errno = ibv_modify_qp(r->group.id->qp, &attr, IBV_QP_STATE)), "ibv_modify_qp");
	wait_for_rest(r);
}

/* The highest first: the place to which a chunk moves has been left before. */
static void move_displaced(struct receiver *r)
{
	char *memory = r->memory->addr;

	for (uint32_t place = n_chunks(&r->offer); place-- > 0;) {
		uint32_t i = r->held[place];
		uint64_t begin = begin_of(&r->offer, i), size;

		if (i == NOTHING || i == place)
			continue;
		size = end_of(&r->offer, i) - begin;
		memcpy(memory + begin, memory + begin_of(&r->offer, place), size);
		r->moved += size;
	}
}

static void post_read(struct receiver *r, uint64_t at, uint64_t size)
{
	struct ibv_sge sge = { (uintptr_t)r->memory->addr + at, (uint32_t)size, r->memory->lkey };
	struct ibv_send_wr wr = { .wr_id = READ,
		                  .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_RDMA_READ,
		                  .send_flags = IBV_SEND_SIGNALED,
		                  .wr.rdma = { r->offer.address + at, r->offer.rkey } },
	                   *bad;

	must(!(errno = ibv_post_send(r->peer->qp, &wr, &bad)), "ibv_post_send: READ");
	r->n_reads++;
	r->repaired += size;
}

/* Waits until at most so many READs are under way. */
static void wait_reads(struct receiver *r, uint32_t most)
{
	while (r->n_reads > most)
		wait_for_requests(r);
}

/* READs from @at to @end. */
static void read_range(struct receiver *r, uint64_t at, uint64_t end)
{
	while (at < end) {
		uint64_t size = end - at < MOST_READ ? end - at : MOST_READ;

		wait_reads(r, READS - 1);
		post_read(r, at, size);
		at += size;
	}
}

/* Neighbours at once. */
static void repair(struct receiver *r)
{
	uint32_t n = n_chunks(&r->offer);

	for (uint32_t i = 0, first; i < n; i++) {
		if (has(r, i))
			continue;
		first = i;
		while (i + 1 < n && !has(r, i + 1))
			i++;
		read_range(r, begin_of(&r->offer, first), end_of(&r->offer, i));
	}
	wait_reads(r, 0);
}

static void write_file(const char *path, const char *memory, uint64_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	must(fd >= 0, path);
	while (size) {
		ssize_t n = write(fd, memory, size);

		must(n >= 0, path);
		memory += n;
		size -= (uint64_t)n;
	}
	must(!close(fd), path);
}

static int run_receiver(const struct options *o, char **argv)
{
	uint32_t window = (uint32_t)o->window;
	struct receiver r = { 0 };

	open_receiver(&r, o, argv);
	grant(&r, window);
	printf("ready\n");
	while (!r.ended) {
		wait_for_sender(&r);
		post_places(&r, window);
		grant(&r, window);
	}
	stop_receiving(&r);
	move_displaced(&r);
	repair(&r);
	report("received", r.offer.size, now_ns() - r.start_ns);
	printf("; repaired %llu, moved %llu bytes\n", (unsigned long long)r.repaired,
	       (unsigned long long)r.moved);
	send_number(r.peer->qp, GRANT, DONE);
	r.n_grants++;
	wait_for_rest(&r);
	rdma_disconnect(r.peer); /* the sender may have done so */
	if (o->verify && hash_of(r.memory->addr, r.offer.size) != r.offer.hash)
		errx(1, "that is not what was sent");
	if (o->file)
		write_file(o->file, r.memory->addr, r.offer.size);
	return 0;
}

/* ---- */

static void usage(int status)
{
	fprintf(status ? stderr : stdout,
	        "usage: broadcast [OPTION]... ADDRESS GROUP         sends\n"
	        "       broadcast [OPTION]... ADDRESS GROUP SENDER  receives\n"
	        "ADDRESS is that of the port, SENDER the one that the sender has.\n"
	        "  -f FILE       sends this file, or writes it\n"
	        "  -m SIZE       sends so much memory, in bytes, K, M or G (default: 16M)\n"
	        "  -c CHUNK      bytes (default: the port's MTU; at most the group's)\n"
	        "  -n RECEIVERS  begins when so many are there (default: 1)\n"
	        "  -w WINDOW     chunks for which a receiver has posted receives (default: 512)\n"
	        "  -v            the receiver verifies what it has\n");
	exit(status);
}

static uint64_t size_of(char *text)
{
	static const char units[] = "KMG";
	size_t length = strlen(text);
	const char *unit = length ? strchr(units, text[length - 1]) : NULL;

	if (!unit || !*unit)
		return number(text, 1, 1ull << 40);
	text[length - 1] = '\0';
	return number(text, 1, 1024) << (10 * (unit - units + 1));
}

int main(int argc, char **argv)
{
	struct options o = { .size = 16 << 20, .receivers = 1, .window = 512 };
	int option;

	while ((option = getopt(argc, argv, "f:m:c:n:w:vh")) != -1)
		switch (option) {
		case 'f':
			o.file = optarg;
			break;
		case 'm':
			o.size = size_of(optarg);
			break;
		case 'c':
			o.chunk = number(optarg, 8, 4096);
			break;
		case 'n':
			o.receivers = number(optarg, 1, 1000);
			break;
		case 'w':
			o.window = number(optarg, 4, 16384);
			break;
		case 'v':
			o.verify = true;
			break;
		default:
			usage(option == 'h' ? 0 : 2);
		}
	setlinebuf(stdout);
	if (argc - optind == 2)
		return run_sender(&o, argv + optind);
	if (argc - optind == 3)
		return run_receiver(&o, argv + optind);
	usage(2);
}
