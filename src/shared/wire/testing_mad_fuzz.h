/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests that send random MADs: a generator that knows the formats. Most of its MADs are almost
 * valid: class, version, method and attribute match; fields have the attribute's layout; LIDs, GIDs
 * and ports exist; paths and RMPP segments continue the last ones. Then something is changed. The
 * rest is noise.
 *
 * The same seed makes the same MADs in the same world. Each test program includes it once.
 */
#ifndef WIRE_TESTING_MAD_FUZZ_H
#define WIRE_TESTING_MAD_FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "wire/cc.h"
#include "wire/perf.h"
#include "wire/rmpp.h"
#include "wire/sa_records.h"
#include "wire/sm_attr.h"

#define FUZZ_WORLD 16 /* of each, at most */
#define FUZZ_TIDS  8

/* The numbers that exist, for MADs to use. */
struct fuzz_world {
	uint16_t lid[FUZZ_WORLD]; /* the first: of the subnet administrator */
	struct ib_gid gid[FUZZ_WORLD];
	unsigned n_lids, n_gids;
	uint8_t n_ports;
	uint64_t m_key; /* of those who have one */
};

struct fuzz {
	const struct fuzz_world *world;
	uint64_t seed;
	uint32_t segment[FUZZ_TIDS]; /* of the unfinished messages */
};

/* A MAD, and how it is sent. */
struct fuzz_mad {
	uint8_t data[MAD_BYTES];
	size_t bytes; /* what a program sends: often less, sometimes less than a header */
	uint16_t dlid;
	uint32_t src_qpn, dest_qpn;
	uint16_t pkey_index;
	uint8_t sl;
	bool has_grh;
	struct ib_gid dgid;
};

/* ---- chance ---- */

static inline uint64_t fuzz_next(struct fuzz *z)
{
	uint64_t v = z->seed += 0x9E3779B97F4A7C15;

	v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9;
	v = (v ^ v >> 27) * 0x94D049BB133111EB;
	return v ^ v >> 31;
}

static inline uint32_t fuzz_below(struct fuzz *z, uint32_t n)
{
	return (uint32_t)((fuzz_next(z) >> 32) * n >> 32);
}

/* So many times in a hundred. */
static inline bool fuzz_chance(struct fuzz *z, unsigned percent)
{
	return fuzz_below(z, 100) < percent;
}

#define FUZZ_PICK(z, list) ((list)[fuzz_below(z, ARRAY_SIZE(list))])

/* Numbers that are often limits. */
static inline uint32_t fuzz_number(struct fuzz *z)
{
	static const uint32_t edges[] = {
		0,      1,      2,       3,          4,        7,         8,      31,
		32,     63,     64,      127,        128,      254,       255,    256,
		0x3FF,  0x7FFF, 0x8000,  0xBFFF,     0xC000,   0xFFFE,    0xFFFF, 0x10000,
		0xFF00, 0x1FF,  1 << 28, 0x7FFFFFFF, 1u << 31, UINT32_MAX
	};

	return fuzz_chance(z, 70) ? FUZZ_PICK(z, edges) : (uint32_t)fuzz_next(z);
}

static inline void fuzz_bytes(struct fuzz *z, void *to, size_t bytes)
{
	uint8_t *p = to;

	while (bytes--)
		*p++ = (uint8_t)fuzz_next(z);
}

static inline uint16_t fuzz_lid(struct fuzz *z)
{
	if (z->world->n_lids && fuzz_chance(z, 85))
		return z->world->lid[fuzz_below(z, z->world->n_lids)];
	return (uint16_t)fuzz_number(z);
}

/* A GID of somebody, or one of few groups. */
static inline struct ib_gid fuzz_gid(struct fuzz *z)
{
	struct ib_gid gid = { { 0xFF, 0x12, 0x40, 0x1B, 0xFF, 0xFF } };

	if (z->world->n_gids && fuzz_chance(z, 60))
		return z->world->gid[fuzz_below(z, z->world->n_gids)];
	if (fuzz_chance(z, 80))
		gid.raw[15] = (uint8_t)fuzz_below(z, 4);
	else
		fuzz_bytes(z, &gid, fuzz_chance(z, 50) ? sizeof(gid) : 8);
	return gid;
}

