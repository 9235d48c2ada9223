/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The congestion control agent of every node (InfiniBand specification volume 1, annex A10). It
 * keeps what managers set. Packets never wait for a link here, so no link is ever congested: no
 * packet is marked, no sender is slowed down, and logs have no events (docs/subnet.md).
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fabric/agents/mads.h"
#include "wire/cc.h"

#define TABLE_BLOCKS 2 /* 128 entries, as many as CCTI's seven bits count */
#define PORT_BLOCKS  (FABRIC_MAX_PORTS / CC_PORT_BLOCK + 1)
#define NS_PER_S     1000000000ull

/* The managers' settings of an end port: an HCA's port, or port 0 of a switch. */
struct fabric_cc {
	struct wire_cc_key_info key;
	uint64_t lease_ends; /* ns; 0: the lease does not run */
	uint8_t setting[CC_DATA_BYTES];
	union {
		uint8_t ports[PORT_BLOCKS][CC_DATA_BYTES];
		uint8_t table[TABLE_BLOCKS][CC_DATA_BYTES];
	};
};

/* A request, as the functions of attributes see it. */
struct request {
	struct fabric *f;
	struct fabric_port *own;
	struct fabric_cc *cc;
	bool is_switch, is_set, trusted;
	uint32_t modifier;
	uint8_t *log; /* all of the data; CC_LOG_BYTES */
	uint8_t *data;
};

static uint32_t timestamp(const struct request *r)
{
	return (uint32_t)(fabric_now_ns(r->f) / CC_TIMESTAMP_NS);
}

static uint16_t class_port_info(struct request *r)
{
	struct wire_class_port_info c = { .base_version = 1,
		                          .class_version = MAD_VERSION_CC,
		                          .resp_time_value = 16 };

	if (r->is_set)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	wire_class_port_info_encode(&c, r->data);
	return MAD_STATUS_OK;
}

static uint16_t info(struct request *r)
{
	const struct wire_cc_info i = { .control_table_cap = r->is_switch ? 0 : TABLE_BLOCKS };

	if (r->is_set)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	wire_cc_info_encode(&i, r->data);
	return MAD_STATUS_OK;
}

/* Violations are set to 0, and to nothing else. */
static uint16_t key_info(struct request *r)
{
	struct wire_cc_key_info i;
	uint16_t violations = r->cc->key.violations;

	if (r->is_set) {
		wire_cc_key_info_decode(r->data, &i);
		r->cc->key = i;
		r->cc->key.violations = i.violations ? violations : 0;
	}
	i = r->cc->key;
	if (!r->trusted)
		i.key = 0;
	wire_cc_key_info_encode(&i, r->data);
	return MAD_STATUS_OK;
}

static uint16_t log_of_events(struct request *r)
{
	const struct wire_cc_log_switch sw = { .type = CC_LOG_SWITCH, .timestamp = timestamp(r) };
	const struct wire_cc_log_ca ca = { .type = CC_LOG_CA, .timestamp = timestamp(r) };

	if (r->is_set)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	memset(r->log, 0, CC_LOG_BYTES);
	if (r->is_switch)
		wire_cc_log_switch_encode(&sw, r->log);
	else
		wire_cc_log_ca_encode(&ca, r->log);
	return MAD_STATUS_OK;
}

static uint16_t time_stamp(struct request *r)
{
	const struct wire_cc_timestamp t = { .timestamp = timestamp(r) };

	if (r->is_set)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	wire_cc_timestamp_encode(&t, r->data);
	return MAD_STATUS_OK;
}

/* A Get or a Set of what is only kept: @kept, CC_DATA_BYTES, of which @bytes are not reserved. */
static uint16_t serve_kept(struct request *r, uint8_t *kept, size_t bytes)
{
	if (r->is_set)
		memcpy(kept, r->data, bytes);
	memcpy(r->data, kept, CC_DATA_BYTES);
	return MAD_STATUS_OK;
}

#define SWITCH_SETTING_BYTES 76
#define CA_SETTING_BYTES     (4 + 16 * 8)

static uint16_t switch_setting(struct request *r)
{
	return serve_kept(r, r->cc->setting, SWITCH_SETTING_BYTES);
}

static uint16_t ca_setting(struct request *r)
{
	return serve_kept(r, r->cc->setting, CA_SETTING_BYTES);
}

static uint16_t switch_port_setting(struct request *r)
{
	unsigned ports = r->own->node->n_ports + 1, first = r->modifier * CC_PORT_BLOCK, n;

	if (r->modifier >= PORT_BLOCKS || first >= ports)
		return MAD_STATUS_BAD_FIELD;
	n = ports - first < CC_PORT_BLOCK ? ports - first : CC_PORT_BLOCK;
	return serve_kept(r, r->cc->ports[r->modifier], (size_t)n * CC_PORT_BYTES);
}

