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
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "hca/memory/adopt.h"
#include "hca/memory/memory.h"
#include "hca/memory/object.h"
#include "hca/process/maps.h"
#include "hca/process/plain.h"
#include "shm/key.h"

/* ---- which way ---- */

/* Whether the memory that is reached this way is that process's: its witness word is there. 0, or
 * as hca_memory_copy(). */
static int prove(struct hca_memory *m)
{
	uint64_t witness = 0;
	struct iovec here = { &witness, sizeof(witness) };
	struct iovec there = { (void *)(uintptr_t)m->keys->witness_addr, sizeof(witness) };
	struct hca_span to = { .iov = &here, .n = 1 };
	struct hca_span from = { .memory = m, .iov = &there, .n = 1 };
	int ret = hca_memory_copy(&to, &from, sizeof(witness));

	return !ret && witness != m->witness ? -EFAULT : ret;
}

/* Instead of a descriptor: it is another user's memory; or the queue pair is gone, by which it was
 * asked for; or this process has no free one for it. */
#define NOT_YET (-ENOTCONN)
#define NO_QP   (-ENOENT)
#define NO_FREE (-EMFILE)

/* A descriptor of the memory of that process; negative: none. */
static int get_descriptor(const struct hca_memory *m, enum control_memory_kind kind)
{
	struct control_get_memory req = { .qpn = atomic_load_explicit((_Atomic uint32_t *)&m->qpn,
		                                                      memory_order_relaxed),
		                          .kind = kind };
	int fd = -1, ret;

	ret = control_call(m->process->control,
	                   &(struct control_call){ .type = CONTROL_GET_MEMORY,
	                                           .request = &req,
	                                           .request_bytes = sizeof(req),
	                                           .fd = &fd });
	return ret ? ret : fd;
}

static void set_way(struct hca_memory *m, enum hca_memory_way way)
{
	/* release: the descriptor comes before; pairs with the acquire in copy_memory() */
	atomic_store_explicit(&m->way, way, memory_order_release);
}

/* As prove(), of a descriptor. */
static int prove_descriptor(const struct hca_memory *m, int fd)
{
	uint64_t witness = 0;
	ssize_t n = pread(fd, &witness, sizeof(witness), (off_t)m->keys->witness_addr);

	if (!n) /* the process has ended, and its memory is gone */
		return -ESRCH;
	return n == sizeof(witness) && witness == m->witness ? 0 : -EFAULT;
}

/* A descriptor of all of its memory; negative: none, or none that is proved. With the lock held, or
 * before others know @m. */
static int find_descriptor(struct hca_memory *m)
{
	int ret;

	if (m->fd >= 0)
		return m->fd;
	m->fd = get_descriptor(m, CONTROL_MEMORY_ALL);
	ret = m->fd < 0 ? 0 : prove_descriptor(m, m->fd);
	if (ret) {
		close(m->fd);
		m->fd = ret;
	}
	return m->fd;
}

/* With the lock held, or before others know @m: the way that there is besides the system calls. */
static BASE_COLD void find_other_way(struct hca_memory *m)
{
	int fd = find_descriptor(m);

	if (fd >= 0) {
		set_way(m, HCA_MEMORY_FILE);
	} else if (fd == -ESRCH || fd == NO_QP) { /* of a process that has ended, if no other one
		                                     of it is used */
		set_way(m, HCA_MEMORY_GONE);
	} else {
		set_way(m, HCA_MEMORY_NONE);
		if (fd != NOT_YET && fd != NO_FREE)
			base_log_warning(verbs,
			                 "the memory of process %d cannot be reached: "
			                 "process_vm_readv() is forbidden, and so is "
			                 "/proc/self/mem",
			                 (int)m->pid);
	}
}

static bool is_reached(const struct hca_memory *m)
{
	enum hca_memory_way way = atomic_load_explicit(&m->way, memory_order_relaxed);

	return way != HCA_MEMORY_NONE && way != HCA_MEMORY_GONE;
}

static bool is_this_process(const struct hca_process *p, const struct shm_qp *q)
{
	return q->connection.keys_off == p->mrs.keys_off;
}

