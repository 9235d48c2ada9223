/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures what is not the data path, each printed as a line of JSON; bench/run.py calls it.
 *
 * control ah		an address handle made and destroyed
 * control attach	a queue pair attached to a group, and detached
 * control request	the floor of the former: a packet to another process and back
 * control first	a process started, until its first message has arrived
 * control exec		the floor of the former: a process started that ends at once
 * control quiet	whether a sender makes system calls
 */
#include "common/util.h"

#include <spawn.h>

#include "common/endpoint.h"

#define RECEIVER "10.0.0.2"
#define SENDER   "10.0.0.1"
#define GROUP    "239.255.200.1"
#define DEPTH    (2 * BENCH_LIST)
#define GROUPS   256
#define HANDLES  100000
#define REQUESTS 1000
#define POSTS    1000

extern char **environ;

/* ---- address handles ---- */

static int measure_ah(void)
{
	struct bench_endpoint e;
	struct ibv_ah_attr attr = { .port_num = 1, .dlid = 0xC001, .is_global = 1 };
	uint64_t t;

	bench_endpoint_open(&e,
	                    &(struct bench_plan){ .address = SENDER, .depth = DEPTH, .bytes = 64 });
	attr.grh.dgid.raw[0] = 0xFF;
	attr.grh.dgid.raw[1] = 0x12;
	t = bench_now();
	for (int i = 0; i < HANDLES; i++) {
		struct ibv_ah *ah = ibv_create_ah(e.pd, &attr);

		bench_must(ah && !ibv_destroy_ah(ah), "ibv_create_ah");
	}
	printf("{\"measure\": \"ah\", \"ns\": %.1f}\n", (double)(bench_now() - t) / HANDLES);
	bench_endpoint_close(&e);
	return 0;
}

/* ---- attach and detach ---- */

static void attach_all(struct ibv_qp *qp, int attach, double us[GROUPS])
{
	union ibv_gid gid = { .raw = { 0xFF, 0x12, 0xBE, 0x4C } };

	for (int i = 0; i < GROUPS; i++) {
		uint16_t lid = (uint16_t)(0xE000 + i);
		uint64_t t = bench_now();

		gid.raw[15] = (uint8_t)i;
		errno = attach ? ibv_attach_mcast(qp, &gid, lid) : ibv_detach_mcast(qp, &gid, lid);
		if (errno)
			bench_fail(attach ? "ibv_attach_mcast" : "ibv_detach_mcast");
		us[i] = (double)(bench_now() - t) / 1000;
	}
	bench_sort(us, GROUPS);
}

static int measure_attach(void)
{
	struct bench_endpoint e;
	double attach[GROUPS], detach[GROUPS];

	bench_endpoint_open(&e,
	                    &(struct bench_plan){ .address = SENDER, .depth = DEPTH, .bytes = 64 });
	for (int warm = 1; warm >= 0; warm--) {
		attach_all(e.qp, 1, attach);
		attach_all(e.qp, 0, detach);
	}
	printf("{\"measure\": \"attach\", \"attach_us\": %.2f, \"detach_us\": %.2f}\n",
	       bench_quantile(attach, GROUPS, 0.5), bench_quantile(detach, GROUPS, 0.5));
	bench_endpoint_close(&e);
	return 0;
}

static int measure_request(void)
{
	double us[REQUESTS];
	char packet[64] = { 0 };
	int pair[2];
	pid_t server;

	bench_pin(0); /* both: nothing is faster than to change over */
	bench_must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "socketpair");
	server = fork();
	bench_must(server >= 0, "fork");
	if (server == 0) {
		close(pair[0]);
		while (recv(pair[1], packet, sizeof(packet), 0) > 0)
			if (send(pair[1], packet, sizeof(packet), 0) < 0)
				_exit(1);
		_exit(0);
	}
	close(pair[1]);
	for (int i = 0; i < REQUESTS; i++) {
		uint64_t t = bench_now();

		if (send(pair[0], packet, sizeof(packet), 0) < 0 ||
		    recv(pair[0], packet, sizeof(packet), 0) < 0)
			bench_fail("send to another process");
		us[i] = (double)(bench_now() - t) / 1000;
	}
	close(pair[0]);
	waitpid(server, NULL, 0);
	bench_sort(us, REQUESTS);
	printf("{\"measure\": \"request\", \"us\": %.2f}\n", bench_quantile(us, REQUESTS, 0.5));
	return 0;
}

/* ---- a process from its start ---- */

