/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel ladder`: the packets of a connection out of a capture, as a picture in which a gap, a NAK
 * and what is sent again are seen. A packet names the queue pair that it is for and the LIDs, not
 * the queue pair that it is from: so a connection is two flows, one in each direction.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/file.h"
#include "cli/picture/ladder.h"
#include "cli/base/options.h"
#include "cli/record/pcapng_read.h"
#include "wire/packet.h"

static const char help[] =
        "Usage: umbel ladder [OPTION]... FILE [QP QP]\n"
        "\n"
        "Draws what two connected queue pairs have sent each other, out of FILE, which 'umbel\n"
        "capture --data' wrote: each packet with its PSN, those that got lost, gaps, NAKs and\n"
        "what was sent again. If the file has more than one connection, QP and QP are the\n"
        "numbers of its queue pairs. Prints SVG.\n";

#define TOLD_FLOWS 64
#define MOST_FLOWS 4096 /* of which each is held against each */

struct options {
	struct cli_list words;
	const char *output;
};

/* The packets of connected queue pairs from one port to a queue pair. */
struct flow {
	uint16_t slid, dlid;
	uint32_t qpn;
	uint32_t n;
	char from[64];
};

struct reading {
	struct cli_ladder l;
	struct flow *flow;
	uint32_t n_flows, flows_room;
	long qpn[2];               /* that are wanted; 0: any */
	const struct flow *way[2]; /* [i]: packets from side i */
	uint32_t next[2];          /* of the requests of each side: the PSN that is expected */
	uint32_t highest[2];       /* and the highest one that was sent */
	bool knows[2], sent[2];    /* whether they are known */
};

/* ---- packets ---- */

/* The transport headers of a packet of a connected queue pair, and its LIDs. Whether it is one. */
static bool decode(const struct cli_pcapng_packet *p, struct wire_headers *h, uint16_t lids[2])
{
	size_t at = WIRE_LRH_BYTES;

	if (p->bytes < WIRE_LRH_BYTES)
		return false;
	lids[1] = (uint16_t)(p->at[2] << 8 | p->at[3]);
	lids[0] = (uint16_t)(p->at[6] << 8 | p->at[7]);
	if ((p->at[1] & 3) == 3)
		at += IB_GRH_BYTES;
	if (p->bytes < at || !wire_headers_decode(p->at + at, p->bytes - at, h))
		return false;
	return wire_opcode_transport(h->bth.opcode) == WIRE_TRANSPORT_RC ||
	       wire_opcode_transport(h->bth.opcode) == WIRE_TRANSPORT_UC;
}

static bool is_flow(const struct flow *f, const struct wire_headers *h, const uint16_t lids[2])
{
	return f && f->slid == lids[0] && f->dlid == lids[1] && f->qpn == h->bth.dest_qpn;
}

static int note_flow(void *arg, const struct cli_pcapng_packet *p)
{
	struct reading *r = arg;
	struct wire_headers h;
	uint16_t lids[2];
	struct flow *f;

	if (!decode(p, &h, lids) || (r->qpn[0] && h.bth.dest_qpn != (uint32_t)r->qpn[0] &&
	                             h.bth.dest_qpn != (uint32_t)r->qpn[1]))
		return 0;
	for (uint32_t i = 0; i < r->n_flows; i++)
		if (is_flow(&r->flow[i], &h, lids)) {
			r->flow[i].n++;
			return 0;
		}
	if (r->n_flows == MOST_FLOWS)
		return -E2BIG;
	if (base_array_reserve(&r->flow, &r->flows_room, (size_t)r->n_flows + 1))
		return -ENOMEM;
	f = &r->flow[r->n_flows++];
	*f = (struct flow){ .slid = lids[0], .dlid = lids[1], .qpn = h.bth.dest_qpn, .n = 1 };
	snprintf(f->from, sizeof(f->from), "%s", p->port);
	return 0;
}

/* ---- what a packet is in its connection ---- */

/* How far @psn is behind @from, in a circle of 2^24: negative if it is before it. */
static int32_t ahead(uint32_t psn, uint32_t from)
{
	return (int32_t)((psn - from) << 8) >> 8;
}

static bool is_lost(const struct cli_ladder_packet *p)
{
	return strstr(p->comment, "dropped") != NULL || strstr(p->comment, "damaged") != NULL;
}

/* A request: whether it was there before, and whether it arrives out of order. */
static void judge_request(struct reading *r, struct cli_ladder_packet *p)
{
	unsigned s = p->side;

	p->kind = CLI_LADDER_REQUEST;
	if (r->sent[s] && ahead(p->psn, r->highest[s]) <= 0)
		p->kind = CLI_LADDER_AGAIN;
	else
		r->highest[s] = p->psn;
	r->sent[s] = true;
	if (!r->knows[s])
		r->next[s] = p->psn;
	r->knows[s] = true;
	if (is_lost(p)) {
		p->kind = CLI_LADDER_LOST;
		return;
	}
	if (ahead(p->psn, r->next[s]) > 0) {
		p->kind = CLI_LADDER_GAP;
		p->missing = r->next[s];
	}
	if (p->psn != r->next[s])
		return;
	r->next[s] = (p->psn + 1) & WIRE_PSN_MASK;
	/* the next one's is behind those of its responses, as many as they are */
	if ((p->opcode & 0x1F) == WIRE_READ_REQUEST)
		r->knows[s] = false;
}

/* Responses to a READ have PSNs of their own, which count as its requester's. */
static void judge_response(struct reading *r, struct cli_ladder_packet *p)
{
	bool has_aeth = (wire_opcodes[p->opcode].headers & WIRE_AETH) != 0;

	p->kind = CLI_LADDER_RESPONSE;
	if (has_aeth && p->syndrome >> 5 != WIRE_AETH_ACK)
		p->kind = CLI_LADDER_NAK;
	else if (r->sent[!p->side] && ahead(p->psn, r->highest[!p->side]) > 0)
		r->highest[!p->side] = p->psn;
	if (is_lost(p))
		p->kind = CLI_LADDER_LOST;
}

static int add_packet(void *arg, const struct cli_pcapng_packet *from)
{
	struct reading *r = arg;
	struct cli_ladder_packet *p;
	struct wire_headers h;
	uint16_t lids[2];
	bool second;

	if (!decode(from, &h, lids))
		return 0;
	second = is_flow(r->way[1], &h, lids);
	if (!second && !is_flow(r->way[0], &h, lids))
		return 0;
	if (base_array_reserve(&r->l.packet, &r->l.room, (size_t)r->l.n + 1))
		return -ENOMEM;
	p = &r->l.packet[r->l.n++];
	*p = (struct cli_ladder_packet){
		.time_ns = from->time_ns, .psn = h.bth.psn, .side = second, .opcode = h.bth.opcode
	};
	if (wire_opcodes[p->opcode].headers & WIRE_AETH)
		p->syndrome = h.aeth.syndrome;
	snprintf(p->comment, sizeof(p->comment), "%s", from->comment);
	if (wire_opcodes[p->opcode].flags & WIRE_OPCODE_REQUEST)
		judge_request(r, p);
	else
		judge_response(r, p);
	return 0;
}

/* ---- the connection ---- */

static bool is_back(const struct flow *f, const struct flow *g)
{
	return f->slid == g->dlid && f->dlid == g->slid;
}

static bool is_wanted(const struct reading *r, const struct flow *f, const struct flow *back)
{
	return !r->qpn[0] || (f->qpn == r->qpn[1] && back->qpn == r->qpn[0]) ||
	       (f->qpn == r->qpn[0] && back->qpn == r->qpn[1]);
}

static int tell_flows(const struct reading *r, const char *file, const char *what)
{
	base_log("'%s' has %s; which two queue pairs? It has packets%s", file, what,
	         r->n_flows ? "" : " of others");
	for (uint32_t i = 0; i < r->n_flows && i < TOLD_FLOWS; i++)
		base_log("  from %s to QP 0x%x: %u", r->flow[i].from, r->flow[i].qpn, r->flow[i].n);
	return CLI_FAILED;
}

/* Finds the flow of each direction. 0 or CLI_FAILED. */
static int choose(struct reading *r, const char *file)
{
	unsigned found = 0;

	if (!r->n_flows && !r->qpn[0]) {
		base_log("'%s' has no packets of connected queue pairs; 'umbel capture --data' "
		         "writes them",
		         file);
		return CLI_FAILED;
	}
	for (uint32_t i = 0; i < r->n_flows; i++)
		for (uint32_t k = i + 1; k < r->n_flows; k++) {
			if (!is_back(&r->flow[i], &r->flow[k]) ||
			    !is_wanted(r, &r->flow[i], &r->flow[k]))
				continue;
			r->way[0] = &r->flow[i];
			r->way[1] = &r->flow[k];
			found++;
		}
	if (found != 1)
		return tell_flows(r, file,
		                  found ? "more than one connection" : "no such connection");
	for (unsigned i = 0; i < 2; i++) {
		snprintf(r->l.port[i], sizeof(r->l.port[i]), "%s", r->way[i]->from);
		r->l.qpn[i] = r->way[!i]->qpn;
	}
	return 0;
}

static int read_file(struct reading *r, const struct cli_file *f)
{
	const uint8_t *at = (const uint8_t *)f->text;
	int ret = cli_pcapng_each(at, f->bytes, note_flow, r);

	if (!ret) {
		ret = choose(r, f->name);
		if (ret)
			return ret;
		ret = cli_pcapng_each(at, f->bytes, add_packet, r);
	}
	if (ret == -EINVAL)
		base_log("'%s' is no capture that umbel wrote", f->name);
	else if (ret == -E2BIG)
		base_log("'%s' has more than %d connections; which two queue pairs?", f->name,
		         MOST_FLOWS / 2);
	else if (ret)
		base_log("%s", strerror(-ret));
	return ret ? CLI_FAILED : 0;
}

/* ---- the command ---- */

static int draw(const struct reading *r, const char *output)
{
	FILE *to = output ? fopen(output, "we") : stdout;
	bool failed;

	if (to)
		cli_ladder_draw(&r->l, to);
	failed = !to || ferror(to) || fflush(to);
	if (output && to && fclose(to))
		failed = true;
	if (!failed)
		return 0;
	return cli_cannot("write", output);
}

static int ladder(const struct cli_command *self, void *from, int argc, char **argv)
{
	const struct options *o = from;
	struct reading r = { 0 };
	struct cli_file f = { .fd = -1 };
	int ret;

	(void)argc; /* take_word() has had them */
	(void)argv;
	if (o->words.n != 1 && o->words.n != 3)
		return cli_usage_error(self, o->words.n ? "FILE, or FILE and two queue pairs"
		                                        : "which file?");
	for (unsigned i = 1; i < o->words.n; i++)
		if (base_parse_number(o->words.at[i], 1, WIRE_PSN_MASK, &r.qpn[i - 1]))
			return cli_usage_error(self, "'%s' is no queue pair's number",
			                       o->words.at[i]);
	if (!o->output && isatty(STDOUT_FILENO)) {
		base_log("a picture is no text: write it to a file by --output, or to a pipe");
		return CLI_USAGE;
	}
	f.name = o->words.at[0];
	ret = cli_file_read(&f);
	if (!ret)
		ret = read_file(&r, &f);
	if (!ret)
		ret = draw(&r, o->output);
	cli_file_fini(&f);
	free(r.l.packet);
	free(r.flow);
	return ret;
}

static int take_word(const struct cli_command *self, void *options, const char *word)
{
	(void)self;
	return cli_list_add(&((struct options *)options)->words, word);
}

static const struct cli_option options[] = {
	{ "  -o, --output FILE the picture's file (default: standard output)\n",
	  CLI_TEXT(struct options, output) },
	CLI_HELP_ROW,
};

const struct cli_command cli_ladder = {
	.name = "ladder",
	.summary = "draw the packets of a connection out of a capture",
	.help = help,
	CLI_OPTIONS(options, struct options),
	.word = take_word,
	.execute = ladder,
};
