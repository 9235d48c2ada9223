/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The capabilities of programs on hosts that are namespaces in a user namespace of this user's:
 * they count there, and for nothing outside. The calling process has one thread.
 */
#ifndef HOSTS_CAPABILITIES_H
#define HOSTS_CAPABILITIES_H

/*
 * Of the capabilities that this process has, keeps those for programs that it becomes by exec()
 * which a person has on a host: to configure and watch its network, to serve at its ports, and to
 * go to another host (umbel exec). 0 or -errno.
 */
int hosts_capabilities_keep(void);

#endif
