/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subnet management agent of every node (InfiniBand specification volume 1, chapter 14): Get
 * and Set of the attributes by which a subnet manager reads and configures a node. A table has one
 * function for each attribute.
 */
#include <string.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "fabric/agents/link.h"
#include "fabric/agents/mads.h"
#include "fabric/agents/training.h"
#include "fabric/agents/traps.h"
#include "fabric/forwarding/flow.h"
#include "fabric/model/event.h"
#include "fabric/model/lanes.h"
#include "fabric/model/routers.h"
#include "wire/sm_attr.h"

#define MLNX_VENDOR_ID 0x2C9
#define LFT_CAPACITY   IB_LID_MCAST_FIRST
#define MFT_MODIFIER   0xF00001FF /* position and block */
#define PORT_MODIFIER  0x800000FF /* a port; the high bit: the sender knows extended speeds */
#define NS_PER_S       1000000000ull
#define AT_ONCE        4096 /* work for flows (fabric_flows.work) before a Set is answered */
#define OLD_SPEEDS     (LINK_SPEED_SDR | LINK_SPEED_DDR | LINK_SPEED_QDR)

/* A request, as the functions of attributes see it. */
struct request {
	struct fabric *f;
	struct fabric_port *at; /* where it arrived */
	struct fabric_node *node;
	bool is_set;
	bool trusted; /* it has the M_Key */
	uint32_t modifier;
	uint8_t *data;
	unsigned changed; /* what a Set changed at port: enum fabric_port_change */
	struct fabric_port *port;
	struct fabric_port *peer_changed; /* its state changed, as the link went down; or NULL */
};

static bool is_switch(const struct fabric_node *node)
{
	return node->type == FABRIC_SWITCH;
}

/* A switch's own port, which has no link. */
static bool is_port0(const struct fabric_port *p)
{
	return is_switch(p->node) && p->num == 0;
}

/* It has one LID, and takes MADs alone. */
static bool is_base_port0(const struct fabric_port *p)
{
	return is_port0(p) && !p->node->enhanced_port0;
}

/* Whether packets can be addressed to the port: an HCA's, or a switch's port 0. */
static bool is_end_port(const struct fabric_port *p)
{
	return !is_switch(p->node) || p->num == 0;
}

/* The port that a modifier names. 0: port 0 of a switch; of an HCA the port where @r arrived. */
static struct fabric_port *named_port(struct request *r, uint32_t num)
{
	if (num == 0 && r->node->type == FABRIC_HCA)
		return r->at;
	return num <= r->node->n_ports ? &r->node->port[num] : NULL;
}

static uint16_t node_description(struct request *r)
{
	struct wire_node_description d = { 0 };

	if (r->is_set)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE; /* the plan sets names, and they do not
		                                           change */
	if (r->modifier)
		return MAD_STATUS_BAD_FIELD;
	memcpy(d.text, r->node->desc, strnlen(r->node->desc, sizeof(d.text)));
	wire_node_description_encode(&d, r->data);
	return MAD_STATUS_OK;
}

static uint8_t type_of(const struct fabric_node *node)
{
	if (node->type == FABRIC_SWITCH)
		return NODE_TYPE_SWITCH;
	return node->is_router ? NODE_TYPE_ROUTER : NODE_TYPE_CA;
}

static uint16_t node_info(struct request *r)
{
	struct wire_node_info i = {
		.base_version = 1,
		.class_version = 1,
		.node_type = type_of(r->node),
		.num_ports = (uint8_t)r->node->n_ports,
		.system_image_guid = r->node->system_guid,
		.node_guid = r->node->guid,
		.port_guid = fabric_own_port(r->at)->guid,
		.partition_cap = SHM_PKEYS,
		.device_id = (uint16_t)r->node->device_id,
		.revision = 1,
		.local_port_num = r->at->num,
		.vendor_id = r->node->vendor_id,
	};

	if (r->is_set)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (r->modifier)
		return MAD_STATUS_BAD_FIELD;
	wire_node_info_encode(&i, r->data);
	return MAD_STATUS_OK;
}

/* A Set's changes hold when it is answered, unless they concern thousands of flows: the other flows
 * follow in slices. */
static void follow_some(struct fabric *f)
{
	uint32_t budget = AT_ONCE;

	fabric_flow_follow(f, &budget, 1);
}

/* 0xBFFF: no row of the table counts. 0, as before anybody sets it: all do. */
static bool is_mft_top(const struct fabric *f, uint16_t top)
{
	return !top || (top >= IB_LID_MCAST_FIRST - 1 &&
	                top - IB_LID_MCAST_FIRST < (int)f->settings.mft_capacity);
}

