/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes a plan from the lines of a topology file: see topology_file.h. Nodes are found by their
 * identifiers, named, and linked. The lines of both ends of a link must agree.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fabric/plan/topology_file.h"
#include "fabric/plan/topology_scan.h"

/* Hosts that may get more HCAs: by the first word of their descriptions. */
struct host_word {
	struct base_hash_node node;
	struct topology_word word;
	unsigned host;     /* the last one of that name */
	unsigned last_hca; /* its last HCA: node number; linked by next_hca */
};

struct reader {
	struct topology_scan scan;
	struct fabric_plan *plan;
	struct base_hash by_id; /* struct topology_node */
	struct base_hash words; /* struct host_word */
};

static uint64_t word_hash(struct topology_word w)
{
	return base_hash_of(w.at, w.len, 0);
}

static bool same_word(struct topology_word a, struct topology_word b)
{
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

/* ---- identifiers ---- */

static struct topology_node *find_node(const struct reader *r, struct topology_word id)
{
	struct topology_node *n;

	BASE_HASH_FOREACH(n, &r->by_id, word_hash(id), by_id)
		if (same_word(n->id, id))
			return n;
	return NULL;
}

static int index_nodes(struct reader *r)
{
	for (unsigned i = 0; i < r->scan.n_nodes; i++) {
		struct topology_node *n = &r->scan.node[i], *other = find_node(r, n->id);

		if (other)
			return topology_complain(&r->scan, n->line,
			                         "expected a new node, found '%.*s' of line %u",
			                         TOPOLOGY_WORD_ARG(n->id), other->line);
		if (base_hash_add(&r->by_id, &n->by_id, word_hash(n->id)))
			return -ENOMEM;
	}
	return 0;
}

/* The GUID in an identifier such as "S-0002c90200000000"; 0: it has none. */
static uint64_t guid_in(struct topology_word id)
{
	char digits[17], *end;
	uint64_t guid;

	if (id.len != 18 || !strchr("SHR", id.at[0]) || id.at[1] != '-')
		return 0;
	memcpy(digits, id.at + 2, 16);
	digits[16] = '\0';
	if (strspn(digits, "0123456789abcdefABCDEF") != 16)
		return 0;
	guid = strtoull(digits, &end, 16);
	return guid;
}

/* ---- names ---- */

/* The text that names a node: its description, else its identifier unless that is a GUID. */
static struct topology_word title_of(const struct topology_node *n)
{
	const struct topology_word none = { 0 };

	if (n->desc.len)
		return n->desc;
	return guid_in(n->id) ? none : n->id;
}

/* Removes the first word from @text and returns it. */
static struct topology_word next_word(struct topology_word *text)
{
	struct topology_word w;

	while (text->len && (*text->at == ' ' || *text->at == '\t')) {
		text->at++;
		text->len--;
	}
	w = (struct topology_word){ text->at, 0 };
	while (w.len < text->len && w.at[w.len] != ' ' && w.at[w.len] != '\t')
		w.len++;
	text->at += w.len;
	text->len -= w.len;
	return w;
}

static bool is_two_words(struct topology_word text, struct topology_word *first,
                         struct topology_word *second)
{
	*first = next_word(&text);
	*second = next_word(&text);
	return second->len && !next_word(&text).len;
}

/*
 * Copies the device's name to @device if the title is "node1 mlx5_0", as Linux describes an HCA. A
 * name of ours is left out: we name HCAs so that do not say how.
 */
static void find_device(struct topology_word title, char device[static FABRIC_NAME])
{
	struct topology_word host, w;
	bool has_digit = false;

	if (!is_two_words(title, &host, &w) || w.len >= FABRIC_DEVICE ||
	    !islower((unsigned char)*w.at) || (w.len > 6 && !memcmp(w.at, "umbel_", 6)))
		return;
	for (size_t i = 0; i < w.len; i++) {
		if (!islower((unsigned char)w.at[i]) && !isdigit((unsigned char)w.at[i]) &&
		    w.at[i] != '_')
			return;
		has_digit |= isdigit((unsigned char)w.at[i]) != 0;
	}
	if (has_digit)
		snprintf(device, FABRIC_NAME, "%.*s", (int)w.len, w.at);
}

/* The start of a name in the file, as a string; NULL: there is none. */
static const char *name_of(struct topology_word title, char name[static FABRIC_DESC])
{
	struct topology_word w = next_word(&title);
	size_t len = w.len < FABRIC_DESC - 1 ? w.len : FABRIC_DESC - 1;

	if (!len)
		return NULL;
	memcpy(name, w.at, len);
	name[len] = '\0';
	for (size_t i = 0; i < len; i++)
		if (!name[i])
			name[i] = '?';
	return name;
}

/* ---- hosts ---- */

static struct host_word *find_word(const struct reader *r, struct topology_word w)
{
	struct host_word *e;

	BASE_HASH_FOREACH(e, &r->words, word_hash(w), node)
		if (same_word(e->word, w))
			return e;
	return NULL;
}

/* Whether the host has an HCA with that second word already: then the new one is another host's. */
static bool has_such_hca(const struct reader *r, const struct host_word *e,
                         struct topology_word want)
{
	unsigned i = e->last_hca;

	for (;;) {
		const struct topology_node *n = &r->scan.node[i];
		struct topology_word first, second;

		if (is_two_words(title_of(n), &first, &second) && same_word(second, want))
			return true;
		if (!n->next_hca)
			return false;
		i = n->next_hca - 1;
	}
}

static int new_host(struct reader *r, struct topology_word title)
{
	char name[FABRIC_DESC];

	return fabric_plan_add_host(r->plan, name_of(title, name));
}

/* The number of the host that the HCA at @i belongs to, or -errno. */
static int host_of(struct reader *r, unsigned i)
{
	struct topology_node *n = &r->scan.node[i];
	struct topology_word title = title_of(n), first, second;
	struct host_word *e;
	int host;

	if (!is_two_words(title, &first, &second))
		return new_host(r, title);
	e = find_word(r, first);
	if (e && !has_such_hca(r, e, second)) {
		n->next_hca = e->last_hca + 1;
		e->last_hca = i;
		return (int)e->host;
	}
	host = new_host(r, title);
	if (host < 0)
		return host;
	if (!e) {
		e = calloc(1, sizeof(*e));
		if (!e)
			return -ENOMEM;
		e->word = first;
		if (base_hash_add(&r->words, &e->node, word_hash(first))) {
			free(e);
			return -ENOMEM;
		}
	}
	e->host = (unsigned)host;
	e->last_hca = i;
	return host;
}

/* ---- nodes ---- */

static int add_node(struct reader *r, unsigned i)
{
	const struct topology_node *n = &r->scan.node[i];
	char name[FABRIC_DESC];
	int host;

	if (n->type == FABRIC_SWITCH)
		return fabric_plan_add_switch(r->plan, name_of(title_of(n), name), n->n_ports);
	host = host_of(r, i);
	return host < 0 ? host : fabric_plan_add_hca(r->plan, (unsigned)host, n->n_ports);
}

static void copy_word(struct topology_word w, char word[static FABRIC_WORD])
{
	snprintf(word, FABRIC_WORD, "%.*s", (int)w.len, w.at ? w.at : "");
}

/* Copies what the file says about a node, with the GUIDs of its ports. */
static void describe(const struct reader *r, const struct topology_node *n,
                     struct fabric_plan_node *node)
{
	struct topology_word title = title_of(n);

	if (title.len) {
		snprintf(node->desc, sizeof(node->desc), "%.*s", (int)title.len, title.at);
		for (char *p = node->desc; *p; p++)
			if ((unsigned char)*p < ' ' || *p == 0x7F)
				*p = '?';
	}
	node->guid = n->guid ? n->guid : guid_in(n->id);
	node->system_guid = n->system_guid;
	node->vendor_id = n->vendor_id;
	node->device_id = n->device_id;
	node->enhanced_port0 = n->enhanced_port0;
	node->is_router = n->is_router;
	if (n->type == FABRIC_SWITCH) {
		node->port[0].guid = n->port_guid ? n->port_guid : node->guid;
		return;
	}
	find_device(title, node->device);
	copy_word(n->type_name, node->type_name);
	copy_word(n->fw_ver, node->fw_ver);
	copy_word(n->board_id, node->board_id);
	for (unsigned i = 0; i < n->n_ends; i++) {
		const struct topology_end *e = &r->scan.end[n->first_end + i];

		node->port[e->port].guid = e->guid;
	}
}

static int add_nodes(struct reader *r)
{
	for (unsigned i = 0; i < r->scan.n_nodes; i++) {
		const struct topology_node *n = &r->scan.node[i];
		int ret = add_node(r, i);

		if (ret == -ERANGE)
			return topology_complain(&r->scan, n->line,
			                         "more than %u hosts, %u ports of a host, or %u "
			                         "HCA ports and switches",
			                         FABRIC_MAX_HOSTS, FABRIC_MAX_HOST_PORTS,
			                         FABRIC_MAX_LIDS);
		if (ret < 0)
			return ret;
		describe(r, n, &r->plan->node[i]);
	}
	return 0;
}

/* ---- links ---- */

/* The line of @n about its port @port, or NULL. */
static const struct topology_end *end_of(const struct reader *r, const struct topology_node *n,
                                         uint8_t port)
{
	for (unsigned i = 0; i < n->n_ends; i++)
		if (r->scan.end[n->first_end + i].port == port)
			return &r->scan.end[n->first_end + i];
	return NULL;
}

/* The slower of the rates of both ends; a width or speed of 0: that end does not say. */
static struct fabric_link_rate common_rate(struct fabric_link_rate a, struct fabric_link_rate b)
{
	struct fabric_link_rate rate = FABRIC_RATE_DEFAULT;
	static const uint8_t order[] = { FABRIC_WIDTH_1X, FABRIC_WIDTH_2X, FABRIC_WIDTH_4X,
		                         FABRIC_WIDTH_8X, FABRIC_WIDTH_12X };

	if (a.speed || b.speed)
		rate.speed = !b.speed || (a.speed && a.speed < b.speed) ? a.speed : b.speed;
	for (size_t i = ARRAY_SIZE(order); i-- > 0;)
		if (a.width == order[i] || b.width == order[i])
			rate.width = order[i];
	return rate;
}

/* Notes the GUID of an HCA's port; the line of either end may have it. */
static int note_guid(struct reader *r, const struct topology_end *e, struct fabric_plan_end at,
                     uint64_t guid)
{
	struct fabric_plan_node *node = &r->plan->node[at.node];
	uint64_t *known = &node->port[at.port].guid;

	if (!guid || node->type == FABRIC_SWITCH)
		return 0;
	if (*known && *known != guid)
		return topology_complain(&r->scan, e->line,
		                         "expected the other port's GUID, 0x%llx, found 0x%llx",
		                         (unsigned long long)*known, (unsigned long long)guid);
	*known = guid;
	return 0;
}

/* Whether the line of the other end, if there is one, agrees. */
static int check_other_end(struct reader *r, const struct topology_node *n,
                           const struct topology_end *e, const struct topology_end *back)
{
	if (!back || (back->remote_port == e->port && same_word(back->remote, n->id)))
		return 0;
	return topology_complain(&r->scan, e->line,
	                         "expected the other end of line %u's link, \"%.*s\"[%u], found "
	                         "\"%.*s\"[%u]",
	                         back->line, TOPOLOGY_WORD_ARG(back->remote), back->remote_port,
	                         TOPOLOGY_WORD_ARG(n->id), e->port);
}

static int add_link(struct reader *r, unsigned i, const struct topology_end *e)
{
	const struct topology_node *n = &r->scan.node[i], *other = find_node(r, e->remote);
	struct fabric_plan_end here = { i, e->port }, there;
	const struct topology_end *back;
	int ret;

	if (!other)
		return topology_complain(&r->scan, e->line,
		                         "expected a node of this file, found \"%.*s\"",
		                         TOPOLOGY_WORD_ARG(e->remote));
	if (e->remote_port > other->n_ports)
		return topology_complain(
		        &r->scan, e->line, "expected a port of \"%.*s\", from 1 to %u, found %u",
		        TOPOLOGY_WORD_ARG(other->id), other->n_ports, e->remote_port);
	there = (struct fabric_plan_end){ (unsigned)(other - r->scan.node), e->remote_port };
	back = end_of(r, other, e->remote_port);
	ret = check_other_end(r, n, e, back);
	if (!ret)
		ret = note_guid(r, e, there, e->remote_guid);
	if (ret || (back && back < e)) /* it was linked by the other end's line */
		return ret;
	ret = fabric_plan_link(r->plan, here, there,
	                       common_rate(e->rate, back ? back->rate : e->rate));
	if (!ret)
		return 0;
	return topology_complain(&r->scan, e->line,
	                         "expected a port that is free, found \"%.*s\"[%u]",
	                         TOPOLOGY_WORD_ARG(other->id), e->remote_port);
}

static int add_links(struct reader *r)
{
	int ret = 0;

	for (unsigned i = 0; i < r->scan.n_nodes && !ret; i++) {
		const struct topology_node *n = &r->scan.node[i];

		for (unsigned k = 0; k < n->n_ends && !ret; k++)
			ret = add_link(r, i, &r->scan.end[n->first_end + k]);
	}
	return ret;
}

/* ---- the whole file ---- */

static int finish(struct reader *r)
{
	char why[256];
	int node, ret = fabric_plan_finish(r->plan, &node, why, sizeof(why));

	if (ret == -EINVAL)
		topology_complain(&r->scan, node < 0 ? r->scan.line : r->scan.node[node].line, "%s",
		                  why);
	return ret;
}

int fabric_topology_parse(struct fabric_plan *plan, const struct fabric_topology_file *file,
                          char *why, size_t len)
{
	struct reader r = { .scan = { .file = file, .why = why, .why_len = len }, .plan = plan };
	int ret = topology_scan(&r.scan);

	if (!ret)
		ret = index_nodes(&r);
	if (!ret)
		ret = add_nodes(&r);
	if (!ret)
		ret = add_links(&r);
	if (!ret)
		ret = finish(&r);
	base_hash_free(&r.words, offsetof(struct host_word, node));
	base_hash_fini(&r.by_id);
	topology_scan_fini(&r.scan);
	return ret;
}
