/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Open ports and agents of libibumad's programs, and the requests that make them. Datagrams of
 * programs are received here.
 */
#ifndef DAEMON_UMAD_H
#define DAEMON_UMAD_H

#include "daemon/clients/request.h"
#include "daemon/umad/umad_state.h"

/* Adds the requests to the table. 0 or -errno. */
int daemon_umad_init(struct daemon_umad **u, const struct daemon_umad_needs *needs,
                     struct daemon_requests *all);
/* Removes its files. */
void daemon_umad_stop(struct daemon_umad *u);

#endif
