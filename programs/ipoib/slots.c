/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slots: see slots.h.
 */
#include "ipoib/slots.h"

#define FIRST_SLOTS 4

struct ipoib_slot {
	uint8_t header[IPOIB_MAX_SEGMENT][IPOIB_SEGMENT_HEADER];
	uint8_t room[IPOIB_HEADROOM];
	uint8_t packet[IPOIB_MAX_PACKET];
};

static const struct ipoib_area *area_of(const struct ipoib_slots *s, unsigned slot)
{
	return &s->area[slot >= FIRST_SLOTS];
}

static struct ipoib_slot *slot_at(const struct ipoib_slots *s, unsigned slot)
{
	unsigned first = slot >= FIRST_SLOTS ? FIRST_SLOTS : 0;

	return (struct ipoib_slot *)area_of(s, slot)->memory + (slot - first);
}

/* Slots up to number @n. 0 or -errno. */
static int add(struct ipoib_slots *s, unsigned n)
{
	int ret =
	        ipoib_area_make(&s->area[s->n > 0], s->pd, (n - s->n) * sizeof(struct ipoib_slot));

	if (ret)
		return ret;
	while (s->n < n)
		s->unused[s->n_unused++] = (uint8_t)s->n++;
	return 0;
}

int ipoib_slots_open(struct ipoib_slots *s, struct ibv_pd *pd)
{
	*s = (struct ipoib_slots){ .pd = pd, .current = -1 };
	return add(s, FIRST_SLOTS);
}

void ipoib_slots_close(struct ipoib_slots *s)
{
	for (unsigned i = 0; i < 2; i++)
		ipoib_area_free(&s->area[i]);
}

bool ipoib_slots_grow(struct ipoib_slots *s)
{
	return s->n < IPOIB_SLOTS && !add(s, IPOIB_SLOTS);
}

uint8_t *ipoib_slots_next(struct ipoib_slots *s)
{
	if (s->current < 0 && s->n_unused)
		s->current = s->unused[--s->n_unused];
	return s->current < 0 ? NULL : slot_at(s, (unsigned)s->current)->packet;
}

unsigned ipoib_slots_use(struct ipoib_slots *s)
{
	unsigned slot = (unsigned)s->current;

	s->current = -1;
	return slot;
}

void ipoib_slots_give(struct ipoib_slots *s, unsigned slot)
{
	s->unused[s->n_unused++] = (uint8_t)slot;
}

static struct ibv_sge sge_of(const struct ibv_mr *mr, const uint8_t *at, unsigned bytes)
{
	return (struct ibv_sge){ (uintptr_t)at, bytes, mr->lkey };
}

static unsigned describe_large(const struct ipoib_slots *s, const struct ipoib_packet *p,
                               unsigned mtu, struct ipoib_piece *piece)
{
	unsigned slot = (unsigned)s->current;
	const struct ibv_mr *mr = area_of(s, slot)->mr;
	struct ipoib_segmenter segmenter;
	const uint8_t *payload;
	unsigned header, bytes, n = 0;

	if (!ipoib_segment_begin(&segmenter, p, mtu) ||
	    ipoib_segment_count(&segmenter) > IPOIB_MAX_SEGMENT)
		return 0;
	for (uint8_t(*out)[IPOIB_SEGMENT_HEADER] = slot_at(s, slot)->header;
	     (header = ipoib_segment_next(&segmenter, *out, &payload, &bytes)); out++)
		piece[n++] = (struct ipoib_piece){
			{ sge_of(mr, *out, header), sge_of(mr, payload, bytes) }, 2
		};
	return n;
}

unsigned ipoib_slots_describe(const struct ipoib_slots *s, const struct ipoib_packet *p,
                              unsigned mtu, struct ipoib_piece piece[static IPOIB_MAX_SEGMENT])
{
	unsigned slot = (unsigned)s->current;
	uint8_t *frame = slot_at(s, slot)->room + IPOIB_HEADROOM - IPOIB_HEADER_BYTES;

	if (ipoib_is_large(p))
		return describe_large(s, p, mtu, piece);
	if (p->bytes > mtu || !ipoib_finish_checksum(p))
		return 0;
	ipoib_header_encode(p->type, frame);
	piece[0] = (struct ipoib_piece){
		{ sge_of(area_of(s, slot)->mr, frame, IPOIB_HEADER_BYTES + p->bytes) }, 1
	};
	return 1;
}
