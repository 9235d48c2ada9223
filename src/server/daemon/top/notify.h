/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tells the program that started the daemon as a service, systemd, that the daemon serves:
 * sd_notify(3), without its library, which brings others along. Called by the daemon's thread
 * alone.
 */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

/*
 * Sends @state to the socket @path, the value of NOTIFY_SOCKET: a path, or a name of no file behind
 * a '@'. 0, also without a socket (NULL); else -errno.
 */
int daemon_notify(const char *path, const char *state);

#endif
