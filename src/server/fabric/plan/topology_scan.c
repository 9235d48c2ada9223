/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lines of a topology file: see topology_scan.h. A cursor moves through one line at a
 * time; it never leaves it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/complain.h"
#include "base/util.h"
#include "fabric/plan/topology_scan.h"
#include "wire/rate.h"

struct cursor {
	struct topology_scan *s;
	const char *at, *end;
};

/* ---- complaints ---- */

int topology_complain(struct topology_scan *s, uint32_t line, const char *format, ...)
{
	const struct base_place place = { s->file->name, line };
	va_list args;

	va_start(args, format);
	base_complain(s->why, s->why_len, &place, format, args);
	va_end(args);
	return -EINVAL;
}

/* The text at the cursor, made printable. */
static const char *found(const struct cursor *c, char text[static 40])
{
	size_t n = 0;

	if (c->at == c->end)
		return "the end of the line";
	text[n++] = '\'';
	for (const char *p = c->at; p < c->end && n < 30; p++)
		text[n++] = *p >= ' ' && *p <= '~' ? *p : '?';
	snprintf(text + n, 40 - n, n < 30 ? "'" : "...'");
	return text;
}

static int expected(const struct cursor *c, const char *what)
{
	char text[40];

	return topology_complain(c->s, c->s->line, "expected %s, found %s", what, found(c, text));
}

/* ---- pieces of a line ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && is_blank(*c->at))
		c->at++;
}

static bool parse_char(struct cursor *c, char want)
{
	if (c->at == c->end || *c->at != want)
		return false;
	c->at++;
	return true;
}

static bool parse_text(struct cursor *c, const char *want)
{
	size_t len = strlen(want);

	if ((size_t)(c->end - c->at) < len || memcmp(c->at, want, len))
		return false;
	c->at += len;
	return true;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

/* A number of up to 64 bits; without one the cursor does not move. */
static bool parse_number(struct cursor *c, unsigned base, uint64_t *value)
{
	const char *p = c->at;
	uint64_t v = 0;

	for (; p < c->end && (unsigned)digit(*p) < base; p++)
		if (__builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit(*p), &v))
			return false;
	if (p == c->at)
		return false;
	c->at = p;
	*value = v;
	return true;
}

/* A number as C writes it: decimal or 0x. */
static bool parse_c_number(struct cursor *c, uint64_t *value)
{
	struct cursor try = *c;
	bool hex = parse_text(&try, "0x") || parse_text(&try, "0X");

	if (!parse_number(&try, hex ? 16 : 10, value))
		return false;
	*c = try;
	return true;
}

/* "text", with no control characters in it. */
static bool parse_quoted(struct cursor *c, struct topology_word *word)
{
	const char *p = c->at;

	if (p == c->end || *p++ != '"')
		return false;
	word->at = p;
	while (p < c->end && *p != '"' && (unsigned char)*p >= ' ' && *p != 0x7F)
		p++;
	if (p == c->end || *p != '"')
		return false;
	word->len = (size_t)(p - word->at);
	c->at = p + 1;
	return true;
}

/* "(2c903000e8b4b)" if it is there. */
static int parse_guid(struct cursor *c, uint64_t *guid)
{
	if (!parse_char(c, '('))
		return 0;
	parse_text(c, "0x");
	if (!parse_number(c, 16, guid))
		return expected(c, "a GUID of up to 16 hex digits");
	return parse_char(c, ')') ? 0 : expected(c, "')'");
}

/* "[ext 7]", the port's number on the chassis, if it is there. */
static int skip_external(struct cursor *c)
{
	uint64_t number;

	if (!parse_text(c, "[ext"))
		return 0;
	skip_blanks(c);
	if (!parse_number(c, 10, &number))
		return expected(c, "the number of an external port");
	return parse_char(c, ']') ? 0 : expected(c, "']'");
}

/* "[3]": a port from 1 to @last. */
static int parse_port(struct cursor *c, unsigned last, const char *what, uint8_t *port)
{
	struct cursor before;
	uint64_t number;
	char text[64];

	if (!parse_char(c, '['))
		return expected(c, what);
	before = *c;
	if (!parse_number(c, 10, &number) || number < 1 || number > last) {
		snprintf(text, sizeof(text), "a port number from 1 to %u", last);
		return expected(&before, text);
	}
	*port = (uint8_t)number;
	return parse_char(c, ']') ? 0 : expected(c, "']'");
}

