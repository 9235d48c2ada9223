/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connected queue pairs whose peer was stopped at the worst moment, or writes nonsense into all
 * that it shares. The test writes what such a peer would have left into the shared memory itself.
 */
#include "verbs/fault_lab.h"
#include "verbs/peer_lab.h"

#include <sys/shm.h>

#include "base/pause.h"
#include "base/util.h"
#include "control/path.h"
#include "control/socket.h"
#include "hca/transport/connected.h"
#include "shm/connection.h"
#include "shm/key.h"
#include "shm/region.h"
#include "shm/ring.h"
#include "shm/packets.h"
#include "daemon_lab.h"

static struct shm_region region;

/* A reply to the request of @type with @bytes of @body. */
static struct control_packet ask(int sock, uint16_t type, const void *body, uint32_t bytes)
{
	struct control_packet p = { .header = { .type = type, .serial = 1, .bytes = bytes } };

	if (bytes)
		memcpy(p.body, body, bytes);
	assert_int_equal(control_send(sock, &p), 0);
	assert_int_equal(control_receive(sock, &p), 0);
	return p;
}

/* A client that speaks to the daemon itself, and what it was told first. */
static int raw_client(struct control_packet *welcome)
{
	struct control_hello hello = { .version = CONTROL_VERSION, .role = CONTROL_ROLE_VERBS };
	int sock = daemon_socket();

	*welcome = ask(sock, CONTROL_HELLO, &hello, sizeof(hello));
	assert_int_equal(welcome->header.status, 0);
	return sock;
}

static int map_region(void **state)
{
	struct control_packet p;

	(void)state;
	raw_client(&p);
	return shm_region_map(&region, p.fd[0], p.fd[1]);
}

static const struct shm_qp *record_of(const struct lab_peer *p)
{
	return shm_qp_at(&region, SHM_QP_INDEX(p->address.qpn));
}

static struct shm_connection *connection_of(const struct lab_peer *p)
{
	return shm_connection_at(&region, SHM_QP_INDEX(p->address.qpn));
}

static struct lab_work send_of(uint32_t length)
{
	return (struct lab_work){ .opcode = IBV_WR_SEND, .n = 1, .piece = { { 0, length, 0 } } };
}

/* ---- stopped ---- */

/* The peer was about to carry out the first request that waits. */
static void stop_helper(struct lab_peer *p[2])
{
	const struct lab_work w = send_of(10);

	lab_peer_post(p[0], &w);
	lab_peer_post(p[0], &w);
	atomic_store(&connection_of(p[0])->lock, p[1]->address.qpn);
}

LAB_CASE_BOTH(a_stopped_helper_does_not_keep_requests_for_ever)
{
	const struct lab_peer_options o = { .timeout = 8, .retry_cnt = 1, .rnr_retry = 7 };
	struct lab_peer **p = lab_peers(&o, state);

	stop_helper(p);
	lab_peer_sent(p[0], IBV_WC_RETRY_EXC_ERR);
	lab_peer_sent(p[0], IBV_WC_WR_FLUSH_ERR);
	lab_peer_expect_state(p[0], IBV_QPS_ERR);
}

LAB_CASE_BOTH(a_sleeping_requester_learns_of_a_stopped_helper)
{
	const struct lab_peer_options o = { .timeout = 8, .rnr_retry = 7, .channel = true };
	struct lab_peer **p = lab_peers(&o, state);

	stop_helper(p);
	lab_peer_arm(p[0]);
	lab_peer_sleep(p[0]);
	/* it may be woken before the time is over */
	lab_peer_sent(p[0], IBV_WC_RETRY_EXC_ERR);
}

LAB_CASE_BOTH(a_stopped_helper_does_not_keep_a_queue_pair_for_ever)
{
	const struct lab_peer_options o = { .rnr_retry = 7 };
	const struct lab_work w = send_of(10);
	struct lab_peer **p = lab_peers(&o, state);

	stop_helper(p);
	lab_peer_to(p[0], IBV_QPS_ERR);
	lab_peer_sent(p[0], IBV_WC_WR_FLUSH_ERR);
	lab_peer_sent(p[0], IBV_WC_WR_FLUSH_ERR);
	lab_peer_to(p[0], IBV_QPS_RESET);
	lab_peer_to(p[1], IBV_QPS_RESET);
	lab_peer_connect(p[0], p[1]);
	lab_peer_connect(p[1], p[0]);
	stop_helper(p);
	lab_peer_to(p[0], IBV_QPS_RESET);
	lab_peer_connect(p[0], p[1]);
	lab_peer_receive(p[1], 1, 0, 10);
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
	lab_peer_post(p[0], &w);
	stop_helper(p);
	lab_peer_destroy_qp(p[0]);
}

