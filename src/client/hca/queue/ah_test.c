/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Address handles of a port on InfiniBand and of one on Ethernet: which attributes are right, what
 * becomes of them, that a handle is itself as long as it lives, and the handle for a reply. There
 * is no daemon: the ports are this program's own.
 */
#include <harness.h>

#include "base/util.h"
#include "hca/process/domain.h"
#include "hca/queue/ah.h"
#include "wire/grh.h"
#include "wire/ip.h"

enum { IB = 1, ETHERNET };

struct lab {
	struct hca_process process;
	struct hca_context ctx;
	struct hca_domain domain;
	struct hca_pd pd;
	struct shm_gid_users users;
};

static union ibv_gid gid(const char *text)
{
	union ibv_gid g;

	assert_int_equal(inet_pton(AF_INET6, text, g.raw), 1);
	return g;
}

static void set_gid(struct lab *l, unsigned port, unsigned index, const char *text)
{
	const union ibv_gid g = gid(text);

	memcpy(shm_port_at(&l->process.region, port - 1)->gid[index].raw, g.raw, sizeof(g.raw));
}

static int begin(void **state)
{
	struct lab *l = aligned_alloc(128, base_align_up(sizeof(*l), 128));
	struct shm_hca *h;

	assert_non_null(l);
	memset((void *)l, 0, sizeof(*l));
	*state = l;
	assert_int_equal(shm_region_create(&l->process.region, 1, 2), 0);
	h = shm_hca_at(&l->process.region, 0);
	h->first_port = 0;
	h->n_ports = 2;
	STAILQ_INIT(&l->process.free_ahs);
	l->ctx.process = &l->process;
	l->pd.domain = &l->domain;
	l->pd.users = 1;
	l->pd.pd.context = &l->ctx.vctx.context;
	for (unsigned port = IB; port <= ETHERNET; port++) {
		struct shm_port *p = shm_port_at(&l->process.region, port - 1);

		p->n_gids = SHM_GIDS;
		p->lmc = 2;
		p->link_layer = port == IB ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
	}
	set_gid(l, IB, 0, "fe80::1");
	set_gid(l, ETHERNET, 0, "fe80::2");
	set_gid(l, ETHERNET, 1, "::ffff:10.0.0.2");
	return 0;
}

/* Each handle was destroyed, and its memory lies in the list. */
static int end(void **state)
{
	struct lab *l = *state;
	const bool is_clean = l->pd.users == 1 && !l->domain.users;
	struct hca_ah *ah;

	while ((ah = STAILQ_FIRST(&l->process.free_ahs))) {
		STAILQ_REMOVE_HEAD(&l->process.free_ahs, free);
		free(ah);
	}
	shm_region_unmap(&l->process.region);
	free(l);
	return is_clean ? 0 : -1;
}

static struct hca_ah *create(struct lab *l, const struct ibv_ah_attr *attr, int *error)
{
	struct hca_ah *ah = hca_ah_create(&l->ctx, &l->pd.pd, attr, error);

	assert_int_equal(!ah, *error != 0);
	return ah;
}

static struct hca_ah *to_lid(struct lab *l, uint16_t lid)
{
	const struct ibv_ah_attr attr = { .dlid = lid, .port_num = IB };
	int error;

	return create(l, &attr, &error);
}

/* ---- attributes ---- */

