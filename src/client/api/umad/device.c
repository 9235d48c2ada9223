/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HCAs and ports as libibumad describes them. The original reads their attributes in sysfs; here
 * they are read in the shared memory. A program sees the HCAs of its host, or of all hosts if it
 * runs on none.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/umad/umad.h"
#include "control/issm.h"
#include "wire/rate.h"

#define NODE_TYPE_CA     1
#define NODE_TYPE_ROUTER 3
#define PHYS_DISABLED    3
#define PHYS_LINK_UP     5
#define NO_CA            "mthca0" /* what the original says where there is none */

/* How good a port is to work with, by the rule of umad_open_port(3). */
enum rating { UNUSABLE, ENABLED, LINK_UP, ACTIVE };

/* The HCAs in sight, from *@i on; NULL: no more. */
static const struct shm_hca *next_hca(const struct umad_fabric *f, uint32_t *i)
{
	while (*i < f->region.control->n_hcas) {
		const struct shm_hca *h = shm_hca_at(&f->region, (*i)++);

		if (f->host_index < 0 || h->host_index == (uint32_t)f->host_index)
			return h;
	}
	return NULL;
}

static const char *name_of(const struct umad_fabric *f, const struct shm_hca *h)
{
	return shm_hca_called(h, f->host_index);
}

static const struct shm_hca *find_hca(const struct umad_fabric *f, const char *name)
{
	const struct shm_hca *h;
	uint32_t i = 0;

	while ((h = next_hca(f, &i)))
		if (!strcmp(name_of(f, h), name))
			return h;
	return NULL;
}

/* ---- which port ---- */

static enum rating rate_port(const struct umad_fabric *f, uint32_t index)
{
	struct shm_port p;

	shm_port_read(&f->region, index, &p);
	if (p.link_layer == IBV_LINK_LAYER_ETHERNET)
		return UNUSABLE;
	if (p.state == IB_PORT_ACTIVE)
		return ACTIVE;
	if (p.phys_state == PHYS_LINK_UP)
		return LINK_UP;
	return p.phys_state == PHYS_DISABLED ? UNUSABLE : ENABLED;
}

/* The rating of port *@num of @h; 0: of its best one, which is put there. */
static enum rating rate_hca(const struct umad_fabric *f, const struct shm_hca *h, int *num)
{
	enum rating best = UNUSABLE;

	if (*num < 0 || (uint32_t)*num > h->n_ports)
		return UNUSABLE;
	if (*num)
		return rate_port(f, h->first_port + (uint32_t)*num - 1);
	for (uint32_t i = 0; i < h->n_ports; i++) {
		enum rating r = rate_port(f, h->first_port + i);

		if (r > best) {
			best = r;
			*num = (int)i + 1;
		}
	}
	return best;
}

/* The first HCA with an active port, or else the first with a usable one. */
static const struct shm_hca *best_hca(const struct umad_fabric *f, int *num)
{
	const struct shm_hca *h, *usable = NULL;
	int usable_num = 0;
	uint32_t i = 0;

	while ((h = next_hca(f, &i))) {
		int n = *num;
		enum rating r = rate_hca(f, h, &n);

		if (r == ACTIVE) {
			*num = n;
			return h;
		}
		if (r > UNUSABLE && !usable) {
			usable = h;
			usable_num = n;
		}
	}
	if (usable)
		*num = usable_num;
	return usable;
}

int umad_resolve_port(const struct umad_fabric *f, const char *ca_name, int *num, uint32_t *index)
{
	const struct shm_hca *h = ca_name ? find_hca(f, ca_name) : best_hca(f, num);

	if (!ca_name && !h)
		return -ENODEV;
	if (ca_name && !*num && (!h || rate_hca(f, h, num) == UNUSABLE))
		return -ENODEV;
	if (!h || *num < 1 || (uint32_t)*num > h->n_ports)
		return -ENOENT;
	*index = h->first_port + (uint32_t)*num - 1;
	return 0;
}

/* ---- descriptions ---- */

