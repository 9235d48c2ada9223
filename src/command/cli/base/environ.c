/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The environment in which an unmodified program finds our libraries before the
 * system's, and in which they find their fabric: see environ.h. Called by `umbel exec`
 * and `umbel run` just before exec().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/environ.h"
#include "cli/base/fabrics.h"
#include "cli/base/json.h"
#include "cli/base/program.h"
#include "control/client.h"
#include "control/path.h"
#include "hosts/namespaces.h"
#include "hosts/processors.h"

/* Puts @first in front of a list with such separators, if it is not in front already. */
static int prepend_to(const char *variable, const char *first, char separator)
{
	const char *old = getenv(variable);
	size_t len = strlen(first);
	char *list;
	int ret;

	if (!old || !*old)
		return setenv(variable, first, 1);
	if (!strncmp(old, first, len) && (old[len] == separator || old[len] == '\0'))
		return 0;
	if (asprintf(&list, "%s%c%s", first, separator, old) < 0)
		return -1;
	ret = setenv(variable, list, 1);
	free(list);
	return ret;
}

/* The same of a list with colons, such as PATH. */
static int prepend(const char *variable, const char *first)
{
	return prepend_to(variable, first, ':');
}

/*
 * The directories of this program and of the libraries, which are in ../lib/umbel from here, both
 * in a build and installed. 0 or CLI_FAILED.
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

/* Whether PATH finds this umbel. Then it stays as it is: other programs in our directory, such as
 * all of /usr/bin, must not come before those that the user prefers. */
static bool is_on_path(void)
{
	const char *dir = getenv("PATH"), *end;
	struct stat self, found;
	char path[PATH_MAX];

	if (!dir || stat("/proc/self/exe", &self))
		return false;
	for (;; dir = end + 1) {
		end = strchrnul(dir, ':');
		snprintf(path, sizeof(path), "%.*s/umbel", (int)(end - dir), dir);
		if (end > dir && !access(path, X_OK) && !stat(path, &found) &&
		    S_ISREG(found.st_mode))
			return found.st_dev == self.st_dev && found.st_ino == self.st_ino;
		if (!*end)
			return false;
	}
}

/*
 * The library that gives a program the files of RDMA devices in /sys and /dev. In LD_PRELOAD a
 * blank or colon ends a name, so a path that has one cannot be said there.
 */
static int set_sysfs(const char *lib)
{
#ifdef UMBEL_NO_SYSFS
	(void)lib;
	return 0;
#else
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/libumbel-sysfs.so", lib) < (int)sizeof(path) &&
	    !access(path, R_OK) && !strpbrk(path, " :"))
		return prepend("LD_PRELOAD", path);
	base_log_warning(sysfs, "'%s' cannot be preloaded: programs see no RDMA devices in /sys",
	                 path);
	return 0;
#endif
}

int cli_environ_preload(const char *library)
{
	char bin[PATH_MAX], lib[PATH_MAX], path[PATH_MAX + 32];

	if (find_dirs(bin, lib))
		return CLI_FAILED;
	snprintf(path, sizeof(path), "%s/%s", lib, library);
	if (!access(path, R_OK) && !strpbrk(path, " :") && !prepend("LD_PRELOAD", path))
		return 0;
	base_log("'%s' cannot be preloaded", path);
	return CLI_FAILED;
}

#ifdef UMBEL_SANITIZER_PRELOAD
/* Our libraries are instrumented and the program is not, so the sanitizers' runtime must be loaded
 * first. The program's own leaks are not reported. */
static int set_sanitizer(void)
{
	if (prepend("LD_PRELOAD", UMBEL_SANITIZER_PRELOAD))
		return -1;
	return setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
}
#else
/* A program with AddressSanitizer ends if a library is loaded before its runtime, such as ours that
 * is preloaded; with this option it goes on. The user's own options come later and count more. */
static int set_sanitizer(void)
{
	return prepend("ASAN_OPTIONS", "verify_asan_link_order=0");
}
#endif

#ifdef __SANITIZE_THREAD__
/* Here it is our libraries that are looked at. */
static int set_race_checkers(const char *lib)
{
	(void)lib;
	return 0;
}
#else
/* Names a file of suppressions in the options of a tool, unless its path would be read as several.
 */
static int suppress(const char *variable, const char *option, const char *lib, const char *file,
                    char separator)
{
	char path[PATH_MAX], text[PATH_MAX + 32];

	if (snprintf(path, sizeof(path), "%s/%s", lib, file) >= (int)sizeof(path) ||
	    access(path, R_OK) || strpbrk(path, " ,:'\""))
		return 0;
	snprintf(text, sizeof(text), "%s=%s", option, path);
	return prepend_to(variable, text, separator);
}

/*
 * Tools that look for races of a program see our libraries copy what a card copies unseen, and not
 * by what these order it. ThreadSanitizer reads one file: if the user names one, that counts, as it
 * comes later.
 */
static int set_race_checkers(const char *lib)
{
	return suppress("TSAN_OPTIONS", "suppressions", lib, "tsan.supp", ':') ||
	       suppress("VALGRIND_OPTS", "--suppressions", lib, "valgrind.supp", ' ');
}
#endif

#define OPENSM_DIR CONTROL_STAND_INS "/.opensm-"

static int set_for_opensm(const char *variable, const char *value)
{
	const char *old = getenv(variable);

	if (old && *old && !strstr(old, "/" OPENSM_DIR))
		return 0; /* the user's */
	return value ? setenv(variable, value, 1) : unsetenv(variable);
}

/*
 * OpenSM knows the LIDs of a subnet again by files of the machine, which would be those of another
 * fabric. Here they are the host's, beside the stand-ins of src/client/sysfs, which go with the
 * fabric. OpenSM makes OSM_CACHE_DIR itself. A fabric of another user stays as it is: there root
 * would write where that user may put links.
 */