static uint16_t set_switch_info(struct request *r)
{
	struct fabric_node *sw = r->node;
	struct wire_switch_info in;
	struct fabric_mcast_info mcast;

	wire_switch_info_decode(r->data, &in);
	if (in.linear_fdb_top >= LFT_CAPACITY || !is_mft_top(r->f, in.multicast_fdb_top))
		return MAD_STATUS_BAD_FIELD;
	mcast = (struct fabric_mcast_info){ .top = in.multicast_fdb_top,
		                            .primary = in.default_multicast_primary_port,
		                            .not_primary = in.default_multicast_not_primary_port };
	fabric_flow_set_lft_top(r->f, sw, in.linear_fdb_top);
	fabric_flow_set_mcast(r->f, sw, &mcast);
	sw->life_time = in.life_time_value;
	if (in.port_state_change) /* writing a 1 clears it */
		sw->state_change = 0;
	follow_some(r->f);
	return MAD_STATUS_OK;
}

static uint16_t switch_info(struct request *r)
{
	struct fabric_node *sw = r->node;
	uint16_t status = MAD_STATUS_OK;
	struct wire_switch_info i;

	if (!is_switch(sw))
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (r->modifier)
		return MAD_STATUS_BAD_FIELD;
	if (r->is_set)
		status = set_switch_info(r);
	i = (struct wire_switch_info){
		.linear_fdb_cap = LFT_CAPACITY,
		.multicast_fdb_cap = (uint16_t)r->f->settings.mft_capacity,
		.linear_fdb_top = sw->lft_top,
		.default_multicast_primary_port = sw->mcast_primary,
		.default_multicast_not_primary_port = sw->mcast_not_primary,
		.life_time_value = sw->life_time,
		.port_state_change = sw->state_change,
		.partition_enforcement_cap = SHM_PKEYS,
		.inbound_enforcement_cap = 1,
		.outbound_enforcement_cap = 1,
		/* no port of an HCA sends raw packets */
		.filter_raw_inbound_cap = 1,
		.filter_raw_outbound_cap = 1,
		.enhanced_port0 = sw->enhanced_port0,
		.multicast_fdb_top = sw->mft_top,
	};
	wire_switch_info_encode(&i, r->data);
	return status;
}

static void lids_changed(struct fabric *f, const struct fabric_port *p)
{
	for (unsigned i = 0; p->lid && i < 1u << p->lmc; i++)
		fabric_flow_mark_lid(f, (uint16_t)(p->lid + i));
}

/* How many GUIDs a port can have: a switch's port 0 has only its own. */
static unsigned guid_capacity(const struct fabric_port *own)
{
	return is_switch(own->node) ? 1 : SHM_IB_GIDS;
}

/* Entry 0, the port's own, is read-only. */
static uint16_t set_guids(struct request *r, struct fabric_port *p, unsigned first)
{
	struct wire_guid_info g;

	wire_guid_info_decode(r->data, &g);
	r->port = p;
	for (unsigned i = 0; i < GUID_BLOCK; i++) {
		unsigned k = first + i;

		if (!k || k >= guid_capacity(p) || g.guid[i] == fabric_port_guid(p, k))
			continue;
		if (fabric_port_set_guid(r->f, p, k, g.guid[i]))
			return MAD_STATUS_BUSY;
		r->changed |= FABRIC_PORT_ALIAS;
	}
	if (r->changed)
		lids_changed(r->f, p); /* flows to these GIDs */
	return MAD_STATUS_OK;
}

static uint16_t guid_info(struct request *r)
{
	struct fabric_port *p = fabric_own_port(r->at);
	unsigned first = r->modifier * GUID_BLOCK;
	struct wire_guid_info g = { { 0 } };
	uint16_t status = MAD_STATUS_OK;

	if (r->modifier >= SHM_IB_GIDS / GUID_BLOCK || first >= guid_capacity(p))
		return MAD_STATUS_BAD_FIELD;
	if (r->is_set)
		status = set_guids(r, p, first);
	for (unsigned i = 0; i < GUID_BLOCK && first + i < guid_capacity(p); i++)
		g.guid[i] = fabric_port_guid(p, first + i);
	wire_guid_info_encode(&g, r->data);
	return status;
}

/* ---- PortInfo ---- */

static bool is_connected(const struct fabric_port *p)
{
	return p->peer && p->state != IB_PORT_DOWN;
}

/* How many violations shared memory has counted since the counter was set to 0. */
static uint16_t violations(_Atomic uint64_t *count, uint64_t zero)
{
	uint64_t n = atomic_load_explicit(count, memory_order_relaxed) - zero;

	return n > UINT16_MAX ? UINT16_MAX : (uint16_t)n;
}

void fabric_sma_set_capabilities(struct fabric *f, struct fabric_port *p, uint32_t set,
                                 uint32_t clear)
{
	uint32_t old = p->capabilities;

	p->capabilities = (old & ~clear) | set;
	if (p->capabilities == old)
		return;
	if (p->node->type == FABRIC_HCA)
		fabric_port_publish(f, p);
	fabric_trap_local_changes(f, p, 0);
}

