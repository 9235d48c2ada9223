/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric as `umbel show` tells it: see fab.h.
 */
#include "must.h"
#include "fab.h"

#include <json-c/json.h>

/* ---- umbel ---- */

void fab_umbel(const char *format, ...)
{
	char command[256] = "umbel ";
	size_t n = strlen(command);
	va_list args;

	va_start(args, format);
	vsnprintf(command + n, sizeof(command) - n, format, args);
	va_end(args);
	must(!system(command), "%s: it failed", command);
}

bool fab_is_right(char *why, size_t len)
{
	FILE *f = popen(getenv("UMBEL_PROPERTY_CIRCLES")
	                        ? "umbel check --except links --except deadlock "
	                          "--except deadlock-groups"
	                        : "umbel check --except links",
	                "r");
	char line[512];

	snprintf(why, len, "umbel check says nothing");
	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, " WRONG ") && fgets(line, sizeof(line), f))
			snprintf(why, len, "umbel check: %s", line);
	return f && !pclose(f);
}

static struct json_object *show(const char *what)
{
	char command[64], part[8192];
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *o = NULL;
	FILE *f;
	size_t n;

	snprintf(command, sizeof(command), "umbel show --json %s", what);
	f = popen(command, "r");
	if (!f || !tokener)
		err(EXIT_FAILURE, "%s", command);
	while (!o && (n = fread(part, 1, sizeof(part), f)))
		o = json_tokener_parse_ex(tokener, part, (int)n);
	while (fread(part, 1, sizeof(part), f))
		;
	must(!pclose(f) && o, "%s: no answer", command);
	json_tokener_free(tokener);
	return o;
}

static struct json_object *get(struct json_object *o, const char *key)
{
	struct json_object *member;

	must(json_object_object_get_ex(o, key, &member), "umbel show: no '%s'", key);
	return member;
}

static unsigned number(struct json_object *o, const char *key)
{
	return (unsigned)json_object_get_int64(get(o, key));
}

static const char *text(struct json_object *o, const char *key)
{
	return json_object_get_string(get(o, key));
}

static size_t length(struct json_object *array)
{
	return json_object_array_length(array);
}

static struct json_object *at(struct json_object *array, size_t i)
{
	return json_object_array_get_idx(array, i);
}

/* ---- cables ---- */

static unsigned find_node(const struct fab *f, const char *name)
{
	for (unsigned i = 0; i < f->n_nodes; i++)
		if (!strcmp(f->node[i].name, name))
			return i;
	errx(EXIT_FAILURE, "umbel show: no node '%s'", name);
}

static void read_port(struct fab *f, unsigned node, struct json_object *port)
{
	const char *state = text(port, "state");
	struct fab_end *e = &f->end[f->n_ends];
	unsigned num = number(port, "port");
	struct json_object *peer;

	if (!json_object_object_get_ex(port, "peer", &peer) || !peer)
		return;
	must(f->n_ends != FAB_ENDS && num < FAB_PORTS, "umbel show: too many ports");
	*e = (struct fab_end){ .node = node,
		               .port = num,
		               .active = !strcmp(state, "active"),
		               .down = !strcmp(state, "down"),
		               .lid = (uint16_t)number(port, "lid") };
	f->node[node].end[num] = (int)f->n_ends++;
}

static void read_node(struct fab *f, struct json_object *o)
{
	struct json_object *ports = get(o, "ports");
	unsigned index = f->n_nodes++;
	struct fab_node *node = &f->node[index];

	must(index != FAB_NODES, "umbel show: too many nodes");
	snprintf(node->name, sizeof(node->name), "%s", text(o, "name"));
	node->is_switch = !strcmp(text(o, "type"), "switch");
	for (unsigned i = 0; i < FAB_PORTS; i++)
		node->end[i] = FAB_NO_END;
	for (size_t i = 0; i < length(ports); i++)
		read_port(f, index, at(ports, i));
}

