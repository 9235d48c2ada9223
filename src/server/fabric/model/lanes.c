/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Virtual lanes: see lanes.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/model/lanes.h"

#define DEFAULT_WEIGHT 64

unsigned fabric_lanes_used(const struct fabric_port *p)
{
	/* VL0, VL0-1, VL0-3, VL0-7 are 1 to 4 */
	unsigned vls = p->link.operational_vls ? p->link.operational_vls : VL_CAP_VL0_7;

	return 1u << (vls - 1);
}

uint8_t fabric_lane_of(const struct fabric_port *out, unsigned in, uint8_t sl)
{
	unsigned used = fabric_lanes_used(out);
	uint8_t vl;

	if (!out->lanes || !out->lanes->map)
		return (uint8_t)(sl % used);
	vl = out->lanes->map[in][sl];
	return vl < used ? vl : FABRIC_LANE_NONE;
}

struct fabric_lanes *fabric_lanes_get(struct fabric_port *p)
{
	if (!p->lanes)
		p->lanes = calloc(1, sizeof(*p->lanes));
	return p->lanes;
}

void fabric_lanes_free(struct fabric_port *p)
{
	if (!p->lanes)
		return;
	free(p->lanes->map);
	free(p->lanes->arb);
	free(p->lanes);
	p->lanes = NULL;
}

/* ---- SL to VL ---- */

static unsigned ports_in(const struct fabric_port *out)
{
	return out->node->type == FABRIC_SWITCH ? out->node->n_ports + 1 : 1;
}

void fabric_lanes_map_read(const struct fabric_port *out, unsigned in, struct wire_sl_to_vl *map)
{
	for (unsigned sl = 0; sl < IB_SLS; sl++)
		map->vl[sl] = out->lanes && out->lanes->map
		                      ? out->lanes->map[in][sl]
		                      : (uint8_t)(sl % fabric_lanes_used(out));
}

/* The whole table, as it was in effect before anybody wrote it. */
static int make_map(struct fabric_port *out)
{
	struct fabric_lanes *l = fabric_lanes_get(out);
	uint8_t(*map)[IB_SLS];

	if (!l)
		return -ENOMEM;
	if (l->map)
		return 0;
	map = calloc(ports_in(out), sizeof(*map));
	if (!map)
		return -ENOMEM;
	for (unsigned in = 0; in < ports_in(out); in++)
		for (unsigned sl = 0; sl < IB_SLS; sl++)
			map[in][sl] = (uint8_t)(sl % fabric_lanes_used(out));
	l->map = map;
	return 0;
}

int fabric_lanes_map_write(struct fabric_port *out, unsigned in, const struct wire_sl_to_vl *map)
{
	int ret = make_map(out);

	if (!ret)
		memcpy(out->lanes->map[in], map->vl, sizeof(map->vl));
	return ret;
}

/* ---- arbitration ---- */

/* Each lane has its turn: the first entries of the low table. */
static void default_arb(const struct fabric_port *p, unsigned part, struct wire_vl_arb *arb)
{
	memset(arb, 0, sizeof(*arb));
	for (unsigned vl = 0; !part && vl < fabric_lanes_used(p); vl++)
		arb->entry[vl] = (struct wire_vl_arb_entry){ (uint8_t)vl, DEFAULT_WEIGHT };
}

void fabric_lanes_arb_read(const struct fabric_port *p, unsigned part, struct wire_vl_arb *arb)
{
	if (p->lanes && p->lanes->arb)
		*arb = p->lanes->arb[part];
	else
		default_arb(p, part, arb);
}

int fabric_lanes_arb_write(struct fabric_port *p, unsigned part, const struct wire_vl_arb *arb)
{
	struct fabric_lanes *l = fabric_lanes_get(p);

	if (!l)
		return -ENOMEM;
	if (!l->arb) {
		l->arb = calloc(VL_ARB_PARTS, sizeof(*l->arb));
		if (!l->arb)
			return -ENOMEM;
		default_arb(p, 0, &l->arb[0]);
	}
	l->arb[part] = *arb;
	return 0;
}