static void find_way(struct hca_memory *m)
{
	const bool is_own = m->keys_off == m->process->mrs.keys_off;

	set_way(m, HCA_MEMORY_OWN);
	if (is_own && !m->from_outside)
		return;
	set_way(m, HCA_MEMORY_VM);
	if (m->pid <= 0 || !m->guard || prove(m))
		find_other_way(m);
	if (is_own && !is_reached(m))
		set_way(m, HCA_MEMORY_OWN);
}

/*
 * The system calls do not lead there any more: by the descriptor, which it offered before. 0;
 * -ESRCH: not before this process has a free one; -EFAULT: there is none.
 */
static BASE_COLD int change_way(struct hca_memory *m)
{
	int fd;

	pthread_mutex_lock(&m->process->memory_lock);
	fd = find_descriptor(m);
	if (fd >= 0)
		set_way(m, HCA_MEMORY_FILE);
	pthread_mutex_unlock(&m->process->memory_lock);
	return fd >= 0 ? 0 : fd == NO_FREE ? -ESRCH : -EFAULT;
}

/* No way has led there. If only a free descriptor was lacking: once more. As copy_vm(). */
static BASE_COLD ssize_t try_again(struct hca_memory *m)
{
	bool found, has_free;

	pthread_mutex_lock(&m->process->memory_lock);
	if (m->fd == NO_FREE)
		find_other_way(m);
	found = atomic_load_explicit(&m->way, memory_order_relaxed) != HCA_MEMORY_NONE;
	has_free = m->fd != NO_FREE;
	pthread_mutex_unlock(&m->process->memory_lock);
	return found ? -EINTR : has_free ? -EFAULT : -ESRCH;
}

/* With the lock held. */
static struct hca_memory *find(struct hca_process *p, const struct shm_qp *q,
                               const struct shm_keys *keys, bool from_outside)
{
	struct hca_memory *m;

	BASE_HASH_FOREACH(m, &p->memories, q->client, node) {
		/* numbers of clients, places of keys and PIDs come again */
		if (m->client == q->client && m->keys == keys && m->pid == q->connection.pid &&
		    m->witness == keys->witness && m->from_outside == from_outside)
			return m;
	}
	return NULL;
}

static struct hca_memory *add(struct hca_process *p, const struct shm_qp *q, struct shm_keys *keys,
                              bool from_outside)
{
	struct hca_memory *m = calloc(1, sizeof(*m));

	if (!m || base_hash_add(&p->memories, &m->node, q->client)) {
		free(m);
		return NULL;
	}
	m->process = p;
	m->keys = keys;
	m->keys_off = q->connection.keys_off;
	m->witness = keys->witness;
	m->guard = keys->guard;
	m->client = q->client;
	m->from_outside = from_outside;
	atomic_init(&m->qpn, q->qpn);
	m->pid = q->connection.pid;
	m->fd = m->adopted_fd = -1;
	LIST_INIT(&m->mappings);
	LIST_INIT(&m->retired);
	find_way(m);
	m->known = true;
	return m;
}

/* ---- memory objects ---- */

#define MOST_MAPPINGS 1024
/* Segments that stay attached though the other process has others in their places by now: it may
 * register them again. Each keeps its memory, and a place in the IPC namespace. */
#define MOST_OLD 16

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

/* Asks for the file of adopted memory the first time. NULL: there is none. */
static void *map_adopted(struct hca_memory *m, const struct shm_object *o)
{
	uint64_t bytes = o->to - o->from;
	void *here;

	if (bytes > HCA_ADOPT_MOST || o->offset % HCA_PAGE)
		return NULL;
	if (m->adopted_fd == -1) {
		m->adopted_fd = get_descriptor(m, CONTROL_MEMORY_ADOPTED);
		if (m->adopted_fd < 0) /* later there may be a free one */
			m->adopted_fd = m->adopted_fd == NO_FREE ? -1 : -2;
	}
	if (m->adopted_fd < 0 || !can_be_mapped(m->adopted_fd, o->offset + bytes))
		return NULL;
	here = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->adopted_fd,
	            (off_t)o->offset);
	return here == MAP_FAILED ? NULL : here;
}

/* Whether what is attached at @at has all of the object, and touching it never is a signal: it is a
 * segment, which cannot become shorter, and not of huge pages, of which there may be none left. The
 * identifier that the other process told may be another segment's. */
