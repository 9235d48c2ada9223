/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files behind cmd_fd: see command_file.h.
 */
#define _GNU_SOURCE
#include "hca/process/command_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hca/process/process.h"

#define MAGIC       0x756d62656c636d64 /* "umbelcmd" */
#define VERSION     1
#define MAX_MEMBERS (1u << (32 - HCA_FILE_INDEX_BITS))
#define SEALS       (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define TID_MASK    0x3fffffffu /* of a futex word: who holds it */

/* The contents of the file. */
struct hca_shared_file {
	uint64_t magic;
	uint32_t version;
	uint32_t hca;
	uint64_t id; /* random: a process that has the file already knows it by this */
	uint32_t daemon;
	uint32_t reserved0;
	char fabric[40];
	_Atomic uint32_t n_members; /* processes that ever had it */
	_Atomic uint32_t next_pd;   /* where the search for a free handle begins */
	uint64_t reserved[6];
	_Atomic uint64_t pd[HCA_FILE_PDS / 64]; /* a bit each: there is one */
};
static_assert(sizeof(struct hca_shared_file) == 128 + HCA_FILE_PDS / 8, "layout");

static uint32_t daemon_of(const struct hca_process *p)
{
	return atomic_load_explicit(&p->region.control->daemon_futex, memory_order_relaxed) &
	       TID_MASK;
}

static bool may_make_files(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= sizeof(struct hca_shared_file);
}