/* A port's number; few are beyond the last. */
static inline uint8_t fuzz_port(struct fuzz *z)
{
	return (uint8_t)(fuzz_chance(z, 90) ? fuzz_below(z, z->world->n_ports + 2u)
	                                    : fuzz_number(z));
}

/* ---- attributes ---- */

/* A struct of this layout; its fields are small, large or 0. */
static inline void fuzz_record(struct fuzz *z, const struct wire_layout *layout, uint8_t *wire)
{
	uint8_t *host = calloc(1, layout->host_bytes);
	unsigned density = fuzz_below(z, 4) * 25;

	if (!host)
		abort();
	for (size_t i = 0; i < layout->host_bytes; i++)
		if (fuzz_chance(z, density))
			host[i] = (uint8_t)fuzz_number(z);
	wire_encode(layout, host, wire);
	free(host);
}

struct fuzz_attribute {
	uint16_t id;
	const struct wire_layout *layout;
};

/* Over @room bytes. */
static inline void fuzz_attribute(struct fuzz *z, const struct fuzz_attribute *a, uint8_t *data,
                                  size_t room)
{
	if (a->layout && a->layout->bytes <= room && fuzz_chance(z, 80))
		fuzz_record(z, a->layout, data);
	else if (fuzz_chance(z, 70))
		fuzz_bytes(z, data, room);
	for (unsigned n = fuzz_below(z, 3); n; n--) { /* GIDs stand at eight bytes */
		struct ib_gid gid = fuzz_gid(z);

		memcpy(data + fuzz_below(z, (uint32_t)(room - sizeof(gid)) / 8 + 1) * 8, &gid,
		       sizeof(gid));
	}
}

/* ---- classes ---- */

static inline void fuzz_head(struct fuzz *z, struct wire_mad *h, uint8_t class_version)
{
	h->base_version = fuzz_chance(z, 97) ? MAD_BASE_VERSION : (uint8_t)fuzz_number(z);
	h->class_version = fuzz_chance(z, 95) ? class_version : (uint8_t)fuzz_number(z);
	h->transaction_id = fuzz_chance(z, 90) ? fuzz_below(z, FUZZ_TIDS) : fuzz_next(z);
	if (fuzz_chance(z, 10))
		h->status = (uint16_t)fuzz_number(z);
	if (fuzz_chance(z, 5))
		h->method = (uint8_t)fuzz_next(z);
	if (fuzz_chance(z, 5))
		h->attribute_id = (uint16_t)fuzz_number(z);
}

/* By directed route: a path of a few hops, perhaps under way, returning, or beyond its end. */
static inline void fuzz_path(struct fuzz *z, struct wire_smp *smp)
{
	smp->mad.mgmt_class = MAD_CLASS_SUBN_DIRECTED;
	smp->hop_count = fuzz_chance(z, 95) ? (uint8_t)fuzz_below(z, 6) : (uint8_t)fuzz_number(z);
	smp->dr_slid = smp->dr_dlid = IB_LID_PERMISSIVE;
	for (unsigned i = 1; i < sizeof(smp->initial_path); i++)
		smp->initial_path[i] = i == 1 ? 1 : fuzz_port(z);
	if (fuzz_chance(z, 15))
		smp->direction = 1;
	if (smp->direction || fuzz_chance(z, 5))
		for (unsigned i = 1; i < sizeof(smp->return_path); i++)
			smp->return_path[i] = fuzz_port(z);
	if (smp->direction)
		smp->hop_pointer = (uint8_t)(smp->hop_count + 1);
	if (fuzz_chance(z, 10))
		smp->hop_pointer = (uint8_t)fuzz_below(z, 70);
	if (fuzz_chance(z, 10))
		smp->dr_slid = fuzz_lid(z);
	if (fuzz_chance(z, 10))
		smp->dr_dlid = fuzz_lid(z);
}

