/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of an HCA in pages (struct control_list_objects), for programs that show them as the
 * kernel would: `rdma resource show`.
 */
#ifndef DAEMON_LIST_OBJECTS_H
#define DAEMON_LIST_OBJECTS_H

#include "daemon/clients/request.h"
#include "daemon/show/views.h"

/* Adds the request to the table. */
void daemon_list_objects_init(struct daemon_show *s, struct daemon_requests *all);

#endif
