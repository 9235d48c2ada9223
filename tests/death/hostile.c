/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hostile clients: they speak the daemon's protocol, badly, and scribble over the
 * memory that everybody writes. Whatever they do, the daemon replies to everybody else,
 * and holds no more when they are gone than before they came.
 */
#include "daemon_lab.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>

#include "base/util.h"
#include "control/client.h"
#include "control/cm_message.h"
#include "control/path.h"
#include "control/posts.h"
#include "control/socket.h"
#include "shm/region.h"
#include "shm/connection.h"
#include "shm/ring.h"
#include "shm/packets.h"
#include "harness.h"
#include "attributes.h"

#define SECONDS 120 /* that anything may take */
/* Descriptors that the daemon opens when it needs them, and keeps: a timer's, one to look for
 * neighbours on Ethernet, one to send by IPv4 and one to send by IPv6. */
#define OPENED_LATE 4

/* ---- connections ---- */

/* One exchange. 0; 1: the connection is at its end. */
static int exchange(int sock, uint32_t type, const void *body, uint32_t bytes,
                    struct control_packet *reply)
{
	static uint32_t serial;
	struct control_packet p = { .header = {
		                            .type = type, .serial = ++serial, .bytes = bytes } };
	int ret;

	if (bytes)
		memcpy(p.body, body, bytes);
	ret = control_send(sock, &p);
	if (!ret)
		ret = control_receive(sock, reply);
	if (ret)
		return 1;
	assert_int_equal(reply->header.type, type);
	assert_int_equal(reply->header.serial, serial);
	assert_true(reply->header.status <= 0);
	return 0;
}

/* One to which the daemon replies; the status. The descriptors are the caller's. */
static int call(int sock, uint32_t type, const void *body, uint32_t bytes,
                struct control_packet *reply)
{
	assert_int_equal(exchange(sock, type, body, bytes, reply), 0);
	return reply->header.status;
}

/* One whose reply does not matter. Whether the connection goes on. */
static bool try(int sock, uint32_t type, const void *body, uint32_t bytes)
{
	struct control_packet reply;

	if (exchange(sock, type, body, bytes, &reply))
		return false;
	control_close_fds(&reply);
	return true;
}

static int say_hello(int sock, uint32_t role, struct shm_region *r)
{
	struct control_hello hello = { .version = CONTROL_VERSION, .role = role };
	struct control_packet reply;
	int ret = call(sock, CONTROL_HELLO, &hello, sizeof(hello), &reply);

	if (!ret && r)
		assert_int_equal(shm_region_map(r, reply.fd[0], reply.fd[1]), 0);
	control_close_fds(&reply);
	return ret;
}

static int greeted(uint32_t role, struct shm_region *r)
{
	int sock = daemon_socket();

	assert_int_equal(say_hello(sock, role, r), 0);
	return sock;
}

/* ---- what the daemon holds ---- */

static const char *const held_names[] = { "clients", "qps",    "cqs",        "channels",
	                                  "flows",   "groups", "ring_bytes", "payload_bytes" };
#define HELD       ARRAY_SIZE(held_names)
#define RING_BYTES 6

struct held {
	long n[HELD];
	long fds;
};

/* The daemon, and what it holds without clients: before the first test. */
static pid_t daemon_process;
static struct held at_rest;

static struct held read_held(void)
{
	struct control_client *c = daemon_client(CONTROL_ROLE_CLI);
	struct held held;
	char *text;

	assert_int_equal(control_show(c, "status", &text), 0);
	for (size_t i = 0; i < HELD; i++) {
		char key[64];
		const char *at;

		snprintf(key, sizeof(key), "\"%s\":", held_names[i]);
		assert_non_null(at = strstr(text, key));
		held.n[i] = strtol(at + strlen(key), NULL, 10);
	}
	free(text);
	held.fds = daemon_descriptors(daemon_process);
	control_close(c);
	return held;
}

static long channels_held(void)
{
	struct held h = read_held();

	for (size_t i = 0; i < HELD; i++)
		if (!strcmp(held_names[i], "channels"))
			return h.n[i];
	return -1;
}

static double now(void)
{
	return (double)base_now_ns() / 1e9;
}

static void wait_a_little(void)
{
	poll(NULL, 0, 10);
}

static bool holds_no_more(struct held *h)
{
	*h = read_held();
	for (size_t i = 0; i < HELD; i++)
		if (h->n[i] != at_rest.n[i])
			return false;
	return h->fds <= at_rest.fds + OPENED_LATE;
}

/* Connections that are over count until the daemon has noticed. */
static void learn_at_rest(void)
{
	daemon_process = daemon_pid();
	at_rest = read_held();
	for (unsigned i = 0; i < 20; i++) {
		struct held h = read_held();

		if (h.fds < at_rest.fds)
			at_rest = h;
		wait_a_little();
	}
}

/* Nothing was left behind; this also shows that the daemon replies. */
static int check_at_rest(void **state)
{
	double end = now() + SECONDS;
	struct held h;

	(void)state;
	while (!holds_no_more(&h)) {
		if (now() > end) {
			for (size_t i = 0; i < HELD; i++)
				print_error("%s: %ld, was %ld\n", held_names[i], h.n[i],
				            at_rest.n[i]);
			print_error("descriptors: %ld, were %ld\n", h.fds, at_rest.fds);
			return -1;
		}
		wait_a_little();
	}
	return 0;
}

/* ---- random input ---- */

static uint64_t seed;

static uint32_t random_number(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 32);
}

static uint32_t below(uint32_t n)
{
	return random_number() % n;
}

static void random_bytes(void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)p)[i] = (uint8_t)random_number();
}

/* Small numbers, as handles are, zeros, and a few that are anything. */
static void random_words(void *p, size_t n)
{
	static const uint32_t special[] = { 0,          0,      0x10002,    0xFFFF,    0x7FFFFFFF,
		                            0xFFFFFFFF, 0xC000, 0x01234567, 0x000000FF };
	uint32_t *word = p;

	for (size_t i = 0; i < n / 4; i++) {
		switch (below(4)) {
		case 0:
			word[i] = special[below(ARRAY_SIZE(special))];
			break;
		case 1:
			word[i] = random_number();
			break;
		default:
			word[i] = below(8);
		}
	}
}

/* A child that does this. */
static pid_t start(void (*run)(void))
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* cmocka catches these */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		signal(SIGFPE, SIG_DFL);
		seed ^= (uint64_t)getpid();
		run();
		_exit(0);
	}
	return pid;
}

/* ---- connections that do not behave ---- */

CASE_WITH(before_hello_every_request_is_refused, NULL, check_at_rest)
{
	uint8_t body[CONTROL_MAX_BYTES] = { 0 };
	struct control_packet reply;
	int sock = daemon_socket();

	for (uint32_t type = 0; type < 200; type++) {
		if (type == CONTROL_HELLO)
			continue;
		assert_int_equal(call(sock, type, body, below(64), &reply), -EPROTO);
	}
	close(sock);
}

CASE_WITH(a_wrong_hello_is_refused, NULL, check_at_rest)
{
	struct control_hello good = { .version = CONTROL_VERSION, .role = CONTROL_ROLE_VERBS };
	struct control_packet reply;
	int sock = daemon_socket();
	struct control_hello bad = good;

	bad.version++;
	assert_int_equal(call(sock, CONTROL_HELLO, &bad, sizeof(bad), &reply), -EPROTO);
	bad = good;
	bad.role = 77;
	assert_int_equal(call(sock, CONTROL_HELLO, &bad, sizeof(bad), &reply), -EPROTO);
	bad = good;
	memset(bad.host, 'h', sizeof(bad.host)); /* without end */
	assert_int_equal(call(sock, CONTROL_HELLO, &bad, sizeof(bad), &reply), -EHOSTUNREACH);
	assert_int_equal(call(sock, CONTROL_HELLO, &good, sizeof(good) - 1, &reply), -EPROTO);
	assert_int_equal(say_hello(sock, CONTROL_ROLE_VERBS, NULL), 0);
	assert_int_equal(call(sock, CONTROL_HELLO, &good, sizeof(good), &reply), -EPROTO);
	close(sock);
}

CASE_WITH(a_datagram_that_is_no_packet_ends_the_connection, NULL, check_at_rest)
{
	char junk[CONTROL_MAX_BYTES * 2];

	for (unsigned i = 0; i < 300; i++) {
		struct control_header h = { .type = below(140), .bytes = random_number() };
		int sock = i % 2 ? greeted(below(3), NULL) : daemon_socket();
		size_t n = below(sizeof(junk)) + 1;
		struct control_packet reply;

		random_bytes(junk, sizeof(junk));
		if (i % 3)
			memcpy(junk, &h, sizeof(h));
		assert_int_equal(send(sock, junk, n, MSG_NOSIGNAL), n);
		if (!control_receive(sock, &reply)) {
			assert_true(reply.header.status < 0);
			control_close_fds(&reply);
		}
		close(sock);
	}
}

CASE_WITH(an_empty_datagram_harms_nobody, NULL, check_at_rest)
{
	int sock = greeted(CONTROL_ROLE_VERBS, NULL);
	struct control_packet reply;

	assert_int_equal(send(sock, "", 0, MSG_NOSIGNAL), 0);
	assert_int_not_equal(control_receive(sock, &reply), 0);
	close(sock);
}