/* ---- the same with packets, which any process may work on */

/* @p[1], which receives for all, works on what @p[0] sends: that is a turn of its. */
static void bar_queue(struct lab_peer *p[2], uint32_t turn)
{
	atomic_store(&shm_sender_at(&region, SHM_QP_INDEX(p[1]->address.qpn))->target_qpn,
	             p[0]->address.qpn | turn << 24);
	atomic_store(&connection_of(p[0])->lock, p[1]->address.qpn);
}

static void free_queue(struct lab_peer *p[2])
{
	atomic_store(&connection_of(p[0])->lock, 0);
	atomic_store(&shm_sender_at(&region, SHM_QP_INDEX(p[1]->address.qpn))->target_qpn, 0);
}

/* Longer than a thread that lives may have a lock. */
static void look_away(void)
{
	struct timespec rest = { 1, 200000000 };

	while (nanosleep(&rest, &rest))
		;
}

/* A queue pair whose packets make a detour posts, and meets a worker on its requests. */
static struct lab_peer **post_to_barred(void **state)
{
	const struct lab_work w = send_of(10);
	struct lab_peer **p;

	fault_lab_add("to=@4:77 drop");
	p = lab_peers(NULL, state);
	lab_peer_receive(p[1], 0, 0, 10);
	bar_queue(p, 1);
	lab_peer_post(p[0], &w);
	look_away();
	return p;
}

CASE_WITH(who_looks_seldom_takes_nobody_for_stopped, NULL, fault_lab_clean_up)
{
	struct lab_peer **p = post_to_barred(state);
	struct ibv_wc wc;

	bar_queue(p, 2);
	assert_int_equal(lab_peer_try_sent(p[0], &wc), 0);
	free_queue(p);
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
	lab_peer_received(p[1], IBV_WC_SUCCESS);
}

CASE_WITH(who_is_stopped_with_packets_does_not_keep_a_request_for_ever, NULL, fault_lab_clean_up)
{
	struct lab_peer **p = post_to_barred(state);

	lab_peer_sent(p[0], IBV_WC_RETRY_EXC_ERR);
	free_queue(p);
}

/* ---- nobody is stopped: what takes long has come to its end ---- */

#define LEAST_MTU    256u
#define LONGEST      (1u << 31)
#define PIECES       8
#define MOST_PACKETS (LONGEST / LEAST_MTU) /* half of all PSNs */

/* A request under way: so many packets of it are acknowledged, and placed at @at of @p[1]'s memory.
 */
static void write_progress(struct lab_peer *p[2], uint32_t packets, uint64_t at)
{
	struct shm_wire *from = shm_wire_at(&region, SHM_QP_INDEX(p[0]->address.qpn));
	struct shm_wire *to = shm_wire_at(&region, SHM_QP_INDEX(p[1]->address.qpn));
	uint32_t head = shm_connection_at(&region, SHM_QP_INDEX(p[0]->address.qpn))->head;

	from->offset = packets;
	from->psn = from->acked = from->beyond =
	        (shm_wire_head(from, head)->psn + packets) & 0xFFFFFF;
	to->in.expected = (to->in.expected + packets) & 0xFFFFFF;
	to->in.operation = SHM_WIRE_WRITE;
	to->in.rkey = p[1]->address.rkey;
	to->in.length = LONGEST;
	to->in.offset = packets * LEAST_MTU;
	to->in.addr = p[1]->address.addr + at - to->in.offset;
}