static pid_t spawn(const char *what)
{
	char *argv[] = { "control", (char *)what, NULL };
	pid_t pid;

	errno = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ);
	bench_must(!errno, "posix_spawn");
	return pid;
}

static void reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) < 0 || status)
		errx(EXIT_FAILURE, "the process that was started failed");
}

static int measure_first(void)
{
	struct bench_endpoint e;
	uint64_t t, arrived;
	pid_t pid;

	bench_endpoint_open(&e, &(struct bench_plan){ .address = RECEIVER,
	                                              .receive = GROUP,
	                                              .depth = DEPTH,
	                                              .bytes = 64,
	                                              .block = true });
	t = bench_now();
	pid = spawn("hello");
	bench_endpoint_wait(&e);
	arrived = bench_now();
	reap(pid);
	printf("{\"measure\": \"first\", \"ms\": %.3f}\n", (double)(arrived - t) / 1e6);
	bench_endpoint_close(&e);
	return 0;
}

static int hello(void)
{
	struct bench_endpoint e;

	bench_endpoint_open(
	        &e, &(struct bench_plan){
	                    .address = SENDER, .send = GROUP, .depth = DEPTH, .bytes = 64 });
	bench_endpoint_send(&e, 1);
	return 0;
}

static int measure_exec(void)
{
	uint64_t t = bench_now();

	reap(spawn("nothing"));
	printf("{\"measure\": \"exec\", \"ms\": %.3f}\n", (double)(bench_now() - t) / 1e6);
	return 0;
}

static int nothing(void)
{
	return 0;
}

/* ---- system calls of a sender: the kernel sends SIGSYS instead while the selector says so ---- */

static volatile char selector = SYSCALL_DISPATCH_FILTER_ALLOW;
static volatile sig_atomic_t calls;

static void on_syscall(int signal)
{
	(void)signal;
	selector = SYSCALL_DISPATCH_FILTER_ALLOW;
	calls++;
}

/* One message; whether posting it took a system call. */
static int post_watched(struct bench_endpoint *e)
{
	calls = 0;
	selector = SYSCALL_DISPATCH_FILTER_BLOCK;
	bench_endpoint_send(e, 1);
	selector = SYSCALL_DISPATCH_FILTER_ALLOW;
	return calls != 0;
}

static void receive_one(struct bench_endpoint *e)
{
	while (!bench_endpoint_poll(e, 1))
		;
	bench_endpoint_repost(e);
}

static int measure_quiet(void)
{
	struct bench_endpoint receiver, sender;
	int loud = 0;

	bench_endpoint_open(&receiver, &(struct bench_plan){ .address = RECEIVER,
	                                                     .receive = GROUP,
	                                                     .depth = DEPTH,
	                                                     .bytes = 64,
	                                                     .block = true });
	bench_endpoint_open(
	        &sender, &(struct bench_plan){
	                         .address = SENDER, .send = GROUP, .depth = DEPTH, .bytes = 64 });
	bench_endpoint_send(&sender, 1); /* the first asks the daemon for the way */
	signal(SIGSYS, on_syscall);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector)) {
		printf("{\"cannot\": \"this kernel has no system call user dispatch\"}\n");
		return 0;
	}
	receive_one(&receiver);
	for (int i = 0; i < POSTS; i++) {
		loud += post_watched(&sender);
		receive_one(&receiver);
	}
	/* To see that a call is seen: one to a receiver that sleeps, and has been woken before. */
	for (int i = 0; i < 2; i++) {
		bench_must(!ibv_req_notify_cq(receiver.cq, 0), "ibv_req_notify_cq");
		if (i == 0)
			bench_endpoint_send(&sender, 1);
		else if (!post_watched(&sender))
			errx(EXIT_FAILURE, "a wake-up without a system call");
		receive_one(&receiver);
	}
	printf("{\"measure\": \"quiet\", \"posts\": %d, \"loud\": %d}\n", POSTS, loud);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} what[] = { { "ah", measure_ah },
		     { "attach", measure_attach },
		     { "request", measure_request },
		     { "first", measure_first },
		     { "hello", hello },
		     { "exec", measure_exec },
		     { "nothing", nothing },
		     { "quiet", measure_quiet } };
	for (size_t i = 0; argc == 2 && i < sizeof(what) / sizeof(*what); i++)
		if (!strcmp(what[i].name, argv[1]))
			return what[i].run();
	errx(2, "ah, attach, request, first, exec or quiet");
}