/* With @n copies of a descriptor beside it. */
static void send_with_fds(int sock, unsigned n)
{
	struct control_header h = { .type = CONTROL_CREATE_CHANNEL, .serial = 1 };
	struct iovec iov = { &h, sizeof(h) };
	char space[CMSG_SPACE(sizeof(int) * 250)] = { 0 };
	struct msghdr msg = { .msg_iov = &iov,
		              .msg_iovlen = 1,
		              .msg_control = space,
		              .msg_controllen = CMSG_SPACE(sizeof(int) * n) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * n);
	for (unsigned i = 0; i < n; i++)
		((int *)CMSG_DATA(c))[i] = sock;
	assert_int_equal(sendmsg(sock, &msg, MSG_NOSIGNAL), sizeof(h));
}

CASE_WITH(descriptors_that_nobody_asked_for_are_closed, NULL, check_at_rest)
{
	static const unsigned numbers[] = { 1, 2, 3, 8, 9, 100, 250 };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		int sock = greeted(CONTROL_ROLE_VERBS, NULL);
		struct control_packet reply;

		send_with_fds(sock, numbers[i]);
		if (!control_receive(sock, &reply))
			control_close_fds(&reply);
		close(sock);
	}
}

CASE_WITH(who_does_not_read_replies_is_disconnected, NULL, check_at_rest)
{
	struct control_packet p = { .header = { .type = CONTROL_GET_CHANNEL,
		                                .serial = 1,
		                                .bytes = sizeof(struct control_get_channel) } };
	struct pollfd end = { .events = POLLRDHUP };
	int sock = greeted(CONTROL_ROLE_VERBS, NULL);
	unsigned sent = 0;

	while (!control_send(sock, &p))
		assert_true(++sent < 100000);
	end.fd = sock;
	assert_int_equal(poll(&end, 1, SECONDS * 1000), 1);
	close(sock);
}

CASE_WITH(what_nobody_waits_for_has_no_reply, NULL, check_at_rest)
{
	struct control_packet p = { .header = { .type = CONTROL_CREATE_CHANNEL } }, reply;
	const struct control_get_channel none = { .channel = 0xFFFFFFFF };
	int sock = greeted(CONTROL_ROLE_VERBS, NULL);

	for (unsigned i = 0; i < 2000; i++) {
		p.header.type = i % 3 ? CONTROL_CREATE_CHANNEL : i % 256;
		assert_int_equal(control_send(sock, &p), 0);
	}
	assert_true(call(sock, CONTROL_GET_CHANNEL, &none, sizeof(none), &reply) < 0);
	close(sock);
}

/* ---- rings of posted requests ---- */

/* A connection with a ring, which is the caller's to unmap. */
static int with_ring(struct control_posts **ring)
{
	int sock = greeted(CONTROL_ROLE_VERBS, NULL);
	struct control_packet reply;

	assert_int_equal(call(sock, CONTROL_OPEN_POSTS, NULL, 0, &reply), 0);
	assert_int_equal(reply.n_fds, 1);
	assert_int_equal(control_posts_map(ring, reply.fd[0]), 0);
	control_close_fds(&reply);
	return sock;
}

/* Posts @n requests for a channel. Whether the daemon is to be told. */
static bool post_channels(struct control_posts *ring, unsigned n)
{
	const struct control_packet p = { .header = { .type = CONTROL_CREATE_CHANNEL } };
	bool tell = false, tell_now;

	while (n--) {
		assert_int_equal(control_posts_put(ring, NULL, 0, &p, &tell_now), 0);
		tell = tell || tell_now;
	}
	return tell;
}

static void tell_of_posts(int sock)
{
	const struct control_packet p = { .header = { .type = CONTROL_POSTED } };

	control_send(sock, &p);
}

static void expect_hung_up(int sock)
{
	struct pollfd end = { .fd = sock, .events = POLLRDHUP };

	assert_int_equal(poll(&end, 1, SECONDS * 1000), 1);
}

CASE_WITH(what_is_posted_to_a_ring_is_served_in_order, NULL, check_at_rest)
{
	const struct control_get_channel none = { .channel = 0xFFFFFFFF };
	double end = now() + SECONDS;
	struct control_packet reply;
	struct control_posts *ring;
	int sock = with_ring(&ring);

	assert_int_equal(call(sock, CONTROL_OPEN_POSTS, NULL, 0, &reply), -EBUSY); /* one will do */
	/* by itself */
	assert_true(post_channels(ring, 20));
	tell_of_posts(sock);
	while (channels_held() != 20) {
		assert_true(now() < end);
		wait_a_little();
	}
	/* ahead of a request, whether it was told or not */
	post_channels(ring, 30);
	assert_true(call(sock, CONTROL_GET_CHANNEL, &none, sizeof(none), &reply) < 0);
	assert_int_equal(channels_held(), 50);
	control_posts_unmap(ring);
	close(sock);
}

CASE_WITH(what_a_dead_process_has_posted_harms_nobody, NULL, check_at_rest)
{
	for (unsigned i = 0; i < 200; i++) {
		struct control_posts *ring;
		int sock = with_ring(&ring);

		if (post_channels(ring, i) && i % 2)
			tell_of_posts(sock);
		if (i % 3)
			shutdown(sock, SHUT_RDWR);
		control_posts_unmap(ring);
		close(sock);
	}
}

CASE_WITH(a_request_with_a_reply_is_no_post, NULL, check_at_rest)
{
	const struct control_packet p = { .header = { .type = CONTROL_CREATE_CHANNEL,
		                                      .serial = 1 } };
	struct control_posts *ring;
	int sock = with_ring(&ring);
	bool tell;

	assert_int_equal(control_posts_put(ring, NULL, 0, &p, &tell), 0);
	tell_of_posts(sock);
	expect_hung_up(sock);
	control_posts_unmap(ring);
	close(sock);
}

/* Each has a request with a reply behind it, and there are more of them than replies have room. The
 * client is at its end within one turn, or in the next one. */
CASE_WITH(nor_is_one_behind_a_post, NULL, check_at_rest)
{
	const struct control_header ahead = { .type = CONTROL_POSTED, .status = CONTROL_FOLLOWED };
	const struct control_packet p = { .header = { .type = CONTROL_POSTED, .serial = 1 } };

	for (unsigned i = 0; i < 50; i++) {
		struct control_posts *ring;
		int sock = with_ring(&ring);
		bool tell;

		while (!control_posts_put(ring, &ahead, sizeof(ahead), &p, &tell))
			;
		tell_of_posts(sock);
		expect_hung_up(sock);
		control_posts_unmap(ring);
		close(sock);
	}
	assert_int_equal(daemon_pid(), daemon_process);
}

CASE_WITH(a_ring_of_nonsense_harms_only_its_owner, NULL, check_at_rest)
{
	unsigned over = 0;

	for (unsigned i = 0; i < 500; i++) {
		struct pollfd end = { .events = POLLRDHUP };
		struct control_posts *ring;
		int sock = with_ring(&ring);
		uint32_t *word = (uint32_t *)ring->data;

		for (unsigned w = 0; w < CONTROL_POSTS_BYTES / 4; w++)
			word[w] = random_number() % (w % 2 ? 3 : 200);
		atomic_store(&ring->tail, random_number());
		atomic_store(&ring->asleep, random_number());
		atomic_store(&ring->head,
		             i % 2 ? random_number() : random_number() % CONTROL_POSTS_BYTES);
		tell_of_posts(sock);
		end.fd = sock;
		over += poll(&end, 1, 2) == 1;
		control_posts_unmap(ring);
		close(sock);
	}
	assert_true(over > 250);
}

/* It posts all the time, and says so all the time; the daemon serves the others between. */
CASE_WITH(who_posts_without_end_is_one_of_many, NULL, check_at_rest)
{
	const struct control_packet p = { .header = { .type = CONTROL_DETACH,
		                                      .bytes = sizeof(struct control_attach) } };
	double longest = 0, end = now() + 1;
	struct control_posts *ring;
	int sock = with_ring(&ring);
	pid_t child = fork();
	bool tell;

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fcntl(sock, F_SETFL, O_NONBLOCK);
		for (;;) {
			if (control_posts_put(ring, NULL, 0, &p, &tell))
				tell_of_posts(sock);
		}
	}
	while (now() < end) {
		double began = now();

		channels_held();
		longest = now() - began > longest ? now() - began : longest;
	}
	print_message("status within %.1f ms\n", longest * 1000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	control_posts_unmap(ring);
	close(sock);
}

CASE_WITH(rings_go_with_their_clients, NULL, check_at_rest)
{
	char path[64], line[512];
	double end = now() + SECONDS;
	unsigned left;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)daemon_process);
	do {
		FILE *maps = fopen(path, "r");

		assert_true(maps && now() < end);
		left = 0;
		while (fgets(line, sizeof(line), maps))
			left += strstr(line, "umbel-posts") != NULL;
		fclose(maps);
	} while (left);
}

/* A request behind another one, of type @ahead and that serial number, in one datagram: the status
 * of the last one. */
static int call_behind(int sock, uint32_t ahead, uint32_t ahead_serial)
{
	struct {
		struct control_header header;
		struct control_handle body;
		uint32_t padding;
	} first = { .header = { .type = ahead,
		                .serial = ahead_serial,
		                .status = CONTROL_FOLLOWED,
		                .bytes = sizeof(struct control_handle) },
		    .body.handle = 12345 };
	struct control_packet last = { .header = { .type = CONTROL_CREATE_CHANNEL, .serial = 77 } };
	struct control_packet reply;

	assert_int_equal(control_send_behind(sock, &first, sizeof(first), &last), 0);
	assert_int_equal(control_receive(sock, &reply), 0);
	assert_int_equal(reply.header.serial, 77);
	assert_int_equal(reply.header.type, CONTROL_CREATE_CHANNEL);
	control_close_fds(&reply);
	return reply.header.status;
}

