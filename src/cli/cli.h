/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the commands of `umbel` share: how a command describes itself to main.c,
 * how it complains about its arguments, and how it finds and asks a fabric.
 * Single-threaded. Every function that can fail has printed its one line to
 * standard error before it says so.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct control_client;
struct json_object;

enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_FABRIC_FAILED = 125, /* umbel run: not the command but its fabric failed */
	CLI_CANNOT_RUN = 126,    /* as a shell has them */
	CLI_NOT_FOUND = 127,
};

enum {
	CLI_HOSTS_DEFAULT = 4,
	CLI_HOSTS_MAX = 4096,
	CLI_RADIX_DEFAULT = 36,
	CLI_NAME_MAX = 32,
	CLI_MEMBER_MAX = 96, /* longest path below the runtime directory */
};

/* One command. @run gets argv[0] = the command's name and returns the exit status. */
struct cli_command {
	const char *name;
	const char *summary; /* NULL: not listed */
	const char *help;
	int (*run)(const struct cli_command *self, int argc, char **argv);
};

extern const struct cli_command cli_link, cli_switch, cli_sm;
extern const struct cli_command cli_up, cli_down, cli_run, cli_exec, cli_show, cli_set, cli_status,
        cli_daemon;

/* "umbel CMD: MESSAGE; see umbel CMD --help". Returns CLI_USAGE. */
int cli_usage_error(const struct cli_command *cmd, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* Says what is wrong with the option at which getopt_long() returned @got, '?' or ':', or
 * prints the help for 'h'. Options must begin with "+:". Returns the exit status. */
int cli_option_end(const struct cli_command *cmd, int got, char **argv);

/* A file that the command reads, where its user is, and the manager makes something of. */
struct cli_file {
	const char *name; /* NULL: none */
	int fd;           /* its text, if it is not -1 */
	char *text;       /* what was read from there */
	size_t bytes;
};

/* What `up`, `run` and `daemon` are told about a fabric. */
struct cli_fabric_options {
	const char *name;
	long hosts, levels, radix; /* 0: not said */
	const char *roce;          /* names of network devices, with commas between; NULL: none */
	struct cli_file topology, partitions;
	const char **settings; /* "key=value", pointing into argv */
	unsigned n_settings;
};

/* Whether @opt is one of the options below. */
bool cli_is_fabric_option(int opt);

/* Takes one of them. 0, or the exit status. */
int cli_fabric_option(const struct cli_command *cmd, struct cli_fabric_options *o, int opt,
                      const char *value);
void cli_fabric_options_fini(struct cli_fabric_options *o);

/* clang-format off */
#define CLI_FABRIC_OPTIONS_INIT { .topology = { .fd = -1 }, .partitions = { .fd = -1 } }
#define CLI_FABRIC_LONG_OPTIONS \
	{ "hosts", required_argument, NULL, 'H' }, \
	{ "fat-tree", required_argument, NULL, 'F' }, \
	{ "radix", required_argument, NULL, 'R' }, \
	{ "topology", required_argument, NULL, 'T' }, \
	{ "partitions", required_argument, NULL, 'P' }, \
	{ "sm", required_argument, NULL, 'S' }, \
	{ "roce", required_argument, NULL, 'E' }, \
	{ "set", required_argument, NULL, 's' }
#define CLI_FABRIC_HELP \
	"      --hosts N         how many hosts (default: 4)\n" \
	"      --fat-tree LEVELS the switches form a fat tree of 2 or 3 levels; --hosts N then\n" \
	"                        means fewer hosts than there is room for\n" \
	"      --radix N         ports of a switch of the fat tree (default: 36)\n" \
	"      --topology FILE   hosts, switches and links as in FILE, which ibnetdiscover wrote,\n" \
	"                        or which ibsim reads\n" \
	"      --partitions FILE P_Keys of ports as in FILE, a partitions.conf of OpenSM\n" \
	"      --sm embedded|none  the subnet manager to start with (default: embedded); with\n" \
	"                        none ports stay in INIT until one is started on a host, such as\n" \
	"                        OpenSM, or by 'umbel sm start'\n" \
	"      --roce IFACE[,...] no switches: one host, with an HCA for each of these network\n" \
	"                        devices, which speaks RoCEv2 on it\n" \
	"      --set KEY=VALUE   a setting of the fabric, as often as needed\n"
/* clang-format on */

/* There are no more options: do they go together? Reads the files. 0, or the exit status. */
int cli_fabric_options_end(const struct cli_command *cmd, struct cli_fabric_options *o);

/* Reads it, once: a pipe gives its text no second time. 0 or CLI_FAILED. */
int cli_file_read(struct cli_file *f);
void cli_file_fini(struct cli_file *f);

/* A descriptor from which what was read can be read again. Or -errno. */
int cli_file_fd(const struct cli_file *f);

/* The fabric meant: @option if given, else $UMBEL_FABRIC, else "default". */
const char *cli_fabric_name(const char *option);

/* 0, or CLI_USAGE if no fabric can have that name. */
int cli_check_name(const char *name);

/* The absolute directory that holds all fabrics of this user. 0 or CLI_FAILED. */
int cli_runtime_dir(char buf[static PATH_MAX]);

/* Makes the directory @path and those above it, private to the user. 0 or -errno. */
int cli_make_dir(const char *path);

/* Removes @path and all in it; what is not there is no error. Silent. */
void cli_remove_dir(const char *path);

/* Calls @each for every fabric that has a directory, by name, until one returns nonzero;
 * returns that, or 0, or CLI_FAILED. */
int cli_each_fabric(int (*each)(const char *name, void *arg), void *arg);

/* Connects to the manager of fabric @name. 0 or CLI_FAILED or CLI_USAGE. */
int cli_connect(struct control_client **client, const char *name);

/* As cli_connect(), but says nothing. 0 or -errno; -ENOENT or -ECONNREFUSED: not up. */
int cli_try_connect(struct control_client **client, const char *name);

/* The manager's answer to @what, parsed; the caller puts it. NULL after an error. */
struct json_object *cli_ask(struct control_client *client, const char *what);

/* The text, number or array under @key, or a harmless one where there is none. */
const char *cli_json_text(struct json_object *o, const char *key);
long cli_json_number(struct json_object *o, const char *key);
struct json_object *cli_json_array(struct json_object *o, const char *key);

/* Prints @o to standard output, indented. 0 or CLI_FAILED. */
int cli_json_print(struct json_object *o);

/* Whether standard output wants colour. */
bool cli_colour(void);

/* Checks that fabric @name is up and, unless @host is NULL, that it has that host.
 * 0, or the exit status after naming the possible hosts. */
int cli_check_host(const char *name, const char *host);

/* Makes the environment one in which a program runs on that host of that fabric; @host NULL:
 * on all of them. 0 or CLI_FAILED. */
int cli_environ_set(const char *fabric, const char *host);

/* Runs the command in this process; returns only the exit status of failure. */
int cli_exec_command(char **argv);

/* Where the "--" is that ends the options of `exec` and `run`, or @argc. */
int cli_find_dashes(int argc, char **argv);

/* Flushes standard output. @status, or CLI_FAILED if what was printed did not get out. */
int cli_finish(int status);

#endif