CASE_WITH(attributes_have_to_be_right, begin, end)
{
	const union ibv_gid unicast = gid("fe80::9"), mcast = gid("ff12::9");
	const struct {
		struct ibv_ah_attr attr;
		bool is_right;
	} attrs[] = {
		{ { .port_num = IB, .dlid = 1 }, true },
		{ { .port_num = IB, .dlid = 0 }, false },
		{ { .port_num = 0, .dlid = 1 }, false },
		{ { .port_num = 3, .dlid = 1 }, false },
		{ { .port_num = IB, .dlid = 0xBFFF }, true },
		{ { .port_num = IB, .dlid = 0xC000 }, false }, /* a group wants its GID */
		{ { .port_num = IB, .dlid = 0xFFFF }, false },
		{ { .port_num = IB, .dlid = 0xC000, .is_global = 1, .grh.dgid = mcast }, true },
		{ { .port_num = IB, .dlid = 0xC000, .is_global = 1, .grh.dgid = unicast }, false },
		{ { .port_num = IB, .dlid = 5, .is_global = 1, .grh.dgid = unicast }, true },
		{ { .port_num = IB, .dlid = 0, .is_global = 1, .grh.dgid = unicast }, false },
		{ { .port_num = IB,
		    .dlid = 5,
		    .is_global = 1,
		    .grh = { .dgid = unicast, .sgid_index = 1 } },
		  false },
		{ { .port_num = IB,
		    .dlid = 5,
		    .is_global = 1,
		    .grh = { .dgid = unicast, .sgid_index = 255 } },
		  false },
		{ { .port_num = ETHERNET, .dlid = 5 }, false },
	};
	struct lab *l = *state;

	for (size_t i = 0; EACH_ROW(i, attrs); i++) {
		int error;
		struct hca_ah *ah = create(l, &attrs[i].attr, &error);

		assert_int_equal(error, attrs[i].is_right ? 0 : -EINVAL);
		if (ah)
			assert_int_equal(hca_ah_destroy(ah), 0);
	}
}

/* For connections, which have one peer, and whose source and destination are of one kind. */
CASE_WITH(a_path_s_attributes_have_to_be_right, begin, end)
{
	const union ibv_gid v6 = gid("fe80::9"), v4 = gid("::ffff:10.0.0.9");
	const union ibv_gid mcast = gid("ff12::9"), none = gid("::");
	const struct {
		struct ibv_ah_attr attr;
		bool is_right;
	} attrs[] = {
		{ { .port_num = IB, .dlid = 1 }, true },
		{ { .port_num = IB, .dlid = 1, .static_rate = IBV_RATE_10_GBPS }, true },
		{ { .port_num = IB, .dlid = 1, .static_rate = 99 }, false },
		{ { .port_num = IB, .dlid = 0xC000, .is_global = 1, .grh.dgid = mcast }, false },
		{ { .port_num = ETHERNET, .is_global = 1, .grh.dgid = v6 }, true },
		{ { .port_num = ETHERNET, .is_global = 1, .grh.dgid = v4 }, false },
		{ { .port_num = ETHERNET, .is_global = 1, .grh.dgid = none }, false },
		{ { .port_num = ETHERNET, .is_global = 1, .grh = { .dgid = v4, .sgid_index = 1 } },
		  true },
		{ { .port_num = ETHERNET, .is_global = 1, .grh = { .dgid = v6, .sgid_index = 1 } },
		  false },
		{ { .port_num = ETHERNET, .is_global = 1, .grh = { .dgid = v6, .sgid_index = 2 } },
		  false },
	};
	struct lab *l = *state;
	struct hca_ah ah = { 0 };

	for (size_t i = 0; EACH_ROW(i, attrs); i++) {
		struct ibv_ah_attr attr = attrs[i].attr;

		assert_int_equal(hca_ah_fill(&ah, &l->ctx, &attr), attrs[i].is_right ? 0 : -EINVAL);
	}
	hca_ah_release(&ah);
}

CASE_WITH(a_handle_is_what_its_attributes_say, begin, end)
{
	const union ibv_gid to = gid("ff12::9");
	const struct ibv_ah_attr attr = { .port_num = IB,
		                          .dlid = 0xC001,
		                          .sl = 0x1F,
		                          .src_path_bits = 7,
		                          .is_global = 1,
		                          .grh = { .dgid = to,
		                                   .flow_label = 0xFFF12345,
		                                   .traffic_class = 0xAB,
		                                   .hop_limit = 3 } };
	struct lab *l = *state;
	int error;
	struct hca_ah *ah = create(l, &attr, &error);

	assert_int_equal(ah->dest.lid, 0xC001);
	assert_int_equal(ah->dest.path_bits, 3); /* as many as the port's LMC has */
	assert_int_equal(ah->sl, 15);
	assert_memory_equal(ah->dest.gid, to.raw, 16);
	assert_int_equal(ah->class_flow, 0xABu << 20 | 0x12345);
	assert_int_equal(ah->hop_limit, 3);
	assert_true(ah->is_mcast);
	assert_int_equal(ah->arrival_flags, SHM_ARRIVAL_GRH);
	assert_int_equal(hca_ah_destroy(ah), 0);
}

