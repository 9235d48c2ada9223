/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The floor for receivers that sleep: one eventfd each way, written and read, no message.
 */
#include "common/util.h"

#include <sys/eventfd.h>

#include "common/link.h"

struct wake {
	int out, in;
};

static void *wake_prepare(const struct bench_spec *spec)
{
	struct wake *w = bench_alloc(sizeof(*w), 0);

	(void)spec;
	w->out = eventfd(0, EFD_SEMAPHORE);
	w->in = eventfd(0, EFD_SEMAPHORE);
	bench_must(w->out >= 0 && w->in >= 0, "eventfd");
	return w;
}

static void *wake_open(void *shared, const struct bench_spec *spec, int side)
{
	struct wake *w = bench_alloc(sizeof(*w), 0), *both = shared;

	(void)spec;
	w->out = side ? both->in : both->out;
	w->in = side ? both->out : both->in;
	return w;
}

static void wake_send(void *link, unsigned n)
{
	struct wake *w = link;
	uint64_t value = n;

	bench_must(write(w->out, &value, sizeof(value)) >= 0, "write to an eventfd");
}

static unsigned wake_receive(void *link, unsigned max)
{
	struct wake *w = link;
	uint64_t value;

	(void)max;
	bench_must(read(w->in, &value, sizeof(value)) >= 0, "read from an eventfd");
	return 1;
}

static void wake_settle(void *link)
{
	(void)link;
}

static void wake_close(void *link)
{
	struct wake *w = link;

	close(w->in);
	close(w->out);
}

const struct bench_link_ops bench_eventfd_ops = {
	.name = "eventfd",
	.exchanges = 1000,
	.prepare = wake_prepare,
	.open = wake_open,
	.send = wake_send,
	.receive = wake_receive,
	.settle = wake_settle,
	.close = wake_close,
};