CASE_WITH(the_longest_message_ends, NULL, fault_lab_clean_up)
{
	const uint32_t left = 100, bytes = left * LEAST_MTU, piece = LONGEST / PIECES;
	const struct lab_peer_options o = { .bytes = piece,
		                            .cap = { .max_send_sge = PIECES },
		                            .path_mtu = IBV_MTU_256,
		                            .timeout = 14,
		                            .retry_cnt = 7 };
	struct lab_work w = { .opcode = IBV_WR_RDMA_WRITE, .n = PIECES };
	struct lab_peer **p;

	fault_lab_add("to=@4:77 drop");
	p = lab_peers(&o, state);
	for (int i = 0; i < w.n; i++)
		w.piece[i] = (struct lab_piece){ 0, piece, 0 };
	w.to = p[1];
	bar_queue(p, 1);
	lab_peer_post(p[0], &w);
	write_progress(p, MOST_PACKETS - left, 0);
	lab_peer_fill(p[0], piece - bytes, bytes, 1);
	free_queue(p);
	lab_peer_sent(p[0], IBV_WC_SUCCESS);
	lab_peer_expect(p[1], 0, bytes, 1);
	w.n = 1;
	w.piece[0].length = bytes;
	lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
}

static struct shm_ring *ring_of(const struct shm_qp *q)
{
	struct shm_ring *ring = shm_data_map(&region, q->ring_off, shm_ring_bytes(q->ring_shift));

	assert_non_null(ring);
	return ring;
}

/* The ring of @p[1] as @p[0] knows it. */
static struct shm_ring_view view_of(struct lab_peer *p[2])
{
	const struct shm_qp *q = record_of(p[1]);

	return shm_ring_view(ring_of(q), q->ring_shift, q->ring_gen,
	                     (uint16_t)SHM_QP_INDEX(p[0]->address.qpn));
}

LAB_CASE_BOTH(a_stopped_sender_does_not_keep_receives_for_ever)
{
	struct shm_arrival *slot;
	struct shm_ring_single single = shm_ring_single(false);
	uint32_t pos;
	struct lab_peer **p = lab_peers(NULL, state);
	struct shm_ring_view v = view_of(p);

	for (unsigned i = 0; i < 4; i++)
		lab_peer_receive(p[1], i, 0, 10);
	assert_non_null(slot = shm_ring_claim_single(&v, &single, &pos));
	lab_peer_to(p[1], IBV_QPS_ERR);
	for (unsigned i = 0; i < 4; i++)
		lab_peer_received(p[1], IBV_WC_WR_FLUSH_ERR);
	/* it goes on */
	assert_false(shm_ring_publish_single(&v, &single, slot, pos));
}

/* The ring's owner has taken the position from the sender, but the sender may still write there. */
LAB_CASE_BOTH(a_ring_serves_nobody_else_while_a_stopped_sender_knows_it)
{
	struct lab_peer **p, **q;
	_Atomic uint32_t *word;
	struct shm_ring_single single = shm_ring_single(false);
	struct shm_ring_view v;
	uint64_t off;
	uint32_t pos;

	p = lab_peers(NULL, state);
	v = view_of(p);
	off = record_of(p[1])->ring_off;
	word = &shm_sender_at(&region, SHM_QP_INDEX(p[0]->address.qpn))->target_qpn;
	lab_peer_receive(p[1], 0, 0, 10);
	assert_non_null(shm_ring_claim_single(&v, &single, &pos));
	atomic_store(word, p[1]->address.qpn);
	lab_peer_to(p[1], IBV_QPS_ERR);
	lab_peer_received(p[1], IBV_WC_WR_FLUSH_ERR);
	lab_peer_destroy_qp(p[1]);
	for (int i = 0; i < 4; i++) {
		q = lab_peers(NULL, state);
		assert_int_not_equal(record_of(q[0])->ring_off, off);
		assert_int_not_equal(record_of(q[1])->ring_off, off);
	}
	atomic_store(word, 0);
}

LAB_CASE_BOTH(a_stopped_peer_does_not_keep_memory_for_ever)
{
	struct lab_peer **p = lab_peers(NULL, state);

	atomic_store(&shm_sender_at(&region, SHM_QP_INDEX(p[0]->address.qpn))->target_qpn,
	             p[1]->address.qpn);
	assert_int_equal(lab_peer_deregister(p[1]), 0);
	lab_peer_destroy_qp(p[1]);
	atomic_store(&shm_sender_at(&region, SHM_QP_INDEX(p[0]->address.qpn))->target_qpn, 0);
}

