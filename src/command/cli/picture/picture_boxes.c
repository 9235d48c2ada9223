/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Folding equal nodes of a picture: see picture_boxes.h. Called by picture_dot.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/picture/picture_boxes.h"

/* How much is folded; each includes those before it. */
enum fold { FOLD_NOTHING, FOLD_HOSTS, FOLD_SWITCHES, FOLD_LIT, FOLD_FAILED };

struct folding {
	struct cli_picture_boxes *b;
	const struct cli_picture *p;
	uint64_t *links; /* by host: the nodes that its links lead to, hashed */
	enum fold fold;
};

static uint64_t hash_words(const uint64_t *words, size_t n)
{
	return base_hash_of(words, n * sizeof(*words), 0);
}

static bool folds(const struct folding *f, const struct cli_picture_node *node)
{
	if (node->end || node->stuck)
		return false;
	if (!node->is_switch)
		return f->fold >= FOLD_HOSTS;
	return f->fold >= FOLD_SWITCHES && !node->beside && (f->fold >= FOLD_LIT || !node->lit) &&
	       (f->fold >= FOLD_FAILED || (!node->failed && !node->dead));
}

/* Nodes with the same number are equal. */
static uint64_t number_of(const struct folding *f, const struct cli_picture_node *node, uint32_t i)
{
	const uint64_t words[] = {
		node->is_switch, node->dead, node->lit,    node->level,     node->to_hosts,
		node->up,        node->down, node->failed, node->lit_links, f->links[i],
	};

	return hash_words(words, ARRAY_SIZE(words));
}

static int put_into_box(struct folding *f, uint32_t i)
{
	const struct cli_picture_node *node = &f->p->node[i];
	struct cli_picture_boxes *b = f->b;
	struct cli_picture_box *box;
	struct base_hash_node *same;

	if (folds(f, node)) {
		uint64_t number = number_of(f, node, i);

		same = base_hash_first(&b->boxes, number);
		box = same ? container_of(same, struct cli_picture_box, hash) : &b->box[b->n];
		if (!same && base_hash_add(&b->boxes, &box->hash, number))
			return -ENOMEM;
	} else {
		box = &b->box[b->n];
	}
	if (!box->n) {
		box->first = node;
		b->n++;
	}
	box->n++;
	b->of[i] = (uint32_t)(box - b->box);
	return 0;
}

/* The switches first: hosts of switches that are folded into one box are equal. */
static int fill_boxes(struct folding *f)
{
	const struct cli_picture *p = f->p;
	int ret = 0;

	for (uint32_t i = 0; i < p->n && !ret; i++)
		ret = p->node[i].is_switch ? put_into_box(f, i) : 0;
	for (uint32_t i = 0; i < p->n_links; i++)
		for (unsigned k = 0; k < 2; k++) {
			const struct cli_picture_link *l = &p->link[i];
			const uint64_t words[] = { f->b->of[l->node[!k]], l->state, l->lit };

			if (!p->node[l->node[k]].is_switch)
				f->links[l->node[k]] += hash_words(words, ARRAY_SIZE(words));
		}
	for (uint32_t i = 0; i < p->n && !ret; i++)
		ret = p->node[i].is_switch ? 0 : put_into_box(f, i);
	return ret;
}

static bool is_line_of(const struct cli_picture_line *line, uint32_t a, uint32_t b,
                       const struct cli_picture_link *l)
{
	return line->box[0] == a && line->box[1] == b && line->first->state == l->state &&
	       line->first->lit == l->lit && !line->first->circle && !l->circle;
}

static int put_into_line(struct cli_picture_boxes *b, const struct cli_picture_link *l)
{
	uint32_t x = b->of[l->node[0]], y = b->of[l->node[1]], low = x < y ? x : y;
	uint64_t number = hash_words((uint64_t[]){ low, x + y - low, l->state, l->lit }, 4);
	struct base_hash_node *n = base_hash_first(&b->lines, number);
	struct cli_picture_line *line;

	while (n &&
	       !is_line_of(container_of(n, struct cli_picture_line, hash), low, x + y - low, l))
		n = base_hash_next(n);
	line = n ? container_of(n, struct cli_picture_line, hash) : &b->line[b->n_lines];
	if (!n) {
		line->box[0] = low;
		line->box[1] = x + y - low;
		line->first = l;
		if (base_hash_add(&b->lines, &line->hash, number))
			return -ENOMEM;
		b->n_lines++;
	}
	line->n++;
	line->load = l->load > line->load ? l->load : line->load;
	return 0;
}

static int try(struct folding *f)
{
	struct cli_picture_boxes *b = f->b;
	const struct cli_picture *p = f->p;
	int ret;

	*b = (struct cli_picture_boxes){
		.box = calloc(p->n + (size_t)1, sizeof(*b->box)),
		.line = calloc(p->n_links + (size_t)1, sizeof(*b->line)),
		.of = calloc(p->n + (size_t)1, sizeof(*b->of)),
	};
	f->links = calloc(p->n + (size_t)1, sizeof(*f->links));
	ret = b->box && b->line && b->of && f->links ? fill_boxes(f) : -ENOMEM;
	free(f->links);
	for (uint32_t i = 0; i < p->n_links && !ret; i++)
		ret = put_into_line(b, &p->link[i]);
	return ret;
}

int cli_picture_fold(struct cli_picture_boxes *b, const struct cli_picture *p, unsigned most)
{
	struct folding f = { .b = b, .p = p };
	int ret = try(&f);

	while (!ret && (b->n > most || b->n_lines > most) && f.fold < FOLD_FAILED) {
		f.fold++;
		cli_picture_boxes_fini(b);
		ret = try(&f);
	}
	return ret;
}

void cli_picture_boxes_fini(struct cli_picture_boxes *b)
{
	base_hash_fini(&b->boxes);
	base_hash_fini(&b->lines);
	free(b->box);
	free(b->line);
	free(b->of);
}
