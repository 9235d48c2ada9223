/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP sockets that are rsockets (`umbel exec --sockets`): what epoll_ctl(2), epoll_wait(2) and
 * other calls do with them, as with the kernel's. It knows nothing of RDMA, and runs on h1, mostly
 * by itself; connections are between its own sockets at 10.0.0.1.
 */
#include "harness.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/timerfd.h>

#define LONG_MS   60000
#define SOON_MS   50 /* in which nothing is to happen */
#define BULK      65536
#define PENDING   40
#define MANY_SETS 150

#define assert_fails(call, error)               \
	do {                                    \
		errno = 0;                      \
		assert_int_equal((call), -1);   \
		assert_int_equal(errno, error); \
	} while (0)

/* ---- sockets ---- */

static struct sockaddr_in address(const char *text, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

	inet_pton(AF_INET, text, &a.sin_addr);
	return a;
}

static struct sockaddr_in name_of(int fd)
{
	struct sockaddr_in a;
	socklen_t bytes = sizeof(a);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &bytes), 0);
	assert_int_equal(bytes, sizeof(a));
	return a;
}

/* Past our functions: what the kernel says. */
static bool is_tcp(int fd)
{
	struct sockaddr_in a;
	socklen_t bytes = sizeof(a);

	return !syscall(SYS_getsockname, fd, &a, &bytes) && a.sin_port;
}

static int tcp(int flags)
{
	int fd = socket(AF_INET, SOCK_STREAM | flags, 0);

	assert_true(fd >= 0);
	return fd;
}

static int listener(const char *at)
{
	struct sockaddr_in a = address(at, 0);
	int fd = tcp(SOCK_NONBLOCK);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 128), 0);
	return fd;
}

static void wait_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	assert_int_equal(poll(&p, 1, LONG_MS), 1);
	assert_true(p.revents & events);
}

