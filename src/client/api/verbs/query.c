/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queries of devices, ports, GIDs and P_Keys: answered from the shared memory,
 * without asking anybody. Safe from any thread.
 */
#include <endian.h>
#include <limits.h>
#include <string.h>

#include "api/verbs/layer.h"
#include "api/verbs/verbs.h"
#include "base/reason.h"
#include "base/util.h"
#include "hca/memory/dm.h"
#include "hca/process/command_file.h"
#include "shm/capabilities.h"
#include "wire/rate.h"

static const struct shm_settings *settings_of(struct ibv_context *context)
{
	return &hca_context(context)->process->region.control->settings;
}

static void tell_of_ports(struct ibv_context *context)
{
	if (verbs_watcher(context))
		verbs_watcher(context)->looked_at_ports();
}

/* ibv_query_device(3). Limits are the fabric's settings where it has them. */
int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct shm_settings *s = settings_of(context);
	struct hca_context *ctx = hca_context(context);
	const struct shm_hca *h = shm_hca_at(&ctx->process->region, ctx->hca);

	tell_of_ports(context);
	*attr = (struct ibv_device_attr){
		.node_guid = htobe64(h->node_guid),
		.sys_image_guid = htobe64(h->system_guid),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xFFFFF000,
		.vendor_id = h->vendor_id,
		.vendor_part_id = h->device_id,
		.hw_ver = 1,
		.max_qp = SHM_MAX_QPS - 3,
		.max_qp_wr = (int)s->max_qp_wr,
		.device_cap_flags = SHM_DEVICE_CAP_FLAGS,
		.max_sge = (int)s->max_sge,
		.max_sge_rd = (int)s->max_sge,
		.max_cq = SHM_MAX_CQS,
		.max_cqe = (int)s->max_cqe,
		.max_mr = HCA_MR_CHUNK * HCA_MR_CHUNKS - 1,
		.max_pd = HCA_FILE_PDS,
		.max_mw = HCA_MR_CHUNK * HCA_MR_CHUNKS - 1,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_qp_rd_atom = HCA_MAX_RD_ATOMIC,
		.max_res_rd_atom = HCA_MAX_RD_ATOMIC * (SHM_MAX_QPS - 3),
		.max_qp_init_rd_atom = HCA_MAX_RD_ATOMIC,
		.max_mcast_grp = (int)s->max_mcast_grp,
		.max_mcast_qp_attach = (int)s->max_mcast_qp_attach,
		.max_total_mcast_qp_attach = (int)s->max_total_mcast_qp_attach,
		.max_ah = INT_MAX,
		.max_srq = SHM_MAX_SRQS,
		.max_srq_wr = (int)s->max_qp_wr,
		.max_srq_sge = (int)s->max_sge,
		.max_pkeys = SHM_PKEYS,
		.local_ca_ack_delay = 15,
		.phys_port_cnt = (uint8_t)h->n_ports,
	};
	memcpy(attr->fw_ver, h->fw_ver, sizeof(h->fw_ver));
	return 0;
}

#define CONNECTED_ON_DEMAND                                                         \
	(IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |      \
	 IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV | \
	 HCA_ODP_SUPPORT_ATOMIC_WRITE | HCA_ODP_SUPPORT_FLUSH)

int verbs_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *in,
                          struct ibv_device_attr_ex *attr, size_t len)
{
	static const struct ibv_odp_caps on_demand = {
		.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
		.per_transport_caps = { .rc_odp_caps = CONNECTED_ON_DEMAND,
		                        .uc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
		                                       IBV_ODP_SUPPORT_WRITE,
		                        .ud_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
		                                       IBV_ODP_SUPPORT_SRQ_RECV },
	};
	struct ibv_device_attr_ex all = { 0 };