/* The modifier names a port, a block, or both. */
static inline uint32_t fuzz_modifier(struct fuzz *z)
{
	switch (fuzz_below(z, 6)) {
	case 0:
		return 0;
	case 1:
		return fuzz_port(z);
	case 2:
		return (uint32_t)fuzz_port(z) << 16 | fuzz_below(z, 5);
	case 3:
		return (uint32_t)fuzz_port(z) << 8 | fuzz_port(z);
	case 4:
		return fuzz_below(z, 16) << 28 | fuzz_below(z, 600);
	default:
		return fuzz_number(z);
	}
}

static inline void fuzz_smp(struct fuzz *z, struct fuzz_mad *mad)
{
	static const uint8_t methods[] = { MAD_GET, MAD_GET,  MAD_SET,          MAD_SET,
		                           MAD_SET, MAD_TRAP, MAD_TRAP_REPRESS, MAD_GET_RESP };
	static const struct fuzz_attribute attributes[] = {
		{ SMP_ATTR_NOTICE, &wire_smp_notice_layout },
		{ SMP_ATTR_NODE_DESCRIPTION, &wire_node_description_layout },
		{ SMP_ATTR_NODE_INFO, &wire_node_info_layout },
		{ SMP_ATTR_SWITCH_INFO, &wire_switch_info_layout },
		{ SMP_ATTR_GUID_INFO, &wire_guid_info_layout },
		{ SMP_ATTR_PORT_INFO, &wire_port_info_layout },
		{ SMP_ATTR_PORT_INFO, &wire_port_info_layout },
		{ SMP_ATTR_PORT_INFO, &wire_port_info_layout },
		{ SMP_ATTR_PKEY_TABLE, &wire_pkey_table_layout },
		{ SMP_ATTR_SL_TO_VL, &wire_sl_to_vl_layout },
		{ SMP_ATTR_VL_ARBITRATION, &wire_vl_arb_layout },
		{ SMP_ATTR_LINEAR_FT, &wire_linear_ft_layout },
		{ SMP_ATTR_MULTICAST_FT, &wire_multicast_ft_layout },
		{ SMP_ATTR_SM_INFO, &wire_sm_info_layout },
	};
	const struct fuzz_attribute *a = &FUZZ_PICK(z, attributes);
	struct wire_smp smp = { .mad = { .mgmt_class = MAD_CLASS_SUBN_LID,
		                         .method = FUZZ_PICK(z, methods),
		                         .attribute_id = a->id,
		                         .attribute_modifier = fuzz_modifier(z) } };

	fuzz_head(z, &smp.mad, MAD_VERSION_SUBN);
	if (fuzz_chance(z, 60))
		fuzz_path(z, &smp);
	if (fuzz_chance(z, 30))
		smp.m_key = fuzz_chance(z, 80) ? z->world->m_key : fuzz_next(z);
	fuzz_attribute(z, a, smp.data, sizeof(smp.data));
	wire_smp_encode(&smp, mad->data);
	mad->dlid = smp.mad.mgmt_class == MAD_CLASS_SUBN_DIRECTED && fuzz_chance(z, 80)
	                    ? IB_LID_PERMISSIVE
	                    : fuzz_lid(z);
}