CASE_WITH(what_is_behind_a_request_that_fails_is_not_served, NULL, check_at_rest)
{
	int sock = greeted(CONTROL_ROLE_VERBS, NULL), cli = greeted(CONTROL_ROLE_CLI, NULL);

	assert_int_equal(call_behind(sock, CONTROL_DESTROY_QP, 0), -EINVAL);
	assert_int_equal(call_behind(sock, CONTROL_CM_GET_EVENT, 0), -EBADF);
	assert_int_equal(call_behind(sock, CONTROL_DESTROY_QP, 76), -EPROTO); /* it would wait */
	assert_int_equal(call_behind(cli, CONTROL_STOP, 0), -EPROTO);
	assert_int_equal(channels_held(), 0);
	close(sock);
	close(cli);
}

CASE_WITH(half_open_connections_keep_nobody_out, NULL, check_at_rest)
{
	enum { MANY = 2000 };
	struct rlimit limit;
	unsigned many = MANY;
	int sock[MANY];

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_true(limit.rlim_max > 500);
	if (many > limit.rlim_max / 2)
		many = (unsigned)limit.rlim_max / 2;
	for (unsigned i = 0; i < many; i++) {
		sock[i] = daemon_socket();
		if (i % 100 == 0)
			close(greeted(CONTROL_ROLE_VERBS, NULL));
	}
	close(greeted(CONTROL_ROLE_VERBS, NULL));
	for (unsigned i = 0; i < many; i++)
		close(sock[i]);
}

CASE_WITH(a_daemon_out_of_descriptors_refuses_and_recovers, NULL, check_at_rest)
{
	struct rlimit old, few = { 0 };
	int sock[64];
	unsigned n = 0;

	assert_int_equal(prlimit(daemon_process, RLIMIT_NOFILE, NULL, &old), 0);
	few.rlim_cur = (rlim_t)daemon_descriptors(daemon_process) + 20;
	few.rlim_max = old.rlim_max;
	assert_int_equal(prlimit(daemon_process, RLIMIT_NOFILE, &few, NULL), 0);
	for (n = 0; n < ARRAY_SIZE(sock); n++) {
		struct control_hello hello = { .version = CONTROL_VERSION,
			                       .role = CONTROL_ROLE_VERBS };

		struct control_packet reply;

		sock[n] = daemon_socket();
		if (exchange(sock[n], CONTROL_HELLO, &hello, sizeof(hello), &reply) ||
		    reply.header.status)
			break;
		control_close_fds(&reply);
	}
	/* in the end one was turned away, and not just left waiting */
	assert_true(n < ARRAY_SIZE(sock));
	for (unsigned i = 0; i <= n; i++)
		close(sock[i]);
	assert_int_equal(prlimit(daemon_process, RLIMIT_NOFILE, &old, NULL), 0);
}

/* Another process with some channels: 0, or why it may not have them. */
static int make_some_channels(void)
{
	struct control_packet reply;
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		int sock = greeted(CONTROL_ROLE_VERBS, NULL), ret = 0;

		for (unsigned i = 0; i < 200 && !ret; i++) {
			ret = call(sock, CONTROL_CREATE_CHANNEL, NULL, 0, &reply);
			control_close_fds(&reply);
		}
		_exit(-ret);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* Or the daemon has no numbers for its clients. */
static bool is_in_our_pid_namespace(pid_t pid)
{
	char path[64];
	struct stat theirs, ours;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	assert_int_equal(stat(path, &theirs), 0);
	assert_int_equal(stat("/proc/self/ns/pid", &ours), 0);
	return theirs.st_ino == ours.st_ino;
}

CASE_WITH(one_with_many_channels_leaves_descriptors_to_the_others, NULL, check_at_rest)
{
	const unsigned free = 4096;
	struct control_packet reply;
	struct rlimit old, few = { 0 };
	int greedy, ret;
	unsigned n = 0;

	assert_int_equal(prlimit(daemon_process, RLIMIT_NOFILE, NULL, &old), 0);
	few.rlim_cur = (rlim_t)daemon_descriptors(daemon_process) + free;
	few.rlim_max = old.rlim_max;
	assert_int_equal(prlimit(daemon_process, RLIMIT_NOFILE, &few, NULL), 0);
	greedy = greeted(CONTROL_ROLE_VERBS, NULL);
	while (!(ret = call(greedy, n % 2 ? CONTROL_CREATE_CHANNEL : CONTROL_CM_CREATE_CHANNEL,
	                    NULL, 0, &reply))) {
		control_close_fds(&reply);
		n++;
	}
	assert_int_equal(ret, -EMFILE);
	assert_in_range(n, free / 2, free - 300);
	if (is_in_our_pid_namespace(daemon_process))
		assert_int_equal(make_some_channels(), 0);
	/* what is given back can be had again, at once, on another connection */
	close(greedy);
	greedy = greeted(CONTROL_ROLE_VERBS, NULL);
	for (unsigned i = 0; i < 1000; i++) {
		struct control_channel_reply made;

		assert_int_equal(call(greedy, CONTROL_CREATE_CHANNEL, NULL, 0, &reply), 0);
		control_close_fds(&reply);
		memcpy(&made, reply.body, sizeof(made));
		if (i % 2)
			continue;
		assert_int_equal(call(greedy, CONTROL_DESTROY_CHANNEL,
		                      &(struct control_handle){ made.channel },
		                      sizeof(struct control_handle), &reply),
		                 0);
	}
	close(greedy);
	assert_int_equal(prlimit(daemon_process, RLIMIT_NOFILE, &old, NULL), 0);
}

/* Not hostile, but as bad: it uses up its own descriptors. */
static void use_up_descriptors(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_comp_channel *channel, *last = NULL;
	struct rlimit few = { 40, 40 };

	/* an Ethernet port's sockets come with the first CQ */
	if (!ctx || !ibv_create_cq(ctx, 1, NULL, NULL, 0) || setrlimit(RLIMIT_NOFILE, &few))
		_exit(1);
	while ((channel = ibv_create_comp_channel(ctx)))
		last = channel;
	if (errno != EMFILE || !last || ibv_destroy_comp_channel(last))
		_exit(2);
	/* all that was missing is a descriptor */
	if (!ibv_create_comp_channel(ctx) || !ibv_create_cq(ctx, 1, NULL, NULL, 0))
		_exit(3);
}

CASE_WITH(a_process_out_of_descriptors_is_told_so_and_goes_on, NULL, check_at_rest)
{
	harness_expect_success(start(use_up_descriptors));
}

/* The descriptors that the daemon has once it has closed those that nobody needs: @most, or more
 * if it keeps them. */
static long settled_fds(long most)
{
	const double end = now() + SECONDS;

	while (daemon_descriptors(daemon_process) > most && now() < end)
		wait_a_little();
	return daemon_descriptors(daemon_process);
}

static void ask_for_what_there_is_no_descriptor_for(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list[0] ? ibv_open_device(list[0]) : NULL;
	struct rdma_event_channel *first = rdma_create_event_channel();
	struct rlimit old, few;
	long before;

	if (!ctx || !first || getrlimit(RLIMIT_NOFILE, &old))
		_exit(1);
	before = daemon_descriptors(daemon_process);
	few = (struct rlimit){ 40, old.rlim_max };
	if (setrlimit(RLIMIT_NOFILE, &few))
		_exit(2);
	while (dup(STDERR_FILENO) >= 0)
		;
	for (unsigned i = 0; i < 100; i++) {
		if (ibv_create_comp_channel(ctx) || errno != EMFILE)
			_exit(3);
		if (ibv_open_device(list[0]) || errno != EMFILE)
			_exit(4);
		if (rdma_create_event_channel() || errno != EMFILE)
			_exit(5);
		if (rsocket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EMFILE)
			_exit(6);
	}
	setrlimit(RLIMIT_NOFILE, &old);
	if (settled_fds(before + 2) > before + 2)
		_exit(7);
}

CASE_WITH(what_there_was_no_descriptor_for_is_not_kept_by_the_daemon, NULL, check_at_rest)
{
	harness_expect_success(start(ask_for_what_there_is_no_descriptor_for));
}

/* Pages of objects of HCA @own: whatever is asked, of no other host's, and a page. */
static void expect_pages(int sysfs, uint32_t own)
{
	const struct {
		struct control_list_objects req;
		int status;
	} cases[] = {
		{ { own, CONTROL_QPS, 0, 0 }, 0 },
		{ { own, CONTROL_CQS, 12345678, 0 }, 0 },
		{ { own, CONTROL_SRQS, UINT32_MAX, UINT32_MAX }, 0 },
		{ { own, CONTROL_PDS, 0, UINT32_MAX }, 0 },
		{ { own, CONTROL_CONTEXTS, UINT32_MAX, 0 }, 0 },
		{ { own, CONTROL_MRS, 0, 0 }, 0 },
		{ { own, CONTROL_MRS, 0, UINT32_MAX }, 0 },
		{ { own, CONTROL_MRS, UINT32_MAX, 0 }, 0 },
		{ { own, CONTROL_CM_IDS, 0, UINT32_MAX }, 0 },
		{ { own, CONTROL_CM_IDS, UINT32_MAX, UINT32_MAX }, 0 },
		{ { own, CONTROL_OBJECT_KINDS, 0, 0 }, -EINVAL },
		{ { own, UINT32_MAX, 0, 0 }, -EINVAL },
		{ { own + 1, CONTROL_QPS, 0, 0 }, -ENODEV },
		{ { UINT32_MAX, CONTROL_QPS, 0, 0 }, -ENODEV },
	};
	struct control_packet reply;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct control_list_objects_reply *page = (const void *)reply.body;

		assert_int_equal(call(sysfs, CONTROL_LIST_OBJECTS, &cases[i].req,
		                      sizeof(cases[i].req), &reply),
		                 cases[i].status);
		if (!cases[i].status)
			assert_true(page->n <= CONTROL_OBJECTS_PAGE &&
			            (!page->more || page->from > cases[i].req.from ||
			             page->at > cases[i].req.at));
	}
	assert_int_equal(call(sysfs, CONTROL_LIST_OBJECTS, &cases[0].req, 4, &reply), -EPROTO);
}

