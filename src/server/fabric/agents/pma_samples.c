/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples of a port's traffic: see pma_samples.h. A sample is the difference of two readings. Each
 * is taken when it is due and the senders' counts are collected.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fabric/agents/mads.h"
#include "fabric/agents/pma_samples.h"
#include "fabric/forwarding/collect.h"
#include "wire/perf.h"

#define TICK_NS      1000 /* what SampleStart and SampleInterval count */
#define TICK         249  /* that, as PortSamplesControl:Tick has it: (n + 1) * 4 ns */
#define MOST_RUNNING 1024 /* samples of all nodes at a time: each wakes the daemon twice */

#define WORD 4 /* data is counted in 32-bit words */

/* The counters that can be sampled. PortSamplesControl:CounterSelect is this number plus 1. */
enum quantity { XMIT_DATA, RCV_DATA, XMIT_PACKETS, RCV_PACKETS, XMIT_WAIT, QUANTITIES };

struct fabric_pma_samples {
	LIST_ENTRY(fabric_pma_samples) entry; /* of those that run */
	struct fabric *f;
	struct wire_port_samples_control control;
	const struct fabric_port *port;
	uint64_t due_ns; /* the beginning, or the end */
	uint64_t first[QUANTITIES], count[QUANTITIES];
	struct fabric_reader reader;
	bool reads; /* it is due, and waits for the counts */
};

/* ---- time ---- */

/* The counts since the fabric started, of flows that are collected. */
static void read_port(const struct fabric_port *p, uint64_t n[static QUANTITIES])
{
	n[XMIT_DATA] = (p->stats.xmit_bytes + p->stats.xmit_headers) / WORD;
	n[RCV_DATA] = (p->stats.recv_bytes + p->stats.recv_headers) / WORD;
	n[XMIT_PACKETS] = p->stats.xmit_packets;
	n[RCV_PACKETS] = p->stats.recv_packets;
	n[XMIT_WAIT] = 0; /* no packet waits for a link */
}

static void end_sample(struct fabric_pma_samples *s)
{
	s->control.sample_status = PERF_SAMPLE_DONE;
	LIST_REMOVE(s, entry);
	s->f->mads->n_samples--;
}

static void take_reading(struct fabric_pma_samples *s)
{
	uint64_t now[QUANTITIES];

	read_port(s->port, now);
	s->reads = false;
	if (s->control.sample_status == PERF_SAMPLE_STARTED) {
		memcpy(s->first, now, sizeof(now));
		s->control.sample_status = PERF_SAMPLE_RUNNING;
		s->due_ns += (uint64_t)s->control.sample_interval * TICK_NS;
		return;
	}
	for (unsigned i = 0; i < QUANTITIES; i++)
		s->count[i] = now[i] - s->first[i];
	end_sample(s);
}

static void on_collected(struct fabric *f, struct fabric_reader *r)
{
	struct fabric_pma_samples *s = container_of(r, struct fabric_pma_samples, reader);

	take_reading(s);
	if (s->control.sample_status != PERF_SAMPLE_DONE && f->mads->clock.wake)
		f->mads->clock.wake(f->mads->clock.arg, s->due_ns);
}

/* Takes the readings that are due. A sample of no time begins and ends at once. */
static void go_on(struct fabric *f, struct fabric_pma_samples *s, uint64_t now_ns)
{
	while (s->control.sample_status != PERF_SAMPLE_DONE && !s->reads && s->due_ns <= now_ns) {
		if (fabric_collect_at_once(f)) {
			take_reading(s);
			continue;
		}
		s->reads = true;
		fabric_collect_wait(f, &s->reader, on_collected);
	}
}

uint64_t fabric_pma_samples_run(struct fabric *f, uint64_t now_ns)
{
	uint64_t soonest = UINT64_MAX;
	struct fabric_pma_samples *s, *next;

	for (s = LIST_FIRST(&f->mads->samples); s; s = next) {
		next = LIST_NEXT(s, entry);
		go_on(f, s, now_ns);
		if (s->control.sample_status != PERF_SAMPLE_DONE && !s->reads &&
		    s->due_ns < soonest)
			soonest = s->due_ns;
	}
	return soonest;
}

