/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How stream rsockets end badly: a peer that dies, is stopped, or lies; a listener that goes; a
 * descriptor that is closed while a thread waits. And what other processes have of them.
 */
#include "rsocket_stream.h"

#include <rdma/rdma_verbs.h>

/* ---- peers in other processes ---- */

/* A child on h2 that accepts one connection and does something with it; it listens already. */
static pid_t peer_in_child(void (*act)(int rs))
{
	int ready[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork_child();
	if (!child) {
		int listener = listening(2, PORT), rs;

		if (write(ready[1], "", 1) != 1)
			_exit(1);
		rs = raccept(listener, NULL, NULL);
		if (rs < 0)
			_exit(2);
		act(rs);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return child;
}

static void reap(pid_t child, int signal)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, signal);
	if (!signal)
		assert_int_equal(WEXITSTATUS(status), 0);
}

static void read_and_die(int rs)
{
	char byte;

	if (rrecv(rs, &byte, 1, 0) == 1)
		raise(SIGKILL);
}

CASE(a_peer_that_dies_ends_sending)
{
	static char block[1 << 20];
	pid_t child = peer_in_child(read_and_die);
	int client = connected_to(2, PORT), error = 0;
	struct pollfd p = { .fd = client, .events = POLLIN | POLLOUT };
	ssize_t n;

	do
		n = rsend(client, block, sizeof(block), 0);
	while (n > 0);
	error = errno;
	assert_int_equal(n, -1);
	assert_int_equal(error, ECONNRESET);
	assert_int_equal(rrecv(client, block, 1, 0), 0);
	assert_int_equal(rpoll(&p, 1, -1), 1);
	assert_true(p.revents & POLLHUP);
	assert_int_equal(rclose(client), 0);
	reap(child, SIGKILL);
}

static void send_and_die(int rs)
{
	if (rsend(rs, "last words", 10, 0) == 10)
		raise(SIGKILL);
}

CASE(what_a_peer_sent_before_it_died_arrives)
{
	char text[16] = "";

	for (int i = 0; i < 5; i++) {
		pid_t child = peer_in_child(send_and_die);
		int client = connected_to(2, PORT);
		struct pollfd p = { .fd = client, .events = POLLRDHUP };

		if (i % 2)
			assert_int_equal(rpoll(&p, 1, -1), 1);
		assert_int_equal(rrecv(client, text, sizeof(text), MSG_WAITALL), 10);
		assert_string_equal(text, "last words");
		assert_int_equal(rrecv(client, text, sizeof(text), 0), 0);
		assert_fails(rsend(client, "x", 1, 0), ECONNRESET);
		assert_int_equal(rclose(client), 0);
		reap(child, SIGKILL);
	}
}

static int clear_rules(void **state)
{
	(void)state;
	return system("umbel fault clear");
}

/* The listener hears of the end, and never that its reply has come: that MAD is lost, as it is with
 * a process that has ended before it left. */
CASE_WITH(a_client_that_has_ended_is_accepted, NULL, clear_rules)
{
	int listener = listening(2, PORT), client, server;
	char text[4] = "";

	assert_int_equal(system("umbel fault add mad=RTU drop > \"$TMPDIR/rule\""), 0);
	client = connected_to(2, PORT);
	assert_int_equal(rsend(client, "own", 3, 0), 3);
	expect_soon("the end of a client that is not accepted");
	assert_int_equal(rclose(client), 0);
	expect_soon("a connection that has ended");
	server = raccept(listener, NULL, NULL);
	assert_true(server >= 0);
	assert_int_equal(rrecv(server, text, 3, MSG_WAITALL), 3);
	expect_soon(NULL);
	assert_string_equal(text, "own");
	assert_int_equal(rrecv(server, text, 1, 0), 0);
	close_both(server, listener);
}

static void stop_and_read_all(int rs)
{
	char block[4096];
	ssize_t n;

	raise(SIGSTOP);
	while ((n = rrecv(rs, block, sizeof(block), 0)) > 0)
		;
	if (n || rclose(rs))
		_exit(3);
}

