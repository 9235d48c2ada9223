/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The contents of the files: functions of type sysfs_write_text, which the rows of tree.c name.
 * Each writes what the kernel's file of that name would, without the line break. Thread-safe.
 */
#ifndef SYSFS_TEXT_H
#define SYSFS_TEXT_H

#include "sysfs/node.h"
#include "sysfs/session.h"

/* A node in its fabric. @arg, @fixed: from the row. */
struct sysfs_subject {
	const struct sysfs_session *s;
	struct sysfs_node node;
	uint32_t arg;
	const char *fixed;
};

/* 0 or -errno. */
typedef int sysfs_write_text(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM]);

sysfs_write_text sysfs_text_fixed; /* the row's text */

/* of an HCA; @arg: which one, enum sysfs_hca_text */
enum sysfs_hca_text {
	SYSFS_NODE_GUID,
	SYSFS_SYSTEM_GUID,
	SYSFS_HCA_NAME,
	SYSFS_NODE_DESC,
	SYSFS_HCA_TYPE,
	SYSFS_FW_VER,
	SYSFS_BOARD_ID,
	SYSFS_NODE_TYPE,
	SYSFS_HCA_UEVENT,
};
sysfs_write_text sysfs_text_hca;

/*
 * Each HCA is a function of a PCI bus that no machine has, as programs compare and group HCAs and
 * network devices by their functions. They are numbered as the HCAs are.
 */
#define SYSFS_BUS "pci756d:00"
void sysfs_function_name(uint32_t hca, char name[static SYSFS_NAME_ROOM]);
uint32_t sysfs_function_hca(const char *name); /* if it has that name; any text is safe */
enum sysfs_function_text {
	SYSFS_PCI_VENDOR,
	SYSFS_PCI_DEVICE,
	SYSFS_PCI_CLASS,
	SYSFS_PCI_RESOURCE,
	SYSFS_PCI_UEVENT,
};
sysfs_write_text sysfs_text_function;

/* The target of a link: from the class to an HCA, from elsewhere to it, and from nodes that belong
 * to an HCA to its function; @arg: the kind of the unit. A network device of the machine's that has
 * a place of its own is the HCA's as well. */
enum sysfs_belongs { SYSFS_OF_HCA, SYSFS_OF_PORT, SYSFS_OF_IPOIB };
sysfs_write_text sysfs_text_class_link, sysfs_text_hca_link, sysfs_text_place;

/* Likewise from a function to its driver, the one whose devices have such names: Open MPI chooses
 * UCX by it. */
sysfs_write_text sysfs_text_driver;

/* of a port; @arg: enum sysfs_port_text */
enum sysfs_port_text {
	SYSFS_STATE,
	SYSFS_PHYS_STATE,
	SYSFS_RATE,
	SYSFS_LID,
	SYSFS_SM_LID,
	SYSFS_SM_SL,
	SYSFS_LID_MASK_COUNT,
	SYSFS_CAP_MASK,
	SYSFS_LINK_LAYER,
	SYSFS_PORT_NUM,
	SYSFS_PORT_HCA,
};
sysfs_write_text sysfs_text_port;

/* of an interface of IPoIB; @arg: enum sysfs_ipoib_text */
enum sysfs_ipoib_text {
	SYSFS_IPOIB_MODE,
	SYSFS_IPOIB_PKEY,
	SYSFS_IPOIB_ADDRESS,
	SYSFS_IPOIB_DEV_ID,
	SYSFS_IPOIB_DEV_PORT,
};
sysfs_write_text sysfs_text_ipoib;

/* entry node.index of a port's tables */
sysfs_write_text sysfs_text_gid, sysfs_text_gid_type, sysfs_text_gid_ndev, sysfs_text_pkey;

/* counters; @arg: an offset in the struct */
sysfs_write_text sysfs_text_counter;    /* struct control_describe_port_reply */
sysfs_write_text sysfs_text_port_count; /* struct shm_port_count */
sysfs_write_text sysfs_text_roce_count; /* struct shm_roce_port */

/* of a device; @arg: enum sysfs_device_kind */
enum sysfs_device_kind { SYSFS_UVERBS, SYSFS_UMAD, SYSFS_ISSM, SYSFS_RDMA_CM };
sysfs_write_text sysfs_text_device, sysfs_text_uevent;

/* The number of a device. @unit: of its node. */
uint64_t sysfs_text_device_number(enum sysfs_device_kind kind, uint32_t unit);

#endif
