/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that gets other pages: see moves.h.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "checked/moves.h"
#include "checked/places.h"
#include "checked/report.h"

#define MOST 64 /* pieces of a region that are remembered */

static bool fork_is_safe;

static bool covers(const struct checked_moved *of, uint64_t from, uint64_t to)
{
	return of->from <= from && of->to >= to;
}

/* Pieces within the new one are forgotten. */
static void forget_within(struct checked_object *region, uint64_t from, uint64_t to)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < region->n_moved; i++)
		if (!covers(&(struct checked_moved){ .from = from, .to = to },
		            region->moved[i].from, region->moved[i].to))
			region->moved[kept++] = region->moved[i];
	region->n_moved = kept;
}

static void note(struct checked_object *region, const struct checked_move *m, uint32_t place)
{
	const uint64_t from = m->from > region->range.from ? m->from : region->range.from;
	const uint64_t to = m->to < region->range.to ? m->to : region->range.to;

	if (!region->moved)
		region->moved = calloc(MOST, sizeof(*region->moved));
	if (!region->moved)
		return;
	forget_within(region, from, to);
	if (region->n_moved < MOST)
		region->moved[region->n_moved++] =
		        (struct checked_moved){ from, to, m->how, place };
}

/* A card fetches the pages of on-demand regions as they are. */
void checked_move(const struct checked_move *m)
{
	struct checked_object *o = checked_region_first(m->from, m->to);
	uint32_t place = 0;

	for (; o; o = checked_region_next(o, m->from, m->to)) {
		if (o->is_on_demand)
			continue;
		if (!place)
			place = checked_place(m->caller);
		note(o, m, place);
	}
}

void checked_moves_check(const struct hca_record *r, uint32_t place,
                         const struct checked_object *region, uint64_t from, uint64_t to)
{
	for (uint32_t i = 0; i < region->n_moved; i++) {
		const struct checked_moved *m = &region->moved[i];
		const struct checked_report report = { .rule = CHECKED_RULE_MOVED,
			                               .at = { { m->how, m->place },
			                                       { "posted", place, true } } };

		if (m->from >= to || m->to <= from)
			continue;
		checked_report(&report,
		               "the request with wr_id %" PRIu64 " names %" PRIu64
		               " bytes at 0x%" PRIx64 " of the region with lkey 0x%" PRIx32
		               ", which was registered before the %" PRIu64 " bytes at 0x%" PRIx64
		               " were %s",
		               r->wr_id, to - from, from, region->lkey, m->to - m->from, m->from,
		               m->how);
		return;
	}
}

/* ---- fork ---- */

void checked_fork_is_safe(void)
{
	fork_is_safe = true;
}

/* Linux 5.12 and later copy pinned pages for the child, older ones leave them to it. */
void checked_forks(void)
{
	struct checked_report report = { .rule = CHECKED_RULE_FORK, .at = { [1] = { .is = "" } } };
	const uint32_t n = checked_objects_count(CHECKED_MR);

	if (!n || fork_is_safe || getenv("RDMAV_FORK_SAFE") || getenv("IBV_FORK_SAFE"))
		return;
	report.at[0].is = "forked";
	report.at[0].place = checked_place(NULL);
	checked_report(&report, "%" PRIu32 " memory region%s registered", n,
	               n == 1 ? " is" : "s are");
}