static void link_get(const struct fabric_port *p, struct wire_port_info *i)
{
	uint8_t speeds = fabric_speeds_supported(p);
	uint8_t speed = p->speed ? p->speed : FABRIC_SPEED_EDR;
	uint8_t old = speed < FABRIC_SPEED_QDR ? speed : LINK_SPEED_QDR;
	bool up = is_connected(p) || is_port0(p);

	i->link_width_supported = fabric_widths_supported(p);
	i->link_speed_supported = speeds & OLD_SPEEDS;
	i->link_speed_ext_supported = (uint8_t)(speeds / FABRIC_SPEED_FDR);
	i->link_width_active = p->width ? p->width : FABRIC_WIDTH_4X;
	i->link_speed_active = up ? old : 0;
	i->link_speed_ext_active = up ? (uint8_t)(speed / FABRIC_SPEED_FDR) : 0;
	i->link_width_enabled =
	        p->link.width_enabled ? p->link.width_enabled : i->link_width_supported;
	i->link_speed_enabled =
	        p->link.speed_enabled ? p->link.speed_enabled : i->link_speed_supported;
	i->link_speed_ext_enabled =
	        p->link.speed_ext_enabled ? p->link.speed_ext_enabled : i->link_speed_ext_supported;
}

/* The fields that only end ports have: addresses, keys, subnet manager. */
static void end_port_get(struct request *r, const struct fabric_port *p, struct wire_port_info *i)
{
	/* at level 0 everybody may read the key */
	if (r->trusted || !p->m_key_protect)
		i->m_key = p->m_key;
	i->gid_prefix = r->f->subnet_prefix;
	i->lid = p->lid;
	i->lmc = p->lmc;
	i->master_sm_lid = p->sm_lid;
	i->master_sm_sl = p->sm_sl;
	i->capability_mask = fabric_port_capabilities(p);
	i->capability_mask2 = fabric_port_capabilities2(p);
	i->m_key_lease_period = p->m_key_lease;
	i->m_key_protect_bits = p->m_key_protect;
	i->m_key_violations = p->m_key_violations;
	i->guid_cap = (uint8_t)guid_capacity(p);
	i->subnet_timeout = p->subnet_timeout;
	i->resp_time_value = 16;
	i->p_key_violations = p->p_key_violations;
	if (p->node->type == FABRIC_HCA) {
		struct shm_port_count *c = shm_port_count_at(r->f->region, p->index);

		i->q_key_violations = violations(&c->bad_qkey, p->q_key_zero);
		i->p_key_violations = violations(&c->bad_pkey, p->p_key_zero);
	}
}

static enum port_physical_state physical_state(const struct fabric_port *p)
{
	if (p->disabled)
		return PORT_PHYS_DISABLED;
	if (is_connected(p))
		return PORT_PHYS_LINK_UP;
	return p->asleep ? PORT_PHYS_SLEEP : PORT_PHYS_POLLING;
}

static void port_info_get(struct request *r, const struct fabric_port *p, struct wire_port_info *i)
{
	bool own = is_port0(p);

	*i = (struct wire_port_info){
		.local_port_num = r->at->num,
		.port_state = own ? IB_PORT_ACTIVE : p->state,
		.port_physical_state = own ? PORT_PHYS_LINK_UP : physical_state(p),
		.link_down_default_state = p->link.sleeps ? PORT_PHYS_SLEEP : PORT_PHYS_POLLING,
		.neighbor_mtu = p->mtu,
		.vl_cap = VL_CAP_VL0_7,
		.mtu_cap = (uint8_t)r->f->settings.mtu,
		.vl_high_limit = p->link.vl_high_limit,
		.vl_stall_count = p->link.vl_stall_count,
		.hoq_life = p->link.hoq_life,
		.operational_vls = p->link.operational_vls ? p->link.operational_vls : VL_CAP_VL0_7,
		.vl_arbitration_high_cap = FABRIC_ARB_CAP,
		.vl_arbitration_low_cap = FABRIC_ARB_CAP,
		.partition_enforcement_inbound = p->link.partition_inbound,
		.partition_enforcement_outbound = p->link.partition_outbound,
		.filter_raw_inbound = p->link.raw_inbound,
		.filter_raw_outbound = p->link.raw_outbound,
		.local_phy_errors = p->link.local_phy_errors,
		.overrun_errors = p->link.overrun_errors,
	};
	link_get(p, i);
	if (is_end_port(p))
		end_port_get(r, p, i);
}

/* Whether @enabled can be set: bits of @supported; 0: no change; @all: all that are supported. */
static bool fits(uint8_t enabled, uint8_t supported, uint8_t all)
{
	return enabled == all || !(enabled & ~supported);
}

/*
 * The state machine (section 14.2.5.6 and 7.2.7): a subnet manager moves a port from Initialize
 * to Armed to Active, and to Down.
 */
