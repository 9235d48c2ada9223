/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The contents of the files: see text.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/util.h"
#include "sysfs/ipoib.h"
#include "sysfs/real.h"
#include "sysfs/text.h"
#include "wire/rate.h"

#define PUT(...) snprintf(text, SYSFS_TEXT_ROOM, __VA_ARGS__)

int sysfs_text_fixed(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	PUT("%s", of->fixed);
	return 0;
}

static int put_guid(char *text, uint64_t guid)
{
	PUT("%04x:%04x:%04x:%04x", (unsigned)(guid >> 48), (unsigned)(guid >> 32) & 0xFFFF,
	    (unsigned)(guid >> 16) & 0xFFFF, (unsigned)guid & 0xFFFF);
	return 0;
}

/* The daemon has it: a description of 64 bytes without an end, if it is that long. */
static int put_description(const struct shm_hca *h, char *text)
{
	struct control_describe_port_reply d;
	int ret = sysfs_session_describe(h->first_port, &d);

	if (!ret)
		PUT("%.*s", (int)sizeof(d.node_desc), d.node_desc);
	return ret;
}

int sysfs_text_hca(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	const struct shm_hca *h = shm_hca_at(&of->s->region, of->node.unit);

	switch ((enum sysfs_hca_text)of->arg) {
	case SYSFS_NODE_GUID:
		return put_guid(text, h->node_guid);
	case SYSFS_SYSTEM_GUID:
		return put_guid(text, h->system_guid);
	case SYSFS_HCA_NAME:
		PUT("%s", sysfs_session_hca(of->s, of->node.unit));
		return 0;
	case SYSFS_NODE_DESC:
		return put_description(h, text);
	case SYSFS_HCA_TYPE:
		PUT("%s", h->type);
		return 0;
	case SYSFS_NODE_TYPE:
		PUT("%s", h->is_router ? "3: router" : "1: CA");
		return 0;
	case SYSFS_FW_VER:
		PUT("%s", h->fw_ver);
		return 0;
	case SYSFS_BOARD_ID:
		PUT("%s", h->board_id);
		return 0;
	case SYSFS_HCA_UEVENT:
		PUT("NAME=%s", sysfs_session_hca(of->s, of->node.unit));
		return 0;
	}
	return -EIO;
}

/* ---- places */

/* The vendor by its OUI, as verbs have it, and by its number in the PCI specification. */
#define MELLANOX_OUI 0x2C9
#define MELLANOX_PCI 0x15B3

#define DOMAIN 0x756Du /* of the first 256 */

void sysfs_function_name(uint32_t hca, char name[static SYSFS_NAME_ROOM])
{
	snprintf(name, SYSFS_NAME_ROOM, "%04x:%02x:00.0", DOMAIN + (hca >> 8), hca & 0xFF);
}

uint32_t sysfs_function_hca(const char *name)
{
	char *end;
	unsigned long domain = strtoul(name, &end, 16);
	unsigned long bus = *end == ':' ? strtoul(end + 1, NULL, 16) : 0;

	return (uint32_t)(domain - DOMAIN) << 8 | (bus & 0xFF);
}

static int put_hca_path(const struct sysfs_subject *of, const char *root, char *text)
{
	char function[SYSFS_NAME_ROOM];

	sysfs_function_name(of->node.unit, function);
	PUT("%sdevices/" SYSFS_BUS "/%s/infiniband/%s", root, function,
	    sysfs_session_hca(of->s, of->node.unit));
	return 0;
}

int sysfs_text_class_link(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	return put_hca_path(of, "../../", text);
}

int sysfs_text_hca_link(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	return put_hca_path(of, "/sys/", text);
}

/* The link of the machine's from a port's network device to its place; false: there is none. */
static bool put_machine_place(const struct sysfs_session *s, uint32_t port, char *text)
{
	char name[IF_NAMESIZE];
	struct shm_port p;
	struct stat st;
	int error = errno;
	bool found;

	shm_port_read(&s->region, port, &p);
	found = p.ifindex && if_indextoname(p.ifindex, name) &&
	        PUT("/sys/class/net/%s/device", name) && !sysfs_real()->lstat(text, &st);
	errno = error;
	return found;
}

int sysfs_text_place(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	uint32_t hca = of->node.unit;
	char function[SYSFS_NAME_ROOM];
	struct wire_ipoib_alias alias;

	if (of->arg == SYSFS_OF_PORT)
		hca = shm_port_at(&of->s->region, hca)->hca;
	if (of->arg == SYSFS_OF_IPOIB && !sysfs_ipoib_find(of->s, of->node.unit, &alias, &hca))
		return -ENODEV;
	if (put_machine_place(of->s, shm_hca_at(&of->s->region, hca)->first_port, text))
		return 0;
	sysfs_function_name(hca, function);
	PUT("/sys/devices/" SYSFS_BUS "/%s", function);
	return 0;
}

static const char *driver_of(const struct sysfs_subject *of)
{
	static const struct {
		const char *devices, *driver;
	} known[] = { { "mlx4_", "mlx4_core" }, { "mlx5_", "mlx5_core" } };
	const char *driver = "umbel", *device = shm_hca_at(&of->s->region, of->node.unit)->device;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strncmp(device, known[i].devices, strlen(known[i].devices)))
			driver = known[i].driver;
	return driver;
}

