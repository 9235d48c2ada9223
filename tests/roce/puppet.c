// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * puppet PEER SECONDS: a connected queue pair whose peer is at that IPv4 address, and that does
 * what it is told, line by line. Each line is answered by one line, after so many seconds at most.
 * Keys are KEY=VALUE.
 *
 *   create KEYS        another queue pair, instead of the last one: "qp NUMBER"
 *   connect KEYS       brings it to RTS: "ok"
 *   reset              brings it to RESET: "ok"
 *   recv AT BYTES      posts a receive: "ok"
 *   post KEYS          posts a request: "ok"
 *   window AT BYTES    gives this memory a key that peers can invalidate: "window RKEY"
 *   wait               the next completion, for which it waits: "wc ID STATUS OPCODE BYTES IMM"
 *   look               likewise, or "none"
 *   move STATE [TIMER] to SQD, with an event, or to RTS with this min_rnr_timer: "ok"
 *   state              "state NUMBER", as in enum ibv_qp_state
 *   event              the next asynchronous event, for which it waits: "event NUMBER"
 *   look_event         likewise, or "none"
 *   poke AT BYTES BYTE fills memory: "ok"
 *   peek AT BYTES      memory, in hexadecimal
 *   stand KIND         other memory in place of the first key's: "plain", or of a "file":
 *                      "memory ADDRESS RKEY READABLE-RKEY"
 *   protect HOW        the last pages of that: so that "none" or "read" accesses are allowed, or
 * "all": "ok" drop HOW           they go: "unmapped", or the file is "cut": "ok" hold TURN another
 * worker has its egress (src/shared/shm/packets.h), at this turn: "wanted", if somebody else wants
 * it by now, or "ok" refusal            what it will tell its peer once it may: "refusal SYNDROME",
 * 0 if nothing let_go             nobody has it: "ok" lock               another worker has the
 * lock of its responder: "ok" unlock             nobody has it: "ok" arm                the next
 * completion of what completes apart has an event: "ok" sleep              waits for that: "woken",
 * or "none" opened             "opened NUMBER", as in src/shared/shm/packets.h fate WHAT [WHEN] the
 * next time that packets leave, "before" they do or "after", or "copies" to another program's
 * memory begin, or it "wakes" one, or "takes" packets off a socket, it stops, dies, forks (its
 * child ends), spawns (its child execs) or execs: "ok"
 *
 * AT is an offset into its memory, of which "memory ADDRESS RKEY READABLE-RKEY" says at first where
 * it is: the first key lets peers do all, the other one lets them read the last page.
 */
#include "must.h"

#include <infiniband/verbs.h>

#include "base/pause.h"
#include "base/util.h"
#include "control/client.h"
#include "control/path.h"
#include "shm/region.h"
#include "shm/packets.h"
#include "../qp_states.h"

#define ROCE_PORT 4791
#define PAGE      4096
#define AREA      (16 * PAGE)
#define DEPTH     64
#define KEYED     (AREA - PAGE)      /* by the first key */
#define LAST      (KEYED - 3 * PAGE) /* where the last pages of that begin */
#define REMOTE                                                                         \
	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | \
	 ACCESS_FLUSH_GLOBAL)

/* Missing in older headers: annex A19. */
enum {
	WR_FLUSH = 14,
	WR_ATOMIC_WRITE = 15,
	ACCESS_FLUSH_GLOBAL = 1 << 8,
	EX_WITH_FLUSH = 1 << 11,
	EX_WITH_ATOMIC_WRITE = 1 << 12,
};
typedef void (*flush_fn)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, size_t length,
                         uint8_t type, uint8_t level);

enum key {
	/* qp */
	UC,
	PEER_QPN,
	MTU, /* enum ibv_mtu */
	SQ_PSN,
	RQ_PSN,
	TIMEOUT,
	RETRY,
	RNR,
	TIMER,
	READS,
	SRQ,   /* bool */
	DENY,  /* access flags that it lacks */
	APART, /* 1: its requests have a completion queue of their own; 2: its receives */
	/* post */
	ID,
	OPCODE, /* enum ibv_wr_opcode */
	AT,
	BYTES,
	REMOTE_ADDR,
	RKEY,
	IMM,
	COMPARE,
	SWAP, /* atomic WRITE: if BYTES is 0; FLUSH: its type, and its level from bit 8 on */
	FENCE,
	KEYS,
};