/* Regions of @p's memory that @user's process has used. */
static void make_used_regions(struct lab_peer *p, struct lab_peer *user, struct ibv_mr **mr,
                              unsigned n)
{
	struct lab_work w = {
		.opcode = IBV_WR_RDMA_WRITE, .n = 1, .piece = { { 0, 64, 0 } }, .to = p
	};

	for (unsigned i = 0; i < n; i++) {
		assert_non_null(mr[i] = ibv_reg_mr(p->here->pd, p->here->memory, LAB_PEER_BYTES,
		                                   LAB_ALL_ACCESS));
		w.rkey_xor = mr[i]->rkey ^ p->address.rkey;
		lab_peer_do(user, &w, IBV_WC_SUCCESS);
	}
}

static uint64_t deregistration_ns(struct ibv_mr *mr)
{
	const uint64_t begin = base_now_ns();

	assert_int_equal(ibv_dereg_mr(mr), 0);
	return base_now_ns() - begin;
}

/* A process that used regions of ours, and is connected to another one now, was stopped while it
 * dealt with that: what is given back here does not wait for it. If it did, each would. */
LAB_CASE(who_deals_with_others_is_not_waited_for)
{
	const struct lab_peer_options elsewhere = { .elsewhere = true };
	_Atomic uint32_t *deals_with;
	struct lab_peer **p, *other;
	struct ibv_mr *mr[8];
	unsigned waits = 0;

	p = lab_peers(NULL, (void *[]){ (void *)1 });
	make_used_regions(p[0], p[1], mr, LAB_ARRAY(mr));
	other = lab_peer(&elsewhere);
	lab_peer_to(p[1], IBV_QPS_RESET);
	lab_peer_connect(other, p[1]);
	lab_peer_connect(p[1], other);
	deals_with = &shm_sender_at(&region, SHM_QP_INDEX(p[1]->address.qpn))->target_qpn;
	atomic_store(deals_with, other->address.qpn);
	for (unsigned i = 1; i < LAB_ARRAY(mr); i++)
		waits += deregistration_ns(mr[i]) >= HCA_STOPPED_WAIT_NS;
	assert_int_not_equal(waits, LAB_ARRAY(mr) - 1);
	atomic_store(deals_with, p[0]->address.qpn);
	assert_true(deregistration_ns(mr[0]) >= HCA_STOPPED_WAIT_NS);
	atomic_store(deals_with, 0);
}

/* ---- memory of keys ---- */

static void await_zero(const volatile uint64_t *word)
{
	const uint64_t end = base_now_ns() + LAB_SECONDS * 1000000000ull;
	struct base_pause pause = { 0 };

	while (*word && base_now_ns() < end)
		base_pause(&pause);
	assert_int_equal(*word, 0);
}

/*
 * A thread knows keys of a process that dies, and says so in @word: it may still write there. When
 * the daemon has cleared what that process had for its requests, which comes later, the keys
 * are still there; they go when the word says something else.
 */
static void keys_stay(struct lab_peer *p[2], _Atomic uint32_t *word, uint32_t next)
{
	uint64_t *keys, *requests;
	struct shm_qp q;

	shm_qp_read(&region, p[1]->address.qpn, &q);
	keys = shm_payload_at(&region, q.connection.keys_off, sizeof(*keys));
	requests = shm_payload_at(&region, q.connection.requests_off, sizeof(*requests));
	*requests = 1;
	assert_int_not_equal(*keys, 0);
	atomic_store(word, p[1]->address.qpn | 1u << 24);
	lab_peer_signal(p[1], SIGKILL);
	await_zero(requests);
	assert_int_not_equal(*keys, 0);
	atomic_store(word, next);
	await_zero(keys);
	atomic_store(word, 0);
}

LAB_CASE(keys_of_the_dead_stay_while_a_thread_deals_with_them)
{
	void *const elsewhere = (void *)1;
	struct lab_peer **p = lab_peers(NULL, &elsewhere);

	keys_stay(p, &shm_sender_at(&region, SHM_QP_INDEX(p[0]->address.qpn))->target_qpn, 0);
}

LAB_CASE(keys_of_the_dead_stay_while_a_thread_helps_them)
{
	void *const elsewhere = (void *)1;
	struct lab_peer **p = lab_peers(NULL, &elsewhere);

	/* then it helps somebody else */
	keys_stay(p, &connection_of(p[0])->helps, p[0]->address.qpn);
}