/* Neither blocks. @end[0]: that which was accepted. */
static void connect_pair(int from, int end[2])
{
	struct sockaddr_in a = name_of(from);
	int error = -1;
	socklen_t bytes = sizeof(error);

	a.sin_addr.s_addr = a.sin_addr.s_addr ? a.sin_addr.s_addr : inet_addr("10.0.0.1");
	end[1] = tcp(SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_fails(connect(end[1], (struct sockaddr *)&a, sizeof(a)), EINPROGRESS);
	for (end[0] = -1; end[0] < 0;) {
		struct pollfd p[] = { { .fd = from, .events = POLLIN },
			              { .fd = end[1], .events = POLLPRI } };

		assert_true(poll(p, 2, LONG_MS) >= 0);
		end[0] = accept4(from, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		assert_true(end[0] >= 0 || errno == EAGAIN);
	}
	wait_for(end[1], POLLOUT);
	assert_int_equal(getsockopt(end[1], SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
	assert_int_equal(error, 0);
}

static void make_pair(int end[2])
{
	int from = listener("10.0.0.1");

	connect_pair(from, end);
	assert_int_equal(close(from), 0);
	assert_false(is_tcp(end[0]) || is_tcp(end[1]));
}

static void close_pair(const int end[2])
{
	assert_int_equal(close(end[0]), 0);
	assert_int_equal(close(end[1]), 0);
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
}

static void hear(int fd, const char *text)
{
	char got[64] = "";

	wait_for(fd, POLLIN);
	assert_int_equal(recv(fd, got, sizeof(got) - 1, 0), strlen(text));
	assert_string_equal(got, text);
}

/* Until there is no room. How much. */
static size_t fill(int fd)
{
	static char bulk[BULK];
	size_t sum = 0;
	ssize_t n;

	while ((n = send(fd, bulk, sizeof(bulk), MSG_NOSIGNAL)) > 0)
		sum += (size_t)n;
	assert_int_equal(errno, EAGAIN);
	return sum;
}

static size_t empty(int fd)
{
	static char bulk[BULK];
	size_t sum = 0;
	ssize_t n;

	while ((n = recv(fd, bulk, sizeof(bulk), 0)) > 0)
		sum += (size_t)n;
	return sum;
}

static int accept_peer(int from)
{
	int fd;

	wait_for(from, POLLIN);
	fd = accept4(from, NULL, NULL, SOCK_NONBLOCK);
	assert_true(fd >= 0);
	return fd;
}

/* ---- sets ---- */

static int set_of(int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };
	int set = epoll_create1(EPOLL_CLOEXEC);

	assert_true(set >= 0);
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e), 0);
	return set;
}

static int make_pair_in_set(int end[2], uint32_t events)
{
	make_pair(end);
	return set_of(end[0], events);
}

static void close_pair_in_set(const int end[2], int set)
{
	close_pair(end);
	close(set);
}

static void modify(int set, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	assert_int_equal(epoll_ctl(set, EPOLL_CTL_MOD, fd, &e), 0);
}

/* The events of @fd, which alone has any. */
static uint32_t next_of(int set, int fd)
{
	struct epoll_event e[4];

	assert_int_equal(epoll_wait(set, e, 4, LONG_MS), 1);
	assert_int_equal(e[0].data.fd, fd);
	return e[0].events;
}

static void expect_quiet(int set)
{
	struct epoll_event e[4];

	assert_int_equal(epoll_wait(set, e, 4, 0), 0);
	assert_int_equal(epoll_wait(set, e, 4, SOON_MS), 0);
}

CASE(level_is_told_until_it_is_read)
{
	int end[2], set;

	set = make_pair_in_set(end, EPOLLIN);
	expect_quiet(set);
	say(end[1], "abcd");
	for (int i = 0; i < 40; i++)
		assert_int_equal(next_of(set, end[0]), EPOLLIN);
	hear(end[0], "abcd");
	expect_quiet(set);
	modify(set, end[0], EPOLLOUT);
	assert_int_equal(next_of(set, end[0]), EPOLLOUT);
	close_pair(end);
	expect_quiet(set);
	close(set);
}

CASE(edge_is_told_once)
{
	char two[2];
	int end[2], set;

	set = make_pair_in_set(end, EPOLLIN | EPOLLET);
	say(end[1], "abcd");
	assert_int_equal(next_of(set, end[0]), EPOLLIN);
	expect_quiet(set);
	assert_int_equal(recv(end[0], two, 2, 0), 2); /* some are left */
	expect_quiet(set);
	say(end[1], "ef"); /* more come */
	assert_int_equal(next_of(set, end[0]), EPOLLIN);
	expect_quiet(set);
	hear(end[0], "cdef"); /* less than there was room for: none are left */
	say(end[1], "gh");
	assert_int_equal(next_of(set, end[0]), EPOLLIN);
	hear(end[0], "gh");
	assert_fails(recv(end[0], two, 2, 0), EAGAIN);
	expect_quiet(set);
	modify(set, end[0], EPOLLOUT | EPOLLET);
	assert_int_equal(next_of(set, end[0]), EPOLLOUT);
	expect_quiet(set);
	modify(set, end[0], EPOLLOUT | EPOLLET); /* says it again */
	assert_int_equal(next_of(set, end[0]), EPOLLOUT);
	close_pair_in_set(end, set);
}

CASE(edge_of_room_comes_when_the_peer_has_read)
{
	int end[2], set;
	size_t sum, got = 0;

	set = make_pair_in_set(end, EPOLLOUT | EPOLLET);
	assert_int_equal(next_of(set, end[0]), EPOLLOUT);
	sum = fill(end[0]);
	expect_quiet(set);
	while (got < sum) {
		wait_for(end[1], POLLIN);
		got += empty(end[1]);
	}
	assert_int_equal(got, sum);
	assert_int_equal(next_of(set, end[0]), EPOLLOUT);
	expect_quiet(set);
	assert_true(fill(end[0]) > 0);
	close_pair_in_set(end, set);
}

CASE(oneshot_is_told_once_until_it_is_modified)
{
	int end[2], set;

	set = make_pair_in_set(end, EPOLLIN | EPOLLONESHOT);
	say(end[1], "ab");
	assert_int_equal(next_of(set, end[0]), EPOLLIN);
	say(end[1], "cd");
	expect_quiet(set);
	modify(set, end[0], EPOLLIN | EPOLLONESHOT);
	assert_int_equal(next_of(set, end[0]), EPOLLIN);
	close(end[1]); /* not even that */
	expect_quiet(set);
	modify(set, end[0], EPOLLIN | EPOLLRDHUP);
	assert_true(next_of(set, end[0]) & EPOLLRDHUP);
	close(end[0]);
	close(set);
}

CASE(errors_are_those_of_epoll_ctl)
{
	struct epoll_event e = { .events = EPOLLIN };
	int end[2], set, pipes[2];

	make_pair(end);
	assert_int_equal(pipe(pipes), 0);
	set = set_of(end[0], EPOLLIN);
	assert_fails(epoll_ctl(set, EPOLL_CTL_ADD, end[0], &e), EEXIST);
	assert_fails(epoll_ctl(set, EPOLL_CTL_MOD, end[1], &e), ENOENT);
	assert_fails(epoll_ctl(set, EPOLL_CTL_DEL, end[1], NULL), ENOENT);
	assert_fails(epoll_ctl(set, 77, end[0], &e), EINVAL);
	assert_fails(epoll_ctl(set, EPOLL_CTL_ADD, end[1], NULL), EFAULT);
	assert_fails(epoll_ctl(set, EPOLL_CTL_ADD, set, &e), EINVAL);
	assert_fails(epoll_ctl(pipes[0], EPOLL_CTL_ADD, end[1], &e), EINVAL);
	assert_fails(epoll_ctl(pipes[0], EPOLL_CTL_DEL, end[1], NULL), EINVAL);
	assert_fails(epoll_ctl(end[0], EPOLL_CTL_ADD, end[1], &e), EINVAL);
	assert_fails(epoll_ctl(-1, EPOLL_CTL_ADD, end[1], &e), EBADF);
	assert_fails(epoll_ctl(9999, EPOLL_CTL_ADD, end[1], &e), EBADF);
	assert_fails(epoll_wait(set, &e, 0, 0), EINVAL);
	assert_fails(epoll_wait(end[0], &e, 1, 0), EINVAL);
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_DEL, end[0], NULL), 0);
	assert_fails(epoll_ctl(set, EPOLL_CTL_MOD, end[0], &e), ENOENT);
	close_pair(end);
	assert_fails(epoll_ctl(set, EPOLL_CTL_ADD, end[0], &e), EBADF);
	assert_fails(epoll_ctl(set, EPOLL_CTL_MOD, end[0], &e), EBADF);
	close(set);
	assert_fails(epoll_wait(set, &e, 1, 0), EBADF);
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- descriptors ---- */

CASE(a_closed_one_is_gone_unless_it_was_duplicated)
{
	int end[2], set, other;

	set = make_pair_in_set(end, EPOLLIN);
	say(end[1], "ab");
	other = dup(end[0]);
	assert_true(other >= 0);
	assert_int_equal(close(end[0]), 0);
	assert_int_equal(next_of(set, end[0]), EPOLLIN); /* by its old number, as epoll(7) says */
	hear(other, "ab");
	say(other, "cd");
	hear(end[1], "cd");
	assert_int_equal(close(other), 0);
	expect_quiet(set);
	assert_int_equal(recv(end[1], &other, 1, 0), 0);
	close(end[1]);
	close(set);
}

