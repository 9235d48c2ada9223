/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The request by which the command line asks what the fabric is, for one of the views. The reply
 * has one end of a socket pair, by which the text comes as fast as it is read: a slice at a time,
 * so that nobody else waits for a view of a large fabric.
 */
#ifndef DAEMON_SHOW_H
#define DAEMON_SHOW_H

#include "daemon/clients/request.h"
#include "daemon/show/views.h"

/* Adds the request to the table; @s is filled in, but for ->switches. 0 or -ENOMEM. */
int daemon_show_init(struct daemon_show *s, struct daemon_requests *all);

#endif