CASE_WITH(only_ports_in_sight_are_described, NULL, check_at_rest)
{
	struct control_hello hello = { CONTROL_VERSION, CONTROL_ROLE_SYSFS, "h2" };
	int sysfs = daemon_socket(), verbs = greeted(CONTROL_ROLE_VERBS, NULL);
	const uint32_t ports[] = { 0, 1, 2, 4, UINT32_MAX };
	struct control_packet reply;
	uint32_t own = 1;

	if (call(sysfs, CONTROL_HELLO, &hello, sizeof(hello), &reply) == -EHOSTUNREACH) {
		strcpy(hello.host, "h1"); /* of an Ethernet fabric */
		own = 0;
		assert_int_equal(call(sysfs, CONTROL_HELLO, &hello, sizeof(hello), &reply), 0);
	}
	control_close_fds(&reply);
	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++)
		assert_int_equal(
		        call(sysfs, CONTROL_DESCRIBE_PORT, &ports[i], sizeof(ports[i]), &reply),
		        ports[i] == own ? 0 : -ENODEV);
	assert_int_equal(call(sysfs, CONTROL_DESCRIBE_PORT, &own, 3, &reply), -EPROTO);
	assert_int_equal(call(verbs, CONTROL_DESCRIBE_PORT, &own, sizeof(own), &reply), -ENOSYS);
	expect_pages(sysfs, own);
	close(sysfs);
	close(verbs);
}

/* ---- protection domains ---- */

#define MOST_PDS 16384

/* How many the first HCA has. */
static unsigned count_pds(void)
{
	struct control_list_objects req = { .kind = CONTROL_PDS };
	int sysfs = greeted(CONTROL_ROLE_SYSFS, NULL);
	const struct control_list_objects_reply *page;
	struct control_packet reply;
	unsigned n = 0;

	do {
		assert_int_equal(call(sysfs, CONTROL_LIST_OBJECTS, &req, sizeof(req), &reply), 0);
		page = (const void *)reply.body;
		n += page->n;
		req.from = page->from;
	} while (page->more);
	close(sysfs);
	return n;
}

static uint32_t open_first_hca(int sock)
{
	const struct control_open_hca req = { .hca = 0 };
	struct control_packet reply;
	uint32_t handle;

	assert_int_equal(call(sock, CONTROL_OPEN_HCA, &req, sizeof(req), &reply), 0);
	memcpy(&handle, reply.body, sizeof(handle));
	control_close_fds(&reply);
	return handle;
}

static int ask_pd(int sock, uint32_t type, uint32_t handle, uint32_t domain)
{
	struct control_pd req = { .hca_handle = handle, .domain = domain };
	struct control_packet reply;

	return call(sock, type, &req, sizeof(req), &reply);
}

/* A request that takes a client's turn: those behind it in its datagram come later, in order. */
CASE_WITH(what_is_behind_a_long_request_is_served_in_order, NULL, check_at_rest)
{
	int sock = greeted(CONTROL_ROLE_VERBS, NULL);
	const uint32_t handle = open_first_hca(sock), other = open_first_hca(sock);
	struct {
		struct control_header header;
		struct control_handle body;
		uint32_t padding;
		struct control_header header2;
		struct control_pd body2;
	} first = { .header = { .type = CONTROL_CLOSE_HCA,
		                .status = CONTROL_FOLLOWED,
		                .bytes = sizeof(first.body) },
		    .body.handle = handle,
		    .header2 = { .type = CONTROL_ALLOC_PD,
		                 .status = CONTROL_FOLLOWED,
		                 .bytes = sizeof(first.body2) },
		    .body2 = { .hca_handle = other, .domain = 1 } };
	struct control_packet last = { .header = { .type = CONTROL_CREATE_CHANNEL, .serial = 77 } };
	struct control_packet reply;

	for (uint32_t i = 1; i <= MOST_PDS; i++)
		assert_int_equal(ask_pd(sock, CONTROL_ALLOC_PD, handle, i), 0);
	assert_int_equal(ask_pd(sock, CONTROL_ALLOC_PD, other, UINT32_MAX), -ENOSPC);
	assert_int_equal(control_send_behind(sock, &first, sizeof(first), &last), 0);
	assert_int_equal(control_receive(sock, &reply), 0);
	assert_int_equal(reply.header.serial, 77);
	assert_int_equal(reply.header.status, 0);
	control_close_fds(&reply);
	assert_int_equal(ask_pd(sock, CONTROL_FREE_PD, other, 1), 0);
	assert_int_equal(ask_pd(sock, CONTROL_FREE_PD, other, 2), -EINVAL);
	/* nobody is there any more for the rest */
	for (uint32_t i = 1; i <= MOST_PDS; i++)
		assert_int_equal(ask_pd(sock, CONTROL_ALLOC_PD, other, i), 0);
	first.body.handle = other;
	assert_int_equal(control_send_behind(sock, &first, sizeof(first), &last), 0);
	close(sock);
	for (double end = now() + SECONDS; count_pds() && now() < end;)
		wait_a_little();
	assert_int_equal(count_pds(), 0);
}

CASE_WITH(an_hca_with_a_shared_receive_queue_stays_open, NULL, check_at_rest)
{
	int sock = greeted(CONTROL_ROLE_VERBS, NULL);
	const uint32_t handle = open_first_hca(sock);
	const struct control_create_srq req = { .hca_handle = handle, .max_wr = 4, .max_sge = 1 };
	struct control_packet reply;
	struct control_handle srq;

	assert_int_equal(call(sock, CONTROL_CREATE_SRQ, &req, sizeof(req), &reply), 0);
	srq.handle = ((const struct control_create_srq_reply *)reply.body)->srq;
	assert_int_equal(call(sock, CONTROL_CLOSE_HCA, &handle, sizeof(handle), &reply), -EBUSY);
	assert_int_equal(call(sock, CONTROL_DESTROY_SRQ, &srq, sizeof(srq), &reply), 0);
	assert_int_equal(call(sock, CONTROL_CLOSE_HCA, &handle, sizeof(handle), &reply), 0);
	close(sock);
}

/* The daemon's processor time for opening and closing the HCA once more, some times. */
static double time_of_closing(int sock, clockid_t clock)
{
	const struct control_open_hca req = { .hca = 0 };
	struct timespec before, after;

	clock_gettime(clock, &before);
	for (unsigned i = 0; i < 100; i++) {
		struct control_packet reply;
		struct control_handle h;

		assert_int_equal(call(sock, CONTROL_OPEN_HCA, &req, sizeof(req), &reply), 0);
		memcpy(&h, reply.body, sizeof(h));
		control_close_fds(&reply);
		assert_int_equal(call(sock, CONTROL_CLOSE_HCA, &h, sizeof(h), &reply), 0);
	}
	clock_gettime(clock, &after);
	return (double)(after.tv_sec - before.tv_sec) +
	       (double)(after.tv_nsec - before.tv_nsec) / 1e9;
}

CASE_WITH(an_hca_is_closed_as_fast_with_many_queues_of_another, NULL, check_at_rest)
{
	int sock = greeted(CONTROL_ROLE_VERBS, NULL);
	const struct control_create_cq req = { .hca_handle = open_first_hca(sock), .cqe = 1 };
	struct control_packet reply;
	double before, after;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(daemon_process, &clock), 0);
	before = time_of_closing(sock, clock);
	for (unsigned i = 0; i < 50000; i++)
		assert_int_equal(call(sock, CONTROL_CREATE_CQ, &req, sizeof(req), &reply), 0);
	after = time_of_closing(sock, clock);
	print_message("%.1f us, and %.1f us with 50,000 CQs\n", before * 1e4, after * 1e4);
	assert_true(after < 20 * before); /* 600 if the queues are looked through */
	close(sock);
}

CASE_WITH(as_many_domains_as_are_shown_are_kept, NULL, check_at_rest)
{
	int sock = greeted(CONTROL_ROLE_VERBS, NULL), other = greeted(CONTROL_ROLE_VERBS, NULL);
	const uint32_t handle = open_first_hca(sock), second = open_first_hca(sock);
	struct control_packet reply;

	assert_int_equal(ask_pd(sock, CONTROL_ALLOC_PD, handle + 12345, 1), -EINVAL);
	assert_int_equal(ask_pd(other, CONTROL_ALLOC_PD, handle, 1), -EINVAL);
	assert_int_equal(ask_pd(sock, CONTROL_ALLOC_PD, second, 1), 0);
	assert_int_equal(ask_pd(sock, CONTROL_ALLOC_PD, handle, 1), -EEXIST);
	assert_int_equal(ask_pd(other, CONTROL_FREE_PD, handle, 1), -EINVAL);
	for (uint32_t i = 2; i <= MOST_PDS; i++)
		assert_int_equal(ask_pd(sock, CONTROL_ALLOC_PD, handle, UINT32_MAX - i), 0);
	assert_int_equal(ask_pd(sock, CONTROL_ALLOC_PD, handle, 2), -ENOSPC);
	assert_int_equal(count_pds(), MOST_PDS);
	assert_int_equal(ask_pd(sock, CONTROL_FREE_PD, handle, UINT32_MAX - 2), 0);
	assert_int_equal(ask_pd(sock, CONTROL_FREE_PD, handle, UINT32_MAX - 2), -EINVAL);
	assert_int_equal(count_pds(), MOST_PDS - 1);
	/* they go with the HCA, or with the process */
	assert_int_equal(call(sock, CONTROL_CLOSE_HCA, &handle, sizeof(handle), &reply), 0);
	assert_int_equal(count_pds(), 1);
	close(sock);
	close(other);
	for (double end = now() + SECONDS; count_pds() && now() < end;)
		wait_a_little();
	assert_int_equal(count_pds(), 0);
}

