/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets in the network of a host, for a process that is elsewhere and stays there, the daemon.
 */
#ifndef HOSTS_SOCKET_H
#define HOSTS_SOCKET_H

#include "hosts/namespaces.h"

/*
 * As socket(2), close-on-exec. Takes 20 us, and waits for no other process that somebody could
 * stop. A descriptor, or -errno.
 */
int hosts_socket(const struct hosts_namespaces *ns, int family, int type, int protocol);

#endif