/* All that was sent is in the peer's memory, so nobody has to wait for the peer. */
CASE(a_peer_that_is_stopped_does_not_keep_who_closes)
{
	static char block[10000];
	pid_t child = peer_in_child(stop_and_read_all);
	int client = connected_to(2, PORT), status;

	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	while (rsend(client, block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(rclose(client), 0);
	assert_int_equal(kill(child, SIGCONT), 0);
	reap(child, 0);
}

static void echo_to_the_end(int rs)
{
	char block[4096];
	ssize_t n;

	while ((n = rrecv(rs, block, sizeof(block), 0)) > 0)
		if (rsend(rs, block, (size_t)n, 0) != n)
			_exit(3);
	if (n || rclose(rs))
		_exit(4);
}

CASE(two_processes_talk)
{
	pid_t child = peer_in_child(echo_to_the_end);
	int client = connected_to(2, PORT);
	struct transfer out = { .rs = client, .bytes = 4 << 20 }, in = out;

	begin_sending(&out);
	receive_all(&in);
	end_sending(&out);
	assert_int_equal(rclose(client), 0);
	reap(child, 0);
}

/* Tells by @rs of each that it has accepted. */
static void accept_and_tell(int rs)
{
	int listener = listening(2, PORT + 1);

	do
		if (rsend(rs, "", 1, 0) != 1)
			_exit(3);
	while (rrecv(rs, &(char){ 0 }, 1, 0) == 1 && raccept(listener, NULL, NULL) >= 0);
}

/* The only call is for another connection. */
CASE(connecting_goes_on_while_another_is_waited_for)
{
	pid_t child = peer_in_child(accept_and_tell);
	int client = connected_to(2, PORT), pending;
	struct pollfd in = { .fd = client, .events = POLLIN };

	assert_int_equal(rrecv(client, &(char){ 0 }, 1, 0), 1);
	for (int i = 0; i < 6; i++) {
		pending = connecting_to(2, PORT + 1);
		expect_soon("a byte that follows another connection");
		assert_int_equal(rsend(client, "", 1, 0), 1);
		if (i % 2)
			assert_int_equal(rpoll(&in, 1, -1), 1);
		assert_int_equal(rrecv(client, &(char){ 0 }, 1, 0), 1);
		expect_soon(NULL);
		assert_int_equal(rclose(pending), 0);
	}
	assert_int_equal(rclose(client), 0);
	reap(child, 0);
}

/* ---- fork ---- */

CASE(after_fork_an_rsocket_stays_the_parents)
{
	struct pair CLOSED_PAIR p = connected_pair();
	int server;
	pid_t child = fork_child();

	if (!child) {
		int own;

		if (rsend(p.client, "child", 5, 0) != -1 || errno != EBADF)
			_exit(1);
		if (raccept(p.listener, NULL, NULL) != -1 || errno != EBADF)
			_exit(2);
		if (rclose(p.client) || fcntl(p.client, F_GETFD) != -1)
			_exit(3);
		own = connected_to(2, PORT);
		_exit(rsend(own, "own", 3, 0) != 3 || rclose(own));
	}
	server = raccept(p.listener, NULL, NULL);
	assert_true(server >= 0);
	assert_int_equal(rrecv(server, &(char[3]){ 0 }, 3, MSG_WAITALL), 3);
	assert_int_equal(rrecv(server, &(char){ 0 }, 1, 0), 0);
	assert_int_equal(rclose(server), 0);
	reap(child, 0);
	expect_bytes_pass(p.client, p.server);
	expect_bytes_pass(p.server, p.client);
}

#define CANCELLED 100
#define CLIENTS   6
#define TIMES     15

static void connect_often(void)
{
	for (int i = 0; i < TIMES; i++) {
		int rs = connected_to(2, PORT);
		char text[4];

		if (rsend(rs, "ping", 4, 0) != 4 || rrecv(rs, text, 4, MSG_WAITALL) != 4)
			_exit(1);
		if (rrecv(rs, text, 1, 0) || rclose(rs))
			_exit(2);
	}
	_exit(0);
}

CASE(a_crowd_is_served)
{
	int listener = listening(2, PORT);
	pid_t child[CLIENTS];
	char text[4];

	for (int i = 0; i < CLIENTS; i++) {
		child[i] = fork_child();
		if (!child[i])
			connect_often();
	}
	for (int i = 0; i < CLIENTS * TIMES; i++) {
		int rs = raccept(listener, NULL, NULL);

		assert_true(rs >= 0);
		assert_int_equal(rrecv(rs, text, 4, MSG_WAITALL), 4);
		assert_int_equal(rsend(rs, text, 4, 0), 4);
		assert_int_equal(rclose(rs), 0);
	}
	for (int i = 0; i < CLIENTS; i++)
		reap(child[i], 0);
	assert_int_equal(rclose(listener), 0);
}

#define THREADS 3
#define ROUNDS  40

/* A connection with buffers of one of three sizes. */
static int with_buffers(unsigned size)
{
	union address a = host_address(2, PORT);
	int rs = bound(1), bytes = (int)(20000 << size % 3);

	assert_int_equal(rsetsockopt(rs, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
	assert_int_equal(rsetsockopt(rs, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
	assert_int_equal(rconnect(rs, &a.sa, sizeof(a.in)), 0);
	return rs;
}

/* Each connection says its number. Half of them are closed meanwhile, the others hear it back. */
static void *come_and_go(void *arg)
{
	uint32_t number, got;
	int rs[ROUNDS];

	for (uint32_t i = 0; i < ROUNDS; i++) {
		number = (uint32_t)(uintptr_t)arg + i;
		rs[i] = with_buffers(number);
		assert_int_equal(rsend(rs[i], &number, sizeof(number), 0), sizeof(number));
		if (i % 2)
			assert_int_equal(rclose(rs[i / 2]), 0);
	}
	for (uint32_t i = ROUNDS / 2; i < ROUNDS; i++) {
		number = (uint32_t)(uintptr_t)arg + i;
		assert_int_equal(rrecv(rs[i], &got, sizeof(got), MSG_WAITALL), sizeof(got));
		assert_int_equal(got, number);
		assert_int_equal(rclose(rs[i]), 0);
	}
	return NULL;
}

/* Buffers lie side by side: no connection notices the end of another one, nor what a child does
 * with it. */
CASE(connections_come_and_go)
{
	int listener = listening(2, PORT), rs[THREADS * ROUNDS];
	pthread_t thread[THREADS];
	uint32_t number;
	pid_t child;

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, come_and_go, (void *)(i * 1000)),
		                 0);
	for (int i = 0; i < THREADS * ROUNDS; i++) {
		rs[i] = raccept(listener, NULL, NULL);
		assert_true(rs[i] >= 0);
		assert_int_equal(rrecv(rs[i], &number, sizeof(number), MSG_WAITALL),
		                 sizeof(number));
		child = i % 20 ? -1 : fork_child(); /* while others are about to connect */
		if (!child) {
#ifdef __SANITIZE_ADDRESS__ /* its malloc() stays locked in a child that was forked beside one */
			_exit(0);
#endif
			_exit(rclose(rs[i]) != 0);
		}
		if (child > 0)
			reap(child, 0);
		if (number % 1000 >= ROUNDS / 2) /* those that went hear nothing */
			assert_int_equal(rsend(rs[i], &number, sizeof(number), 0), sizeof(number));
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	for (int i = 0; i < THREADS * ROUNDS; i++) {
		assert_int_equal(rrecv(rs[i], &(char){ 0 }, 1, 0), 0);
		assert_int_equal(rclose(rs[i]), 0);
	}
	assert_int_equal(rclose(listener), 0);
}

/* ---- closing ---- */

static void *close_it(void *arg)
{
	assert_int_equal(rclose(*(int *)arg), 0);
	return NULL;
}

#define BURSTS 60
#define BURST  3

static unsigned attached_segments(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "/SYSV") != NULL;
	fclose(f);
	return n;
}

/* By @rs comes how many are to be accepted each time. */
static void answer_bursts(int rs)
{
	int listener = listening(2, PORT + 1), one[BURST];
	char byte;

	if (rsend(rs, "", 1, 0) != 1)
		_exit(3);
	while (rrecv(rs, &byte, 1, 0) == 1) {
		for (unsigned i = 0; i < BURST; i++) {
			one[i] = raccept(listener, NULL, NULL);
			if (rsend(one[i], "", 1, 0) != 1)
				_exit(4);
		}
		for (unsigned i = 0; i < BURST; i++)
			if (rrecv(one[i], &byte, 1, 0) || rclose(one[i]))
				_exit(5);
	}
	if (attached_segments() >= BURSTS / 2)
		_exit(6);
}

/* While one connection of two processes stays, many others come and go. */
CASE(what_connections_had_is_given_up)
{
	pid_t child = peer_in_child(answer_bursts);
	int client = connected_to(2, PORT), one[BURST];
	char byte;

	assert_int_equal(rrecv(client, &byte, 1, 0), 1);
	for (unsigned k = 0; k < BURSTS; k++) {
		assert_int_equal(rsend(client, "", 1, 0), 1);
		for (unsigned i = 0; i < BURST; i++) {
			one[i] = connected_to(2, PORT + 1);
			assert_int_equal(rrecv(one[i], &byte, 1, 0), 1);
		}
		for (unsigned i = 0; i < BURST; i++)
			assert_int_equal(rclose(one[i]), 0);
	}
	assert_true(attached_segments() < BURSTS / 2);
	assert_int_equal(rclose(client), 0);
	reap(child, 0);
}

/* The thread may come first; then the call fails at once. */
CASE(who_waits_when_it_is_closed_hears_of_it)
{
	struct pair p = connected_pair();
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, close_it, &p.server), 0);
	assert_true(rrecv(p.server, &(char){ 0 }, 1, 0) <= 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, close_it, &p.listener), 0);
	assert_fails(raccept(p.listener, NULL, NULL), EBADF);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(rrecv(p.client, &(char){ 0 }, 1, 0), 0);
	assert_int_equal(rclose(p.client), 0);
}

CASE(a_listener_that_goes_takes_those_along_that_it_had_not_accepted)
{
	int listener = listening(2, PORT), client = connected_to(2, PORT),
	    late = stream(SOCK_NONBLOCK);
	union address to = host_address(2, PORT);
	struct pollfd p = { .fd = late, .events = POLLOUT };

	assert_fails(rconnect(late, &to.sa, sizeof(to.in)), EINPROGRESS);
	assert_int_equal(rclose(listener), 0);
	assert_int_equal(rrecv(client, &(char){ 0 }, 1, 0), 0);
	assert_fails(rsend(client, "x", 1, 0), ECONNRESET);
	assert_int_equal(rpoll(&p, 1, -1), 1);
	assert_true(p.revents & POLLERR);
	close_both(client, late);
}

CASE(lingering_for_no_time_is_no_wait)
{
	struct pair p = connected_pair();
	struct linger linger = { 1, 0 };

	assert_int_equal(rsetsockopt(p.client, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	assert_int_equal(rsend(p.client, "x", 1, 0), 1);
	assert_int_equal(rclose(p.client), 0);
	assert_int_equal(rrecv(p.server, &(char[2]){ 0 }, 2, MSG_WAITALL), 1);
	close_both(p.server, p.listener);
}

/* ---- peers that lie ---- */

/* The private data of a request, as rsockets have it. */
struct hello {
	uint8_t version, flags;
	uint16_t credits;
	uint8_t reserved[3], n_mappings;
	uint64_t targets_addr;
	uint32_t targets_key, n_targets;
	uint64_t buffer_addr;
	uint32_t buffer_key, buffer_bytes;
};

static struct hello honest(void)
{
	return (struct hello){ .version = 1, .credits = htobe16(100), .n_targets = htobe32(2) };
}

/* An identifier with a queue pair that asks @host with that private data; the next event. */
static struct rdma_cm_event *ask(struct node *n, int listener, const struct hello *hello,
                                 uint8_t bytes)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1
	};
	struct rdma_conn_param param = { .private_data = hello,
		                         .private_data_len = bytes,
		                         .retry_count = 7,
		                         .rnr_retry_count = 7 };
	struct pollfd event = { .fd = n->channel->fd, .events = POLLIN };
	struct pollfd served = { .fd = listener, .events = POLLIN };

	assert_int_equal(rdma_create_qp(n->id, NULL, &attr), 0);
	assert_int_equal(rdma_connect(n->id, &param), 0);
	while (!poll(&event, 1, 0)) /* the listener is in this process, and served in calls */
		assert_true(rpoll(&served, 1, 1) >= 0);
	return next_event(n);
}

static void expect_refused(const struct hello *hello, uint8_t bytes)
{
	struct node n = node_open(RDMA_PS_TCP);
	int listener = listening(2, PORT);
	struct rdma_cm_event *e;

	node_resolve(&n, 2, PORT);
	e = ask(&n, listener, hello, bytes);
	assert_string_equal(rdma_event_str(e->event), "RDMA_CM_EVENT_REJECTED");
	assert_int_equal(rdma_ack_cm_event(e), 0);
	node_close(&n);
	assert_int_equal(rclose(listener), 0);
}

CASE(who_speaks_no_rsockets_is_refused)
{
	struct hello hello = honest();

	expect_refused(NULL, 0);
	hello.version = 2;
	expect_refused(&hello, sizeof(hello));
	hello = honest();
	hello.n_targets = 0;
	expect_refused(&hello, sizeof(hello));
}

/* Messages without data, with that immediate data. */
static void send_immediate(struct node *n, uint32_t imm)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htobe32(imm) };
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(n->id->qp, &wr, &bad), 0);
	next_completion(n->id->send_cq);
}

