/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clients send the daemon thousands of descriptors that nobody can close, while as many threads of
 * its are held as may be: it keeps a small part of those that it may have, and a neighbour uses the
 * fabric meanwhile. When nothing holds them any more, it has none of them.
 */
#include "verbs/lab.h"

#include "adversary/unanswered.h"
#include "control/client.h"
#include "control/umad_message.h"
#include "daemon/core/closer.h"
#include "daemon/core/closer_testing.h"
#include "daemon_lab.h"
#include "shm/layout.h"

#define NO_FUSE 77
/* No more in all: those that nobody has received count for all programs of the user (ETOOMANYREFS),
 * also for other tests. */
#define FLOOD 100 /* messages, of */
#define OF    100 /* descriptors */

#define SINGLES    6000
#define NEIGHBOURS 100
#define A_FEW      10
#define A_PART     4 /* of those that the daemon may have */
#define NEIGHBOR   "neighbour"

static const char *self;
static pid_t daemon_process, server;
static int file; /* that cannot be closed */
static int held; /* a byte for each close(2) that is held */
static long at_rest, most;

/* ---- the file system ---- */

/* The daemon's threads wait, and we are told. */
static bool holds(pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", daemon_process, tid);
	return !access(path, F_OK) && write(held, "", 1) == 1;
}

/* In a mount namespace: sends the file to @to, and serves. */
static int serve(const char *dir, int to, pid_t of)
{
	int device = unanswered_mount(dir);
	pid_t child;
	char path[64];

	if (device < 0)
		return NO_FUSE;
	held = to;
	daemon_process = of;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child = fork();
	if (!child) {
		close(device);
		snprintf(path, sizeof(path), "%s/file", dir);
		file = open(path, O_RDWR | O_CLOEXEC);
		_exit(send_descriptors(to, "", 1, file, 1) != 1);
	}
	return unanswered_serve(device, holds);
}

static void exec_server(const char *dir, int to)
{
	char fd[16], of[16];

	snprintf(of, sizeof(of), "%d", daemon_process);
	snprintf(fd, sizeof(fd), "%d", to);
	execlp("unshare", "unshare", "--user", "--map-root-user", "--mount", self, dir, fd, of,
	       (char *)NULL);
	_exit(NO_FUSE);
}

/* False: there is no FUSE. */
static bool receive_file(int from)
{
	struct cmsghdr *c;
	char space[CMSG_SPACE(sizeof(file))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
		              .msg_iovlen = 1,
		              .msg_control = space,
		              .msg_controllen = sizeof(space) };

	if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC) != 1)
		return false;
	assert_non_null(c = CMSG_FIRSTHDR(&msg));
	memcpy(&file, CMSG_DATA(c), sizeof(file));
	return true;
}

static bool start_server(void)
{
	char dir[] = "/tmp/unclosed.XXXXXX";
	int end[2];
	bool started;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, end), 0);
	assert_non_null(mkdtemp(dir));
	server = fork();
	assert_true(server >= 0);
	if (!server) {
		close(end[0]);
		exec_server(dir, end[1]);
	}
	close(end[1]);
	held = end[0];
	started = receive_file(held);
	rmdir(dir);
	return started;
}

/* ---- the daemon ---- */

/* All threads that may be held are. */
static void hold(void)
{
	static const struct control_header no_request;
	int sock = daemon_socket();
	char byte;

	assert_int_equal(
	        send_descriptors(sock, &no_request, sizeof(no_request), file, DAEMON_CLOSER_HELD),
	        sizeof(no_request));
	for (unsigned i = 0; i < DAEMON_CLOSER_HELD; i++)
		assert_int_equal(read(held, &byte, 1), 1);
	close(sock);
	daemon_serves_others();
}

/* Runs all of the neighbour's tests, or those of that name. */
static void a_neighbour_uses_the_fabric(const char *name)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		setenv("CMOCKA_TEST_FILTER", name, 1);
		execl(self, self, NEIGHBOR, (char *)NULL);
		_exit(1);
	}
	harness_expect_success(pid);
}

