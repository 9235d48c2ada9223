/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * umbel-litmus: runs litmus tests of RDMA on the fabric that it finds, and says which outcomes were
 * seen. `umbel litmus` runs it on a strong and on a weak fabric.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "litmus/litmus.h"

#define ROUNDS 10000

static const char help[] =
        "Usage: umbel litmus [OPTION]... [TEST]...\n"
        "       umbel-litmus [OPTION]... [TEST]...     on the fabric that it finds\n"
        "\n"
        "Runs litmus tests of RDMA: short programs, and which outcomes the specification\n"
        "allows.\n"
        "\n"
        "  -l, --list        the tests, and what each shows\n"
        "  -n, --rounds N    so often each (default: 10000)\n"
        "  -s, --seed N      of the order in which threads have their turns (default: 1)\n"
        "      --strong      outcomes that only a weak fabric shows are failures, too\n"
        "      --weak        outcomes that were not seen are failures, too\n"
        "      --table       as a table of Markdown\n"
        "  -h, --help        this text\n"
        "  -V, --version     the version\n"
        "\n"
        "Exit status: 0; 1 if an outcome is not allowed, or a call failed; 2 if it cannot\n"
        "run.\n";

struct options {
	bool lists, is_strong, is_weak, table;
	uint64_t rounds, seed;
};

static const char *const kinds[] = { "allowed", "allowed", "never" };

static bool is_wrong(const struct options *o, enum litmus_kind kind, uint64_t seen)
{
	if (kind == LITMUS_NEVER || (kind == LITMUS_WEAK && o->is_strong))
		return seen;
	return !seen && (o->is_weak || (o->is_strong && kind == LITMUS_STRONG));
}

static void print_state(const struct litmus_state *s)
{
	printf("   ");
	for (unsigned i = 0; i < LITMUS_REGISTERS; i++)
		printf(" r%u=%" PRIu64, i, s->reg[i]);
	for (unsigned i = 0; i < LITMUS_NODES * LITMUS_WORDS; i++)
		if (s->word[i])
			printf(" %c.%u=%" PRIu64, 'A' + i / LITMUS_WORDS, i % LITMUS_WORDS,
			       s->word[i]);
	printf("\n");
}

/* Whether the outcomes are right. */
static bool print_result(const struct options *o, const struct litmus *t,
                         const struct litmus_result *r)
{
	bool ok = !r->other && !*r->failed;

	for (unsigned i = 0; i < LITMUS_OUTCOMES && t->outcome[i].is; i++)
		ok &= !is_wrong(o, t->outcome[i].kind, r->seen[i]);
	printf("%-24s %s\n", t->name, ok ? "ok" : "WRONG");
	for (unsigned i = 0; i < LITMUS_OUTCOMES && t->outcome[i].is; i++)
		printf("    %-28s %-8s %8" PRIu64 "%s\n", t->outcome[i].is,
		       kinds[t->outcome[i].kind], r->seen[i],
		       is_wrong(o, t->outcome[i].kind, r->seen[i])
		               ? r->seen[i] ? "  must not be" : "  was not seen"
		               : "");
	if (r->other) {
		printf("    another outcome %*s %8" PRIu64 "  must not be\n", 20, "", r->other);
		print_state(&r->an_other);
	}
	if (*r->failed)
		printf("    %s\n", r->failed);
	fflush(stdout);
	return ok;
}

/* A bar would end the cell. */
static void print_cell(const char *text)
{
	for (; *text; text++)
		printf(*text == '|' ? "\\%c" : "%c", *text);
}

static void print_row(const struct litmus *t)
{
	printf("| `%s` | %s | `", t->name, t->shows);
	print_cell(t->program);
	printf("` |");
	for (enum litmus_kind kind = LITMUS_STRONG; kind <= LITMUS_NEVER; kind++) {
		const char *comma = " ";

		for (unsigned i = 0; i < LITMUS_OUTCOMES && t->outcome[i].is; i++) {
			if (t->outcome[i].kind != kind)
				continue;
			printf("%s%s", comma, t->outcome[i].is);
			comma = ", ";
		}
		printf(" |");
	}
	printf(" %s |\n", t->source);
}

static void print_list(const struct options *o)
{
	if (o->table)
		printf("| Test | Shows | Program | Everywhere | Weak | Never | Source |\n"
		       "|---|---|---|---|---|---|---|\n");
	for (unsigned i = 0; i < litmus_n; i++) {
		if (o->table)
			print_row(&litmus_table[i]);
		else
			printf("%-24s %s\n", litmus_table[i].name, litmus_table[i].shows);
	}
}

static bool is_wanted(const char *name, char **names, int n)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return true;
	return !n;
}

static int run_all(const struct options *o, char **names, int n)
{
	struct litmus_world *w = litmus_world_new();
	struct litmus_result r;
	unsigned ran = 0, wrong = 0;

	if (!w)
		return 2;
	for (unsigned i = 0; i < litmus_n; i++) {
		if (!is_wanted(litmus_table[i].name, names, n))
			continue;
		litmus_run(w, &litmus_table[i], o->rounds, o->seed, &r);
		wrong += !print_result(o, &litmus_table[i], &r);
		ran++;
		if (*r.failed) /* queue pairs may be in error */
			break;
	}
	litmus_world_free(w);
	if (!ran)
		fprintf(stderr, "umbel-litmus: there is no such test (umbel-litmus --list)\n");
	printf("%u test%s, %u wrong\n", ran, ran == 1 ? "" : "s", wrong);
	return !ran ? 2 : wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
	enum { STRONG = 256, WEAK, TABLE };
	static const struct option names[] = {
		{ "list", no_argument, NULL, 'l' },
		{ "rounds", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 's' },
		{ "strong", no_argument, NULL, STRONG },
		{ "weak", no_argument, NULL, WEAK },
		{ "table", no_argument, NULL, TABLE },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { .rounds = ROUNDS, .seed = 1 };
	int c;

	while ((c = getopt_long(argc, argv, "ln:s:hV", names, NULL)) != -1) {
		switch (c) {
		case 'l':
			o.lists = true;
			break;
		case 'n':
			o.rounds = strtoull(optarg, NULL, 10);
			break;
		case 's':
			o.seed = strtoull(optarg, NULL, 10);
			break;
		case STRONG:
			o.is_strong = true;
			break;
		case WEAK:
			o.is_weak = true;
			break;
		case TABLE:
			o.table = o.lists = true;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		case 'V':
			printf("umbel-litmus %s\n", UMBEL_VERSION);
			return 0;
		default:
			fprintf(stderr, "umbel-litmus: see umbel-litmus --help\n");
			return 2;
		}
	}
	if (o.lists) {
		print_list(&o);
		return 0;
	}
	return run_all(&o, argv + optind, argc - optind);
}