CASE(both_numbers_of_one_may_be_in_a_set)
{
	struct epoll_event e[4];
	int end[2], set, other;

	set = make_pair_in_set(end, EPOLLIN);
	other = fcntl(end[0], F_DUPFD_CLOEXEC, 100);
	assert_true(other >= 100);
	e[0] = (struct epoll_event){ .events = EPOLLIN, .data.fd = other };
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, other, e), 0);
	say(end[1], "ab");
	for (int n = 0; n < 2;)
		n = epoll_wait(set, e, 4, LONG_MS);
	assert_int_not_equal(e[0].data.fd, e[1].data.fd);
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_DEL, end[0], NULL), 0);
	assert_int_equal(next_of(set, other), EPOLLIN);
	close(other);
	close_pair_in_set(end, set);
}

CASE(dup2_closes_what_was_there)
{
	int end[2], pipes[2];
	char byte;

	make_pair(end);
	assert_int_equal(pipe(pipes), 0);
	assert_fails(dup2(9999, end[0]), EBADF); /* leaves it as it is */
	say(end[0], "x");
	hear(end[1], "x");
	assert_int_equal(dup2(pipes[1], end[0]), end[0]);
	wait_for(end[1], POLLIN);
	assert_int_equal(recv(end[1], &byte, 1, 0), 0);
	assert_int_equal(write(end[0], "y", 1), 1);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	assert_int_equal(dup2(end[1], end[0]), end[0]);
	assert_int_equal(recv(end[0], &byte, 1, 0), 0);
	close_pair(end);
	close(pipes[0]);
	close(pipes[1]);
}

CASE(a_child_of_vfork_closes_nothing_of_ours)
{
	int end[2], status;
	pid_t pid;

	make_pair(end);
	pid = vfork();
	if (!pid) {
		close(end[0]);
		dup2(0, end[1]);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	say(end[0], "there");
	hear(end[1], "there");
	close_pair(end);
}

/* ---- what else is waited for ---- */

CASE(descriptors_of_all_kinds_are_in_one_set)
{
	const struct itimerspec soon = { .it_value = { .tv_nsec = 1000000 } };
	struct epoll_event e[8];
	int end[2], pipes[2], unix_end[2], timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	int event = eventfd(0, 0), set, all[5], n = 0;
	bool told[5] = { false };

	make_pair(end);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, unix_end), 0);
	memcpy(all, (int[]){ pipes[0], unix_end[0], timer, event, end[0] }, sizeof(all));
	set = set_of(end[1], EPOLLIN); /* is silent */
	for (int i = 0; i < 5; i++) {
		e[0] = (struct epoll_event){ .events = EPOLLIN, .data.u64 = (uint64_t)i << 40 };
		assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, all[i], e), 0);
	}
	expect_quiet(set);
	timerfd_settime(timer, 0, &soon, NULL);
	assert_int_equal(epoll_wait(set, e, 8, LONG_MS), 1);
	assert_int_equal(e[0].data.u64, 2ull << 40);
	assert_int_equal(write(pipes[1], "a", 1), 1);
	assert_int_equal(write(unix_end[1], "a", 1), 1);
	assert_int_equal(eventfd_write(event, 1), 0);
	say(end[1], "a");
	for (int turns = 0; n < 5 && turns < 1000; turns++) {
		/* with room for one, each has its turn */
		assert_int_equal(epoll_wait(set, e, 1, LONG_MS), 1);
		n += !told[e[0].data.u64 >> 40];
		told[e[0].data.u64 >> 40] = true;
	}
	assert_int_equal(n, 5);
	close_pair(end);
	close_pair(pipes);
	close_pair(unix_end);
	close(timer);
	close(event);
	close(set);
}

CASE(a_set_is_polled_itself)
{
	int end[2], set, outer;
	struct pollfd p;

	set = make_pair_in_set(end, EPOLLIN);
	outer = set_of(set, EPOLLIN);
	p = (struct pollfd){ .fd = set, .events = POLLIN };
	expect_quiet(set); /* what connecting has left behind is nothing for us */
	assert_int_equal(poll(&p, 1, 0), 0);
	expect_quiet(outer);
	say(end[1], "ab");
	assert_int_equal(poll(&p, 1, LONG_MS), 1);
	assert_int_equal(next_of(outer, set), EPOLLIN);
	assert_int_equal(next_of(set, end[0]), EPOLLIN);
	assert_int_equal(poll(&p, 1, LONG_MS), 1);
	hear(end[0], "ab");
	expect_quiet(set);
	close_pair(end);
	close(outer);
	close(set);
}

CASE(select_has_rsockets_and_others)
{
	struct timeval t = { .tv_usec = 1000 }, more = { .tv_usec = 1000000ll * LONG_MS / 1000 };
	int end[2], pipes[2];
	fd_set in, out;

	make_pair(end);
	assert_int_equal(pipe(pipes), 0);
	FD_ZERO(&in);
	FD_SET(end[0], &in);
	FD_SET(pipes[0], &in);
	out = in;
	assert_int_equal(select(FD_SETSIZE, &in, NULL, NULL, &t), 0);
	assert_true(t.tv_sec == 0 && t.tv_usec == 0);
	say(end[1], "ab");
	wait_for(end[0], POLLIN);
	in = out;
	FD_CLR(pipes[0], &out);
	assert_int_equal(select(FD_SETSIZE, &in, &out, NULL, NULL), 2);
	assert_true(FD_ISSET(end[0], &in) && FD_ISSET(end[0], &out));
	assert_false(FD_ISSET(pipes[0], &in));
	assert_int_equal(select(FD_SETSIZE, &in, NULL, NULL, &more), 1); /* as Linux has it */
	assert_true(more.tv_sec > 0 && more.tv_sec <= LONG_MS / 1000 && more.tv_usec < 1000000);
	close_pair(pipes);
	close_pair(end);
}

static void on_signal(int signo)
{
	(void)signo;
}