static bool is_good_segment(const struct shm_object *o, uint64_t at, size_t *bytes)
{
	struct hca_vma v;

	if (!hca_maps_find(at, &v) || v.from != at)
		return false;
	*bytes = v.to - v.from;
	return *bytes >= o->offset && *bytes - o->offset >= o->to - o->from &&
	       !hca_object_is_huge(&v);
}

/* Attaches a System V segment, of *@bytes; NULL: it is not there, not good, or not for this
 * process. */
static void *map_sysv(const struct shm_object *o, size_t *bytes)
{
	char *here;

	if (o->space != hca_object_space())
		return NULL;
	here = shmat((int)o->id, NULL, 0);
	if (here == (void *)-1)
		return NULL;
	if (is_good_segment(o, (uintptr_t)here, bytes))
		return here + o->offset;
	shmdt(here);
	return NULL;
}

/* As map_sysv(). The program's own segments are not attached once more: it may count who has them.
 */
static void *map_object(struct hca_memory *m, const struct shm_object *o, size_t *bytes)
{
	if (m->from_outside)
		return o->kind == SHM_OBJECT_ADOPTED
		               ? hca_adopt_map_again(o->offset, o->to - o->from)
		               : NULL;
	return o->kind == SHM_OBJECT_ADOPTED ? map_adopted(m, o)
	       : o->kind == SHM_OBJECT_SYSV  ? map_sysv(o, bytes)
	                                     : NULL;
}

/* A mapping of the object. It may have been mapped before: who registers the same memory again and
 * again needs one. With the lock held. */
static struct hca_mapping *find_mapping(const struct hca_memory *m, uint32_t index,
                                        const struct shm_object *o)
{
	struct hca_mapping *map;

	LIST_FOREACH(map, &m->mappings, entry)
	if (map->index == index && map->of.kind == o->kind && map->of.from == o->from &&
	    map->of.to == o->to && map->of.offset == o->offset && map->of.space == o->space &&
	    map->of.id == o->id)
		return map;
	return NULL;
}

/* Whether the mapping is the object's that has its place in the other process's table now. */
static bool is_current(const struct hca_memory *m, const struct hca_mapping *map)
{
	return atomic_load_explicit(&m->mapped[map->index], memory_order_relaxed) == map &&
	       atomic_load_explicit(&m->keys->objects[map->index].serial, memory_order_relaxed) ==
	               atomic_load_explicit(&map->serial, memory_order_relaxed);
}

static void forget_retired(struct hca_memory *m, struct hca_mapping *map)
{
	LIST_REMOVE(map, entry);
	m->n_retired--;
	if (map->here)
		munmap(map->here - map->of.offset, map->attached);
	free(map);
}

/*
 * Detaches the segment. Its owner has waited for the threads that used it, so nobody does. An
 * exception is a thread that was stopped for so long that the owner did not wait any longer: its
 * writes go to memory of nobody's, which is in the segment's place until many others have come
 * there.
 */