static bool may_enter(const struct fabric_port *p, unsigned state)
{
	switch (state) {
	case 0:
	case IB_PORT_DOWN:
		return true;
	case IB_PORT_ARMED:
		return p->state == IB_PORT_INIT || p->state == IB_PORT_ARMED;
	case IB_PORT_ACTIVE:
		return p->state == IB_PORT_ARMED || p->state == IB_PORT_ACTIVE;
	default:
		return false;
	}
}

static bool is_unicast_range(uint16_t lid, uint8_t lmc)
{
	unsigned n = 1u << lmc;

	return !(lid & (n - 1)) && lid + n <= IB_LID_MCAST_FIRST;
}

/* No LID: as long as the port has none. */
static bool is_lid_for(const struct fabric_port *p, uint16_t lid, uint8_t lmc)
{
	return (lid || !p->lid) && is_unicast_range(lid, lmc) && (!lmc || !is_base_port0(p));
}

/* Whether all of @in can be set; else none of it is. @now: the present values. */
static bool is_settable(const struct fabric_port *p, const struct wire_port_info *in,
                        const struct wire_port_info *now)
{
	if (is_end_port(p) &&
	    (!is_lid_for(p, in->lid, in->lmc) || in->master_sm_lid >= IB_LID_MCAST_FIRST))
		return false;
	if (in->neighbor_mtu && (in->neighbor_mtu < IBV_MTU_256 || in->neighbor_mtu > now->mtu_cap))
		return false;
	if (in->operational_vls > now->vl_cap || in->link_down_default_state > PORT_PHYS_POLLING)
		return false;
	if (is_port0(p))
		return true;
	return fits(in->link_width_enabled, now->link_width_supported, LINK_WIDTH_SET_SUPPORTED) &&
	       fits(in->link_speed_enabled, now->link_speed_supported, LINK_SPEED_SET_SUPPORTED) &&
	       (in->link_speed_ext_enabled == LINK_SPEED_EXT_DISABLE ||
	        fits(in->link_speed_ext_enabled, now->link_speed_ext_supported,
	             LINK_SPEED_EXT_SET_SUPPORTED)) &&
	       in->port_physical_state <= PORT_PHYS_DISABLED &&
	       (!in->port_physical_state || in->port_state <= IB_PORT_DOWN) &&
	       may_enter(p, in->port_state);
}

static void set_prefix(struct request *r, uint64_t prefix)
{
	struct fabric *f = r->f;

	if (!prefix || prefix == f->subnet_prefix)
		return;
	fabric_set_prefix(f, prefix); /* all ports of a subnet have the same */
	fabric_flow_mark_all(f);
	r->changed |= FABRIC_PORT_GIDS;
}

/* A counter of violations is set to 0, and to nothing else (section 14.2.5.6). */
static void set_violations(struct request *r, struct fabric_port *p, const struct wire_port_info *i)
{
	if (!i->m_key_violations)
		p->m_key_violations = 0;
	if (!i->p_key_violations)
		p->p_key_violations = 0;
	if (p->node->type != FABRIC_HCA)
		return;
	if (!i->p_key_violations)
		p->p_key_zero = shm_port_count_at(r->f->region, p->index)->bad_pkey;
	if (!i->q_key_violations)
		p->q_key_zero = shm_port_count_at(r->f->region, p->index)->bad_qkey;
}

static void set_end_port(struct request *r, struct fabric_port *p, const struct wire_port_info *i)
{
	if (i->lid != p->lid || i->lmc != p->lmc) {
		lids_changed(r->f, p);
		r->changed |= FABRIC_PORT_LID;
	}
	if (i->master_sm_lid != p->sm_lid || i->master_sm_sl != p->sm_sl)
		r->changed |= FABRIC_PORT_SM;
	if (i->client_reregister)
		r->changed |= FABRIC_PORT_REREGISTER;
	if (i->subnet_timeout != p->subnet_timeout)
		r->changed |= FABRIC_PORT_OTHER;
	p->lid = i->lid;
	p->lmc = i->lmc;
	p->sm_lid = i->master_sm_lid;
	p->sm_sl = i->master_sm_sl;
	p->m_key = i->m_key;
	p->m_key_protect = i->m_key_protect_bits;
	p->m_key_lease = i->m_key_lease_period;
	p->subnet_timeout = i->subnet_timeout;
	if (r->changed & FABRIC_PORT_LID)
		lids_changed(r->f, p);
	set_violations(r, p, i);
	set_prefix(r, i->gid_prefix);
}

/* The value that a Set makes of @old; @enabled 0: no change; @all: all that are supported. */
static uint8_t enabled_of(uint8_t enabled, uint8_t all, uint8_t old)
{
	if (!enabled)
		return old;
	return enabled == all ? 0 : enabled;
}

