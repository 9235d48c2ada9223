/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reaching the memory of another process: see memory.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "hca/adopt.h"
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

/* A descriptor of the memory of that queue pair's process; -1: none. */
static int get_descriptor(struct hca_process *p, uint32_t qpn, enum control_memory_kind kind)
{
	struct control_get_memory req = { .qpn = qpn, .kind = kind };
	int fd = -1;

	if (control_call(p->control, &(struct control_call){ .type = CONTROL_GET_MEMORY,
	                                                     .request = &req,
	                                                     .request_bytes = sizeof(req),
	                                                     .fd = &fd }))
		return -1;
	return fd;
}

static void find_way(struct hca_process *p, struct hca_memory *m, uint32_t qpn)
{
	m->way = HCA_MEMORY_OWN;
	if (m->keys_off == p->mrs.keys_off)
		return;
	m->way = HCA_MEMORY_VM;
	if (m->pid > 0 && proves_itself(p, m))
		return;
	m->way = HCA_MEMORY_FILE;
	m->fd = get_descriptor(p, qpn, CONTROL_MEMORY_ALL);
	if (m->fd >= 0 && proves_itself(p, m))
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
		/* numbers of clients come again */
		if (m->client == q->client && m->keys_off == q->connection.keys_off &&
		    m->pid == q->connection.pid)
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
	m->fd = m->adopted_fd = -1;
	LIST_INIT(&m->mappings);
	find_way(p, m, q->qpn);
	return m;
}

/* ---- adopted memory ---- */

#define MOST_MAPPINGS 1024

/* Whether touching what is mapped of the file never is a signal: it cannot become shorter, and a
 * hole is filled from ordinary memory. Huge pages, of which there may be none left, can be sealed,
 * too. */
static bool can_be_mapped(int fd, uint64_t to)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat s;

	return seals >= 0 && (seals & F_SEAL_SHRINK) && !fstatfs(fd, &fs) &&
	       fs.f_type == TMPFS_MAGIC && !fstat(fd, &s) && (uint64_t)s.st_size >= to;
}

/* Asks for the file the first time. False: there is none. */
static bool has_file(struct hca_process *p, struct hca_memory *m, uint32_t qpn, uint64_t to)
{
	if (m->adopted_fd == -1) {
		m->adopted_fd = get_descriptor(p, qpn, CONTROL_MEMORY_ADOPTED);
		if (m->adopted_fd < 0)
			m->adopted_fd = -2;
	}
	return m->adopted_fd >= 0 && can_be_mapped(m->adopted_fd, to);
}

static struct hca_mapping *find_mapping(const struct hca_memory *m, uint64_t from, uint64_t to)
{
	struct hca_mapping *map;

	LIST_FOREACH(map, &m->mappings, entry)
	if (from >= map->from && to <= map->to)
		return map;
	return NULL;
}

static struct hca_mapping *add_mapping(struct hca_memory *m, uint64_t from, uint64_t to)
{
	struct hca_mapping *map = malloc(sizeof(*map));

	if (!map)
		return NULL;
	*map = (struct hca_mapping){ .from = from, .to = to };
	map->here = mmap(NULL, to - from, PROT_READ | PROT_WRITE, MAP_SHARED, m->adopted_fd,
	                 (off_t)from);
	if (map->here == MAP_FAILED) {
		free(map);
		return NULL;
	}
	LIST_INSERT_HEAD(&m->mappings, map, entry);
	m->n_mappings++;
	return map;
}

const struct hca_mapping *hca_memory_map(struct hca_process *p, struct hca_memory *m, uint32_t qpn,
                                         uint64_t from, uint64_t to)
{
	struct hca_mapping *map;

	/* the other process writes these */
	if (from >= to || to - from > HCA_ADOPT_MOST || from % HCA_ADOPT_PAGE || to > INT64_MAX)
		return NULL;
	pthread_mutex_lock(&p->memory_lock);
	map = find_mapping(m, from, to);
	if (!map && m->n_mappings < MOST_MAPPINGS && has_file(p, m, qpn, to))
		map = add_mapping(m, from, to);
	pthread_mutex_unlock(&p->memory_lock);
	return map;
}

static void unmap_all(struct hca_memory *m)
{
	struct hca_mapping *map;

	while ((map = LIST_FIRST(&m->mappings))) {
		LIST_REMOVE(map, entry);
		munmap(map->here, map->to - map->from);
		free(map);
	}
	if (m->adopted_fd >= 0)
		close(m->adopted_fd);
}

/* ---- life ---- */

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
		unmap_all(m);
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

	hca_memory_copy_here(to->iov->iov_base, from->iov->iov_base, part);
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