static inline void fuzz_perf(struct fuzz *z, struct fuzz_mad *mad)
{
	static const uint8_t methods[] = { MAD_GET, MAD_GET, MAD_SET, MAD_TRAP, MAD_GET_RESP };
	static const struct fuzz_attribute attributes[] = {
		{ MAD_ATTR_CLASS_PORT_INFO, &wire_class_port_info_layout },
		{ PERF_ATTR_PORT_COUNTERS, &wire_port_counters_layout },
		{ PERF_ATTR_PORT_COUNTERS_EXTENDED, &wire_port_counters_extended_layout },
		{ PERF_ATTR_OP_RCV_COUNTERS, &wire_perf_details_32_layout },
		{ PERF_ATTR_VL_OP_PACKETS, &wire_perf_details_16_layout },
		{ PERF_ATTR_VL_XMIT_FLOW_CTL_UPDATE_ERRORS, &wire_perf_details_2_layout },
		{ PERF_ATTR_PORT_SAMPLES_CONTROL, NULL },
	};
	const struct fuzz_attribute *a = &FUZZ_PICK(z, attributes);
	struct wire_perf_mad p = { .mad = { .mgmt_class = MAD_CLASS_PERF,
		                            .method = FUZZ_PICK(z, methods),
		                            .attribute_id = a->id,
		                            .attribute_modifier = fuzz_modifier(z) } };

	fuzz_head(z, &p.mad, MAD_VERSION_PERF);
	fuzz_attribute(z, a, p.data, sizeof(p.data));
	if (fuzz_chance(z, 80))
		p.data[1] = fuzz_port(z); /* PortSelect */
	wire_perf_mad_encode(&p, mad->data);
}

/* The next segment of a message, or anything. */
static inline void fuzz_rmpp(struct fuzz *z, uint64_t tid, struct wire_rmpp *r)
{
	uint32_t *at = &z->segment[tid % FUZZ_TIDS];

	*r = (struct wire_rmpp){ .version = RMPP_VERSION, .type = RMPP_DATA, .flags = RMPP_ACTIVE };
	if (fuzz_chance(z, 20)) {
		r->type = (uint8_t)(fuzz_chance(z, 80) ? fuzz_below(z, 6) : fuzz_number(z));
		r->data1 = fuzz_number(z);
		r->data2 = fuzz_number(z);
		r->status = fuzz_chance(z, 50) ? (uint8_t)fuzz_number(z) : 0;
		return;
	}
	*at = fuzz_chance(z, 90) ? *at + 1 : fuzz_below(z, 3);
	r->data1 = *at;
	if (*at == 1)
		r->flags |= RMPP_FIRST;
	if (fuzz_chance(z, 25)) {
		r->flags |= RMPP_LAST;
		r->data2 = 20 + fuzz_below(z, 201);
		*at = 0;
	}
	if (fuzz_chance(z, 10))
		r->data2 = fuzz_number(z);
	if (fuzz_chance(z, 5))
		r->flags = (uint8_t)fuzz_next(z) & 7;
	if (fuzz_chance(z, 3))
		r->version = (uint8_t)fuzz_number(z);
	if (fuzz_chance(z, 3))
		r->status = (uint8_t)fuzz_number(z);
}

/* Few components; or those that a join has; or any. */
static inline uint64_t fuzz_components(struct fuzz *z)
{
	uint64_t mask = 0;

	switch (fuzz_below(z, 4)) {
	case 0:
		return SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE | SA_MCM_QKEY |
		       SA_MCM_TCLASS | SA_MCM_PKEY | SA_MCM_FLOW_LABEL | SA_MCM_SL;
	case 1:
		return fuzz_next(z);
	default:
		for (unsigned n = fuzz_below(z, 4); n; n--)
			mask |= UINT64_C(1) << fuzz_below(z, 64);
		return mask;
	}
}

static inline void fuzz_member(struct fuzz *z, uint8_t *data)
{
	struct wire_mcmember m = { .mgid = fuzz_gid(z),
		                   .port_gid = fuzz_gid(z),
		                   .pkey = IB_PKEY_DEFAULT,
		                   .join_state = (uint8_t)fuzz_below(z, 16) };

	wire_mcmember_encode(&m, data);
}

