/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The links by name, and those that are Umbel: an endpoint each (endpoint.h). Links of
 * index i use the groups 239.255.i.1 and 239.255.i.2, named for the side that receives.
 */
#include "common/util.h"
#include "common/endpoint.h"
#include "common/link.h"

static void *open_endpoint(const struct bench_spec *spec, int side, struct bench_plan plan)
{
	struct bench_endpoint *e = bench_alloc(sizeof(*e), 0);
	char receive[32], send[32];

	snprintf(receive, sizeof(receive), "239.255.%u.%d", spec->index, side + 1);
	snprintf(send, sizeof(send), "239.255.%u.%d", spec->index, !side + 1);
	plan.address = spec->address[side];
	plan.receive = receive;
	plan.send = send;
	plan.depth = spec->depth;
	plan.bytes = spec->bytes;
	plan.idle_qps = spec->idle_qps;
	bench_endpoint_open(e, &plan);
	return e;
}

static void *verbs_open(void *shared, const struct bench_spec *spec, int side)
{
	(void)shared;
	return open_endpoint(spec, side, (struct bench_plan){ .block = false });
}

static void *roce_open(void *shared, const struct bench_spec *spec, int side)
{
	(void)shared;
	return open_endpoint(spec, side, (struct bench_plan){ .bare = true });
}

static void *wr_open(void *shared, const struct bench_spec *spec, int side)
{
	(void)shared;
	return open_endpoint(spec, side, (struct bench_plan){ .extended = true });
}

static void *event_open(void *shared, const struct bench_spec *spec, int side)
{
	(void)shared;
	return open_endpoint(spec, side, (struct bench_plan){ .block = true });
}

static void verbs_send(void *link, unsigned n)
{
	bench_endpoint_send(link, n);
}

static unsigned verbs_receive(void *link, unsigned max)
{
	return bench_endpoint_poll(link, max);
}

static void wr_send(void *link, unsigned n)
{
	bench_endpoint_send_ex(link, n);
}

static unsigned wr_receive(void *link, unsigned max)
{
	return bench_endpoint_poll_ex(link, max);
}

static unsigned event_receive(void *link, unsigned max)
{
	(void)max;
	bench_endpoint_wait(link);
	return 1;
}

static void verbs_settle(void *link)
{
	bench_endpoint_repost(link);
}

static void verbs_close(void *link)
{
	bench_endpoint_close(link);
}

const struct bench_link_ops bench_verbs_ops = {
	.name = "umbel",
	.exchanges = 10000,
	.messages = 200000,
	.open = verbs_open,
	.send = verbs_send,
	.receive = verbs_receive,
	.settle = verbs_settle,
	.close = verbs_close,
};

/* As many messages as of UDP: they cost about as much. */
const struct bench_link_ops bench_roce_ops = {
	.name = "roce",
	.exchanges = 1000,
	.messages = 6000,
	.open = roce_open,
	.send = verbs_send,
	.receive = verbs_receive,
	.settle = verbs_settle,
	.close = verbs_close,
};

const struct bench_link_ops bench_wr_ops = {
	.name = "umbel-wr",
	.exchanges = 10000,
	.messages = 200000,
	.open = wr_open,
	.send = wr_send,
	.receive = wr_receive,
	.settle = verbs_settle,
	.close = verbs_close,
};

const struct bench_link_ops bench_event_ops = {
	.name = "umbel-event",
	.exchanges = 1000,
	.open = event_open,
	.send = verbs_send,
	.receive = event_receive,
	.settle = verbs_settle,
	.close = verbs_close,
};

const struct bench_link_ops *bench_link_find(const char *name)
{
	static const struct bench_link_ops *const all[] = { &bench_ring_ops,     &bench_udp_ops,
		                                            &bench_eventfd_ops,  &bench_verbs_ops,
		                                            &bench_wr_ops,       &bench_event_ops,
		                                            &bench_roce_ops,     &bench_rc_send_ops,
		                                            &bench_rc_write_ops, &bench_tcp_ops };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}
