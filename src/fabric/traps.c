/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traps: see traps.h.
 */
#include <string.h>

#include "fabric/traps.h"
#include "wire/notice.h"

#define TRAP_TID_FIRST 0x5452000000000000ull /* tells the transactions of traps from others */

/* Sends @notice, whose details are there, from @own: an HCA's port or a switch's port 0. */
static void send_trap(struct fabric *f, struct fabric_port *own, struct wire_notice *notice)
{
	struct fabric_mad mad = { .slid = own->lid,
		                  .dlid = own->sm_lid,
		                  .src_qpn = IB_QPN_SMI,
		                  .dest_qpn = IB_QPN_SMI,
		                  .sl = own->sm_sl };
	struct wire_smp smp = { .mad = { .base_version = MAD_BASE_VERSION,
		                         .mgmt_class = MAD_CLASS_SUBN_LID,
		                         .class_version = MAD_VERSION_SUBN,
		                         .method = MAD_TRAP,
		                         .attribute_id = SMP_ATTR_NOTICE } };

	if (!own->sm_lid || !own->lid)
		return;
	notice->is_generic = 1;
	notice->producer_type =
	        own->node->type == FABRIC_SWITCH ? NOTICE_FROM_SWITCH : NOTICE_FROM_CA;
	notice->issuer_lid = own->lid;
	smp.mad.transaction_id = TRAP_TID_FIRST + ++f->mads->n_traps;
	wire_smp_notice_encode(notice, smp.data);
	wire_smp_encode(&smp, mad.data);
	fabric_mad_send(f, own, &mad);
}

void fabric_trap_link_state(struct fabric *f, struct fabric_node *sw)
{
	struct wire_notice notice = { .type = NOTICE_URGENT,
		                      .trap_number = TRAP_LINK_STATE_CHANGED };
	struct wire_trap_link_state details;

	if (sw->type != FABRIC_SWITCH || sw->dead)
		return;
	details.lid = sw->port[0].lid;
	wire_trap_link_state_encode(&details, notice.details);
	send_trap(f, &sw->port[0], &notice);
}

void fabric_trap_capabilities(struct fabric *f, struct fabric_port *p)
{
	struct wire_notice notice = { .type = NOTICE_INFORMATIONAL,
		                      .trap_number = TRAP_LOCAL_CHANGES };
	struct wire_trap_local_changes details = { .lid = p->lid,
		                                   .capability_mask = fabric_sma_capabilities(p) };

	wire_trap_local_changes_encode(&details, notice.details);
	send_trap(f, p, &notice);
}

void fabric_trap_bad_m_key(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct wire_notice notice = { .type = NOTICE_SECURITY, .trap_number = TRAP_BAD_MKEY };
	struct wire_trap_bad_mkey details = { .lid = mad->slid };
	struct wire_smp smp;
	unsigned hops;

	wire_smp_decode(mad->data, &smp);
	details.method = smp.mad.method;
	details.attribute_id = smp.mad.attribute_id;
	details.attribute_modifier = smp.mad.attribute_modifier;
	details.m_key = smp.m_key;
	if (smp.mad.mgmt_class == MAD_CLASS_SUBN_DIRECTED) {
		hops = smp.hop_count & SMP_MAX_HOPS;
		details.dr_notice = 1;
		details.dr_slid = smp.dr_slid;
		details.dr_path_truncated = hops > sizeof(details.dr_return_path);
		if (details.dr_path_truncated)
			hops = sizeof(details.dr_return_path);
		details.dr_hop_count = (uint8_t)hops;
		memcpy(details.dr_return_path, smp.return_path + 1, hops);
	}
	wire_trap_bad_mkey_encode(&details, notice.details);
	send_trap(f, fabric_own_port(at), &notice);
}
