/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabrics of this user: their names, their directories, and the connection to a daemon.
 * Single-threaded.
 */
#ifndef CLI_FABRICS_H
#define CLI_FABRICS_H

#include <limits.h>

struct control_client;

enum { CLI_NAME_MAX = 32, CLI_NO_HOST = 256 };

/* The fabric meant: @option if given, else $UMBEL_FABRIC, else "default". */
const char *cli_fabric_name(const char *option);

/* " --name NAME" for a command that is printed, so that it means fabric @name wherever it is typed;
 * "" if it does so without. In static memory. */
const char *cli_name_option(const char *name);

/* 0, or CLI_USAGE if no fabric can have that name. */
int cli_check_name(const char *name);

/* The absolute directory that holds all fabrics of this user. 0 or CLI_FAILED. */
int cli_runtime_dir(char buf[static PATH_MAX]);

/* Makes the directory @path and those above it, private to the user. 0 or CLI_FAILED. */
int cli_make_dir(const char *path);

/* Calls @each for every fabric that has a directory, by name, until one returns nonzero;
 * returns that, or 0, or CLI_FAILED. */
int cli_each_fabric(int (*each)(const char *name, void *arg), void *arg);

/* The path of the socket of fabric @name, whose directory is proven private. 0 or -errno. */
int cli_socket_path(char path[static PATH_MAX], const char *name);

/* Connects to the daemon of fabric @name. 0 or CLI_FAILED or CLI_USAGE. */
int cli_connect(struct control_client **client, const char *name);

/* Likewise, as a program on @host would. CLI_NO_HOST, of which it prints nothing: there is none. */
int cli_connect_host(struct control_client **client, const char *name, const char *host);

/* Why a daemon refuses a request that fails with @error, in words. */
const char *cli_refusal(int error);

/* Says that the daemon of fabric @name does not answer, and what to do. */
void cli_say_silent(const char *name);
/* Says that the daemon of fabric @name speaks otherwise than we do, and what to do. */
void cli_say_other_version(const char *name);

/* As cli_connect(), but prints nothing. 0 or -errno; -ENOENT or -ECONNREFUSED: not up;
 * -ETIMEDOUT: it does not answer. */
int cli_try_connect(struct control_client **client, const char *name);

#endif