/* ---- requests with random numbers ---- */

static const uint32_t verbs_bytes[] = {
	[CONTROL_OPEN_HCA] = sizeof(struct control_open_hca),
	[CONTROL_CLOSE_HCA] = sizeof(struct control_handle),
	[CONTROL_CREATE_CHANNEL] = 0,
	[CONTROL_DESTROY_CHANNEL] = sizeof(struct control_handle),
	[CONTROL_GET_CHANNEL] = sizeof(struct control_get_channel),
	[CONTROL_CREATE_CQ] = sizeof(struct control_create_cq),
	[CONTROL_DESTROY_CQ] = sizeof(struct control_handle),
	[CONTROL_CREATE_QP] = sizeof(struct control_create_qp),
	[CONTROL_MODIFY_QP] = sizeof(struct control_modify_qp),
	[CONTROL_DESTROY_QP] = sizeof(struct control_handle),
	[CONTROL_ATTACH] = sizeof(struct control_attach),
	[CONTROL_DETACH] = sizeof(struct control_attach),
	[CONTROL_GET_FLOW] = sizeof(struct control_get_flow),
	[CONTROL_GET_PAYLOAD] = sizeof(struct control_get_payload),
	[CONTROL_RAISE_EVENT] = sizeof(struct control_raise_event),
	[CONTROL_OPEN_ROCE] = sizeof(struct control_handle),
	[CONTROL_ROCE_SOCKET] = sizeof(struct control_roce_socket),
	[CONTROL_ROCE_MAD] = sizeof(struct control_roce_mad),
	[CONTROL_PUT_FLOW] = sizeof(struct control_put_flow),
	[CONTROL_OPEN_KEYS] = 0,
	[CONTROL_ADD_KEYS] = sizeof(struct control_add_keys),
	[CONTROL_GET_MEMORY] = sizeof(struct control_get_memory),
	[CONTROL_WAIT] = sizeof(struct control_wait),
	[CONTROL_CREATE_SRQ] = sizeof(struct control_create_srq),
	[CONTROL_DESTROY_SRQ] = sizeof(struct control_handle),
	[CONTROL_MODERATE_CQ] = sizeof(struct control_moderate_cq),
	[CONTROL_COUNT_ARRIVALS] = sizeof(struct control_handle),
	[CONTROL_OPEN_XRCD] = sizeof(struct control_open_xrcd),
	[CONTROL_CLOSE_XRCD] = sizeof(struct control_handle),
	[CONTROL_OPEN_QP] = sizeof(struct control_open_qp),
	[CONTROL_GET_TARGET] = sizeof(struct control_get_target),
	[CONTROL_RESIZE_SRQ] = sizeof(struct control_resize_srq),
	[CONTROL_RESERVE_QPS] = sizeof(struct control_reserve_qps),
	[CONTROL_RING_HCA] = sizeof(struct control_ring_hca),
	[CONTROL_WAKE] = sizeof(struct control_get_channel),
	[CONTROL_ALLOC_PD] = sizeof(struct control_pd),
	[CONTROL_FREE_PD] = sizeof(struct control_pd),
	[CONTROL_MEET_FAULT] = sizeof(struct control_meet_fault),
	[CONTROL_FIND_NEIGHBOUR] = sizeof(struct control_find_neighbour),
	[CONTROL_QUERY_MEMBERSHIP] = sizeof(struct control_query_membership),
};

static const uint32_t cm_bytes[] = {
	[CONTROL_CM_CREATE_CHANNEL - CONTROL_CM_FIRST] = 0,
	[CONTROL_CM_DESTROY_CHANNEL - CONTROL_CM_FIRST] = sizeof(struct control_cm_channel),
	[CONTROL_CM_GET_EVENT - CONTROL_CM_FIRST] = sizeof(struct control_cm_channel),
	[CONTROL_CM_CREATE_ID - CONTROL_CM_FIRST] = sizeof(struct control_cm_create_id),
	[CONTROL_CM_READ - CONTROL_CM_FIRST] = sizeof(struct control_cm_read),
	[CONTROL_CM_DESTROY_ID - CONTROL_CM_FIRST] = sizeof(struct control_cm_read),
	[CONTROL_CM_MIGRATE_ID - CONTROL_CM_FIRST] = sizeof(struct control_cm_migrate_id),
	[CONTROL_CM_QUERY_ID - CONTROL_CM_FIRST] = sizeof(struct control_cm_id),
	[CONTROL_CM_QUERY_QP - CONTROL_CM_FIRST] = sizeof(struct control_cm_id),
	[CONTROL_CM_SET_OPTION - CONTROL_CM_FIRST] = sizeof(struct control_cm_set_option),
	[CONTROL_CM_BIND_ADDR - CONTROL_CM_FIRST] = sizeof(struct control_cm_bind_addr),
	[CONTROL_CM_RESOLVE_ADDR - CONTROL_CM_FIRST] = sizeof(struct control_cm_resolve_addr),
	[CONTROL_CM_RESOLVE_ROUTE - CONTROL_CM_FIRST] = sizeof(struct control_cm_resolve_route),
	[CONTROL_CM_LISTEN - CONTROL_CM_FIRST] = sizeof(struct control_cm_listen),
	[CONTROL_CM_CONNECT - CONTROL_CM_FIRST] = sizeof(struct control_cm_connect),
	[CONTROL_CM_ACCEPT - CONTROL_CM_FIRST] = sizeof(struct control_cm_connect),
	[CONTROL_CM_REJECT - CONTROL_CM_FIRST] = sizeof(struct control_cm_connect),
	[CONTROL_CM_DISCONNECT - CONTROL_CM_FIRST] = sizeof(struct control_cm_id),
	[CONTROL_CM_ESTABLISH - CONTROL_CM_FIRST] = sizeof(struct control_cm_id),
	[CONTROL_CM_NOTIFY - CONTROL_CM_FIRST] = sizeof(struct control_cm_notify),
	[CONTROL_CM_JOIN - CONTROL_CM_FIRST] = sizeof(struct control_cm_join),
	[CONTROL_CM_LEAVE - CONTROL_CM_FIRST] = sizeof(struct control_cm_handle),
	[CONTROL_CM_SERVE - CONTROL_CM_FIRST] = sizeof(struct control_cm_serve),
	[CONTROL_CM_RING - CONTROL_CM_FIRST] = sizeof(struct control_cm_ring),
	[CONTROL_CM_RETURN - CONTROL_CM_FIRST] = sizeof(struct control_cm_return),
};

static bool has_descriptor(uint32_t type)
{
	return type == CONTROL_OFFER_MEMORY || type == CONTROL_OPEN_XRCD_FILE;
}

/* Sends each request from @first to @last with its length in @bytes. The daemon refuses another
 * length with -EPROTO. */
static void expect_lengths(const uint32_t *bytes, uint32_t n, uint32_t first, uint32_t last)
{
	const uint8_t body[CONTROL_MAX_BYTES] = { 0 };
	struct control_packet reply;
	int sock = greeted(CONTROL_ROLE_VERBS, NULL);

	for (uint32_t type = first; type <= last; type++) {
		const uint32_t length = type - first < n ? bytes[type - first] : 0;

		if (has_descriptor(type))
			continue;
		if (call(sock, type, body, length, &reply) == -EPROTO)
			fail_msg("request %u does not have %u bytes: add its struct to verbs_bytes "
			         "or cm_bytes",
			         type, length);
		control_close_fds(&reply);
	}
	close(sock);
}

CASE_WITH(the_tables_have_the_length_of_each_request, NULL, check_at_rest)
{
	expect_lengths(verbs_bytes + CONTROL_OPEN_HCA, ARRAY_SIZE(verbs_bytes) - CONTROL_OPEN_HCA,
	               CONTROL_OPEN_HCA, CONTROL_CM_FIRST - 1);
	expect_lengths(cm_bytes, ARRAY_SIZE(cm_bytes), CONTROL_CM_FIRST, CONTROL_CM_END - 1);
}

/* Numbers that the daemon has given: random ones would seldom meet them. */
enum kind { HCA, CHANNEL, CQ, QP, RESERVED, KINDS };

static uint32_t known[KINDS][4];

static uint32_t pick(enum kind kind)
{
	return below(8) ? known[kind][below(4)] : random_number();
}

