/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of all files: see tree.h. A new file is a row here and a function in text.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "sysfs/ipoib.h"
#include "sysfs/real.h"
#include "sysfs/text.h"
#include "sysfs/tree.h"
#include "wire/roce.h"

/* The kinds of nodes of which there are several. Their rows say what their unit is. */
enum each {
	ONE,
	EACH_HCA,        /* by its name; unit: HCA */
	EACH_FUNCTION,   /* by its place on a bus (text.h); unit: HCA */
	EACH_OWN_HCA,    /* by its name, the HCA that the parent's unit is */
	EACH_UVERBS,     /* uverbsN; unit: HCA */
	EACH_UMAD,       /* umadN; unit: port */
	EACH_ISSM,       /* issmN; unit: port */
	EACH_PORT,       /* N, of the HCA that the parent's unit is; unit: port */
	EACH_GID,        /* N; unit: port */
	EACH_PKEY,       /* N; unit: port */
	EACH_NETDEV,     /* a netdev that has a port; unit: port */
	EACH_PORT_HCA,   /* by its name, the HCA of the parent's port; unit: HCA */
	EACH_IPOIB,      /* a netdev that is an interface of IPoIB; unit: its index */
	EACH_HCA_NETDEV, /* a netdev that has a port of the parent's HCA; unit: port */
	EACH_HCA_IPOIB,  /* an interface of IPoIB on the parent's HCA; unit: its index */
};

struct row {
	uint8_t parent;
	uint8_t kind;
	uint8_t each;
	uint8_t ethernet; /* only a port of Ethernet has it */
	const char *name;
	sysfs_write_text *text;
	const char *fixed;
	uint32_t arg;
};

enum {
	ROOT,
	SYS,
	CLASS,
	CLASS_IB,
	CLASS_VERBS,
	CLASS_MAD,
	CLASS_CM,
	CLASS_MISC,
	CLASS_NET,
	NETDEV,
	NETDEV_DEVICE,
	NETDEV_IB,
	IPOIB,
	DEVICES,
	BUS,
	FUNCTION,
	FUNCTION_NET,
	FUNCTION_IB,
	HCA,
	PORTS,
	PORT,
	GIDS,
	GID_ATTRS,
	GID_TYPES,
	GID_NDEVS,
	PKEYS,
	COUNTERS,
	HW_COUNTERS,
	VIRTUAL,
	VIRTUAL_VERBS,
	UVERBS,
	VIRTUAL_MAD,
	UMAD,
	ISSM,
	VIRTUAL_MISC,
	RDMA_CM,
	DEV,
	DEV_IB,
	N_DIRS,
};

#define OUTSIDE(p, n)                                             \
	{                                                         \
		.parent = (p), .kind = SYSFS_OUTSIDE, .name = (n) \
	}
#define DIR(p, n)                                             \
	{                                                     \
		.parent = (p), .kind = SYSFS_DIR, .name = (n) \
	}
#define DIRS(p, e)                                            \
	{                                                     \
		.parent = (p), .kind = SYSFS_DIR, .each = (e) \
	}
/* Links lead to @to, or to what has the link's own name there. */
#define LINK(p, n, to)                                                        \
	{                                                                     \
		.parent = (p), .kind = SYSFS_LINK, .name = (n), .fixed = (to) \
	}
#define LINKS(p, e, to)                                                       \
	{                                                                     \
		.parent = (p), .kind = SYSFS_LINK, .each = (e), .fixed = (to) \
	}
/* Links whose text is made by a function. */
#define LINK_TO(p, n, t, a)                                                                        \
	{                                                                                          \
		.parent = (p), .kind = SYSFS_LINK, .name = (n), .text = sysfs_text_##t, .arg = (a) \
	}
#define LINKS_TO(p, e, t)                                                              \
	{                                                                              \
		.parent = (p), .kind = SYSFS_LINK, .each = (e), .text = sysfs_text_##t \
	}
