/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The attach tables: limits, attaching twice, by several MLIDs, detaching.
 */
#include <harness.h>

#include "fabric/testing.h"

#define MLID 0xC001

static int setup(void **state)
{
	struct fabric *f = testing_fabric(2);

	for (uint32_t qpn = 2; qpn < 20; qpn++)
		testing_qp(f, qpn, f->hca_port[0]);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	fabric_free(*state);
	return 0;
}

static int attach(struct fabric *f, uint32_t qpn, unsigned group, uint16_t mlid)
{
	struct ib_gid mgid = testing_mgid(group);

	return fabric_attach_add(f, 0, qpn, &mgid, mlid);
}

static int detach(struct fabric *f, uint32_t qpn, unsigned group, uint16_t mlid)
{
	struct ib_gid mgid = testing_mgid(group);

	return fabric_attach_remove(f, 0, qpn, &mgid, mlid);
}

static unsigned entries(struct fabric *f, unsigned group)
{
	struct ib_gid mgid = testing_mgid(group);
	const struct fabric_attached *g = fabric_attach_find(f, 0, &mgid);

	return g ? g->n : 0;
}

CASE_WITH(attaching_twice_makes_one_attachment, setup, teardown)
{
	struct fabric *f = *state;

	assert_int_equal(attach(f, 2, 1, MLID), 0);
	assert_int_equal(attach(f, 2, 1, MLID), 0);
	assert_int_equal(fabric_attach_count(f, 2), 1);
	assert_int_equal(detach(f, 2, 1, MLID), 0);
	assert_int_equal(detach(f, 2, 1, MLID), -EINVAL);
	assert_int_equal(fabric_attach_count(f, 2), 0);
}

CASE_WITH(detaching_must_name_what_attaching_named, setup, teardown)
{
	struct fabric *f = *state;
	struct ib_gid mgid = testing_mgid(1);

	assert_int_equal(detach(f, 2, 1, MLID), -EINVAL);
	assert_int_equal(attach(f, 2, 1, MLID), 0);
	assert_int_equal(detach(f, 2, 1, MLID + 1), -EINVAL);
	assert_int_equal(detach(f, 2, 2, MLID), -EINVAL);
	assert_int_equal(detach(f, 3, 1, MLID), -EINVAL);
	assert_int_equal(fabric_attach_remove(f, 1, 2, &mgid, MLID), -EINVAL); /* another HCA */
	assert_int_equal(fabric_attach_count(f, 2), 1);
}

CASE_WITH(another_mlid_is_another_attachment, setup, teardown)
{
	struct fabric *f = *state;

	assert_int_equal(attach(f, 2, 1, MLID), 0);
	assert_int_equal(attach(f, 2, 1, MLID + 1), 0);
	assert_int_equal(fabric_attach_count(f, 2), 2);
	assert_int_equal(detach(f, 2, 1, MLID), 0);
	assert_int_equal(fabric_attach_count(f, 2), 1);
	assert_int_equal(detach(f, 2, 1, MLID + 1), 0);
	assert_int_equal(entries(f, 1), 0);
}

CASE_WITH(exactly_one_of_a_qps_attachments_stands_for_it, setup, teardown)
{
	struct fabric *f = *state;
	struct ib_gid mgid = testing_mgid(1);
	unsigned seed = 3;

	for (int step = 0; step < 2000; step++) {
		const struct fabric_attached *g;
		uint16_t mlid = (uint16_t)(MLID + rand_r(&seed) % 4);
		unsigned first[20] = { 0 }, total[20] = { 0 };

		if (rand_r(&seed) % 2)
			attach(f, 2 + rand_r(&seed) % 3, 1, mlid);
		else
			detach(f, 2 + rand_r(&seed) % 3, 1, mlid);
		g = fabric_attach_find(f, 0, &mgid);
		for (uint32_t i = 0; g && i < g->n; i++) {
			const struct fabric_attach_place *place =
			        &f->attach->qp[g->entry[i].qpn].at[g->entry[i].of_qp];

			assert_true(place->group == g && place->i == i);
			total[g->entry[i].qpn]++;
			first[g->entry[i].qpn] += !g->entry[i].again;
		}
		for (uint32_t qpn = 2; qpn < 5; qpn++) {
			assert_int_equal(total[qpn], fabric_attach_count(f, qpn));
			assert_int_equal(first[qpn], total[qpn] != 0);
		}
	}
}

CASE_WITH(groups_per_hca_are_limited, setup, teardown)
{
	struct fabric *f = *state;
	struct ib_gid other = testing_mgid(9);

	f->settings.max_mcast_grp = 2;
	assert_int_equal(attach(f, 2, 1, MLID), 0);
	assert_int_equal(attach(f, 2, 2, MLID), 0);
	assert_int_equal(attach(f, 2, 3, MLID), -ENOMEM);
	assert_int_equal(attach(f, 3, 2, MLID), 0); /* no new group */
	assert_int_equal(fabric_attach_add(f, 1, 4, &other, MLID), 0);
	assert_int_equal(detach(f, 2, 1, MLID), 0);
	assert_int_equal(attach(f, 2, 3, MLID), 0);
}