static void post_receives(struct node *n)
{
	for (int i = 0; i < 8; i++) {
		struct ibv_recv_wr wr = { 0 }, *bad;

		assert_int_equal(ibv_post_recv(n->id->qp, &wr, &bad), 0);
	}
}

/* @has_memory: it has a list of targets, where our rsockets can write. */
static struct node liar(int listener, bool has_memory, int *server)
{
	struct node n = node_open(RDMA_PS_TCP);
	struct pollfd served = { .fd = listener, .events = POLLIN };
	struct hello hello = honest();
	struct rdma_cm_event *e;

	node_resolve(&n, 2, PORT);
	if (has_memory) {
		n.buffer = calloc(1, 4096);
		assert_non_null(n.mr = rdma_reg_write(n.id, n.buffer, 4096));
		hello.targets_addr = htobe64((uintptr_t)n.buffer);
		hello.targets_key = htobe32(n.mr->rkey);
	}
	e = ask(&n, listener, &hello, sizeof(hello));
	assert_string_equal(rdma_event_str(e->event), "RDMA_CM_EVENT_ESTABLISHED");
	assert_int_equal(rdma_ack_cm_event(e), 0);
	post_receives(&n);
	assert_int_equal(rpoll(&served, 1, -1), 1);
	*server = raccept(listener, NULL, NULL);
	assert_true(*server >= 0);
	return n;
}

