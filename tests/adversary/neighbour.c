/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A neighbour of processes that flood the daemon (connections.sh): at each SIGUSR1 it makes a
 * channel and a completion queue, and ends them.
 */
#include "posix.h"

#include <infiniband/verbs.h>

static int use(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = channel ? ibv_create_cq(context, 1, NULL, channel, 0) : NULL;

	return !cq || ibv_destroy_cq(cq) || ibv_destroy_comp_channel(channel);
}

int main(void)
{
	struct ibv_device **list;
	struct ibv_context *context;
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	list = ibv_get_device_list(NULL);
	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (!context)
		return 1;
	for (;;) {
		if (use(context))
			return 2;
		puts("served");
		fflush(stdout);
		sigwait(&set, &got);
	}
}
