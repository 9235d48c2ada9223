/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The subnet that files of infiniband-diags describe: nodes and links as ibnetdiscover printed
 * them, tables as dump_lfts and dump_mfts (dump_fts) did: see subnet.h. A LID is that of the port
 * whose GUID stands behind it. The tables are large, so they are read line by line.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/check/subnet.h"
#include "fabric/plan/shape.h"
#include "wire/rate.h"

#define MAX_LID   0xBFFF
#define MFT_PORTS 12 /* column of port 0 in dump_mfts; two for each port */

/* ---- topology ---- */

/* The links of node number @i, whose switches and hosts have these indices. */
static void link_node(struct cli_subnet *s, unsigned i, const uint32_t *index)
{
	const struct fabric_plan_node *node = &s->plan->node[i];

	for (unsigned k = 1; k <= node->n_ports; k++) {
		const struct fabric_plan_port *p = &node->port[k];
		unsigned rate = wire_link_speed(p->rate.width, p->rate.speed);
		const struct fabric_plan_node *peer;

		if (p->peer_node == FABRIC_UNLINKED)
			continue;
		peer = &s->plan->node[p->peer_node];
		if (node->type == FABRIC_SWITCH) {
			s->net.sw[index[i]].port[k].rate = rate;
			if (peer->type == FABRIC_SWITCH)
				check_link(&s->net, index[i], k, index[p->peer_node], p->peer_port);
			continue;
		}
		s->net.host[index[i] + k - 1].rate = rate;
		if (peer->type == FABRIC_SWITCH)
			check_link_host(&s->net, index[p->peer_node], p->peer_port,
			                index[i] + k - 1);
	}
}

static int add_switch(struct cli_subnet *s, const struct fabric_plan_node *node, uint32_t i)
{
	const struct cli_subnet_end end = { true, i };

	s->net.sw[i].name = node->name;
	s->net.sw[i].lft = malloc(MAX_LID + 1);
	if (!s->net.sw[i].lft || check_set_ports(&s->net.sw[i], node->n_ports))
		return cli_no_memory();
	memset(s->net.sw[i].lft, CHECK_NO_ROUTE, MAX_LID + 1);
	s->net.sw[i].n_lids = MAX_LID + 1;
	if (node->port[0].guid != node->guid && cli_subnet_add_guid(s, node->port[0].guid, end))
		return CLI_FAILED;
	return cli_subnet_add_guid(s, node->guid, end);
}

static int add_hca(struct cli_subnet *s, const struct fabric_plan_node *node, uint32_t i)
{
	for (unsigned k = 1; k <= node->n_ports; k++) {
		struct check_host *h = &s->net.host[i + k - 1];
		const struct cli_subnet_end end = { false, i + k - 1 };

		h->name = node->n_ports > 1 ? cli_subnet_port_name(s, node->name, k) : node->name;
		if (!h->name || cli_subnet_add_guid(s, node->port[k].guid, end))
			return CLI_FAILED;
	}
	return 0;
}

static int add_nodes(struct cli_subnet *s)
{
	const struct fabric_plan *plan = s->plan;
	uint32_t *index = calloc(plan->n_nodes + (size_t)1, sizeof(*index)), sw = 0, host = 0;
	int ret = index ? 0 : cli_no_memory();

	if (!ret && check_net_init(&s->net, plan->n_switches, plan->n_hca_ports))
		ret = cli_no_memory();
	for (unsigned i = 0; i < plan->n_nodes && !ret; i++) {
		const struct fabric_plan_node *node = &plan->node[i];

		if (node->type == FABRIC_SWITCH) {
			index[i] = sw;
			ret = add_switch(s, node, sw++);
			continue;
		}
		index[i] = host;
		ret = add_hca(s, node, host);
		host += node->n_ports;
	}
	for (unsigned i = 0; i < plan->n_nodes && !ret; i++)
		link_node(s, i, index);
	free(index);
	return ret;
}

