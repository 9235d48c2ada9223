/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process's connection to the daemon: see process.h. The one registry of this library is here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "control/join.h"
#include "hca/process/plain.h"
#include "hca/process/process.h"

/* The registry: the process's connection. One from before a fork, or to a daemon that is gone, is
 * replaced, and ends with the last context that uses it. */
static struct {
	pthread_mutex_t lock;
	struct hca_process *current;
} registry = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* All but the connection, which is there. 0 or -ENOMEM. */
static int init(struct hca_process *p, bool is_daemon)
{
	if (hca_wakes_init(&p->wakes, p->control, &p->region, !is_daemon))
		return -ENOMEM;
	p->must_not_block = is_daemon;
	p->pid = getpid();
	p->reserve.control = p->control;
	p->reserve.region = &p->region;
	pthread_mutex_init(&p->device_lock, NULL);
	pthread_mutex_init(&p->file_lock, NULL);
	LIST_INIT(&p->files);
	pthread_mutex_init(&p->mrs.lock, NULL);
	pthread_mutex_init(&p->reserve.lock, NULL);
	pthread_mutex_init(&p->memory_lock, NULL);
	LIST_INIT(&p->cqs);
	LIST_INIT(&p->connected);
	TAILQ_INIT(&p->waiting);
	base_idtable_init_from_1(&p->mrs.ids, HCA_MR_CHUNK * HCA_MR_CHUNKS);
	SLIST_INIT(&p->free_flows);
	STAILQ_INIT(&p->free_ahs);
	return 0;
}

static struct hca_process *process_new(int *error)
{
	struct hca_process *p = calloc(1, sizeof(*p));

	*error = -ENOMEM;
	if (!p)
		return NULL;
	*error = control_join(&p->control, CONTROL_ROLE_VERBS, &p->region, &p->host_index);
	if (*error)
		goto err_free;
	*error = init(p, false);
	if (!*error)
		return p;
	shm_region_unmap(&p->region);
	control_close(p->control);
err_free:
	free(p);
	return NULL;
}

struct hca_process *hca_process_local(struct control_client *control,
                                      const struct shm_region *region)
{
	struct hca_process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->control = control;
	p->region = *region;
	p->host_index = -1;
	if (!init(p, true))
		return p;
	free(p);
	return NULL;
}

void hca_process_local_free(struct hca_process *p)
{
	base_hash_fini(&p->memories);
	hca_wakes_fini(&p->wakes);
	free(p);
}

/* Ends a former connection that nobody uses, with the registry's lock. A connection of the parent's
 * stays: its memory may be in any state. */
static void end_former(struct hca_process *p)
{
	int detour;

	if (!p || p->refs || p == registry.current || p->pid != getpid())
		return;
	detour = atomic_exchange_explicit(&p->detour.fd, 0, memory_order_relaxed) - 1;
	if (detour >= 0)
		close(detour);
	if (p->mrs.guard)
		munmap((void *)(uintptr_t)p->mrs.guard, HCA_PAGE);
	base_hash_fini(&p->memories);
	hca_wakes_fini(&p->wakes);
	shm_region_unmap(&p->region);
	control_close(p->control);
}

struct hca_process *hca_process_get(int *error)
{
	struct hca_process *p, *former;

	*error = 0;
	pthread_mutex_lock(&registry.lock);
	p = former = registry.current;
	if (!p || p->pid != getpid() || hca_process_gone(p)) {
		p = process_new(error);
		registry.current = p;
		end_former(former);
	}
	if (p)
		p->refs++;
	pthread_mutex_unlock(&registry.lock);
	return p;
}

void hca_process_put(struct hca_process *p)
{
	pthread_mutex_lock(&registry.lock);
	p->refs--;
	end_former(p);
	pthread_mutex_unlock(&registry.lock);
}

int hca_request(struct hca_process *p, enum control_type type, const void *request, uint32_t bytes)
{
	return control_request(p->control, type, request, bytes);
}

int hca_post(struct hca_process *p, enum control_type type, const void *request, uint32_t bytes)
{
	return control_post(p->control, type, request, bytes);
}

int hca_ask_memory(struct hca_process *p, const struct control_call *call)
{
	int ret;

	do
		ret = control_call(p->control, call);
	while (ret == -EAGAIN && !p->must_not_block); /* the daemon would wait for itself */
	return ret == -EAGAIN ? -ENOMEM : ret;
}

BASE_COLD void hca_count(struct hca_process *p, uint32_t port, size_t field, const char *name)
{
	_Atomic uint64_t *c =
	        (_Atomic uint64_t *)((char *)shm_port_count_at(&p->region, port) + field);

	base_log_debug(packet, "dropped at %s port %u: %s",
	               shm_hca_at(&p->region, shm_port_at(&p->region, port)->hca)->name,
	               shm_port_at(&p->region, port)->port_num, name);
	atomic_fetch_add_explicit(c, 1, memory_order_relaxed);
}

uint32_t hca_queue_size(const struct hca_process *p, uint32_t asked, uint32_t most)
{
	uint32_t size;

	if (p->region.control->settings.exact_sizes || !asked)
		return asked;
	size = 1u << base_log2_up(asked);
	return size < most ? size : most;
}