static uint16_t control_table(struct request *r)
{
	unsigned limit = (unsigned)r->data[0] << 8 | r->data[1];

	if (r->modifier >= TABLE_BLOCKS)
		return MAD_STATUS_BAD_FIELD;
	if (r->is_set && limit >= TABLE_BLOCKS * CC_TABLE_BLOCK)
		return MAD_STATUS_BAD_FIELD;
	for (unsigned i = 0; r->is_set && i < TABLE_BLOCKS; i++)
		memcpy(r->cc->table[i], r->data, 2); /* CCTI_Limit is one for all blocks */
	return serve_kept(r, r->cc->table[r->modifier], CC_TABLE_BYTES);
}

enum { OF_SWITCH = 1, OF_CA = 2 };

static const struct attribute {
	uint16_t id;
	uint8_t of; /* OF_X */
	uint16_t (*serve)(struct request *r);
} attributes[] = {
	{ MAD_ATTR_CLASS_PORT_INFO, OF_SWITCH | OF_CA, class_port_info },
	{ CC_ATTR_INFO, OF_SWITCH | OF_CA, info },
	{ CC_ATTR_KEY_INFO, OF_SWITCH | OF_CA, key_info },
	{ CC_ATTR_LOG, OF_SWITCH | OF_CA, log_of_events },
	{ CC_ATTR_SWITCH_SETTING, OF_SWITCH, switch_setting },
	{ CC_ATTR_SWITCH_PORT_SETTING, OF_SWITCH, switch_port_setting },
	{ CC_ATTR_CA_SETTING, OF_CA, ca_setting },
	{ CC_ATTR_CONTROL_TABLE, OF_CA, control_table },
	{ CC_ATTR_TIMESTAMP, OF_SWITCH | OF_CA, time_stamp },
};

static uint16_t serve(struct request *r, uint16_t id)
{
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++)
		if (attributes[i].id == id &&
		    (attributes[i].of & (r->is_switch ? OF_SWITCH : OF_CA)))
			return attributes[i].serve(r);
	return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
}

/*
 * Whether the CC_Key allows the request: with the right key always; without it a Get, unless the
 * protect bit is set. A wrong key starts the lease; when it ends, so does the protection.
 */
static bool may_enter(struct request *r, uint64_t key)
{
	struct fabric_cc *cc = r->cc;
	uint64_t now = fabric_now_ns(r->f);

	if (cc->lease_ends && now >= cc->lease_ends) {
		cc->lease_ends = 0;
		cc->key.key = 0;
		cc->key.protect_bit = 0;
	}
	r->trusted = !cc->key.key || key == cc->key.key;
	if (r->trusted) {
		cc->lease_ends = 0;
		return true;
	}
	if (!r->is_set && !cc->key.protect_bit)
		return true;
	if (cc->key.violations < UINT16_MAX)
		cc->key.violations++;
	if (cc->key.lease_period && !cc->lease_ends)
		cc->lease_ends = now + cc->key.lease_period * NS_PER_S;
	return false;
}

bool fabric_cca_wants(const struct fabric_mad *mad)
{
	struct wire_mad h;

	if (wire_mad_class(mad->data) != MAD_CLASS_CC || mad->dest_qpn != IB_QPN_GSI)
		return false;
	wire_mad_decode(mad->data, &h);
	return h.method == MAD_GET || h.method == MAD_SET;
}

bool fabric_cca_respond(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad)
{
	struct fabric_port *own = fabric_own_port(at);
	struct wire_cc_mad m;
	struct request r = { .f = f,
		             .own = own,
		             .is_switch = own->node->type == FABRIC_SWITCH,
		             .log = m.data,
		             .data = m.data + CC_AT_DATA };

	wire_cc_mad_decode(mad->data, &m);
	r.is_set = m.mad.method == MAD_SET;
	r.modifier = m.mad.attribute_modifier;
	if (!own->cc)
		own->cc = calloc(1, sizeof(*own->cc));
	r.cc = own->cc;
	m.mad.method = MAD_GET_RESP;
	if (!r.cc)
		m.mad.status = MAD_STATUS_BUSY;
	else if (m.mad.base_version != MAD_BASE_VERSION || m.mad.class_version != MAD_VERSION_CC)
		m.mad.status = MAD_STATUS_BAD_VERSION;
	else if (!may_enter(&r, m.cc_key))
		return false;
	else
		m.mad.status = serve(&r, m.mad.attribute_id);
	if (!r.trusted)
		m.cc_key = 0;
	wire_cc_mad_encode(&m, mad->data);
	return true;
}
