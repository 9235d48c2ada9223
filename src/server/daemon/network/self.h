/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon as a process that uses its own fabric: a client that is served at once, and shared
 * memory as any process has it. By it the daemon delivers packets, as those do.
 */
#ifndef DAEMON_SELF_H
#define DAEMON_SELF_H

#include "daemon/clients/client.h"
#include "hca/process/process.h"

struct daemon_self {
	struct daemon_client *client;
	struct control_client *control;
	struct hca_process *process;
};

/* 0 or -errno. */
int daemon_self_init(struct daemon_self *self, struct daemon_clients *clients, struct fabric *f);

/* Before the clients go: it is one of them. */
void daemon_self_fini(struct daemon_self *self);

/* Opens HCA @hca (index), whose events have no reader. *@handle: the daemon's name for it. 0 or
 * -errno. */
int daemon_self_open_hca(struct daemon_self *self, uint32_t hca, uint32_t *handle);

#endif
