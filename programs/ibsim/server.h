/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server: takes clients, answers their questions, and lets go of those that have ended.
 */
#ifndef IBSIM_SERVER_H
#define IBSIM_SERVER_H

#include <stdbool.h>

#include "ibsim/client.h"

#define IBSIM_MAX_CLIENTS 1024

struct ibsim_server {
	struct ibsim_common common;
	struct ibsim_source control, signals, fabric;
	struct ibsim_client *client[IBSIM_MAX_CLIENTS];
	bool is_over, fabric_is_gone;
	bool has_warned; /* of other users */
};

/* Takes the sockets that begin with @base. 0; -EADDRINUSE: another server has them; -ENODEV: there
 * is no fabric; -EOPNOTSUPP: its ports have no subnet management; -errno. */
int ibsim_server_open(struct ibsim_server *s, const char *base);

/* Serves until a signal comes, which is 0, or the fabric ends: -EPIPE. */
int ibsim_server_run(struct ibsim_server *s);

void ibsim_server_close(struct ibsim_server *s);

#endif
