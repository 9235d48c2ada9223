/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Commands whose programs are checked: see checked.h.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "checked/card.h"
#include "checked/rules.h"
#include "checked/settings.h"
#include "cli/base/command.h"
#include "cli/base/environ.h"
#include "cli/base/fabrics.h"
#include "cli/base/json.h"
#include "cli/base/signals.h"
#include "cli/run/checked.h"
#include "cli/run/child.h"
#include "control/client.h"
#include "control/directory.h"

#define FOLDER ".checked-"
#define YOUNG  60 /* seconds */

static int store_mode(const struct cli_value *v, void *to)
{
	struct cli_checked *c = to;

	c->on = true;
	c->only_warns = v->text && !strcmp(v->text, "warn");
	if (v->text && !c->only_warns)
		return cli_usage_error(v->cmd, "--checked=%s: it is --checked or --checked=warn",
		                       v->text);
	return 0;
}

const struct cli_option cli_checked_rows[] = {
	{ "      --checked[=warn]  tell what the programs do wrong with verbs; errors make the "
	  "exit\n"
	  "                        status 99, unless it is --checked=warn\n",
	  .store = store_mode },
	{ "      --suppress FILE   with --checked: mistakes that are not told\n",
	  CLI_TEXT(struct cli_checked, suppressions) },
	{ "      --card CARD       with --checked: tell what this card would not do\n",
	  CLI_TEXT(struct cli_checked, card) },
	{ "      --json FILE       with --checked: the mistakes as JSON\n",
	  CLI_TEXT(struct cli_checked, json) },
	{ 0 },
};

/* ---- before ---- */

static bool is_rule(const char *pattern)
{
	for (unsigned i = 0; i < CHECKED_N_RULES; i++)
		if (!fnmatch(pattern, checked_rules[i].name, 0))
			return true;
	return false;
}

/* A line: RULE, or RULE:PATTERN; or nothing but a comment. */
static int check_line(const char *path, unsigned number, const char *line)
{
	char rule[64] = "", colon = '\0';
	int n = sscanf(line, " %63[^: \t\n#] %c", rule, &colon);

	if (n < 1 || (is_rule(rule) && (n < 2 || colon == ':' || colon == '#')))
		return 0;
	if (is_rule(rule))
		base_log("'%s', line %u: behind '%s' comes ':' and a function, file or library",
		         path, number, rule);
	else
		base_log("'%s', line %u: no rule has the name '%s'", path, number, rule);
	return CLI_USAGE;
}

static int check_suppressions(const char *path)
{
	FILE *from = fopen(path, "re");
	unsigned number = 0;
	char line[400];
	int ret = 0;

	if (!from) {
		base_log("cannot read '%s': %s", path, strerror(errno));
		return CLI_USAGE;
	}
	while (!ret && fgets(line, sizeof(line), from))
		ret = check_line(path, ++number, line);
	fclose(from);
	return ret;
}

/* If it cannot be known, the program will say why. */
void cli_checked_by_fabric(struct cli_checked *c, const char *fabric)
{
	struct json_object *status, *settings = NULL;
	struct control_client *client;
	char *text = NULL;
	int ret;

	if (c->on || getenv(CHECKED_FOLDER) || cli_connect(&client, fabric))
		return;
	ret = control_show(client, "status", &text);
	control_close(client);
	status = ret ? NULL : json_tokener_parse(text);
	free(text);
	c->on = json_object_object_get_ex(status, "settings", &settings) &&
	        cli_json_number(settings, "checked");
	json_object_put(status);
}

/* Programs may have another working directory. */
static int set_path(const char *variable, const char *path)
{
	char *all = realpath(path, NULL);
	int ret = all ? setenv(variable, all, 1) : -1;

	if (ret)
		base_log("cannot read '%s': %s", path, strerror(errno));
	free(all);
	return ret ? CLI_USAGE : 0;
}

static int set_card(const char *name)
{
	struct checked_card card;
	char why[400];

	if (!checked_card_read(name, &card, why, sizeof(why)))
		return setenv(CHECKED_CARD, card.path, 1) ? CLI_FAILED : 0;
	base_log("%s", why);
	return CLI_USAGE;
}

