/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program umbel-ipoib: IP over InfiniBand (RFC 4391, 4392, 4755), an interface for a port of
 * the host on which it runs, in the network namespace in which it runs. An ordinary program on
 * libibverbs, librdmacm and libibumad. ipoib.md says what it does.
 *
 * The process that starts it can give it two descriptors:
 *
 * --status-fd: it writes the byte 'R' once the interface can be used: it is a member of the
 * broadcast group, or the port is not active, so that there is nothing to wait for. If it fails, it
 * ends without, with one line on standard error.
 *
 * --control-fd: one end of a socketpair(2), SOCK_SEQPACKET. For each packet that comes, whatever is
 * in it, it sends one packet, a JSON object:
 *
 *	{"interface":"ib0","state":"up","device":"umbel_h1_0","port":1,"pkey":65535,"qpn":65,
 *	 "gid":"fe80::...","lid":1,"mode":"datagram","mtu":4092,
 *	 "neighbours":[{"ip":"192.0.2.2","state":"reachable","qpn":66,"gid":"fe80::...",
 *	                "mode":"datagram"}, ...],
 *	 "groups":[{"mgid":"ff12:401b:ffff::ffff:ffff","mlid":49152,"join_state":1}, ...],
 *	 "counters":{"sent":1, ...}}
 *
 * With --await-pkey "state" is "absent", and there is nothing after "pkey", as long as the port is
 * not in the partition.
 *
 * In connected mode a neighbour's mode may be "idle", "connecting", "connected" or "failed" as
 * well; "n_outgoing" and "n_incoming" are the connections that the interface and its peers have
 * asked for.
 *
 * Of neighbours and groups it lists 700 each at most, those used last; "n_neighbours" and
 * "n_groups" say how many there are.
 *
 * It leaves nothing behind: the interface goes with it. It ends with its parent, with the fabric,
 * or by SIGTERM.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "ipoib/interface.h"

static const char *why_ended(int error)
{
	switch (error) {
	case -ENXIO:
		return "somebody has removed it";
	case -ECOMM:
		return "its queue pair has failed: it cannot receive any more";
	default:
		return "the fabric has ended";
	}
}

int main(int argc, char **argv)
{
	static struct ipoib_interface interface;
	pid_t parent = getppid();
	struct ipoib_options options;
	char why[128];
	int ret;

	base_log_start(BASE_LOG_WARNING);
	if (ipoib_options_parse(&options, argc, argv, why, sizeof(why))) {
		fprintf(stderr, "umbel-ipoib: %s; see umbel-ipoib --help\n", why);
		return 2;
	}
	if (options.help) {
		ipoib_options_help(stdout);
		return 0;
	}
	if (options.version) {
		printf("umbel-ipoib %s\n", UMBEL_VERSION);
		return 0;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		return 1;
	ret = ipoib_interface_open(&interface, &options);
	if (ret)
		return ret == -ECANCELED ? 0 : 1;
	ret = ipoib_interface_run(&interface);
	if (ret)
		fprintf(stderr, "umbel-ipoib: %s: %s\n", options.interface, why_ended(ret));
	ipoib_interface_close(&interface);
	return ret ? 1 : 0;
}
