/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The view "status": how much of everything there is, the ports' states, the subnet manager,
 * the settings.
 */
#include <unistd.h>

#include "cm/cm.h"
#include "daemon/show/views.h"

/* The embedded subnet manager, and the one that the ports know. On Ethernet there is none. */
static void add_sm(const struct daemon_show *s, struct show_json *o)
{
	static const char *const states[] = { "not active", "discovering", "standby", "master" };
	const struct fabric_port *home = sm_role_home(s->subnet->mad.role);

	show_open(o, "sm", '{');
	show_add_string(o, "state", states[sm_role_state(s->subnet->mad.role)]);
	show_add_text(o, "port", "%s:%u", home->node->name, home->num);
	show_add_u64(o, "master_lid", home->sm_lid);
	if (daemon_subnet_is_sweeping(s->subnet))
		show_add_true(o, "sweeping");
	if (s->subnet->sm)
		show_add_string(o, "routing", fabric_routing_name(sm_routing(s->subnet->sm)));
	show_close(o, '}');
}

/* How many ports with a cable are in which state, those of switches included. */
static void add_port_states(const struct daemon_show *s, struct show_json *o)
{
	uint64_t n[IB_PORT_ACTIVE + 1] = { 0 };

	for (unsigned i = 0; i < s->f->n_nodes; i++)
		for (unsigned k = 1; k <= s->f->node[i]->n_ports; k++) {
			const struct fabric_port *p = &s->f->node[i]->port[k];

			if (p->peer && p->state <= IB_PORT_ACTIVE)
				n[p->state]++;
		}
	show_open(o, "ports", '{');
	for (unsigned state = IB_PORT_DOWN; state <= IB_PORT_ACTIVE; state++)
		show_add_u64(o, show_state_name(state), n[state]);
	show_close(o, '}');
}

static void add_rdmacm(const struct daemon_show *s, struct show_json *o)
{
	struct cm_counts counts;

	cm_count(s->clients->cm, &counts);
	show_add_u64(o, "listeners", counts.listeners);
	show_add_u64(o, "connections", counts.connections);
}

static void add_settings(const struct daemon_show *s, struct show_json *o)
{
	const char *key;
	uint32_t value;

	show_open(o, "settings", '{');
	for (unsigned i = 0; fabric_settings_get(&s->f->settings, i, &key, &value); i++) {
		const char *name = fabric_settings_name(&s->f->settings, i);

		if (name)
			show_add_string(o, key, name);
		else
			show_add_u64(o, key, value);
	}
	show_close(o, '}');
}

bool daemon_show_status(const struct daemon_show *s, struct show_at *at, struct show_json *o)
{
	const struct daemon_objects *objects = s->objects;
	const struct sa *sa = s->subnet->mad.sa;

	if (at->part)
		return false;
	show_open(o, NULL, '{');
	show_add_string(o, "name", s->name);
	show_add_u64(o, "pid", (uint64_t)getpid());
	show_add_u64(o, "up_since", s->up_since);
	show_add_u64(o, "hosts", s->f->n_hosts);
	show_add_u64(o, "switches", s->f->n_switches);
	show_add_u64(o, "clients", daemon_clients_count_verbs(s->clients));
	show_add_u64(o, "qps", daemon_qps_count(&objects->qps));
	show_add_u64(o, "cqs", objects->cqs.ids.used);
	show_add_u64(o, "channels", objects->channels.ids.used);
	show_add_u64(o, "flows", s->f->flows->ids.used);
	show_add_u64(o, "groups", sa ? sa->groups.n : 0);
	add_rdmacm(s, o);
	show_add_u64(o, "ring_bytes", daemon_memory_in_use(&objects->memory, true));
	show_add_u64(o, "payload_bytes", daemon_memory_in_use(&objects->memory, false));
	add_port_states(s, o);
	if (s->subnet->mad.role)
		add_sm(s, o);
	add_settings(s, o);
	show_close(o, '}');
	return true;
}
