/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ports at which clients can be: see node.h.
 */
#include "ibsim/node.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/umad.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUID_DIGITS 16
#define DEVICE      "umbel_" /* HOST_NUMBER; devices with names of their own: HOST.NAME */

/* ---- what an HCA says of itself ---- */

static struct ibv_context *open_hca(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (struct ibv_device **d = list; list && *d; d++) {
		if (strcmp(ibv_get_device_name(*d), name) != 0)
			continue;
		context = ibv_open_device(*d);
		break;
	}
	if (list)
		ibv_free_device_list(list);
	return context;
}

static int read_node(struct ibv_context *context, int port, struct wire_node_info *info)
{
	struct ibv_device_attr hca;
	union ibv_gid gid;

	if (ibv_query_device(context, &hca) || ibv_query_gid(context, (uint8_t)port, 0, &gid))
		return -EIO;
	*info = (struct wire_node_info){
		.base_version = MAD_BASE_VERSION,
		.class_version = MAD_VERSION_SUBN,
		.node_type = NODE_TYPE_CA,
		.num_ports = hca.phys_port_cnt,
		.system_image_guid = be64toh(hca.sys_image_guid),
		.node_guid = be64toh(hca.node_guid),
		.port_guid = be64toh(gid.global.interface_id),
		.partition_cap = hca.max_pkeys,
		.device_id = (uint16_t)hca.vendor_part_id,
		.revision = hca.hw_ver,
		.local_port_num = (uint8_t)port,
		.vendor_id = hca.vendor_id,
	};
	return 0;
}

/* Speeds of verbs from FDR's on are extended ones in PortInfo, where QDR stands beside them. */
static void set_speed(struct wire_port_info *info, unsigned speed)
{
	const unsigned fdr = 16;

	info->link_speed_active = (uint8_t)(speed < LINK_SPEED_QDR ? speed : LINK_SPEED_QDR);
	info->link_speed_ext_active = (uint8_t)(speed / fdr);
}

static int read_port(struct ibv_context *context, int port, struct wire_port_info *info)
{
	struct ibv_port_attr a;
	union ibv_gid gid;

	if (ibv_query_port(context, (uint8_t)port, &a))
		return -EINVAL; /* there is no such port */
	if (ibv_query_gid(context, (uint8_t)port, 0, &gid))
		return -EIO;
	*info = (struct wire_port_info){
		.gid_prefix = be64toh(gid.global.subnet_prefix),
		.lid = a.lid,
		.master_sm_lid = a.sm_lid,
		.capability_mask = a.port_cap_flags,
		.local_port_num = (uint8_t)port,
		.link_width_active = a.active_width,
		.port_state = (uint8_t)a.state,
		.port_physical_state = a.phys_state,
		.lmc = a.lmc,
		.neighbor_mtu = (uint8_t)a.active_mtu,
		.master_sm_sl = a.sm_sl,
		.mtu_cap = (uint8_t)a.max_mtu,
		.subnet_timeout = a.subnet_timeout,
	};
	if (a.phys_state == PORT_PHYS_LINK_UP)
		set_speed(info, a.active_speed);
	return 0;
}

static int read_pkeys(struct ibv_context *context, int port, struct wire_pkey_table *table)
{
	uint16_t pkey;

	memset(table, 0, sizeof(*table));
	for (int i = 0; i < PKEY_BLOCK; i++) {
		if (ibv_query_pkey(context, (uint8_t)port, i, &pkey))
			return i ? 0 : -EIO; /* the table is shorter */
		table->pkey[i] = be16toh(pkey);
	}
	return 0;
}

int ibsim_node_info(const struct ibsim_place *at, struct wire_node_info *info)
{
	struct ibv_context *context = open_hca(at->device);
	int ret;

	if (!context)
		return -ENODEV;
	ret = read_node(context, at->port, info);
	ibv_close_device(context);
	return ret;
}

int ibsim_node_port(const struct ibsim_place *at, int port, struct wire_port_info *info)
{
	struct ibv_context *context = open_hca(at->device);
	int ret;

	if (!context)
		return -ENODEV;
	ret = read_port(context, port ? port : at->port, info);
	ibv_close_device(context);
	return ret;
}