static const char *const key_name[KEYS] = {
	[UC] = "uc",         [PEER_QPN] = "peer",   [MTU] = "mtu",         [SQ_PSN] = "sq_psn",
	[RQ_PSN] = "rq_psn", [TIMEOUT] = "timeout", [RETRY] = "retry",     [RNR] = "rnr",
	[TIMER] = "timer",   [READS] = "reads",     [SRQ] = "srq",         [ID] = "id",
	[OPCODE] = "opcode", [AT] = "at",           [BYTES] = "bytes",     [REMOTE_ADDR] = "remote",
	[RKEY] = "rkey",     [IMM] = "imm",         [COMPARE] = "compare", [SWAP] = "swap",
	[FENCE] = "fence",   [DENY] = "deny",       [APART] = "apart",
};

static struct puppet {
	union ibv_gid peer;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of @apart; NULL: there is none yet */
	struct ibv_cq *cq, *apart;
	struct ibv_mr *mr, *readable, *large;
	int file; /* that the memory is of; -1: none */
	struct ibv_qp *qp;
	struct ibv_srq *srq; /* its receives are there; or NULL */
	uint64_t value[KEYS];
	unsigned wait_ms;
	struct shm_region region; /* mapped with the first "hold" */
	char fate[8];             /* or "" */
	char when[8];             /* then */
} puppet = { .file = -1 };

static _Alignas(PAGE) uint8_t area[AREA];

/* The keys of a line, of those that strtok() has yet to find. */
static void parse_keys(struct puppet *p)
{
	char *word;

	memset(p->value, 0, sizeof(p->value));
	while ((word = strtok(NULL, " ")) != NULL) {
		size_t length = strcspn(word, "=");
		unsigned i = 0;

		while (i < KEYS &&
		       (strlen(key_name[i]) != length || strncmp(word, key_name[i], length) != 0))
			i++;
		must(i != KEYS && word[length] == '=', "puppet: '%s' is not understood", word);
		p->value[i] = strtoull(word + length + 1, NULL, 0);
	}
}

/* The next number of a line. */
static uint64_t number(void)
{
	const char *word = strtok(NULL, " ");

	must(word, "puppet: a number is missing");
	return strtoull(word, NULL, 0);
}

/* An offset and a length that lie in the memory. */
static uint8_t *place(uint32_t *bytes)
{
	uint64_t at = number();

	*bytes = (uint32_t)number();
	must(at <= AREA && *bytes <= AREA - at, "puppet: outside of all");
	return area + at;
}

/* ---- commands ---- */

static void register_memory(struct puppet *p)
{
	MUST(p->mr = ibv_reg_mr(p->pd, area, KEYED,
	                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | REMOTE));
}

static void show_memory(const struct puppet *p)
{
	printf("memory %lu %u %u\n", (unsigned long)(uintptr_t)area, p->mr->rkey,
	       p->readable->rkey);
}

static void open_device(struct puppet *p)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	errno = ENODEV;
	check(list && list[0], "ibv_get_device_list");
	MUST(p->context = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	MUST(p->pd = ibv_alloc_pd(p->context));
	register_memory(p);
	MUST(p->readable = ibv_reg_mr(p->pd, area + KEYED, PAGE, IBV_ACCESS_REMOTE_READ));
	MUST(p->cq = ibv_create_cq(p->context, 4 * DEPTH, NULL, NULL, 0));
}

