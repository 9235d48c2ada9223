/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options of commands: see options.h. They are read by getopt_long(), for which the rows become
 * what it needs.
 */
#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/help.h"
#include "cli/base/options.h"

#define MAX_OPTIONS 32
#define NO_LETTER   256 /* and the row's number: how getopt_long() calls an option without one */

/* The rows of a command as getopt_long() wants them. */
struct table {
	unsigned n;
	const struct cli_option *row[MAX_OPTIONS];
	size_t base[MAX_OPTIONS]; /* of the row's struct, in the command's */
	struct option known[MAX_OPTIONS + 1];
	char name[MAX_OPTIONS][32]; /* with the dashes */
	char letters[128];
};

/* ---- what becomes of a value ---- */

int cli_list_add(struct cli_list *list, const char *text)
{
	const char **grown = text ? realloc(list->at, (list->n + 1) * sizeof(*grown)) : NULL;

	if (!grown)
		return cli_no_memory();
	grown[list->n++] = text;
	list->at = grown;
	return 0;
}

int cli_store_flag(const struct cli_value *v, void *to)
{
	(void)v;
	*(bool *)to = true;
	return 0;
}

int cli_store_text(const struct cli_value *v, void *to)
{
	*(const char **)to = v->text;
	return 0;
}

int cli_store_list(const struct cli_value *v, void *to)
{
	return cli_list_add(to, v->text);
}

int cli_store_number(const struct cli_value *v, void *to)
{
	const struct cli_option *o = v->option;

	if (!base_parse_number(v->text, o->min, o->max, to))
		return 0;
	if (o->wrong)
		return cli_usage_error(v->cmd, "'%s' %s", v->text, o->wrong);
	return cli_usage_error(v->cmd, CLI_NO_NUMBER, v->text, o->min, o->max);
}

int cli_store_unsigned(const struct cli_value *v, void *to)
{
	long number;
	int ret = cli_store_number(v, &number);

	if (!ret)
		*(unsigned *)to = (unsigned)number;
	return ret;
}

/* ---- the rows ---- */

static void add_row(struct table *t, const struct cli_option *row, size_t base)
{
	const char *dashes = strstr(row->line, "--"), *behind = dashes + strcspn(dashes, " [");
	bool has_value = behind[0] == ' ' && behind[1] != ' ';
	char letter = row->line[2] == '-' ? row->line[3] : '\0';
	char *name;

	assert(t->n < MAX_OPTIONS);
	name = t->name[t->n];
	snprintf(name, sizeof(t->name[0]), "%.*s", (int)(behind - dashes), dashes);
	t->row[t->n] = row;
	t->base[t->n] = base;
	t->known[t->n] = (struct option){ .name = name + 2,
		                          .has_arg = *behind == '[' ? optional_argument
		                                     : has_value    ? required_argument
		                                                    : no_argument,
		                          .val = letter ? letter : NO_LETTER + (int)t->n };
	if (letter)
		sprintf(strchr(t->letters, '\0'), "%c%s", letter, has_value ? ":" : "");
	t->n++;
}

static void add_rows(struct table *t, const struct cli_option *row, size_t base)
{
	for (; row->store || row->more; row++) {
		if (row->more)
			add_rows(t, row->more, base + row->offset);
		else
			add_row(t, row, base);
	}
	if (row->line) /* that of --help */
		add_row(t, row, base);
}

void cli_print_help(const struct cli_command *cmd)
{
	struct table t = { .n = 0 };

	add_rows(&t, cmd->options, 0);
	cli_help_print(cmd->help, stdout);
	putchar('\n');
	for (unsigned i = 0; i < t.n; i++)
		cli_help_print(t.row[i]->line, stdout);
	if (!cmd->help_end)
		return;
	putchar('\n');
	cli_help_print(cmd->help_end, stdout);
}

/* ---- the command line ---- */