static int read_plan(struct cli_subnet *s, struct cli_file *file)
{
	struct fabric_shape shape = { .topology = file->name };
	char why[512] = "", notes[512] = "";
	int ret;

	s->plan = calloc(1, sizeof(*s->plan));
	if (!s->plan)
		return cli_no_memory();
	fabric_plan_init(s->plan);
	if (cli_file_read(file))
		return CLI_FAILED;
	shape.text = file->text;
	shape.text_bytes = file->bytes;
	shape.notes = notes;
	shape.notes_len = sizeof(notes);
	ret = fabric_shape_plan(&shape, s->plan, why, sizeof(why));
	for (char *line = strtok(notes, "\n"); line; line = strtok(NULL, "\n"))
		base_log("%s", line);
	if (!ret)
		return add_nodes(s);
	base_log("%s", *why ? why : strerror(-ret));
	return CLI_FAILED;
}

/* ---- tables ---- */

struct dump {
	struct cli_subnet *s;
	const char *name;
	unsigned line;
	uint32_t sw; /* whose table this is; CHECK_NONE: none has begun */
	unsigned n_tables;
	const char *head; /* how a line begins that begins a table; others are for take() */
	int (*take)(struct dump *d, const char *line);
};

static int complain(const struct dump *d, const char *what)
{
	base_log("%s:%u: %s", d->name, d->line, what);
	return CLI_FAILED;
}

/* "Unicast lids [0x0-0x2c] of switch ... guid 0x0002c90000000010 (leaf1):" */
static int take_switch(struct dump *d, const char *line)
{
	const char *guid = strstr(line, " guid 0x");
	const struct cli_subnet_end *end =
	        guid ? cli_subnet_by_guid(d->s, strtoull(guid + 6, NULL, 16)) : NULL;
	int last;

	if (!end || !end->is_switch)
		return complain(d, "the topology has no switch with that GUID");
	d->sw = end->index;
	d->n_tables++;
	/* ibroute prints up to LinearFDBTop */
	if (sscanf(line, "Unicast lids [%*i-%i]", &last) == 1 && last >= 0 && last <= MAX_LID)
		d->s->net.sw[d->sw].n_relayed = (unsigned)last + 1;
	return 0;
}

/* The port with this GUID has the LID, too. */
static int take_lid(struct dump *d, unsigned lid, uint64_t guid)
{
	const struct cli_subnet_end *end = cli_subnet_by_guid(d->s, guid);
	struct check_host *h;

	if (!end)
		return complain(d, "the topology has no port with that GUID");
	if (end->is_switch) {
		d->s->net.sw[end->index].lid = (uint16_t)lid;
		return 0;
	}
	h = &d->s->net.host[end->index];
	if (!h->lid) {
		h->lid = (uint16_t)lid;
		h->n_lids = 1;
	} else if (lid < h->lid) {
		h->n_lids = (uint16_t)(h->n_lids + h->lid - lid);
		h->lid = (uint16_t)lid;
	} else if (lid >= h->lid + h->n_lids) {
		h->n_lids = (uint16_t)(lid - h->lid + 1);
	}
	return 0;
}

/* "0x0001 003 : (Channel Adapter portguid 0x0002c90000000021: 'node1 HCA-1')" */
static int take_route(struct dump *d, const char *line)
{
	const char *guid = strstr(line, "portguid 0x");
	unsigned lid, port;

	if (strncmp(line, "0x", 2) != 0 || sscanf(line, "%x %u :", &lid, &port) != 2)
		return 0;
	if (d->sw == CHECK_NONE || !lid || lid > MAX_LID || port > CHECK_NO_ROUTE)
		return complain(d, "expected the table of a switch");
	d->s->net.sw[d->sw].lft[lid] = (uint8_t)port;
	return guid ? take_lid(d, lid, strtoull(guid + 9, NULL, 16)) : 0;
}