static void connect_qp(struct puppet *p)
{
	const uint64_t *v = p->value;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		                    .port_num = 1,
		                    .qp_access_flags = REMOTE };

	parse_keys(p);

	if (v[UC])
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	attr.qp_access_flags &= ~(unsigned)v[DENY];
	check(!qp_to_init(p->qp, &attr), "INIT");
	attr.path_mtu = (enum ibv_mtu)v[MTU];
	attr.dest_qp_num = (uint32_t)v[PEER_QPN];
	attr.rq_psn = (uint32_t)v[RQ_PSN];
	attr.max_dest_rd_atomic = 16;
	attr.min_rnr_timer = (uint8_t)v[TIMER];
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = p->peer;
	attr.ah_attr.grh.sgid_index = 1;
	attr.ah_attr.grh.hop_limit = 64;
	check(!qp_to_rtr(p->qp, &attr), "RTR");
	attr.sq_psn = (uint32_t)v[SQ_PSN];
	attr.timeout = (uint8_t)v[TIMEOUT];
	attr.retry_cnt = (uint8_t)v[RETRY];
	attr.rnr_retry = (uint8_t)v[RNR];
	attr.max_rd_atomic = (uint8_t)v[READS];
	check(!qp_to_rts(p->qp, &attr), "RTS");
	puts("ok");
}

static struct ibv_cq *apart(struct puppet *p)
{
	if (p->apart)
		return p->apart;
	MUST(p->channel = ibv_create_comp_channel(p->context));
	MUST(p->apart = ibv_create_cq(p->context, 4 * DEPTH, NULL, p->channel, 0));
	return p->apart;
}

static void create_qp(struct puppet *p)
{
	struct ibv_qp_init_attr_ex init = { .send_cq = p->cq,
		                            .recv_cq = p->cq,
		                            .cap = { DEPTH, DEPTH, 1, 1, 0 },
		                            .sq_sig_all = 1,
		                            .pd = p->pd,
		                            .comp_mask = IBV_QP_INIT_ATTR_PD };

	parse_keys(p);
	if (p->qp) {
		errno = ibv_destroy_qp(p->qp);
		check(!errno, "ibv_destroy_qp");
	}
	if (p->srq) {
		errno = ibv_destroy_srq(p->srq);
		check(!errno, "ibv_destroy_srq");
		p->srq = NULL;
	}
	if (p->value[SRQ]) {
		init.srq = p->srq = ibv_create_srq(
		        p->pd, &(struct ibv_srq_init_attr){ .attr = { DEPTH, 1, 0 } });
		check(p->srq, "ibv_create_srq");
	}
	if (p->value[APART] == 1)
		init.send_cq = apart(p);
	else if (p->value[APART])
		init.recv_cq = apart(p);
	init.qp_type = p->value[UC] ? IBV_QPT_UC : IBV_QPT_RC;
	if (!p->value[UC]) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = EX_WITH_FLUSH | EX_WITH_ATOMIC_WRITE;
	}
	MUST(p->qp = ibv_create_qp_ex(p->context, &init));
	printf("qp %u\n", p->qp->qp_num);
}

static void post_receive(struct puppet *p)
{
	uint32_t bytes;
	uint8_t *at = place(&bytes);
	struct ibv_sge sge = { (uintptr_t)at, bytes, p->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	wr.wr_id = (uint64_t)(at - area);
	errno = p->srq ? ibv_post_srq_recv(p->srq, &wr, &bad) : ibv_post_recv(p->qp, &wr, &bad);
	check(!errno, "ibv_post_recv");
	puts("ok");
}

/* Requests that ibv_post_send() has no place for: a FLUSH, and a word that is the request's own. */
static void post_placed(struct puppet *p)
{
	const uint64_t *v = p->value;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p->qp);
	flush_fn flush;

	ibv_wr_start(ex);
	ex->wr_id = v[ID];
	ex->wr_flags = v[FENCE] ? IBV_SEND_FENCE : 0;
	if (v[OPCODE] == WR_FLUSH) {
		/* behind the end of struct ibv_qp_ex of older headers */
		memcpy(&flush,
		       (char *)ex + offsetof(struct ibv_qp_ex, wr_abort) + 2 * sizeof(void *),
		       sizeof(flush));
		flush(ex, (uint32_t)v[RKEY], v[REMOTE_ADDR], v[BYTES], (uint8_t)v[SWAP],
		      (uint8_t)(v[SWAP] >> 8));
	} else {
		ibv_wr_atomic_write(ex, (uint32_t)v[RKEY], v[REMOTE_ADDR], &v[SWAP]);
	}
	errno = ibv_wr_complete(ex);
	check(!errno, "ibv_wr_complete");
	puts("ok");
}