/* The end of the line, or a comment: then the cursor moves behind its '#'. */
static int parse_comment(struct cursor *c, const char *what, bool *there)
{
	skip_blanks(c);
	*there = parse_char(c, '#');
	return *there || c->at == c->end ? 0 : expected(c, what);
}

static int end_of_line(struct cursor *c)
{
	bool comment;

	return parse_comment(c, "the end of the line", &comment);
}

static const char *find(const char *from, const char *end, const char *want)
{
	return from < end ? memmem(from, (size_t)(end - from), want, strlen(want)) : NULL;
}

/* ---- lines before a node: "devid=0x5a06" ---- */

/* "fwver=16.35.2000": ours, as ibnetdiscover does not ask for these. -ENOENT: no such line. */
static int parse_property(struct cursor *c)
{
	struct topology_node *n = &c->s->coming;
	const struct {
		const char *key;
		struct topology_word *word;
	} keys[] = {
		{ "catype=", &n->type_name },
		{ "fwver=", &n->fw_ver },
		{ "boardid=", &n->board_id },
	};
	struct topology_word *w;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys) && !parse_text(c, keys[i].key); i++)
		;
	if (i == ARRAY_SIZE(keys))
		return -ENOENT;
	w = keys[i].word;
	*w = (struct topology_word){ c->at, 0 };
	while (c->at < c->end && (unsigned char)*c->at > ' ' && (unsigned char)*c->at < 0x7F)
		c->at++;
	w->len = (size_t)(c->at - w->at);
	if (!w->len || w->len >= FABRIC_WORD) {
		c->at = w->at;
		return expected(c, "a word of 1 to 15 characters");
	}
	return end_of_line(c);
}

/* -ENOENT: no such line. */
static int parse_identifier(struct cursor *c)
{
	struct topology_node *n = &c->s->coming;
	static const struct {
		const char *key;
		uint64_t max;
	} keys[] = {
		{ "vendid=", 0xFFFFFF },       { "devid=", 0xFFFF },
		{ "sysimgguid=", UINT64_MAX }, { "switchguid=", UINT64_MAX },
		{ "caguid=", UINT64_MAX },     { "hcaguid=", UINT64_MAX },
		{ "rtguid=", UINT64_MAX },
	};
	struct cursor before;
	uint64_t value;
	size_t i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(keys) && !parse_text(c, keys[i].key); i++)
		;
	if (i == ARRAY_SIZE(keys))
		return -ENOENT;
	before = *c;
	if (!parse_c_number(c, &value) || value > keys[i].max)
		return expected(&before, i == 0   ? "a vendor ID of 24 bits"
		                         : i == 1 ? "a device ID of 16 bits"
		                                  : "a GUID: 0x and up to 16 hex digits");
	switch (i) {
	case 0:
		n->vendor_id = (uint32_t)value;
		break;
	case 1:
		n->device_id = (uint32_t)value;
		break;
	case 2:
		n->system_guid = value;
		break;
	default:
		n->guid = value;
		ret = parse_guid(c, &n->port_guid);
		if (ret)
			return ret;
	}
	return end_of_line(c);
}

/* ---- nodes: `Switch 36 "S-0002c90200000000" # "leaf 1" enhanced port 0 lid 3 lmc 0` ---- */

/* The description in a node's comment: in quotes, or up to what ibnetdiscover adds. */
static void parse_description(struct cursor *c, struct topology_node *n)
{
	static const char *const added[] = { " enhanced port 0", " base port 0", " lid ", " lmc " };
	const char *end = c->end;

	skip_blanks(c);
	if (parse_char(c, '"')) {
		const char *quote = memrchr(c->at, '"', (size_t)(end - c->at));

		/* the description may have quotes in it: the last one ends it */
		end = quote ? quote : end;
	} else {
		for (size_t i = 0; i < ARRAY_SIZE(added); i++) {
			const char *p = find(c->at, end, added[i]);

			end = p ? p : end;
		}
	}
	n->enhanced_port0 = find(end, c->end, "enhanced port 0") != NULL;
	while (end > c->at && is_blank(end[-1]))
		end--;
	if (end > c->at)
		n->desc = (struct topology_word){ c->at, (size_t)(end - c->at) };
}

static int add_node(struct topology_scan *s, const struct topology_node *n)
{
	if (s->n_nodes == FABRIC_MAX_NODES || s->n_ports + n->n_ports > FABRIC_MAX_ALL_PORTS)
		return topology_complain(s, s->line, "more than %u nodes or %u ports",
		                         FABRIC_MAX_NODES, FABRIC_MAX_ALL_PORTS);
	if (base_array_reserve(&s->node, &s->node_room, (size_t)s->n_nodes + 1))
		return -ENOMEM;
	s->node[s->n_nodes] = *n;
	s->node[s->n_nodes].line = s->line;
	s->node[s->n_nodes++].first_end = s->n_ends;
	s->n_ports += n->n_ports;
	memset(s->port_seen, 0, sizeof(s->port_seen));
	memset(&s->coming, 0, sizeof(s->coming));
	return 0;
}

