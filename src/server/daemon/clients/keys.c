/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory for keys: see keys.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "daemon/clients/keys.h"
#include "daemon/core/loop.h"
#include "shm/connection.h"

/* Memory that the holder's keys lie in. */
struct daemon_extent {
	LIST_ENTRY(daemon_extent) entry;
	uint64_t off;
};

/* *@off: of @bytes for keys. */
static int add(struct daemon_memory *m, struct daemon_holder *holder, uint64_t bytes, uint64_t *off)
{
	struct daemon_extent *e = malloc(sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->off = daemon_memory_payload(m, bytes);
	if (!e->off) {
		free(e);
		return daemon_memory_none(m, false, &holder->want);
	}
	LIST_INSERT_HEAD(&holder->key_chunks, e, entry);
	*off = e->off;
	return 0;
}

int daemon_keys_open(struct daemon_memory *m, struct daemon_holder *holder, uint64_t *off)
{
	int ret = holder->keys_off ? 0 : add(m, holder, sizeof(struct shm_keys), &holder->keys_off);

	*off = holder->keys_off;
	return ret;
}

int daemon_keys_add(struct daemon_memory *m, struct daemon_holder *holder, uint32_t chunk,
                    uint64_t *off)
{
	struct shm_keys *keys = shm_data_at(m->region, holder->keys_off);
	int ret;

	if (!holder->keys_off || chunk >= SHM_KEY_CHUNKS)
		return -EINVAL;
	if (atomic_load_explicit(&keys->chunk_off[chunk], memory_order_relaxed))
		return -EEXIST;
	ret = add(m, holder, SHM_KEY_CHUNK * sizeof(struct shm_key), off);
	if (!ret)
		/* release: pairs with the acquire in shm_key_at() */
		atomic_store_explicit(&keys->chunk_off[chunk], *off, memory_order_release);
	return ret;
}

int daemon_keys_offer(struct daemon_holder *holder, uint32_t kind, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return -errno;
	if (holder->memory_fd[kind] >= 0)
		daemon_loop_close(holder->loop, holder->memory_fd[kind]);
	holder->memory_fd[kind] = copy;
	return 0;
}

/* Its keys, of which there are SHM_KEY_CHUNKS at most, and the descriptors of its memory. */
static bool free_of_holder(void *arg, struct daemon_holder *holder, uint32_t *budget)
{
	struct daemon_memory *m = arg;
	struct daemon_extent *e;

	(void)budget;
	while ((e = LIST_FIRST(&holder->key_chunks))) {
		LIST_REMOVE(e, entry);
		daemon_memory_retire_keys(m, e->off);
		free(e);
	}
	for (unsigned kind = 0; kind < CONTROL_MEMORY_KINDS; kind++)
		if (holder->memory_fd[kind] >= 0)
			daemon_loop_close(holder->loop, holder->memory_fd[kind]);
	return true;
}

void daemon_keys_init(struct daemon_memory *m, struct daemon_ending *ending,
                      struct daemon_endings *endings)
{
	daemon_ending_register(endings, ending, free_of_holder, m);
}