static int describe_port(const struct umad_fabric *f, const struct shm_hca *h, int num,
                         umad_port_t *port)
{
	struct shm_port p;

	port->pkeys = calloc(SHM_PKEYS, sizeof(*port->pkeys));
	if (!port->pkeys)
		return -EIO;
	control_issm_read_port(f->client, &f->region, h->first_port + (uint32_t)num - 1, &p);
	memcpy(port->pkeys, p.pkey, SHM_PKEYS * sizeof(*port->pkeys));
	port->pkeys_size = SHM_PKEYS;
	snprintf(port->ca_name, sizeof(port->ca_name), "%.*s", UMAD_CA_NAME_LEN - 1, name_of(f, h));
	port->portnum = num;
	port->base_lid = p.lid;
	port->lmc = p.lmc;
	port->sm_lid = p.sm_lid;
	port->sm_sl = p.sm_sl;
	port->state = p.state;
	port->phys_state = p.phys_state;
	port->rate = wire_link_speed(p.active_width, p.active_speed) / 10; /* Gb/s, whole ones */
	port->capmask = htobe32(p.cap_flags);
	memcpy(&port->gid_prefix, p.gid[0].raw, sizeof(port->gid_prefix));
	memcpy(&port->port_guid, p.gid[0].raw + 8, sizeof(port->port_guid));
	snprintf(port->link_layer, sizeof(port->link_layer), "%s",
	         p.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
	return 0;
}

static int describe_ca(const struct umad_fabric *f, const struct shm_hca *h, umad_ca_t *ca)
{
	memset(ca, 0, sizeof(*ca));
	snprintf(ca->ca_name, sizeof(ca->ca_name), "%.*s", UMAD_CA_NAME_LEN - 1, name_of(f, h));
	ca->node_type = h->is_router ? NODE_TYPE_ROUTER : NODE_TYPE_CA;
	snprintf(ca->fw_ver, sizeof(ca->fw_ver), "%s", h->fw_ver);
	snprintf(ca->ca_type, sizeof(ca->ca_type), "%s", h->type);
	snprintf(ca->hw_ver, sizeof(ca->hw_ver), "1");
	ca->node_guid = htobe64(h->node_guid);
	ca->system_guid = htobe64(h->system_guid);
	if (h->n_ports >= UMAD_CA_MAX_PORTS)
		return -EIO;
	for (int i = 1; i <= (int)h->n_ports; i++) {
		umad_port_t *port = calloc(1, sizeof(*port));

		if (!port || describe_port(f, h, i, port)) {
			free(port);
			umad_release_ca(ca);
			return -ENOMEM;
		}
		ca->ports[i] = port;
		ca->numports = i;
	}
	return 0;
}

int umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	const struct shm_hca *h = NULL;
	struct umad_fabric *f;
	int cancel_state, ret = ca_name ? -ENOENT : -ENODEV, num = 0;

	TRACE("ca_name %s", ca_name ? ca_name : "");
	umad_lock(&cancel_state);
	if (!umad_fabric_get(&f))
		h = ca_name ? find_hca(f, ca_name) : best_hca(f, &num);
	if (h)
		ret = describe_ca(f, h, ca);
	umad_unlock(cancel_state);
	return umad_result(ret);
}

static void free_port(umad_port_t *port)
{
	free(port->pkeys);
	port->pkeys = NULL;
	port->pkeys_size = 0;
}

int umad_release_ca(umad_ca_t *ca)
{
	if (!ca)
		return umad_result(-ENODEV);
	TRACE("ca_name %s", ca->ca_name);
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++) {
		if (!ca->ports[i])
			continue;
		free_port(ca->ports[i]);
		free(ca->ports[i]);
		ca->ports[i] = NULL;
	}
	return 0;
}

int umad_get_port(const char *ca_name, int portnum, umad_port_t *port)
{
	struct umad_fabric *f;
	int cancel_state, ret;
	uint32_t index;

	TRACE("ca_name %s portnum %d", ca_name ? ca_name : "", portnum);
	umad_lock(&cancel_state);
	ret = umad_fabric_get(&f) ? (ca_name && portnum ? -EIO : -ENODEV)
	                          : umad_resolve_port(f, ca_name, &portnum, &index);
	if (!ret) {
		struct shm_port p;

		shm_port_read(&f->region, index, &p);
		ret = describe_port(f, shm_hca_at(&f->region, p.hca), portnum, port);
	}
	umad_unlock(cancel_state);
	return umad_result(ret == -ENOENT ? -EIO : ret);
}

int umad_release_port(umad_port_t *port)
{
	if (!port)
		return umad_result(-ENODEV);
	TRACE("port %s:%d", port->ca_name, port->portnum);
	free_port(port);
	return 0;
}