/* Memory for the longest message, which has no content. */
static struct ibv_mr *large(struct puppet *p)
{
	const size_t bytes = (size_t)1 << 31;
	void *at;

	if (p->large)
		return p->large;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
	          -1, 0);
	check(at != MAP_FAILED, "mmap");
	MUST(p->large = ibv_reg_mr(p->pd, at, bytes, IBV_ACCESS_LOCAL_WRITE));
	return p->large;
}

static void post_request(struct puppet *p)
{
	const uint64_t *v = p->value;
	struct ibv_send_wr wr = { .num_sge = 1 }, *bad;
	struct ibv_sge sge;

	parse_keys(p);
	if (v[OPCODE] == WR_FLUSH || (v[OPCODE] == WR_ATOMIC_WRITE && !v[BYTES])) {
		post_placed(p);
		return;
	}
	wr.wr_id = v[ID];
	wr.opcode = (enum ibv_wr_opcode)v[OPCODE];
	wr.imm_data = htonl((uint32_t)v[IMM]);
	wr.send_flags = v[FENCE] ? IBV_SEND_FENCE : 0;
	sge = (struct ibv_sge){ (uintptr_t)area + v[AT], (uint32_t)v[BYTES], p->mr->lkey };
	if (v[BYTES] > AREA)
		sge = (struct ibv_sge){ (uintptr_t)large(p)->addr, (uint32_t)v[BYTES],
			                large(p)->lkey };
	wr.sg_list = &sge;
	if (wr.opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = (uint32_t)v[RKEY];
	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = v[REMOTE_ADDR];
		wr.wr.atomic.rkey = (uint32_t)v[RKEY];
		wr.wr.atomic.compare_add = v[COMPARE];
		wr.wr.atomic.swap = v[SWAP];
	} else {
		wr.wr.rdma.remote_addr = v[REMOTE_ADDR];
		wr.wr.rdma.rkey = (uint32_t)v[RKEY];
	}
	errno = ibv_post_send(p->qp, &wr, &bad);
	check(!errno, "ibv_post_send");
	puts("ok");
}

/* Nothing may be under way. */
static void make_window(struct puppet *p)
{
	struct ibv_mw *mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;
	struct base_pause pause = { 0 };
	struct ibv_wc wc = { 0 };
	uint32_t bytes;

	check(mw, "ibv_alloc_mw");
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info.mr = p->mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)place(&bytes);
	wr.bind_mw.bind_info.length = bytes;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	errno = ibv_post_send(p->qp, &wr, &bad);
	check(!errno, "ibv_post_send");
	while (!ibv_poll_cq(p->cq, 1, &wc))
		base_pause(&pause);
	must(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_BIND_MW, "puppet: not bound: %s",
	     ibv_wc_status_str(wc.status));
	printf("window %u\n", wr.bind_mw.rkey);
}

static int poll_both(struct puppet *p, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(p->cq, 1, wc);

	return n || !p->apart ? n : ibv_poll_cq(p->apart, 1, wc);
}

static void show_completion(struct puppet *p, uint64_t wait_ms)
{
	const uint64_t end = base_now_ns() / 1000000 + wait_ms;
	struct base_pause pause = { 0 };
	struct ibv_wc wc;
	int n;

	while (!(n = poll_both(p, &wc)) && base_now_ns() / 1000000 < end)
		base_pause(&pause);
	check(n >= 0, "ibv_poll_cq");
	if (n)
		printf("wc %lu %u %u %u %u\n", (unsigned long)wc.wr_id, wc.status, wc.opcode,
		       wc.byte_len, wc.wc_flags & IBV_WC_WITH_IMM ? ntohl(wc.imm_data) : 0);
	else
		puts("none");
}

static void arm(struct puppet *p)
{
	errno = ibv_req_notify_cq(p->apart, 0);
	check(!errno, "ibv_req_notify_cq");
	puts("ok");
}