/* Says the error of an option: getopt_long() returned @got. */
static int refuse(const struct cli_command *cmd, int got, const char *word)
{
	if (got == ':')
		return cli_usage_error(cmd, "option '%s' needs a value", word);
	if (strncmp(word, "--", 2) || (optopt && !strchr(word, '=')))
		return cli_usage_error(cmd, "no option '-%c'", optopt);
	if (optopt)
		return cli_usage_error(cmd, "option '%.*s' takes no value", (int)strcspn(word, "="),
		                       word);
	return cli_usage_error(cmd, "no option '%s'", word);
}

/* An option that getopt_long() calls @got. */
static int take(const struct cli_command *cmd, const struct table *t, int got, void *options)
{
	struct cli_value v = { .cmd = cmd, .text = optarg };
	struct cli_list *given;
	unsigned i = 0;
	int ret;

	while (i < t->n && t->known[i].val != got)
		i++;
	if (i == t->n) /* one of cmd->ignored */
		return 0;
	v.option = t->row[i];
	if (!v.option->store) {
		cli_print_help(cmd);
		return CLI_HELPED;
	}
	ret = v.option->store(&v, (char *)options + t->base[i] + v.option->offset);
	given = v.option->given ? (void *)((char *)options + v.option->given) : NULL;
	if (!ret && given)
		ret = cli_list_add(given, strdup(t->name[i]));
	return ret || !given || !v.text ? ret : cli_list_add(given, v.text);
}

/* Whether the word is one of the options, without a value or with it. */
static bool is_option(const struct table *t, const char *word)
{
	const size_t n = strcspn(word, "=");

	for (unsigned i = 0; i < t->n; i++)
		if ((strlen(t->name[i]) == n && !strncmp(t->name[i], word, n)) ||
		    (word[0] == '-' && word[1] == t->known[i].val && !word[2]))
			return true;
	return false;
}

/* An option behind the first word, @argv[@at], would be a word as well. */
static int refuse_late(const struct cli_command *cmd, const struct table *t, int argc, char **argv,
                       int at)
{
	if (cmd->runs_words || cmd->passes_on || !strcmp(argv[at - 1], "--"))
		return 0;
	for (int i = at + 1; i < argc; i++)
		if (is_option(t, argv[i]))
			return cli_usage_error(cmd, "option '%s' goes before '%s'", argv[i],
			                       argv[at]);
	return 0;
}

/* The words behind "--", where getopt_long() ends. */
static int take_rest(const struct cli_command *cmd, int argc, char **argv, void *options)
{
	int ret = 0;

	while (!ret && optind < argc)
		ret = cmd->word(cmd, options, argv[optind++]);
	return ret;
}

int cli_read_options(const struct cli_command *cmd, int argc, char **argv, void *options)
{
	struct table t = { .n = 0 };
	int got, first, ret = 0;

	snprintf(t.letters, sizeof(t.letters), "%c:%s", cmd->word ? '-' : '+',
	         cmd->ignored ? cmd->ignored : "");
	add_rows(&t, cmd->options, 0);
	if (cmd->has_command)
		argc = cli_find_dashes(argc, argv);
	while (!ret &&
	       (first = optind, got = getopt_long(argc, argv, t.letters, t.known, NULL)) != -1) {
		if (got == '?' && cmd->passes_on) {
			optind = first;
			return 0;
		}
		if (got == 1)
			ret = cmd->word(cmd, options, optarg);
		else if (got == '?' || got == ':')
			ret = refuse(cmd, got, argv[optind - 1]);
		else
			ret = take(cmd, &t, got, options);
	}
	if (ret)
		return ret;
	return cmd->word ? take_rest(cmd, argc, argv, options)
	                 : refuse_late(cmd, &t, argc, argv, optind);
}

const struct cli_option cli_name_options[] = {
	{ CLI_NAME_LINE, CLI_TEXT(struct cli_name_options, name) },
	CLI_HELP_ROW,
};