/* 0: no change. */
static void set_vls(struct request *r, struct fabric_port *p, uint8_t vls)
{
	unsigned used = fabric_lanes_used(p);

	if (vls)
		p->link.operational_vls = vls;
	if (fabric_lanes_used(p) != used)
		fabric_flow_lanes_changed(r->f, p);
}

static void set_link(struct request *r, struct fabric_port *p, const struct wire_port_info *i)
{
	struct fabric_port_link *l = &p->link;

	l->width_enabled =
	        enabled_of(i->link_width_enabled, LINK_WIDTH_SET_SUPPORTED, l->width_enabled);
	l->speed_enabled =
	        enabled_of(i->link_speed_enabled, LINK_SPEED_SET_SUPPORTED, l->speed_enabled);
	l->speed_ext_enabled = enabled_of(i->link_speed_ext_enabled, LINK_SPEED_EXT_SET_SUPPORTED,
	                                  l->speed_ext_enabled);
	if (i->link_down_default_state)
		l->sleeps = i->link_down_default_state == PORT_PHYS_SLEEP;
	l->vl_high_limit = i->vl_high_limit;
	l->vl_stall_count = i->vl_stall_count;
	l->hoq_life = i->hoq_life;
	l->local_phy_errors = i->local_phy_errors;
	l->overrun_errors = i->overrun_errors;
	if (l->partition_inbound != i->partition_enforcement_inbound ||
	    l->partition_outbound != i->partition_enforcement_outbound)
		fabric_flow_mark_all(r->f);
	l->partition_inbound = i->partition_enforcement_inbound;
	l->partition_outbound = i->partition_enforcement_outbound;
	l->raw_inbound = i->filter_raw_inbound;
	l->raw_outbound = i->filter_raw_outbound;
	set_vls(r, p, i->operational_vls);
	if (!i->neighbor_mtu || i->neighbor_mtu == p->mtu)
		return;
	p->mtu = i->neighbor_mtu;
	r->changed |= FABRIC_PORT_OTHER;
	if (fabric_port_carries(p))
		fabric_flow_mark_all(r->f);
}

/* Does what a Set asks of the link itself. */
static void set_physical_state(struct request *r, struct fabric_port *p,
                               const struct wire_port_info *i)
{
	if (p->state == IB_PORT_DOWN && !i->port_physical_state)
		fabric_port_poll(r->f, p); /* the enabled widths and speeds may have changed */
	if (i->port_physical_state == PORT_PHYS_DISABLED)
		fabric_port_disable(r->f, p, true);
	else if (i->port_physical_state && p->disabled) {
		p->asleep = i->port_physical_state == PORT_PHYS_SLEEP;
		fabric_port_disable(r->f, p, false);
	} else if (i->port_physical_state)
		fabric_port_sleep(r->f, p, i->port_physical_state == PORT_PHYS_SLEEP);
	else if (i->port_state == IB_PORT_DOWN)
		fabric_port_retrain(r->f, p);
}

static void set_state(struct request *r, struct fabric_port *p, const struct wire_port_info *i)
{
	bool carried = fabric_port_carries(p), was_active = p->state == IB_PORT_ACTIVE;
	uint8_t old = p->state, peer_old = p->peer ? p->peer->state : 0;

	set_physical_state(r, p, i);
	if (i->port_state > IB_PORT_DOWN)
		p->state = i->port_state;
	fabric_port_relinked(r->f, p);
	if (p->state != old && i->port_state > IB_PORT_DOWN) /* else who sets it DOWN tells */
		fabric_tell_port(r->f, p);
	if (p->state != old || i->port_state == IB_PORT_DOWN || i->port_physical_state)
		r->changed |= FABRIC_PORT_STATE;
	if (p->peer && p->peer->state != peer_old)
		r->peer_changed = p->peer;
	if (carried != fabric_port_carries(p))
		fabric_flow_note_link(r->f, p);
	else if (was_active != (p->state == IB_PORT_ACTIVE))
		lids_changed(r->f, p); /* flows from an HCA to itself */
	follow_some(r->f);
}

static uint16_t port_info(struct request *r)
{
	struct fabric_port *p = named_port(r, r->modifier & 0xFF);
	struct wire_port_info in, now;

	if (!p || (r->modifier & ~PORT_MODIFIER))
		return MAD_STATUS_BAD_FIELD;
	if (r->is_set) {
		port_info_get(r, p, &now);
		wire_port_info_decode(r->data, &in);
		if (!is_settable(p, &in, &now))
			return MAD_STATUS_BAD_FIELD;
		r->port = p;
		if (is_end_port(p))
			set_end_port(r, p, &in);
		set_link(r, p, &in);
		if (p->num)
			set_state(r, p, &in);
	}
	port_info_get(r, p, &now);
	wire_port_info_encode(&now, r->data);
	return MAD_STATUS_OK;
}

/* ---- tables ---- */

