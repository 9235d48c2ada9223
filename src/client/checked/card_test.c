/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <harness.h>
#include <infiniband/verbs.h>

#include "checked/card.h"

#define NUMBERS                                                                              \
	"max_qp_wr 100\nmax_sge 4\nmax_sge_rd 3\nmax_cqe 200\nmax_srq_wr 0\nmax_srq_sge 0\n" \
	"max_inline_data 64\nmax_qp_rd_atom 1\nmax_dm_size 0\n"
#define LISTS "qp_types RC UD\noperations SEND ATOMIC\nfeatures\ncompletions IMM\n"

/* The status of reading @text; what is wrong in @why. */
static int read_text(const char *text, struct checked_card *card, char *why, size_t len)
{
	char path[] = "./card.XXXXXX";
	int fd = mkstemp(path), ret;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	ret = checked_card_read(path, card, why, len);
	unlink(path);
	return ret;
}

CASE(a_card_is_read)
{
	struct checked_card card;
	char why[200] = "";

	assert_int_equal(read_text("# a comment\n\ntitle A card # of ours\n" NUMBERS LISTS, &card,
	                           why, sizeof(why)),
	                 0);
	assert_string_equal(card.title, "A card ");
	assert_int_equal(card.path[0], '/');
	assert_int_equal(card.max_qp_wr, 100);
	assert_int_equal(card.max_sge_rd, 3);
	assert_int_equal(card.max_inline_data_ud, 64); /* it is the other one, if not said */
	assert_int_equal(card.qp_types, CHECKED_RC | CHECKED_UD);
	assert_int_equal(card.operations, 1u << IBV_WR_SEND | 1u << IBV_WR_ATOMIC_CMP_AND_SWP |
	                                          1u << IBV_WR_ATOMIC_FETCH_AND_ADD);
	assert_int_equal(card.features, 0);
	assert_int_equal(card.wc_flags, IBV_WC_EX_WITH_IMM);
}

CASE(a_mistake_is_told_with_its_line)
{
	static const struct {
		const char *text, *why;
	} of[] = {
		{ "max_qp_wr many\n", ":1: this is no number: 'many'" },
		{ "max_qp_wr -1\n", ":1: this is no number: '-1'" },
		{ "max_qp_wr\n", ":1: this is no number: ''" },
		{ "max_qp_wr 4294967296\n", ":1: this is no number: '4294967296'" },
		{ "\nmax_qps 1\n", ":2: unknown key 'max_qps'" },
		{ "max_sge 1\nmax_sge 1\n", ":2: once more 'max_sge'" },
		{ "qp_types RC RD\n", ":1: unknown word 'RD'" },
		{ "", ":0: there is no 'max_qp_wr'" },
		{ NUMBERS "qp_types RC\n", ":10: there is no 'operations'" },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct checked_card card;
		char why[200] = "";

		assert_int_equal(read_text(of[i].text, &card, why, sizeof(why)), -EINVAL);
		assert_non_null(strchr(why, ':'));
		assert_string_equal(strchr(why, ':'), of[i].why);
	}
}

CASE(a_long_line_is_a_mistake)
{
	struct checked_card card;
	char text[2000], why[200];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	assert_int_equal(read_text(text, &card, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "too long"));
}

CASE(an_unknown_card_is_told)
{
	struct checked_card card;
	char why[200];

	assert_int_equal(checked_card_read("connectx-99", &card, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "'connectx-99'"));
	assert_int_equal(checked_card_read("", &card, why, sizeof(why)), -ENOENT);
	assert_int_equal(checked_card_read("./nowhere", &card, why, sizeof(why)), -ENOENT);
	assert_int_equal(checked_card_read("/", &card, why, sizeof(why)), -EIO);
}
