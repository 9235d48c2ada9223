/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion channels: each is an eventfd, by which the process that completes work wakes the
 * channel's program.
 */
#ifndef DAEMON_CHANNEL_H
#define DAEMON_CHANNEL_H

#include "base/idtable.h"
#include "daemon/clients/ending.h"
#include "daemon/clients/holder.h"
#include "shm/layout.h"

struct daemon_channel {
	LIST_ENTRY(daemon_channel) entry;
	struct daemon_holder *holder;
	uint32_t id; /* low bits: index; high bits tell it from its predecessors there */
	int eventfd;
};

struct daemon_channels {
	struct base_idtable ids;
	uint16_t round[SHM_MAX_CHANNELS]; /* high bits of the next channel's number at an index */
	struct daemon_ending ending;
};

void daemon_channels_init(struct daemon_channels *all, struct daemon_endings *endings);

/* 0 or -errno. */
int daemon_channel_new(struct daemon_channels *all, struct daemon_holder *holder,
                       struct daemon_channel **out);
void daemon_channel_free(struct daemon_channels *all, struct daemon_channel *ch);

/* The channel with this number, of any holder, or NULL. */
struct daemon_channel *daemon_channel_find(const struct daemon_channels *all, uint32_t id);

#endif