static uint16_t pkey_table(struct request *r)
{
	struct fabric_port *p =
	        is_switch(r->node) ? named_port(r, smp_pkey_port(r->modifier)) : r->at;
	struct wire_pkey_table t;

	if (!p || smp_pkey_block(r->modifier))
		return MAD_STATUS_BAD_FIELD;
	if (r->is_set) {
		wire_pkey_table_decode(r->data, &t);
		r->port = p;
		if (memcmp(p->pkey, t.pkey, sizeof(p->pkey)) != 0)
			r->changed |= FABRIC_PORT_PKEYS;
		if (p->link.partition_inbound || p->link.partition_outbound)
			fabric_flow_mark_all(r->f);
		memcpy(p->pkey, t.pkey, sizeof(p->pkey));
		if (is_switch(p->node))
			follow_some(r->f);
	}
	memset(&t, 0, sizeof(t));
	memcpy(t.pkey, p->pkey, sizeof(p->pkey));
	wire_pkey_table_encode(&t, r->data);
	return MAD_STATUS_OK;
}

/* Writes the table, if it differs; flows follow. */
static uint16_t set_sl_to_vl(struct request *r, struct fabric_port *out, unsigned in)
{
	struct wire_sl_to_vl map, old;

	wire_sl_to_vl_decode(r->data, &map);
	fabric_lanes_map_read(out, in, &old);
	if (!memcmp(&map, &old, sizeof(map)))
		return MAD_STATUS_OK;
	if (fabric_lanes_map_write(out, in, &map))
		return MAD_STATUS_BUSY;
	fabric_flow_lanes_changed(r->f, out);
	follow_some(r->f);
	return MAD_STATUS_OK;
}

/* The other bits of the modifier would name more ports. */
static uint16_t sl_to_vl(struct request *r)
{
	struct fabric_port *out = r->at;
	struct wire_sl_to_vl map;
	uint16_t status = MAD_STATUS_OK;
	unsigned in = 0;

	if (is_switch(r->node)) {
		in = smp_sl_to_vl_in_port(r->modifier);
		out = named_port(r, smp_sl_to_vl_out_port(r->modifier));
	}
	if (!out || !named_port(r, in))
		return MAD_STATUS_BAD_FIELD;
	if (r->is_set)
		status = set_sl_to_vl(r, out, in);
	fabric_lanes_map_read(out, in, &map);
	memset(r->data, 0, SMP_DATA_BYTES);
	wire_sl_to_vl_encode(&map, r->data);
	return status;
}

static uint16_t vl_arbitration(struct request *r)
{
	unsigned part = smp_vl_arb_part(r->modifier);
	struct fabric_port *p =
	        is_switch(r->node) ? named_port(r, smp_vl_arb_port(r->modifier)) : r->at;
	struct wire_vl_arb arb;

	if (part < 1 || part > VL_ARB_PARTS || !p)
		return MAD_STATUS_BAD_FIELD;
	if (r->is_set) {
		wire_vl_arb_decode(r->data, &arb);
		if (fabric_lanes_arb_write(p, part - 1, &arb))
			return MAD_STATUS_BUSY;
	}
	fabric_lanes_arb_read(p, part - 1, &arb);
	wire_vl_arb_encode(&arb, r->data);
	return MAD_STATUS_OK;
}

static uint16_t linear_ft(struct request *r)
{
	uint32_t first = r->modifier * LFT_BLOCK;
	struct wire_linear_ft t;

	if (!is_switch(r->node))
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (r->modifier >= LFT_CAPACITY / LFT_BLOCK)
		return MAD_STATUS_BAD_FIELD;
	if (r->is_set) {
		wire_linear_ft_decode(r->data, &t);
		for (unsigned i = 0; i < LFT_BLOCK; i++) {
			uint16_t lid = (uint16_t)(first + i);

			if (t.port[i] == fabric_lft_get(r->node, lid) || !lid)
				continue;
			if (fabric_lft_set(r->node, lid, t.port[i]))
				return MAD_STATUS_BUSY;
			fabric_flow_mark_lid(r->f, lid);
		}
		follow_some(r->f);
	}
	for (unsigned i = 0; i < LFT_BLOCK; i++)
		t.port[i] = fabric_lft_get(r->node, (uint16_t)(first + i));
	wire_linear_ft_encode(&t, r->data);
	return MAD_STATUS_OK;
}

static uint16_t row_mask(const struct fabric_mft_row *row, unsigned position)
{
	return row ? (uint16_t)(row->ports[position / 4] >> (position % 4 * MFT_POSITION)) : 0;
}

