/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The features of a card, read from a small text file. Each line has a key and its values; '#'
 * begins a comment. Known cards have files in share/umbel/cards. The command reads a card before a
 * program starts, to report a mistake in the file. The checker reads it again in the program. These
 * functions have no state.
 */
#ifndef CHECKED_CARD_H
#define CHECKED_CARD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits, as ibv_query_device(3) names them; inline data of other types than UD, and of UD. */
#define CHECKED_LIMITS(X) \
	X(max_qp_wr)      \
	X(max_sge)        \
	X(max_sge_rd)     \
	X(max_cqe)        \
	X(max_srq_wr)     \
	X(max_srq_sge) X(max_inline_data) X(max_inline_data_ud) X(max_qp_rd_atom) X(max_dm_size)

enum checked_qp_types { CHECKED_RC = 1, CHECKED_UC = 2, CHECKED_UD = 4, CHECKED_XRC = 8 };

enum checked_features {
	CHECKED_HAS_WINDOWS = 1,
	CHECKED_HAS_ON_DEMAND = 2, /* paging */
	CHECKED_HAS_WR_API = 4,    /* ibv_wr_start() */
	CHECKED_HAS_CQ_EX = 8,
};

struct checked_card {
	char path[PATH_MAX]; /* of its file, from the root on */
	char title[64];
#define LIMIT(name) uint32_t name;
	CHECKED_LIMITS(LIMIT)
#undef LIMIT
	uint32_t qp_types;   /* enum checked_qp_types, ORed */
	uint32_t operations; /* bits by enum ibv_wr_opcode */
	uint32_t features;   /* enum checked_features, ORed */
	uint32_t wc_flags;   /* of extended completion queues: enum ibv_create_cq_wc_flags, ORed */
};

/*
 * Reads a known card, or, if @name has a slash, a file. 0; -ENOENT: there is none; -EINVAL: it says
 * something else than a card; -errno. @why: a sentence that says what is wrong, and where.
 */
int checked_card_read(const char *name, struct checked_card *card, char *why, size_t len);

#endif
