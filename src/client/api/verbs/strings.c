/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of enumerators, and conversions of static rates. Applications call all of it.
 *
 * The texts and numbers are those of Debian's libibverbs: programs print and compare them, so they
 * are part of the interface. tests/abi/strings_test.c holds the two libraries against each other.
 *
 * Thread safety: constant tables only; any thread, any time.
 */
#include <stddef.h>
#include <infiniband/verbs.h>

#include "api/verbs/private.h"
#include "base/util.h"
#include "wire/rate.h"

static const char *const node_types[] = {
	[IBV_NODE_CA] = "InfiniBand channel adapter",
	[IBV_NODE_SWITCH] = "InfiniBand switch",
	[IBV_NODE_ROUTER] = "InfiniBand router",
	[IBV_NODE_RNIC] = "iWARP NIC",
	[IBV_NODE_USNIC] = "usNIC",
	[IBV_NODE_USNIC_UDP] = "usNIC UDP",
	[IBV_NODE_UNSPECIFIED] = "unspecified",
};

static const char *const port_states[] = {
	[IBV_PORT_NOP] = "no state change (NOP)",
	[IBV_PORT_DOWN] = "down",
	[IBV_PORT_INIT] = "init",
	[IBV_PORT_ARMED] = "armed",
	[IBV_PORT_ACTIVE] = "active",
	[IBV_PORT_ACTIVE_DEFER] = "active defer",
};