static void sleep_apart(struct puppet *p)
{
	struct pollfd fd = { p->channel->fd, POLLIN, 0 };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, (int)p->wait_ms) != 1) {
		puts("none");
		return;
	}
	check(!ibv_get_cq_event(p->channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	puts("woken");
}

static void show_state(const struct puppet *p)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	errno = ibv_query_qp(p->qp, &attr, IBV_QP_STATE, &init);
	check(!errno, "ibv_query_qp");
	printf("state %u\n", attr.qp_state);
}

static void show_event(struct puppet *p, unsigned wait_ms)
{
	struct pollfd fd = { p->context->async_fd, POLLIN, 0 };
	struct ibv_async_event event;

	if (poll(&fd, 1, (int)wait_ms) != 1) {
		puts("none");
		return;
	}
	check(!ibv_get_async_event(p->context, &event), "ibv_get_async_event");
	ibv_ack_async_event(&event);
	printf("event %u\n", event.event_type);
}

/* To a state, with another min_rnr_timer unless the state is SQD, which takes none on the way. */
static void move(struct puppet *p)
{
	struct ibv_qp_attr attr = { .qp_state = (enum ibv_qp_state)number(),
		                    .en_sqd_async_notify = 1 };
	int mask = IBV_QP_STATE;

	if (attr.qp_state == IBV_QPS_SQD) {
		mask |= IBV_QP_EN_SQD_ASYNC_NOTIFY;
	} else {
		attr.min_rnr_timer = (uint8_t)number();
		mask |= IBV_QP_MIN_RNR_TIMER;
	}
	errno = ibv_modify_qp(p->qp, &attr, mask);
	check(!errno, "ibv_modify_qp");
	puts("ok");
}

static void reset(struct puppet *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	errno = ibv_modify_qp(p->qp, &attr, IBV_QP_STATE);
	check(!errno, "RESET");
	puts("ok");
}

static void peek(void)
{
	uint32_t bytes;
	const uint8_t *at = place(&bytes);

	for (uint32_t i = 0; i < bytes; i++)
		printf("%02x", at[i]);
	puts("");
}

static void poke(void)
{
	uint32_t bytes;
	uint8_t *at = place(&bytes);

	memset(at, (int)number(), bytes);
	puts("ok");
}

/* No queue pair is connected. */
static void stand(struct puppet *p)
{
	const char *kind = strtok(NULL, " ");
	void *at;

	if (p->file >= 0)
		close(p->file);
	p->file = kind && !strcmp(kind, "file") ? memfd_create("puppet", 0) : -1;
	check(p->file < 0 || !ftruncate(p->file, KEYED), "ftruncate");
	errno = ibv_dereg_mr(p->mr);
	check(!errno, "ibv_dereg_mr");
	at = mmap(area, KEYED, PROT_READ | PROT_WRITE,
	          MAP_FIXED | (p->file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED), p->file, 0);
	check(at == area, "mmap");
	register_memory(p);
	show_memory(p);
}

static void protect(void)
{
	const char *how = strtok(NULL, " ");
	int prot = !how || !strcmp(how, "none") ? PROT_NONE
	           : !strcmp(how, "read")       ? PROT_READ
	                                        : PROT_READ | PROT_WRITE;

	check(!mprotect(area + LAST, KEYED - LAST, prot), "mprotect");
	puts("ok");
}

static void drop(const struct puppet *p)
{
	const char *how = strtok(NULL, " ");

	if (how && !strcmp(how, "cut"))
		check(!ftruncate(p->file, LAST), "ftruncate");
	else
		check(!munmap(area + LAST, KEYED - LAST), "munmap");
	puts("ok");
}

static void map_region(struct puppet *p)
{
	struct control_hello_reply hello;
	struct control_client *client;
	char path[200];
	int fd[2];

	if (control_path(path, sizeof(path), control_fabric_name(), "ctl") ||
	    control_connect(&client, path, CONTROL_ROLE_VERBS, NULL))
		errx(EXIT_FAILURE, "puppet: there is no daemon");
	control_hello(client, &hello, fd);
	must(!shm_region_map(&p->region, fd[0], fd[1]),
	     "puppet: the shared memory cannot be mapped");
	close(fd[0]);
	close(fd[1]);
}