/* A client that has had all keys that it may have. */
static void die_with_all_keys(void)
{
	struct control_packet p;
	int sock = raw_client(&p);

	control_close_fds(&p);
	assert_int_equal(ask(sock, CONTROL_OPEN_KEYS, NULL, 0).header.status, 0);
	for (uint32_t i = 0; i < SHM_KEY_CHUNKS; i++) {
		const struct control_add_keys more = { .chunk = i };

		assert_int_equal(ask(sock, CONTROL_ADD_KEYS, &more, sizeof(more)).header.status, 0);
	}
	close(sock);
}

/* Which any client can write there, for as long as it lives: what it keeps has an end. */
LAB_CASE(a_word_does_not_keep_keys_without_limit)
{
	void *const elsewhere = (void *)1;
	_Atomic uint32_t *word;
	const uint64_t *keys;
	struct shm_qp q;
	struct lab_peer **p = lab_peers(NULL, &elsewhere);

	shm_qp_read(&region, p[1]->address.qpn, &q);
	keys = shm_payload_at(&region, q.connection.keys_off, sizeof(*keys));
	word = &shm_sender_at(&region, SHM_QP_INDEX(p[0]->address.qpn))->target_qpn;
	atomic_store(word, p[1]->address.qpn);
	lab_peer_signal(p[1], SIGKILL);
	for (int i = 0; i < 8; i++)
		die_with_all_keys(); /* 64 MiB of keys and the places of their chunks */
	assert_int_not_equal(*keys, 0);
	for (int i = 0; i < 8; i++)
		die_with_all_keys();
	await_zero(keys);
	atomic_store(word, 0);
}

static struct shm_key *key_of(const struct lab_peer *p, uint32_t key)
{
	struct shm_qp q;

	shm_qp_read(&region, p->address.qpn, &q);
	return shm_key_at(&region, q.connection.keys_off, key);
}

/* Forges the key of a peer's region: moves it by @by, and has it go on for @longer. The peer at
 * @whose does not carry out a WRITE that uses it. */
static void expect_refused(unsigned whose, uint64_t by, uint64_t longer)
{
	struct lab_work w = { .opcode = IBV_WR_RDMA_WRITE, .n = 1, .piece = { { 0, 100, 0 } } };
	struct lab_peer **p = lab_peers(NULL, (void *[]){ NULL });
	struct shm_key *k = key_of(p[whose], whose ? p[1]->address.rkey : p[0]->lkey);

	atomic_fetch_add(&k->start, by);
	atomic_fetch_add(&k->length, longer);
	w.to = p[1];
	lab_peer_do(p[0], &w, whose ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR);
	lab_clean_up(NULL);
}

/* Both ends are in this process, so that its memory is reached as it is. */
LAB_CASE(a_forged_key_of_our_own_names_no_other_memory)
{
	for (unsigned whose = 0; whose < 2; whose++) {
		expect_refused(whose, 1ull << 40, 0);
		expect_refused(whose, (uint64_t)-4096, 0);
		expect_refused(whose, 1, 0);
		expect_refused(whose, 0, 1);
		expect_refused(whose, 0, UINT64_MAX / 2);
	}
}

/* Publishes that the region of @p, which lies in a segment, lies in another one. */
static void forge_segment(const struct lab_peer *p, int id)
{
	struct shm_qp q;
	struct shm_keys *keys;
	struct shm_object *o;
	uint32_t access = atomic_load(&key_of(p, p->address.rkey)->access);

	shm_qp_read(&region, p->address.qpn, &q);
	keys = shm_payload_at(&region, q.connection.keys_off, sizeof(*keys));
	assert_true(access & SHM_KEY_MAPPABLE);
	o = &keys->objects[shm_key_object(access)];
	assert_int_equal(o->kind, SHM_OBJECT_SYSV);
	o->id = (uint32_t)id;
}