CASE_WITH(attachments_per_group_are_limited, setup, teardown)
{
	struct fabric *f = *state;

	f->settings.max_mcast_qp_attach = 2;
	assert_int_equal(attach(f, 2, 1, MLID), 0);
	assert_int_equal(attach(f, 3, 1, MLID), 0);
	assert_int_equal(attach(f, 4, 1, MLID), -ENOMEM);
	assert_int_equal(attach(f, 3, 1, MLID), 0); /* it is attached already */
	assert_int_equal(attach(f, 4, 2, MLID), 0);
	assert_int_equal(detach(f, 2, 1, MLID), 0);
	assert_int_equal(attach(f, 4, 1, MLID), 0);
}

CASE_WITH(attachments_per_hca_are_limited, setup, teardown)
{
	struct fabric *f = *state;

	f->settings.max_total_mcast_qp_attach = 2;
	assert_int_equal(attach(f, 2, 1, MLID), 0);
	assert_int_equal(attach(f, 2, 2, MLID), 0);
	assert_int_equal(attach(f, 2, 3, MLID), -ENOMEM);
	assert_int_equal(attach(f, 3, 1, MLID), -ENOMEM);
	assert_int_equal(detach(f, 2, 1, MLID), 0);
	assert_int_equal(attach(f, 3, 1, MLID), 0);
}

CASE_WITH(a_qp_counts_once_for_a_group_however_many_mlids_it_has, setup, teardown)
{
	struct fabric *f = *state;

	f->settings.max_mcast_qp_attach = 2;
	f->settings.max_total_mcast_qp_attach = 2;
	for (uint16_t i = 0; i < 9; i++)
		assert_int_equal(attach(f, 2, 1, MLID + i), 0);
	assert_int_equal(attach(f, 3, 1, MLID), 0);
	assert_int_equal(attach(f, 4, 1, MLID), -ENOMEM);
	assert_int_equal(detach(f, 2, 1, MLID), 0); /* others still stand for it */
	assert_int_equal(attach(f, 4, 1, MLID), -ENOMEM);
	for (uint16_t i = 1; i < 9; i++)
		assert_int_equal(detach(f, 2, 1, MLID + i), 0);
	assert_int_equal(attach(f, 4, 1, MLID), 0);
	assert_int_equal(f->attach->hca[0].again, 0);
}

CASE_WITH(more_mlids_than_an_hca_keeps_are_refused, setup, teardown)
{
	struct fabric *f = *state;

	assert_int_equal(attach(f, 2, 1, MLID), 0);
	f->attach->hca[0].again = FABRIC_ATTACH_MAX_AGAIN;
	assert_int_equal(attach(f, 2, 1, MLID + 1), -ENOMEM);
	assert_int_equal(attach(f, 3, 1, MLID), 0);
	f->attach->hca[0].again = 0;
}

CASE_WITH(a_limit_of_zero_refuses_every_attachment, setup, teardown)
{
	struct fabric *f = *state;

	f->settings.max_mcast_qp_attach = 0;
	assert_int_equal(attach(f, 2, 1, MLID), -ENOMEM);
	assert_int_equal(entries(f, 1), 0);
	assert_int_equal(f->attach->groups.n, 0);
}

CASE_WITH(a_refused_attachment_leaves_nothing_behind, setup, teardown)
{
	struct fabric *f = *state;

	f->settings.max_mcast_grp = 0;
	assert_int_equal(attach(f, 2, 1, MLID), -ENOMEM);
	assert_int_equal(fabric_attach_count(f, 2), 0);
	assert_int_equal(f->attach->hca[0].groups, 0);
	assert_int_equal(f->attach->hca[0].qps, 0);
}

static void drop_all(struct fabric *f, uint32_t qpn)
{
	while (fabric_attach_count(f, qpn))
		fabric_attach_drop(f, qpn);
}

CASE_WITH(a_qp_that_ends_is_dropped_from_every_group, setup, teardown)
{
	struct fabric *f = *state;

	for (unsigned group = 0; group < 200; group++) {
		assert_int_equal(attach(f, 2, group, MLID), 0);
		assert_int_equal(attach(f, 2, group, MLID + 1), 0);
		if (group % 2)
			assert_int_equal(attach(f, 3, group, MLID), 0);
	}
	drop_all(f, 2);
	assert_int_equal(fabric_attach_count(f, 2), 0);
	assert_int_equal(fabric_attach_count(f, 3), 100);
	for (unsigned group = 0; group < 200; group++)
		assert_int_equal(entries(f, group), group % 2);
	assert_int_equal(f->attach->hca[0].groups, 100);
	assert_int_equal(f->attach->hca[0].qps, 100);
	fabric_attach_drop(f, 2); /* nothing is left to drop */
	drop_all(f, 3);
	assert_int_equal(f->attach->groups.n, 0);
}

CASE_WITH(groups_of_two_hcas_are_apart, setup, teardown)
{
	struct fabric *f = *state;
	struct ib_gid mgid = testing_mgid(1);

	testing_qp(f, 30, f->hca_port[1]);
	assert_int_equal(attach(f, 2, 1, MLID), 0);
	assert_int_equal(fabric_attach_add(f, 1, 30, &mgid, MLID), 0);
	drop_all(f, 30);
	assert_int_equal(entries(f, 1), 1);
	assert_null(fabric_attach_find(f, 1, &mgid));
}
