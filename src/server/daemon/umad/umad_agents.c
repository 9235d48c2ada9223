/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The agent that gets a MAD: see umad_agents.h.
 */
#include "base/util.h"
#include "daemon/umad/umad_agents.h"

#define OUI_AT 37

/* Agents of one class and port have no request in common: there are no more than methods. */
struct class_key {
	uint32_t port; /* its index */
	uint32_t oui;  /* 0 unless it is part of the class */
	uint8_t mgmt_class, version;
	uint8_t zero[6];
};
static_assert(sizeof(struct class_key) == 16, "it is hashed as bytes");

bool umad_agents_is_oui_class(uint8_t c)
{
	return c >= MAD_CLASS_VENDOR2_FIRST && c <= MAD_CLASS_VENDOR2_LAST;
}

static uint64_t class_hash(const struct fabric_port *at, uint8_t c, uint8_t version, uint32_t oui)
{
	const struct class_key key = { .port = at->index,
		                       .oui = umad_agents_is_oui_class(c) ? oui : 0,
		                       .mgmt_class = c,
		                       .version = version };

	return base_hash_of(&key, sizeof(key), 0);
}

static uint64_t tid_hash(uint32_t high)
{
	return base_hash_of(&high, sizeof(high), 0);
}

static bool is_same_class(const struct umad_agent *a, const struct fabric_port *at, uint8_t c,
                          uint8_t version, uint32_t oui)
{
	return a->port->at == at && a->as.mgmt_class == c && a->as.mgmt_class_version == version &&
	       (!umad_agents_is_oui_class(c) || a->as.oui == oui);
}

static bool gets_requests(const struct control_umad_register *as)
{
	return as->mgmt_class && (as->method_mask[0] || as->method_mask[1]);
}

int umad_agents_add(struct umad_agents *all, struct umad_agent *agent)
{
	const struct control_umad_register *as = &agent->as;
	int ret = base_hash_add(&all->by_tid, &agent->by_tid, tid_hash(agent->tid_high));

	if (!ret && gets_requests(as)) {
		ret = base_hash_add(&all->by_class, &agent->by_class,
		                    class_hash(agent->port->at, as->mgmt_class,
		                               as->mgmt_class_version, as->oui));
		if (ret)
			base_hash_remove(&all->by_tid, &agent->by_tid);
	}
	agent->is_found = !ret;
	return ret;
}

void umad_agents_remove(struct umad_agents *all, struct umad_agent *agent)
{
	if (!agent->is_found)
		return;
	agent->is_found = false;
	base_hash_remove(&all->by_tid, &agent->by_tid);
	if (gets_requests(&agent->as))
		base_hash_remove(&all->by_class, &agent->by_class);
}

struct umad_agent *umad_agents_of_response(struct umad_agents *all, const struct fabric_port *at,
                                           const struct wire_mad *head)
{
	struct umad_agent *a;
	uint32_t high = (uint32_t)(head->transaction_id >> 32);

	BASE_HASH_FOREACH(a, &all->by_tid, tid_hash(high), by_tid) {
		all->looked_at++;
		if (a->tid_high == high && a->port->at == at)
			return a;
	}
	return NULL;
}

struct umad_agent *umad_agents_of_request(struct umad_agents *all, const struct fabric_port *at,
                                          const struct wire_mad *head,
                                          const uint8_t data[static MAD_BYTES])
{
	struct umad_agent *a;
	const uint8_t c = head->mgmt_class, version = head->class_version;
	const unsigned method = head->method & ~MAD_METHOD_RESPONSE;
	const uint32_t oui =
	        (uint32_t)data[OUI_AT] << 16 | (uint32_t)data[OUI_AT + 1] << 8 | data[OUI_AT + 2];
	uint64_t hash = class_hash(at, c, version, oui);

	BASE_HASH_FOREACH(a, &all->by_class, hash, by_class) {
		all->looked_at++;
		if (is_same_class(a, at, c, version, oui) &&
		    (a->as.method_mask[method / 64] >> (method % 64) & 1))
			return a;
	}
	return NULL;
}

struct umad_agent *umad_agents_conflicting(struct umad_agents *all, const struct fabric_port *at,
                                           const struct control_umad_register *as)
{
	struct umad_agent *a;
	const uint8_t c = as->mgmt_class, version = as->mgmt_class_version;
	uint64_t hash = class_hash(at, c, version, as->oui);

	if (!c)
		return NULL;
	BASE_HASH_FOREACH(a, &all->by_class, hash, by_class) {
		all->looked_at++;
		if (is_same_class(a, at, c, version, as->oui) &&
		    ((a->as.method_mask[0] & as->method_mask[0]) ||
		     (a->as.method_mask[1] & as->method_mask[1])))
			return a;
	}
	return NULL;
}
