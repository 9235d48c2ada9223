/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The capabilities of every HCA: ibv_query_device(3) tells them, and RDMA netlink. Constant data.
 */
#ifndef SHM_CAPABILITIES_H
#define SHM_CAPABILITIES_H

#include <infiniband/verbs.h>

/* ibv_device_attr.device_cap_flags */
#define SHM_DEVICE_CAP_FLAGS                                                                       \
	(IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_CHANGE_PHY_PORT |        \
	 IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | \
	 IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW |       \
	 IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC)

/* rdma/ib_user_verbs.h names them; the oldest headers that Umbel is built with do not */
#define SHM_DEVICE_FLUSH_GLOBAL (1ull << 38)
#define SHM_DEVICE_ATOMIC_WRITE (1ull << 40)

/* ibv_device_attr_ex.device_cap_flags_ex: no memory here is persistent, so none can be flushed so
 */
#define SHM_DEVICE_CAP_FLAGS_EX \
	(SHM_DEVICE_CAP_FLAGS | SHM_DEVICE_ATOMIC_WRITE | SHM_DEVICE_FLUSH_GLOBAL)

#endif