static int set_up(void **state)
{
	struct rlimit limit;

	(void)state;
	daemon_process = daemon_pid();
	assert_int_equal(prlimit(daemon_process, RLIMIT_NOFILE, NULL, &limit), 0);
	most = (long)limit.rlim_cur / A_PART;
	a_neighbour_uses_the_fabric("*"); /* the daemon keeps some of what it opens for the first */
	daemon_serves_others();
	at_rest = daemon_descriptors(daemon_process);
	assert_true(start_server());
	hold();
	return 0;
}

static void end_server(void)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	close(held);
}

/* Nothing is held any more. */
static int let_go(void **state)
{
	(void)state;
	end_server();
	close(file);
	while (daemon_descriptors(daemon_process) > at_rest) /* ctest ends it */
		usleep(1000);
	a_neighbour_uses_the_fabric("*");
	return 0;
}

static void expect_few(void)
{
	daemon_serves_others();
	/* it may have one less than at rest, when one was on its way */
	assert_true(daemon_descriptors(daemon_process) - at_rest <= most);
	a_neighbour_uses_the_fabric("*");
}

/* ---- what clients do ---- */

static const struct {
	struct control_header header;
	struct control_hello hello;
} hello = { { .type = CONTROL_HELLO, .serial = 1, .bytes = sizeof(struct control_hello) },
	    { .version = CONTROL_VERSION, .role = CONTROL_ROLE_VERBS } };

