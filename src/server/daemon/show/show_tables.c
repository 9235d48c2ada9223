/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The view "routes": the LFT and the MFT of each switch. An LFT is a string of hex digits, two for
 * each LID from 0 on: the out port, ff if there is none. A large fabric has a hundred million of
 * them; the command line makes what people read of it.
 */
#include <string.h>

#include "daemon/show/show_tables.h"
#include "daemon/show/views.h"

void show_add_mft_row(struct show_json *o, const struct fabric_node *sw,
                      const struct fabric_mft_row *row)
{
	show_open(o, "ports", '[');
	for (unsigned k = 0; k <= sw->n_ports; k++)
		if (fabric_row_has(row, k))
			show_add_u64(o, NULL, k);
	show_close(o, ']');
}

static void add_mft(struct show_json *o, const struct fabric_node *sw)
{
	show_open(o, "mft", '[');
	for (uint32_t m = 0; m < sw->mft_size; m++) {
		if (fabric_row_is_empty(&sw->mft[m]))
			continue;
		show_open(o, NULL, '{');
		show_add_text(o, "mlid", "0x%04x", IB_LID_MCAST_FIRST + m);
		show_add_mft_row(o, sw, &sw->mft[m]);
		show_close(o, '}');
	}
	show_close(o, ']');
}

bool daemon_show_tables(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	const struct fabric_node *sw;

	if (at->part >= s->f->n_switches)
		return false;
	sw = s->switches[at->part];
	if (*at->of && strcmp(at->of, sw->name))
		return true;
	show_open(o, NULL, '{');
	show_add_string(o, "switch", sw->name);
	show_add_u64(o, "lft_top", sw->lft_top);
	if (sw->mft_top)
		show_add_u64(o, "mft_top", sw->mft_top);
	if (sw->mcast_primary <= sw->n_ports || sw->mcast_not_primary <= sw->n_ports)
		show_add_true(o, "mft_default");
	show_add_hex(o, "lft", sw->lft, sw->lft_size);
	add_mft(o, sw);
	show_close(o, '}');
	return true;
}
