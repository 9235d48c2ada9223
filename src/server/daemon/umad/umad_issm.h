/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file by which a subnet manager says that it is one: while it has this file open, its port's
 * PortInfo has IsSM set. The original's is a device; ours is a FIFO in the fabric's directory.
 * inotify tells that it is opened; our end, which has no readers then, tells that all have closed
 * it. So however a subnet manager ends, the bit goes.
 */
#ifndef DAEMON_UMAD_ISSM_H
#define DAEMON_UMAD_ISSM_H

#include "daemon/umad/umad_state.h"

/* Makes the port's FIFO if it is not there; else looks whether somebody has it open. 0 or -errno.
 */
int umad_issm_open(struct daemon_umad *u, struct fabric_port *at);

/* Watches for programs that open one. 0 or -errno. */
int umad_issm_init(struct daemon_umad *u);
/* Removes all. */
void umad_issm_fini(struct daemon_umad *u);

#endif
