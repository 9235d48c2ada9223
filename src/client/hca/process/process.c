/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process's connection to the daemon: see process.h. The one registry of this library is here.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/reason.h"
#include "base/util.h"
#include "control/join.h"
#include "control/path.h"
#include "hca/process/plain.h"
#include "hca/process/process.h"
#include "hca/process/weak.h"

#define LITTLE       (256ull << 10)
#define COMMIT_BYTES (256ull << 10)
#define LEFT_NS      10000000ull /* what was seen of memory that is left holds so long */
#define SMALL_PART   64
#define ENOUGH       (64ull << 20)

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
	base_timers_init(&p->waits, &(struct base_clock){ 0 });
	base_idtable_init_from_1(&p->mrs.ids, HCA_MR_CHUNK * HCA_MR_CHUNKS);
	SLIST_INIT(&p->free_flows);
	STAILQ_INIT(&p->free_ahs);
	return 0;
}

static struct hca_process *process_new(int *error)
{
	struct hca_process *p = calloc(1, sizeof(*p));
	char name[CONTROL_HOST_ROOM];

	*error = -ENOMEM;
	if (!p)
		return NULL;
	*error = control_join(&p->control, CONTROL_ROLE_VERBS, &p->region, &p->host_index);
	if (*error)
		goto err_free;
	*error = init(p, false);
	if (!*error) {
		p->weak = hca_weak_new(&p->region.control->settings,
		                       p->host_index < 0 ? NULL : control_host_name(name),
		                       control_number(p->control));
		return p;
	}
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
	hca_weak_free(p->weak);
	p->weak = NULL;
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

	if (!hca_memory_is_left(p, 0))
		return -ENOMEM;
	do
		ret = control_call(p->control, call);
	while (ret == -EAGAIN && !p->must_not_block); /* the daemon would wait for itself */
	return ret == -EAGAIN ? -ENOMEM : ret;
}

/* Of hca_process.limited. To find out takes a twentieth of the time in which a program starts. A
 * process that uses little never does: the reserve is for such. */
enum hca_limited { UNKNOWN, LIMITED, NOT_LIMITED };

static bool is_limited(struct hca_process *p, uint64_t more)
{
	uint8_t limited = atomic_load_explicit(&p->limited, memory_order_relaxed);

	if (limited == UNKNOWN &&
	    atomic_load_explicit(&p->taken_bytes, memory_order_relaxed) + more > LITTLE) {
		limited = base_memory_is_limited() ? LIMITED : NOT_LIMITED;
		atomic_store_explicit(&p->limited, limited, memory_order_relaxed);
	}
	return limited == LIMITED;
}

/*
 * To look costs some system calls. So what was seen holds for a while: a sender that has no memory
 * asks with each message, and where there is plenty a program that makes many objects need not look
 * for each. Others take memory meanwhile, so it takes a small part of what was left.
 */
bool hca_memory_is_left(struct hca_process *p, uint64_t bytes)
{
	uint64_t now, left, take;

	if (!is_limited(p, bytes))
		return true;
	now = base_now_ns();
	if (now < atomic_load_explicit(&p->left_until_ns, memory_order_relaxed)) {
		if (bytes >= atomic_load_explicit(&p->left_bytes, memory_order_relaxed))
			return false;
		take = atomic_load_explicit(&p->left_to_take, memory_order_relaxed);
		if (bytes <= take && atomic_compare_exchange_strong_explicit(
		                             &p->left_to_take, &take, take - bytes,
		                             memory_order_relaxed, memory_order_relaxed))
			return true;
	}
	left = base_memory_left(bytes + ENOUGH);
	atomic_store_explicit(&p->left_bytes, left, memory_order_relaxed);
	atomic_store_explicit(&p->left_to_take, left / SMALL_PART, memory_order_relaxed);
	atomic_store_explicit(&p->left_until_ns, now + LEFT_NS, memory_order_relaxed);
	return bytes < left;
}

/* Has the pages there. The daemon finds those that were accessed, to free them. */
static bool commit(struct hca_process *p, uint64_t off, uint64_t bytes)
{
	if (!hca_memory_is_left(p, bytes) ||
	    fallocate(p->region.part.data.fd, FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)bytes))
		return false;
	for (uint64_t at = off; at < off + bytes; at = base_align_up(at + 1, HCA_PAGE))
		(void)*(volatile const char *)shm_data_at(&p->region, at);
	return true;
}

void *hca_take_memory(struct hca_process *p, uint64_t off, uint64_t bytes)
{
	void *at = shm_data_map(&p->region, off, bytes);

	atomic_fetch_add_explicit(&p->taken_bytes, bytes, memory_order_relaxed);
	if (!at || !is_limited(p, 0))
		return at;
	if (p->must_not_block)
		return hca_memory_is_left(p, bytes) ? at : NULL;
	/* in pieces: others may take memory, too, since it was looked at */
	for (uint64_t done = 0, n; done < bytes; done += n) {
		n = bytes - done < COMMIT_BYTES ? bytes - done : COMMIT_BYTES;
		if (!commit(p, off + done, n))
			return NULL;
	}
	return at;
}

static const char *text_of(size_t field)
{
#define COUNTED(what, text) { offsetof(struct shm_port_count, what), text },
	static const struct {
		size_t field;
		const char *text;
	} counted[] = {
#include "shm/port_count.def"
	};
#undef COUNTED

	for (size_t i = 0; i < ARRAY_SIZE(counted); i++)
		if (counted[i].field == field)
			return counted[i].text;
	return "?";
}

/* The program is told, whose packet or receive it is. The daemon counts in the name of others. */
static void tell_lost(const struct hca_process *p, uint32_t port, size_t field, const char *name)
{
	const struct shm_port *at = shm_port_at(&p->region, port);
	const struct base_failure f = { .part = BASE_LOG_PART_verbs,
		                        .otherwise = text_of(field),
		                        .again = (uint64_t)port << 32 | field };

	if (!p->must_not_block && base_log_on(verbs, BASE_LOG_WARNING))
		base_failure_log(&f, "lost at port %u of %s (%s)", at->port_num,
		                 shm_hca_at(&p->region, at->hca)->name, name);
}

BASE_COLD void hca_count(struct hca_process *p, uint32_t port, size_t field, const char *name)
{
	_Atomic uint64_t *c =
	        (_Atomic uint64_t *)((char *)shm_port_count_at(&p->region, port) + field);

	base_log_debug(packet, "dropped at %s port %u: %s",
	               shm_hca_at(&p->region, shm_port_at(&p->region, port)->hca)->name,
	               shm_port_at(&p->region, port)->port_num, name);
	atomic_fetch_add_explicit(c, 1, memory_order_relaxed);
	tell_lost(p, port, field, name);
}

uint32_t hca_queue_size(const struct hca_process *p, uint32_t asked, uint32_t most)
{
	uint32_t size;

	if (p->region.control->settings.exact_sizes || !asked)
		return asked;
	size = 1u << base_log2_up(asked);
	return size < most ? size : most;
}
