/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subnet management agent of every node (InfiniBand specification volume 1,
 * chapter 14): Get and Set of the attributes by which a subnet manager finds out what
 * there is and says how it shall be. One function an attribute, in a table.
 */
#include <string.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "fabric/flow.h"
#include "fabric/mads.h"
#include "wire/sm_attr.h"

#define VENDOR_ID      0x02756D
#define DEVICE_ID      1
#define LFT_CAPACITY   49151
#define PHYS_SPEED_EDR LINK_SPEED_EXT_EDR

/* A request on its way through an attribute's function. */
struct request {
	struct fabric *f;
	struct fabric_port *at; /* where it arrived */
	struct fabric_node *node;
	bool is_set;
	uint32_t modifier;
	uint8_t *data;
	unsigned changed; /* of port */
	struct fabric_port *port;
};

/* The port that a modifier names: a switch's 0 is its own, an HCA's 0 the one it came in by. */
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
		return MAD_STATUS_OK; /* names are the fabric's */
	memcpy(d.text, r->node->desc, strnlen(r->node->desc, sizeof(d.text)));
	wire_node_description_encode(&d, r->data);
	return MAD_STATUS_OK;
}

static uint16_t node_info(struct request *r)
{
	struct wire_node_info i = {
		.base_version = 1,
		.class_version = 1,
		.node_type = r->node->type == FABRIC_SWITCH ? NODE_TYPE_SWITCH : NODE_TYPE_CA,
		.num_ports = (uint8_t)r->node->n_ports,
		.system_image_guid = r->node->system_guid,
		.node_guid = r->node->guid,
		.port_guid = r->node->type == FABRIC_SWITCH ? r->node->guid : r->at->guid,
		.partition_cap = SHM_PKEYS,
		.device_id = (uint16_t)(r->node->device_id ? r->node->device_id : DEVICE_ID),
		.revision = 1,
		.local_port_num = r->at->num,
		.vendor_id = r->node->vendor_id ? r->node->vendor_id : VENDOR_ID,
	};

	if (r->is_set)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	wire_node_info_encode(&i, r->data);
	return MAD_STATUS_OK;
}

static uint16_t switch_info(struct request *r)
{
	struct fabric_node *sw = r->node;
	struct wire_switch_info in, i = {
		.linear_fdb_cap = LFT_CAPACITY,
		.multicast_fdb_cap = (uint16_t)r->f->settings.mft_capacity,
		.linear_fdb_top = sw->lft_top,
		.life_time_value = sw->life_time,
		.port_state_change = sw->state_change,
		.partition_enforcement_cap = SHM_PKEYS,
		.enhanced_port0 = sw->enhanced_port0,
		.multicast_fdb_top = sw->mft_top,
	};

	if (sw->type != FABRIC_SWITCH)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (r->is_set) {
		wire_switch_info_decode(r->data, &in);
		sw->lft_top = i.linear_fdb_top = in.linear_fdb_top;
		sw->life_time = i.life_time_value = in.life_time_value;
		sw->mft_top = i.multicast_fdb_top = in.multicast_fdb_top;
		if (in.port_state_change) /* writing a 1 clears it */
			sw->state_change = i.port_state_change = 0;
	}
	wire_switch_info_encode(&i, r->data);
	return MAD_STATUS_OK;
}

static uint16_t guid_info(struct request *r)
{
	struct fabric_port *p = r->node->type == FABRIC_SWITCH ? &r->node->port[0] : r->at;
	struct wire_guid_info g = { { p->guid } };

	if (r->modifier)
		return MAD_STATUS_BAD_FIELD;
	/* further GUIDs are not supported: a Set reads back as it was */
	wire_guid_info_encode(&g, r->data);
	return MAD_STATUS_OK;
}

/* ---- PortInfo ---- */

static bool is_connected(const struct fabric_port *p)
{
	return p->peer && p->state != IB_PORT_DOWN;
}

static uint16_t violations(_Atomic uint64_t *count)
{
	uint64_t n = atomic_load_explicit(count, memory_order_relaxed);

	return n > UINT16_MAX ? UINT16_MAX : (uint16_t)n;
}

