/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The environment in which an unmodified program finds our libraries before the
 * system's, and they find their fabric. Called by `umbel exec` and `umbel run`
 * just before the program takes the process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"
#include "control/client.h"

/* Puts @first at the front of a list as PATH is one, if it is not there already. */
static int prepend(const char *variable, const char *first)
{
	const char *old = getenv(variable);
	size_t len = strlen(first);
	char *list;
	int ret;

	if (!old || !*old)
		return setenv(variable, first, 1);
	if (!strncmp(old, first, len) && (old[len] == ':' || old[len] == '\0'))
		return 0;
	if (asprintf(&list, "%s:%s", first, old) < 0)
		return -1;
	ret = setenv(variable, list, 1);
	free(list);
	return ret;
}

/*
 * The directories of this program and of the libraries: ../lib/umbel from here, built or
 * installed. 0 or CLI_FAILED.
 */
static int find_dirs(char bin[static PATH_MAX], char lib[static PATH_MAX])
{
	char path[PATH_MAX + 32];
	ssize_t n = readlink("/proc/self/exe", bin, PATH_MAX - 1);

	if (n < 0) {
		base_log("cannot tell where umbel is: %s", strerror(errno));
		return CLI_FAILED;
	}
	bin[n] = '\0';
	*strrchr(bin, '/') = '\0';
	snprintf(path, sizeof(path), "%s/../lib/umbel", bin);
	if (!realpath(path, lib)) {
		base_log("no libraries in '%s': %s", path, strerror(errno));
		return CLI_FAILED;
	}
	return 0;
}

#ifdef UMBEL_SANITIZER_PRELOAD
/* Our libraries are instrumented, the program is not: the runtime must come first, and what
 * the program itself leaks is not our business. */
static int set_sanitizer(void)
{
	if (prepend("LD_PRELOAD", UMBEL_SANITIZER_PRELOAD))
		return -1;
	return setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
}
#else
static int set_sanitizer(void)
{
	return 0;
}
#endif

int cli_environ_set(const char *fabric, const char *host)
{
	char bin[PATH_MAX], lib[PATH_MAX], runtime[PATH_MAX];
	int ret;

	if (find_dirs(bin, lib) || cli_runtime_dir(runtime))
		return CLI_FAILED;
	ret = prepend("PATH", bin) || prepend("LD_LIBRARY_PATH", lib) || set_sanitizer() ||
	      setenv("UMBEL_RUNTIME_DIR", runtime, 1) || setenv("UMBEL_FABRIC", fabric, 1) ||
	      (host ? setenv("UMBEL_HOST", host, 1) : unsetenv("UMBEL_HOST"));
	if (ret) {
		base_log("cannot set the environment: %s", strerror(errno));
		return CLI_FAILED;
	}
	return 0;
}

int cli_exec_command(char **argv)
{
	execvp(argv[0], argv);
	base_log("cannot run '%s': %s", argv[0], strerror(errno));
	return errno == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN;
}

/* "h1 h2 h3", or "h1…h64" where there are many. */
static void print_hosts(struct json_object *hosts, FILE *to)
{
	size_t n = json_object_array_length(hosts);
	const size_t few = 8;

	for (size_t i = 0; i < n; i++) {
		if (n > few && i > 0 && i < n - 1)
			continue;
		fprintf(to, "%s%s",
		        i == 0    ? ""
		        : n > few ? "…"
		                  : " ",
		        cli_json_text(json_object_array_get_idx(hosts, i), "name"));
	}
}

static int no_such_host(struct json_object *hosts, const char *name, const char *host)
{
	char *list = NULL;
	size_t size;
	FILE *to = open_memstream(&list, &size);

	if (to) {
		print_hosts(hosts, to);
		fclose(to);
	}
	base_log("no host '%s' in fabric '%s': it has %s", host, name, list ? list : "others");
	free(list);
	return CLI_FAILED;
}

int cli_check_host(const char *name, const char *host)
{
	struct control_client *client;
	struct json_object *hosts;
	int ret;

	ret = cli_connect(&client, name);
	if (ret)
		return ret;
	hosts = host ? cli_ask(client, "hosts") : NULL;
	control_close(client);
	if (!host)
		return 0;
	if (!hosts)
		return CLI_FAILED;
	for (size_t i = 0; i < json_object_array_length(hosts); i++) {
		if (!strcmp(cli_json_text(json_object_array_get_idx(hosts, i), "name"), host))
			goto out;
	}
	ret = no_such_host(hosts, name, host);
out:
	json_object_put(hosts);
	return ret;
}
