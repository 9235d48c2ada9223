/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which HCA has a port's QP 0 and which its QP 1: versions 1.3 and 1.4 of libibumad, which programs
 * built with rdma-core 53 and 56 ask for. Hardware may give one port two HCAs; ours have both queue
 * pairs of each port, so the two of a pair are the same, unless the port is Ethernet: then there is
 * no QP 0. Debian 12 has no header for it; a newer one must not collide with what is declared here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/umad/umad.h"
#include "wire/sm_attr.h"

#define PORT_STATE_DOWN 1

/* struct umad_ca_pair */
struct umad_pair {
	char smi_name[UMAD_CA_NAME_LEN]; /* empty: there is none */
	uint32_t smi_preferred_port;
	char gsi_name[UMAD_CA_NAME_LEN];
	uint32_t gsi_preferred_port;
};

/* Which pair is looked for. */
struct wanted {
	const char *name; /* NULL: any */
	uint8_t port;     /* 0: one that is up */
	bool smi;
};

int umad_pair_list(struct umad_pair pairs[], size_t max) __asm__("umad_get_smi_gsi_pairs");
int umad_pair_find(const char *name, uint8_t port, struct umad_pair *pair,
                   unsigned smi) __asm__("umad_get_smi_gsi_pair_by_ca_name");

static bool has_smi(const umad_port_t *port)
{
	return !strcmp(port->link_layer, "InfiniBand") &&
	       !(be32toh(port->capmask) & PORT_CAP_SM_DISABLED);
}

/* The pair of @ca's first port. Whether it has one. */
static bool describe_pair(const umad_ca_t *ca, struct umad_pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	for (int i = 0; i <= ca->numports; i++) {
		if (!ca->ports[i] || !ca->ports[i]->port_guid)
			continue;
		memcpy(pair->gsi_name, ca->ca_name, sizeof(pair->gsi_name));
		if (has_smi(ca->ports[i]))
			memcpy(pair->smi_name, ca->ca_name, sizeof(pair->smi_name));
		return true;
	}
	return false;
}

/* The port of @ca to work with, 0 if there is none. One that is asked for by all its names may be
 * down. */
static uint32_t choose_port(const umad_ca_t *ca, const struct wanted *wanted)
{
	int only = ca->numports == 1 ? 1 : wanted->port;

	if (wanted->port > ca->numports || (wanted->port && !ca->ports[wanted->port]))
		return 0;
	for (int i = only ? only : 1; i <= (only ? only : ca->numports); i++)
		if (ca->ports[i] &&
		    ((only && wanted->name) || ca->ports[i]->state > PORT_STATE_DOWN))
			return (uint32_t)i;
	return 0;
}

/* Whether @ca is what is looked for; then *@pair says all. */
static bool matches(const umad_ca_t *ca, const struct wanted *wanted, struct umad_pair *pair)
{
	uint32_t port;

	if (!describe_pair(ca, pair) || (wanted->smi && !*pair->smi_name))
		return false;
	port = choose_port(ca, wanted);
	pair->gsi_preferred_port = port;
	pair->smi_preferred_port = *pair->smi_name ? port : 0;
	return port;
}

/* The HCAs in sight in alphabetical order, of which @pairs has room for @max. Their number; -1: no
 * memory. The ports in them are 0. */
int umad_pair_list(struct umad_pair pairs[], size_t max)
{
	struct umad_device_node *list = umad_get_ca_device_list();
	size_t n = 0;

	TRACE("max %zu", max);
	if (!list)
		return errno ? -1 : 0;
	if (umad_sort_ca_device_list(&list, 0)) {
		umad_free_ca_device_list(list);
		return -1;
	}
	for (struct umad_device_node *node = list; node && n < max; node = node->next) {
		umad_ca_t ca;

		if (umad_get_ca(node->ca_name, &ca))
			continue;
		n += describe_pair(&ca, &pairs[n]);
		umad_release_ca(&ca);
	}
	umad_free_ca_device_list(list);
	return (int)n;
}

/*
 * The pair of HCA @name (NULL: any) that has the port @port (0: one that is up), and of @smi a QP
 * 0. 0; -ENODEV and errno: there is none; *@pair is all 0 then. The man page has 1 for that, the
 * original never returns it.
 */
int umad_pair_find(const char *name, uint8_t port, struct umad_pair *pair, unsigned smi)
{
	struct wanted wanted = { .name = name, .port = port, .smi = smi };
	struct umad_device_node *list;
	bool found = false;

	TRACE("ca %s port %d smi %u", name ? name : "", port, smi);
	if (!pair)
		return umad_failed(__func__, -EINVAL, -1);
	list = umad_get_ca_device_list();
	if (list && !umad_sort_ca_device_list(&list, 0)) {
		for (struct umad_device_node *node = list; node && !found; node = node->next) {
			umad_ca_t ca;

			if ((name && strcmp(name, node->ca_name)) ||
			    umad_get_ca(node->ca_name, &ca))
				continue;
			found = matches(&ca, &wanted, pair);
			umad_release_ca(&ca);
		}
	}
	umad_free_ca_device_list(list);
	if (found)
		return 0;
	memset(pair, 0, sizeof(*pair));
	errno = ENODEV;
	return umad_result(-ENODEV);
}
