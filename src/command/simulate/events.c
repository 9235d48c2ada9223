/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A binary heap of events: see events.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "simulate/events.h"

static bool before(const struct simulate_event *a, const struct simulate_event *b)
{
	return a->at_ps != b->at_ps ? a->at_ps < b->at_ps : a->number < b->number;
}

int simulate_events_add(struct simulate_events *e, const struct simulate_event *event)
{
	struct simulate_event new = *event;
	uint32_t i = e->n;

	if (e->n == e->room && base_array_reserve(&e->heap, &e->room, (size_t)e->n + 1))
		return -ENOMEM;
	new.number = e->added++;
	e->n++;
	for (; i && before(&new, &e->heap[(i - 1) / 2]); i = (i - 1) / 2)
		e->heap[i] = e->heap[(i - 1) / 2];
	e->heap[i] = new;
	return 0;
}

struct simulate_event simulate_events_take(struct simulate_events *e)
{
	struct simulate_event first = e->heap[0], last = e->heap[--e->n];
	uint32_t i = 0;

	for (uint32_t k = 1; k < e->n; k = 2 * i + 1) {
		if (k + 1 < e->n && before(&e->heap[k + 1], &e->heap[k]))
			k++;
		if (!before(&e->heap[k], &last))
			break;
		e->heap[i] = e->heap[k];
		i = k;
	}
	e->heap[i] = last;
	return first;
}

void simulate_events_fini(struct simulate_events *e)
{
	free(e->heap);
	*e = (struct simulate_events){ 0 };
}
