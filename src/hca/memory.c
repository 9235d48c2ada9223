/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reaching the memory of another process: see memory.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "hca/memory.h"
#include "shm/key.h"

/* ---- which way ---- */

/* Whether it is really that process whose memory is reached so. */
static bool proves_itself(struct hca_process *p, const struct hca_memory *m)
{
	const struct shm_keys *keys = shm_payload_at(&p->region, m->keys_off, sizeof(*keys));
	uint64_t witness = 0;
	struct iovec here = { &witness, sizeof(witness) }, there;
	struct hca_span to = { .iov = &here, .n = 1 };
	struct hca_span from = { .memory = m, .iov = &there, .n = 1 };

	if (!keys)
		return false;
	there = (struct iovec){ (void *)(uintptr_t)keys->witness_addr, sizeof(witness) };
	return !hca_memory_copy(&to, &from, sizeof(witness)) && witness == keys->witness;
}

static void find_way(struct hca_process *p, struct hca_memory *m, uint32_t qpn)
{
	struct control_get_memory req = { .qpn = qpn };

	m->way = HCA_MEMORY_OWN;
	if (m->keys_off == p->mrs.keys_off)
		return;
	m->way = HCA_MEMORY_VM;
	if (m->pid > 0 && proves_itself(p, m))
		return;
	m->way = HCA_MEMORY_FILE;
	if (control_call(p->control, &(struct control_call){ .type = CONTROL_GET_MEMORY,
	                                                     .request = &req,
	                                                     .request_bytes = sizeof(req),
	                                                     .fd = &m->fd }))
		m->fd = -1;
	else if (proves_itself(p, m))
		return;
	m->way = HCA_MEMORY_NONE;
	base_log_warning(verbs,
	                 "the memory of process %d cannot be reached: process_vm_readv() is "
	                 "forbidden, and so is /proc/self/mem",
	                 (int)m->pid);
}

/* With the lock held. */
static struct hca_memory *find(struct hca_process *p, const struct shm_qp *q)
{
	struct base_hash_node *node = base_hash_first(&p->memories, q->client);
	struct hca_memory *m;

	for (; node; node = base_hash_next(node)) {
		m = container_of(node, struct hca_memory, node);
		if (m->client == q->client && m->keys_off == q->connection.keys_off)
			return m;
	}
	return NULL;
}

static struct hca_memory *add(struct hca_process *p, const struct shm_qp *q)
{
	struct hca_memory *m = calloc(1, sizeof(*m));

	if (!m || base_hash_add(&p->memories, &m->node, q->client)) {
		free(m);
		return NULL;
	}
	m->client = q->client;
	m->keys_off = q->connection.keys_off;
	m->pid = q->connection.pid;
	m->fd = -1;
	find_way(p, m, q->qpn);
	return m;
}

struct hca_memory *hca_memory_get(struct hca_process *p, const struct shm_qp *q)
{
	struct hca_memory *m;

	pthread_mutex_lock(&p->memory_lock);
	m = find(p, q);
	if (!m)
		m = add(p, q);
	if (m)
		m->refs++;
	pthread_mutex_unlock(&p->memory_lock);
	return m;
}

void hca_memory_put(struct hca_process *p, struct hca_memory *m)
{
	pthread_mutex_lock(&p->memory_lock);
	if (!--m->refs) {
		base_hash_remove(&p->memories, &m->node);
		if (m->fd >= 0)
			close(m->fd);
		free(m);
	}
	pthread_mutex_unlock(&p->memory_lock);
}

/* ---- copying ---- */

static bool is_own(const struct hca_span *s)
{
	return !s->memory || s->memory->way == HCA_MEMORY_OWN;
}

