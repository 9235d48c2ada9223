/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A picture in the language of Graphviz: see picture.h. Called by show_picture.c. Higher levels of
 * the fabric are higher in the picture, hosts are at the bottom; a torus, which has no levels, is
 * laid out by springs.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/picture/picture_boxes.h"

#define MOST_RANGES 3    /* of names in a box */
#define MOST_PORTED 12   /* lines, of which each tells its ports */
#define MOST_CURVED 200  /* lines that lead around boxes; it takes dot a minute for 1,000 */
#define MOST_SPRUNG 1000 /* boxes that neato lays out; it takes the square of their number */
#define WIDEST      5    /* points wider than what carries nothing */

struct drawing {
	FILE *to;
	const struct cli_picture *p;
	struct cli_picture_boxes b;
	bool dim;      /* something is lit, all else is pale */
	bool ported;   /* all lines tell their ports */
	bool mesh;     /* the levels say little */
	bool curved;   /* lines lead around boxes */
	uint64_t most; /* the highest load */
};

/* The colours of links without load, and of quarters of the highest load. */
static const char *const scale[] = { "#b0bec5", "#90caf9", "#42a5f5", "#1565c0", "#0d2a5c" };

#define QUARTERS 4
#define RED      "#c62828" /* failed */
#define PURPLE   "#8e24aa" /* waits in a circle */

/* A text between quotes; '\n' in it begins a new line. */
static void put_text(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', to);
		if (*text == '\n')
			fputs("\\n", to);
		else
			fputc(*text, to);
	}
}

/* ---- boxes ---- */

/* The name of a box in the file: its first node's name. A host's name differs from that of a switch
 * of the same name. */
static void put_id(const struct drawing *d, uint32_t box)
{
	const struct cli_picture_node *first = d->b.box[box].first;
	bool twice =
	        !first->is_switch && cli_picture_find_node(d->p, first->name) != CLI_PICTURE_NONE;

	fputc('"', d->to);
	put_text(d->to, first->name);
	fputs(twice ? " (host)\"" : "\"", d->to);
}

/* The number at the end of a name; -1: it has none. */
static long number_in(const char *name, size_t *letters)
{
	*letters = strlen(name);
	while (*letters && name[*letters - 1] >= '0' && name[*letters - 1] <= '9')
		--*letters;
	return name[*letters] ? strtol(name + *letters, NULL, 10) : -1;
}

static bool follows(const char *name, const char *next)
{
	size_t a, b;
	long n = number_in(name, &a), m = number_in(next, &b);

	return n >= 0 && m == n + 1 && a == b && !memcmp(name, next, a);
}

/* Names as ranges, "h1-h6, h8-h18"; of many only the first and the last one. */
struct names {
	const char *begin, *last, *first; /* of this range; of all */
	char text[256];
	size_t len;
	unsigned ranges;
};

static void end_range(struct names *n)
{
	if (n->begin && n->ranges++ < MOST_RANGES && n->len < sizeof(n->text))
		n->len += (size_t)snprintf(n->text + n->len, sizeof(n->text) - n->len,
		                           n->begin == n->last ? "%s%.60s" : "%s%.60s-%.60s",
		                           n->len ? ", " : "", n->begin, n->last);
	n->begin = NULL;
}

static void put_names(const struct drawing *d, uint32_t box)
{
	struct names n = { 0 };

	if (d->b.box[box].n == 1) {
		put_text(d->to, d->b.box[box].first->name);
		return;
	}
	for (uint32_t i = 0; i < d->p->n; i++) {
		const char *name = d->p->node[i].name;

		if (d->b.of[i] != box)
			continue;
		if (n.begin && !follows(n.last, name))
			end_range(&n);
		n.begin = n.begin ? n.begin : name;
		n.first = n.first ? n.first : name;
		n.last = name;
	}
	end_range(&n);
	if (n.ranges > MOST_RANGES)
		snprintf(n.text, sizeof(n.text), "%.60s ... %.60s", n.first, n.last);
	put_text(d->to, n.text);
}