static void learn(uint32_t type, const struct control_packet *reply)
{
	static const enum kind made[] = { [CONTROL_OPEN_HCA] = HCA,
		                          [CONTROL_CREATE_CHANNEL] = CHANNEL,
		                          [CONTROL_CREATE_CQ] = CQ };

	const struct control_reserve_qps_reply *reserved = (const void *)reply->body;

	if (type == CONTROL_CREATE_QP)
		known[QP][below(4)] = ((const struct control_create_qp_reply *)reply->body)->qpn;
	else if (type == CONTROL_RESERVE_QPS)
		for (uint32_t i = 0; i < reserved->n; i++)
			known[RESERVED][below(4)] = reserved->of[i].qp.qpn;
	else if (type == CONTROL_OPEN_HCA || type == CONTROL_CREATE_CHANNEL ||
	         type == CONTROL_CREATE_CQ)
		memcpy(&known[made[type]][below(4)], reply->body, sizeof(uint32_t));
}

/* As random_verbs_body(), of requests about Ethernet ports. */
static void random_roce_body(uint32_t type, uint8_t *body)
{
	struct control_roce_socket *socket = (void *)body;
	struct control_roce_mad *mad = (void *)body;

	switch (type) {
	case CONTROL_ROCE_SOCKET:
		socket->hca_handle = pick(HCA);
		socket->kind = (uint16_t)below(4);
		socket->is_ipv6 = (uint16_t)below(3);
		socket->source_port = below(0x5000) + 0xC000;
		break;
	case CONTROL_ROCE_MAD:
		mad->hca_handle = pick(HCA);
		mad->qkey = below(4) ? IB_QKEY_GSI : 0;
		mad->pkey = below(4) ? 0xFFFF : 0;
		/* now and then an address that is somebody's, and data that mean something there */
		memset(&mad->dgid, 0, sizeof(mad->dgid));
		memcpy(mad->dgid.raw + 10, "\xff\xff\xc0\0\2\1", 6);
		memcpy(mad->data, "\1\7\2\3", 4);
		break;
	}
}

/* Makes sense of some of a random body, so that more than the first check is passed. */
static void random_verbs_body(uint32_t type, uint8_t *body)
{
	struct control_create_qp *qp = (void *)body;
	struct control_attach *attach = (void *)body;
	struct control_get_flow *flow = (void *)body;
	struct control_raise_event *raise = (void *)body;
	struct control_reserve_qps *reserve = (void *)body;
	struct control_pd *pd = (void *)body;
	uint32_t *word = (void *)body;

	switch (type) {
	case CONTROL_OPEN_HCA:
		word[0] = below(5);
		break;
	case CONTROL_CLOSE_HCA:
	case CONTROL_CREATE_CQ:
	case CONTROL_OPEN_ROCE:
	case CONTROL_CREATE_SRQ:
	case CONTROL_OPEN_XRCD:
	case CONTROL_OPEN_QP:
	case CONTROL_RING_HCA:
	case CONTROL_FIND_NEIGHBOUR:
	case CONTROL_QUERY_MEMBERSHIP:
		word[0] = pick(HCA);
		break;
	case CONTROL_ALLOC_PD:
	case CONTROL_FREE_PD:
		pd->hca_handle = pick(HCA);
		pd->domain = below(8);
		break;
	case CONTROL_DESTROY_CHANNEL:
	case CONTROL_GET_CHANNEL:
	case CONTROL_WAKE:
		word[0] = pick(CHANNEL);
		break;
	case CONTROL_DESTROY_CQ:
		word[0] = pick(CQ);
		break;
	case CONTROL_CREATE_QP:
		qp->hca_handle = pick(HCA);
		qp->cq = pick(CQ);
		qp->ready_bit %= SHM_CQ_READY_BITS;
		qp->max_recv_wr %= below(2) ? 4 : 1024;
		qp->send_cq = pick(CQ);
		qp->reserved = below(2) ? pick(RESERVED) : 0;
		if (below(2)) {
			qp->type = below(2) ? IBV_QPT_UD : IBV_QPT_RC;
			qp->srq = qp->xrcd = qp->max_send_wr = qp->max_recv_sge = 0;
			qp->request_bytes = qp->type == IBV_QPT_UD ? 0 : 128;
		}
		break;
	case CONTROL_RESERVE_QPS:
		reserve->shape =
		        (struct control_qp_shape){ .max_recv_wr = below(4),
			                           .request_bytes = below(2) ? 128 : below(130) };
		reserve->n = below(20);
		break;
	case CONTROL_MODIFY_QP:
	case CONTROL_DESTROY_QP:
	case CONTROL_GET_PAYLOAD:
		word[0] = pick(QP);
		break;
	case CONTROL_ATTACH:
	case CONTROL_DETACH:
		attach->qpn = pick(QP);
		attach->mlid = (uint16_t)(0xC000 + below(4));
		memset(attach->mgid.raw, 0xFF, 15);
		if (below(2)) /* on Ethernet, an IPv4 group as well */
			memcpy(attach->mgid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xef\1\1", 15);
		break;
	case CONTROL_GET_FLOW:
		flow->qpn = pick(QP);
		flow->dlid = (uint16_t)(below(2) ? 0xC000 + below(4) : below(8));
		break;
	case CONTROL_RAISE_EVENT:
		raise->type = below(2) ? IBV_EVENT_SQ_DRAINED : below(20);
		raise->element = pick(QP);
		break;
	default:
		random_roce_body(type, body);
		break;
	}
}

static bool takes_away(uint32_t type)
{
	return type == CONTROL_CLOSE_HCA || type == CONTROL_DESTROY_CQ ||
	       type == CONTROL_DESTROY_QP || type == CONTROL_DESTROY_CHANNEL ||
	       type == CONTROL_DESTROY_SRQ || type == CONTROL_CLOSE_XRCD ||
	       type == CONTROL_CM_DESTROY_CHANNEL || type == CONTROL_CM_DESTROY_ID;
}

static void verbs_at_random(int sock, unsigned n)
{
	_Alignas(8) uint8_t body[CONTROL_MAX_BYTES];

	while (n--) {
		uint32_t type = 1 + below(ARRAY_SIZE(verbs_bytes) + 1), bytes = below(256);
		struct control_packet reply;

		if (takes_away(type) && below(4))
			continue;
		if (type < ARRAY_SIZE(verbs_bytes) && below(20))
			bytes = verbs_bytes[type];
		random_words(body, sizeof(body));
		random_verbs_body(type, body);
		if (!call(sock, type, body, bytes, &reply))
			learn(type, &reply);
		control_close_fds(&reply);
	}
}

static void random_address(union control_cm_addr *a)
{
	static const char *const text[] = { "10.0.0.1",  "10.0.0.2",  "10.0.0.9",
		                            "239.1.1.1", "239.1.1.2", "0.0.0.0" };

	if (below(4) == 0) {
		random_bytes(a, sizeof(*a));
		a->sa.sa_family = (sa_family_t)(below(2) ? AF_INET6 : AF_IB);
		return;
	}
	memset(a, 0, sizeof(*a));
	a->in.sin_family = AF_INET;
	a->in.sin_port = (in_port_t)(below(3) * 0x1234);
	/* what cm_message.h calls an address, without a library for it */
	if (sscanf(text[below(ARRAY_SIZE(text))], "%hhu.%hhu.%hhu.%hhu", (uint8_t *)&a->in.sin_addr,
	           (uint8_t *)&a->in.sin_addr + 1, (uint8_t *)&a->in.sin_addr + 2,
	           (uint8_t *)&a->in.sin_addr + 3) != 4)
		abort();
}

static void random_cm_body(uint32_t type, uint8_t *body)
{
	static const uint16_t spaces[] = {
		RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_UDP, RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB, 7
	};
	struct control_cm_create_id *create = (void *)body;
	struct control_cm_resolve_addr *resolve = (void *)body;
	uint32_t *word = (void *)body;

	word[0] = below(10); /* in most of them an identifier */
	if (type == CONTROL_CM_ACCEPT || type == CONTROL_CM_CONNECT || type == CONTROL_CM_REJECT ||
	    type == CONTROL_CM_JOIN)
		word[2] = below(10);
	switch (type) {
	case CONTROL_CM_CREATE_ID:
		create->id = below(20) ? below(10) : word[1];
		create->ps = spaces[below(ARRAY_SIZE(spaces))];
		create->channel = below(3);
		break;
	case CONTROL_CM_BIND_ADDR:
		random_address(&((struct control_cm_bind_addr *)body)->addr);
		break;
	case CONTROL_CM_RESOLVE_ADDR:
		random_address(&resolve->src);
		random_address(&resolve->dst);
		break;
	case CONTROL_CM_JOIN:
		random_address(&((struct control_cm_join *)body)->addr);
		((struct control_cm_join *)body)->flags = below(3);
		break;
	case CONTROL_CM_SET_OPTION:
		((struct control_cm_set_option *)body)->level = (int32_t)below(2);
		((struct control_cm_set_option *)body)->name = (int32_t)below(5);
		((struct control_cm_set_option *)body)->bytes =
		        below(2) ? (uint32_t)sizeof(int) : below(400);
		break;
	case CONTROL_CM_CONNECT:
	case CONTROL_CM_ACCEPT:
	case CONTROL_CM_REJECT:
		((struct control_cm_connect *)body)->bytes = below(2) ? below(100) : below(300);
		break;
	}
}

static void cm_at_random(int sock, unsigned n)
{
	_Alignas(8) uint8_t body[CONTROL_MAX_BYTES];

	while (n--) {
		uint32_t i = below(ARRAY_SIZE(cm_bytes) + 1), bytes = below(256);
		struct control_packet reply;

		if (takes_away(CONTROL_CM_FIRST + i) && below(10))
			continue;
		if (i < ARRAY_SIZE(cm_bytes) && below(20))
			bytes = cm_bytes[i];
		random_words(body, sizeof(body));
		random_cm_body(CONTROL_CM_FIRST + i, body);
		call(sock, CONTROL_CM_FIRST + i, body, bytes, &reply);
		control_close_fds(&reply);
	}
}

CASE_WITH(random_verbs_requests_get_replies, NULL, check_at_rest)
{
	for (unsigned i = 0; i < 20; i++) {
		int sock = greeted(CONTROL_ROLE_VERBS, NULL);

		verbs_at_random(sock, 2000);
		close(sock);
	}
}

CASE_WITH(random_cm_requests_get_replies, NULL, check_at_rest)
{
	for (unsigned i = 0; i < 20; i++) {
		int sock = greeted(CONTROL_ROLE_VERBS, NULL);

		cm_at_random(sock, 2000);
		close(sock);
	}
}

CASE_WITH(random_command_line_requests_get_replies, NULL, check_at_rest)
{
	static const char *const what[] = { "status",   "hosts", "topology", "groups", "routes",
		                            "counters", "qps",   "ports",    "",       "nonsense" };
	static const uint32_t breaking[] = { sizeof(struct control_link),
		                             sizeof(struct control_switch),
		                             sizeof(struct control_sm_event) };
	int sock = greeted(CONTROL_ROLE_CLI, NULL);

	for (unsigned i = 0; i < 500; i++) {
		uint32_t what_to_break = below(ARRAY_SIZE(breaking));
		uint8_t body[CONTROL_MAX_BYTES];
		struct control_show show = { 0 };
		struct control_set set;

		strcpy(show.what, what[below(ARRAY_SIZE(what))]);
		assert_true(try(sock, CONTROL_SHOW, &show, sizeof(show)));
		random_bytes(&show, sizeof(show));
		assert_true(try(sock, CONTROL_SHOW, &show, sizeof(show)));
		random_bytes(&set, sizeof(set));
		assert_true(try(sock, CONTROL_SET, &set, sizeof(set)));
		assert_true(try(sock, CONTROL_SET, &set, below(sizeof(set))));
		random_bytes(body, sizeof(body));
		assert_true(try(sock, CONTROL_LINK + what_to_break, body, breaking[what_to_break]));
		assert_true(try(sock, CONTROL_LINK + what_to_break, body, below(200)));
		assert_true(try(sock, 140 + below(1000), &set, below(sizeof(set))));
	}
	close(sock);
}

/* ---- a client of ours that behaves ---- */

struct client {
	int sock;
	struct shm_region r;
	uint32_t hca, cq, channel;
	int eventfd, events;
	struct control_create_qp_reply qp;
	struct shm_ring *ring;
};

static uint32_t call_for_number(int sock, uint32_t type, const void *body, uint32_t bytes, int *fd)
{
	struct control_packet reply;
	uint32_t number;

	assert_int_equal(call(sock, type, body, bytes, &reply), 0);
	assert_int_equal(reply.n_fds, fd ? 1 : 0);
	if (fd)
		*fd = reply.fd[0];
	memcpy(&number, reply.body, sizeof(number));
	return number;
}

static struct shm_ring *ring_of(const struct shm_region *r,
                                const struct control_create_qp_reply *qp)
{
	struct shm_ring *ring = shm_data_map(r, qp->ring_off, shm_ring_bytes(qp->ring_shift));

	assert_non_null(ring);
	return ring;
}

/* A queue pair that receives, with so many receives posted and its CQ's channel armed. */
static void client_open(struct client *c, uint32_t receives)
{
	struct control_packet reply;

	memset(c, 0, sizeof(*c));
	c->sock = greeted(CONTROL_ROLE_VERBS, &c->r);
	c->hca = call_for_number(c->sock, CONTROL_OPEN_HCA, &(struct control_open_hca){ 0 },
	                         sizeof(struct control_open_hca), &c->events);
	c->channel = call_for_number(c->sock, CONTROL_CREATE_CHANNEL, NULL, 0, &c->eventfd);
	c->cq = call_for_number(c->sock, CONTROL_CREATE_CQ,
	                        &(struct control_create_cq){ c->hca, 16 },
	                        sizeof(struct control_create_cq), NULL);
	assert_int_equal(call(c->sock, CONTROL_CREATE_QP,
	                      &(struct control_create_qp){ .hca_handle = c->hca,
	                                                   .cq = c->cq,
	                                                   .max_recv_wr = 4,
	                                                   .ready_bit = SHM_NO_READY_BIT,
	                                                   .type = IBV_QPT_UD },
	                      sizeof(struct control_create_qp), &reply),
	                 0);
	memcpy(&c->qp, reply.body, sizeof(c->qp));
	assert_int_equal(
	        call(c->sock, CONTROL_MODIFY_QP,
	             &(struct control_modify_qp){ .qpn = c->qp.qpn, .port_num = 1, .receives = 1 },
	             sizeof(struct control_modify_qp), &reply),
	        0);
	c->ring = ring_of(&c->r, &c->qp);
	shm_ring_post(c->ring, c->qp.ring_shift, c->qp.ring_gen, 0, receives);
	shm_cq_at(&c->r, c->cq)->channel = c->channel;
	shm_cq_at(&c->r, c->cq)->arm = SHM_CQ_ARMED;
}

static void client_close(struct client *c)
{
	shm_region_unmap(&c->r);
	close(c->eventfd);
	close(c->events);
	close(c->sock);
}

/* Claims a slot in @victim's ring and says so, as a sender does before it dies. */
static void claim_and_stop(struct client *c, const struct client *victim)
{
	uint16_t writer = (uint16_t)SHM_QP_INDEX(c->qp.qpn);
	struct shm_ring_view v = shm_ring_view(ring_of(&c->r, &victim->qp), victim->qp.ring_shift,
	                                       victim->qp.ring_gen, writer);
	uint32_t pos;

	shm_sender_at(&c->r, writer)->target_qpn = victim->qp.qpn;
	if (!shm_ring_claim(&v, &pos))
		abort();
}

static void expect_voided(const struct client *c)
{
	double end = now() + SECONDS;

	while (shm_ring_peek(c->ring, c->qp.ring_shift, 0) != SHM_SLOT_VOID) {
		assert_true(now() < end);
		wait_a_little();
	}
}

static void expect_event(const struct client *c)
{
	struct pollfd p = { .fd = c->eventfd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, SECONDS * 1000), 1);
}