#define FIXED(p, n, t)                                                                    \
	{                                                                                 \
		.parent = (p), .kind = SYSFS_FILE, .name = (n), .text = sysfs_text_fixed, \
		.fixed = (t)                                                              \
	}
#define FILE(p, n, t, a)                                                                           \
	{                                                                                          \
		.parent = (p), .kind = SYSFS_FILE, .name = (n), .text = sysfs_text_##t, .arg = (a) \
	}
#define FILES(p, e, t)                                                                 \
	{                                                                              \
		.parent = (p), .kind = SYSFS_FILE, .each = (e), .text = sysfs_text_##t \
	}
#define COUNTER(n, field)                                                                        \
	{                                                                                        \
		.parent = COUNTERS, .kind = SYSFS_FILE, .name = (n), .text = sysfs_text_counter, \
		.arg = offsetof(struct control_describe_port_reply, field)                       \
	}
#define ROCE_COUNT(n, field)                                                                \
	{                                                                                   \
		.parent = HW_COUNTERS, .kind = SYSFS_FILE, .name = (n), .ethernet = 1,      \
		.text = sysfs_text_roce_count, .arg = offsetof(struct shm_roce_port, field) \
	}
#define DEVICE(n, a)                                                            \
	{                                                                       \
		.parent = DEV_IB, .kind = SYSFS_DEVICE, .name = (n), .arg = (a) \
	}
#define DEVICES_OF(e, a)                                                        \
	{                                                                       \
		.parent = DEV_IB, .kind = SYSFS_DEVICE, .each = (e), .arg = (a) \
	}

#define TO_VIRTUAL "../../devices/virtual/"