static void port_info_get(struct request *r, const struct fabric_port *p, struct wire_port_info *i)
{
	bool own = p->node->type == FABRIC_SWITCH && p->num == 0;
	const struct fabric_port *managed = p->node->type == FABRIC_SWITCH ? &p->node->port[0] : p;

	*i = (struct wire_port_info){
		.m_key = managed->m_key,
		.gid_prefix = r->f->subnet_prefix,
		.lid = own || p->node->type == FABRIC_HCA ? p->lid : 0,
		.master_sm_lid = managed->sm_lid,
		.capability_mask = PORT_CAP_TRAP | PORT_CAP_SYSTEM_IMAGE_GUID |
		                   PORT_CAP_CLIENT_REREGISTER | PORT_CAP_EXTENDED_SPEEDS |
		                   PORT_CAP_MULTICAST_FDB_TOP | p->capabilities,
		.m_key_lease_period = managed->m_key_lease,
		.local_port_num = r->at->num,
		.link_width_enabled = LINK_WIDTH_1X | LINK_WIDTH_4X,
		.link_width_supported = LINK_WIDTH_1X | LINK_WIDTH_4X,
		.link_width_active = LINK_WIDTH_4X,
		.link_speed_supported = LINK_SPEED_SDR | LINK_SPEED_DDR | LINK_SPEED_QDR,
		.link_speed_active = LINK_SPEED_QDR,
		.link_speed_enabled = LINK_SPEED_SDR | LINK_SPEED_DDR | LINK_SPEED_QDR,
		.link_speed_ext_active = PHYS_SPEED_EDR,
		.link_speed_ext_supported = LINK_SPEED_EXT_FDR | LINK_SPEED_EXT_EDR,
		.link_speed_ext_enabled = LINK_SPEED_EXT_FDR | LINK_SPEED_EXT_EDR,
		.port_state = own ? IB_PORT_ACTIVE : p->state,
		.port_physical_state =
		        own || is_connected(p) ? PORT_PHYS_LINK_UP : PORT_PHYS_POLLING,
		.link_down_default_state = PORT_PHYS_POLLING,
		.m_key_protect_bits = managed->m_key_protect,
		.lmc = own || p->node->type == FABRIC_HCA ? p->lmc : 0,
		.neighbor_mtu = p->mtu,
		.master_sm_sl = managed->sm_sl,
		.vl_cap = VL_CAP_VL0,
		.mtu_cap = IBV_MTU_4096,
		.operational_vls = VL_CAP_VL0,
		.guid_cap = 1,
		.subnet_timeout = managed->subnet_timeout,
		.resp_time_value = 16,
		.local_phy_errors = 15,
		.overrun_errors = 15,
	};
	if (p->node->type == FABRIC_HCA) {
		struct shm_port_count *c = &r->f->region->port_counts[p->index];

		i->q_key_violations = violations(&c->bad_qkey);
		i->p_key_violations = violations(&c->bad_pkey);
	}
	if (!is_connected(p))
		i->link_speed_ext_active = i->link_width_active = i->link_speed_active = 0;
}

/* The link trains anew, which takes no time here: both ends begin again at Initialize. */
static void retrain(struct fabric *f, struct fabric_port *p)
{
	if (!p->peer || p->state == IB_PORT_DOWN)
		return;
	p->state = p->peer->state = IB_PORT_INIT;
	if (p->peer->node->type == FABRIC_HCA)
		fabric_port_publish(f, p->peer);
}

/*
 * The state machine (section 14.4.4 and table 146): a subnet manager takes a port from
 * Initialize to Armed to Active, and down.
 */
static uint16_t set_state(struct request *r, struct fabric_port *p, unsigned state)
{
	bool own = p->node->type == FABRIC_SWITCH && p->num == 0;

	if (!state || own || state == p->state)
		return MAD_STATUS_OK;
	if (state == IB_PORT_DOWN) {
		retrain(r->f, p);
		r->changed |= FABRIC_PORT_STATE;
		return MAD_STATUS_OK;
	}
	if (!(state == IB_PORT_ARMED && p->state == IB_PORT_INIT) &&
	    !(state == IB_PORT_ACTIVE && p->state == IB_PORT_ARMED))
		return MAD_STATUS_BAD_FIELD;
	p->state = (uint8_t)state;
	r->changed |= FABRIC_PORT_STATE;
	return MAD_STATUS_OK;
}