static struct shm_wire *wire(struct puppet *p)
{
	if (!p->region.control)
		map_region(p);
	return shm_wire_at(&p->region, SHM_QP_INDEX(p->qp->qp_num));
}

static _Atomic uint32_t *egress(struct puppet *p)
{
	return &wire(p)->egress;
}

/* Nobody can stop a process at a given instruction: writes what one would have written there. */
static void hold_egress(struct puppet *p)
{
	uint32_t by = atomic_load(egress(p)), turn = (uint32_t)number() << 24;

	while (!atomic_compare_exchange_weak(egress(p), &by, turn | 1 | (by & SHM_WIRE_WANTED)))
		;
	puts(by & SHM_WIRE_WANTED ? "wanted" : "ok");
}

static void show_refusal(struct puppet *p)
{
	const volatile uint8_t *due = &wire(p)->in.nak_due;

	printf("refusal %u\n", *due);
}

static void let_go_of_egress(struct puppet *p)
{
	atomic_store(egress(p), 0);
	puts("ok");
}

static void hold_lock(struct puppet *p)
{
	uint32_t nobody = 0;

	while (!atomic_compare_exchange_weak(&wire(p)->lock, &nobody, 1))
		nobody = 0;
	puts("ok");
}

static void let_go_of_lock(struct puppet *p)
{
	atomic_store(&wire(p)->lock, 0);
	puts("ok");
}

static void show_opened(struct puppet *p)
{
	printf("opened %u\n", atomic_load(&wire(p)->open));
}

/* ---- what becomes of it in the middle of the library ---- */

static void meet_fate(struct puppet *p)
{
	const bool spawns = !strcmp(p->fate, "spawns"), forks = !strcmp(p->fate, "forks");
	int status;
	pid_t pid;

	if (!strcmp(p->fate, "stops"))
		raise(SIGSTOP);
	else if (!strcmp(p->fate, "dies"))
		raise(SIGKILL);
	else if (!strcmp(p->fate, "execs"))
		execl("/bin/sleep", "sleep", "1000", NULL);
	p->fate[0] = '\0';
	if (!spawns && !forks)
		return;
	pid = fork();
	if (!pid && spawns)
		execl("/bin/true", "true", NULL);
	if (!pid)
		exit(spawns); /* with all that libraries do then */
	check(waitpid(pid, &status, 0) == pid && !status, "the child");
}

static bool meets(const char *when)
{
	return puppet.fate[0] && !strcmp(puppet.when, when);
}

static bool is_roce(const struct msghdr *m)
{
	const struct sockaddr_in *to = m->msg_name;

	return to && m->msg_namelen == sizeof(*to) && to->sin_family == AF_INET &&
	       to->sin_port == htons(ROCE_PORT);
}

/* The library's calls come here. */
static long send_all(long call, int fd, const void *messages, const struct msghdr *first,
                     unsigned n, int flags)
{
	long ret;
	int error;

	if (meets("before") && is_roce(first))
		meet_fate(&puppet);
	ret = call == SYS_sendmsg ? syscall(call, fd, messages, flags)
	                          : syscall(call, fd, messages, n, flags);
	error = errno;
	if (meets("after") && is_roce(first))
		meet_fate(&puppet);
	errno = error;
	return ret;
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	return send_all(SYS_sendmsg, fd, m, m, 1, flags);
}

__attribute__((visibility("default"))) int sendmmsg(int fd, struct mmsghdr *m, unsigned n,
                                                    int flags)
{
	return (int)send_all(SYS_sendmmsg, fd, m, &m->msg_hdr, n, flags);
}

/* Of RoCE's sockets alone it asks for the sender's name. */
static long received(const struct msghdr *m, long ret)
{
	int error = errno;

	if (ret > 0 && m->msg_name && meets("takes"))
		meet_fate(&puppet);
	errno = error;
	return ret;
}