/* A command has a lock on its folder as long as it lives. -1: another one has. */
static int hold(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || !flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	close(fd);
	return -1;
}

/* Folders of commands that were killed. A new one is young before it has its lock. */
static void remove_left(const char *runtime)
{
	DIR *all = opendir(runtime);
	const struct dirent *e;
	char path[PATH_MAX + 300];
	struct stat of;
	int fd;

	while (all && (e = readdir(all))) {
		if (strncmp(e->d_name, FOLDER, strlen(FOLDER)))
			continue;
		snprintf(path, sizeof(path), "%s/%s", runtime, e->d_name);
		if (lstat(path, &of) || time(NULL) - of.st_mtime <= YOUNG)
			continue;
		fd = hold(path);
		if (fd < 0)
			continue;
		control_remove_dir(path);
		close(fd);
	}
	if (all)
		closedir(all);
}

static int make_folder(struct cli_checked *c)
{
	char runtime[PATH_MAX];

	if (cli_runtime_dir(runtime) || cli_make_dir(runtime))
		return CLI_FAILED;
	remove_left(runtime);
	if (snprintf(c->dir, sizeof(c->dir), "%s/" FOLDER "XXXXXX", runtime) <
	            (int)sizeof(c->dir) &&
	    mkdtemp(c->dir)) {
		hold(c->dir);
		return 0;
	}
	base_log("cannot make a directory in '%s': %s", runtime, strerror(errno));
	c->dir[0] = '\0';
	return CLI_FAILED;
}

static int touch_json(const char *path)
{
	FILE *to = fopen(path, "we");

	if (to && !fclose(to))
		return 0;
	return cli_cannot("write", path);
}

int cli_checked_begin(struct cli_checked *c, struct cli_junit *junit)
{
	int ret = 0;

	if (!c->on && !c->suppressions && !c->card && !c->json)
		return 0;
	c->on = true; /* each of them says so */
	c->junit = junit;
	if (c->suppressions)
		ret = check_suppressions(c->suppressions);
	if (!ret && c->suppressions)
		ret = set_path(CHECKED_SUPPRESSIONS, c->suppressions);
	if (!ret && c->card)
		ret = set_card(c->card);
	if (!ret && c->json)
		ret = touch_json(c->json);
	if (!ret)
		ret = make_folder(c);
	if (!ret)
		ret = cli_environ_preload(CHECKED_LIBRARY);
	if (!ret && (setenv(CHECKED_VARIABLE, "1", 1) || setenv(CHECKED_FOLDER, c->dir, 1)))
		ret = CLI_FAILED;
	return ret;
}

/* ---- after ---- */

struct sum {
	unsigned processes, wrong; /* wrong: with a report */
	unsigned n[CHECKED_N_LEVELS];
	struct json_object *reports;
};

static enum checked_level level_of(struct json_object *report)
{
	const char *name = cli_json_text(report, "level");

	for (unsigned i = 0; i < CHECKED_N_LEVELS; i++)
		if (!strcmp(name, checked_levels[i]))
			return (enum checked_level)i;
	return CHECKED_NOTE;
}

/* Where the program did it: the innermost place of its own. */
static void describe(struct json_object *report, char *text, size_t room)
{
	struct json_object *places = NULL, *frames = NULL, *frame;

	snprintf(text, room, "%s", cli_json_text(report, "rule"));
	if (!json_object_object_get_ex(report, "places", &places) || !cli_json_count(places) ||
	    !json_object_object_get_ex(cli_json_at(places, 0), "frames", &frames) ||
	    !cli_json_count(frames))
		return;
	frame = cli_json_at(frames, 0);
	if (*cli_json_text(frame, "file"))
		snprintf(text, room, "%s at %s:%ld", cli_json_text(report, "rule"),
		         cli_json_text(frame, "file"), cli_json_number(frame, "line"));
}

/* The program's standard error was closed, or another file by then. */
static void tell_unread(struct json_object *report, const char *name)
{
	base_log("%s, in process %ld (%s), whose standard error is closed or another file: %s; %s",
	         cli_json_text(report, "level"), cli_json_number(report, "pid"),
	         cli_json_text(report, "program"), name, cli_json_text(report, "text"));
}