static void put_colours(const struct drawing *d, const struct cli_picture_node *node)
{
	if (node->dead)
		fputs(", style=\"rounded,dashed\", color=\"#c62828\", fontcolor=\"#c62828\"",
		      d->to);
	else if (node->stuck)
		fputs(", fillcolor=\"#f3e5f5\", color=\"" PURPLE "\"", d->to);
	else if (node->end)
		fputs(", fillcolor=\"#1b5e20\", color=\"#1b5e20\", fontcolor=white", d->to);
	else if (node->lit)
		fputs(", fillcolor=\"#c8e6c9\", color=\"#2e7d32\"", d->to);
	else if (d->dim)
		fputs(", fillcolor=white, color=\"#b0bec5\", fontcolor=\"#78909c\"", d->to);
	else if (node->is_switch)
		fputs(", fillcolor=\"#dbe9f6\", color=\"#3f6f9f\"", d->to);
	else
		fputs(", fillcolor=\"#fdf3d7\", color=\"#b08d3c\"", d->to);
}

static void put_box(const struct drawing *d, uint32_t i)
{
	const struct cli_picture_box *box = &d->b.box[i];

	fputc('\t', d->to);
	put_id(d, i);
	fputs(" [label=\"", d->to);
	if (box->n > 1)
		fprintf(d->to, "%u %s\\n", box->n, box->first->is_switch ? "switches" : "hosts");
	put_names(d, i);
	if (box->n > 1 && box->first->is_switch)
		fprintf(d->to, "\\neach %u up, %u down", box->first->up,
		        box->first->down + box->first->to_hosts);
	fputc('"', d->to);
	put_colours(d, box->first);
	fputs("]\n", d->to);
}

/* The boxes of one level are side by side. */
static void put_levels(const struct drawing *d)
{
	unsigned highest = 0;

	for (uint32_t i = 0; i < d->b.n; i++)
		highest = d->b.box[i].first->level > highest ? d->b.box[i].first->level : highest;
	for (unsigned level = highest + 1; level-- > 0;) {
		fputs("\t{ rank=same;", d->to);
		for (uint32_t i = 0; i < d->b.n; i++) {
			if (d->b.box[i].first->level != level)
				continue;
			fputc(' ', d->to);
			put_id(d, i);
			fputc(';', d->to);
		}
		fputs(" }\n", d->to);
	}
}

/* ---- lines ---- */

static double width_of(const struct drawing *d, const struct cli_picture_line *line)
{
	double least = line->first->lit ? 3 : line->first->state == CLI_PICTURE_FAILED ? 2 : 1.2;

	return d->most ? least + WIDEST * (double)line->load / (double)d->most : least;
}

/* The highest load of the quarter, from 1. */
static uint64_t quarter_end(const struct drawing *d, unsigned quarter)
{
	return (uint64_t)((double)d->most * quarter / QUARTERS);
}

static unsigned quarter_of(const struct drawing *d, uint64_t load)
{
	unsigned quarter = load ? 1 : 0;

	while (quarter && quarter < QUARTERS && load > quarter_end(d, quarter))
		quarter++;
	return quarter;
}

static const char *colour_of(const struct drawing *d, const struct cli_picture_line *line)
{
	if (line->first->state == CLI_PICTURE_FAILED)
		return RED;
	if (line->first->circle)
		return PURPLE;
	if (d->p->scaled)
		return scale[quarter_of(d, line->load)];
	if (line->first->lit)
		return "#2e7d32";
	return d->dim ? "#cfd8dc" : d->most ? "#90a4ae" : "#607d8b";
}

/* "spine1:1 - leaf1:19", and what the link carries: to be read where the pointer is. */
static void put_tooltip(const struct drawing *d, const struct cli_picture_line *line, unsigned top)
{
	const struct cli_picture_link *l = line->first;

	fputs(", tooltip=\"", d->to);
	if (line->n > 1)
		fprintf(d->to, "%u links", line->n);
	for (unsigned k = 0; k < 2 && line->n == 1; k++) {
		put_text(d->to, d->p->node[l->node[k ^ top]].name);
		fprintf(d->to, ":%u%s", l->port[k ^ top], k ? "" : " - ");
	}
	if (d->most)
		fprintf(d->to, ", %s%ju %s", line->n > 1 ? "at most " : "", (uintmax_t)line->load,
		        d->p->loads);
	if (l->circle)
		fputs(", waits in a circle", d->to);
	fputc('"', d->to);
}

/* The number of each port beside it; that of a host's only one says nothing. */
static void put_ports(const struct drawing *d, const struct cli_picture_link *l, unsigned top)
{
	fprintf(d->to, ", taillabel=\"%u\"", l->port[top]);
	if (d->p->node[l->node[!top]].is_switch || l->port[!top] > 1)
		fprintf(d->to, ", headlabel=\"%u\"", l->port[!top]);
}

