/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric as the options of the daemon say: its settings, hosts, switches and links.
 */
#ifndef DAEMON_BUILD_H
#define DAEMON_BUILD_H

#include "daemon/daemon.h"
#include "daemon/roce.h"

struct daemon_build {
	const struct daemon_shape *shape;
	const struct shm_settings *settings;
	const struct daemon_roce *roce; /* the devices that it is of; NULL: none */
	char *notes;                    /* lines about what was passed over; "": none */
	size_t notes_len;
};

/* The settings that the options ask for. 0, or -errno with @why. */
int daemon_build_settings(struct shm_settings *s, const struct daemon_options *o, char *why,
                          size_t len);

/* Makes the fabric. 0, or -errno with @why or without; *@f is the caller's to free even so if it is
 * not NULL. */
int daemon_build_fabric(struct fabric **f, const struct daemon_build *b, char *why, size_t len);

#endif
