/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Publishing keys: see keys.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/util.h"
#include "hca/keys.h"
#include "shm/key.h"

/* The place of @key, for which memory is added. NULL: there is none. */
static struct shm_key *place_of(struct hca_process *p, uint32_t key)
{
	struct control_add_keys req = { .chunk = (key >> 8) / SHM_KEY_CHUNK };
	struct control_add_keys_reply rep;
	struct shm_key *k = shm_key_at(&p->region, p->mrs.keys_off, key);

	if (k)
		return k;
	if (hca_ask_memory(p, &CONTROL_CALL(CONTROL_ADD_KEYS, &req, &rep)))
		return NULL;
	return shm_key_at(&p->region, p->mrs.keys_off, key);
}

int hca_keys_put(struct hca_process *p, uint32_t key, const struct shm_reach *reach)
{
	struct shm_key *k;

	if (!p->mrs.keys_off)
		return 0;
	k = place_of(p, key);
	if (!k)
		return -ENOMEM;
	if (!++p->mrs.serial) /* which nobody has joined */
		p->mrs.serial = 1;
	shm_key_write(k, key, p->mrs.serial, reach);
	return 0;
}

void hca_keys_remove(struct hca_process *p, uint32_t key, uint32_t users[SHM_KEY_USERS])
{
	struct shm_key *k = p->mrs.keys_off ? shm_key_at(&p->region, p->mrs.keys_off, key) : NULL;

	if (k)
		shm_key_remove(k, key, users);
	else
		memset(users, 0, SHM_KEY_USERS * sizeof(*users));
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
	struct control_keys_reply rep;
	struct shm_keys *keys;
	int ret = 0;

	pthread_mutex_lock(&p->mrs.lock);
	if (p->mrs.keys_off)
		goto out;
	ret = hca_ask_memory(p, &(struct control_call){ .type = CONTROL_OPEN_KEYS,
	                                                .reply = &rep,
	                                                .reply_bytes = sizeof(rep) });
	if (ret)
		goto out;
	keys = shm_payload_at(&p->region, rep.off, sizeof(*keys));
	p->mrs.witness = base_now_ns() ^ (uint64_t)p->pid << 32;
	keys->witness = p->mrs.witness;
	keys->witness_addr = (uintptr_t)&p->mrs.witness;
	p->mrs.keys_off = rep.off;
	offer_memory(p);
	ret = hca_mr_publish_all(p);
	if (ret)
		p->mrs.keys_off = 0;
out:
	pthread_mutex_unlock(&p->mrs.lock);
	return ret;
}