/* From the higher level to the lower one. */
static void put_line(const struct drawing *d, const struct cli_picture_line *line)
{
	const struct cli_picture_link *l = line->first;
	const struct cli_picture_box *box = d->b.box;
	unsigned top = box[line->box[1]].first->level > box[line->box[0]].first->level;
	unsigned at = d->b.of[l->node[0]] != line->box[top]; /* the link's end there */

	fputc('\t', d->to);
	put_id(d, line->box[top]);
	fputs(" -- ", d->to);
	put_id(d, line->box[!top]);
	fprintf(d->to, " [color=\"%s\", penwidth=%.1f", colour_of(d, line), width_of(d, line));
	if (l->state != CLI_PICTURE_ACTIVE)
		fputs(", style=dashed", d->to);
	if (line->n > 1 && box[line->box[0]].n == 1 && box[line->box[1]].n == 1)
		fprintf(d->to, ", %slabel=\"%u links\"", d->curved ? "" : "x", line->n);
	if (line->n == 1 && (d->ported || l->lit || l->state == CLI_PICTURE_FAILED))
		put_ports(d, l, at);
	if (l->circle)
		fprintf(d->to, ", dir=%s, arrowsize=0.5, len=1.4",
		        l->circle == 3         ? "both"
		        : l->circle >> at & 1u ? "forward"
		                               : "back");
	put_tooltip(d, line, at);
	fputs("]\n", d->to);
}

/* ---- all ---- */

/* Inches between levels: more where many boxes are side by side, so that lines are steep. */
static double height_of(const struct drawing *d)
{
	return d->b.n < 150 ? 0.7 + 0.02 * d->b.n : 3.7;
}

static const char *plural(uint32_t n)
{
	return n == 1 ? "" : "s";
}

/* A text of the title: with a legend it is a table in HTML. */
static void put_words(const struct drawing *d, const char *text)
{
	if (!d->p->scaled) {
		put_text(d->to, text);
		return;
	}
	for (; *text; text++)
		if (strchr("&<>\"", *text))
			fprintf(d->to, "&#%d;", *text);
		else
			fputc(*text, d->to);
}

static void put_new_line(const struct drawing *d)
{
	fputs(d->p->scaled ? "<br/>" : "\\n", d->to);
}

/* The title, below the picture. */
static void put_title(const struct drawing *d)
{
	const struct cli_picture *p = d->p;
	uint32_t failed = 0, dead = 0;

	for (uint32_t i = 0; i < p->n_links; i++)
		failed += p->link[i].state == CLI_PICTURE_FAILED;
	for (uint32_t i = 0; i < p->n; i++)
		dead += p->node[i].dead;
	fputs(p->fabric ? "fabric " : "simulation", d->to);
	put_words(d, p->fabric ? p->fabric : "");
	fprintf(d->to, ": %u host%s, %u switch%s", p->n_hosts, plural(p->n_hosts),
	        p->n - p->n_hosts, p->n - p->n_hosts == 1 ? "" : "es");
	if (dead)
		fprintf(d->to, " (%u dead)", dead);
	fprintf(d->to, ", %u link%s", p->n_links, plural(p->n_links));
	if (failed)
		fprintf(d->to, " (%u failed)", failed);
	if (p->about[0]) {
		put_new_line(d);
		put_words(d, p->about);
	}
	if (d->most && !p->scaled)
		fprintf(d->to, "\\nthe widest line: %ju %s", (uintmax_t)d->most, p->loads);
}

/* ---- legend ---- */

/* A piece of a line, @width points wide, and what it means. */
static void put_sample(const struct drawing *d, const char *colour, double width)
{
	fprintf(d->to,
	        "<td>  <table border=\"0\" cellspacing=\"0\" cellpadding=\"0\"><tr><td "
	        "width=\"28\" height=\"%.0f\" fixedsize=\"true\" "
	        "bgcolor=\"%s\"></td></tr></table></td><td align=\"left\">",
	        width, colour);
}