__attribute__((visibility("default"))) ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	return received(m, syscall(SYS_recvmsg, fd, m, flags));
}

__attribute__((visibility("default"))) int recvmmsg(int fd, struct mmsghdr *m, unsigned n,
                                                    int flags, struct timespec *timeout)
{
	return (int)received(&m->msg_hdr, syscall(SYS_recvmmsg, fd, m, n, flags, timeout));
}

__attribute__((visibility("default"))) ssize_t
process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n_here,
                  const struct iovec *there, unsigned long n_there, unsigned long flags)
{
	if (meets("copies"))
		meet_fate(&puppet);
	return syscall(SYS_process_vm_writev, pid, here, n_here, there, n_there, flags);
}

/* Of so many bytes, which an eventfd takes, the program itself writes nothing. */
__attribute__((visibility("default"))) ssize_t write(int fd, const void *from, size_t bytes)
{
	if (bytes == sizeof(uint64_t) && meets("wakes"))
		meet_fate(&puppet);
	return syscall(SYS_write, fd, from, bytes);
}

static void await_fate(struct puppet *p)
{
	const char *what = strtok(NULL, " "), *when = strtok(NULL, " ");

	if (!when)
		when = "before";
	check(what && strlen(what) < sizeof(p->fate) && strlen(when) < sizeof(p->when), "a fate");
	strcpy(p->fate, what);
	strcpy(p->when, when);
	puts("ok");
}

static void obey(struct puppet *p, const char *command)
{
	if (!strcmp(command, "create"))
		create_qp(p);
	else if (!strcmp(command, "connect"))
		connect_qp(p);
	else if (!strcmp(command, "reset"))
		reset(p);
	else if (!strcmp(command, "recv"))
		post_receive(p);
	else if (!strcmp(command, "post"))
		post_request(p);
	else if (!strcmp(command, "window"))
		make_window(p);
	else if (!strcmp(command, "wait"))
		show_completion(p, p->wait_ms);
	else if (!strcmp(command, "look"))
		show_completion(p, 0);
	else if (!strcmp(command, "move"))
		move(p);
	else if (!strcmp(command, "state"))
		show_state(p);
	else if (!strcmp(command, "event"))
		show_event(p, p->wait_ms);
	else if (!strcmp(command, "look_event"))
		show_event(p, 0);
	else if (!strcmp(command, "peek"))
		peek();
	else if (!strcmp(command, "poke"))
		poke();
	else if (!strcmp(command, "stand"))
		stand(p);
	else if (!strcmp(command, "protect"))
		protect();
	else if (!strcmp(command, "drop"))
		drop(p);
	else if (!strcmp(command, "hold"))
		hold_egress(p);
	else if (!strcmp(command, "refusal"))
		show_refusal(p);
	else if (!strcmp(command, "let_go"))
		let_go_of_egress(p);
	else if (!strcmp(command, "lock"))
		hold_lock(p);
	else if (!strcmp(command, "unlock"))
		let_go_of_lock(p);
	else if (!strcmp(command, "arm"))
		arm(p);
	else if (!strcmp(command, "sleep"))
		sleep_apart(p);
	else if (!strcmp(command, "opened"))
		show_opened(p);
	else if (!strcmp(command, "fate"))
		await_fate(p);
	else
		errx(EXIT_FAILURE, "puppet: '%s' is not understood", command);
}

int main(int argc, char **argv)
{
	static char line[1000];
	struct puppet *p = &puppet;

	must(argc == 3 && inet_pton(AF_INET, argv[1], p->peer.raw + 12) == 1,
	     "usage: puppet PEER SECONDS");
	p->wait_ms = (unsigned)strtoul(argv[2], NULL, 0) * 1000;
	p->peer.raw[10] = p->peer.raw[11] = 0xff;
	setlinebuf(stdout);
	open_device(p);
	show_memory(p);
	while (fgets(line, sizeof(line), stdin)) {
		const char *command;

		line[strcspn(line, "\n")] = '\0';
		command = strtok(line, " ");
		if (command)
			obey(p, command);
	}
	return EXIT_SUCCESS;
}