static const struct row rows[] = {
	[ROOT] = OUTSIDE(ROOT, "/"),
	[SYS] = OUTSIDE(ROOT, "sys"),
	[CLASS] = OUTSIDE(SYS, "class"),
	[CLASS_IB] = DIR(CLASS, "infiniband"),
	[CLASS_VERBS] = DIR(CLASS, "infiniband_verbs"),
	[CLASS_MAD] = DIR(CLASS, "infiniband_mad"),
	[CLASS_CM] = DIR(CLASS, "infiniband_cm"),
	[CLASS_MISC] = OUTSIDE(CLASS, "misc"),
	[CLASS_NET] = OUTSIDE(CLASS, "net"),
	[NETDEV] = { .parent = CLASS_NET, .kind = SYSFS_OUTSIDE, .each = EACH_NETDEV },
	[NETDEV_DEVICE] = LINK_TO(NETDEV, "device", place, SYSFS_OF_PORT),
	[NETDEV_IB] = DIR(NETDEV_DEVICE, "infiniband"),
	[IPOIB] = { .parent = CLASS_NET, .kind = SYSFS_OUTSIDE, .each = EACH_IPOIB },
	[DEVICES] = OUTSIDE(SYS, "devices"),
	[BUS] = DIR(DEVICES, SYSFS_BUS),
	[FUNCTION] = DIRS(BUS, EACH_FUNCTION),
	[FUNCTION_NET] = DIR(FUNCTION, "net"),
	[FUNCTION_IB] = DIR(FUNCTION, "infiniband"),
	[HCA] = DIRS(FUNCTION_IB, EACH_OWN_HCA),
	[PORTS] = DIR(HCA, "ports"),
	[PORT] = DIRS(PORTS, EACH_PORT),
	[GIDS] = DIR(PORT, "gids"),
	[GID_ATTRS] = DIR(PORT, "gid_attrs"),
	[GID_TYPES] = DIR(GID_ATTRS, "types"),
	[GID_NDEVS] = DIR(GID_ATTRS, "ndevs"),
	[PKEYS] = DIR(PORT, "pkeys"),
	[COUNTERS] = DIR(PORT, "counters"),
	[HW_COUNTERS] = DIR(PORT, "hw_counters"),
	[VIRTUAL] = OUTSIDE(DEVICES, "virtual"),
	[VIRTUAL_VERBS] = DIR(VIRTUAL, "infiniband_verbs"),
	[UVERBS] = DIRS(VIRTUAL_VERBS, EACH_UVERBS),
	[VIRTUAL_MAD] = DIR(VIRTUAL, "infiniband_mad"),
	[UMAD] = DIRS(VIRTUAL_MAD, EACH_UMAD),
	[ISSM] = DIRS(VIRTUAL_MAD, EACH_ISSM),
	[VIRTUAL_MISC] = OUTSIDE(VIRTUAL, "misc"),
	[RDMA_CM] = DIR(VIRTUAL_MISC, "rdma_cm"),
	[DEV] = OUTSIDE(ROOT, "dev"),
	[DEV_IB] = DIR(DEV, "infiniband"),

	[N_DIRS] = LINKS_TO(CLASS_IB, EACH_HCA, class_link),
	FIXED(CLASS_VERBS, "abi_version", "6"),
	LINKS(CLASS_VERBS, EACH_UVERBS, TO_VIRTUAL "infiniband_verbs/"),
	FIXED(CLASS_MAD, "abi_version", "5"),
	LINKS(CLASS_MAD, EACH_UMAD, TO_VIRTUAL "infiniband_mad/"),
	LINKS(CLASS_MAD, EACH_ISSM, TO_VIRTUAL "infiniband_mad/"),
	FIXED(CLASS_CM, "abi_version", "5"),
	LINK(CLASS_MISC, "rdma_cm", TO_VIRTUAL "misc/rdma_cm"),
	LINKS_TO(NETDEV_IB, EACH_PORT_HCA, hca_link),
	LINK_TO(IPOIB, "device", place, SYSFS_OF_IPOIB),
	FILE(IPOIB, "mode", ipoib, SYSFS_IPOIB_MODE),
	FILE(IPOIB, "pkey", ipoib, SYSFS_IPOIB_PKEY),
	FIXED(IPOIB, "umcast", "0"),
	/* instead of those of its network device, which is a TUN device */
	FILE(IPOIB, "address", ipoib, SYSFS_IPOIB_ADDRESS),
	FIXED(IPOIB, "addr_len", "20"),
	FIXED(IPOIB, "type", "32"),
	FILE(IPOIB, "dev_id", ipoib, SYSFS_IPOIB_DEV_ID),
	FILE(IPOIB, "dev_port", ipoib, SYSFS_IPOIB_DEV_PORT),

	FILE(FUNCTION, "vendor", function, SYSFS_PCI_VENDOR),
	FILE(FUNCTION, "device", function, SYSFS_PCI_DEVICE),
	FILE(FUNCTION, "class", function, SYSFS_PCI_CLASS),
	FILE(FUNCTION, "resource", function, SYSFS_PCI_RESOURCE),
	FILE(FUNCTION, "uevent", function, SYSFS_PCI_UEVENT),
	FIXED(FUNCTION, "numa_node", "-1"),
	LINK(FUNCTION, "subsystem", "../../../bus/pci"),
	LINK_TO(FUNCTION, "driver", driver, 0),
	LINKS(FUNCTION_NET, EACH_HCA_NETDEV, "/sys/class/net/"),
	LINKS(FUNCTION_NET, EACH_HCA_IPOIB, "/sys/class/net/"),

	FILE(HCA, "node_type", hca, SYSFS_NODE_TYPE),
	FILE(HCA, "fw_ver", hca, SYSFS_FW_VER),
	FIXED(HCA, "hw_rev", "1"),
	FILE(HCA, "hca_type", hca, SYSFS_HCA_TYPE),
	FILE(HCA, "board_id", hca, SYSFS_BOARD_ID),
	FILE(HCA, "uevent", hca, SYSFS_HCA_UEVENT),
	FILE(HCA, "node_guid", hca, SYSFS_NODE_GUID),
	FILE(HCA, "sys_image_guid", hca, SYSFS_SYSTEM_GUID),
	FILE(HCA, "node_desc", hca, SYSFS_NODE_DESC),
	LINK(HCA, "subsystem", "../../../../../class/infiniband"),
	LINK_TO(HCA, "device", place, SYSFS_OF_HCA),

	FILE(PORT, "state", port, SYSFS_STATE),
	FILE(PORT, "phys_state", port, SYSFS_PHYS_STATE),
	FILE(PORT, "rate", port, SYSFS_RATE),
	FILE(PORT, "lid", port, SYSFS_LID),
	FILE(PORT, "lid_mask_count", port, SYSFS_LID_MASK_COUNT),
	FILE(PORT, "sm_lid", port, SYSFS_SM_LID),
	FILE(PORT, "sm_sl", port, SYSFS_SM_SL),
	FILE(PORT, "cap_mask", port, SYSFS_CAP_MASK),
	FILE(PORT, "link_layer", port, SYSFS_LINK_LAYER),
	FILES(GIDS, EACH_GID, gid),
	FILES(GID_TYPES, EACH_GID, gid_type),
	FILES(GID_NDEVS, EACH_GID, gid_ndev),
	FILES(PKEYS, EACH_PKEY, pkey),

	/* the counters of the PMA; events that it does not count cannot happen here */
	COUNTER("port_xmit_data", xmit_data),
	COUNTER("port_rcv_data", rcv_data),
	COUNTER("port_xmit_packets", xmit_packets),
	COUNTER("port_rcv_packets", rcv_packets),
	COUNTER("unicast_xmit_packets", unicast_xmit_packets),
	COUNTER("unicast_rcv_packets", unicast_rcv_packets),
	COUNTER("multicast_xmit_packets", multicast_xmit_packets),
	COUNTER("multicast_rcv_packets", multicast_rcv_packets),
	COUNTER("symbol_error", symbol_errors),
	COUNTER("port_rcv_errors", rcv_errors),
	COUNTER("link_downed", link_downed),
	COUNTER("link_error_recovery", link_error_recovery),
	COUNTER("port_rcv_switch_relay_errors", rcv_switch_relay_errors),
	COUNTER("port_xmit_discards", xmit_discards),
	COUNTER("port_xmit_constraint_errors", xmit_constraint_errors),
	COUNTER("port_rcv_constraint_errors", rcv_constraint_errors),
	FIXED(COUNTERS, "local_link_integrity_errors", "0"),
	FIXED(COUNTERS, "excessive_buffer_overrun_errors", "0"),
	FIXED(COUNTERS, "port_rcv_remote_physical_errors", "0"),
	FIXED(COUNTERS, "port_xmit_wait", "0"),
	FIXED(COUNTERS, "VL15_dropped", "0"),

	/* names of mlx5 and rxe, where ours count the same */
	{ .parent = HW_COUNTERS,
	  .kind = SYSFS_FILE,
	  .name = "out_of_buffer",
	  .text = sysfs_text_port_count,
	  .arg = offsetof(struct shm_port_count, no_receive) },
	ROCE_COUNT("rcvd_pkts", packets),
	ROCE_COUNT("rx_icrc_encapsulated", bad[WIRE_ROCE_ICRC]),

	FIXED(UVERBS, "abi_version", "1"),
	FILE(UVERBS, "ibdev", hca, SYSFS_HCA_NAME),
	FILE(UVERBS, "dev", device, SYSFS_UVERBS),
	FILE(UVERBS, "uevent", uevent, SYSFS_UVERBS),
	LINK(UVERBS, "subsystem", "../../../../class/infiniband_verbs"),
	LINK_TO(UVERBS, "device", place, SYSFS_OF_HCA),
	FILE(UMAD, "ibdev", port, SYSFS_PORT_HCA),
	FILE(UMAD, "port", port, SYSFS_PORT_NUM),
	FILE(UMAD, "dev", device, SYSFS_UMAD),
	FILE(UMAD, "uevent", uevent, SYSFS_UMAD),
	LINK(UMAD, "subsystem", "../../../../class/infiniband_mad"),
	LINK_TO(UMAD, "device", place, SYSFS_OF_PORT),
	FILE(ISSM, "ibdev", port, SYSFS_PORT_HCA),
	FILE(ISSM, "port", port, SYSFS_PORT_NUM),
	FILE(ISSM, "dev", device, SYSFS_ISSM),
	FILE(ISSM, "uevent", uevent, SYSFS_ISSM),
	LINK(ISSM, "subsystem", "../../../../class/infiniband_mad"),
	LINK_TO(ISSM, "device", place, SYSFS_OF_PORT),
	FIXED(RDMA_CM, "abi_version", "4"),
	FILE(RDMA_CM, "dev", device, SYSFS_RDMA_CM),
	FILE(RDMA_CM, "uevent", uevent, SYSFS_RDMA_CM),
	LINK(RDMA_CM, "subsystem", "../../../../class/misc"),

	DEVICE("rdma_cm", SYSFS_RDMA_CM),
	DEVICES_OF(EACH_UVERBS, SYSFS_UVERBS),
	DEVICES_OF(EACH_UMAD, SYSFS_UMAD),
	DEVICES_OF(EACH_ISSM, SYSFS_ISSM),
};

