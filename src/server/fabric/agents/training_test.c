/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Width and speed of a link that comes up, by what its ends were built for and have enabled.
 */
#include <harness.h>

#include "fabric/agents/link.h"
#include "fabric/agents/training.h"
#include "fabric/testing.h"
#include "wire/sm_attr.h"

/* Two hosts back to back. */
struct env {
	struct fabric *f;
	struct fabric_port *a, *b;
};

static void build(struct env *e, enum fabric_width width, enum fabric_speed speed)
{
	for (unsigned i = 0; i < 2; i++) {
		struct fabric_port *p = e->f->hca_port[i];

		p->width = p->width_built = (uint8_t)width;
		p->speed = p->speed_built = (uint8_t)speed;
	}
}

static int setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	e->f = testing_bare_fabric(2);
	e->a = e->f->hca_port[0];
	e->b = e->f->hca_port[1];
	testing_plug(e->a, e->b);
	build(e, FABRIC_WIDTH_4X, FABRIC_SPEED_EDR);
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	fabric_free(e->f);
	free(e);
	return 0;
}

static void expect(const struct env *e, enum fabric_width width, enum fabric_speed speed)
{
	const struct fabric_port *ends[] = { e->a, e->b };

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ends[i]->state, IB_PORT_INIT);
		assert_int_equal(ends[i]->width, width);
		assert_int_equal(ends[i]->speed, speed);
		assert_int_equal(shm_port_at(e->f->region, i)->active_width, width);
		assert_int_equal(shm_port_at(e->f->region, i)->active_speed, speed);
	}
}

CASE_WITH(a_link_comes_up_as_it_was_built, setup, teardown)
{
	static const uint8_t widths[] = { FABRIC_WIDTH_1X, FABRIC_WIDTH_2X, FABRIC_WIDTH_4X,
		                          FABRIC_WIDTH_8X, FABRIC_WIDTH_12X };
	static const uint8_t speeds[] = { FABRIC_SPEED_SDR,   FABRIC_SPEED_DDR, FABRIC_SPEED_QDR,
		                          FABRIC_SPEED_FDR10, FABRIC_SPEED_FDR, FABRIC_SPEED_EDR,
		                          FABRIC_SPEED_HDR,   FABRIC_SPEED_NDR };
	struct env *e = *state;

	for (size_t i = 0; i < sizeof(widths); i++) {
		for (size_t k = 0; k < sizeof(speeds); k++) {
			build(e, widths[i], speeds[k]);
			fabric_port_retrain(e->f, e->a);
			expect(e, widths[i], speeds[k]);
		}
	}
}

CASE_WITH(what_is_enabled_counts_from_the_next_training_on, setup, teardown)
{
	struct env *e = *state;

	e->a->link.width_enabled = LINK_WIDTH_1X;
	e->b->link.speed_ext_enabled = LINK_SPEED_EXT_FDR;
	assert_int_equal(e->a->width, FABRIC_WIDTH_4X);
	fabric_port_retrain(e->f, e->b);
	expect(e, FABRIC_WIDTH_1X, FABRIC_SPEED_FDR);
}

CASE_WITH(without_fdr10_a_link_has_qdr, setup, teardown)
{
	struct env *e = *state;

	build(e, FABRIC_WIDTH_4X, FABRIC_SPEED_FDR10);
	e->a->link.fdr10_off = true;
	fabric_port_retrain(e->f, e->a);
	expect(e, FABRIC_WIDTH_4X, FABRIC_SPEED_QDR);
}

CASE_WITH(without_extended_speeds_the_others_are_left, setup, teardown)
{
	struct env *e = *state;

	e->a->link.speed_ext_enabled = LINK_SPEED_EXT_DISABLE;
	fabric_port_retrain(e->f, e->a);
	expect(e, FABRIC_WIDTH_4X, FABRIC_SPEED_QDR);
	e->a->link.speed_enabled = LINK_SPEED_SDR | LINK_SPEED_DDR;
	fabric_port_retrain(e->f, e->a);
	expect(e, FABRIC_WIDTH_4X, FABRIC_SPEED_DDR);
}

CASE_WITH(the_slower_end_decides, setup, teardown)
{
	struct env *e = *state;

	e->b->speed_built = FABRIC_SPEED_DDR;
	e->b->width_built = FABRIC_WIDTH_1X;
	fabric_port_retrain(e->f, e->a);
	expect(e, FABRIC_WIDTH_1X, FABRIC_SPEED_DDR);
}