CASE(who_claims_to_have_written_too_much_is_disconnected)
{
	int listener = listening(2, PORT), server, error = 0;
	struct node CLOSED n = liar(listener, true, &server);
	socklen_t bytes = sizeof(error);

	send_immediate(&n, 1u << 29 | 7); /* of no meaning */
	send_immediate(&n, 3);            /* bytes that it has not written: its own affair */
	assert_int_equal(rrecv(server, &(char[8]){ 0 }, 8, 0), 3);
	send_immediate(&n, 0x1FFFFFFF);
	assert_fails(rrecv(server, &(char){ 0 }, 1, 0), EPROTO);
	assert_int_equal(rrecv(server, &(char){ 0 }, 1, 0), 0);
	assert_int_equal(rgetsockopt(server, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
	assert_int_equal(error, 0);
	assert_fails(rsend(server, "x", 1, 0), ECONNRESET);
	close_both(server, listener);
}

/* Its targets are nowhere: the credits that we want to tell it of break the connection. */
CASE(who_has_no_memory_is_disconnected)
{
	int listener = listening(2, PORT), server;
	struct node CLOSED n = liar(listener, false, &server);

	assert_fails(rrecv(server, &(char){ 0 }, 1, 0), ECONNRESET);
	assert_int_equal(rrecv(server, &(char){ 0 }, 1, 0), 0);
	assert_fails(rsend(server, "x", 1, 0), ECONNRESET);
	close_both(server, listener);
}

/* ---- threads that are cancelled ---- */

/* Programs of TCP, such as iperf3, have their threads cancelled wherever they are, as read(2)
 * allows. */
static void be_cancelled_anywhere(void)
{
	int type;

	assert_int_equal(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type), 0);
}

static void *receives(void *rs)
{
	char bytes[100];

	be_cancelled_anywhere();
	for (;;)
		rrecv(*(int *)rs, bytes, sizeof(bytes), 0);
	return NULL;
}

static void *sends(void *rs)
{
	be_cancelled_anywhere();
	for (;;)
		rsend(*(int *)rs, "123", 3, MSG_DONTWAIT);
	return NULL;
}

static void *polls(void *rs)
{
	struct pollfd p = { .fd = *(int *)rs, .events = POLLIN };

	be_cancelled_anywhere();
	for (;;)
		rpoll(&p, 1, -1);
	return NULL;
}

static void drain(int rs)
{
	char bytes[1000];

	while (rrecv(rs, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

/* Some of the bytes before may still be on their way. */
static void expect_bytes_at_last(int from, int to)
{
	char last[4] = "";

	assert_int_equal(rsend(from, "now", 3, 0), 3);
	while (strcmp(last, "now") != 0) {
		memmove(last, last + 1, 2);
		assert_int_equal(rrecv(to, last + 2, 1, 0), 1);
	}
}

/* It is cancelled while bytes come, @n of them; then another one does as it did, and all can be
 * closed. */
static void cancel_one(void *(*run)(void *), unsigned n)
{
	struct pair CLOSED_PAIR p = connected_pair();
	pthread_t thread;
	void *end;

	assert_int_equal(pthread_create(&thread, NULL, run, &p.server), 0);
	for (unsigned i = 0; i < n; i++) {
		rsend(p.client, "1", 1, MSG_DONTWAIT);
		drain(p.client);
	}
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, &end), 0);
	assert_ptr_equal(end, PTHREAD_CANCELED);
	expect_bytes_at_last(p.client, p.server);
}

CASE(a_thread_that_is_cancelled_anywhere_holds_no_lock)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return; /* their own threads' ends do not allow it */
#endif
	for (unsigned i = 0; i < CANCELLED; i++) {
		cancel_one(receives, i);
		cancel_one(sends, i);
		cancel_one(polls, i);
	}
}