CASE(a_signal_that_the_mask_lets_through_ends_the_wait)
{
	struct sigaction action = { .sa_handler = on_signal }, before;
	sigset_t blocked, none;
	struct epoll_event e;
	struct pollfd p;
	int end[2], set;

	set = make_pair_in_set(end, EPOLLIN);
	sigaction(SIGUSR1, &action, &before);
	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	p = (struct pollfd){ .fd = end[0], .events = POLLIN };
	raise(SIGUSR1); /* it waits */
	assert_int_equal(poll(&p, 1, SOON_MS), 0);
	assert_fails(ppoll(&p, 1, NULL, &none), EINTR);
	raise(SIGUSR1);
	assert_int_equal(epoll_wait(set, &e, 1, SOON_MS), 0);
	assert_fails(epoll_pwait(set, &e, 1, LONG_MS, &none), EINTR);
	sigprocmask(SIG_UNBLOCK, &blocked, NULL);
	sigaction(SIGUSR1, &before, NULL);
	close_pair_in_set(end, set);
}

/* ---- threads ---- */

struct sleeper {
	int set, fd;
	_Atomic uint32_t events;
};

static void *sleep_on_set(void *arg)
{
	struct sleeper *s = arg;

	s->events = next_of(s->set, s->fd);
	return NULL;
}

static void *receive_one(void *arg)
{
	char byte;

	wait_for(*(int *)arg, POLLIN);
	assert_int_equal(recv(*(int *)arg, &byte, 1, 0), 1);
	return NULL;
}

static void *receive_blocking(void *arg)
{
	char byte;

	recv(*(int *)arg, &byte, 1, 0);
	return NULL;
}

CASE(a_thread_sleeps_while_others_make_calls)
{
	struct epoll_event e = { .events = EPOLLIN };
	int end[2], other[2];
	pthread_t thread, reader;
	struct sleeper s;

	for (int i = 0; i < 30; i++) {
		make_pair(end);
		make_pair(other);
		s = (struct sleeper){ .set = set_of(other[0], EPOLLIN), .fd = end[0] };
		e.data.fd = end[0];
		pthread_create(&thread, NULL, sleep_on_set, &s);
		assert_int_equal(epoll_ctl(s.set, EPOLL_CTL_ADD, end[0], &e), 0);
		/* another thread takes the byte that would have woken it */
		pthread_create(&reader, NULL, receive_one, &other[1]);
		say(other[0], "x");
		pthread_join(reader, NULL);
		assert_fails(recv(end[0], &e, 1, 0), EAGAIN);
		say(end[1], "ab");
		pthread_join(thread, NULL);
		assert_int_equal(s.events, EPOLLIN);
		close(s.set);
		close_pair(end);
		close_pair(other);
	}
}

CASE(one_whose_reader_was_cancelled_closes)
{
	pthread_t reader;
	int end[2];
	char byte;

	make_pair(end);
	assert_int_equal(fcntl(end[0], F_SETFL, 0), 0);
	pthread_create(&reader, NULL, receive_blocking, &end[0]);
	assert_fails(recv(end[1], &byte, 1, 0), EAGAIN);
	pthread_cancel(reader);
	pthread_join(reader, NULL);
	close(end[0]);
	wait_for(end[1], POLLIN);
	assert_int_equal(recv(end[1], &byte, 1, 0), 0);
	close(end[1]);
}

/* ---- fork ---- */

CASE(connections_stay_the_parents)
{
	int end[2], set;
	pid_t pid;

	set = make_pair_in_set(end, EPOLLIN);
	pid = fork();
	if (!pid) {
		struct epoll_event e;
		char byte;

		/* nothing of it reaches the parent */
		if (send(end[0], "x", 1, MSG_NOSIGNAL) >= 0 || recv(end[0], &byte, 1, 0) >= 0 ||
		    epoll_wait(set, &e, 1, 0))
			_exit(1);
		_exit(close(end[0]) || close(end[1]) || close(set));
	}
	harness_expect_success(pid);
	say(end[1], "ab");
	assert_int_equal(next_of(set, end[0]), EPOLLIN);
	hear(end[0], "ab");
	close_pair_in_set(end, set);
}

CASE(what_is_not_close_on_exec_is_shared_with_children)
{
	struct sockaddr_in name, peer;
	char text[32];
	int end[2], set;
	pid_t pid;

	set = make_pair_in_set(end, EPOLLIN);
	name = name_of(end[1]);
	assert_int_equal(fcntl(end[0], F_SETFD, 0), 0);
	say(end[1], "before");
	pid = fork();
	if (!pid) {
		socklen_t bytes = sizeof(peer);

		hear(end[0], "before");
		say(end[0], "child");
		hear(end[0], "to child");
		if (getpeername(end[0], (struct sockaddr *)&peer, &bytes) ||
		    peer.sin_port != name.sin_port)
			_exit(1);
		dup2(end[0], 9);
		execl("/bin/sh", "sh", "-c", "printf shell >&9", NULL);
		_exit(1);
	}
	hear(end[1], "child");
	say(end[1], "to child");
	harness_expect_success(pid);
	hear(end[1], "shell");
	say(end[1], "to parent");
	assert_int_equal(next_of(set, end[0]), EPOLLIN);
	hear(end[0], "to parent");
	close(end[0]);
	wait_for(end[1], POLLIN);
	assert_int_equal(recv(end[1], text, 1, 0), 0);
	close(end[1]);
	expect_quiet(set);
	close(set);
}

/* A child that writes all to what it has got, by fork(), and ends. */
CASE(bytes_that_a_child_leaves_behind_arrive)
{
	enum { SIZE = 3000000 };
	int end[2], left = SIZE;
	static char bulk[SIZE];
	pid_t pid;

	make_pair(end);
	assert_int_equal(fcntl(end[0], F_SETFD, 0), 0);
	assert_int_equal(fcntl(end[0], F_SETFL, 0), 0);
	pid = fork();
	if (!pid) {
		memset(bulk, 'x', SIZE);
		_exit(write(end[0], bulk, SIZE) != SIZE);
	}
	close(end[0]);
	for (ssize_t n = 1; n; left -= (int)n) {
		wait_for(end[1], POLLIN);
		n = recv(end[1], bulk, SIZE, 0);
		assert_true(n >= 0);
		for (int i = 0; i < n; i++)
			assert_int_equal(bulk[i], 'x');
	}
	assert_int_equal(left, 0);
	harness_expect_success(pid);
	close(end[1]);
}

