/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion channels: see channel.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/clients/channel.h"

#define FREE_COST 16 /* units of work (chores.h); it closes a descriptor */

static uint32_t index_of(uint32_t id)
{
	return id & SHM_CHANNEL_INDEX;
}

int daemon_channel_new(struct daemon_channels *all, struct daemon_holder *holder,
                       struct daemon_channel **out)
{
	struct daemon_channel *ch = calloc(1, sizeof(*ch));
	uint32_t index;
	int ret;

	if (!ch)
		return -ENOMEM;
	ch->holder = holder;
	ch->eventfd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (ch->eventfd < 0) {
		ret = -errno;
		goto err_free;
	}
	ret = base_idtable_add(&all->ids, ch, &index);
	if (ret)
		goto err_close;
	ch->id = (uint32_t)all->round[index]++ << 16 | index;
	LIST_INSERT_HEAD(&holder->channels, ch, entry);
	*out = ch;
	return 0;
err_close:
	close(ch->eventfd);
err_free:
	free(ch);
	return ret;
}

void daemon_channel_free(struct daemon_channels *all, struct daemon_channel *ch)
{
	base_idtable_remove(&all->ids, index_of(ch->id));
	LIST_REMOVE(ch, entry);
	close(ch->eventfd);
	free(ch);
}

struct daemon_channel *daemon_channel_find(const struct daemon_channels *all, uint32_t id)
{
	struct daemon_channel *ch = base_idtable_get(&all->ids, index_of(id));

	return ch && ch->id == id ? ch : NULL;
}

/* ---- all ---- */

static bool free_of_holder(void *arg, struct daemon_holder *holder, uint32_t *budget)
{
	struct daemon_channel *ch;

	while ((ch = LIST_FIRST(&holder->channels)) && daemon_chore_spend(budget, FREE_COST))
		daemon_channel_free(arg, ch);
	return !ch;
}

void daemon_channels_init(struct daemon_channels *all, struct daemon_endings *endings)
{
	base_idtable_init(&all->ids, SHM_MAX_CHANNELS);
	daemon_ending_register(endings, &all->ending, free_of_holder, all);
}