int sysfs_text_driver(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	PUT("../../../bus/pci/drivers/%s", driver_of(of));
	return 0;
}

int sysfs_text_function(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	const struct shm_region *r = &of->s->region;
	uint64_t bytes = 1 << 20, start = of->node.unit * bytes + (0x756DULL << 32);
	const struct shm_hca *h = shm_hca_at(r, of->node.unit);
	bool is_ethernet = shm_port_at(r, h->first_port)->link_layer == IBV_LINK_LAYER_ETHERNET;
	unsigned vendor = h->vendor_id == MELLANOX_OUI ? MELLANOX_PCI : h->vendor_id & 0xFFFF;
	unsigned device = h->device_id & 0xFFFF, class = is_ethernet ? 0x020000 : 0x020700;
	char name[SYSFS_NAME_ROOM];

	switch ((enum sysfs_function_text)of->arg) {
	case SYSFS_PCI_VENDOR:
		PUT("0x%04x", vendor);
		break;
	case SYSFS_PCI_DEVICE:
		PUT("0x%04x", device);
		break;
	case SYSFS_PCI_CLASS:
		PUT("0x%06x", class);
		break;
	case SYSFS_PCI_UEVENT:
		sysfs_function_name(of->node.unit, name);
		PUT("DRIVER=%s\nPCI_CLASS=%X\nPCI_ID=%04X:%04X\nPCI_SLOT_NAME=%s", driver_of(of),
		    class, vendor, device, name);
		break;
	case SYSFS_PCI_RESOURCE: /* first, last byte and flags; what each function has alone */
		PUT("0x%016" PRIx64 " 0x%016" PRIx64 " 0x%016x", start, start + bytes - 1,
		    0x140204);
		break;
	}
	return 0;
}

/* ---- ports */

static void put_named(char *text, unsigned number, const char *const *names, size_t n)
{
	PUT("%u: %s", number, number < n && names[number] ? names[number] : "<unknown>");
}

static void put_state(char *text, unsigned state)
{
	static const char *const names[] = { "NOP",   "DOWN",   "INIT",
		                             "ARMED", "ACTIVE", "ACTIVE_DEFER" };

	put_named(text, state, names, ARRAY_SIZE(names));
}

static void put_phys_state(char *text, unsigned state)
{
	static const char *const names[] = { NULL,
		                             "Sleep",
		                             "Polling",
		                             "Disabled",
		                             "PortConfigurationTraining",
		                             "LinkUp",
		                             "LinkErrorRecovery",
		                             "Phy Test" };

	put_named(text, state, names, ARRAY_SIZE(names));
}

/* "100 Gb/sec (4X EDR)" */
static void put_rate(char *text, const struct shm_port *p)
{
	unsigned rate = wire_link_speed(p->active_width, p->active_speed);

	PUT("%u%s Gb/sec (%uX %s)", rate / 10, rate % 10 ? ".5" : "",
	    wire_link_lanes(p->active_width), wire_link_speed_name(p->active_speed));
}