static void retire(struct hca_memory *m, struct hca_mapping *map)
{
	struct hca_mapping *last;

	if (map->here &&
	    mmap(map->here - map->of.offset, map->attached, PROT_READ | PROT_WRITE,
	         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return;
	if (atomic_load_explicit(&m->mapped[map->index], memory_order_relaxed) == map)
		atomic_store_explicit(&m->mapped[map->index], NULL, memory_order_relaxed);
	LIST_REMOVE(map, entry);
	m->n_mappings--;
	LIST_INSERT_HEAD(&m->retired, map, entry);
	if (++m->n_retired <= MOST_MAPPINGS)
		return;
	for (last = map; LIST_NEXT(last, entry);)
		last = LIST_NEXT(last, entry);
	forget_retired(m, last);
}

/* Of segments that are not in the other process's table any more a few stay, those attached last.
 */
static void retire_old(struct hca_memory *m)
{
	struct hca_mapping *map, *next;
	unsigned old = 0;

	for (map = LIST_FIRST(&m->mappings); map; map = next) {
		next = LIST_NEXT(map, entry);
		if (map->of.kind == SHM_OBJECT_SYSV && !is_current(m, map) && ++old > MOST_OLD)
			retire(m, map);
	}
}

static struct hca_mapping *add_mapping(struct hca_memory *m, uint32_t index,
                                       const struct shm_object *o)
{
	struct hca_mapping *map;

	retire_old(m);
	/* the other process wrote these */
	if (m->n_mappings >= MOST_MAPPINGS || o->from >= o->to || o->offset > INT64_MAX / 2 ||
	    o->to - o->from > INT64_MAX / 2)
		return NULL;
	map = calloc(1, sizeof(*map));
	if (!map)
		return NULL;
	map->of = *o;
	map->index = index;
	map->here = map_object(m, o, &map->attached);
	if (map->here) {
		map->from = o->from;
		map->to = o->to;
	}
	LIST_INSERT_HEAD(&m->mappings, map, entry);
	m->n_mappings++;
	return map;
}

static BASE_COLD struct hca_mapping *map_anew(struct hca_memory *m, uint32_t index, uint32_t serial)
{
	struct shm_object o = m->keys->objects[index];
	struct hca_mapping *map;

	pthread_mutex_lock(&m->process->memory_lock);
	map = find_mapping(m, index, &o);
	if (!map)
		map = add_mapping(m, index, &o);
	if (map) {
		atomic_store_explicit(&map->serial, serial, memory_order_relaxed);
		/* release: the mapping comes before; pairs with the acquire in hca_memory_map() */
		atomic_store_explicit(&m->mapped[index], map, memory_order_release);
	}
	pthread_mutex_unlock(&m->process->memory_lock);
	return map;
}

const struct hca_mapping *hca_memory_map(struct hca_memory *m, uint32_t index)
{
	struct hca_mapping *map;
	uint32_t serial;

	if (index >= SHM_OBJECTS)
		return NULL;
	/* acquire: the object comes before; pairs with the release in publish(), object.c */
	serial = atomic_load_explicit(&m->keys->objects[index].serial, memory_order_acquire);
	map = atomic_load_explicit(&m->mapped[index], memory_order_acquire);
	if (!map || atomic_load_explicit(&map->serial, memory_order_relaxed) != serial)
		map = map_anew(m, index, serial);
	return map && map->here ? map : NULL;
}

static void unmap_all(struct hca_memory *m)
{
	struct hca_mapping *map;

	while ((map = LIST_FIRST(&m->mappings))) {
		LIST_REMOVE(map, entry);
		if (map->here && map->of.kind == SHM_OBJECT_SYSV)
			shmdt(map->here - map->of.offset);
		else if (map->here && m->from_outside)
			hca_adopt_unmap(map->here, map->to - map->from);
		else if (map->here)
			munmap(map->here, map->to - map->from);
		free(map);
	}
	while ((map = LIST_FIRST(&m->retired)))
		forget_retired(m, map);
	if (m->adopted_fd >= 0)
		close(m->adopted_fd);
}

/* ---- life ---- */

static struct hca_memory *get(struct hca_process *p, const struct shm_qp *q, bool from_outside)
{
	struct shm_keys *keys = shm_payload_at(&p->region, q->connection.keys_off, sizeof(*keys));
	struct hca_memory *m;

	if (!keys)
		return NULL;
	pthread_mutex_lock(&p->memory_lock);
	m = find(p, q, keys, from_outside);
	if (m) {
		atomic_store_explicit(&m->qpn, q->qpn, memory_order_relaxed);
		/* a process of another user gives its memory once it has connected a queue pair,
		 * and then the record of that is read again */
		if (!is_reached(m) && (m->fd == NOT_YET || m->fd == NO_QP))
			find_other_way(m);
	} else {
		m = add(p, q, keys, from_outside);
	}
	if (m)
		m->refs++;
	pthread_mutex_unlock(&p->memory_lock);
	return m;
}

struct hca_memory *hca_memory_get(struct hca_process *p, const struct shm_qp *q)
{
	return get(p, q, false);
}

struct hca_memory *hca_memory_get_from_outside(struct hca_process *p, const struct shm_qp *q)
{
	return get(p, q, is_this_process(p, q));
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
	return !s->memory ||
	       atomic_load_explicit(&s->memory->way, memory_order_relaxed) == HCA_MEMORY_OWN;
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

/* At most this many parts of each side in one system call, behind the guards. */
#define MOST_PARTS 128

/* Copies the parts before the first one that is none to @to, behind a piece for the guards. Returns
 * how many there are then. */
static unsigned list_parts(const struct hca_span *s, struct iovec *to)
{
	unsigned n = 0;

	while (n < s->n && n < MOST_PARTS && s->iov[n].iov_base != HCA_MEMORY_NULL) {
		to[n] = s->iov[n];
		n++;
	}
	return n;
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

/* As find_descriptor(), beside the system calls: both ways lead to the same address space. */
static int descriptor_beside(struct hca_memory *m)
{
	int fd;

	pthread_mutex_lock(&m->process->memory_lock);
	fd = find_descriptor(m);
	pthread_mutex_unlock(&m->process->memory_lock);
	return fd;
}

/*
 * The first part is not there, or the program has protected it (mprotect(2)), which no HCA notices:
 * it has pinned the pages. The descriptor does not notice, either; but for shared mappings.
 */
static BASE_COLD ssize_t copy_protected(const struct hca_span *to, const struct hca_span *from)
{
	struct hca_memory *m = is_own(to) ? from->memory : to->memory;
	int fd = m->known ? descriptor_beside(m) : -EFAULT;

	if (fd == NO_FREE)
		return -ESRCH;
	return fd >= 0 ? copy_file(to, from) : -EFAULT;
}

/* The process forbids it, or has ended, as far as the kernel tells: that says so as soon as its
 * first thread has ended. As copy_vm(). */
static BASE_COLD ssize_t vm_failed(struct hca_memory *m, int error)
{
	int other = -EFAULT;

	if ((error == EPERM || error == ESRCH) && m->known)
		other = change_way(m);
	if (!other)
		return -EINTR;                  /* again, the other way */
	if (other == -ESRCH || error == EFAULT) /* no guard: another process, or program */
		return -ESRCH;
	return -error;
}

/* Begins with the guard: see memory.h. */
static ssize_t copy_vm(const struct hca_span *to, const struct hca_span *from)
{
	const bool writes = !is_own(to);
	struct hca_memory *m = writes ? to->memory : from->memory;
	struct iovec here[1 + MOST_PARTS], there[1 + MOST_PARTS];
	uint8_t guard = 0;
	unsigned n_here = 1 + list_parts(writes ? from : to, here + 1);
	unsigned n_there = 1 + list_parts(writes ? to : from, there + 1);
	ssize_t n;

	here[0] = (struct iovec){ &guard, 1 };
	there[0] = (struct iovec){ (void *)(uintptr_t)m->guard, 1 };
	n = writes ? process_vm_writev(m->pid, here, n_here, there, n_there, 0)
	           : process_vm_readv(m->pid, here, n_here, there, n_there, 0);
	if (n < 0)
		return vm_failed(m, errno);
	return n > 1 ? n - 1 : copy_protected(to, from);
}

static ssize_t copy_memory(const struct hca_span *to, const struct hca_span *from)
{
	const struct hca_span *other = is_own(to) ? from : to;

	/* acquire: pairs with the release in set_way() */
	switch (other->memory ? atomic_load_explicit(&other->memory->way, memory_order_acquire)
	                      : HCA_MEMORY_OWN) {
	case HCA_MEMORY_OWN:
		return copy_own(to, from);
	case HCA_MEMORY_VM:
		return copy_vm(to, from);
	case HCA_MEMORY_FILE:
		return copy_file(to, from);
	case HCA_MEMORY_GONE:
		return -ESRCH;
	default:
		return try_again(other->memory);
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

/* Copies *@left bytes, which counts down. */
static int copy_all(struct hca_span *to, struct hca_span *from, uint64_t *left)
{
	advance(to, 0); /* over parts of no bytes */
	advance(from, 0);
	while (*left) {
		ssize_t n = to->n && from->n ? copy_part(to, from) : -EFAULT;

		if (n == -EINTR)
			continue;
		if (n <= 0) /* 0: the process has ended, and its memory is gone */
			return n == -ESRCH || !n ? -ESRCH : -EFAULT;
		*left -= (uint64_t)n;
		advance(to, (size_t)n);
		advance(from, (size_t)n);
	}
	return 0;
}

int hca_memory_copy(struct hca_span *to, struct hca_span *from, uint64_t length)
{
	return copy_all(to, from, &length);
}

uint64_t hca_memory_copy_some(struct hca_span *to, struct hca_span *from, uint64_t length)
{
	uint64_t left = length;

	copy_all(to, from, &left);
	return length - left;
}