CASE_WITH(a_bad_link_trains_to_what_is_left, setup, teardown)
{
	struct fabric_link_fault bad = { .widths = fabric_widths_up_to(FABRIC_WIDTH_2X) };
	struct env *e = *state;

	e->a->state = e->b->state = IB_PORT_ACTIVE;
	assert_true(fabric_link_set_fault(e->f, e->a, &bad));
	expect(e, FABRIC_WIDTH_1X, FABRIC_SPEED_EDR); /* 4X ports have no 2X */
	assert_int_equal(e->b->stats.link_downed, 1);
	assert_false(fabric_link_set_fault(e->f, e->b, &bad));
	bad.speeds = fabric_speeds_up_to(FABRIC_SPEED_DDR);
	assert_true(fabric_link_set_fault(e->f, e->b, &bad));
	expect(e, FABRIC_WIDTH_1X, FABRIC_SPEED_DDR);
	fabric_port_retrain(e->f, e->a); /* by whomever */
	expect(e, FABRIC_WIDTH_1X, FABRIC_SPEED_DDR);
	assert_int_equal(e->a->stats.link_downed, 3);
	assert_true(fabric_link_set_fault(e->f, e->a, &(struct fabric_link_fault){ 0 }));
	expect(e, FABRIC_WIDTH_4X, FABRIC_SPEED_EDR);
}

CASE_WITH(a_fault_that_leaves_what_there_is_changes_nothing, setup, teardown)
{
	struct env *e = *state;

	e->a->state = e->b->state = IB_PORT_ACTIVE;
	e->a->link.width_enabled = LINK_WIDTH_1X; /* has to wait for the next training */
	assert_false(fabric_link_set_fault(e->f, e->a, &(struct fabric_link_fault){ 0 }));
	e->a->link.width_enabled = 0;
	assert_false(fabric_link_set_fault(
	        e->f, e->a,
	        &(struct fabric_link_fault){ .widths = fabric_widths_up_to(FABRIC_WIDTH_4X),
	                                     .speeds = fabric_speeds_up_to(FABRIC_SPEED_EDR) }));
	assert_int_equal(e->a->state, IB_PORT_ACTIVE);
	assert_int_equal(e->a->stats.link_downed, 0);
}

CASE_WITH(a_link_whose_last_width_is_disabled_stays_down, setup, teardown)
{
	struct fabric_link_fault bad = { .widths = fabric_widths_up_to(FABRIC_WIDTH_1X) };
	struct env *e = *state;

	e->a->link.width_enabled = LINK_WIDTH_4X;
	assert_true(fabric_link_set_fault(e->f, e->a, &bad));
	assert_int_equal(e->a->state, IB_PORT_DOWN);
	assert_true(fabric_link_set_fault(e->f, e->a, &(struct fabric_link_fault){ 0 }));
	expect(e, FABRIC_WIDTH_4X, FABRIC_SPEED_EDR);
}

CASE_WITH(a_fault_and_whoever_sets_a_link_down_do_not_know_each_other, setup, teardown)
{
	const struct fabric_link_fault down = { .down = true }, none = { 0 };
	struct env *e = *state;

	assert_true(fabric_link_set_fault(e->f, e->a, &down));
	assert_int_equal(e->b->state, IB_PORT_DOWN);
	assert_int_equal(fabric_link_set(e->f, e->a, true), -EBUSY);
	fabric_port_poll(e->f, e->b);
	assert_int_equal(e->b->state, IB_PORT_DOWN);
	assert_int_equal(fabric_link_set(e->f, e->b, false), 0);
	assert_false(fabric_link_set_fault(e->f, e->b, &none));
	assert_int_equal(e->b->state, IB_PORT_DOWN);
	assert_int_equal(fabric_link_set(e->f, e->b, true), 0);
	expect(e, FABRIC_WIDTH_4X, FABRIC_SPEED_EDR);
	assert_int_equal(e->b->stats.link_downed, 1);
}

CASE_WITH(ends_with_nothing_in_common_stay_down, setup, teardown)
{
	struct env *e = *state;

	e->a->link.width_enabled = LINK_WIDTH_1X;
	e->b->link.width_enabled = LINK_WIDTH_4X;
	fabric_port_retrain(e->f, e->a);
	assert_int_equal(e->a->state, IB_PORT_DOWN);
	assert_int_equal(e->b->state, IB_PORT_DOWN);
	fabric_port_poll(e->f, e->a);
	assert_int_equal(e->a->state, IB_PORT_DOWN);
	e->b->link.width_enabled = LINK_WIDTH_1X | LINK_WIDTH_4X;
	fabric_port_poll(e->f, e->a);
	expect(e, FABRIC_WIDTH_1X, FABRIC_SPEED_EDR);
}