CASE_WITH(on_ethernet_lids_mean_nothing_and_packets_live, begin, end)
{
	struct ibv_ah_attr attr = { .port_num = ETHERNET,
		                    .dlid = 77,
		                    .sl = 0xF,
		                    .src_path_bits = 3,
		                    .is_global = 1,
		                    .grh.dgid = gid("fe80::9") };
	struct lab *l = *state;
	struct hca_ah ah = { 0 };

	assert_int_equal(hca_ah_fill(&ah, &l->ctx, &attr), 0);
	assert_int_not_equal(ah.dest.lid, 77);
	assert_int_equal(ah.dest.path_bits, 0);
	assert_int_equal(attr.sl, 7); /* a priority has three bits */
	assert_int_equal(ah.dest.sl, 0);
	assert_true(ah.hop_limit > 0);
	assert_int_equal(ah.arrival_flags, SHM_ARRIVAL_GRH | SHM_ARRIVAL_ETHERNET);
	hca_ah_release(&ah);
}

/* ---- lives ---- */

CASE_WITH(a_handle_is_destroyed_once, begin, end)
{
	struct lab *l = *state;
	struct hca_ah *a = to_lid(l, 1), *b = to_lid(l, 1);

	assert_int_not_equal(a->serial, b->serial);
	assert_int_equal(l->pd.users, 3);
	assert_int_equal(hca_ah_destroy(a), 0);
	assert_int_equal(hca_ah_destroy(a), -EINVAL);
	assert_int_equal(l->pd.users, 2);
	assert_int_equal(hca_ah_destroy(b), 0);
}

/* Senders remember the last handle by its serial: no two have the same, whatever memory they lie
 * in.
 */
CASE_WITH(no_handle_is_taken_for_an_earlier_one, begin, end)
{
	struct lab *l = *state;
	uint64_t last = 0;

	for (unsigned i = 0; i < 100; i++) {
		struct hca_ah *ah = to_lid(l, (uint16_t)(1 + i));

		assert_true(ah->serial > last);
		last = ah->serial;
		assert_int_equal(ah->dest.lid, 1 + i);
		assert_null(atomic_load(&ah->flow));
		assert_int_equal(hca_ah_destroy(ah), 0);
		assert_int_equal(ah->serial, 0);
	}
}

CASE_WITH(places_of_gids_are_counted_on_ethernet, begin, end)
{
	struct ibv_ah_attr attr = { .port_num = ETHERNET,
		                    .is_global = 1,
		                    .grh = { .dgid = gid("::ffff:10.0.0.9"), .sgid_index = 1 } };
	struct lab *l = *state;
	struct hca_ah ah = { 0 }, copy = { 0 };

	l->ctx.gid_users = &l->users;
	assert_int_equal(hca_ah_fill(&ah, &l->ctx, &attr), 0);
	assert_int_equal(l->users.n[1], 1);
	hca_ah_copy(&copy, &ah);
	assert_int_equal(l->users.n[1], 2);
	assert_int_equal(copy.serial, 0); /* it is no handle that senders could remember */
	attr.grh.sgid_index = 0;
	attr.grh.dgid = gid("fe80::9");
	assert_int_equal(hca_ah_fill(&ah, &l->ctx, &attr), 0); /* by another place */
	assert_int_equal(l->users.n[1], 1);
	assert_int_equal(l->users.n[0], 1);
	hca_ah_release(&copy);
	hca_ah_release(&copy);
	hca_ah_release(&ah);
	assert_int_equal(l->users.n[0] + l->users.n[1], 0);
}

