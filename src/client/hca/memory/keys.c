/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Publishing keys: see keys.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "hca/memory/keys.h"
#include "hca/process/plain.h"
#include "shm/key.h"

/* The place of @key, for which memory is added. NULL: there is none. */
static struct shm_key *place_of(struct hca_process *p, uint32_t key)
{
	struct control_add_keys req = { .chunk = (key >> 8) / SHM_KEY_CHUNK };
	struct control_offset_reply rep = { 0 };
	struct shm_key *k = shm_key_at(&p->region, p->mrs.keys_off, key);

	if (k)
		return k;
	if (hca_ask_memory(p, &CONTROL_CALL(CONTROL_ADD_KEYS, &req, &rep)) ||
	    !hca_take_memory(p, rep.off, SHM_KEY_CHUNK * sizeof(*k)))
		return NULL;
	return shm_key_at(&p->region, p->mrs.keys_off, key);
}

/* A number that no key was written with before. */
static uint32_t next_serial(struct hca_process *p)
{
	if (!++p->mrs.serial)
		p->mrs.serial = 1;
	return p->mrs.serial;
}

static struct shm_keys *keys_of(struct hca_process *p)
{
	return shm_payload_at(&p->region, p->mrs.keys_off, sizeof(struct shm_keys));
}

/* There is a key more, or a key less. Nobody else writes there. */
static void count_key(struct shm_keys *keys, uint32_t by)
{
	uint32_t n = atomic_load_explicit(&keys->n_keys, memory_order_relaxed);

	atomic_store_explicit(&keys->n_keys, n + by, memory_order_relaxed);
}

int hca_keys_put(struct hca_process *p, uint32_t key, const struct shm_reach *reach)
{
	struct shm_keys *keys;
	struct shm_key *k;

	if (!p->mrs.keys_off)
		return 0;
	k = place_of(p, key);
	if (!k)
		return -ENOMEM;
	shm_key_write(k, key, next_serial(p), reach);
	keys = keys_of(p);
	count_key(keys, 1);
	if (key >> 8 >= atomic_load_explicit(&keys->key_end, memory_order_relaxed))
		atomic_store_explicit(&keys->key_end, (key >> 8) + 1, memory_order_relaxed);
	return 0;
}

void hca_keys_remove(struct hca_process *p, uint32_t key, uint32_t users[SHM_KEY_USERS])
{
	struct shm_key *k = p->mrs.keys_off ? shm_key_at(&p->region, p->mrs.keys_off, key) : NULL;

	if (!k) {
		memset(users, 0, SHM_KEY_USERS * sizeof(*users));
		return;
	}
	shm_key_remove(k, key, users);
	count_key(keys_of(p), UINT32_MAX);
}

/* ---- how others reach the memory ---- */

/* The guard is where no program has anything by itself, in a window of 2^32 pages: above what a
 * C library's own areas need, below where the kernel begins to place mappings. So that a program
 * which gets the PID of another has the same one is as likely as that a wrong ICRC is right. */
#define GUARD_WINDOW (1ull << 46)
#define GUARD_PAGES  (1ull << 32)

/* Maps the guard (shm_keys.guard), which children do not have. 0: that cannot be. */
static uint64_t make_guard(void)
{
	uint64_t random;
	void *at;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return 0;
	at = (void *)(uintptr_t)(GUARD_WINDOW + random % GUARD_PAGES * HCA_PAGE);
	/* by itself: the sanitizers' mmap() takes no memory that is in their way */
	if ((void *)syscall(SYS_mmap, at, HCA_PAGE, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_POPULATE, -1,
	                    0) != at)
		return 0;
	if (!madvise(at, HCA_PAGE, MADV_DONTFORK))
		return (uintptr_t)at;
	munmap(at, HCA_PAGE);
	return 0;
}

/*
 * Lets the processes of peers reach our memory: by process_vm_readv(2) and its twin, which Yama
 * forbids otherwise, or by a descriptor, which works in other PID namespaces too.
 */
static void offer_memory(struct hca_process *p)
{
	struct control_offer_memory req = { .kind = CONTROL_MEMORY_ALL };
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (fd < 0)
		return; /* no /proc: the other way has to do */
	control_call(p->control, &(struct control_call){ .type = CONTROL_OFFER_MEMORY,
	                                                 .request = &req,
	                                                 .request_bytes = sizeof(req),
	                                                 .send_fd = &fd });
	close(fd);
}

int hca_keys_open(struct hca_process *p)
{
	struct control_offset_reply rep = { 0 };
	struct shm_keys *keys;
	int ret;

	ret = hca_ask_memory(p, &(struct control_call){ .type = CONTROL_OPEN_KEYS,
	                                                .reply = &rep,
	                                                .reply_bytes = sizeof(rep) });
	if (ret)
		return ret;
	keys = hca_take_memory(p, rep.off, sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	p->mrs.witness = base_now_ns() ^ (uint64_t)p->pid << 32;
	keys->witness = p->mrs.witness;
	keys->witness_addr = (uintptr_t)&p->mrs.witness;
	p->mrs.guard = make_guard();
	keys->guard = p->mrs.guard;
	/* keys that a first attempt has published are published again */
	atomic_store_explicit(&keys->n_keys, 0, memory_order_relaxed);
	p->mrs.keys_off = rep.off;
	offer_memory(p);
	return 0;
}
