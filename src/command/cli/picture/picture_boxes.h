/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Boxes and lines of a picture: nodes and links, of which equal ones are folded into one if else
 * there were too many to look at. Single-threaded.
 */
#ifndef CLI_PICTURE_BOXES_H
#define CLI_PICTURE_BOXES_H

#include "cli/picture/picture.h"

/* One node, or some that are equal. */
struct cli_picture_box {
	struct base_hash_node hash;
	const struct cli_picture_node *first; /* of them */
	uint32_t n;
};

/* The links of one state between two boxes. */
struct cli_picture_line {
	struct base_hash_node hash;
	uint32_t box[2];                      /* the lower index first */
	const struct cli_picture_link *first; /* of them */
	uint32_t n;
	uint64_t load; /* the most that one of them carries */
};

struct cli_picture_boxes {
	struct cli_picture_box *box;
	struct cli_picture_line *line;
	uint32_t *of; /* by node: its box */
	uint32_t n, n_lines;
	struct base_hash boxes, lines;
};

/*
 * Folds as little as leaves @most boxes and lines, in this order: the hosts of a switch; switches
 * that are not lit; those that are; those with links that have failed. Switches are equal if they
 * are on one level with as many hosts and links up and down; those that are linked on one level, as
 * in a torus, the ends of a path, and those of links that wait for each other stay. 0 or -ENOMEM;
 * the second function is due in any case.
 */
int cli_picture_fold(struct cli_picture_boxes *b, const struct cli_picture *p, unsigned most);
void cli_picture_boxes_fini(struct cli_picture_boxes *b);

#endif
