/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP sockets between two hosts with a network of their own: how long 64 bytes take there, and how
 * many bytes a second get there. The address decides what carries them, IPoIB or a veth pair.
 *
 *	sockets serve                      prints its port; ends with its standard input
 *	sockets measure LINK ADDRESS PORT  two samples
 */
#include "common/util.h"

#include <netinet/tcp.h>

#define MESSAGE 64
#define BLOCK   (128 << 10)
#define WARM    200  /* exchanges before those that count */
#define TURNS   2000 /* exchanges */
#define WARM_NS 200000000ull
#define RATE_NS 400000000ull

enum { ECHO = 'e', SINK = 's' };

static char block[BLOCK];

/* False: the other end has closed. */
static int read_all(int fd, size_t bytes)
{
	for (size_t got = 0; got < bytes;) {
		ssize_t n = read(fd, block + got, bytes - got);

		bench_must(n >= 0, "read");
		if (!n)
			return 0;
		got += (size_t)n;
	}
	return 1;
}

static void write_all(int fd, size_t bytes)
{
	for (size_t put = 0; put < bytes;) {
		ssize_t n = write(fd, block + put, bytes - put);

		bench_must(n >= 0, "write");
		put += (size_t)n;
	}
}

static void at_once(int fd)
{
	bench_must(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)),
	           "TCP_NODELAY");
}

/* ---- the server ---- */

static void serve_one(int fd)
{
	at_once(fd);
	if (!read_all(fd, 1))
		return;
	if (block[0] == ECHO) {
		while (read_all(fd, MESSAGE))
			write_all(fd, MESSAGE);
		return;
	}
	while (read(fd, block, sizeof(block)) > 0)
		;
	write_all(fd, 1);
}

static int serve(void)
{
	struct sockaddr_in6 own = { .sin6_family = AF_INET6 };
	socklen_t len = sizeof(own);
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd wait[] = { { .fd = listener, .events = POLLIN }, { .fd = STDIN_FILENO } };

	if (listener < 0 || bind(listener, (struct sockaddr *)&own, len) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&own, &len))
		bench_fail("listen");
	printf("{\"port\": %d}\n", ntohs(own.sin6_port));
	fflush(stdout);
	while (poll(wait, 2, -1) > 0 && !wait[1].revents) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		bench_must(fd >= 0, "accept");
		serve_one(fd);
		close(fd);
	}
	return 0;
}

/* ---- the client ---- */

static int connect_to(const char *address, const char *port, char what)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((in_port_t)atoi(port)) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
		errx(2, "'%s' is no address", address);
	bench_must(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)), "connect");
	at_once(fd);
	block[0] = what;
	write_all(fd, 1);
	return fd;
}

static void measure_latency(const char *link, int fd)
{
	static double ns[TURNS];

	for (int i = -WARM; i < TURNS; i++) {
		uint64_t begin = bench_now();

		write_all(fd, MESSAGE);
		if (!read_all(fd, MESSAGE))
			errx(EXIT_FAILURE, "the server has ended");
		if (i >= 0)
			ns[i] = (double)(bench_now() - begin) / 2;
	}
	bench_sort(ns, TURNS);
	printf("{\"measure\": \"latency\", \"link\": \"%s\", \"ns\": %.0f, \"p99\": %.0f}\n", link,
	       bench_quantile(ns, TURNS, 0.5), bench_quantile(ns, TURNS, 0.99));
}

/* Sends for so long; returns how many bytes. */
static uint64_t send_for(int fd, uint64_t ns)
{
	uint64_t begin = bench_now(), bytes = 0;

	for (; bench_now() - begin < ns; bytes += sizeof(block))
		write_all(fd, sizeof(block));
	return bytes;
}

/* Until the server has read all; what the sockets hold at the begin and the end is little of it. */
static void measure_rate(const char *link, int fd)
{
	uint64_t begin, bytes;

	send_for(fd, WARM_NS);
	begin = bench_now();
	bytes = send_for(fd, RATE_NS);
	bench_must(!shutdown(fd, SHUT_WR) && read_all(fd, 1), "shutdown");
	printf("{\"measure\": \"rate\", \"link\": \"%s\", \"ns\": %g}\n", link,
	       (double)(bench_now() - begin) / (double)bytes);
}

static int measure(char **argv)
{
	int fd = connect_to(argv[3], argv[4], ECHO);

	measure_latency(argv[2], fd);
	close(fd);
	fd = connect_to(argv[3], argv[4], SINK);
	measure_rate(argv[2], fd);
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "serve"))
		return serve();
	if (argc == 5 && !strcmp(argv[1], "measure"))
		return measure(argv);
	errx(2, "serve, or measure LINK ADDRESS PORT");
}