/* -ENOENT: the line is not about a node. */
static int parse_node(struct cursor *c)
{
	struct topology_node n = c->s->coming;
	struct cursor before;
	uint64_t n_ports;
	bool comment;
	int ret;

	if (parse_text(c, "Switch"))
		n.type = FABRIC_SWITCH;
	else if (parse_text(c, "Hca") || parse_text(c, "Ca"))
		n.type = FABRIC_HCA;
	else if (parse_text(c, "Rt"))
		n.type = FABRIC_HCA, n.is_router = true;
	else
		return -ENOENT;
	skip_blanks(c);
	before = *c;
	if (!parse_number(c, 10, &n_ports) || n_ports < 1 || n_ports > FABRIC_MAX_PORTS)
		return expected(&before, "a number of ports from 1 to 254");
	n.n_ports = (unsigned)n_ports;
	skip_blanks(c);
	before = *c;
	if (!parse_quoted(c, &n.id) || !n.id.len)
		return expected(&before, "the node's identifier in quotes");
	ret = parse_comment(c, "the end of the line or a comment", &comment);
	if (ret)
		return ret;
	if (comment)
		parse_description(c, &n);
	return add_node(c->s, &n);
}

/* ---- ports: `[1](guid) "S-0002c90200000000"[7] # lid 4 lmc 0 "leaf 1" lid 3 4xQDR` ---- */

/* "4xQDR" among the words after the remote node's description; other words are comments. */
static void parse_rate(struct cursor *c, struct fabric_link_rate *rate)
{
	const char *quote = memrchr(c->at, '"', (size_t)(c->end - c->at));

	if (quote)
		c->at = quote + 1;
	while (c->at < c->end) {
		const char *word;
		uint64_t lanes;

		skip_blanks(c);
		if (parse_number(c, 10, &lanes) && parse_char(c, 'x')) {
			for (word = c->at; c->at < c->end && !is_blank(*c->at); c->at++)
				;
			rate->speed = (uint8_t)wire_link_speed_named(word, (size_t)(c->at - word));
			rate->width = (uint8_t)wire_link_width(lanes);
			return;
		}
		while (c->at < c->end && !is_blank(*c->at))
			c->at++;
	}
}

/* The speed of the highest one of @bits, whose lowest one means @first. */
static uint8_t fastest(enum fabric_speed first, uint64_t bits)
{
	return (uint8_t)(first << base_log2_up(bits / 2 + 1));
}

/* The members that ibsim's options "w=12", "s=4" and "e=2" set. False: they cannot have that
 * value. */
static bool set_lanes(struct fabric_link_rate *rate, uint64_t lanes)
{
	rate->width = (uint8_t)wire_link_width(lanes);
	return rate->width;
}

/* LinkSpeed: one of LinkSpeedExt that was named before is faster, and stays. */
static bool set_speed(struct fabric_link_rate *rate, uint64_t bits)
{
	if (bits < 1 || bits > 7)
		return false;
	if (rate->speed < FABRIC_SPEED_FDR)
		rate->speed = fastest(FABRIC_SPEED_SDR, bits);
	return true;
}

/* LinkSpeedExt; 0: it has none. */
static bool set_speed_ext(struct fabric_link_rate *rate, uint64_t bits)
{
	if (bits > 15)
		return false;
	if (bits)
		rate->speed = fastest(FABRIC_SPEED_FDR, bits);
	return true;
}