	if ((in && in->comp_mask) || len < sizeof(attr->orig_attr))
		return verbs_result(-EINVAL);
	ibv_query_device(context, &all.orig_attr);
	all.completion_timestamp_mask = UINT64_MAX;
	all.hca_core_clock = 1000000; /* kHz: one tick a nanosecond */
	all.device_cap_flags_ex = SHM_DEVICE_CAP_FLAGS_EX;
	if (hca_mr_has_on_demand()) {
		all.odp_caps = on_demand;
		all.xrc_odp_caps = CONNECTED_ON_DEMAND;
	}
	all.cq_mod_caps = (struct ibv_cq_moderation_caps){ UINT16_MAX, UINT16_MAX };
	all.max_dm_size = HCA_DM_BYTES;
	all.phys_port_cnt_ex = all.orig_attr.phys_port_cnt;
	memset(attr, 0, len);
	memcpy(attr, &all, len < sizeof(all) ? len : sizeof(all));
	return 0;
}

/*
 * The clock of completion timestamps, in ticks of hca_core_clock, all of them in tv_nsec, as
 * libmlx5 has it: programs read nothing else. comp_mask says which values were queried.
 * ibv_query_rt_values_ex(3)
 */
int verbs_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	(void)context;
	values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
	if (values->comp_mask)
		values->raw_clock = (struct timespec){ .tv_nsec = (long)base_now_ns() };
	return 0;
}

static uint32_t counter(const _Atomic uint64_t *c)
{
	uint64_t v = atomic_load_explicit((_Atomic uint64_t *)c, memory_order_relaxed);

	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

int verbs_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
                     size_t len)
{
	struct hca_context *ctx = hca_context(context);
	struct ibv_port_attr all = { 0 };
	struct shm_port_count *count;
	struct shm_port port;
	int ret = hca_process_gone(ctx->process) ? -EIO : hca_port(ctx, port_num, &port);

	tell_of_ports(context);
	if (ret)
		return verbs_result(ret);
	count = shm_port_count_at(&ctx->process->region,
	                          shm_hca_at(&ctx->process->region, ctx->hca)->first_port +
	                                  port_num - 1);
	all.state = (enum ibv_port_state)port.state;
	all.max_mtu = (enum ibv_mtu)port.max_mtu;
	all.active_mtu = (enum ibv_mtu)port.active_mtu;
	all.gid_tbl_len = port.n_gids;
	all.port_cap_flags = port.cap_flags;
	all.max_msg_sz = HCA_MAX_MESSAGE;
	all.bad_pkey_cntr = counter(&count->bad_pkey);
	all.qkey_viol_cntr = counter(&count->bad_qkey);
	all.pkey_tbl_len = port.n_pkeys;
	all.lid = port.lid;
	all.sm_lid = port.sm_lid;
	all.lmc = port.lmc;
	all.max_vl_num = 1;
	all.sm_sl = port.sm_sl;
	all.subnet_timeout = port.subnet_timeout;
	all.active_width = port.active_width;
	all.active_speed = port.active_speed;
	all.phys_state = port.phys_state;
	all.link_layer = port.link_layer;
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET)
		all.flags = IBV_QPF_GRH_REQUIRED;
	else
		all.port_cap_flags2 = port.cap_flags2;
	memset(attr, 0, len);
	memcpy(attr, &all, len < sizeof(all) ? len : sizeof(all));
	return 0;
}

/* Programs built against old headers pass the old struct, which ends behind flags. */
int(ibv_query_port)(struct ibv_context *context, uint8_t port_num,
                    struct _compat_ibv_port_attr *attr)
{
	return verbs_query_port(context, port_num, (struct ibv_port_attr *)attr,
	                        offsetof(struct ibv_port_attr, flags) + 1);
}

/*
 * The rate of the port's link, in units of 100 Mbit/s. EINVAL: there is no such port.
 * ibv_query_port_speed(3), of rdma-core 62; older headers do not declare it.
 */
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed);

int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed)
{
	struct hca_context *ctx = hca_context(context);
	struct shm_port port;
	int ret = hca_process_gone(ctx->process) ? -EIO : hca_port(ctx, port_num, &port);

	if (ret)
		return verbs_result(ret);
	*port_speed = wire_link_speed(port.active_width, port.active_speed);
	return 0;
}

static void tell_looked(struct ibv_context *context)
{
	if (verbs_watcher(context))
		verbs_watcher(context)->looked_at_gids();
}