int ibsim_node_pkeys(const struct ibsim_place *at, struct wire_pkey_table *table)
{
	struct ibv_context *context = open_hca(at->device);
	int ret;

	if (!context)
		return -ENODEV;
	ret = read_pkeys(context, at->port, table);
	ibv_close_device(context);
	return ret;
}

int ibsim_node_check(const struct ibsim_place *at)
{
	umad_port_t port;
	int ret = umad_get_port(at->device, at->port, &port);

	if (ret)
		return ret;
	if (strcmp(port.link_layer, "InfiniBand") != 0)
		ret = -EOPNOTSUPP;
	umad_release_port(&port);
	return ret;
}

/* ---- finding ---- */

/* The GUID in a name such as "H-0002c90300000010"; 0: it has none. */
static uint64_t guid_of(const char *name)
{
	const char *digits = strchr(name, '-');

	digits = digits ? digits + 1 : name;
	if (strlen(digits) != GUID_DIGITS ||
	    strspn(digits, "0123456789abcdefABCDEF") != GUID_DIGITS)
		return 0;
	return strtoull(digits, NULL, 16);
}

/* Whether @device is HCA @number of the host whose name is the first @len bytes of @host, written
 * as names of hosts are; @number -1: any. */
static bool is_of_host(const char *device, const char *host, size_t len, int number)
{
	bool is_ours = !strncmp(device, DEVICE, strlen(DEVICE));
	const char *digits;

	device += is_ours ? strlen(DEVICE) : 0;
	for (size_t i = 0; i < len; i++) {
		char c = host[i];

		if (!isalnum((unsigned char)c) && !strchr("._-", c))
			c = '-';
		if (device[i] != c)
			return false;
	}
	device += len;
	if (*device++ != (is_ours ? '_' : '.'))
		return false;
	for (digits = device + strlen(device);
	     digits > device && isdigit((unsigned char)digits[-1]);)
		digits--;
	return *digits && (!is_ours || digits == device) && (number < 0 || atoi(digits) == number);
}

/* Whether the device has a name of its own on the fabric's only host. */
static bool is_of_only_host(const char *device)
{
	return strncmp(device, DEVICE, strlen(DEVICE)) != 0 && !strchr(device, '.');
}

/* @name: a description, or of the only host, its beginning. */
static bool is_described_so(const char *device, const char *name)
{
	char path[128], text[NODE_DESCRIPTION_BYTES + 2];
	size_t length;
	FILE *f;

	snprintf(path, sizeof(path), SYS_INFINIBAND "/%s/node_desc", device);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	text[strcspn(text, "\n")] = '\0';
	length = strlen(name);
	return !strcmp(text, name) ||
	       (is_of_only_host(device) && !strncmp(text, name, length) && text[length] == ' ');
}

/* The device that is meant, or NULL. */
static struct ibv_device *choose(struct ibv_device **list, const char *name)
{
	uint64_t guid = guid_of(name);
	size_t word = strcspn(name, " ");

	for (struct ibv_device **d = list; *d; d++)
		if (!*name || !strcmp(ibv_get_device_name(*d), name) ||
		    is_of_host(ibv_get_device_name(*d), name, strlen(name), 0) ||
		    (guid && be64toh(ibv_get_device_guid(*d)) == guid))
			return *d;
	/* a description begins with the host's name */
	for (struct ibv_device **d = list; *d; d++)
		if ((is_of_only_host(ibv_get_device_name(*d)) ||
		     is_of_host(ibv_get_device_name(*d), name, word, -1)) &&
		    is_described_so(ibv_get_device_name(*d), name))
			return *d;
	return NULL;
}

static int choose_port(const char *device)
{
	umad_port_t port;
	bool has_link;

	for (int n = 1; !umad_get_port(device, n, &port); n++) {
		has_link = port.phys_state == PORT_PHYS_LINK_UP;
		umad_release_port(&port);
		if (has_link)
			return n;
	}
	return 1;
}

int ibsim_node_find(const char *name, struct ibsim_place *at)
{
	struct ibv_device **list = ibv_get_device_list(NULL), *device;

	if (!list)
		return -ENODEV;
	if (!*list) {
		ibv_free_device_list(list);
		return -ENODEV;
	}
	device = choose(list, name ? name : "");
	if (device) {
		snprintf(at->device, sizeof(at->device), "%s", ibv_get_device_name(device));
		at->port = choose_port(at->device);
	}
	ibv_free_device_list(list);
	return device ? 0 : -ENOENT;
}