/* The number of entries, with 0 where there is no port; entry 0 is a switch's own port. */
int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max)
{
	umad_ca_t ca;
	int n = umad_get_ca(ca_name, &ca);

	TRACE("ca name %s max port guids %d", ca_name ? ca_name : "", max);
	if (n < 0)
		return n == -ENODEV ? n : -1;
	n = ca.numports + 1;
	if (portguids && n > max)
		n = umad_failed(__func__, -ENOMEM, -ENOMEM);
	for (int i = 0; portguids && i < n; i++)
		portguids[i] = ca.ports[i] ? ca.ports[i]->port_guid : 0;
	umad_release_ca(&ca);
	return portguids ? n : 0;
}

/* ---- lists ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in alphabetical order, those alone that fit their room. Their number. */
static int sorted_names(const struct umad_fabric *f, char cas[][UMAD_CA_NAME_LEN], int max)
{
	const char **name = calloc(f->region.control->n_hcas + 1, sizeof(*name));
	const struct shm_hca *h;
	uint32_t i = 0;
	size_t n = 0;
	int used;

	if (!name)
		return 0;
	while ((h = next_hca(f, &i)))
		if (strlen(name_of(f, h)) < UMAD_CA_NAME_LEN)
			name[n++] = name_of(f, h);
	qsort(name, n, sizeof(*name), compare_names);
	for (used = 0; used < max && (size_t)used < n; used++)
		strcpy(cas[used], name[used]);
	free(name);
	return used;
}

int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max)
{
	struct umad_fabric *f;
	int cancel_state, n = 1;

	TRACE("max %d", max);
	umad_lock(&cancel_state);
	if (!umad_fabric_get(&f))
		n = sorted_names(f, cas, max);
	else if (max > 0)
		strcpy(cas[0], NO_CA);
	umad_unlock(cancel_state);
	return n;
}

static struct umad_device_node *device_node(const char *name)
{
	size_t len = strlen(name);
	struct umad_device_node *node = calloc(1, sizeof(*node) + len + 1);

	if (!node)
		return NULL;
	memcpy(node + 1, name, len);
	node->ca_name = (const char *)(node + 1);
	return node;
}

/* To be freed with umad_free_ca_device_list(). NULL with errno 0: there are none. */
struct umad_device_node *umad_get_ca_device_list(void)
{
	struct umad_device_node *head = NULL, **tail = &head;
	const struct shm_hca *h = NULL;
	struct umad_fabric *f;
	int cancel_state, err = 0;
	uint32_t i = 0;

	umad_lock(&cancel_state);
	while (!umad_fabric_get(&f) && (h = next_hca(f, &i))) {
		*tail = device_node(name_of(f, h));
		if (!*tail)
			break;
		tail = &(*tail)->next;
	}
	umad_unlock(cancel_state);
	if (h) {
		umad_free_ca_device_list(head);
		head = NULL;
		err = ENOMEM;
		umad_failed(__func__, -ENOMEM, 0);
	}
	errno = err;
	return head;
}

void umad_free_ca_device_list(struct umad_device_node *head)
{
	while (head) {
		struct umad_device_node *next = head->next;

		free(head);
		head = next;
	}
}

static int compare_nodes(const void *a, const void *b)
{
	return strcmp((*(struct umad_device_node *const *)a)->ca_name,
	              (*(struct umad_device_node *const *)b)->ca_name);
}

/* Sorts by name. @size: of the list, 0: to be counted. 0; EINVAL: it has another; ENOMEM. */
int umad_sort_ca_device_list(struct umad_device_node **head, size_t size)
{
	struct umad_device_node **nodes, *node;
	size_t n = 0;

	for (node = *head; node; node = node->next)
		n++;
	if (!size)
		size = n;
	if (size < 2)
		return 0;
	if (n != size)
		return umad_failed(__func__, -EINVAL, EINVAL);
	nodes = calloc(n, sizeof(*nodes));
	if (!nodes)
		return umad_failed(__func__, -ENOMEM, ENOMEM);
	n = 0;
	for (node = *head; node; node = node->next)
		nodes[n++] = node;
	qsort(nodes, n, sizeof(*nodes), compare_nodes);
	for (size_t i = 0; i < n; i++)
		nodes[i]->next = i + 1 < n ? nodes[i + 1] : NULL;
	*head = nodes[0];
	free(nodes);
	return 0;
}