/* A segment that the peer attaches in the place of the region's kills nobody. */
static void expect_harmless(size_t bytes, int flags)
{
	int good = shmget(IPC_PRIVATE, LAB_PEER_BYTES, IPC_CREAT | 0600);
	int bad = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600 | flags);
	char *m = shmat(good, NULL, 0);
	struct lab_work w = { .opcode = IBV_WR_RDMA_WRITE, .n = 1 };
	struct lab_peer **p;
	struct ibv_mr *mr;

	shmctl(good, IPC_RMID, NULL);
	if (bad < 0)
		return; /* huge pages are not for everybody */
	p = lab_peers(NULL, (void *[]){ (void *)1 });
	assert_non_null(mr = ibv_reg_mr(p[0]->here->pd, m, LAB_PEER_BYTES, LAB_ALL_ACCESS));
	p[0]->address.rkey = mr->rkey;
	p[0]->address.addr = (uintptr_t)m;
	forge_segment(p[0], bad);
	lab_peer_fill(p[1], 0, LAB_PEER_BYTES, 1);
	w.to = p[0];
	w.piece[0].length = LAB_PEER_BYTES;
	lab_peer_do(p[1], &w, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < LAB_PEER_BYTES; i++)
		assert_int_equal((uint8_t)m[i], lab_pattern(1, i));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	shmdt(m);
	shmctl(bad, IPC_RMID, NULL);
	lab_clean_up(NULL);
}

LAB_CASE(a_bad_segment_kills_nobody)
{
	expect_harmless(4096, 0); /* too short */
	expect_harmless(2 << 20, SHM_HUGETLB | SHM_NORESERVE);
}

/* A connection goes by the daemon, and says that it does not, or something else: the daemon has no
 * other way to answer by. */
LAB_CASE(a_forged_way_kills_no_daemon)
{
	static const uint32_t ways[] = { SHM_WIRE_NO_DETOUR, SHM_WIRE_AWAY, SHM_WIRE_AWAY + 1,
		                         UINT32_MAX };
	struct lab_work w = { .opcode = IBV_WR_RDMA_WRITE, .n = 1, .piece = { { 0, 100, 0 } } };

	assert_int_equal(system("umbel fault add opcode=CNP drop > /dev/null"), 0);
	for (size_t i = 0; i < LAB_ARRAY(ways); i++) {
		struct lab_peer **p = lab_peers(NULL, state);
		struct shm_wire *forged = shm_wire_at(&region, SHM_QP_INDEX(p[1]->address.qpn));

		assert_int_equal(forged->path.detours, SHM_WIRE_HERE);
		memset(&forged->path.dgid, 0, sizeof(forged->path.dgid));
		memset(&forged->path.sgid, 0, sizeof(forged->path.sgid));
		forged->path.detours = ways[i];
		atomic_fetch_add(&forged->open, SHM_WIRE_OPENED);
		w.to = p[1];
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		lab_clean_up(NULL);
	}
	assert_int_equal(system("umbel fault clear > /dev/null"), 0);
}

/* A peer that carries out one request after the other. */
struct busy {
	pthread_t thread;
	atomic_bool stop;
	_Atomic uint32_t *target;
	uint32_t qpn;
};

static void *deal_again_and_again(void *arg)
{
	struct busy *b = arg;

	for (uint32_t turn = 0; !atomic_load(&b->stop); turn++)
		atomic_store(b->target, turn << 24 | b->qpn);
	atomic_store(b->target, 0);
	return NULL;
}