/* Sets one position of the row of @mlid. Returns enum mad_status. */
static uint16_t set_row(struct request *r, uint16_t mlid, unsigned position, uint16_t mask)
{
	const struct fabric_mft_row *old = fabric_mft_get(r->node, mlid);
	struct fabric_mft_row row = { { 0 } };
	uint64_t *word = &row.ports[position / 4];
	unsigned shift = position % 4 * MFT_POSITION;

	if (row_mask(old, position) == mask)
		return MAD_STATUS_OK;
	if (old)
		row = *old;
	*word = (*word & ~(0xFFFFull << shift)) | (uint64_t)mask << shift;
	if (fabric_mft_set(r->f, r->node, mlid, &row))
		return MAD_STATUS_BAD_FIELD;
	fabric_flow_mark_lid(r->f, mlid);
	return MAD_STATUS_OK;
}

static uint16_t multicast_ft(struct request *r)
{
	unsigned position = smp_mft_position(r->modifier), block = smp_mft_block(r->modifier);
	uint16_t first = (uint16_t)(IB_LID_MCAST_FIRST + block * MFT_BLOCK);
	uint16_t status = MAD_STATUS_OK;
	struct wire_multicast_ft t;

	if (!is_switch(r->node))
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if ((r->modifier & ~MFT_MODIFIER) || block * MFT_BLOCK >= r->f->settings.mft_capacity ||
	    position * MFT_POSITION > r->node->n_ports)
		return MAD_STATUS_BAD_FIELD;
	wire_multicast_ft_decode(r->data, &t);
	for (unsigned i = 0; r->is_set && i < MFT_BLOCK && !status; i++)
		status = set_row(r, (uint16_t)(first + i), position, t.port_mask[i]);
	if (r->is_set)
		follow_some(r->f);
	for (unsigned i = 0; i < MFT_BLOCK; i++)
		t.port_mask[i] = row_mask(fabric_mft_get(r->node, (uint16_t)(first + i)), position);
	wire_multicast_ft_encode(&t, r->data);
	return status;
}

/* Which byte of MlnxExtPortInfo says whether the port supports FDR10, is to use it, and does. */
enum { MLNX_SUPPORTED = 7, MLNX_ENABLED = 11, MLNX_ACTIVE = 15, MLNX_FDR10 = 1 };

static uint16_t mlnx_ext_port_info(struct request *r)
{
	struct fabric_port *p = named_port(r, r->modifier & 0xFF);
	bool has_it;

	if (r->node->vendor_id != MLNX_VENDOR_ID)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (!p || (r->modifier & ~PORT_MODIFIER))
		return MAD_STATUS_BAD_FIELD;
	has_it = fabric_speeds_supported(p) & FABRIC_SPEED_FDR10;
	if (r->is_set)
		p->link.fdr10_off = !(r->data[MLNX_ENABLED] & MLNX_FDR10);
	memset(r->data, 0, SMP_DATA_BYTES);
	if (has_it)
		r->data[MLNX_SUPPORTED] = MLNX_FDR10;
	if (has_it && !p->link.fdr10_off)
		r->data[MLNX_ENABLED] = MLNX_FDR10;
	if (p->state > IB_PORT_DOWN && p->speed == FABRIC_SPEED_FDR10)
		r->data[MLNX_ACTIVE] = MLNX_FDR10;
	return MAD_STATUS_OK;
}

/* Links have no errors to correct: no mode can be chosen, and none is active. */
static uint16_t port_info_extended(struct request *r)
{
	if (r->is_set)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (!named_port(r, r->modifier & 0xFF) || (r->modifier & ~PORT_MODIFIER))
		return MAD_STATUS_BAD_FIELD;
	memset(r->data, 0, SMP_DATA_BYTES);
	return MAD_STATUS_OK;
}

static const struct attribute {
	uint16_t id;
	uint16_t (*serve)(struct request *r);
} attributes[] = {
	{ SMP_ATTR_NODE_DESCRIPTION, node_description },
	{ SMP_ATTR_NODE_INFO, node_info },
	{ SMP_ATTR_SWITCH_INFO, switch_info },
	{ SMP_ATTR_GUID_INFO, guid_info },
	{ SMP_ATTR_PORT_INFO, port_info },
	{ SMP_ATTR_PKEY_TABLE, pkey_table },
	{ SMP_ATTR_SL_TO_VL, sl_to_vl },
	{ SMP_ATTR_VL_ARBITRATION, vl_arbitration },
	{ SMP_ATTR_LINEAR_FT, linear_ft },
	{ SMP_ATTR_MULTICAST_FT, multicast_ft },
	{ SMP_ATTR_PORT_INFO_EXTENDED, port_info_extended },
	{ SMP_ATTR_MLNX_EXT_PORT_INFO, mlnx_ext_port_info },
};

bool fabric_sma_wants(const struct fabric_mad *mad)
{
	struct wire_smp smp;

	if (mad->dest_qpn != IB_QPN_SMI)
		return false;
	wire_smp_decode(mad->data, &smp);
	if (smp.mad.mgmt_class == MAD_CLASS_SUBN_DIRECTED
	            ? smp.direction
	            : smp.mad.mgmt_class != MAD_CLASS_SUBN_LID)
		return false;
	/* responses, traps and SMInfo are for subnet managers and programs */
	return (smp.mad.method == MAD_GET || smp.mad.method == MAD_SET) &&
	       smp.mad.attribute_id != SMP_ATTR_SM_INFO;
}