const struct sysfs_node sysfs_root = { .row = ROOT };

enum sysfs_kind sysfs_kind(const struct sysfs_node *n)
{
	if (n->row == NETDEV_DEVICE && n->index)
		return SYSFS_OUTSIDE; /* the machine has it as well */
	return (enum sysfs_kind)rows[n->row].kind;
}

uint64_t sysfs_pack(const struct sysfs_node *n)
{
	return (uint64_t)(n->row + 1) << 48 | (uint64_t)n->index << 32 | n->unit;
}

struct sysfs_node sysfs_unpack(uint64_t packed)
{
	return (struct sysfs_node){ .row = (uint16_t)((packed >> 48) - 1),
		                    .index = (uint16_t)(packed >> 32),
		                    .unit = (uint32_t)packed };
}

/* ---- what there are several of */

static bool is_ethernet(const struct sysfs_session *s, uint32_t port)
{
	return shm_port_at(&s->region, port)->link_layer == IBV_LINK_LAYER_ETHERNET;
}

/* How many candidates there are for the children that @row describes. */
static uint32_t candidates(const struct sysfs_session *s, const struct row *row,
                           const struct sysfs_node *dir)
{
	const struct shm_region *r = &s->region;

	switch ((enum each)row->each) {
	case ONE:
	case EACH_PORT_HCA:
	case EACH_OWN_HCA:
		return 1;
	case EACH_IPOIB: /* the machine lists them */
		return 0;
	case EACH_HCA_IPOIB:
		return sysfs_ipoib_last();
	case EACH_HCA:
	case EACH_FUNCTION:
	case EACH_UVERBS:
		return r->control->n_hcas;
	case EACH_UMAD:
	case EACH_ISSM:
	case EACH_NETDEV:
		return r->control->n_ports;
	case EACH_PORT:
	case EACH_HCA_NETDEV:
		return shm_hca_at(r, dir->unit)->n_ports;
	case EACH_GID:
		return base_min(shm_port_at(r, dir->unit)->n_gids, SHM_GIDS);
	case EACH_PKEY:
		return base_min(shm_port_at(r, dir->unit)->n_pkeys, SHM_PKEYS);
	}
	return 0;
}

