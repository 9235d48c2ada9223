/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Running dot: see graphviz.h. Called by show_picture.c. Its input and its output are files in
 * memory, so neither of both programs waits for the other one, and nothing is written before the
 * picture is whole.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/base/file.h"
#include "cli/picture/graphviz.h"

extern char **environ;

/* Starts dot. 0 or an errno. */
static int start(pid_t *pid, int from, int to, const char *format)
{
	char option[16];
	char *argv[] = { "dot", option, NULL };
	posix_spawn_file_actions_t actions;
	int ret;

	snprintf(option, sizeof(option), "-T%s", format);
	ret = posix_spawn_file_actions_init(&actions);
	if (ret)
		return ret;
	ret = posix_spawn_file_actions_adddup2(&actions, from, STDIN_FILENO);
	if (!ret)
		ret = posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
	if (!ret)
		ret = posix_spawnp(pid, "dot", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return ret;
}

/* Runs it until it ends. 0 or -1. */
static int run(int from, int to, const char *format)
{
	int status, error;
	pid_t pid;

	error = start(&pid, from, to, format);
	if (error == ENOENT)
		base_log("there is no 'dot' to draw with: install Graphviz (package graphviz), or "
		         "take --dot");
	else if (error)
		base_log("cannot run 'dot': %s", strerror(error));
	if (error)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR) {
			base_log("cannot wait for 'dot': %s", strerror(errno));
			return -1;
		}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status))
		base_log("'dot' fails with status %d", WEXITSTATUS(status));
	else
		base_log("'dot' is ended by signal %d", WTERMSIG(status));
	return -1;
}

int cli_graphviz(const char *dot, size_t bytes, const char *format)
{
	const struct cli_file text = { .text = (char *)dot, .bytes = bytes };
	int from = cli_file_fd(&text), to = memfd_create("umbel-picture", MFD_CLOEXEC), ret = -1;

	if (from < 0 || to < 0)
		base_log("cannot draw: %s", strerror(from < 0 ? -from : errno));
	else
		ret = run(from, to, format);
	if (!ret && lseek(to, 0, SEEK_SET) < 0) {
		base_log("cannot draw: %s", strerror(errno));
		ret = -1;
	}
	if (from >= 0)
		close(from);
	if (ret && to >= 0)
		close(to);
	return ret ? -1 : to;
}
