/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections that a child of fork() has, too: see relay.c. To be called around fork().
 */
#ifndef SOCKETS_RELAY_H
#define SOCKETS_RELAY_H

/* Before: connections that are not close-on-exec get a relay. No lock is held, and none of them is
 * in a call. */
void sockets_relay_prepare(void);

void sockets_relay_lock(void);
void sockets_relay_unlock(void);

/* After, in the parent: the new relays begin. */
void sockets_relay_start(void);

/* After, in the child: they are the parent's. */
void sockets_relay_forked(void);

#endif