static inline void fuzz_sa(struct fuzz *z, struct fuzz_mad *mad)
{
	static const uint8_t methods[] = { MAD_GET,       MAD_GET,         MAD_SET,    MAD_SET,
		                           MAD_GET_TABLE, MAD_GET_TABLE,   MAD_DELETE, MAD_DELETE,
		                           MAD_GET_MULTI, MAD_REPORT_RESP, MAD_REPORT };
	static const struct fuzz_attribute attributes[] = {
		{ SA_ATTR_CLASS_PORT_INFO, &wire_class_port_info_layout },
		{ MAD_ATTR_NOTICE, &wire_notice_layout },
		{ SA_ATTR_INFORM_INFO, &wire_inform_info_layout },
		{ SA_ATTR_INFORM_INFO, &wire_inform_info_layout },
		{ SA_ATTR_NODE, &wire_node_record_layout },
		{ SA_ATTR_PORT_INFO, &wire_port_info_record_layout },
		{ SA_ATTR_SWITCH_INFO, &wire_switch_info_record_layout },
		{ SA_ATTR_LINEAR_FT, &wire_linear_ft_record_layout },
		{ SA_ATTR_MULTICAST_FT, &wire_multicast_ft_record_layout },
		{ SA_ATTR_SM_INFO, &wire_sm_info_record_layout },
		{ SA_ATTR_LINK, &wire_link_record_layout },
		{ SA_ATTR_GUID_INFO, &wire_guid_info_record_layout },
		{ SA_ATTR_SERVICE, &wire_service_record_layout },
		{ SA_ATTR_SERVICE, &wire_service_record_layout },
		{ SA_ATTR_PKEY_TABLE, &wire_pkey_table_record_layout },
		{ SA_ATTR_SL_TO_VL, &wire_sl_to_vl_record_layout },
		{ SA_ATTR_VL_ARBITRATION, &wire_vl_arb_record_layout },
		{ SA_ATTR_PATH, &wire_path_record_layout },
		{ SA_ATTR_PATH, &wire_path_record_layout },
		{ SA_ATTR_MULTIPATH, &wire_multipath_record_layout },
		{ SA_ATTR_MULTIPATH, &wire_multipath_record_layout },
		{ SA_ATTR_MCMEMBER, &wire_mcmember_layout },
		{ SA_ATTR_MCMEMBER, &wire_mcmember_layout },
		{ SA_ATTR_MCMEMBER, &wire_mcmember_layout },
		{ SA_ATTR_INFORM_INFO_RECORD, &wire_inform_info_record_layout },
	};
	const struct fuzz_attribute *a = &FUZZ_PICK(z, attributes);
	struct wire_sa_mad sa = { .mad = { .mgmt_class = MAD_CLASS_SUBN_ADM,
		                           .method = FUZZ_PICK(z, methods),
		                           .attribute_id = a->id,
		                           .attribute_modifier = fuzz_modifier(z) },
		                  .sm_key = fuzz_chance(z, 30),
		                  .component_mask = fuzz_components(z) };

	fuzz_head(z, &sa.mad, MAD_VERSION_SUBN_ADM);
	if (fuzz_chance(z, 3))
		sa.sm_key = fuzz_next(z);
	if (fuzz_chance(z, 30))
		fuzz_rmpp(z, sa.mad.transaction_id, &sa.rmpp);
	if (a->id == SA_ATTR_MCMEMBER && fuzz_chance(z, 80))
		fuzz_member(z, sa.data);
	else
		fuzz_attribute(z, a, sa.data, sizeof(sa.data));
	wire_sa_mad_encode(&sa, mad->data);
	if (fuzz_chance(z, 90))
		mad->dlid = z->world->lid[0];
}