static void add_report(struct cli_checked *c, struct sum *s, const char *line)
{
	struct json_object *report = json_tokener_parse(line), *is_read;
	enum checked_level level;
	char name[600];

	if (!report)
		return;
	level = level_of(report);
	s->n[level]++;
	describe(report, name, sizeof(name));
	if (json_object_object_get_ex(report, "read", &is_read) &&
	    !json_object_get_boolean(is_read))
		tell_unread(report, name);
	if (c->junit)
		cli_junit_case(c->junit, "umbel.checked", name, 0,
		               level == CHECKED_ERROR && !c->only_warns ? CLI_JUNIT_FAILED
		                                                        : CLI_JUNIT_PASSED,
		               cli_json_text(report, "text"));
	json_object_array_add(s->reports, report);
}

static void read_reports(struct cli_checked *c, struct sum *s, const char *name)
{
	char path[PATH_MAX + 300], *line = NULL;
	const unsigned before = (unsigned)json_object_array_length(s->reports);
	size_t room = 0;
	FILE *from;

	snprintf(path, sizeof(path), "%s/%s", c->dir, name);
	from = fopen(path, "re");
	if (!from)
		return;
	s->processes++;
	while (getline(&line, &room, from) > 0)
		add_report(c, s, line);
	s->wrong += json_object_array_length(s->reports) > before;
	free(line);
	fclose(from);
}

static void read_all(struct cli_checked *c, struct sum *s)
{
	DIR *dir = opendir(c->dir);
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			read_reports(c, s, e->d_name);
	if (dir)
		closedir(dir);
}

static const char *s_of(unsigned n)
{
	return n == 1 ? "" : "s";
}

static void tell(const struct sum *s)
{
	if (!s->processes)
		base_log("checked: no process has opened an RDMA device");
	else if (!s->wrong)
		base_log("checked: nothing is wrong in %u process%s", s->processes,
		         s->processes == 1 ? "" : "es");
	else
		base_log("checked: %u error%s, %u warning%s, %u note%s in %u of %u process%s",
		         s->n[CHECKED_ERROR], s_of(s->n[CHECKED_ERROR]), s->n[CHECKED_WARNING],
		         s_of(s->n[CHECKED_WARNING]), s->n[CHECKED_NOTE], s_of(s->n[CHECKED_NOTE]),
		         s->wrong, s->processes, s->processes == 1 ? "" : "es");
}

static int write_json(const char *path, struct sum *s)
{
	if (!json_object_to_file_ext(path, s->reports, JSON_C_TO_STRING_PRETTY))
		return 0;
	return cli_cannot("write", path);
}

int cli_checked_end(struct cli_checked *c, int status)
{
	struct sum s = { 0 };
	int ret = 0;

	if (!*c->dir)
		return status;
	s.reports = json_object_new_array();
	read_all(c, &s);
	tell(&s);
	if (c->json)
		ret = write_json(c->json, &s);
	json_object_put(s.reports);
	control_remove_dir(c->dir);
	if (s.n[CHECKED_ERROR] && !c->only_warns && status != CLI_FABRIC_FAILED)
		return CLI_CHECKED_ERRORS;
	return status ? status : ret;
}

/* ---- a command of its own ---- */

int cli_checked_exec(struct cli_checked *c, char **argv)
{
	const pid_t self = getpid();
	struct cli_child child = { 0 };
	sigset_t old;
	int ret;

	child.signal_fd = cli_signals_open_all(&old);
	if (child.signal_fd < 0)
		return CLI_FAILED;
	switch (cli_child_fork(&child)) {
	case -1:
		ret = CLI_FAILED;
		break;
	case 0:
		/* a signal that kills umbel is for the program */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigprocmask(SIG_SETMASK, &old, NULL);
		_exit(getppid() == self ? cli_exec_command(argv) : CLI_FAILED);
	default:
		ret = cli_child_wait(&child);
		break;
	}
	ret = cli_checked_end(c, ret);
	close(child.signal_fd);
	return ret;
}
