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

/* Of the one argument that is no name for sockets. The exit status. */
static int answer_option(const char *option)
{
	static const char help[] =
	        "Usage: umbel run -- umbel-ibsim SOCKETS\n"
	        "\n"
	        "Serves clients of the simulator ibsim on the fabric on which it runs, at\n"
	        "sockets of that name. 'umbel ibsim' starts it, and its help says more.\n"
	        "\n"
	        "  -h, --help        this text\n"
	        "      --version     the version\n";

	if (!strcmp(option, "--help") || !strcmp(option, "-h")) {
		fputs(help, stdout);
		return 0;
	}
	if (!strcmp(option, "--version")) {
		printf("umbel-ibsim %s\n", UMBEL_VERSION);
		return 0;
	}
	base_log("umbel-ibsim takes the name of its sockets, and no '%s'; see umbel-ibsim --help",
	         option);
	return 2;
}

int main(int argc, char **argv)
{
	static struct ibsim_server server;
	int ret;

	base_log_start(BASE_LOG_WARNING);
	if (argc != 2 || !*argv[1] || *argv[1] == '-')
		return answer_option(argc == 2 ? argv[1] : "");
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