/* The protection ends when no request with the key came during the lease (section 14.2.4.1). */
static void expire_lease(struct fabric *f, struct fabric_port *own)
{
	if (!own->m_key_lease_ends || fabric_now_ns(f) < own->m_key_lease_ends)
		return;
	own->m_key_lease_ends = 0;
	own->m_key_protect = 0;
}

static void begin_lease(struct fabric *f, struct fabric_port *own)
{
	if (own->m_key_lease && !own->m_key_lease_ends)
		own->m_key_lease_ends = fabric_now_ns(f) + own->m_key_lease * NS_PER_S;
}

/*
 * Whether the M_Key of @own allows the request @smp (section 14.2.4): with the right key always;
 * without it, below protection level 2, a Get. A request with the key stops the lease.
 */
static bool may_enter_by_key(struct fabric *f, struct fabric_port *own, const struct wire_smp *smp)
{
	expire_lease(f, own);
	if (!own->m_key || smp->m_key == own->m_key) {
		own->m_key_lease_ends = 0;
		return true;
	}
	return smp->mad.method == MAD_GET && own->m_key_protect < 2;
}

static void refuse_key(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct fabric_port *own = fabric_own_port(at);

	f->mads->stats.bad_m_key++;
	if (own->m_key_violations < UINT16_MAX)
		own->m_key_violations++;
	begin_lease(f, own);
	fabric_trap_bad_m_key(f, at, mad);
}

static uint16_t serve_attribute(struct request *r, uint16_t id)
{
	r->f->foreign += r->is_set;
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++)
		if (attributes[i].id == id)
			return attributes[i].serve(r);
	return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
}

static uint16_t serve(struct request *r, const struct wire_mad *h)
{
	if (h->base_version != MAD_BASE_VERSION || h->class_version != MAD_VERSION_SUBN)
		return MAD_STATUS_BAD_VERSION;
	return serve_attribute(r, h->attribute_id);
}

uint16_t fabric_sma_get(struct fabric *f, struct fabric_port *at, uint16_t attribute,
                        uint32_t modifier, uint8_t *data)
{
	struct request r = { .f = f,
		             .at = at,
		             .node = at->node,
		             .trusted = true,
		             .modifier = modifier,
		             .data = data };

	expire_lease(f, fabric_own_port(at));
	return serve_attribute(&r, attribute);
}

/* Publishes the changed port to processes and tells the sink. */
static void follow_change(struct request *r)
{
	const struct fabric_mad_sink *sink = &r->f->mads->sink;

	if (r->port->node->type == FABRIC_HCA)
		fabric_port_publish(r->f, r->port);
	if (!sink->port_changed)
		return;
	sink->port_changed(sink->arg, r->port, r->changed);
	if (r->peer_changed)
		sink->port_changed(sink->arg, r->peer_changed, FABRIC_PORT_STATE);
}

uint16_t fabric_sma_set(struct fabric *f, struct fabric_port *at, uint16_t attribute,
                        uint32_t modifier, uint8_t *data)
{
	struct request r = { .f = f,
		             .at = at,
		             .node = at->node,
		             .is_set = true,
		             .trusted = true,
		             .modifier = modifier,
		             .data = data };
	uint16_t status = serve_attribute(&r, attribute);

	if (r.changed)
		follow_change(&r);
	return status;
}

bool fabric_sma_wants_repress(struct fabric *f, struct fabric_port *at,
                              const struct fabric_mad *mad)
{
	return mad->dest_qpn == IB_QPN_SMI && fabric_trap_is_awaited(f, at, mad);
}

void fabric_sma_repress(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct wire_smp smp;

	wire_smp_decode(mad->data, &smp);
	if (!may_enter_by_key(f, fabric_own_port(at), &smp)) {
		refuse_key(f, at, mad);
		return;
	}
	f->mads->stats.repressed++;
	fabric_trap_repressed(f, at, mad);
}

bool fabric_sma_respond(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad)
{
	struct fabric_port *own = fabric_own_port(at);
	struct request r = { .f = f, .at = at, .node = at->node };
	struct wire_smp smp;

	wire_smp_decode(mad->data, &smp);
	if (!may_enter_by_key(f, own, &smp)) {
		refuse_key(f, at, mad);
		return false;
	}
	r.is_set = smp.mad.method == MAD_SET;
	r.trusted = !own->m_key || smp.m_key == own->m_key;
	r.modifier = smp.mad.attribute_modifier;
	r.data = smp.data;
	smp.mad.status = serve(&r, &smp.mad);
	smp.mad.method = MAD_GET_RESP;
	wire_smp_encode(&smp, mad->data);
	if (r.changed)
		follow_change(&r);
	return true;
}