/* Goes on by @bytes. */
static void advance(struct hca_span *s, size_t bytes)
{
	while (bytes && s->n) {
		size_t part = s->iov->iov_len < bytes ? s->iov->iov_len : bytes;

		if (base_likely(s->iov->iov_base != HCA_MEMORY_NULL))
			s->iov->iov_base = (char *)s->iov->iov_base + part;
		s->iov->iov_len -= part;
		bytes -= part;
		if (!s->iov->iov_len) {
			s->iov++;
			s->n--;
		}
	}
	while (s->n && !s->iov->iov_len) {
		s->iov++;
		s->n--;
	}
}

/* As much as lies in one piece on both sides. */
static size_t common_part(const struct hca_span *a, const struct hca_span *b)
{
	return a->iov->iov_len < b->iov->iov_len ? a->iov->iov_len : b->iov->iov_len;
}

/* Each copies a part, and returns how many bytes; negative: -errno. */
static ssize_t copy_own(const struct hca_span *to, const struct hca_span *from)
{
	size_t part = common_part(to, from);

	memmove(to->iov->iov_base, from->iov->iov_base, part);
	return (ssize_t)part;
}

/* The parts before the first one that is none. */
static unsigned parts_of(const struct hca_span *s)
{
	unsigned n = 0;

	while (n < s->n && s->iov[n].iov_base != HCA_MEMORY_NULL)
		n++;
	return n;
}

static ssize_t copy_vm(const struct hca_span *to, const struct hca_span *from)
{
	unsigned n_to = parts_of(to), n_from = parts_of(from);
	ssize_t n =
	        is_own(to)
	                ? process_vm_readv(from->memory->pid, to->iov, n_to, from->iov, n_from, 0)
	                : process_vm_writev(to->memory->pid, from->iov, n_from, to->iov, n_to, 0);

	return n < 0 ? -errno : n;
}

static ssize_t copy_file(const struct hca_span *to, const struct hca_span *from)
{
	size_t part = common_part(to, from);
	ssize_t n = is_own(to) ? pread(from->memory->fd, to->iov->iov_base, part,
	                               (off_t)(uintptr_t)from->iov->iov_base)
	                       : pwrite(to->memory->fd, from->iov->iov_base, part,
	                                (off_t)(uintptr_t)to->iov->iov_base);

	return n < 0 ? -errno : n;
}

static ssize_t copy_memory(const struct hca_span *to, const struct hca_span *from)
{
	switch (is_own(to) ? is_own(from) ? HCA_MEMORY_OWN : from->memory->way : to->memory->way) {
	case HCA_MEMORY_OWN:
		return copy_own(to, from);
	case HCA_MEMORY_VM:
		return copy_vm(to, from);
	case HCA_MEMORY_FILE:
		return copy_file(to, from);
	default:
		return -EFAULT;
	}
}

static BASE_COLD ssize_t copy_zeros(const struct hca_span *to, size_t part)
{
	static const char zeros[4096];
	struct iovec here = { (void *)(uintptr_t)zeros,
		              part < sizeof(zeros) ? part : sizeof(zeros) };

	return copy_memory(to, &(struct hca_span){ .iov = &here, .n = 1 });
}

static ssize_t copy_part(const struct hca_span *to, const struct hca_span *from)
{
	if (base_unlikely(to->iov->iov_base == HCA_MEMORY_NULL))
		return (ssize_t)common_part(to, from);
	if (base_unlikely(from->iov->iov_base == HCA_MEMORY_NULL))
		return copy_zeros(to, common_part(to, from));
	return copy_memory(to, from);
}

int hca_memory_copy(struct hca_span *to, struct hca_span *from, uint64_t length)
{
	advance(to, 0); /* over parts of no bytes */
	advance(from, 0);
	while (length) {
		ssize_t n = to->n && from->n ? copy_part(to, from) : -EFAULT;

		if (n == -EINTR)
			continue;
		if (n <= 0) /* 0: the process has ended, and its memory is gone */
			return n == -ESRCH || !n ? -ESRCH : -EFAULT;
		length -= (uint64_t)n;
		advance(to, (size_t)n);
		advance(from, (size_t)n);
	}
	return 0;
}