static void find_peer(struct fab *f, unsigned node, struct json_object *port)
{
	int end = f->node[node].end[number(port, "port")];

	if (end != FAB_NO_END)
		f->end[end].peer =
		        f->node[find_node(f, text(port, "peer"))].end[number(port, "peer_port")];
}

void fab_read(struct fab *f)
{
	struct json_object *o = show("topology"), *nodes = get(o, "nodes");

	f->n_nodes = f->n_ends = 0;
	for (size_t i = 0; i < length(nodes); i++)
		read_node(f, at(nodes, i));
	for (unsigned i = 0; i < f->n_nodes; i++) {
		struct json_object *ports = get(at(nodes, i), "ports");

		for (size_t k = 0; k < length(ports); k++)
			find_peer(f, i, at(ports, k));
	}
	json_object_put(o);
}

/* ---- tables and counters ---- */

static void read_row(struct fab_tables *t, unsigned node, struct json_object *o)
{
	struct json_object *ports = get(o, "ports");
	struct fab_row *row = &t->row[t->n++];

	must(t->n <= FAB_ROWS, "umbel show: too many multicast entries");
	row->node = node;
	row->mlid = (uint16_t)strtoul(text(o, "mlid"), NULL, 16);
	for (size_t i = 0; i < length(ports); i++)
		row->port[json_object_get_int(at(ports, i)) % FAB_PORTS] = true;
}

static void read_switch(const struct fab *f, struct fab_tables *t, struct json_object *sw)
{
	struct json_object *lft = get(sw, "lft"), *mft = get(sw, "mft");
	unsigned node = find_node(f, text(sw, "switch"));

	for (size_t i = 0; i < length(lft); i++) {
		unsigned lid = number(at(lft, i), "lid");

		if (lid < FAB_LIDS)
			t->out[node][lid] = (uint8_t)number(at(lft, i), "port");
	}
	for (size_t i = 0; i < length(mft); i++)
		read_row(t, node, at(mft, i));
}

void fab_read_tables(const struct fab *f, struct fab_tables *t)
{
	struct json_object *switches = show("routes");

	memset(t, 0, sizeof(*t));
	for (size_t i = 0; i < length(switches); i++)
		read_switch(f, t, at(switches, i));
	json_object_put(switches);
}

void fab_read_counts(const struct fab *f, struct fab_counts *c)
{
	struct json_object *o = show("counters"), *ports = get(o, "ports");

	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < length(ports); i++) {
		struct json_object *p = at(ports, i);
		int end = f->node[find_node(f, text(p, "node"))].end[number(p, "port") % FAB_PORTS];

		if (end != FAB_NO_END)
			c->end[end] = (struct fab_count){ .xmit = number(p, "xmit_pkts"),
				                          .recv = number(p, "rcv_pkts"),
				                          .xmit_bytes = number(p, "xmit_bytes"),
				                          .recv_bytes = number(p, "rcv_bytes") };
	}
	json_object_put(o);
}

/* ---- addresses ---- */

/* In the ports of an HCA. */
static const char *find_address(struct json_object *ports, unsigned port)
{
	for (size_t i = 0; i < length(ports); i++)
		if (number(at(ports, i), "port") == port)
			return json_object_get_string(at(get(at(ports, i), "addresses"), 0));
	return NULL;
}

char *fab_read_address(const char *hca, unsigned port)
{
	struct json_object *hosts = show("hosts");
	const char *address = NULL;
	char *copy = NULL;

	for (size_t i = 0; i < length(hosts); i++) {
		struct json_object *hcas = get(at(hosts, i), "hcas");

		for (size_t k = 0; k < length(hcas); k++)
			if (!strcmp(text(at(hcas, k), "name"), hca))
				address = find_address(get(at(hcas, k), "ports"), port);
	}
	if (address)
		copy = strdup(address);
	must(copy, "umbel show: port %u of %s has no address", port, hca);
	json_object_put(hosts);
	return copy;
}