static void put_quarters(const struct drawing *d)
{
	put_sample(d, scale[0], 1);
	fputs("0</td>", d->to);
	for (unsigned i = 1; i <= QUARTERS; i++) {
		uint64_t from = quarter_end(d, i - 1) + 1, to = quarter_end(d, i);

		if (from > to)
			continue;
		put_sample(d, scale[i], 1.2 + WIDEST * (double)i / QUARTERS);
		fprintf(d->to, "%ju", (uintmax_t)from);
		if (from < to)
			fprintf(d->to, " to %ju", (uintmax_t)to);
		if (i == QUARTERS)
			fprintf(d->to, " %s", d->p->loads);
		fputs("</td>", d->to);
	}
}

static void put_legend(const struct drawing *d)
{
	bool failed = false, stuck = false;

	for (uint32_t i = 0; i < d->p->n_links; i++) {
		failed |= d->p->link[i].state == CLI_PICTURE_FAILED;
		stuck |= d->p->link[i].circle != 0;
	}
	fputs("<table border=\"0\" cellspacing=\"3\" cellpadding=\"1\"><tr>", d->to);
	if (d->most)
		put_quarters(d);
	if (failed) {
		put_sample(d, RED, 2);
		fputs("failed</td>", d->to);
	}
	if (stuck) {
		put_sample(d, PURPLE, WIDEST);
		fputs("waits in a circle</td>", d->to);
	}
	if (!d->most && !failed && !stuck)
		fputs("<td></td>", d->to);
	fputs("</tr></table>", d->to);
}

static void put_label(const struct drawing *d)
{
	if (!d->p->scaled) {
		fputs("\"\\n", d->to);
		put_title(d);
		fputc('"', d->to);
		return;
	}
	fputs("<<table border=\"0\" cellspacing=\"4\"><tr><td> </td></tr><tr><td>", d->to);
	put_title(d);
	fputs("</td></tr><tr><td>", d->to);
	put_legend(d);
	fputs("</td></tr></table>>", d->to);
}

/* A fabric is a mesh if more links lead to the same level than there are switches. */
static void choose_layout(struct drawing *d)
{
	const struct cli_picture *p = d->p;
	uint32_t beside = 0, switches = p->n - p->n_hosts;

	for (uint32_t i = 0; i < p->n; i++)
		beside += p->node[i].beside; /* each link twice */
	d->mesh = switches > 2 && beside / 2 >= switches;
	d->curved = beside && d->b.n_lines <= MOST_CURVED;
	d->ported = d->b.n_lines <= MOST_PORTED;
}

static void put_graph(const struct drawing *d)
{
	fputs("graph umbel {\n\tgraph [label=", d->to);
	put_label(d);
	fputs(", fontname=\"Helvetica,Arial,sans-serif\", fontsize=13", d->to);
	if (d->mesh)
		fprintf(d->to, ", layout=%s, overlap=false",
		        d->b.n > MOST_SPRUNG ? "sfdp" : "neato");
	else
		fprintf(d->to, ", ordering=out, nodesep=0.25, ranksep=%.1f", height_of(d));
	fprintf(d->to, ", splines=%s", d->curved ? "true" : "line");
	fputs("]\n\tnode [shape=box, style=\"rounded,filled\", "
	      "fontname=\"Helvetica,Arial,sans-serif\", fontsize=12, height=0.35, width=0.4]\n"
	      "\tedge [fontname=\"Helvetica,Arial,sans-serif\", fontsize=9, labeldistance=1.6, "
	      "fontcolor=\"#546e7a\"]\n",
	      d->to);
	for (uint32_t i = 0; i < d->b.n; i++)
		put_box(d, i);
	if (!d->mesh)
		put_levels(d);
	for (uint32_t i = 0; i < d->b.n_lines; i++)
		put_line(d, &d->b.line[i]);
	fputs("}\n", d->to);
}

char *cli_picture_dot(struct cli_picture *p, unsigned most)
{
	struct drawing d = { .p = p, .dim = p->about[0] && !p->scaled };
	char *text = NULL;
	size_t bytes;
	bool failed;

	if (cli_picture_fold(&d.b, p, most)) {
		cli_picture_boxes_fini(&d.b);
		return NULL;
	}
	for (uint32_t i = 0; i < p->n_links && p->loads; i++)
		d.most = p->link[i].load > d.most ? p->link[i].load : d.most;
	choose_layout(&d);
	d.to = open_memstream(&text, &bytes);
	if (d.to) {
		put_graph(&d);
		failed = ferror(d.to) != 0;
		failed = fclose(d.to) != 0 || failed;
		if (failed) {
			free(text);
			text = NULL;
		}
	}
	cli_picture_boxes_fini(&d.b);
	return text;
}
