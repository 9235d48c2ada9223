/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XRC domains, which processes share by a file. A domain goes with the last process that has it
 * open.
 */
#ifndef DAEMON_XRC_H
#define DAEMON_XRC_H

#include "base/idtable.h"
#include "control/message.h"
#include "daemon/clients/hca.h"

#define DAEMON_MAX_XRCDS    1024 /* each may keep a file open */
#define DAEMON_HOLDER_XRCDS 64   /* that one process may have */

struct daemon_xrcds {
	struct base_idtable ids;
	struct daemon_loop *loop;
	struct daemon_ending ending;
};

/* 0 or -ENOMEM. */
int daemon_xrcds_init(struct daemon_xrcds *all, struct daemon_loop *loop,
                      struct daemon_endings *endings);

/* Opens the domain of the file @fd, which stays the caller's; -1: a new one that has no file.
 * *@number: not 0. 0; -EAGAIN, -EINVAL as control_open_xrcd has it; -ENOMEM: too many. */
int daemon_xrcd_open(struct daemon_xrcds *all, struct daemon_hca *h, int fd,
                     const struct control_open_xrcd *want, uint32_t *number);

/* The holder closes it once. -EINVAL: it has not opened it. */
int daemon_xrcd_close(struct daemon_xrcds *all, struct daemon_holder *holder, uint32_t number);

/* Whether the holder has it open. */
bool daemon_xrcd_is_open(const struct daemon_holder *holder, uint32_t number);

#endif