/* The name of a node of a row that describes several. */
static bool name_of(const struct sysfs_session *s, const struct sysfs_node *n,
                    char name[static SYSFS_NAME_ROOM])
{
	const struct row *row = &rows[n->row];
	struct shm_port p;

	switch ((enum each)row->each) {
	case ONE:
		strcpy(name, row->name);
		return true;
	case EACH_HCA:
	case EACH_PORT_HCA:
	case EACH_OWN_HCA:
		strcpy(name, sysfs_session_hca(s, n->unit));
		return true;
	case EACH_FUNCTION:
		sysfs_function_name(n->unit, name);
		return true;
	case EACH_UVERBS:
		return snprintf(name, SYSFS_NAME_ROOM, "uverbs%u", n->unit) > 0;
	case EACH_UMAD:
		return snprintf(name, SYSFS_NAME_ROOM, "umad%u", n->unit) > 0;
	case EACH_ISSM:
		return snprintf(name, SYSFS_NAME_ROOM, "issm%u", n->unit) > 0;
	case EACH_PORT:
		return snprintf(name, SYSFS_NAME_ROOM, "%u",
		                shm_port_at(&s->region, n->unit)->port_num) > 0;
	case EACH_GID:
	case EACH_PKEY:
		return snprintf(name, SYSFS_NAME_ROOM, "%u", n->index) > 0;
	case EACH_NETDEV:
	case EACH_HCA_NETDEV:
		shm_port_read(&s->region, n->unit, &p);
		return p.ifindex && if_indextoname(p.ifindex, name);
	case EACH_IPOIB:
	case EACH_HCA_IPOIB:
		return if_indextoname(n->unit, name);
	}
	return false;
}