/* The process that has the rsocket ends as soon as its child has written. */
CASE(bytes_of_a_child_outlive_its_parent)
{
	enum { SIZE = 100000 };
	int from = listener("10.0.0.1"), fd;
	struct sockaddr_in a = name_of(from);
	static char bulk[SIZE];
	ssize_t n = 1, sum = 0;
	pid_t pid = fork();

	if (!pid) {
		while ((fd = tcp(0)) >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)))
			close(fd); /* the listener was given up, and comes again */
		pid = fork();
		if (!pid)
			_exit(write(fd, bulk, SIZE) != SIZE);
		harness_expect_success(pid);
		exit(0);
	}
	fd = accept_peer(from);
	for (; n; sum += n) {
		wait_for(fd, POLLIN);
		n = recv(fd, bulk, SIZE, 0);
		assert_true(n >= 0);
	}
	assert_int_equal(sum, SIZE);
	harness_expect_success(pid);
	close(fd);
	close(from);
}

CASE(a_child_serves_where_the_parent_listened)
{
	int from = listener("10.0.0.1"), end[2], set;
	struct sockaddr_in a = name_of(from);
	pid_t pid = fork();

	if (!pid) {
		set = set_of(from, EPOLLIN);
		if (next_of(set, from) != EPOLLIN)
			_exit(1);
		end[0] = accept(from, NULL, NULL);
		say(end[0], "child");
		hear(end[0], "parent");
		_exit(0);
	}
	end[1] = tcp(0); /* the child may not listen yet */
	assert_int_equal(connect(end[1], (struct sockaddr *)&a, sizeof(a)), 0);
	hear(end[1], "child");
	say(end[1], "parent");
	harness_expect_success(pid);
	assert_int_equal(ntohs(name_of(from).sin_port), ntohs(a.sin_port));
	close(end[1]);
	set = set_of(from, EPOLLIN); /* the child has ended: it is ours now */
	connect_pair(from, end);
	close_pair_in_set(end, set);
	close(from);
}

/* With TCP the connection would wait for the peer that asks. */
CASE(a_child_connects_before_anybody_asks)
{
	int from = listener("10.0.0.1"), fd;
	struct sockaddr_in a = name_of(from);
	pid_t pid = fork();

	if (!pid) {
		fd = tcp(0);
		if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
			_exit(1);
		say(fd, "child");
		hear(fd, "parent");
		_exit(0);
	}
	usleep(300000);
	wait_for(from, POLLIN);
	fd = accept(from, NULL, NULL);
	assert_true(fd >= 0);
	hear(fd, "child");
	say(fd, "parent");
	harness_expect_success(pid);
	close(fd);
	close(from);
}