static uint16_t check_port_info(const struct wire_port_info *i, bool has_lid)
{
	if (i->port_state > IB_PORT_ACTIVE)
		return MAD_STATUS_BAD_FIELD;
	if (has_lid &&
	    (i->lid >= IB_LID_MCAST_FIRST || i->lid + (1u << i->lmc) > IB_LID_MCAST_FIRST))
		return MAD_STATUS_BAD_FIELD;
	if (i->neighbor_mtu && (i->neighbor_mtu < IBV_MTU_256 || i->neighbor_mtu > IBV_MTU_4096))
		return MAD_STATUS_BAD_FIELD;
	return MAD_STATUS_OK;
}

static void set_managed(struct request *r, struct fabric_port *p, const struct wire_port_info *i)
{
	if (i->lid != p->lid || i->lmc != p->lmc)
		r->changed |= FABRIC_PORT_LID;
	if (i->master_sm_lid != p->sm_lid || i->master_sm_sl != p->sm_sl)
		r->changed |= FABRIC_PORT_SM;
	if (i->client_reregister)
		r->changed |= FABRIC_PORT_REREGISTER;
	p->lid = i->lid;
	p->lmc = i->lmc;
	p->sm_lid = i->master_sm_lid;
	p->sm_sl = i->master_sm_sl;
	p->m_key = i->m_key;
	p->m_key_protect = i->m_key_protect_bits;
	p->m_key_lease = i->m_key_lease_period;
	p->subnet_timeout = i->subnet_timeout;
}

static uint16_t port_info(struct request *r)
{
	struct fabric_port *p = named_port(r, r->modifier & 0xFF);
	struct wire_port_info i;
	uint16_t status = MAD_STATUS_OK;
	bool has_lid;

	if (!p)
		return MAD_STATUS_BAD_FIELD;
	has_lid = p->node->type == FABRIC_HCA || p->num == 0;
	if (r->is_set) {
		wire_port_info_decode(r->data, &i);
		status = check_port_info(&i, has_lid);
		if (status)
			return status;
		r->port = p;
		if (has_lid)
			set_managed(r, p, &i);
		if (i.neighbor_mtu)
			p->mtu = i.neighbor_mtu < r->f->settings.mtu ? i.neighbor_mtu
			                                             : (uint8_t)r->f->settings.mtu;
		status = set_state(r, p, i.port_state);
	}
	port_info_get(r, p, &i);
	wire_port_info_encode(&i, r->data);
	return status;
}

/* ---- tables ---- */

static uint16_t pkey_table(struct request *r)
{
	struct fabric_port *p =
	        r->node->type == FABRIC_SWITCH ? named_port(r, smp_pkey_port(r->modifier)) : r->at;
	struct wire_pkey_table t;

	if (!p || smp_pkey_block(r->modifier))
		return MAD_STATUS_BAD_FIELD;
	if (r->is_set) {
		wire_pkey_table_decode(r->data, &t);
		r->port = p;
		if (memcmp(p->pkey, t.pkey, sizeof(p->pkey)) != 0)
			r->changed |= FABRIC_PORT_PKEYS;
		memcpy(p->pkey, t.pkey, sizeof(p->pkey));
	}
	memset(&t, 0, sizeof(t));
	memcpy(t.pkey, p->pkey, sizeof(p->pkey));
	wire_pkey_table_encode(&t, r->data);
	return MAD_STATUS_OK;
}

/* There is one data lane: mapping and arbitration are as they are, and a Set reads so. */
static uint16_t sl_to_vl(struct request *r)
{
	memset(r->data, 0, SMP_DATA_BYTES);
	return MAD_STATUS_OK;
}

static uint16_t vl_arbitration(struct request *r)
{
	memset(r->data, 0, SMP_DATA_BYTES);
	return MAD_STATUS_OK;
}

