/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The IP groups that the host's sockets have joined on a device, from the kernel's lists
 * /proc/net/igmp and /proc/net/igmp6. Pure functions, but the last.
 */
#ifndef IPOIB_MEMBERS_H
#define IPOIB_MEMBERS_H

#include "wire/ib.h"
#include "wire/ip.h"

typedef void ipoib_member(void *arg, const struct ib_gid *group);

/* Calls @member for each group of @device in @text, what a list has. */
void ipoib_members_parse_ipv4(char *text, const char *device, ipoib_member *member, void *arg);
void ipoib_members_parse_ipv6(char *text, const char *device, ipoib_member *member, void *arg);

/* The same for the lists as they are now, of the network namespace that we are in. 0 or -errno. */
int ipoib_members_read(const char *device, ipoib_member *member, void *arg);

#endif