/* Any other class; some know RMPP. */
static inline void fuzz_other(struct fuzz *z, struct fuzz_mad *mad)
{
	static const uint8_t classes[] = { MAD_CLASS_BM,
		                           MAD_CLASS_CC,
		                           MAD_CLASS_DEV_MGT,
		                           MAD_CLASS_COM_MGT,
		                           MAD_CLASS_SNMP,
		                           MAD_CLASS_VENDOR_FIRST,
		                           MAD_CLASS_DEV_ADM,
		                           MAD_CLASS_BIS,
		                           MAD_CLASS_VENDOR2_FIRST + 2,
		                           MAD_CLASS_VENDOR2_LAST,
		                           0,
		                           0xFF };
	struct wire_mad h = { .mgmt_class = FUZZ_PICK(z, classes),
		              .method = (uint8_t)fuzz_below(z, 8),
		              .attribute_id = (uint16_t)fuzz_number(z),
		              .attribute_modifier = fuzz_number(z) };
	struct wire_rmpp rmpp;

	fuzz_bytes(z, mad->data, sizeof(mad->data));
	fuzz_head(z, &h, 1);
	wire_mad_encode(&h, mad->data);
	if (!fuzz_chance(z, 40))
		return;
	fuzz_rmpp(z, h.transaction_id, &rmpp);
	wire_rmpp_encode(&rmpp, mad->data + RMPP_AT);
}

/* ---- all together ---- */

/* Inverts bits, moves bytes, or sets the end to zeros. */
static inline void fuzz_spoil(struct fuzz *z, struct fuzz_mad *mad)
{
	for (unsigned n = fuzz_chance(z, 15) ? fuzz_below(z, 6) : 0; n; n--)
		mad->data[fuzz_below(z, MAD_BYTES)] ^= (uint8_t)(1u << fuzz_below(z, 8));
	if (fuzz_chance(z, 2))
		fuzz_bytes(z, mad->data + fuzz_below(z, MAD_BYTES), 1);
	if (fuzz_chance(z, 2)) {
		size_t from = fuzz_below(z, MAD_BYTES);

		memset(mad->data + from, 0, MAD_BYTES - from);
	}
}

static inline void fuzz_make(struct fuzz *z, struct fuzz_mad *mad)
{
	unsigned which = fuzz_below(z, 100);

	memset(mad, 0, sizeof(*mad));
	mad->dlid = fuzz_lid(z);
	if (which < 40)
		fuzz_smp(z, mad);
	else if (which < 75)
		fuzz_sa(z, mad);
	else if (which < 87)
		fuzz_perf(z, mad);
	else if (which < 97)
		fuzz_other(z, mad);
	else
		fuzz_bytes(z, mad->data, sizeof(mad->data));
	fuzz_spoil(z, mad);
	mad->dest_qpn = which < 40 ? IB_QPN_SMI : IB_QPN_GSI;
	if (fuzz_chance(z, 3))
		mad->dest_qpn = fuzz_chance(z, 50) ? !mad->dest_qpn : fuzz_number(z) & IB_QPN_MASK;
	mad->src_qpn = fuzz_chance(z, 95) ? mad->dest_qpn : fuzz_number(z) & IB_QPN_MASK;
	mad->pkey_index = fuzz_chance(z, 95) ? 0 : (uint16_t)fuzz_number(z);
	mad->sl = (uint8_t)fuzz_below(z, 16);
	mad->has_grh = fuzz_chance(z, 10);
	mad->dgid = fuzz_gid(z);
	mad->bytes = fuzz_chance(z, 90) ? MAD_BYTES : fuzz_below(z, 2 * MAD_BYTES);
}

/* ---- the test's own ---- */

/* When to end, in ns; 0: UMBEL_FUZZ_SECONDS is not set. */
static inline uint64_t fuzz_end(void)
{
	const char *text = getenv("UMBEL_FUZZ_SECONDS");
	long seconds = 0;

	if (!text || base_parse_number(text, 0, 86400, &seconds))
		return 0;
	return base_now_ns() + (uint64_t)seconds * 1000000000;
}

/* UMBEL_FUZZ_SEED, or 1. */
static inline uint64_t fuzz_seed(void)
{
	const char *text = getenv("UMBEL_FUZZ_SEED");

	return text ? strtoull(text, NULL, 0) : 1;
}

#endif