/* Whether the machine's netdev has a directory "device" itself. */
static bool machine_has_device(const struct sysfs_node *device)
{
	const struct sysfs_node netdev = { .row = NETDEV, .unit = device->unit };

	return sysfs_machine_has(&netdev, "device");
}

static int stop(void *arg, const char *name, const struct sysfs_node *child)
{
	(void)arg;
	(void)name;
	(void)child;
	return 1;
}

/* Whether what there is one of is there. The kernel has no directory "net" for a card without a
 * netdev. */
static bool is_there(const struct sysfs_session *s, const struct row *row,
                     const struct sysfs_node *n)
{
	if (n->row == FUNCTION_NET)
		return sysfs_list(n, stop, NULL);
	return !row->ethernet || is_ethernet(s, n->unit);
}

/* Candidate @i: its unit or index. False: the process must not see it, or it is none. */
static bool choose(const struct sysfs_session *s, const struct row *row,
                   const struct sysfs_node *dir, uint32_t i, struct sysfs_node *child)
{
	const struct shm_region *r = &s->region;
	struct wire_ipoib_alias alias;
	uint32_t hca;

	*child = *dir;
	child->row = (uint16_t)(row - rows);
	switch ((enum each)row->each) {
	case ONE:
		child->index = child->row == NETDEV_DEVICE && machine_has_device(child);
		return is_there(s, row, child);
	case EACH_HCA:
	case EACH_FUNCTION:
	case EACH_UVERBS:
		child->unit = i;
		return sysfs_session_sees(s, i);
	case EACH_OWN_HCA:
		return true;
	case EACH_UMAD:
	case EACH_ISSM:
	case EACH_NETDEV:
		child->unit = i;
		if (!sysfs_session_sees(s, shm_port_at(r, i)->hca))
			return false;
		return row->each == EACH_UMAD || is_ethernet(s, i) == (row->each == EACH_NETDEV);
	case EACH_PORT:
	case EACH_HCA_NETDEV:
		child->unit = shm_hca_at(r, dir->unit)->first_port + i;
		return row->each == EACH_PORT || is_ethernet(s, child->unit);
	case EACH_GID:
	case EACH_PKEY:
		child->index = (uint16_t)i;
		return true;
	case EACH_PORT_HCA:
		child->unit = shm_port_at(r, dir->unit)->hca;
		return true;
	case EACH_IPOIB:
		break;
	case EACH_HCA_IPOIB:
		child->unit = i + 1;
		return sysfs_ipoib_find(s, child->unit, &alias, &hca) && hca == dir->unit;
	}
	return false;
}

/* ---- children */

static bool same_name(const char *a, const char *b, size_t length)
{
	return strlen(a) == length && !memcmp(a, b, length);
}

