/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Settings that change while the fabric is up.
 */
#ifndef DAEMON_SETTINGS_H
#define DAEMON_SETTINGS_H

#include "daemon/clients/request.h"
#include "daemon/subnet/mads.h"
#include "daemon/subnet/ports.h"

struct daemon_settings {
	struct fabric *f;
	struct daemon_ports *ports;
	struct daemon_mads *mads;
};

/* Adds the request to the table; @s is filled in. */
void daemon_settings_init(struct daemon_settings *s, struct daemon_requests *all);

#endif
