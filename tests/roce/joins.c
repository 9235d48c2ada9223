// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * joins ADDRESS GROUP COUNT: one identifier, bound to ADDRESS, joins so many groups, GROUP and
 * those after it, says so, and stays until it is killed.
 */
#include "must.h"

#include <rdma/rdma_cma.h>

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	must(inet_pton(AF_INET, text, &a.sin_addr) == 1, "'%s' is no address", text);
	return a;
}

static void join(struct rdma_cm_id *id, const struct sockaddr_in *group)
{
	struct rdma_cm_event *event;

	check(!rdma_join_multicast(id, (struct sockaddr *)group, NULL), "rdma_join_multicast");
	check(!rdma_get_cm_event(id->channel, &event), "rdma_get_cm_event");
	must(event->event == RDMA_CM_EVENT_MULTICAST_JOIN, "%s, status %d",
	     rdma_event_str(event->event), event->status);
	rdma_ack_cm_event(event);
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in from, group;
	struct rdma_cm_id *id;
	unsigned count;

	must(argc == 4, "usage: joins ADDRESS GROUP COUNT");
	from = address_of(argv[1]);
	group = address_of(argv[2]);
	count = (unsigned)atoi(argv[3]);
	check(channel, "rdma_create_event_channel");
	check(!rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), "rdma_create_id");
	check(!rdma_bind_addr(id, (struct sockaddr *)&from), argv[1]);
	for (unsigned i = 0; i < count; i++) {
		join(id, &group);
		group.sin_addr.s_addr = htonl(ntohl(group.sin_addr.s_addr) + 1);
	}
	printf("joined %u\n", count);
	fflush(stdout);
	for (;;)
		pause();
}