static int set_opensm(const char *fabric, const char *host)
{
	char base[PATH_MAX], path[PATH_MAX + CONTROL_HOST_ROOM + 16], *dir = NULL;
	struct stat st;

	if (!control_path(base, sizeof(base), fabric, NULL) && !stat(base, &st) &&
	    st.st_uid == geteuid()) {
		dir = path;
		snprintf(path, sizeof(path), "%s/" CONTROL_STAND_INS, base);
		if (!mkdir(path, 0700))
			chmod(path, 0755); /* as stand-ins are, whatever the umask is */
		snprintf(path, sizeof(path), "%s/" OPENSM_DIR "%.64s", base, host ? host : "all");
	}
	if (set_for_opensm("OSM_CACHE_DIR", dir))
		return -1;
	return set_for_opensm("OSM_TMP_DIR", dir ? getenv("OSM_CACHE_DIR") : NULL);
}

/* Locked memory without a limit, as machines with RDMA cards are set up, or as much as may be.
 * Umbel locks none, but programs look at the limit first. */
static void raise_locked_memory(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	if (!setrlimit(RLIMIT_MEMLOCK, &limit) || getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &limit);
}

int cli_environ_set(const char *fabric, const char *host)
{
	char bin[PATH_MAX], lib[PATH_MAX], runtime[PATH_MAX];
	int ret;

	raise_locked_memory();

	if (find_dirs(bin, lib) || cli_runtime_dir(runtime))
		return CLI_FAILED;
	ret = (!is_on_path() && prepend("PATH", bin)) || prepend("LD_LIBRARY_PATH", lib) ||
	      set_sysfs(lib) || set_sanitizer() || set_race_checkers(lib) ||
	      setenv("UMBEL_RUNTIME_DIR", runtime, 1) || set_opensm(fabric, host) ||
	      setenv("UMBEL_FABRIC", fabric, 1) ||
	      (host ? setenv("UMBEL_HOST", host, 1) : unsetenv("UMBEL_HOST")) ||
	      /* an empty one says that we come from a host with a network of its own */
	      (getenv("UMBEL_HOST_IS_NAME") && setenv("UMBEL_HOST_IS_NAME", "", 1));
	if (ret) {
		base_log("cannot set the environment: %s", strerror(errno));
		return CLI_FAILED;
	}
	return 0;
}

bool cli_has_network(const char *fabric, const char *host)
{
	struct control_enter_host_reply about;
	struct control_client *client;
	int fd[CONTROL_MAX_FDS], ret = cli_connect_host(&client, fabric, host);

	if (ret)
		return false;
	ret = control_enter_host(client, &about, fd);
	control_close(client);
	for (unsigned i = 0; !ret && i < CONTROL_MAX_FDS; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return !ret;
}

int cli_enter_host(const char *fabric, const char *host, bool must)
{
	struct control_enter_host_reply about;
	struct hosts_namespaces ns;
	struct control_client *client;
	int fd[CONTROL_MAX_FDS], ret = cli_connect_host(&client, fabric, host);

	if (ret)
		return ret;
	ret = control_enter_host(client, &about, fd);
	control_close(client);
	if (ret == -EOPNOTSUPP && must)
		base_log("the hosts of fabric '%s' have no network of their own; it takes: umbel "
		         "up --ipoib or --roce-hosts",
		         fabric);
	if (ret == -EOPNOTSUPP)
		return must ? CLI_FAILED : 0;
	if (!ret) {
		ns = (struct hosts_namespaces){
			.net = fd[0], .uts = fd[1], .mnt = fd[2], .user = fd[3]
		};
		ret = hosts_namespaces_enter(&ns);
		hosts_namespaces_close(&ns);
		if (ns.user >= 0)
			close(ns.user);
	}
	if (!ret && hosts_processors_limit(about.host, about.cpus, getenv("UMBEL_HOST_IS_NAME")))
		base_log_warning(hosts, "host '%s' has all processors: it cannot be limited", host);
	if (!ret)
		return setenv("UMBEL_HOST_IS_NAME", "1", 1) ? CLI_FAILED : 0;
	base_log("cannot go to the network of host '%s': %s; 'umbel exec --net host' stays on this "
	         "one",
	         host, strerror(-ret));
	return CLI_FAILED;
}

int cli_exec_command(char **argv)
{
	cli_program_explain(argv[0]);
	execvp(argv[0], argv);
	base_log("cannot run '%s': %s", argv[0], strerror(errno));
	return errno == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN;
}

void cli_exec_own(const char *fabric, const char *host, char **argv)
{
	char bin[PATH_MAX], lib[PATH_MAX], path[PATH_MAX + 32];

	if (find_dirs(bin, lib) || cli_environ_set(fabric, host))
		return;
	snprintf(path, sizeof(path), "%s/%s", bin, argv[0]);
	execv(path, argv);
	base_log("cannot run '%s': %s", path, strerror(errno));
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

static int no_such_host(const char *name, const char *host)
{
	struct json_object *hosts;
	char *list = NULL;
	size_t size;
	FILE *to;
	int ret = cli_ask(name, "hosts", &hosts);

	if (ret)
		return ret;
	to = open_memstream(&list, &size);
	if (to) {
		print_hosts(hosts, to);
		fclose(to);
	}
	base_log("no host '%s' in fabric '%s': it has %s", host, name, list ? list : "others");
	free(list);
	json_object_put(hosts);
	return CLI_FAILED;
}

int cli_check_host(const char *name, const char *host)
{
	struct control_client *client;
	int ret = cli_connect_host(&client, name, host);

	if (!ret)
		control_close(client);
	return ret == CLI_NO_HOST ? no_such_host(name, host) : ret;
}