/* Each deregistration would wait as long as for a stopped peer. */
LAB_CASE(a_busy_peer_does_not_keep_memory)
{
	const uint64_t begin = base_now_ns();
	static char memory[4096];
	struct busy b = { 0 };
	struct lab_peer **p = lab_peers(NULL, state);

	b.target = &shm_sender_at(&region, SHM_QP_INDEX(p[0]->address.qpn))->target_qpn;
	b.qpn = p[1]->address.qpn;
	assert_int_equal(pthread_create(&b.thread, NULL, deal_again_and_again, &b), 0);
	for (int i = 0; i < 500; i++) {
		struct ibv_mr *mr =
		        ibv_reg_mr(p[1]->here->pd, memory, sizeof(memory), LAB_ALL_ACCESS);

		assert_non_null(mr);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	atomic_store(&b.stop, true);
	pthread_join(b.thread, NULL);
	assert_true(base_now_ns() - begin < 200000000000u); /* a second each would be 500 */
}

/* ---- nonsense ---- */

struct vandal {
	pthread_t thread;
	atomic_bool stop;
	uint64_t random;
	struct shm_qp hostile; /* whose memory it writes to */
};

static uint32_t chance(struct vandal *v, uint32_t n)
{
	v->random = v->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(v->random >> 33) % n;
}

/* Overwrites one of the words there, mostly with a small number. */
static void scribble(struct vandal *v, void *at, uint64_t bytes)
{
	_Atomic uint32_t *word = (_Atomic uint32_t *)at + chance(v, (uint32_t)(bytes / 4));
	static const uint32_t values[] = {
		0, 1, 2, 63, 64, 65, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF
	};
	uint32_t value = values[chance(v, LAB_ARRAY(values))];

	if (chance(v, 3) == 0)
		value = chance(v, 0x7FFFFFFF);
	if (chance(v, 3) == 0)
		value = atomic_load(word) + 1;
	atomic_store(word, value);
}

static void scribble_keys(struct vandal *v)
{
	const struct shm_keys *keys =
	        shm_payload_at(&region, v->hostile.connection.keys_off, sizeof(*keys));
	uint64_t chunk = atomic_load((_Atomic uint64_t *)&keys->chunk_off[0]);

	if (chunk && shm_payload_at(&region, chunk, SHM_KEY_CHUNK * sizeof(struct shm_key)))
		scribble(v, shm_payload_at(&region, chunk, 16 * sizeof(struct shm_key)),
		         16 * sizeof(struct shm_key));
	/* the chunk's place stays: this test's own loop needs it */
	scribble(v, (void *)(uintptr_t)keys, offsetof(struct shm_keys, chunk_off));
}

static void *vandalize(void *o)
{
	struct vandal *v = o;
	const struct shm_qp_connection *c = &v->hostile.connection;
	uint32_t index = SHM_QP_INDEX(v->hostile.qpn);
	uint64_t ring_bytes =
	        sizeof(struct shm_ring) + (sizeof(struct shm_arrival) << v->hostile.ring_shift);

	while (!atomic_load(&v->stop)) {
		scribble(v, shm_connection_at(&region, index), sizeof(struct shm_connection));
		scribble(v,
		         shm_payload_at(&region, c->requests_off,
		                        (uint32_t)c->request_bytes << c->request_shift),
		         (uint64_t)c->request_bytes << c->request_shift);
		scribble(v, shm_payload_at(&region, c->entries_off, 1024), 1024);
		scribble(v, ring_of(&v->hostile), ring_bytes);
		scribble(v, shm_sender_at(&region, index), sizeof(*shm_sender_at(&region, 0)));
		scribble_keys(v);
	}
	return NULL;
}

static void riot_beside_a_vandal(uint64_t seed, uint64_t ns)
{
	const struct lab_peer_options o = { .bytes = 256 << 10, .timeout = 8, .rnr_retry = 7 };
	struct vandal v = { .random = seed };
	struct lab_riot r = { .random = seed + 1 };
	uint64_t end = base_now_ns() + ns;
	struct lab_peer **p = lab_peers(&o, (void *[]){ (void *)1 });

	shm_qp_read(&region, p[1]->address.qpn, &v.hostile);
	lab_peer_riot(p[1], p[0], seed + 2); /* it may well crash */
	assert_int_equal(pthread_create(&v.thread, NULL, vandalize, &v), 0);
	while (base_now_ns() < end)
		lab_peer_riot_step(p[0], p[1], &r);
	atomic_store(&v.stop, true);
	pthread_join(v.thread, NULL);
	kill(p[1]->pid, SIGKILL);
	lab_peer_destroy_qp(p[0]);
	lab_clean_up(NULL);
}

LAB_CASE(nonsense_from_a_peer_harms_nobody)
{
	const char *seconds = getenv("UMBEL_FUZZ_SECONDS");
	uint64_t seed = (uint64_t)time(NULL);
	unsigned rounds = seconds ? (unsigned)strtoul(seconds, NULL, 0) * 5 : 25;

	print_message("seed %llu\n", (unsigned long long)seed);
	for (unsigned i = 0; i < rounds; i++)
		riot_beside_a_vandal(seed + i, 200000000);
	lab_await_status("qps", 0);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(map_region, NULL);
}