static const char *const event_types[] = {
	[IBV_EVENT_CQ_ERR] = "CQ error",
	[IBV_EVENT_QP_FATAL] = "local work queue catastrophic error",
	[IBV_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
	[IBV_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
	[IBV_EVENT_COMM_EST] = "communication established",
	[IBV_EVENT_SQ_DRAINED] = "send queue drained",
	[IBV_EVENT_PATH_MIG] = "path migrated",
	[IBV_EVENT_PATH_MIG_ERR] = "path migration request error",
	[IBV_EVENT_DEVICE_FATAL] = "local catastrophic error",
	[IBV_EVENT_PORT_ACTIVE] = "port active",
	[IBV_EVENT_PORT_ERR] = "port error",
	[IBV_EVENT_LID_CHANGE] = "LID change",
	[IBV_EVENT_PKEY_CHANGE] = "P_Key change",
	[IBV_EVENT_SM_CHANGE] = "SM change",
	[IBV_EVENT_SRQ_ERR] = "SRQ catastrophic error",
	[IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
	[IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
	[IBV_EVENT_CLIENT_REREGISTER] = "client reregistration",
	[IBV_EVENT_GID_CHANGE] = "GID table change",
	[IBV_EVENT_WQ_FATAL] = "WQ fatal",
	[20] = "Device link speed change", /* since rdma-core 62 */
};

static const char *const wc_statuses[] = {
	[IBV_WC_SUCCESS] = "success",
	[IBV_WC_LOC_LEN_ERR] = "local length error",
	[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
	[IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
	[IBV_WC_LOC_PROT_ERR] = "local protection error",
	[IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
	[IBV_WC_MW_BIND_ERR] = "memory management operation error",
	[IBV_WC_BAD_RESP_ERR] = "bad response error",
	[IBV_WC_LOC_ACCESS_ERR] = "local access error",
	[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
	[IBV_WC_REM_ACCESS_ERR] = "remote access error",
	[IBV_WC_REM_OP_ERR] = "remote operation error",
	[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
	[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
	[IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation error",
	[IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
	[IBV_WC_REM_ABORT_ERR] = "aborted error",
	[IBV_WC_INV_EECN_ERR] = "invalid EE context number",
	[IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
	[IBV_WC_FATAL_ERR] = "fatal error",
	[IBV_WC_RESP_TIMEOUT_ERR] = "response timeout error",
	[IBV_WC_GENERAL_ERR] = "general error",
	[IBV_WC_TM_ERR] = "TM error",
	[IBV_WC_TM_RNDV_INCOMPLETE] = "TM software rendezvous",
};

static const char *const wr_opcodes[] = {
	[IBV_WR_RDMA_WRITE] = "rdma-write",
	[IBV_WR_RDMA_WRITE_WITH_IMM] = "rdma-write-with-imm",
	[IBV_WR_SEND] = "send",
	[IBV_WR_SEND_WITH_IMM] = "send-with-imm",
	[IBV_WR_RDMA_READ] = "rdma-read",
	[IBV_WR_ATOMIC_CMP_AND_SWP] = "atomic-cmp-and-swp",
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = "atomic-fetch-and-add",
	[IBV_WR_LOCAL_INV] = "local-inv",
	[IBV_WR_BIND_MW] = "bind-mw",
	[IBV_WR_SEND_WITH_INV] = "send-with-inv",
	[IBV_WR_TSO] = "tso",
	[IBV_WR_DRIVER1] = "driver1",
	[14] = "flush", /* this and the next: since rdma-core 45 */
	[15] = "atomic-write",
};

static const char *name_of(const char *const *names, size_t count, int value)
{
	if (value < 0 || (size_t)value >= count || !names[value])
		return "unknown";
	return names[value];
}

/** The name of a node type; "unknown" for any other value. Never NULL, never freed. */
const char *ibv_node_type_str(enum ibv_node_type node_type)
{
	return name_of(node_types, ARRAY_SIZE(node_types), (int)node_type);
}

/** The name of a port state; "unknown" for any other value. Never NULL, never freed. */
const char *ibv_port_state_str(enum ibv_port_state port_state)
{
	return name_of(port_states, ARRAY_SIZE(port_states), (int)port_state);
}

/** The name of an asynchronous event; "unknown" for any other value. Never NULL, never freed. */
const char *ibv_event_type_str(enum ibv_event_type event)
{
	return name_of(event_types, ARRAY_SIZE(event_types), (int)event);
}

/** The name of a completion status; "unknown" for any other value. Never NULL, never freed. */
const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return name_of(wc_statuses, ARRAY_SIZE(wc_statuses), (int)status);
}

/** The name of a send's operation; "unknown" for any other value. Drivers and perftest ask. */
const char *private_ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

SINCE_34(ibv_wr_opcode_str)
const char *private_ibv_wr_opcode_str(enum ibv_wr_opcode opcode)
{
	return name_of(wr_opcodes, ARRAY_SIZE(wr_opcodes), (int)opcode);
}

/** A rate as a multiple of 2.5 Gbit/s; -1 when it is none. ibv_rate_to_mult(3) */
int ibv_rate_to_mult(enum ibv_rate rate)
{
	const struct wire_rate *r = wire_rate_find(rate);

	return r && r->mult ? r->mult : -1;
}

/** The rate that is mult times 2.5 Gbit/s; IBV_RATE_MAX when there is none. ibv_rate_to_mult(3) */
enum ibv_rate mult_to_ibv_rate(int mult)
{
	for (size_t i = 0; mult && i < WIRE_RATES; i++)
		if (wire_rates[i].mult == mult)
			return wire_rates[i].rate;
	return IBV_RATE_MAX;
}

/** A rate in Mbit/s; -1 for IBV_RATE_MAX and unknown rates. ibv_rate_to_mbps(3) */
int ibv_rate_to_mbps(enum ibv_rate rate)
{
	const struct wire_rate *r = wire_rate_find(rate);

	return r ? r->mbps : -1;
}

/** The rate of exactly mbps Mbit/s; IBV_RATE_MAX when there is none. ibv_rate_to_mbps(3) */
enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	for (size_t i = 0; i < WIRE_RATES; i++)
		if (wire_rates[i].mbps == mbps)
			return wire_rates[i].rate;
	return IBV_RATE_MAX;
}