CASE_WITH(others_objects_cannot_be_touched, NULL, check_at_rest)
{
	int sock = greeted(CONTROL_ROLE_VERBS, NULL);
	struct control_packet reply;
	struct client c;

	client_open(&c, 1);
#define REFUSED(type, ...)                                                                     \
	do {                                                                                   \
		struct type body_ = { __VA_ARGS__ };                                           \
		assert_int_equal(call(sock, number_, &body_, sizeof(body_), &reply), -EINVAL); \
	} while (0)
	uint32_t number_ = CONTROL_CLOSE_HCA;
	REFUSED(control_handle, c.hca);
	number_ = CONTROL_DESTROY_CHANNEL;
	REFUSED(control_handle, c.channel);
	number_ = CONTROL_DESTROY_CQ;
	REFUSED(control_handle, c.cq);
	number_ = CONTROL_DESTROY_QP;
	REFUSED(control_handle, c.qp.qpn);
	number_ = CONTROL_MODIFY_QP;
	REFUSED(control_modify_qp, .qpn = c.qp.qpn);
	number_ = CONTROL_CREATE_CQ;
	REFUSED(control_create_cq, c.hca, 1);
	number_ = CONTROL_CREATE_QP;
	REFUSED(control_create_qp, .hca_handle = c.hca, .cq = c.cq);
	number_ = CONTROL_GET_PAYLOAD;
	REFUSED(control_get_payload, c.qp.qpn, 4096);
	number_ = CONTROL_GET_FLOW;
	REFUSED(control_get_flow, .qpn = c.qp.qpn, .dlid = 1);
	number_ = CONTROL_RAISE_EVENT;
	REFUSED(control_raise_event, IBV_EVENT_SQ_DRAINED, c.qp.qpn);
#undef REFUSED
	client_close(&c);
	close(sock);
}

/* A made-up claim may name anybody. */
CASE_WITH(a_claim_in_the_name_of_one_who_lives_keeps_no_ring, NULL, check_at_rest)
{
	struct client named, victim;
	double end = now() + SECONDS;
	long before;

	client_open(&named, 1);
	before = read_held().n[RING_BYTES];
	client_open(&victim, 1);
	claim_and_stop(&named, &victim);
	shm_sender_at(&named.r, SHM_QP_INDEX(named.qp.qpn))->target_qpn = 0;
	client_close(&victim);
	while (read_held().n[RING_BYTES] != before) {
		assert_true(now() < end);
		wait_a_little();
	}
	client_close(&named);
}

/* ---- death ---- */

