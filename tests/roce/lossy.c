// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lossy KEY=VALUE...: queue pairs, RC unless it says otherwise, between two hosts, whose network
 * may lose, double, damage and reorder packets; all that they do must be exact. One process on each
 * host, a client and a server, does the same to the other at the same time (tcp port "port", the
 * server's address is "server"):
 *
 *   messages    SEND, SEND and RDMA WRITE with immediate, of random lengths and contents, in order
 *   writes      RDMA WRITEs to random places, then a READ of the whole
 *   mixture     READs of random parts, WRITEs and fetch-and-adds under way together
 *   counter     queue pairs of both hosts add to one word of the server's
 *
 * With uc=1 the queue pairs are UC, and instead there are
 *
 *   unreliable  SEND and RDMA WRITE with immediate: what comes is whole, if not all comes. The
 * second time all comes
 *
 * With again=1 it then says "again", waits for SIGUSR1, and does it a second time, of which it says
 * how long it took. It ends in error when anything is wrong, or nothing happens for STALL_MS.
 */
#include "must.h"

#include <infiniband/verbs.h>
#include <netinet/tcp.h>

#include "base/pause.h"
#include "../qp_states.h"

#define STALL_MS 8000
#define MOST     20000 /* bytes of one request */
#define DEPTH    32    /* requests under way */
#define READS    16    /* max_rd_atomic */
#define RECEIVES 16    /* few: now and then the sender must wait for one */
/* Of what WRITE with immediate brings: more than may be under way, and be unseen. */
#define SLOTS     160
#define AREA      300000   /* more than one READ of Umbel's asks for at a time */
#define ADDERS    3        /* queue pairs that add: the first is used for all else, too */
#define ROUND     8        /* messages of UC before both sides meet */
#define MOST_UC   8000     /* bytes of each: nobody tells the sender when there is no room */
#define QUIET_MS  20       /* then what has not come is taken for lost */
#define FIRST_PSN 0xffff80 /* they come around soon */
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

enum key { PORT, GID, SEED, COUNT, ADDS, TIMEOUT, SLEEPS, AGAIN, UC, KEYS };

static const char *const key_name[KEYS] = {
	[PORT] = "port",     [GID] = "gid",     [SEED] = "seed",
	[COUNT] = "count",   [ADDS] = "adds",   [TIMEOUT] = "timeout",
	[SLEEPS] = "sleeps", [AGAIN] = "again", [UC] = "uc",
};

/* The memory that the peer reaches, and that messages are sent from. */
static struct memory {
	uint64_t shared, mine; /* counters: of all adders; of the peer */
	uint8_t slot[SLOTS][MOST];
	uint8_t area[AREA], scratch[AREA]; /* the peer writes; the mixture writes to the second */
	uint8_t receive[RECEIVES][MOST];
	uint8_t send[DEPTH][MOST];
	uint64_t word[DEPTH];
	uint8_t whole[AREA];
} memory;

/* The address that each side tells the other. */
struct address {
	union ibv_gid gid;
	uint64_t memory;
	uint32_t rkey, qpn[ADDERS];
};

struct end {
	uint32_t value[KEYS];
	const char *server; /* NULL: this is it */
	int peer;           /* TCP */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp[ADDERS], *local[2]; /* local: the server's own, to each other */
	struct address here, there;
	uint64_t turn;         /* how often all was done */
	uint8_t shadow[AREA];  /* what the peer's area should be */
	uint8_t scratch[AREA]; /* likewise */
	uint64_t last[ADDERS + 1];
};

/* A request that was chosen at random: both sides find the same for number @i. */
struct choice {
	unsigned kind;
	uint32_t length, at;
	uint64_t contents; /* key of fill() */
};

struct phase {
	const char *name;
	uint64_t sends, receives; /* how many there will be */
	unsigned depth;
	void (*post)(struct end *e, uint64_t i);
	void (*sent)(struct end *e, uint64_t i);
	void (*received)(struct end *e, uint64_t i, const struct ibv_wc *wc);
};

/* ---- randomness ---- */

/* splitmix64 */
static uint64_t mix(uint64_t z)
{
	z += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void fill(uint8_t *to, uint32_t length, uint64_t key)
{
	for (uint32_t i = 0; i < length; i++) {
		if (!(i & 7))
			key = mix(key);
		to[i] = (uint8_t)(key >> 8 * (i & 7));
	}
}

/* Request @i of a phase, of the client or the server. */
static struct choice choose(const struct end *e, bool of_server, char phase, uint64_t i)
{
	uint64_t r =
	        mix(e->value[SEED] ^ mix(i << 9 | (uint8_t)phase << 1 | of_server) ^ e->turn << 40);
	struct choice c = { .kind = r & 255, .contents = mix(r) };

	c.length = (uint32_t)(r >> 8 & 0xffff) % (MOST + 1);
	if ((r >> 24 & 7) == 0) /* lengths about those of packets */
		c.length = c.length % 4 * 1024 + (uint32_t)(r >> 28 & 1);
	c.at = (uint32_t)((r >> 32) % (AREA - MOST));
	return c;
}

static struct choice mine(const struct end *e, char phase, uint64_t i)
{
	return choose(e, !e->server, phase, i);
}

static struct choice theirs(const struct end *e, char phase, uint64_t i)
{
	return choose(e, e->server, phase, i);
}

/* Names the first byte that is wrong. */
static void expect_bytes(const uint8_t *got, const uint8_t *want, uint32_t length, const char *what,
                         uint64_t i)
{
	for (uint32_t at = 0; at < length; at++)
		must(got[at] == want[at], "%s %lu: byte %u of %u is 0x%02x, not 0x%02x", what, i,
		     at, length, got[at], want[at]);
}

static void expect_filled(const uint8_t *got, const struct choice *c, const char *what, uint64_t i)
{
	uint8_t want[MOST];

	fill(want, c->length, c->contents);
	expect_bytes(got, want, c->length, what, i);
}

static void expect_number(uint64_t got, uint64_t want, const char *what, uint64_t i)
{
	must(got == want, "%s %lu: %lu, not %lu", what, i, got, want);
}

/* ---- the other process ---- */

static void tell(struct end *e, const void *bytes, size_t length)
{
	check(send(e->peer, bytes, length, MSG_NOSIGNAL) == (ssize_t)length, "to the peer");
}

static void hear(struct end *e, void *bytes, size_t length)
{
	errno = EPIPE;
	check(recv(e->peer, bytes, length, MSG_WAITALL) == (ssize_t)length, "from the peer");
}

/* Until the other is there, too. */
static void meet(struct end *e, uint32_t where)
{
	uint32_t there;

	tell(e, &where, sizeof(where));
	hear(e, &there, sizeof(there));
	expect_number(there, where, "the peer is elsewhere:", 0);
}

static void connect_peer(struct end *e)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		                 .sin_port = htons((uint16_t)e->value[PORT]) };
	struct timeval limit = { .tv_sec = 2 * STALL_MS / 1000 };
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	check(fd >= 0, "socket");
	if (e->server) {
		check(inet_pton(AF_INET, e->server, &a.sin_addr) == 1, e->server);
		check(!connect(fd, (struct sockaddr *)&a, sizeof(a)), "connect");
		e->peer = fd;
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
		check(!bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, 1), "listen");
		e->peer = accept(fd, NULL, NULL);
		check(e->peer >= 0, "accept");
		close(fd);
	}
	setsockopt(e->peer, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (!e->value[AGAIN])
		setsockopt(e->peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

/* ---- queue pairs ---- */

static struct ibv_qp *create_qp(struct end *e)
{
	struct ibv_qp_init_attr init = { .send_cq = e->cq,
		                         .recv_cq = e->cq,
		                         .qp_type = e->value[UC] ? IBV_QPT_UC : IBV_QPT_RC,
		                         .sq_sig_all = 1,
		                         .cap = { DEPTH, RECEIVES, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		                    .port_num = 1,
		                    .qp_access_flags =
		                            e->value[UC] ? IBV_ACCESS_REMOTE_WRITE : ACCESS };
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	check(qp, "ibv_create_qp");
	check(!qp_to_init(qp, &attr), "INIT");
	return qp;
}

static void connect_qp(struct end *e, struct ibv_qp *qp, union ibv_gid gid, uint32_t qpn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
		                    .path_mtu = IBV_MTU_1024,
		                    .dest_qp_num = qpn,
		                    .rq_psn = FIRST_PSN,
		                    .max_dest_rd_atomic = READS,
		                    .min_rnr_timer = 10, /* 320 microseconds */
		                    .timeout = (uint8_t)e->value[TIMEOUT],
		                    .retry_cnt = 7,
		                    .rnr_retry = 7, /* for ever */
		                    .sq_psn = FIRST_PSN,
		                    .max_rd_atomic = READS };

	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = gid;
	attr.ah_attr.grh.sgid_index = (uint8_t)e->value[GID];
	attr.ah_attr.grh.hop_limit = 64;
	check(!qp_to_rtr(qp, &attr), "RTR");
	check(!qp_to_rts(qp, &attr), "RTS");
}

static void open_device(struct end *e)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	errno = ENODEV;
	check(list && list[0], "ibv_get_device_list");
	MUST(e->context = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	MUST(e->pd = ibv_alloc_pd(e->context));
	MUST(e->mr = ibv_reg_mr(e->pd, &memory, sizeof(memory), ACCESS));
	MUST(e->channel = ibv_create_comp_channel(e->context));
	MUST(e->cq = ibv_create_cq(e->context, (ADDERS + 2) * (DEPTH + RECEIVES), NULL, e->channel,
	                           0));
	check(!ibv_query_gid(e->context, 1, (int)e->value[GID], &e->here.gid), "ibv_query_gid");
}

static void post_receive(struct end *e, uint64_t i)
{
	struct ibv_sge sge = { (uintptr_t)memory.receive[i % RECEIVES], MOST, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(e->qp[0], &wr, &bad);
	check(!errno, "ibv_post_recv");
}

static void open_all(struct end *e)
{
	open_device(e);
	e->here.memory = (uintptr_t)&memory;
	e->here.rkey = e->mr->rkey;
	for (int i = 0; i < ADDERS; i++) {
		e->qp[i] = create_qp(e);
		e->here.qpn[i] = e->qp[i]->qp_num;
	}
	tell(e, &e->here, sizeof(e->here));
	hear(e, &e->there, sizeof(e->there));
	for (int i = 0; i < ADDERS; i++)
		connect_qp(e, e->qp[i], e->there.gid, e->there.qpn[i]);
	for (int i = 0; !e->server && i < 2; i++)
		e->local[i] = create_qp(e);
	for (int i = 0; !e->server && i < 2; i++)
		connect_qp(e, e->local[i], e->here.gid, e->local[!i]->qp_num);
	for (uint64_t i = 0; i < RECEIVES; i++)
		post_receive(e, i);
	meet(e, 0);
}

/* ---- requests ---- */

/* Request @i, between @from here and @to, a place in the peer's memory, which lies as ours does. */
static void post(struct end *e, struct ibv_qp *qp, struct ibv_send_wr *wr, const void *from,
                 uint32_t length, const void *to)
{
	struct ibv_sge sge = { (uintptr_t)from, length, e->mr->lkey };
	bool is_local = qp != e->qp[0] && qp != e->qp[1] && qp != e->qp[2];
	uint64_t addr = (is_local ? e->here.memory : e->there.memory) +
	                (uint64_t)((const uint8_t *)to - (uint8_t *)&memory);
	uint32_t rkey = is_local ? e->here.rkey : e->there.rkey;
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = 1;
	} else {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = rkey;
	}
	errno = ibv_post_send(qp, wr, &bad);
	check(!errno, "ibv_post_send");
}

/* Until there may be completions; @phase and numbers are for complaints. */
static void wait_for_completion(struct end *e, const struct phase *p, uint64_t sent,
                                uint64_t received)
{
	struct pollfd fd = { e->channel->fd, POLLIN, 0 };
	struct ibv_cq *cq;
	void *context;

	must(poll(&fd, 1, STALL_MS) == 1, "%s: stalls at %lu of %lu sent, %lu of %lu received",
	     p->name, sent, p->sends, received, p->receives);
	check(!ibv_get_cq_event(e->channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

/* Polls, or sleeps, for one completion. */
static void next_completion(struct end *e, const struct phase *p, uint64_t sent, uint64_t received,
                            struct ibv_wc *wc)
{
	const time_t end = time(NULL) + STALL_MS / 1000;
	struct base_pause pause = { 0 };

	while (!ibv_poll_cq(e->cq, 1, wc)) {
		if (!e->value[SLEEPS]) {
			if (base_pause(&pause) && time(NULL) > end)
				errx(EXIT_FAILURE,
				     "%s: stalls at %lu of %lu sent, %lu of %lu received", p->name,
				     sent, p->sends, received, p->receives);
			continue;
		}
		check(!ibv_req_notify_cq(e->cq, 0), "ibv_req_notify_cq");
		if (ibv_poll_cq(e->cq, 1, wc))
			break;
		wait_for_completion(e, p, sent, received);
	}
	must(wc->status == IBV_WC_SUCCESS, "%s: %s at %lu of %lu sent, %lu of %lu received",
	     p->name, ibv_wc_status_str(wc->status), sent, p->sends, received, p->receives);
}

static void run(struct end *e, const struct phase *p)
{
	uint64_t posted = 0, sent = 0, received = 0;
	struct ibv_wc wc;

	while (sent < p->sends || received < p->receives) {
		while (posted < p->sends && posted - sent < p->depth)
			p->post(e, posted++);
		next_completion(e, p, sent, received, &wc);
		if (wc.opcode & IBV_WC_RECV) {
			must(received < p->receives, "%s: more than %lu messages", p->name,
			     received);
			p->received(e, received++, &wc);
			continue;
		}
		expect_number(wc.wr_id, sent, p->name, sent);
		if (p->sent)
			p->sent(e, sent);
		sent++;
	}
	must(!ibv_poll_cq(e->cq, 1, &wc), "%s: a completion too many", p->name);
}

/* ---- messages ---- */

static const enum ibv_wr_opcode message_opcode[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
	                                             IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND };

static void post_message(struct end *e, uint64_t i)
{
	struct choice c = mine(e, 'm', i);
	struct ibv_send_wr wr = { .wr_id = i,
		                  .opcode = message_opcode[c.kind % 4],
		                  .imm_data = htonl((uint32_t)i) };

	fill(memory.send[i % DEPTH], c.length, c.contents);
	post(e, e->qp[0], &wr, memory.send[i % DEPTH], c.length, memory.slot[i % SLOTS]);
}

static void take_message(struct end *e, uint64_t i, const struct ibv_wc *wc)
{
	struct choice c = theirs(e, 'm', i);
	enum ibv_wr_opcode opcode = message_opcode[c.kind % 4];
	bool writes = opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	expect_number(wc->wr_id % RECEIVES, i % RECEIVES, "the receive of message", i);
	expect_number(wc->opcode, writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
	              "opcode of message", i);
	expect_number(wc->byte_len, c.length, "length of message", i);
	expect_number(!!(wc->wc_flags & IBV_WC_WITH_IMM), opcode != IBV_WR_SEND,
	              "whether there is immediate data with message", i);
	if (opcode != IBV_WR_SEND)
		expect_number(ntohl(wc->imm_data), i, "immediate data of message", i);
	expect_filled(writes ? memory.slot[i % SLOTS] : memory.receive[i % RECEIVES], &c, "message",
	              i);
	memset(memory.receive[i % RECEIVES], 0x55, MOST);
	post_receive(e, i);
}

static void send_messages(struct end *e)
{
	/* all receives are posted again at the end, in the places that the next turn expects */
	uint64_t n = e->value[COUNT] / RECEIVES * RECEIVES;

	run(e, &(struct phase){ "messages", n, n, DEPTH, post_message, NULL, take_message });
}

/* ---- WRITEs ---- */

static void post_write(struct end *e, uint64_t i)
{
	struct choice c = mine(e, 'w', i);
	struct ibv_send_wr wr = { .wr_id = i, .opcode = IBV_WR_RDMA_WRITE };

	fill(memory.send[i % DEPTH], c.length, c.contents);
	memcpy(e->shadow + c.at, memory.send[i % DEPTH], c.length);
	post(e, e->qp[0], &wr, memory.send[i % DEPTH], c.length, memory.area + c.at);
}

static void post_read_of_all(struct end *e, uint64_t i)
{
	struct ibv_send_wr wr = { .wr_id = i, .opcode = IBV_WR_RDMA_READ };

	post(e, e->qp[0], &wr, memory.whole, AREA, memory.area);
}

static void write_and_read(struct end *e)
{
	uint64_t n = e->value[COUNT];
	uint8_t want[AREA] = { 0 };

	memset(e->shadow, 0, AREA);
	memset(memory.area, 0, AREA);
	memset(memory.whole, 0x55, AREA);
	meet(e, 1);
	run(e, &(struct phase){ "writes", n, 0, DEPTH, post_write, NULL, NULL });
	run(e, &(struct phase){ "the READ of all", 1, 0, 1, post_read_of_all, NULL, NULL });
	expect_bytes(memory.whole, e->shadow, AREA, "the READ of all", 0);
	meet(e, 2);
	for (uint64_t i = 0; i < n; i++) {
		struct choice c = theirs(e, 'w', i);

		fill(want + c.at, c.length, c.contents);
	}
	expect_bytes(memory.area, want, AREA, "what the peer has written", 0);
}

/* ---- a mixture, with READs of what does not change ---- */

enum { A_READ, A_WRITE, AN_ADD, A_READ_TOO };

static void post_mixed(struct end *e, uint64_t i)
{
	struct choice c = mine(e, 'x', i);
	struct ibv_send_wr wr = { .wr_id = i, .opcode = IBV_WR_RDMA_READ };
	uint8_t *here = memory.send[i % DEPTH];

	if (c.kind % 4 == AN_ADD) {
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		memory.word[i % DEPTH] = UINT64_MAX;
		post(e, e->qp[0], &wr, &memory.word[i % DEPTH], 8, &memory.mine);
	} else if (c.kind % 4 == A_WRITE) {
		wr.opcode = IBV_WR_RDMA_WRITE;
		fill(here, c.length, c.contents);
		memcpy(e->scratch + c.at, here, c.length);
		post(e, e->qp[0], &wr, here, c.length, memory.scratch + c.at);
	} else {
		memset(here, 0x55, MOST);
		post(e, e->qp[0], &wr, here, c.length, memory.area + c.at);
	}
}

static void check_mixed(struct end *e, uint64_t i)
{
	struct choice c = mine(e, 'x', i);

	if (c.kind % 4 == AN_ADD)
		expect_number(memory.word[i % DEPTH], e->last[0]++, "what add found,", i);
	else if (c.kind % 4 != A_WRITE)
		expect_bytes(memory.send[i % DEPTH], e->shadow + c.at, c.length, "READ", i);
}

static void do_mixture(struct end *e)
{
	uint64_t n = e->value[COUNT], adds = 0;
	uint8_t want[AREA] = { 0 };

	memset(e->scratch, 0, AREA);
	memset(memory.scratch, 0, AREA);
	memory.mine = e->last[0] = 0;
	meet(e, 3);
	run(e, &(struct phase){ "mixture", n, 0, DEPTH, post_mixed, check_mixed, NULL });
	meet(e, 4);
	for (uint64_t i = 0; i < n; i++) {
		struct choice c = theirs(e, 'x', i);

		if (c.kind % 4 == A_WRITE)
			fill(want + c.at, c.length, c.contents);
		adds += c.kind % 4 == AN_ADD;
	}
	expect_bytes(memory.scratch, want, AREA, "what the peer has written in the mixture", 0);
	expect_number(memory.mine, adds, "what the peer has added", 0);
}

/* ---- one counter for all ---- */

/* Adders of this side: the client's queue pairs; one of the server's, to itself. */
static unsigned adders(const struct end *e)
{
	return e->server ? ADDERS : 1;
}

static void post_add(struct end *e, unsigned adder, uint64_t i)
{
	struct ibv_send_wr wr = { .wr_id = i * ADDERS + adder,
		                  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD };

	post(e, e->server ? e->qp[adder] : e->local[0], &wr,
	     &memory.word[adder * (DEPTH / ADDERS) + i % (DEPTH / ADDERS)], 8, &memory.shared);
}

/* Each adder makes as many; each must find more than it did before. */
static void count_together(struct end *e)
{
	const struct phase p = { .name = "counter", .sends = adders(e) * e->value[ADDS] };
	uint64_t posted[ADDERS] = { 0 }, sent[ADDERS] = { 0 }, total = 0, found;
	struct ibv_wc wc;

	memset(e->last, 0, sizeof(e->last));
	memory.shared = 0;
	meet(e, 5);
	while (total < p.sends) {
		unsigned adder;

		for (adder = 0; adder < adders(e); adder++)
			while (posted[adder] < e->value[ADDS] &&
			       posted[adder] - sent[adder] < DEPTH / ADDERS)
				post_add(e, adder, posted[adder]++);
		next_completion(e, &p, total, 0, &wc);
		adder = wc.wr_id % ADDERS;
		expect_number(wc.wr_id / ADDERS, sent[adder], "add", total);
		found = memory.word[adder * (DEPTH / ADDERS) + sent[adder] % (DEPTH / ADDERS)];
		must(found >= e->last[adder], "adder %u finds %lu after %lu", adder, found,
		     e->last[adder] - 1);
		e->last[adder] = found + 1;
		sent[adder]++;
		total++;
	}
	meet(e, 6);
	if (!e->server)
		expect_number(memory.shared, (ADDERS + 1) * (uint64_t)e->value[ADDS], "the counter",
		              0);
}

/* ---- UC ---- */

static unsigned ms_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned)((now.tv_sec - t->tv_sec) * 1000 + (now.tv_nsec - t->tv_nsec) / 1000000);
}

static struct choice choose_unreliable(const struct end *e, bool of_server, uint64_t i)
{
	struct choice c = choose(e, of_server, 'u', i);

	c.length %= MOST_UC;
	return c;
}

/* Where WRITE @i goes. Those of hundreds have places of their own: on a busy machine a message can
 * be later than many rounds. */
static uint8_t *place_unreliable(uint64_t i)
{
	return memory.slot[0] + i % (sizeof(memory.slot) / MOST_UC) * MOST_UC;
}

static void post_unreliable(struct end *e, uint64_t i)
{
	struct choice c = choose_unreliable(e, !e->server, i);
	struct ibv_send_wr wr = { .wr_id = i,
		                  .opcode = c.kind & 1 ? IBV_WR_SEND_WITH_IMM
		                                       : IBV_WR_RDMA_WRITE_WITH_IMM,
		                  .imm_data = htonl((uint32_t)i) };

	fill(memory.send[i % DEPTH], c.length, c.contents);
	post(e, e->qp[0], &wr, memory.send[i % DEPTH], c.length, place_unreliable(i));
}

/* Something has come, while messages before @end may have been sent. */
static void take_unreliable(struct end *e, const struct ibv_wc *wc, uint64_t end)
{
	uint64_t i = ntohl(wc->imm_data);
	struct choice c = choose_unreliable(e, e->server, i);
	bool writes = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;

	must(i < end && (wc->wc_flags & IBV_WC_WITH_IMM), "nobody has sent message %lu yet", i);
	expect_number(writes, !(c.kind & 1), "whether it is a WRITE, message", i);
	expect_number(wc->byte_len, c.length, "length of message", i);
	expect_filled(writes ? place_unreliable(i) : memory.receive[wc->wr_id], &c, "message", i);
	post_receive(e, wc->wr_id);
}

/* Messages from @first on, both ways. How many have come. */
static uint64_t do_round(struct end *e, uint64_t first)
{
	const unsigned patience = e->turn ? STALL_MS : QUIET_MS;
	uint64_t sent = 0, received = 0;
	struct base_pause pause = { 0 };
	struct timespec began;
	struct ibv_wc wc;
	bool told = false;

	for (uint64_t i = 0; i < ROUND; i++)
		post_unreliable(e, first + i);
	clock_gettime(CLOCK_MONOTONIC, &began);
	while (sent < ROUND || !told || (received < ROUND && ms_since(&began) < patience)) {
		if (sent == ROUND && !told) {
			meet(e, (uint32_t)first);
			told = true;
			clock_gettime(CLOCK_MONOTONIC, &began);
		}
		if (!ibv_poll_cq(e->cq, 1, &wc)) {
			base_pause(&pause);
			continue;
		}
		pause.looks = 0;
		must(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
		if (wc.opcode & IBV_WC_RECV) {
			take_unreliable(e, &wc, first + ROUND);
			received++;
		} else {
			expect_number(wc.wr_id, first + sent++, "sent", first);
		}
	}
	return received;
}

/* Packets that were late come to an end. */
static void wait_for_quiet(struct end *e)
{
	struct timespec began;
	struct ibv_wc wc;

	clock_gettime(CLOCK_MONOTONIC, &began);
	while (ms_since(&began) < QUIET_MS) {
		if (ibv_poll_cq(e->cq, 1, &wc)) {
			post_receive(e, wc.wr_id);
			clock_gettime(CLOCK_MONOTONIC, &began);
		}
	}
}

static void send_unreliably(struct end *e)
{
	uint64_t n = e->value[COUNT] / ROUND * ROUND, received = 0;

	wait_for_quiet(e);
	meet(e, 9);
	for (uint64_t i = 0; i < n; i += ROUND) {
		received += do_round(e, i);
		meet(e, 9); /* none of the next round is sent before */
	}
	printf("%lu of %lu messages have come\n", received, n);
	must(received >= (e->turn ? n : n / 8), "too few");
}

/* ---- all ---- */

static void do_all(struct end *e)
{
	static const struct {
		const char *name;
		void (*run)(struct end *e);
	} parts[] = { { "messages", send_messages },
		      { "writes", write_and_read },
		      { "mixture", do_mixture },
		      { "counter", count_together },
		      { "unreliable", send_unreliably } };
	const unsigned n = sizeof(parts) / sizeof(parts[0]);
	const unsigned from = e->value[UC] ? n - 1 : 0, to = e->value[UC] ? n : n - 1;
	struct timespec began;

	for (unsigned i = from; i < to; i++) {
		clock_gettime(CLOCK_MONOTONIC, &began);
		parts[i].run(e);
		printf("%s%s: %u ms\n", parts[i].name, e->turn ? " again" : "", ms_since(&began));
		meet(e, 10 + i);
	}
	e->turn++;
}

static void wait_for_signal(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	puts("again");
	check(!sigwait(&set, &sig), "sigwait");
}

static void parse_key(struct end *e, const char *argument)
{
	size_t length = strcspn(argument, "=");
	char *end;

	if (!strncmp(argument, "server=", 7)) {
		e->server = argument + 7;
		return;
	}
	for (unsigned i = 0; i < KEYS; i++)
		if (strlen(key_name[i]) == length && !strncmp(argument, key_name[i], length)) {
			e->value[i] = (uint32_t)strtoul(argument + length + 1, &end, 0);
			if (!*end && end != argument + length + 1)
				return;
		}
	errx(EXIT_FAILURE, "'%s' is not understood", argument);
}

int main(int argc, char **argv)
{
	static struct end e = {
		.value = { [GID] = 1, [SEED] = 1, [COUNT] = 160, [ADDS] = 300, [TIMEOUT] = 16 }
	};
	sigset_t set;

	for (int i = 1; i < argc; i++)
		parse_key(&e, argv[i]);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	setlinebuf(stdout);
	connect_peer(&e);
	open_all(&e);
	do_all(&e);
	if (e.value[AGAIN]) {
		wait_for_signal();
		meet(&e, 7);
		do_all(&e);
	}
	meet(&e, 8);
	puts("all is exact");
	return EXIT_SUCCESS;
}
