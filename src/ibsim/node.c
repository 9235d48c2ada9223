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

#include "wire/sm_attr.h"

#define PATIENCE_MS 1000
#define GUID_DIGITS 16
#define DEVICE      "umbel_" /* HOST_NUMBER */

/* ---- asking ---- */

/* A request for the port's own node: a directed route without a hop. */
static void make_request(void *umad, uint16_t attribute, uint32_t modifier)
{
	struct wire_smp smp = {
		.mad = { .base_version = MAD_BASE_VERSION,
		         .mgmt_class = MAD_CLASS_SUBN_DIRECTED,
		         .class_version = MAD_VERSION_SUBN,
		         .method = MAD_GET,
		         .transaction_id = 1,
		         .attribute_id = attribute,
		         .attribute_modifier = modifier },
		.dr_slid = IB_LID_PERMISSIVE,
		.dr_dlid = IB_LID_PERMISSIVE,
	};

	memset(umad, 0, umad_size() + MAD_BYTES);
	umad_set_addr(umad, IB_LID_PERMISSIVE, IB_QPN_SMI, 0, 0);
	wire_smp_encode(&smp, umad_get_mad(umad));
}

/* Sends it from the open port and waits. 0 or -errno. */
static int exchange(int fd, void *umad, uint8_t data[static SMP_DATA_BYTES])
{
	int agent = umad_register(fd, MAD_CLASS_SUBN_DIRECTED, MAD_VERSION_SUBN, 0, NULL);
	int bytes = MAD_BYTES, ret;
	struct wire_smp smp;

	if (agent < 0)
		return -EIO;
	if (umad_send(fd, agent, umad, MAD_BYTES, PATIENCE_MS, 0))
		return -errno;
	ret = umad_recv(fd, umad, &bytes, 2 * PATIENCE_MS);
	if (ret < 0)
		return ret;
	if (umad_status(umad))
		return -umad_status(umad);
	wire_smp_decode(umad_get_mad(umad), &smp);
	memcpy(data, smp.data, SMP_DATA_BYTES);
	return smp.mad.status ? -EINVAL : 0;
}

int ibsim_node_ask(const struct ibsim_place *at, uint16_t attribute, uint32_t modifier,
                   uint8_t data[static SMP_DATA_BYTES])
{
	void *umad = umad_alloc(1, umad_size() + MAD_BYTES);
	int fd, ret;

	if (!umad)
		return -ENOMEM;
	fd = umad_open_port(at->device, at->port);
	if (fd < 0) {
		umad_free(umad);
		return fd;
	}
	make_request(umad, attribute, modifier);
	ret = exchange(fd, umad, data);
	umad_close_port(fd);
	umad_free(umad);
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
	char suffix[16];

	if (strncmp(device, DEVICE, strlen(DEVICE)))
		return false;
	device += strlen(DEVICE);
	for (size_t i = 0; i < len; i++) {
		char c = host[i];

		if (!isalnum((unsigned char)c) && !strchr("._-", c))
			c = '-';
		if (device[i] != c)
			return false;
	}
	device += len;
	if (number < 0)
		return device[0] == '_' && strspn(device + 1, "0123456789") == strlen(device + 1);
	snprintf(suffix, sizeof(suffix), "_%d", number);
	return !strcmp(device, suffix);
}

static bool is_described_so(const char *device, const char *name)
{
	struct ibsim_place at = { .port = 1 };
	uint8_t text[SMP_DATA_BYTES];

	snprintf(at.device, sizeof(at.device), "%s", device);
	return !ibsim_node_ask(&at, SMP_ATTR_NODE_DESCRIPTION, 0, text) &&
	       strnlen((const char *)text, sizeof(text)) == strlen(name) &&
	       !memcmp(text, name, strlen(name));
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
		if (is_of_host(ibv_get_device_name(*d), name, word, -1) &&
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
