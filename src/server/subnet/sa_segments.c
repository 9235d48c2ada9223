/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests in segments: see sa_segments.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/array.h"
#include "subnet/sa_segments.h"

#define FIRST_ROOM 1024 /* more than a MAD holds */

/* An incomplete request, or one that was completed a moment ago. */
struct partial {
	LIST_ENTRY(partial) entry;
	uint16_t slid;
	uint32_t qpn;
	uint64_t tid;
	struct wire_rmpp_receiver receiver;
	uint64_t forget_ns;
	uint8_t *data;
	size_t bytes;
	uint32_t room;
	uint8_t first[MAD_BYTES];
};

struct sa_segments {
	LIST_HEAD(, partial) partials;
	unsigned n;
	uint8_t *given; /* the last complete request */
};

static const struct wire_rmpp_limits limits = { .timeout_ns = SA_SEGMENTS_TIME_NS,
	                                        .max_bytes = SA_SEGMENTS_BYTES,
	                                        .window = SA_SEGMENTS_WINDOW };

static void forget(struct sa_segments *s, struct partial *p)
{
	LIST_REMOVE(p, entry);
	s->n--;
	free(p->data);
	free(p);
}

int sa_segments_new(struct sa_segments **out)
{
	struct sa_segments *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*out = s;
	return 0;
}

void sa_segments_free(struct sa_segments *s)
{
	if (!s)
		return;
	while (!LIST_EMPTY(&s->partials))
		forget(s, LIST_FIRST(&s->partials));
	free(s->given);
	free(s);
}

static void forget_old(struct sa_segments *s, uint64_t now_ns)
{
	struct partial *p, *next;

	for (p = LIST_FIRST(&s->partials); p; p = next) {
		next = LIST_NEXT(p, entry);
		if (p->forget_ns <= now_ns)
			forget(s, p);
	}
}

static struct partial *find(struct sa_segments *s, const struct fabric_mad *mad, uint64_t tid)
{
	struct partial *p;

	LIST_FOREACH(p, &s->partials, entry)
	if (p->tid == tid && p->slid == mad->slid && p->qpn == mad->src_qpn)
		return p;
	return NULL;
}

static struct partial *begin(struct sa_segments *s, const struct fabric_mad *mad, uint64_t tid,
                             uint64_t now_ns)
{
	struct partial *p = s->n < SA_SEGMENTS_MOST ? calloc(1, sizeof(*p)) : NULL;

	if (!p)
		return NULL;
	p->data = calloc(1, FIRST_ROOM);
	if (!p->data) {
		free(p);
		return NULL;
	}
	p->room = FIRST_ROOM;
	p->slid = mad->slid;
	p->qpn = mad->src_qpn;
	p->tid = tid;
	p->forget_ns = now_ns + SA_SEGMENTS_TIME_NS;
	memcpy(p->first, mad->data, sizeof(p->first));
	wire_rmpp_receive_init(&p->receiver, &limits, now_ns);
	LIST_INSERT_HEAD(&s->partials, p, entry);
	s->n++;
	return p;
}

static bool append(struct partial *p, const uint8_t *data, uint32_t bytes)
{
	if (base_array_reserve(&p->data, &p->room, p->bytes + bytes))
		return false;
	memcpy(p->data + p->bytes, data, bytes);
	p->bytes += bytes;
	return true;
}

static void refuse(const struct fabric_mad *mad, struct sa_segment_step *step)
{
	wire_rmpp_refuse(mad->data, RMPP_STATUS_RESOURCES_EXHAUSTED, step->reply);
	step->replied = true;
}

static void finish(struct sa_segments *s, struct partial *p, uint64_t now_ns,
                   struct sa_segment_step *step)
{
	wire_sa_mad_decode(p->first, &step->mad);
	free(s->given);
	s->given = p->data;
	p->data = NULL;
	step->data = s->given;
	/* a short request is a whole MAD, and as long as one */
	step->bytes = p->bytes < SA_DATA_BYTES ? SA_DATA_BYTES : p->bytes;
	step->whole = true;
	p->forget_ns = now_ns + SA_SEGMENTS_KEEP_NS;
}

/* Whether it belongs to a request that has ended or never began. */
static bool is_late(const struct wire_rmpp *h)
{
	return h->type == RMPP_DATA ? !(h->flags & RMPP_FIRST)
	                            : h->type >= RMPP_ACK && h->type <= RMPP_ABORT;
}

void sa_segments_receive(struct sa_segments *s, const struct fabric_mad *mad, uint64_t now_ns,
                         struct sa_segment_step *step)
{
	struct wire_rmpp_result result;
	struct wire_rmpp rmpp;
	struct partial *p;
	struct wire_mad h;

	memset(step, 0, sizeof(*step));
	wire_mad_decode(mad->data, &h);
	wire_rmpp_decode(mad->data + RMPP_AT, &rmpp);
	forget_old(s, now_ns);
	p = find(s, mad, h.transaction_id);
	if (!p && is_late(&rmpp))
		return;
	if (!p)
		p = begin(s, mad, h.transaction_id, now_ns);
	if (!p) {
		refuse(mad, step);
		return;
	}
	result = wire_rmpp_receive_input(&p->receiver, mad->data, step->reply);
	step->replied = result.reply;
	if (result.bytes && !append(p, result.data, result.bytes)) {
		refuse(mad, step);
		forget(s, p);
	} else if (p->receiver.state == RMPP_FAILED) {
		forget(s, p);
	} else if (result.event == RMPP_DONE) {
		finish(s, p, now_ns, step);
	}
}