static int parse_option(struct cursor *c, struct fabric_link_rate *rate)
{
	static const struct {
		const char *key;
		bool (*set)(struct fabric_link_rate *rate, uint64_t value);
		const char *values;
	} options[] = {
		{ "w=", set_lanes, "1, 2, 4, 8 or 12 lanes" },
		{ "s=", set_speed, "a speed from 1 to 7" },
		{ "e=", set_speed_ext, "a speed from 0 to 15" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		struct cursor before;
		uint64_t value;

		if (!parse_text(c, options[i].key))
			continue;
		before = *c;
		if (parse_c_number(c, &value) && options[i].set(rate, value))
			return 0;
		return expected(&before, options[i].values);
	}
	return expected(c, "w=, s=, e=, a comment or the end of the line");
}

static int add_end(struct topology_scan *s, const struct topology_end *end)
{
	if (base_array_reserve(&s->end, &s->end_room, (size_t)s->n_ends + 1))
		return -ENOMEM;
	s->end[s->n_ends++] = *end;
	s->node[s->n_nodes - 1].n_ends++;
	return 0;
}

/* The local part: "[1][ext 3](guid)". */
static int parse_local(struct cursor *c, struct topology_end *end)
{
	struct topology_scan *s = c->s;
	struct cursor before = *c;
	uint64_t *seen;
	int ret;

	if (!s->n_nodes)
		return expected(c, "a node before its ports");
	ret = parse_port(c, s->node[s->n_nodes - 1].n_ports, "'['", &end->port);
	if (ret)
		return ret;
	seen = &s->port_seen[end->port / 64];
	if (*seen >> (end->port % 64) & 1)
		return expected(&before, "a port that is not linked yet");
	*seen |= 1ull << (end->port % 64);
	ret = skip_external(c);
	return ret ? ret : parse_guid(c, &end->guid);
}

static int parse_end(struct cursor *c)
{
	struct topology_end end = { .line = c->s->line };
	bool comment = false;
	struct cursor before;
	int ret = parse_local(c, &end);

	if (ret)
		return ret;
	skip_blanks(c);
	before = *c;
	if (!parse_quoted(c, &end.remote))
		return expected(&before, "the other node's identifier in quotes");
	skip_blanks(c);
	ret = parse_port(c, FABRIC_MAX_PORTS, "'[' and the other node's port", &end.remote_port);
	if (!ret)
		ret = skip_external(c);
	skip_blanks(c);
	if (!ret)
		ret = parse_guid(c, &end.remote_guid);
	for (skip_blanks(c); !ret && c->at < c->end; skip_blanks(c)) {
		comment = parse_char(c, '#');
		if (comment)
			break;
		ret = parse_option(c, &end.rate);
	}
	if (ret)
		return ret;
	if (comment)
		parse_rate(c, &end.rate);
	return add_end(c->s, &end);
}

/* ---- lines ---- */

/* The headings that `ibnetdiscover -g` prints between nodes. */
static bool is_heading(struct cursor *c)
{
	return parse_text(c, "Chassis ") || parse_text(c, "Non-Chassis Nodes") ||
	       parse_text(c, "Hostname: ");
}

/* A program's message: "ibwarn: [7] ...", "src/query_smp.c:195; ...". No line of ours begins so. */
static bool is_message(const struct cursor *c)
{
	for (const char *p = c->at; p<c->end && * p> ' ' && *p <= '~'; p++) {
		if (*p == '"' || *p == '[' || *p == '=')
			return false;
		if (*p == ':' || *p == ';')
			return p > c->at;
	}
	return false;
}

/* The line up to what cannot be printed. */
static void pass_over(struct cursor *c)
{
	const struct fabric_topology_file *file = c->s->file;
	struct topology_word line = { c->at, 0 };
	size_t used = file->notes ? strlen(file->notes) : 0;

	while (c->at + line.len < c->end && c->at[line.len] >= ' ' && c->at[line.len] <= '~')
		line.len++;
	if (file->notes && used < file->notes_len)
		snprintf(file->notes + used, file->notes_len - used, "%s:%u: passed over: %.*s\n",
		         file->name, c->s->line, TOPOLOGY_WORD_ARG(line));
}

static int parse_line(struct cursor *c)
{
	int ret;

	skip_blanks(c);
	if (c->at == c->end || *c->at == '#' || is_heading(c))
		return 0;
	if (is_message(c)) {
		pass_over(c);
		return 0;
	}
	if (*c->at == '[')
		return parse_end(c);
	ret = parse_node(c);
	if (ret == -ENOENT)
		ret = parse_identifier(c);
	if (ret == -ENOENT)
		ret = parse_property(c);
	if (ret == -ENOENT)
		ret = expected(c, "Switch, Ca, Hca, Rt, an identifier or a port");
	return ret;
}

int topology_scan(struct topology_scan *s)
{
	const char *at = s->file->text, *end = at + s->file->bytes;
	int ret = 0;

	if (s->file->notes)
		s->file->notes[0] = '\0';
	while (at < end && !ret) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct cursor c = { .s = s, .at = at, .end = newline ? newline : end };

		s->line++;
		at = c.end + (newline != NULL);
		ret = parse_line(&c);
	}
	return ret;
}

void topology_scan_fini(struct topology_scan *s)
{
	free(s->node);
	free(s->end);
}