/* A descriptor of a new file of the right size; -1 and errno. */
static int make_file(void)
{
	int fd = memfd_create("umbel-cmd", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	if (ftruncate(fd, sizeof(struct hca_shared_file)) || fcntl(fd, F_ADD_SEALS, SEALS)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool out_of_resources(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* @fd -1: memory that nobody else can have. */
static struct hca_shared_file *map(int fd)
{
	int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
	void *at = mmap(NULL, sizeof(struct hca_shared_file), PROT_READ | PROT_WRITE, flags, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void describe(struct hca_shared_file *s, const struct hca_process *p, uint32_t hca)
{
	s->magic = MAGIC;
	s->version = VERSION;
	s->hca = hca;
	s->daemon = daemon_of(p);
	memcpy(s->fabric, p->region.control->fabric, sizeof(s->fabric));
	if (getrandom(&s->id, sizeof(s->id), GRND_NONBLOCK) != sizeof(s->id))
		s->id = (uint64_t)getpid() << 32 ^ (uintptr_t)s;
}

/* This process becomes a member of the file at @s, which it then owns. With file_lock held. */
static int enter(struct hca_process *p, struct hca_shared_file *s, struct hca_command_file **out)
{
	struct hca_command_file *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->member = atomic_fetch_add_explicit(&s->n_members, 1, memory_order_relaxed);
	if (f->member >= MAX_MEMBERS) {
		atomic_fetch_sub_explicit(&s->n_members, 1, memory_order_relaxed);
		free(f);
		return -ENOSPC;
	}
	f->process = p;
	f->shared = s;
	f->refs = 1;
	LIST_INIT(&f->dms);
	LIST_INSERT_HEAD(&p->files, f, entry);
	*out = f;
	return 0;
}

int hca_command_file_new(struct hca_process *p, uint32_t hca, struct hca_command_file **file,
                         int *fd)
{
	struct hca_shared_file *s;
	int ret = -ENOMEM;

	*fd = may_make_files() ? make_file() : -1;
	if (*fd < 0 && may_make_files() && out_of_resources(errno))
		return -errno;
	s = map(*fd);
	if (!s)
		goto err_fd;
	describe(s, p, hca);
	pthread_mutex_lock(&p->file_lock);
	ret = enter(p, s, file);
	pthread_mutex_unlock(&p->file_lock);
	if (!ret)
		return 0;
	munmap(s, sizeof(*s));
err_fd:
	if (*fd >= 0)
		close(*fd);
	return ret;
}

/* ---- import ---- */

/* -EINVAL: @fd is not one of these files. */
static int check_file(int fd)
{
	struct stat st;
	int seals;

	if (fstat(fd, &st))
		return -errno;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS) != SEALS)
		return -EINVAL;
	return st.st_size == sizeof(struct hca_shared_file) ? 0 : -EINVAL;
}

static int check_contents(const struct hca_process *p, const struct hca_shared_file *s)
{
	if (s->magic != MAGIC || s->version != VERSION)
		return -EINVAL;
	if (s->daemon != daemon_of(p) ||
	    memcmp(s->fabric, p->region.control->fabric, sizeof(s->fabric)))
		return -ENODEV;
	return 0;
}

/* The file of that number, if this process has it. With file_lock held. */
static struct hca_command_file *find(struct hca_process *p, uint64_t id)
{
	struct hca_command_file *f;

	LIST_FOREACH(f, &p->files, entry)
	if (f->shared->id == id)
		break;
	return f;
}

/* Finds the file at @s, or makes this process a member of it. *@owns: @s is the file's now. */
static int find_or_enter(struct hca_process *p, struct hca_shared_file *s,
                         struct hca_command_file **file, bool *owns)
{
	int ret = 0;

	pthread_mutex_lock(&p->file_lock);
	*file = find(p, s->id);
	*owns = !*file;
	if (*file)
		(*file)->refs++;
	else
		ret = enter(p, s, file);
	pthread_mutex_unlock(&p->file_lock);
	*owns = *owns && !ret;
	return ret;
}

int hca_command_file_import(struct hca_process *p, int fd, struct hca_command_file **file,
                            uint32_t *hca)
{
	struct hca_shared_file *s;
	bool owns = false;
	int ret = check_file(fd);

	if (ret)
		return ret;
	s = map(fd);
	if (!s)
		return -ENOMEM;
	ret = check_contents(p, s);
	*hca = s->hca;
	if (!ret && *hca >= p->region.control->n_hcas)
		ret = -ENODEV;
	if (!ret)
		ret = find_or_enter(p, s, file, &owns);
	if (!owns)
		munmap(s, sizeof(*s));
	return ret;
}

void hca_command_file_put(struct hca_command_file *f)
{
	struct hca_process *p = f->process;
	bool last;

	pthread_mutex_lock(&p->file_lock);
	last = --f->refs == 0;
	if (last)
		LIST_REMOVE(f, entry);
	pthread_mutex_unlock(&p->file_lock);
	if (!last)
		return;
	munmap(f->shared, sizeof(*f->shared));
	base_hash_fini(&f->domains);
	free(f);
}

/* ---- handles ---- */

static _Atomic uint64_t *word_of(const struct hca_command_file *f, uint32_t handle)
{
	return &f->shared->pd[handle / 64];
}

static uint64_t bit_of(uint32_t handle)
{
	return 1ull << handle % 64;
}

/* Other processes that have the file may search at the same time. */
int hca_command_file_add_pd(struct hca_command_file *f, uint32_t *handle)
{
	for (uint32_t i = 0; i < HCA_FILE_PDS; i++) {
		uint32_t n =
		        atomic_fetch_add_explicit(&f->shared->next_pd, 1, memory_order_relaxed);

		n %= HCA_FILE_PDS;
		if (atomic_fetch_or_explicit(word_of(f, n), bit_of(n), memory_order_relaxed) &
		    bit_of(n))
			continue;
		*handle = n;
		return 0;
	}
	return -ENOSPC;
}

bool hca_command_file_has_pd(const struct hca_command_file *f, uint32_t handle)
{
	return handle < HCA_FILE_PDS &&
	       atomic_load_explicit(word_of(f, handle), memory_order_relaxed) & bit_of(handle);
}

int hca_command_file_remove_pd(struct hca_command_file *f, uint32_t handle)
{
	uint64_t was = atomic_fetch_and_explicit(word_of(f, handle), ~bit_of(handle),
	                                         memory_order_relaxed);

	return was & bit_of(handle) ? 0 : -ENOENT;
}

int hca_command_file_index(const struct hca_command_file *f, uint32_t handle, uint32_t *index)
{
	uint32_t member = handle >> HCA_FILE_INDEX_BITS;

	*index = handle % HCA_FILE_INDEXES;
	if (member == f->member)
		return 0;
	return member < atomic_load_explicit(&f->shared->n_members, memory_order_relaxed)
	               ? -EOPNOTSUPP
	               : -ENOENT;
}