/* ---- replies ---- */

static int reply(struct lab *l, unsigned port, const void *grh, struct ibv_ah_attr *attr)
{
	const struct ibv_wc wc = {
		.slid = 5, .sl = 2, .dlid_path_bits = 1, .wc_flags = grh ? IBV_WC_GRH : 0
	};

	return hca_ah_init_from_wc(&l->ctx, port, &wc, grh, attr);
}

static void make_grh(const char *from, const char *to, uint8_t out[IB_GRH_BYTES])
{
	struct wire_grh h = { .traffic_class = 4, .flow_label = 5, .hop_limit = 6 };
	const union ibv_gid source = gid(from), destination = gid(to);

	memcpy(h.sgid.raw, source.raw, 16);
	memcpy(h.dgid.raw, destination.raw, 16);
	wire_grh_encode(&h, out);
}

CASE_WITH(a_reply_goes_back_the_way_the_message_came, begin, end)
{
	struct lab *l = *state;
	uint8_t grh[IB_GRH_BYTES];
	const union ibv_gid from = gid("fe80::9");
	struct ibv_ah_attr attr;

	assert_int_equal(reply(l, IB, NULL, &attr), 0);
	assert_int_equal(attr.dlid, 5);
	assert_int_equal(attr.sl, 2);
	assert_int_equal(attr.src_path_bits, 1);
	assert_int_equal(attr.port_num, IB);
	assert_false(attr.is_global);
	make_grh("fe80::9", "fe80::1", grh);
	assert_int_equal(reply(l, IB, grh, &attr), 0);
	assert_true(attr.is_global);
	assert_memory_equal(attr.grh.dgid.raw, from.raw, 16);
	assert_int_equal(attr.grh.sgid_index, 0);
	assert_int_equal(attr.grh.traffic_class, 4);
	assert_int_equal(attr.grh.flow_label, 5);
	assert_int_equal(reply(l, 3, NULL, &attr), -EINVAL);
}

CASE_WITH(a_message_to_nobody_here_has_no_reply, begin, end)
{
	struct lab *l = *state;
	uint8_t grh[IB_GRH_BYTES];
	struct ibv_ah_attr attr;

	make_grh("fe80::9", "ff12::1", grh);
	assert_int_equal(reply(l, IB, grh, &attr), -EINVAL);
	make_grh("fe80::9", "fe80::77", grh);
	assert_int_equal(reply(l, IB, grh, &attr), -EINVAL);
}

/* By an IPv4 header in the last 20 of 40 bytes, with its checksum. */
CASE_WITH(a_reply_on_ethernet_goes_by_the_ip_header, begin, end)
{
	uint8_t header[IB_GRH_BYTES] = { [20] = 0x45, [21] = 8, [28] = 64, [29] = 17,
		                         [32] = 10,   [35] = 9, [36] = 10, [39] = 2 };
	const union ibv_gid from = gid("::ffff:10.0.0.9");
	struct lab *l = *state;
	struct ibv_ah_attr attr;
	uint32_t sum = 0;

	for (unsigned i = 20; i < 40; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	sum = 0xFFFF - ((sum & 0xFFFF) + (sum >> 16));
	header[30] = (uint8_t)(sum >> 8);
	header[31] = (uint8_t)sum;
	assert_int_equal(reply(l, ETHERNET, header, &attr), 0);
	assert_memory_equal(attr.grh.dgid.raw, from.raw, 16);
	assert_int_equal(attr.grh.sgid_index, 1);
	assert_int_equal(attr.grh.traffic_class, 8);
	assert_int_equal(attr.grh.hop_limit, 64);
	header[31]++;
	assert_int_equal(reply(l, ETHERNET, header, &attr), -EINVAL);
	make_grh("fe80::9", "fe80::2", header);
	assert_int_equal(reply(l, ETHERNET, header, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, 0);
}