/* Posts, to which the daemon does not reply. As many as there is room for. */
static unsigned flood(int to, const void *data, size_t bytes, unsigned messages, unsigned of)
{
	const struct timeval patience = { .tv_usec = 200000 };
	unsigned n = 0;

	setsockopt(to, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (n < messages && send_descriptors(to, data, bytes, file, of) == (ssize_t)bytes)
		n++;
	return n;
}

CASE_WITH(one_client_sends_many, set_up, let_go)
{
	static const struct control_header post = { .type = CONTROL_POSTED };
	int sock = daemon_socket();

	assert_int_equal(send(sock, &hello, sizeof(hello), 0), sizeof(hello));
	flood(sock, &post, sizeof(post), FLOOD, OF);
	expect_few();
	close(sock);
	expect_few();
}

CASE_WITH(many_clients_send_many, set_up, let_go)
{
	int sock[FLOOD];

	for (unsigned i = 0; i < FLOOD; i++) {
		sock[i] = daemon_socket();
		flood(sock[i], &hello, sizeof(hello), 1, OF);
		if (i % 2)
			close(sock[i]);
	}
	expect_few();
	for (unsigned i = 0; i < FLOOD; i += 2)
		close(sock[i]);
	expect_few();
}

CASE_WITH(many_clients_send_one, set_up, let_go)
{
	for (unsigned i = 0; i < SINGLES; i++) {
		int sock = daemon_socket();

		flood(sock, &hello, sizeof(hello), 1, 1);
		close(sock);
	}
	daemon_serves_others();
	while (daemon_descriptors(daemon_process) - at_rest >
	       most) /* it is patient with ends; ctest ends it */
		usleep(1000);
	/* a process that has descriptors to give waits by now */
	a_neighbour_uses_the_fabric("multicast");
}

/* Each descriptor is closed when the next one takes its place. */
CASE_WITH(one_client_offers_many, set_up, let_go)
{
	const struct {
		struct control_header header;
		struct control_offer_memory offer;
	} post = { { .type = CONTROL_OFFER_MEMORY, .bytes = sizeof(struct control_offer_memory) },
		   { .kind = CONTROL_MEMORY_ADOPTED } };
	int sock = daemon_socket();

	assert_int_equal(send(sock, &hello, sizeof(hello), 0), sizeof(hello));
	flood(sock, &post, sizeof(post), SINGLES, 1);
	expect_few();
	close(sock);
	expect_few();
}

/* A queue pair of the client's. */
static uint32_t make_qp(struct control_client *c)
{
	struct control_create_cq cq = { .cqe = 1 };
	struct control_create_qp qp = { .max_recv_wr = 1,
		                        .ready_bit = SHM_NO_READY_BIT,
		                        .type = IBV_QPT_UD };
	struct control_create_cq_reply made_cq;
	struct control_create_qp_reply made;
	int events;

	cq.hca_handle = qp.hca_handle = daemon_open_hca(c, 0, &events);
	close(events);
	assert_int_equal(control_ask(c, CONTROL_CREATE_CQ, &cq, &made_cq), 0);
	qp.cq = made_cq.cq;
	assert_int_equal(control_ask(c, CONTROL_CREATE_QP, &qp, &made), 0);
	return made.qpn;
}

/* The daemon has it once, however often it gives it to others. */
CASE_WITH(a_client_asks_for_it_many_times, set_up, let_go)
{
	struct control_client *c = daemon_client(CONTROL_ROLE_VERBS);
	const struct control_offer_memory offer = { .kind = CONTROL_MEMORY_ADOPTED };
	struct {
		struct control_header header;
		struct control_get_memory get;
	} post = { { .type = CONTROL_GET_MEMORY, .bytes = sizeof(struct control_get_memory) },
		   { .kind = CONTROL_MEMORY_ADOPTED } };
	int sock = daemon_socket();

	post.get.qpn = make_qp(c);
	assert_int_equal(control_call(c, &(struct control_call){ .type = CONTROL_OFFER_MEMORY,
	                                                         .request = &offer,
	                                                         .request_bytes = sizeof(offer),
	                                                         .send_fd = &file }),
	                 0);
	assert_int_equal(send(sock, &hello, sizeof(hello), 0), sizeof(hello));
	for (unsigned i = 0; i < SINGLES; i++)
		assert_int_equal(send(sock, &post, sizeof(post), 0), sizeof(post));
	expect_few();
	close(sock);
	control_close(c);
	expect_few();
}

CASE_WITH(a_port_sends_many_mads, set_up, let_go)
{
	struct control_client *c = daemon_client(CONTROL_ROLE_UMAD);
	struct control_umad_at req = { .index = 0 };
	struct control_umad_port rep;
	char mad[CONTROL_UMAD_DATAGRAM] = { 0 };
	int port;

	assert_int_equal(control_call(c,
	                              &(struct control_call){
	                                      .type = (enum control_type)CONTROL_UMAD_OPEN_PORT,
	                                      .request = &req,
	                                      .request_bytes = sizeof(req),
	                                      .reply = &rep,
	                                      .reply_bytes = sizeof(rep),
	                                      .fd = &port }),
	                 0);
	flood(port, mad, sizeof(mad), FLOOD, OF);
	expect_few();
	close(port);
	control_close(c);
	expect_few();
}

/* ---- the neighbour ---- */

static void multicast(void **state)
{
	struct lab_end *from = lab_end(1), *to = lab_end(2);
	struct lab_group *g = lab_join(to->host, "239.1.0.1");

	(void)state;
	lab_post(to, 1);
	assert_int_equal(ibv_attach_mcast(to->qp, &g->mgid, g->mlid), 0);
	lab_send(from, lab_ah_group(from, g), LAB_MCAST, "message", 8);
	lab_expect(to, "message", 8);
	assert_int_equal(ibv_detach_mcast(to->qp, &g->mgid, g->mlid), 0);
}

/* As a process that has connected queue pairs does. */
static void offers_its_memory(void **state)
{
	struct control_client *c = daemon_client(CONTROL_ROLE_VERBS);
	const struct control_offer_memory req = { .kind = CONTROL_MEMORY_ALL };
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	(void)state;
	assert_int_equal(control_call(c, &(struct control_call){ .type = CONTROL_OFFER_MEMORY,
	                                                         .request = &req,
	                                                         .request_bytes = sizeof(req),
	                                                         .send_fd = &fd }),
	                 0);
	close(fd);
	control_close(c);
}

/* It leaves nothing behind that waits for others' files. */
CASE_WITH(neighbours_come_and_go, set_up, let_go)
{
	const long before = daemon_descriptors(daemon_process);

	for (unsigned i = 0; i < NEIGHBOURS; i++)
		offers_its_memory(state);
	while (daemon_descriptors(daemon_process) >
	       before + A_FEW) /* it is patient with ends; ctest ends it */
		usleep(1000);
}

static int neighbour(void)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(multicast),
		cmocka_unit_test(offers_its_memory),
	};

	return cmocka_run_group_tests_name(NEIGHBOR, tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	self = argv[0];
	if (argc > 3)
		return serve(argv[1], atoi(argv[2]), atoi(argv[3]));
	if (argc > 1)
		return neighbour();
	if (!start_server()) {
		printf("skipped: no file systems of users here\n");
		return 0;
	}
	end_server();
	close(file);
	return harness_run(NULL, NULL);
}