CASE_WITH(what_a_dead_process_had_claimed_is_voided_and_its_receiver_woken, NULL, check_at_rest)
{
	struct client victim;
	pid_t pid;

	client_open(&victim, 2);
	pid = fork();
	if (!pid) {
		struct client c;

		client_open(&c, 0);
		claim_and_stop(&c, &victim);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	expect_voided(&victim);
	expect_event(&victim);
	client_close(&victim);
}

/* Whether somebody says that it works for @qpn, or delivers to it. */
static bool is_dealt_with(const struct client *c, uint32_t qpn)
{
	for (unsigned i = 0; i < SHM_MAX_QPS; i++)
		if ((shm_sender_at(&c->r, i)->target_qpn & IB_QPN_MASK) == qpn ||
		    (shm_connection_at(&c->r, i)->helps & IB_QPN_MASK) == qpn)
			return true;
	return false;
}

/* A process that deregisters memory would wait for it each time. */
CASE_WITH(a_dead_process_deals_with_nobody, NULL, check_at_rest)
{
	double end = now() + SECONDS;
	struct client victim;
	pid_t pid;

	client_open(&victim, 2);
	pid = fork();
	if (!pid) {
		struct client c;
		uint16_t own;

		client_open(&c, 0);
		own = (uint16_t)SHM_QP_INDEX(c.qp.qpn);
		shm_sender_at(&c.r, own)->target_qpn = victim.qp.qpn | 3u << 24;
		shm_connection_at(&c.r, own)->helps = victim.qp.qpn | 7u << 24;
		_exit(!is_dealt_with(&victim, victim.qp.qpn));
	}
	harness_expect_success(pid);
	while (is_dealt_with(&victim, victim.qp.qpn)) {
		assert_true(now() < end);
		wait_a_little();
	}
	client_close(&victim);
}

CASE_WITH(the_same_although_a_child_of_the_dead_holds_its_connection, NULL, check_at_rest)
{
	struct client victim;
	int hold[2];
	pid_t pid;

	client_open(&victim, 2);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		struct client c;
		char byte;

		close(hold[1]);
		client_open(&c, 0);
		if (!fork()) {
			/* until the test closes its end */
			_exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
		}
		claim_and_stop(&c, &victim);
		kill(getpid(), SIGKILL);
	}
	close(hold[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	expect_voided(&victim);
	expect_event(&victim);
	/* what the dead one held is there as long as the child holds on */
	assert_int_equal(read_held().n[1], at_rest.n[1] + 2);
	close(hold[1]);
	client_close(&victim);
}

CASE_WITH(a_channel_that_is_full_does_not_stop_the_daemon, NULL, check_at_rest)
{
	uint64_t most = UINT64_MAX - 1;
	struct client victim;
	pid_t pid;

	client_open(&victim, 2);
	assert_int_equal(write(victim.eventfd, &most, sizeof(most)), sizeof(most));
	pid = fork();
	if (!pid) {
		struct client c;

		client_open(&c, 0);
		claim_and_stop(&c, &victim);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	expect_voided(&victim);
	read_held(); /* it answers */
	client_close(&victim);
}

/* It has counted a completion event and dies before it writes the eventfd. */
CASE_WITH(as_many_events_can_be_read_as_a_dead_process_had_counted, NULL, check_at_rest)
{
	struct client victim;
	uint64_t one;
	pid_t pid;

	client_open(&victim, 2);
	pid = fork();
	if (!pid) {
		struct client c;
		struct shm_cq *cq;

		client_open(&c, 0);
		cq = shm_cq_at(&c.r, victim.cq);
		claim_and_stop(&c, &victim);
		cq->arm = SHM_CQ_IDLE;
		cq->notified++;
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	expect_voided(&victim);
	for (unsigned n = 1; n <= 2; n++) {
		expect_event(&victim);
		assert_int_equal(read(victim.eventfd, &one, sizeof(one)), sizeof(one));
	}
	assert_int_equal(shm_cq_at(&victim.r, victim.cq)->notified, 2);
	client_close(&victim);
}

/* ---- shared memory ---- */

CASE_WITH(the_control_part_is_not_for_writing, NULL, check_at_rest)
{
	struct control_hello hello = { .version = CONTROL_VERSION, .role = CONTROL_ROLE_VERBS };
	struct control_packet reply;
	int sock = daemon_socket(), again;
	char path[64];
	void *p;

	assert_int_equal(call(sock, CONTROL_HELLO, &hello, sizeof(hello), &reply), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", reply.fd[0]);
	again = open(path, O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		int fd = i ? again : reply.fd[0];

		if (fd < 0)
			continue;
		p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		assert_ptr_equal(p, MAP_FAILED);
		assert_ptr_not_equal(p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0),
		                     MAP_FAILED);
		assert_int_not_equal(mprotect(p, 4096, PROT_READ | PROT_WRITE), 0);
		munmap(p, 4096);
		assert_int_not_equal(pwrite(fd, "x", 1, 0), 1);
		assert_int_not_equal(ftruncate(fd, 0), 0);
		assert_int_not_equal(
		        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
		close(fd);
	}
	close(reply.fd[1]);
	close(sock);
}

/* Scribbles without end over what the data part has in use. */
static void scribble(void)
{
	struct shm_region r;
	uint64_t *word[7];
	uint32_t n[7]; /* bytes */
	uint64_t off[7];

	close(greeted(CONTROL_ROLE_VERBS, &r));
	off[0] = r.control->rings_off, n[0] = 1u << 20;
	off[1] = r.control->cqs_off, n[1] = 64 * sizeof(struct shm_cq);
	off[2] = r.control->senders_off, n[2] = 64 * sizeof(struct shm_sender);
	off[3] = r.control->roce_ports_off, n[3] = sizeof(struct shm_roce_port);
	off[4] = r.control->connections_off, n[4] = 64 * sizeof(struct shm_connection);
	off[5] = r.control->wires_off, n[5] = 64 * sizeof(struct shm_wire);
	off[6] = r.control->port_counts_off, n[6] = sizeof(struct shm_port_count);
	for (unsigned i = 0; i < ARRAY_SIZE(word); i++) {
		assert_non_null(word[i] = shm_data_map(&r, off[i], n[i]));
	}
	for (;;) {
		unsigned what = below(ARRAY_SIZE(word));
		uint64_t v = (uint64_t)random_number() << 32 | random_number();

		if (below(2)) /* near what is there */
			word[what][below(n[what] / 8)] ^= 1ull << below(64);
		else
			word[what][below(n[what] / 8)] = v >> below(64);
		if (below(1000) == 0)
			memset((void *)r.data, (int)random_number(), 4096);
	}
}

/* A program that sends to itself and polls, through the library, whatever comes. */
static void exchange_without_end(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = ibv_open_device(list[0]);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 256, NULL, NULL, 0);
	struct ibv_qp_init_attr init = init_of(IBV_QPT_UD, cq, 16, 64);
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };
	struct ibv_port_attr port;
	char *memory = calloc(65, 4136);
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, (size_t)65 * 4136, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_ah_attr to = { .port_num = 1 };
	struct ibv_ah *ah;

	if (!qp || ibv_query_port(ctx, 1, &port))
		_exit(1);
	to.dlid = port.lid;
	to.is_global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	if (to.is_global)
		ibv_query_gid(ctx, 1, 0, &to.grh.dgid);
	ah = ibv_create_ah(pd, &to);
	ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) || !ah)
		_exit(1);
	for (unsigned i = 0;; i++) {
		struct ibv_sge in = { (uintptr_t)memory + i % 64 * 4136, 4136, mr->lkey };
		struct ibv_sge out = { (uintptr_t)memory + 64 * 4136, i % 2 ? 8 : 2048, mr->lkey };
		struct ibv_recv_wr recv = { .sg_list = &in, .num_sge = 1 }, *bad_recv;
		struct ibv_send_wr send = { .sg_list = &out,
			                    .num_sge = 1,
			                    .opcode = IBV_WR_SEND,
			                    .send_flags = IBV_SEND_SIGNALED,
			                    .wr.ud = { ah, qp->qp_num, 1 } },
		                   *bad_send;
		struct ibv_wc wc[8];

		ibv_post_recv(qp, &recv, &bad_recv);
		ibv_post_send(qp, &send, &bad_send);
		if (ibv_poll_cq(cq, 8, wc) < 0)
			_exit(0); /* overrun, as far as it can tell */
	}
}

/* Their memory there holds nonsense now, but the answer is whole. */
static void look_at_queue_pairs(void)
{
	struct control_client *c = daemon_client(CONTROL_ROLE_CLI);
	char *text;

	assert_int_equal(control_show(c, "qps", &text), 0);
	assert_int_equal(text[strlen(text) - 1], ']');
	free(text);
	control_close(c);
}

CASE_WITH(scribbling_over_the_shared_memory_brings_nobody_down, NULL, check_at_rest)
{
	enum { BYSTANDERS = 3 };
	pid_t scribbler = start(scribble), pid[BYSTANDERS];
	double end = now() + 4;
	int status;

	for (unsigned i = 0; i < BYSTANDERS; i++)
		pid[i] = start(exchange_without_end);
	while (now() < end) {
		unsigned i = below(BYSTANDERS);

		for (unsigned k = 0; k < below(20); k++)
			wait_a_little();
		/* it got its share of nonsense, but no signal except ours */
		if (below(2))
			kill(pid[i], SIGKILL);
		if (waitpid(pid[i], &status, WNOHANG) == pid[i]) {
			assert_true(WIFEXITED(status) ? WEXITSTATUS(status) == 0
			                              : WTERMSIG(status) == SIGKILL);
			pid[i] = start(exchange_without_end);
		}
		read_held();
		look_at_queue_pairs();
	}
	kill(scribbler, SIGKILL);
	waitpid(scribbler, NULL, 0);
	for (unsigned i = 0; i < BYSTANDERS; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], &status, 0);
		assert_true(WIFEXITED(status) ? WEXITSTATUS(status) == 0
		                              : WTERMSIG(status) == SIGKILL);
	}
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	print_message("seed %llu\n", (unsigned long long)seed);
	signal(SIGPIPE, SIG_IGN);
	learn_at_rest();
	return harness_run(NULL, NULL);
}
