/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Public verbs that this device refuses: sharing objects between processes through kernel handles,
 * DMA buffers, connection establishment enhancements (ECE), shared receive queues. Applications and
 * librdmacm call them. A refusal looks like that of a driver which lacks the operation: EOPNOTSUPP,
 * as a return value or as errno with NULL, whichever the verb's man page says.
 *
 * Thread safety: no state; any thread, any time.
 */
#include <errno.h>
#include <infiniband/verbs.h>

static void *refuse_pointer(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

/** Returns NULL with errno EOPNOTSUPP: there is no kernel context behind cmd_fd to take over. */
struct ibv_context *ibv_import_device(int cmd_fd)
{
	(void)cmd_fd;
	return refuse_pointer();
}

/** Returns NULL with errno EOPNOTSUPP: handles mean nothing outside the process that made them. */
struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	(void)context;
	(void)pd_handle;
	return refuse_pointer();
}

/** Does nothing: no PD was ever imported. */
void ibv_unimport_pd(struct ibv_pd *pd)
{
	(void)pd;
}

/** Returns NULL with errno EOPNOTSUPP, as ibv_import_pd(). */
struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	(void)pd;
	(void)mr_handle;
	return refuse_pointer();
}

/** Does nothing: no MR was ever imported. */
void ibv_unimport_mr(struct ibv_mr *mr)
{
	(void)mr;
}

/** Returns NULL with errno EOPNOTSUPP: the device has no memory of its own. */
struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	(void)context;
	(void)dm_handle;
	return refuse_pointer();
}

/** Does nothing: no device memory was ever imported. */
void ibv_unimport_dm(struct ibv_dm *dm)
{
	(void)dm;
}

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
	return refuse_pointer();
}

/** Returns EOPNOTSUPP: the device has no vendor enhancements to agree on. ibv_set_ece(3) */
int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return EOPNOTSUPP;
}

/** Returns EOPNOTSUPP and leaves *ece alone. ibv_query_ece(3) */
int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return EOPNOTSUPP;
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
	return EOPNOTSUPP;
}

/** Returns NULL with errno EOPNOTSUPP: max_srq is 0. ibv_create_srq(3) */
struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr)
{
	(void)pd;
	(void)srq_init_attr;
	return refuse_pointer();
}

/** Returns EOPNOTSUPP: no SRQ exists. ibv_modify_srq(3) */
int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask)
{
	(void)srq;
	(void)srq_attr;
	(void)srq_attr_mask;
	return EOPNOTSUPP;
}

/** Returns EOPNOTSUPP: no SRQ exists. ibv_query_srq(3) */
int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr)
{
	(void)srq;
	(void)srq_attr;
	return EOPNOTSUPP;
}

/** Returns EOPNOTSUPP: no SRQ exists. ibv_create_srq(3) */
int ibv_destroy_srq(struct ibv_srq *srq)
{
	(void)srq;
	return EOPNOTSUPP;
}
