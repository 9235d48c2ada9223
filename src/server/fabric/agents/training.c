/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How links train: see training.h.
 */
#include "fabric/agents/training.h"
#include "wire/sm_attr.h"

#define OLD_SPEEDS (FABRIC_SPEED_SDR | FABRIC_SPEED_DDR | FABRIC_SPEED_QDR)

uint8_t fabric_widths_supported(const struct fabric_port *p)
{
	uint8_t width = p->width_built ? p->width_built : FABRIC_WIDTH_4X;

	/* a port supports the narrower widths too; 2X was added later, and wider ports lack it */
	return width == FABRIC_WIDTH_2X ? FABRIC_WIDTH_1X | FABRIC_WIDTH_2X
	                                : (uint8_t)(width * 2 - 1);
}

uint8_t fabric_speeds_supported(const struct fabric_port *p)
{
	uint8_t speed = p->speed_built ? p->speed_built : FABRIC_SPEED_EDR;
	uint8_t all = (uint8_t)(speed * 2 - 1);

	return speed == FABRIC_SPEED_FDR10 ? all : all & (uint8_t)~FABRIC_SPEED_FDR10;
}

static uint8_t widths_enabled(const struct fabric_port *p)
{
	uint8_t enabled = p->link.width_enabled;

	return fabric_widths_supported(p) & (enabled ? enabled : UINT8_MAX);
}

static uint8_t speeds_enabled(const struct fabric_port *p)
{
	uint8_t supported = fabric_speeds_supported(p);
	uint8_t old = p->link.speed_enabled ? p->link.speed_enabled : OLD_SPEEDS;
	uint8_t extended = p->link.speed_ext_enabled;

	if ((old & FABRIC_SPEED_QDR) && !p->link.fdr10_off)
		old |= FABRIC_SPEED_FDR10; /* PortInfo has no bit for it */
	if (extended == LINK_SPEED_EXT_DISABLE)
		return supported & old;
	if (!extended)
		extended = UINT8_MAX / FABRIC_SPEED_FDR;
	return supported & (old | (uint8_t)(extended * FABRIC_SPEED_FDR));
}

static const uint8_t narrow_to_wide[] = { FABRIC_WIDTH_1X, FABRIC_WIDTH_2X, FABRIC_WIDTH_4X,
	                                  FABRIC_WIDTH_8X, FABRIC_WIDTH_12X };

uint8_t fabric_widths_up_to(uint8_t width)
{
	uint8_t all = 0;

	for (unsigned i = 0; i < sizeof(narrow_to_wide); i++) {
		all |= narrow_to_wide[i];
		if (narrow_to_wide[i] == width)
			break;
	}
	return all;
}

uint8_t fabric_speeds_up_to(uint8_t speed)
{
	return (uint8_t)(speed * 2 - 1);
}

/* The widest of a set of widths; 0: the set is empty. */
static uint8_t widest(uint8_t widths)
{
	for (unsigned i = sizeof(narrow_to_wide); i; i--)
		if (widths & narrow_to_wide[i - 1])
			return narrow_to_wide[i - 1];
	return 0;
}

static uint8_t fastest(uint8_t speeds)
{
	return speeds ? (uint8_t)(1u << (31 - (unsigned)__builtin_clz(speeds))) : 0;
}

/* The width that the link gets if it trains now; 0: it cannot. */
static uint8_t width_of(const struct fabric_port *p)
{
	return widest(widths_enabled(p) & widths_enabled(p->peer) &
	              (p->fault.widths ? p->fault.widths : UINT8_MAX));
}

static uint8_t speed_of(const struct fabric_port *p)
{
	return fastest(speeds_enabled(p) & speeds_enabled(p->peer) &
	               (p->fault.speeds ? p->fault.speeds : UINT8_MAX));
}

bool fabric_link_can_train(const struct fabric_port *p)
{
	return width_of(p) && speed_of(p);
}

bool fabric_link_is_trained(const struct fabric_port *p)
{
	return p->width == width_of(p) && p->speed == speed_of(p);
}

void fabric_link_train(struct fabric_port *p)
{
	if (!fabric_link_can_train(p))
		return;
	p->width = p->peer->width = width_of(p);
	p->speed = p->peer->speed = speed_of(p);
}