void fabric_pma_samples_fini(struct fabric *f)
{
	struct fabric_pma_samples *s;

	while ((s = LIST_FIRST(&f->mads->samples))) {
		if (s->reads)
			fabric_collect_cancel(f, &s->reader);
		s->reads = false;
		end_sample(s);
	}
}

/* ---- requests ---- */

/* The fields that are the same for all samples. */
static void fill(struct wire_port_samples_control *c, const struct wire_port_samples_control *of)
{
	*c = *of;
	c->tick = TICK;
	c->counter_width = PERF_SAMPLE_WIDTH_32;
	c->counter_mask_0 = PERF_SAMPLE_MANDATORY;
	c->counter_masks_1_9 = c->counter_masks_10_14 = 0;
	for (unsigned i = 1; i < PERF_SAMPLES; i++) {
		if (i < 10)
			c->counter_masks_1_9 |= PERF_SAMPLE_MANDATORY << 3 * (9 - i);
		else
			c->counter_masks_10_14 |= (uint16_t)(PERF_SAMPLE_MANDATORY << 3 * (14 - i));
	}
	c->sample_mechanisms = 0;
	c->option_mask = c->vendor_mask = c->samples_only_option_mask = 0;
}

/* The sample that @want asks for begins. */
static uint16_t start(struct fabric *f, struct fabric_node *node,
                      const struct wire_port_samples_control *want)
{
	struct fabric_pma_samples *s = node->samples;
	const uint64_t now = fabric_now_ns(f);

	if (!s)
		s = node->samples = calloc(1, sizeof(*s));
	if (!s || f->mads->n_samples >= MOST_RUNNING)
		return MAD_STATUS_BUSY;
	*s = (struct fabric_pma_samples){ .f = f,
		                          .control = *want,
		                          .port = &node->port[want->port_select] };
	s->control.sample_status = PERF_SAMPLE_STARTED;
	s->due_ns = now + (uint64_t)want->sample_start * TICK_NS;
	LIST_INSERT_HEAD(&f->mads->samples, s, entry);
	f->mads->n_samples++;
	go_on(f, s, now);
	if (s->control.sample_status != PERF_SAMPLE_DONE && !s->reads && f->mads->clock.wake)
		f->mads->clock.wake(f->mads->clock.arg, s->due_ns);
	return MAD_STATUS_OK;
}

uint16_t fabric_pma_samples_control(struct fabric *f, struct fabric_node *node, uint32_t modifier,
                                    uint8_t *data, bool is_set)
{
	struct wire_port_samples_control want, none = { 0 };
	unsigned lowest = node->type == FABRIC_SWITCH ? 0 : 1;
	uint16_t status = MAD_STATUS_OK;

	wire_port_samples_control_decode(data, &want);
	if (modifier || want.port_select < lowest || want.port_select > node->n_ports)
		return MAD_STATUS_BAD_FIELD;
	none.port_select = want.port_select;
	if (is_set && (!node->samples || node->samples->control.sample_status == PERF_SAMPLE_DONE))
		status = start(f, node, &want);
	fill(&want, node->samples ? &node->samples->control : &none);
	wire_port_samples_control_encode(&want, data);
	return status;
}

uint16_t fabric_pma_samples_result(struct fabric_node *node, uint32_t modifier, uint8_t *data)
{
	const struct fabric_pma_samples *s = node->samples;
	struct wire_port_samples_result r = { 0 };

	if (modifier)
		return MAD_STATUS_BAD_FIELD;
	if (s) {
		r.tag = s->control.tag;
		r.sample_status = s->control.sample_status;
	}
	for (unsigned i = 0; s && !r.sample_status && i < PERF_SAMPLES; i++) {
		unsigned quantity = s->control.counter_select[i];
		uint64_t n = quantity && quantity <= QUANTITIES ? s->count[quantity - 1] : 0;

		r.counter[i] = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
	}
	wire_port_samples_result_encode(&r, data);
	return MAD_STATUS_OK;
}