/* Nobody else will. */
CASE(who_has_forked_connects_to_itself)
{
	int from = listener("10.0.0.1"), fd = tcp(SOCK_NONBLOCK), end;
	struct sockaddr_in a = name_of(from);
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	harness_expect_success(pid);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	wait_for(from, POLLIN);
	end = accept(from, NULL, NULL);
	assert_true(end >= 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	say(end, "itself");
	wait_for(fd, POLLIN);
	hear(fd, "itself");
	close(end);
	close(fd);
	close(from);
}

/* The listener here has nothing to do with it. */
CASE(who_has_forked_is_refused_by_another_host)
{
	int from = listener("0.0.0.0"), to = tcp(SOCK_NONBLOCK), error = 0;
	struct sockaddr_in a = address("10.0.0.2", ntohs(name_of(from).sin_port));
	socklen_t bytes = sizeof(error);
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	harness_expect_success(pid);
	assert_fails(connect(to, (struct sockaddr *)&a, sizeof(a)), EINPROGRESS);
	wait_for(to, POLLOUT);
	assert_int_equal(getsockopt(to, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
	assert_int_equal(error, ECONNREFUSED);
	close(to);
	close(from);
}

static void *hear_a_byte(void *fd)
{
	char byte = 0;

	return (void *)(intptr_t)(recv(*(int *)fd, &byte, 1, 0) == 1 ? byte : 0);
}

/* The child may have the connection, too, but not at the thread's cost. */
CASE(a_thread_that_waits_hears_though_another_forks)
{
	struct timespec end_of_time = { .tv_sec = time(NULL) + LONG_MS / 1000 };
	pthread_t thread;
	int end[2];
	void *got;
	pid_t pid;

	for (int i = 0; i < 5; i++) { /* whichever is quicker */
		make_pair(end);
		assert_int_equal(fcntl(end[0], F_SETFL, 0), 0);
		assert_int_equal(fcntl(end[0], F_SETFD, 0), 0);
		assert_int_equal(pthread_create(&thread, NULL, hear_a_byte, &end[0]), 0);
		usleep(SOON_MS * 1000);
		pid = fork();
		if (!pid)
			_exit(0);
		harness_expect_success(pid);
		say(end[1], "a");
		assert_int_equal(pthread_timedjoin_np(thread, &got, &end_of_time), 0);
		assert_int_equal((intptr_t)got, 'a');
		close_pair(end);
	}
}

/* ---- peers ---- */

/* A child that connects to @a, says so on @told, a pipe, and then does nothing. */
static pid_t start_peer(struct sockaddr_in a, int told)
{
	pid_t pid = fork();

	if (!pid) {
		int fd = tcp(0);

		if (connect(fd, (struct sockaddr *)&a, sizeof(a)) || write(told, "c", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	return pid;
}

CASE(a_peer_that_is_stopped_gives_no_room_and_one_that_dies_ends)
{
	int from = listener("10.0.0.1"), fd, set, status, told[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(told), 0);
	pid = start_peer(name_of(from), told[1]);
	close(told[1]);
	fd = accept_peer(from);
	/* stopped before both ends are connected, the peer would leave ours connecting */
	wait_for(fd, POLLOUT);
	wait_for(told[0], POLLIN);
	assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	set = set_of(fd, EPOLLIN | EPOLLRDHUP);
	assert_true(fill(fd) > 0);
	expect_quiet(set);
	modify(set, fd, EPOLLOUT);
	expect_quiet(set);
	modify(set, fd, EPOLLIN | EPOLLRDHUP);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(next_of(set, fd) & EPOLLIN);
	assert_true(recv(fd, &byte, 1, 0) <= 0);
	assert_true(send(fd, "x", 1, MSG_NOSIGNAL) < 0);
	close(fd);
	expect_quiet(set);
	close(set);
	close(from);
}

CASE(an_end_shows)
{
	int end[2], set;
	char byte;

	set = make_pair_in_set(end, EPOLLIN | EPOLLRDHUP | EPOLLET);
	say(end[1], "ab");
	assert_int_equal(next_of(set, end[0]), EPOLLIN);
	assert_int_equal(shutdown(end[1], SHUT_WR), 0);
	assert_int_equal(next_of(set, end[0]), EPOLLIN | EPOLLRDHUP);
	expect_quiet(set);
	hear(end[0], "ab");
	assert_int_equal(recv(end[0], &byte, 1, 0), 0);
	say(end[0], "cd"); /* the other direction goes on */
	hear(end[1], "cd");
	close(end[1]);
	assert_true(next_of(set, end[0]) & EPOLLHUP);
	close(end[0]);
	close(set);
}

/* ---- connecting ---- */

CASE(names_are_known_before_anything_else)
{
	struct sockaddr_in a;
	socklen_t bytes = sizeof(a);
	int fd = tcp(0);

	assert_int_equal(name_of(fd).sin_port, 0);
	assert_fails(getpeername(fd, (struct sockaddr *)&a, &bytes), ENOTCONN);
	assert_fails(recv(fd, &a, 1, 0), ENOTCONN);
	close(fd);
}

CASE(other_addresses_are_left_to_tcp)
{
	struct sockaddr_in any = address("0.0.0.0", 0), a;
	int from = listener("127.0.0.1"), to = tcp(0), set = set_of(to, EPOLLOUT | EPOLLET), end;

	a = name_of(from);
	assert_true(is_tcp(from));
	assert_int_equal(bind(to, (struct sockaddr *)&any, sizeof(any)), 0); /* not known yet */
	assert_false(is_tcp(to));
	assert_int_equal(connect(to, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_true(is_tcp(to));
	end = accept_peer(from);
	assert_true(next_of(set, to) & EPOLLOUT);
	say(to, "tcp");
	hear(end, "tcp");
	close(from);
	close(to);
	close(end);
	close(set);
}

CASE(one_may_be_in_a_set_before_it_connects)
{
	int from = listener("0.0.0.0"), to = tcp(SOCK_NONBLOCK), end, set;
	struct sockaddr_in a = address("10.0.0.1", ntohs(name_of(from).sin_port));
	struct epoll_event e;
	bool told = false;
	uint32_t events;

	set = set_of(to, EPOLLOUT | EPOLLIN | EPOLLET);
	while (epoll_wait(set, &e, 1, 0) > 0)
		; /* what the kernel says of one that is not connected */
	assert_fails(connect(to, (struct sockaddr *)&a, sizeof(a)), EINPROGRESS);
	assert_fails(connect(to, (struct sockaddr *)&a, sizeof(a)), EALREADY);
	do {
		/* connecting goes on while it is waited for, too */
		struct pollfd p[] = { { .fd = from, .events = POLLIN },
			              { .fd = set, .events = POLLIN } };

		assert_true(poll(p, 2, LONG_MS) > 0);
		told |= epoll_wait(set, &e, 1, 0) == 1 && e.events == EPOLLOUT;
		end = accept(from, NULL, NULL);
	} while (end < 0);
	assert_true(told || next_of(set, to) == EPOLLOUT);
	assert_fails(connect(to, (struct sockaddr *)&a, sizeof(a)), EISCONN);
	say(end, "ab");
	do /* there may be room once more before they come */
		events = next_of(set, to);
	while (events == EPOLLOUT);
	assert_int_equal(events, EPOLLOUT | EPOLLIN);
	close(from);
	close(to);
	close(end);
	close(set);
}

/* Begun, and in no set and no call from now on. */
static int connecting_to(int from)
{
	struct sockaddr_in a = name_of(from);
	int fd = tcp(SOCK_NONBLOCK | SOCK_CLOEXEC);

	assert_fails(connect(fd, (struct sockaddr *)&a, sizeof(a)), EINPROGRESS);
	return fd;
}

static void expect_connected(int from, int to)
{
	int end = accept4(from, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	assert_true(end >= 0);
	say(to, "ab");
	hear(end, "ab");
	close(to);
	close(end);
}

/* As socketpair() is made of TCP: whatever waits for the listener has the connection made. */
CASE(what_waits_for_a_listener_makes_the_connection)
{
	int from = listener("10.0.0.1"), set = set_of(from, EPOLLIN), to;
	struct epoll_event e;
	fd_set in;

	to = connecting_to(from);
	assert_int_equal(next_of(set, from), EPOLLIN);
	expect_connected(from, to);
	to = connecting_to(from);
	while (!epoll_wait(set, &e, 1, 0))
		;
	expect_connected(from, to);
	to = connecting_to(from);
	FD_ZERO(&in);
	FD_SET(from, &in);
	assert_int_equal(select(from + 1, &in, NULL, NULL, NULL), 1);
	expect_connected(from, to);
	to = connecting_to(from);
	wait_for(from, POLLIN);
	expect_connected(from, to);
	to = connecting_to(from);
	assert_int_equal(fcntl(from, F_SETFL, 0), 0);
	expect_connected(from, to);
	close(set);
	close(from);
}

/* More than are served at once. */
CASE(many_connect_that_are_in_no_set)
{
	int from = listener("10.0.0.1"), set = set_of(from, EPOLLIN), to[PENDING], end[PENDING];

	for (int i = 0; i < PENDING; i++)
		to[i] = connecting_to(from);
	for (int i = 0; i < PENDING; i++) {
		assert_int_equal(next_of(set, from), EPOLLIN);
		end[i] = accept4(from, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		assert_true(end[i] >= 0);
	}
	for (int i = 0; i < PENDING; i++) {
		close(to[i]);
		close(end[i]);
	}
	close(set);
	close(from);
}

/* The listener is in no set, and nobody asks it. */
CASE(a_set_serves_listeners_that_are_in_none)
{
	int from = listener("10.0.0.1"), to = tcp(SOCK_NONBLOCK), set;
	struct sockaddr_in a = name_of(from);
	struct sleeper s;
	pthread_t thread;
	int end[2];

	assert_fails(connect(to, (struct sockaddr *)&a, sizeof(a)), EINPROGRESS);
	set = set_of(to, EPOLLOUT);
	assert_int_equal(next_of(set, to), EPOLLOUT);
	close(set);
	wait_for(from, POLLIN); /* the client hears of it first */
	expect_connected(from, to);
	/* and sockets that another thread waits for, which has to hear of them */
	for (int i = 0; i < 20; i++) {
		set = make_pair_in_set(end, EPOLLIN);
		s = (struct sleeper){ .set = set_of(from, EPOLLIN), .fd = from };
		pthread_create(&thread, NULL, sleep_on_set, &s);
		to = connecting_to(from);
		while (!(s.events & EPOLLIN))
			expect_quiet(set);
		pthread_join(thread, NULL);
		expect_connected(from, to);
		close(s.set);
		close(set);
		close_pair(end);
	}
	close(from);
}

/* More than those that serve, and more than Linux lets see one descriptor. */
CASE(many_sets_have_rsockets)
{
	int from = listener("10.0.0.1"), to = connecting_to(from), set[MANY_SETS];

	for (int i = 0; i < MANY_SETS; i++)
		set[i] = set_of(from, EPOLLIN);
	for (int i = 0; i < MANY_SETS; i++)
		assert_int_equal(next_of(set[i], from), EPOLLIN);
	expect_connected(from, to);
	to = listener("10.0.0.1"); /* another can listen */
	close(to);
	for (int i = 0; i < MANY_SETS; i++)
		close(set[i]);
	close(from);
}

CASE(a_refusal_is_told)
{
	struct sockaddr_in a = address("10.0.0.1", 1);
	int to = tcp(SOCK_NONBLOCK), set, error = 0;
	socklen_t bytes = sizeof(error);

	assert_fails(connect(to, (struct sockaddr *)&a, sizeof(a)), EINPROGRESS);
	set = set_of(to, EPOLLOUT);
	assert_true(next_of(set, to) & EPOLLERR);
	assert_int_equal(getsockopt(to, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
	assert_int_equal(error, ECONNREFUSED);
	close(to);
	close(set);
}

CASE(two_cannot_listen_at_one_address)
{
	int from = listener("10.0.0.1"), to = tcp(0);
	struct sockaddr_in a = name_of(from);

	assert_fails(bind(to, (struct sockaddr *)&a, sizeof(a)), EADDRINUSE);
	close(from);
	assert_int_equal(bind(to, (struct sockaddr *)&a, sizeof(a)), 0);
	close(to);
}

/* ---- bytes ---- */

/* All may have come, and the sender has no room yet. */
static void wait_for_either(const int end[2], bool room)
{
	struct pollfd p[] = { { .fd = end[1], .events = POLLIN },
		              { .fd = room ? end[0] : -1, .events = POLLOUT } };

	assert_true(poll(p, 2, LONG_MS) > 0);
}

CASE(a_file_is_sent_as_it_is)
{
	enum { SIZE = 400000 };
	static char file[SIZE], got[SIZE + 1];
	size_t sent = 0, n = 0;
	int end[2], from = fileno(tmpfile()), readable = -1;
	off_t at = 0;
	ssize_t part;

	make_pair(end);
	for (int i = 0; i < SIZE; i++)
		file[i] = (char)(i * 7 + i / 251);
	assert_int_equal(write(from, file, SIZE), SIZE);
	assert_int_equal(lseek(from, 1000, SEEK_SET), 1000);
	while (n < SIZE) {
		if (sent < SIZE) {
			part = sendfile(end[0], from, &at, SIZE - sent);
			sent += part > 0 ? (size_t)part : 0;
			assert_int_equal(at, sent);
			assert_true(part > 0 || errno == EAGAIN);
		}
		wait_for_either(end, sent < SIZE);
		if (ioctl(end[1], FIONREAD, &readable) || !readable)
			continue;
		part = recv(end[1], got + n, sizeof(got) - n, 0);
		assert_true(part >= readable && readable > 0);
		n += (size_t)part;
	}
	assert_memory_equal(file, got, SIZE);
	assert_int_equal(lseek(from, 0, SEEK_CUR), 1000); /* as it was */
	assert_int_equal(sendfile(end[0], from, NULL, 10), 10);
	assert_int_equal(lseek(from, 0, SEEK_CUR), 1010);
	assert_int_equal(sendfile(end[0], from, &(off_t){ SIZE }, 10), 0);
	close(from);
	close_pair(end);
}

CASE(a_time_limit_ends_a_call)
{
	const struct timeval t = { .tv_usec = 20000 };
	int end[2];
	char byte;

	make_pair(end);
	assert_int_equal(fcntl(end[0], F_SETFL, 0), 0);
	assert_int_equal(fcntl(end[0], F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(setsockopt(end[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)), 0);
	assert_fails(recv(end[0], &byte, 1, 0), EAGAIN);
	say(end[1], "a");
	assert_int_equal(read(end[0], &byte, 1), 1);
	close_pair(end);
}

CASE(a_time_limit_is_that_of_the_whole_call)
{
	enum { SIZE = 16 << 20 };
	const struct timeval t = { .tv_usec = 20000 };
	char *bulk = calloc(1, SIZE), two[2];
	struct iovec iov[] = { { two, 2 }, { bulk, SIZE } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	size_t sent, got = 0;
	ssize_t n;
	int end[2];

	assert_non_null(bulk);
	make_pair(end);
	assert_int_equal(fcntl(end[0], F_SETFL, 0), 0);
	assert_int_equal(setsockopt(end[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)), 0);
	assert_int_equal(setsockopt(end[0], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)), 0);
	assert_fails(recv(end[0], bulk, SIZE, MSG_WAITALL), EAGAIN);
	say(end[1], "abc");
	assert_int_equal(recvmsg(end[0], &msg, MSG_WAITALL), 3);
	assert_memory_equal(two, "ab", 2);
	assert_int_equal(bulk[0], 'c');
	/* nobody reads; what is on its way may make room once more */
	n = sendmsg(end[0], &msg, 0);
	assert_true(n > 0 && n < SIZE);
	for (sent = (size_t)n; (n = send(end[0], bulk, SIZE, 0)) > 0; sent += (size_t)n)
		assert_true(sent < SIZE);
	assert_int_equal(errno, EAGAIN);
	for (; got < sent; got += empty(end[1]))
		wait_for(end[1], POLLIN);
	assert_int_equal(got, sent);
	close_pair(end);
	free(bulk);
}

/* A child that listens, writes where to @told, a pipe, and then does nothing. */
static pid_t start_listener(int told)
{
	pid_t pid = fork();

	if (!pid) {
		int from = listener("10.0.0.1");
		struct sockaddr_in a = name_of(from);

		if (accept(from, NULL, NULL) >= 0 || write(told, &a, sizeof(a)) != sizeof(a))
			_exit(1);
		for (;;)
			pause();
	}
	return pid;
}

CASE(a_time_limit_ends_accept_and_connect)
{
	const struct timeval t = { .tv_usec = 20000 };
	int from = listener("10.0.0.1"), to = tcp(0), told[2], status;
	struct sockaddr_in a;
	pid_t pid;

	assert_int_equal(pipe(told), 0);
	pid = start_listener(told[1]);
	assert_int_equal(read(told[0], &a, sizeof(a)), sizeof(a));
	assert_int_equal(fcntl(from, F_SETFL, 0), 0);
	assert_int_equal(setsockopt(from, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)), 0);
	assert_int_equal(setsockopt(to, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)), 0);
	assert_fails(accept(from, NULL, NULL), EAGAIN);
	assert_fails(connect(to, (struct sockaddr *)&a, sizeof(a)), EINPROGRESS);
	assert_int_equal(fcntl(to, F_GETFL) & O_NONBLOCK, 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(setsockopt(to, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){ 0 }, sizeof(t)),
	                 0);
	assert_true(send(to, "x", 1, MSG_NOSIGNAL) < 0);
	close(told[0]);
	close(told[1]);
	close(to);
	close(from);
}

/* Even by one that has calls made again that have none: signal(7). */
CASE(a_signal_ends_a_call_with_a_time_limit)
{
	const struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	const struct itimerspec soon = { .it_value.tv_nsec = SOON_MS * 1000000 };
	const struct timeval t = { .tv_sec = LONG_MS / 1000 };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
	struct sigaction before;
	timer_t timer;
	int end[2];
	char byte;

	make_pair(end);
	assert_int_equal(fcntl(end[0], F_SETFL, 0), 0);
	assert_int_equal(setsockopt(end[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)), 0);
	assert_int_equal(sigaction(SIGUSR2, &act, &before), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &soon, NULL), 0);
	assert_fails(recv(end[0], &byte, 1, 0), EINTR);
	assert_int_equal(timer_delete(timer), 0);
	assert_int_equal(sigaction(SIGUSR2, &before, NULL), 0);
	close_pair(end);
}

/* ---- many ---- */

CASE(two_hundred_connections_are_in_one_set)
{
	enum { MANY = 200, ROUNDS = 5 };
	struct rlimit limit;
	struct epoll_event e[64];
	int from = listener("10.0.0.1"), set = set_of(from, EPOLLIN), end[MANY][2], left, n;
	static bool told[65536];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max < 8192 ? limit.rlim_max : 8192;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < MANY; i++) {
		connect_pair(from, end[i]);
		e[0] = (struct epoll_event){ .events = EPOLLIN | (i % 2 ? (uint32_t)EPOLLET : 0),
			                     .data.fd = end[i][0] };
		assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, end[i][0], e), 0);
	}
	expect_quiet(set);
	for (int round = 0; round < ROUNDS; round++) {
		memset(told, 0, sizeof(told));
		for (int i = 0; i < MANY; i++)
			say(end[i][1], "ping");
		for (left = MANY; left;) {
			n = epoll_wait(set, e, 64, LONG_MS);
			assert_true(n > 0);
			for (int i = 0; i < n; i++) {
				assert_false(told[e[i].data.fd]);
				told[e[i].data.fd] = true;
				hear(e[i].data.fd, "ping");
				left--;
			}
		}
		expect_quiet(set);
	}
	for (int i = 0; i < MANY; i++)
		close_pair(end[i]);
	expect_quiet(set);
	close(set);
	close(from);
}

int main(void)
{
	alarm(300);
	return harness_run(NULL, NULL);
}
