/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Public verbs that this device refuses: DMA buffers and handles, connection establishment
 * enhancements (ECE). Applications and librdmacm call them. A refusal looks like that of a driver
 * which lacks the operation: EOPNOTSUPP, as a return value or as errno with NULL, whichever the
 * verb's man page says.
 *
 * Thread safety: no state; any thread, any time.
 */
#include "api/verbs/verbs.h"
#include "base/reason.h"

/* Those that headers of rdma-core 56 and older do not have. */
struct ibv_dmah;
struct ibv_dmah_init_attr;

struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context, struct ibv_dmah_init_attr *attr);
int ibv_dealloc_dmah(struct ibv_dmah *dmah);
int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm);

/** Returns NULL with errno EOPNOTSUPP: only memory mapped by the process can be registered. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                 int fd, int access)
{
	(void)pd;
	(void)offset;
	(void)length;
	(void)iova;
	(void)fd;
	(void)access;
	return verbs_null(base_because(-EOPNOTSUPP, "there are no DMA buffers"));
}

/** Returns EOPNOTSUPP: the device has no vendor enhancements to agree on. ibv_set_ece(3) */
int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return verbs_result(base_because(-EOPNOTSUPP, "there is no ECE"));
}

/** Returns EOPNOTSUPP and leaves *ece alone. ibv_query_ece(3) */
int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return verbs_result(base_because(-EOPNOTSUPP, "there is no ECE"));
}

/** Returns 0, "not guaranteed": poll for completions, not for data. */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 0;
}

/**
 * Returns -1, "the kernel does not support device indexes": the number would be that of RDMA
 * netlink, in which this device does not appear. ibv_get_device_index(3)
 */
int ibv_get_device_index(struct ibv_device *device)
{
	(void)device;
	return -1;
}

/**
 * Returns EOPNOTSUPP: a port that is tied to UDP sockets leaves Ethernet addresses to the host's
 * network stack. Drivers call it when they create an address handle; no man page describes it.
 */
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	(void)context;
	(void)attr;
	(void)eth_mac;
	(void)vid;
	return verbs_result(-EOPNOTSUPP);
}

/** Returns NULL with errno EOPNOTSUPP: no bus carries hints for the memory. ibv_alloc_dmah(3) */
struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context, struct ibv_dmah_init_attr *attr)
{
	(void)context;
	(void)attr;
	return verbs_null(base_because(-EOPNOTSUPP, "there are no DMA handles"));
}

/** Returns EOPNOTSUPP: no DMA handle exists. */
int ibv_dealloc_dmah(struct ibv_dmah *dmah)
{
	(void)dmah;
	return verbs_result(base_because(-EOPNOTSUPP, "there are no DMA handles"));
}

/** Returns -1 with errno EOPNOTSUPP: device memory is memory of the process, and no DMA-buf.
 * ibv_dm_export_dmabuf_fd(3) */
int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	(void)dm;
	return verbs_minus_one(base_because(-EOPNOTSUPP, "there are no DMA buffers"));
}