/* "0xc000      x   x     x" */
static int take_row(struct dump *d, const char *line)
{
	uint64_t ports[CHECK_BLOCKS] = { 0 };
	size_t len = strlen(line);
	unsigned mlid;

	if (strncmp(line, "0x", 2) != 0 || sscanf(line, "%x", &mlid) != 1)
		return 0;
	if (d->sw == CHECK_NONE || mlid < CHECK_MLID || mlid >= CHECK_MLID + CHECK_MLIDS)
		return complain(d, "expected the multicast table of a switch");
	for (size_t i = MFT_PORTS; i < len; i++) {
		size_t port = (i - MFT_PORTS) / 2;

		if (isspace((unsigned char)line[i]))
			continue;
		if (line[i] != 'x' || i % 2 || port >= 64 * CHECK_BLOCKS)
			return complain(d, "expected an x below the number of a port");
		ports[port / 64] |= 1ull << port % 64;
	}
	return check_add_row(&d->s->net, (uint16_t)mlid, d->sw, ports) ? cli_no_memory() : 0;
}

/* Gives @take each line of the file, without its end, until that fails: its result, or CLI_FAILED.
 */
static int for_each_line(const char *name, int (*take)(void *arg, const char *line), void *arg)
{
	FILE *from = fopen(name, "re");
	char *line = NULL;
	size_t room = 0;
	int ret = 0;

	if (!from)
		return cli_cannot("read", name);
	while (!ret && getline(&line, &room, from) >= 0) {
		line[strcspn(line, "\r\n")] = '\0';
		ret = take(arg, line);
	}
	free(line);
	fclose(from);
	return ret;
}

static int take_line(void *arg, const char *line)
{
	struct dump *d = arg;

	d->line++;
	return strncmp(line, d->head, strlen(d->head)) ? d->take(d, line) : take_switch(d, line);
}

static int read_dump(struct cli_subnet *s, const char *name, const char *head,
                     int (*take)(struct dump *d, const char *line))
{
	struct dump d = { .s = s, .name = name, .sw = CHECK_NONE, .head = head, .take = take };
	int ret = for_each_line(name, take_line, &d);

	if (!ret && !d.n_tables) {
		base_log("%s: no line begins with '%s'", name, head);
		return CLI_FAILED;
	}
	return ret;
}

int cli_subnet_read_files(struct cli_subnet *s, struct cli_subnet_files *files)
{
	int ret;

	*s = (struct cli_subnet){ 0 };
	ret = read_plan(s, &files->topology);
	if (!ret)
		ret = read_dump(s, files->lfts, "Unicast lids [", take_route);
	if (!ret && files->mfts)
		ret = read_dump(s, files->mfts, "Multicast mlids [", take_row);
	return ret;
}

/* ---- service levels ---- */

struct paths {
	struct cli_subnet *s;
	uint32_t *host; /* by LID, from 1; 0: none */
	unsigned slid, dlid;
};

/* "\t\tsl......................0x1": the last line of a path that matters. */
static int take_field(void *arg, const char *line)
{
	struct paths *p = arg;
	const char *value = strstr(line, "..");
	unsigned long v;

	line += strspn(line, "\t ");
	if (!value)
		return 0;
	v = strtoul(value + strspn(value, "."), NULL, 0);
	if (!strncmp(line, "slid.", 5))
		p->slid = (unsigned)v;
	else if (!strncmp(line, "dlid.", 5))
		p->dlid = (unsigned)v;
	else if (!strncmp(line, "sl.", 3) && p->slid && p->slid <= MAX_LID && p->host[p->slid] &&
	         check_set_level(&p->s->net.host[p->host[p->slid] - 1], p->dlid,
	                         (uint8_t)(v % CHECK_SLS)))
		return cli_no_memory();
	return 0;
}

int cli_subnet_read_paths(struct cli_subnet *s, const char *name)
{
	struct paths p = { .s = s, .host = calloc(MAX_LID + 1, sizeof(*p.host)) };
	int ret;

	if (!p.host)
		return cli_no_memory();
	for (uint32_t i = 0; i < s->net.n_hosts; i++)
		for (unsigned k = 0; s->net.host[i].lid && k < s->net.host[i].n_lids; k++)
			if (s->net.host[i].lid + k <= MAX_LID)
				p.host[s->net.host[i].lid + k] = i + 1;
	ret = for_each_line(name, take_field, &p);
	s->levels = true;
	free(p.host);
	return ret;
}
