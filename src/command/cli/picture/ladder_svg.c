/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection's packets as a ladder in SVG: see ladder.h. Time runs down, a line for each packet,
 * or for some in order of which nothing else is to be said.
 */
#include <inttypes.h>
#include <string.h>

#include "base/util.h"
#include "cli/picture/ladder.h"
#include "wire/headers.h"

#define LEFT   150 /* where the queue pairs' lines are */
#define RIGHT  650
#define WIDTH  900
#define TOP    60
#define ROW    24
#define FEWEST 3  /* packets that fold */
#define MANY   32 /* packets up to which none fold */

static const char *const colours[] = {
	[CLI_LADDER_REQUEST] = "#3f6f9f", [CLI_LADDER_RESPONSE] = "#78909c",
	[CLI_LADDER_AGAIN] = "#2e7d32",   [CLI_LADDER_GAP] = "#ef6c00",
	[CLI_LADDER_NAK] = "#c62828",     [CLI_LADDER_LOST] = "#c62828",
};

/* Text of a file that somebody may have made. */
static void put_text(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			fputs("&lt;", to);
		else if (*text == '&')
			fputs("&amp;", to);
		else
			fputc(*text >= ' ' && *text <= '~' ? *text : '?', to);
	}
}

static const char *nak_name(uint8_t syndrome)
{
	static const char *const names[] = { "NAK: PSN out of sequence", "NAK: invalid request",
		                             "NAK: remote access error",
		                             "NAK: remote operational error" };
	unsigned code = syndrome & 0x1F;

	if (syndrome >> 5 == WIRE_AETH_RNR)
		return "NAK: receiver not ready";
	return code < 4 ? names[code] : "NAK";
}

/* How long "RC_WRITE" of "RC_WRITE_LAST_IMM" is. */
static size_t operation_of(const char *name)
{
	static const char *const places[] = { "_FIRST", "_MIDDLE", "_LAST", "_ONLY" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		const char *place = strstr(name, places[i]);

		if (place)
			return (size_t)(place - name);
	}
	return strlen(name);
}

static bool is_same_operation(uint8_t a, uint8_t b)
{
	const char *name = wire_opcodes[a].name;
	size_t n = operation_of(name);

	return n == operation_of(wire_opcodes[b].name) && !strncmp(name, wire_opcodes[b].name, n);
}

/* How many packets from @i on are one line: the same operation in order, of one side. */
static uint32_t run_of(const struct cli_ladder *l, uint32_t i)
{
	const struct cli_ladder_packet *p = &l->packet[i];
	uint32_t n = 1;

	if (l->n <= MANY || p->comment[0] || p->kind == CLI_LADDER_NAK)
		return 1;
	while (i + n < l->n && p[n].kind == p->kind && p[n].side == p->side &&
	       is_same_operation(p[n].opcode, p->opcode) && !p[n].comment[0] &&
	       p[n].psn == ((p->psn + n) & WIRE_PSN_MASK))
		n++;
	return n < FEWEST ? 1 : n;
}

static void put_label(const struct cli_ladder_packet *p, uint32_t n, FILE *to)
{
	const char *name = wire_opcodes[p->opcode].name;
	size_t letters = n > 1 ? operation_of(name) : strlen(name);

	fprintf(to, "PSN %u", p->psn);
	if (n > 1)
		fprintf(to, "-%u, %u x", (p->psn + n - 1) & WIRE_PSN_MASK, n);
	fputc(' ', to);
	if (p->kind == CLI_LADDER_NAK)
		put_text(to, nak_name(p->syndrome));
	for (size_t i = 0; i < letters && p->kind != CLI_LADDER_NAK; i++)
		fputc(name[i] == '_' ? ' ' : name[i], to);
	if (p->kind == CLI_LADDER_AGAIN)
		fputs(", again", to);
	if (p->kind == CLI_LADDER_GAP)
		fprintf(to, ", a gap: %u is missing", p->missing);
}

/* A line of the ladder; one that gets lost ends on its way. */
static void put_row(const struct cli_ladder *l, const struct cli_ladder_packet *p, uint32_t n,
                    int y, FILE *to)
{
	bool lost = p->kind == CLI_LADDER_LOST;
	int from = p->side ? RIGHT : LEFT, end = p->side ? LEFT : RIGHT;
	int tip = lost ? (LEFT + RIGHT) / 2 + (p->side ? -130 : 130) : end;

	fprintf(to, "<text class=\"time\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%.1f</text>\n",
	        LEFT - 60, y + 4, (double)(p->time_ns - l->packet[0].time_ns) / 1000);
	fprintf(to,
	        "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\" "
	        "stroke-width=\"1.5\"%s/>\n",
	        from, y, tip, y, colours[p->kind], lost ? " stroke-dasharray=\"5 3\"" : "");
	if (lost)
		fprintf(to,
		        "<path d=\"M%d,%d l8,8 m0,-8 l-8,8\" stroke=\"%s\" stroke-width=\"2\"/>\n",
		        tip - 4, y - 4, colours[p->kind]);
	else
		fprintf(to, "<path d=\"M%d,%d l%d,-4 l0,8 z\" fill=\"%s\"/>\n", tip, y,
		        p->side ? 9 : -9, colours[p->kind]);
	fprintf(to, "<text class=\"packet\" x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"%s\">",
	        (LEFT + RIGHT) / 2, y - 4, colours[p->kind]);
	put_label(p, n, to);
	fputs("</text>\n", to);
	if (p->comment[0]) {
		fprintf(to, "<text class=\"comment\" x=\"%d\" y=\"%d\" fill=\"#c62828\">",
		        RIGHT + 20, y + 4);
		put_text(to, p->comment);
		fputs("</text>\n", to);
	}
}

static void put_side(const struct cli_ladder *l, unsigned side, int bottom, FILE *to)
{
	int x = side ? RIGHT : LEFT;

	fprintf(to,
	        "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#b0bec5\" "
	        "stroke-width=\"2\"/>\n<text class=\"side\" x=\"%d\" y=\"24\" "
	        "text-anchor=\"middle\" font-size=\"13\">",
	        x, TOP - 26, x, bottom, x);
	put_text(to, l->port[side]);
	fprintf(to, ", QP 0x%x</text>\n", l->qpn[side]);
}

void cli_ladder_draw(const struct cli_ladder *l, FILE *to)
{
	int y = TOP;
	uint32_t n;

	for (uint32_t i = 0; i < l->n; i += run_of(l, i))
		y += ROW;
	fprintf(to,
	        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg "
	        "xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
	        "%d\" font-family=\"Helvetica,Arial,sans-serif\" font-size=\"11\">\n"
	        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
	        "<text x=\"%d\" y=\"24\" text-anchor=\"end\" fill=\"#78909c\">us</text>\n",
	        WIDTH, y, WIDTH, y, LEFT - 110);
	put_side(l, 0, y - ROW / 2, to);
	put_side(l, 1, y - ROW / 2, to);
	y = TOP;
	for (uint32_t i = 0; i < l->n; i += n, y += ROW) {
		n = run_of(l, i);
		put_row(l, &l->packet[i], n, y, to);
	}
	fputs("</svg>\n", to);
}
