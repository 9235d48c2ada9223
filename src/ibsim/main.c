/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program umbel-ibsim SOCKETS: the server of ibsim's protocol. Programs with ibsim's client
 * library, libumad2sim, are at a port of the fabric. An ordinary program on libibumad and
 * libibverbs, which sees the HCAs of all hosts; `umbel ibsim` starts it.
 *
 * It says on standard output when it serves. It ends with the fabric, or by a signal.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "ibsim/server.h"

/* Each client takes four descriptors. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void explain(const char *base, int error)
{
	switch (error) {
	case -EADDRINUSE:
		base_log("the sockets '%s' are another server's", base);
		return;
	case -ENAMETOOLONG:
		base_log("'%s' is too long a name for sockets", base);
		return;
	case -EOPNOTSUPP:
		base_log("the ports of this fabric have no subnet management: it is one of "
		         "Ethernet");
		return;
	default:
		base_log("cannot serve clients of ibsim: %s", strerror(-error));
	}
}

int main(int argc, char **argv)
{
	static struct ibsim_server server;
	int ret;

	base_log_start(BASE_LOG_WARNING);
	if (argc != 2 || !*argv[1]) {
		fprintf(stderr, "Usage: umbel-ibsim SOCKETS\n");
		return 2;
	}
	raise_limit();
	ret = ibsim_server_open(&server, argv[1]);
	if (ret) {
		explain(argv[1], ret);
		return 1;
	}
	printf("serving clients of ibsim, IBSIM_SOCKNAME=%s\n", argv[1]);
	fflush(stdout);
	ret = ibsim_server_run(&server);
	ibsim_server_close(&server);
	if (ret == -EPIPE)
		base_log("the fabric has ended");
	else if (ret)
		base_log("cannot go on: %s", strerror(-ret));
	return ret ? 1 : 0;
}