/* ---- the path of a packet ---- */

struct walk {
	const struct fab *f;
	const struct fab_tables *t;
	uint16_t mlid;
	bool seen[FAB_NODES];
	struct fab_trip *trip;
};

static const struct fab_row *find_row(const struct walk *w, unsigned node)
{
	for (unsigned i = 0; i < w->t->n; i++)
		if (w->t->row[i].node == node && w->t->row[i].mlid == w->mlid)
			return &w->t->row[i];
	return NULL;
}

/* Out by one end of a cable. The end where it arrives, or FAB_NO_END. */
static int cross(struct walk *w, int out)
{
	const struct fab_end *e = &w->f->end[out];

	if (!e->active || !w->f->end[e->peer].active)
		return FAB_NO_END;
	w->trip->xmit[out]++;
	w->trip->recv[e->peer]++;
	return e->peer;
}

/* A packet has come into a switch by the end @in. */
static void follow(struct walk *w, int in)
{
	unsigned node = w->f->end[in].node;
	const struct fab_row *row = find_row(w, node);

	if (w->seen[node]) {
		w->trip->looped = true;
		return;
	}
	w->seen[node] = true;
	for (unsigned k = 1; row && k < FAB_PORTS; k++) {
		int out = w->f->node[node].end[k], to;

		if (!row->port[k] || out == FAB_NO_END || out == in)
			continue;
		to = cross(w, out);
		if (to == FAB_NO_END)
			continue;
		if (w->f->node[w->f->end[to].node].is_switch)
			follow(w, to);
		else
			w->trip->copies[to]++;
	}
}

void fab_walk(const struct fab *f, const struct fab_tables *t, int from, uint16_t mlid,
              struct fab_trip *trip)
{
	struct walk w = { .f = f, .t = t, .mlid = mlid, .trip = trip };
	const struct fab_row *row;
	int to;

	memset(trip, 0, sizeof(*trip));
	to = cross(&w, from);
	if (to == FAB_NO_END)
		return;
	if (!f->node[f->end[to].node].is_switch) {
		trip->copies[to]++;
		return;
	}
	/* a switch sends nothing back; the HCA hands the port its own copy, if the table has it */
	row = find_row(&w, f->end[to].node);
	if (row && row->port[f->end[to].port])
		trip->copies[from]++;
	follow(&w, to);
}

int fab_walk_unicast(const struct fab *f, const struct fab_tables *t, int from, uint16_t lid)
{
	struct fab_trip trip = { 0 };
	struct walk w = { .f = f, .t = t, .trip = &trip };
	int at = lid == f->end[from].lid ? from : cross(&w, from);

	while (at != FAB_NO_END && f->node[f->end[at].node].is_switch) {
		unsigned node = f->end[at].node;
		uint8_t out = lid < FAB_LIDS ? t->out[node][lid] : 0;

		if (!out || w.seen[node] || f->node[node].end[out] == FAB_NO_END)
			return FAB_NO_END;
		w.seen[node] = true;
		at = cross(&w, f->node[node].end[out]);
	}
	return at != FAB_NO_END && f->end[at].lid == lid ? at : FAB_NO_END;
}

void fab_find_islands(const struct fab *f, unsigned island[FAB_ENDS])
{
	bool changed = true;

	for (unsigned i = 0; i < f->n_ends; i++)
		island[i] = i;
	while (changed) {
		changed = false;
		for (unsigned i = 0; i < f->n_ends; i++)
			for (unsigned k = 0; k < f->n_ends; k++) {
				bool cable = f->end[i].peer == (int)k && !f->end[i].down;
				bool inside = f->end[i].node == f->end[k].node &&
				              f->node[f->end[i].node].is_switch;

				if ((cable || inside) && island[k] < island[i]) {
					island[i] = island[k];
					changed = true;
				}
			}
	}
}