/* -1 and errno. An empty entry reads as zero. ibv_query_gid(3) */
int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	struct shm_port port;
	int ret = hca_port(hca_context(context), port_num, &port);

	tell_looked(context);
	if (!ret && (index < 0 || index >= port.n_gids))
		ret = base_because(-EINVAL, "GID index %d: the port has %u GIDs", index,
		                   port.n_gids);
	if (ret)
		return verbs_minus_one(ret);
	memcpy(gid->raw, port.gid[index].raw, sizeof(gid->raw));
	return 0;
}

static void fill_entry(const struct shm_port *port, uint32_t port_num, uint32_t index,
                       struct ibv_gid_entry *entry)
{
	*entry = (struct ibv_gid_entry){ .gid_index = index,
		                         .port_num = port_num,
		                         .gid_type = port->gid_type[index],
		                         .ndev_ifindex = port->ifindex };
	memcpy(entry->gid.raw, port->gid[index].raw, sizeof(entry->gid.raw));
}

/* 0 or -errno. */
static int read_entry(struct ibv_context *context, uint32_t port_num, uint32_t index,
                      struct ibv_gid_entry *entry)
{
	struct shm_port port;
	int ret = hca_port(hca_context(context), port_num, &port);

	if (ret)
		return ret;
	if (index >= port.n_gids)
		return base_because(-EINVAL, "GID index %u: the port has %u GIDs", index,
		                    port.n_gids);
	if (ib_gid_is_zero(&port.gid[index]))
		return -ENODATA;
	fill_entry(&port, port_num, index, entry);
	return 0;
}

/* 0 or a positive errno; ENODATA for an empty entry. ibv_query_gid_ex(3) */
int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry all;
	int ret = flags || entry_size < sizeof(all) ? -EINVAL
	                                            : read_entry(context, port_num, index, &all);

	tell_looked(context);
	if (ret == -ENODATA)
		return ENODATA; /* how programs find out which entries there are */
	if (ret)
		return verbs_result_of("ibv_query_gid_ex", ret);
	memset(entry, 0, entry_size);
	memcpy(entry, &all, sizeof(all));
	return 0;
}

/* How many entries there are, or a negative errno. ibv_query_gid_table(3) */
ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                             size_t max_entries, uint32_t flags, size_t entry_size)
{
	struct hca_context *ctx = hca_context(context);
	uint32_t n_ports = shm_hca_at(&ctx->process->region, ctx->hca)->n_ports;
	size_t n = 0;

	tell_looked(context);
	if (flags || entry_size < sizeof(*entries))
		return -verbs_error("ibv_query_gid_table", -EINVAL);
	for (uint32_t p = 1; p <= n_ports; p++) {
		for (uint32_t i = 0; i < SHM_GIDS; i++) {
			struct ibv_gid_entry e;

			if (read_entry(context, p, i, &e))
				continue;
			if (n == max_entries)
				return -verbs_error("ibv_query_gid_table",
				                    base_because(-EINVAL, "there are more than %zu",
				                                 max_entries));
			memcpy((char *)entries + n++ * entry_size, &e, sizeof(e));
		}
	}
	return (ssize_t)n;
}

/* -1 and errno. Network order. ibv_query_pkey(3) */
int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	struct shm_port port;
	int ret = hca_port(hca_context(context), port_num, &port);

	if (!ret && (index < 0 || index >= port.n_pkeys))
		ret = base_because(-EINVAL, "P_Key index %d: the port has %u P_Keys", index,
		                   port.n_pkeys);
	if (ret)
		return verbs_minus_one(ret);
	*pkey = htobe16(port.pkey[index]);
	return 0;
}

/* The index of @pkey (network order), or -1. ibv_get_pkey_index(3) */
int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	struct shm_port port;
	int ret = hca_port(hca_context(context), port_num, &port);

	for (int i = 0; !ret && i < port.n_pkeys; i++)
		if (htobe16(port.pkey[i]) == pkey)
			return i;
	if (!ret)
		ret = base_because(-EINVAL, "P_Key 0x%04x is not in the port's table",
		                   be16toh(pkey));
	return verbs_minus_one(ret);
}