int sysfs_text_port(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	const struct shm_region *r = &of->s->region;
	struct shm_port p;

	shm_port_read(r, of->node.unit, &p);
	switch ((enum sysfs_port_text)of->arg) {
	case SYSFS_STATE:
		put_state(text, p.state);
		break;
	case SYSFS_PHYS_STATE:
		put_phys_state(text, p.phys_state);
		break;
	case SYSFS_RATE:
		put_rate(text, &p);
		break;
	case SYSFS_LID:
		PUT("0x%x", p.lid);
		break;
	case SYSFS_SM_LID:
		PUT("0x%x", p.sm_lid);
		break;
	case SYSFS_SM_SL:
		PUT("%u", p.sm_sl);
		break;
	case SYSFS_LID_MASK_COUNT:
		PUT("%u", p.lmc);
		break;
	case SYSFS_CAP_MASK:
		sysfs_session_read_port(of->s, of->node.unit, &p);
		PUT("0x%08x", p.cap_flags);
		break;
	case SYSFS_LINK_LAYER:
		PUT("%s", p.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
		break;
	case SYSFS_PORT_NUM:
		PUT("%u", p.port_num);
		break;
	case SYSFS_PORT_HCA:
		PUT("%s", sysfs_session_hca(of->s, p.hca));
		break;
	}
	return 0;
}

int sysfs_text_gid(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	struct shm_port p;
	const uint8_t *g;

	shm_port_read(&of->s->region, of->node.unit, &p);
	g = p.gid[of->node.index].raw;
	for (unsigned i = 0; i < 8; i++)
		sprintf(text + i * 5, "%02x%02x%s", g[i * 2], g[i * 2 + 1], i < 7 ? ":" : "");
	return 0;
}

/* As the kernel: an empty entry has no type, one without a netdev no name. */
int sysfs_text_gid_type(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	struct shm_port p;

	shm_port_read(&of->s->region, of->node.unit, &p);
	if (ib_gid_is_zero(&p.gid[of->node.index]))
		return -EINVAL;
	PUT("%s", p.gid_type[of->node.index] == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
	return 0;
}

int sysfs_text_gid_ndev(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	struct shm_port p;
	int error = errno;

	shm_port_read(&of->s->region, of->node.unit, &p);
	if (ib_gid_is_zero(&p.gid[of->node.index]) || !p.ifindex)
		return -EINVAL;
	if (if_indextoname(p.ifindex, text))
		return 0;
	errno = error;
	return -EINVAL;
}

/* RFC 4391, section 9.1.1: a flag that says whether it takes connections, the QPN, and the GID. */
static int put_address(const struct sysfs_session *s, uint32_t hca,
                       const struct wire_ipoib_alias *a, char *text)
{
	const struct shm_hca *h = shm_hca_at(&s->region, hca);
	struct shm_port p;
	int n;

	if (!a->port || a->port > h->n_ports)
		return -ENODEV;
	shm_port_read(&s->region, h->first_port + a->port - 1, &p);
	n = PUT("%02x:%02x:%02x:%02x", a->connected ? 0x80 : 0, a->qpn >> 16 & 0xFF,
	        a->qpn >> 8 & 0xFF, a->qpn & 0xFF);
	for (unsigned i = 0; i < sizeof(p.gid[0].raw); i++)
		n += sprintf(text + n, ":%02x", p.gid[0].raw[i]);
	return 0;
}

int sysfs_text_ipoib(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	struct wire_ipoib_alias alias;
	uint32_t hca;

	if (!sysfs_ipoib_find(of->s, of->node.unit, &alias, &hca))
		return -ENODEV;
	switch ((enum sysfs_ipoib_text)of->arg) {
	case SYSFS_IPOIB_MODE:
		PUT("%s", alias.connected ? "connected" : "datagram");
		break;
	case SYSFS_IPOIB_PKEY:
		PUT("0x%04x", alias.pkey);
		break;
	case SYSFS_IPOIB_ADDRESS:
		return put_address(of->s, hca, &alias, text);
	case SYSFS_IPOIB_DEV_ID:
		PUT("0x%x", alias.port - 1);
		break;
	case SYSFS_IPOIB_DEV_PORT:
		PUT("%u", alias.port - 1);
		break;
	}
	return 0;
}

int sysfs_text_pkey(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	struct shm_port p;

	shm_port_read(&of->s->region, of->node.unit, &p);
	PUT("0x%04x", p.pkey[of->node.index]);
	return 0;
}

/* ---- counters */

int sysfs_text_counter(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	struct control_describe_port_reply d;
	int ret = sysfs_session_describe(of->node.unit, &d);

	if (!ret)
		PUT("%" PRIu64, *(uint64_t *)((char *)&d + of->arg));
	return ret;
}

static int put_shared(char *text, const void *record, uint32_t offset)
{
	const _Atomic uint64_t *count = (const void *)((const char *)record + offset);

	PUT("%" PRIu64, atomic_load_explicit((_Atomic uint64_t *)count, memory_order_relaxed));
	return 0;
}

int sysfs_text_port_count(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	return put_shared(text, shm_port_count_at(&of->s->region, of->node.unit), of->arg);
}

int sysfs_text_roce_count(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	return put_shared(text, shm_roce_port_at(&of->s->region, of->node.unit), of->arg);
}

/* ---- devices */

static const struct {
	const char *name;
	unsigned minor, n_fixed; /* so many of each kind have fixed numbers: the first one's */
	unsigned other_major;    /* of the others, from minor number 0 on */
} devices[] = {
	[SYSFS_UVERBS] = { "uverbs", 192, 32, 508 },
	[SYSFS_UMAD] = { "umad", 0, 64, 510 },
	[SYSFS_ISSM] = { "issm", 64, 64, 509 },
};

uint64_t sysfs_text_device_number(enum sysfs_device_kind kind, uint32_t unit)
{
	const unsigned ib_major = 231, misc_major = 10, rdma_cm_minor = 58;

	if (kind == SYSFS_RDMA_CM)
		return makedev(misc_major, rdma_cm_minor);
	if (unit < devices[kind].n_fixed)
		return makedev(ib_major, devices[kind].minor + unit);
	return makedev(devices[kind].other_major, unit - devices[kind].n_fixed);
}

int sysfs_text_device(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	uint64_t dev = sysfs_text_device_number((enum sysfs_device_kind)of->arg, of->node.unit);

	PUT("%u:%u", major(dev), minor(dev));
	return 0;
}

int sysfs_text_uevent(const struct sysfs_subject *of, char text[static SYSFS_TEXT_ROOM])
{
	uint64_t dev = sysfs_text_device_number((enum sysfs_device_kind)of->arg, of->node.unit);
	int n = PUT("MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/", major(dev), minor(dev));

	if (of->arg == SYSFS_RDMA_CM)
		strcpy(text + n, "rdma_cm");
	else
		snprintf(text + n, SYSFS_TEXT_ROOM - (size_t)n, "%s%u", devices[of->arg].name,
		         of->node.unit);
	return 0;
}