static bool is_numbered(const struct row *row)
{
	switch ((enum each)row->each) {
	case EACH_FUNCTION:
	case EACH_UVERBS:
	case EACH_UMAD:
	case EACH_ISSM:
	case EACH_PORT:
	case EACH_GID:
	case EACH_PKEY:
		return true;
	default:
		return false;
	}
}

/* Which candidate a name with a number means: ports begin with 1. */
static uint32_t candidate_of(const struct row *row, const char *name, size_t length)
{
	uint64_t n = 0;

	for (size_t i = strcspn(name, "0123456789"); i < length; i++)
		if (name[i] >= '0' && name[i] <= '9' && n < UINT32_MAX)
			n = n * 10 + (uint64_t)(name[i] - '0');
	if (row->each == EACH_FUNCTION)
		n = sysfs_function_hca(name);
	if (row->each == EACH_PORT)
		n--;
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static bool find_candidate(const struct row *row, const struct sysfs_node *dir, const char *name,
                           size_t length, struct sysfs_node *child)
{
	const struct sysfs_session *s = sysfs_session();
	uint32_t i = 0, end = s ? candidates(s, row, dir) : 0;
	char found[SYSFS_NAME_ROOM];

	if (end && is_numbered(row)) {
		i = candidate_of(row, name, length);
		end = i < end ? i + 1 : 0;
	}
	for (; i < end; i++)
		if (choose(s, row, dir, i, child) && name_of(s, child, found) &&
		    same_name(found, name, length))
			return true;
	return false;
}

static bool is_of_netdev(const struct row *row)
{
	return row->each == EACH_NETDEV || row->each == EACH_IPOIB;
}

/* Whether a path that goes on with @rest may lead to ours. Only that of a netdev may not: programs
 * look at netdevs for many reasons, and then no fabric is to be asked. */
static bool leads_on(const struct row *row, const char *rest)
{
	size_t length;

	if (!is_of_netdev(row))
		return true;
	rest += strspn(rest, "/");
	length = strcspn(rest, "/");
	for (size_t i = ROOT + 1; i < ARRAY_SIZE(rows); i++)
		if (&rows[rows[i].parent] == row && same_name(rows[i].name, rest, length))
			return true;
	return false;
}

bool sysfs_netdev_has(const char *rest)
{
	return leads_on(&rows[NETDEV], rest) || leads_on(&rows[IPOIB], rest);
}

static bool find_ipoib(const struct row *row, const char *name, size_t length,
                       struct sysfs_node *child)
{
	*child = (struct sysfs_node){ .row = (uint16_t)(row - rows) };
	child->unit = sysfs_ipoib_index(name, length);
	return child->unit;
}

static bool find_in_row(const struct row *row, const struct sysfs_node *dir, const char *name,
                        size_t length, struct sysfs_node *child)
{
	if (row->each == ONE && !same_name(row->name, name, length))
		return false;
	if (row->each == EACH_IPOIB)
		return find_ipoib(row, name, length, child);
	if (row->kind != SYSFS_OUTSIDE || row->each != ONE)
		return find_candidate(row, dir, name, length, child);
	*child = (struct sysfs_node){ .row = (uint16_t)(row - rows) };
	return true;
}

int sysfs_find(const struct sysfs_node *dir, const char *name, size_t length, const char *rest,
               struct sysfs_node *child)
{
	enum sysfs_kind kind = sysfs_kind(dir);

	if (kind != SYSFS_DIR && kind != SYSFS_OUTSIDE)
		return -ENOTDIR;
	for (size_t i = ROOT + 1; i < ARRAY_SIZE(rows); i++)
		if (rows[i].parent == dir->row && leads_on(&rows[i], rest) &&
		    find_in_row(&rows[i], dir, name, length, child))
			return 0;
	return -ENOENT;
}

static int list_row(const struct sysfs_session *s, const struct row *row,
                    const struct sysfs_node *dir, sysfs_each_child *each, void *arg)
{
	uint32_t n = candidates(s, row, dir);
	char name[SYSFS_NAME_ROOM];
	struct sysfs_node child;
	int ret = 0;

	for (uint32_t i = 0; i < n && !ret; i++)
		if (choose(s, row, dir, i, &child) && name_of(s, &child, name))
			ret = each(arg, name, &child);
	return ret;
}

int sysfs_list(const struct sysfs_node *dir, sysfs_each_child *each, void *arg)
{
	const struct sysfs_session *s = sysfs_session();
	int ret = 0;

	for (size_t i = ROOT + 1; s && i < ARRAY_SIZE(rows) && !ret; i++)
		if (rows[i].parent == dir->row)
			ret = list_row(s, &rows[i], dir, each, arg);
	return ret;
}

int sysfs_list_counters(uint32_t port, sysfs_each_child *each, void *arg)
{
	const struct sysfs_node dir = { .row = HW_COUNTERS, .unit = port };

	return sysfs_list(&dir, each, arg);
}

/* The path of a directory of the machine's; false: the netdev has gone. */
static bool machine_path(const struct sysfs_node *dir, char *path, size_t room)
{
	char name[SYSFS_NAME_ROOM], above[PATH_MAX] = "";
	const struct row *row = &rows[dir->row];
	struct sysfs_node parent = { .row = row->parent, .unit = dir->unit };
	const struct sysfs_session *s = sysfs_session();

	if (dir->row == ROOT)
		return snprintf(path, room, "%s", "") == 0;
	if (!s || !name_of(s, dir, name) || !machine_path(&parent, above, sizeof(above)))
		return false;
	return snprintf(path, room, "%s/%s", above, name) < (int)room;
}

bool sysfs_adds_to(const struct sysfs_node *dir)
{
	for (size_t i = ROOT + 1; i < ARRAY_SIZE(rows); i++)
		if (rows[i].parent == dir->row && rows[i].kind != SYSFS_OUTSIDE)
			return true;
	return false;
}

bool sysfs_machine_has(const struct sysfs_node *dir, const char *name)
{
	char path[PATH_MAX], file[PATH_MAX + SYSFS_NAME_ROOM];
	struct stat st;

	if (!machine_path(dir, path, sizeof(path)))
		return true;
	snprintf(file, sizeof(file), "%s/%s", path, name);
	return !sysfs_real()->lstat(file, &st);
}

/* ---- contents */

static int link_text(const struct sysfs_session *s, const struct sysfs_node *n, char *text)
{
	const struct row *row = &rows[n->row];
	char name[SYSFS_NAME_ROOM] = "";

	if (row->each != ONE)
		name_of(s, n, name);
	return snprintf(text, SYSFS_TEXT_ROOM, "%s%s", row->fixed, name);
}

int sysfs_text(const struct sysfs_node *n, char text[static SYSFS_TEXT_ROOM])
{
	const struct row *row = &rows[n->row];
	const struct sysfs_subject of = {
		.s = sysfs_session(), .node = *n, .arg = row->arg, .fixed = row->fixed
	};
	size_t length;
	int ret;

	if (!of.s)
		return -ENODEV;
	if (row->kind == SYSFS_LINK && !row->text)
		return link_text(of.s, n, text);
	if (!row->text)
		return -EINVAL;
	ret = row->text(&of, text);
	if (ret)
		return ret;
	if (row->kind == SYSFS_LINK)
		return (int)strlen(text);
	length = strnlen(text, SYSFS_TEXT_ROOM - 2);
	strcpy(text + length, "\n");
	return (int)length + 1;
}

/* ---- devices */

uint64_t sysfs_device(const struct sysfs_node *n)
{
	return sysfs_text_device_number((enum sysfs_device_kind)rows[n->row].arg, n->unit);
}

bool sysfs_is_issm(const struct sysfs_node *n, uint32_t *port)
{
	*port = n->unit;
	return rows[n->row].kind == SYSFS_DEVICE && rows[n->row].arg == SYSFS_ISSM;
}