static uint16_t linear_ft(struct request *r)
{
	uint32_t first = r->modifier * LFT_BLOCK;
	struct wire_linear_ft t;

	if (r->node->type != FABRIC_SWITCH)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (r->modifier > LFT_CAPACITY / LFT_BLOCK)
		return MAD_STATUS_BAD_FIELD;
	if (r->is_set) {
		wire_linear_ft_decode(r->data, &t);
		for (unsigned i = 0; i < LFT_BLOCK; i++) {
			uint16_t lid = (uint16_t)(first + i);

			if (t.port[i] == fabric_lft_get(r->node, lid) || !lid)
				continue;
			if (fabric_lft_set(r->node, lid, t.port[i]))
				return MAD_STATUS_BUSY;
			fabric_flow_lid_changed(r->f, lid);
		}
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

static uint16_t multicast_ft(struct request *r)
{
	unsigned position = smp_mft_position(r->modifier), block = smp_mft_block(r->modifier);
	struct wire_multicast_ft t;

	if (r->node->type != FABRIC_SWITCH)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (block * MFT_BLOCK >= r->f->settings.mft_capacity ||
	    position * MFT_POSITION > r->node->n_ports)
		return MAD_STATUS_BAD_FIELD;
	if (r->is_set) {
		wire_multicast_ft_decode(r->data, &t);
		for (unsigned i = 0; i < MFT_BLOCK; i++) {
			uint16_t mlid = (uint16_t)(IB_LID_MCAST_FIRST + block * MFT_BLOCK + i);
			const struct fabric_mft_row *old = fabric_mft_get(r->node, mlid);
			struct fabric_mft_row row = { { 0 } };
			uint64_t *word = &row.ports[position / 4];
			unsigned shift = position % 4 * MFT_POSITION;

			if (row_mask(old, position) == t.port_mask[i])
				continue;
			if (old)
				row = *old;
			*word = (*word & ~(0xFFFFull << shift)) | (uint64_t)t.port_mask[i] << shift;
			if (fabric_mft_set(r->f, r->node, mlid, &row))
				return MAD_STATUS_BAD_FIELD;
			fabric_flow_lid_changed(r->f, mlid);
		}
	}
	for (unsigned i = 0; i < MFT_BLOCK; i++)
		t.port_mask[i] =
		        row_mask(fabric_mft_get(r->node, (uint16_t)(IB_LID_MCAST_FIRST +
		                                                    block * MFT_BLOCK + i)),
		                 position);
	wire_multicast_ft_encode(&t, r->data);
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
};

bool fabric_sma_wants(const struct fabric_mad *mad)
{
	const uint8_t *d = mad->data;
	struct wire_mad h;

	wire_mad_decode(d, &h);
	if (h.mgmt_class != MAD_CLASS_SUBN_LID && h.mgmt_class != MAD_CLASS_SUBN_DIRECTED)
		return false;
	/* answers, traps and SMInfo are between subnet managers and programs */
	return (h.method == MAD_GET || h.method == MAD_SET) && h.attribute_id != SMP_ATTR_SM_INFO;
}

/* Whether the M_Key lets this request in (section 14.2.4). */
static bool key_fits(const struct fabric_port *managed, const struct wire_smp *smp, bool is_set)
{
	if (!managed->m_key || smp->m_key == managed->m_key)
		return true;
	return !is_set && managed->m_key_protect < 2;
}

static uint16_t serve_attribute(struct request *r, uint16_t id)
{
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
	struct request r = {
		.f = f, .at = at, .node = at->node, .modifier = modifier, .data = data
	};

	return serve_attribute(&r, attribute);
}

/* What follows from a change: the shared record, flows, and whoever wants to know. */
static void follow_change(struct request *r)
{
	if (r->port->node->type == FABRIC_HCA)
		fabric_port_publish(r->f, r->port);
	if (r->changed & (FABRIC_PORT_STATE | FABRIC_PORT_LID))
		fabric_flow_all_changed(r->f);
	if (r->f->mads->sink.port_changed)
		r->f->mads->sink.port_changed(r->f->mads->sink.arg, r->port, r->changed);
}

bool fabric_sma_answer(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad)
{
	struct fabric_port *managed = at->node->type == FABRIC_SWITCH ? &at->node->port[0] : at;
	struct request r = { .f = f, .at = at, .node = at->node };
	struct wire_smp smp;

	wire_smp_decode(mad->data, &smp);
	r.is_set = smp.mad.method == MAD_SET;
	r.modifier = smp.mad.attribute_modifier;
	r.data = smp.data;
	if (!key_fits(managed, &smp, r.is_set)) {
		f->mads->stats.bad_m_key++;
		return false;
	}
	smp.mad.status = serve(&r, &smp.mad);
	smp.mad.method = MAD_GET_RESP;
	wire_smp_encode(&smp, mad->data);
	if (r.changed)
		follow_change(&r);
	return true;
}
