/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adopting pages, and giving them back: see adopt.h.
 *
 * This file keeps its knowledge in its own variables: memory of malloc(3) could be just being
 * moved.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/newer_libc.h"
#include "base/signals.h"
#include "base/util.h"
#include "hca/memory/adopt.h"
#include "hca/memory/adopt_state.h"
#include "hca/process/hold.h"
#include "hca/process/maps.h"
#include "hca/process/mr_table.h"
#include "hca/process/plain.h"
#include "hca/process/process.h"

#define SLOT_BYTES (1ull << HCA_ADOPT_SHIFT)
#define FILE_BYTES (SHM_OBJECTS * SLOT_BYTES)
/* Moved at once: meanwhile a piece is there twice, and this must not exceed a limit of memory. */
#define PIECE        (256ull << 10)
#define MOST_REGIONS 4096  /* with more, a look at all of them costs too much */
#define MOST_WAIT_MS 10000 /* for a child to take the next piece: it may have been stopped */
#define MOST_ENDS    64    /* one that registers for each message has no use for it */
#define MOST_AGAIN   128   /* mappings beside the program's own */

/* Which file a descriptor is of. */
struct file_id {
	dev_t device;
	ino_t inode;
};

static struct {
	/* a leaf: nothing else is waited for with it held, and no signal is taken */
	pthread_mutex_t lock;
	struct hca_process *owner; /* whose regions they are; NULL: nothing was ever adopted */
	int fd;
	int proc, spare; /* /proc, and a descriptor to use when there is none left */
	struct file_id file_id, proc_id;
	enum hca_adopt_file file;
	bool forks_watched;
	bool in_child;    /* which must leave the file as it is */
	unsigned forking; /* threads that are in fork(): nothing moves */
	unsigned n, ends; /* slots in use; how often one was given back */
	uint64_t from[SHM_OBJECTS], to[SHM_OBJECTS]; /* by slot; both 0: none */
	uint64_t kept[SHM_OBJECTS]; /* a page of the memory that it was: see keep_page(); 0: none */
	bool stays; /* of what is given back: something in the file is needed still */
	enum hca_adopt_state state[SHM_OBJECTS]; /* by slot */
	struct {
		uint64_t at, bytes; /* both 0: none */
	} again[MOST_AGAIN];        /* what hca_adopt_map_again() has mapped */
} adopted = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .proc = -1, .spare = -1 };

/* Of a thread that forks: a socket whose other end is the child's, which says how far it is; or -1.
 * A signal handler may fork, so the first use must not allocate.
 */
enum { TAKES_MEMORY = 't', HAS_MEMORY = 'h' };
static __thread __attribute__((tls_model("initial-exec"))) int child_says[2] = { -1, -1 };

/* Of the same thread, until the child has the memory: which signals were blocked before. */
static __thread __attribute__((tls_model("initial-exec"))) struct {
	bool are_held;
	sigset_t before;
} signals;

/* All signals but those that the thread's own instructions cause: their handling cannot wait. */
static sigset_t signals_to_block(void)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	sigset_t all;

	sigfillset(&all);
	for (unsigned i = 0; i < ARRAY_SIZE(own); i++)
		sigdelset(&all, own[i]);
	return all;
}

/* Returns the signals that were blocked before. */
static sigset_t block_signals(void)
{
	sigset_t all = signals_to_block(), before;

	pthread_sigmask(SIG_BLOCK, &all, &before);
	return before;
}

/* Likewise. */
static sigset_t lock(void)
{
	sigset_t before = block_signals();

	pthread_mutex_lock(&adopted.lock);
	return before;
}

static void unlock(const sigset_t *before)
{
	pthread_mutex_unlock(&adopted.lock);
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

static void step(unsigned slot, enum hca_adopt_event event)
{
	const enum hca_adopt_state next = hca_adopt_next(adopted.state[slot], event);

	if (next == HCA_ADOPT_N_STATES) /* a mistake of ours: the state stays */
		base_log_error(verbs, "adopted memory in state %d has no event %d",
		               adopted.state[slot], event);
	else
		adopted.state[slot] = next;
}

static void file_step(enum hca_adopt_file_event event)
{
	adopted.file = hca_adopt_file_next(adopted.file, event);
}

bool hca_adopt_is_spent(unsigned slot)
{
	return adopted.state[slot] == HCA_ADOPT_SPENT;
}

bool hca_adopt_any(void)
{
	return adopted.n;
}

/* ---- descriptors ---- */

/* False: none is open. */
static bool identify(int fd, struct file_id *id)
{
	struct stat s;

	if (fd < 0 || fstat(fd, &s))
		return false;
	*id = (struct file_id){ .device = s.st_dev, .inode = s.st_ino };
	return true;
}

static bool is_of(int fd, const struct file_id *id)
{
	struct file_id now;

	return identify(fd, &now) && now.device == id->device && now.inode == id->inode;
}

/* A program may close all descriptors that it does not know, and open its own files, which have
 * their numbers then. */
static void forget_what_is_closed(void)
{
	if (adopted.fd >= 0 && !is_of(adopted.fd, &adopted.file_id)) {
		adopted.fd = -1;
		file_step(HCA_ADOPT_FILE_OVER);
	}
	if (!is_of(adopted.proc, &adopted.proc_id))
		adopted.proc = -1;
	if (!is_of(adopted.spare, &adopted.proc_id))
		adopted.spare = -1;
}

/* ---- the file ---- */

/* A file that is larger than a process may make is a signal. */
static bool may_write_files(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur == RLIM_INFINITY;
}

static bool make_file(void)
{
	int fd;

	fd = memfd_create("umbel-adopted", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return false;
	/* peers map it: it may not shrink under them */
	if (ftruncate(fd, (off_t)FILE_BYTES) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ||
	    !identify(fd, &adopted.file_id)) {
		close(fd);
		return false;
	}
	adopted.fd = fd;
	return true;
}

/* Lets peers have the file. The daemon may keep us waiting: signals come meanwhile. A child that a
 * handler forks then has no owner of adopted memory. */
static bool offer(struct hca_process *p, const sigset_t *before)
{
	struct control_offer_memory req = { .kind = CONTROL_MEMORY_ADOPTED };
	bool done;

	if (adopted.file == HCA_ADOPT_OFFERED)
		return true;
	pthread_sigmask(SIG_SETMASK, before, NULL);
	done = !control_call(p->control, &(struct control_call){ .type = CONTROL_OFFER_MEMORY,
	                                                         .request = &req,
	                                                         .request_bytes = sizeof(req),
	                                                         .send_fd = &adopted.fd });
	block_signals();
	if (done && adopted.owner == p)
		file_step(HCA_ADOPT_FILE_OFFERED);
	return adopted.file == HCA_ADOPT_OFFERED;
}

static void free_pages(uint64_t offset, uint64_t bytes)
{
	if (adopted.in_child)
		return;
	fallocate(adopted.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
	          (off_t)bytes);
}

/* Not by pread() and pwrite(): under the sanitizers these complain of memory that the program has
 * freed before it deregisters it. */
static bool write_file(int fd, uint64_t offset, uint64_t at, uint64_t bytes)
{
	for (uint64_t done = 0; done < bytes;) {
		ssize_t n =
		        syscall(SYS_pwrite64, fd, at + done, bytes - done, (off_t)(offset + done));

		if (n <= 0)
			return false;
		done += (uint64_t)n;
	}
	return true;
}

static bool read_file(uint64_t at, int fd, uint64_t offset, uint64_t bytes)
{
	for (uint64_t done = 0; done < bytes;) {
		ssize_t n =
		        syscall(SYS_pread64, fd, at + done, bytes - done, (off_t)(offset + done));

		if (n <= 0)
			return false;
		done += (uint64_t)n;
	}
	return true;
}

/* ---- moving: the caller's thread is alone, or others' writes are held; it takes no signal ---- */

static bool map_file(uint64_t at, uint64_t offset, uint64_t bytes, int prot, int flags)
{
	/* past the mmap() of a sanitizer, which takes it for a write: the bytes stay what they are
	 */
	return syscall(SYS_mmap, at, bytes, prot, flags | MAP_FIXED, adopted.fd, offset) != -1;
}

/*
 * Puts the page at @at elsewhere; there is an empty one now. The kernel takes private memory for
 * one mapping with that beside it, which mremap(2) wants, only if they count their pages alike: by
 * where the program had that memory when it first wrote there. This page knows.
 */
static void keep_page(unsigned slot, uint64_t at)
{
	void *page = mremap((void *)(uintptr_t)at, HCA_PAGE, HCA_PAGE,
	                    MREMAP_MAYMOVE | MREMAP_DONTUNMAP);

	if (page == MAP_FAILED)
		return;
	madvise(page, HCA_PAGE, MADV_DONTNEED);
	adopted.kept[slot] = (uintptr_t)page;
}

static void drop_page(unsigned slot)
{
	if (adopted.kept[slot])
		munmap((void *)(uintptr_t)adopted.kept[slot], HCA_PAGE);
	adopted.kept[slot] = 0;
}

/* Has empty private memory in place of what began with the page that was kept. */
static bool grow_page(unsigned slot, uint64_t at, uint64_t bytes)
{
	void *page = (void *)(uintptr_t)adopted.kept[slot], *grown, *moved;

	if (!page)
		return false;
	grown = mremap(page, HCA_PAGE, bytes, MREMAP_MAYMOVE);
	if (grown == MAP_FAILED)
		return false;
	adopted.kept[slot] = 0;
	moved = mremap(grown, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(uintptr_t)at);
	if (moved == MAP_FAILED)
		munmap(grown, bytes);
	return moved != MAP_FAILED;
}

/* Has the memory at @at lie in the file. @keeps: also a page of what it was. */
static bool move_in(unsigned slot, uint64_t at, uint64_t bytes, bool keeps)
{
	uint64_t offset = hca_adopt_offset(slot, at);

	/* first: if there is no memory, touching the file is a signal, or the end of a process */
	if (!hca_memory_is_left(adopted.owner, bytes) ||
	    fallocate(adopted.fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes))
		return false;
	if (write_file(adopted.fd, offset, at, bytes)) {
		if (keeps)
			keep_page(slot, at);
		if (map_file(at, offset, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE))
			return true;
		if (keeps)
			read_file(at, adopted.fd, offset, HCA_PAGE);
	}
	free_pages(offset, bytes);
	return false;
}

/* In the child of a fork(). @flags: of send(2). */
static void say(char what, int flags)
{
	send(child_says[1], &what, 1, MSG_NOSIGNAL | flags);
}

/* Copies the file to private memory, and empties it, in pieces: then what is there twice is little.
 */
static bool read_pieces(const struct hca_vma *v)
{
	for (uint64_t done = 0, n; done < v->to - v->from; done += n) {
		n = v->to - v->from - done;
		n = n < PIECE ? n : PIECE;
		if (!read_file(v->from + done, adopted.fd, v->offset + done, n))
			return false;
		free_pages(v->offset + done, n);
		if (adopted.in_child)
			say(TAKES_MEMORY, MSG_DONTWAIT);
	}
	return true;
}

static bool map_private(uint64_t at, uint64_t bytes)
{
	return mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE,
	            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* As move_out(), if no descriptor of the file is left: each piece goes through another file. Its
 * page in the first one goes with the last mapping of that. */
static bool move_by_another(const struct hca_vma *v)
{
	int fd = memfd_create("umbel-moved", MFD_CLOEXEC);
	bool good = fd >= 0 &&
	            !mprotect((void *)(uintptr_t)v->from, v->to - v->from, PROT_READ | PROT_WRITE);

	for (uint64_t at = v->from, n; good && at < v->to; at += n) {
		n = v->to - at < PIECE ? v->to - at : PIECE;
		good = write_file(fd, 0, at, n) && map_private(at, n) && read_file(at, fd, 0, n);
		if (good && adopted.in_child)
			say(TAKES_MEMORY, MSG_DONTWAIT);
	}
	if (fd >= 0)
		close(fd);
	return good;
}

/* Turns memory that is mapped from the file into private anonymous memory, by one system call: the
 * kernel makes it one mapping with the anonymous memory beside it. */
static bool move_out(const struct hca_vma *v)
{
	unsigned slot = (unsigned)(v->offset >> HCA_ADOPT_SHIFT);
	uint64_t bytes = v->to - v->from;
	bool is_whole = bytes == adopted.to[slot] - adopted.from[slot], good;

	if (adopted.fd < 0) {
		good = move_by_another(v);
	} else if ((is_whole && grow_page(slot, v->from, bytes)) || map_private(v->from, bytes)) {
		good = read_pieces(v);
	} else {
		map_file(v->from, v->offset, bytes, v->prot, MAP_SHARED); /* it may be gone */
		return false;
	}
	if (good && v->prot != (PROT_READ | PROT_WRITE))
		mprotect((void *)(uintptr_t)v->from, bytes, v->prot);
	return good;
}

/* Makes it private memory while other threads may be writing there: see adopt.h. */
static bool detach(const struct hca_vma *v)
{
	uint64_t bytes = v->to - v->from;

	if (!map_file(v->from, v->offset, bytes, v->prot, MAP_PRIVATE))
		return false;
	step((unsigned)(v->offset >> HCA_ADOPT_SHIFT), HCA_ADOPT_DETACHED);
	for (uint64_t done = 0, n; done < bytes; done += n) {
		n = bytes - done < PIECE ? bytes - done : PIECE;
		/* if it cannot be had for writing, what nobody writes stays in the file */
		if (madvise((void *)(uintptr_t)(v->from + done), n, MADV_POPULATE_WRITE))
			adopted.stays = true;
		else
			free_pages(v->offset + done, n);
	}
	return true;
}

/* ---- what is mapped of the file ---- */

/* The list of mappings, also behind chroot(2), and when there is no descriptor left. */
static bool open_maps(struct hca_maps *m)
{
	if (adopted.proc < 0)
		return hca_maps_open(m, "/proc/self/maps");
	if (hca_maps_open_at(m, adopted.proc, "self/maps"))
		return true;
	if ((errno != EMFILE && errno != ENFILE) || adopted.spare < 0)
		return false;
	close(adopted.spare);
	adopted.spare = -1;
	return hca_maps_open_at(m, adopted.proc, "self/maps");
}

static void close_maps(struct hca_maps *m)
{
	hca_maps_close(m);
	if (adopted.spare < 0)
		adopted.spare = fcntl(adopted.proc, F_DUPFD_CLOEXEC, 0);
}

static bool is_again(const struct hca_vma *v)
{
	for (unsigned i = 0; i < MOST_AGAIN; i++)
		if (v->from - adopted.again[i].at < adopted.again[i].bytes)
			return true;
	return false;
}

/* Calls @visit for each shared mapping of the slot's part of the file, wherever the program has
 * moved it by now (mremap(2)). Whether it was true for all of them. */
static bool each_mapping(unsigned slot, bool (*visit)(const struct hca_vma *v))
{
	struct hca_maps m;
	struct hca_vma v;
	bool good = true;

	if (!open_maps(&m))
		return false;
	while (good && hca_maps_next(&m, &v))
		if (v.inode == adopted.file_id.inode && v.shared &&
		    v.offset >> HCA_ADOPT_SHIFT == slot && strstr(v.name, "umbel-adopted") &&
		    !is_again(&v))
			good = visit(&v);
	close_maps(&m);
	return good;
}

/* With the lock held. */
static bool give_back(unsigned slot, bool is_alone)
{
	forget_what_is_closed();
	adopted.stays = false;
	if (adopted.forking || !each_mapping(slot, is_alone ? move_out : detach))
		return false;
	/* also what the program has unmapped itself: a private mapping that grows would show it */
	if (!adopted.stays)
		free_pages(hca_adopt_offset(slot, adopted.from[slot]),
		           adopted.to[slot] - adopted.from[slot]);
	drop_page(slot);
	adopted.from[slot] = adopted.to[slot] = 0;
	step(slot, HCA_ADOPT_GIVEN_BACK);
	adopted.n--;
	if (++adopted.ends >= MOST_ENDS)
		file_step(HCA_ADOPT_FILE_OVER);
	return true;
}

bool hca_adopt_end(unsigned slot, bool is_alone)
{
	int cancel_state = base_cancel_off();
	sigset_t before = lock();
	bool done = give_back(slot, is_alone);

	unlock(&before);
	base_cancel_restore(cancel_state);
	return done;
}

bool hca_adopt_is_there(unsigned slot, uint64_t from, uint64_t to)
{
	uint64_t offset = hca_adopt_offset(slot, from);
	struct hca_vma v;

	return hca_maps_find(from, &v) && v.shared && v.inode == adopted.file_id.inode &&
	       v.to >= to && v.offset + (from - v.from) == offset;
}

/* ---- mapped again ---- */

void *hca_adopt_map_again(uint64_t offset, uint64_t bytes)
{
	sigset_t before = lock();
	void *at = MAP_FAILED;
	unsigned i = 0;

	forget_what_is_closed();
	while (i < MOST_AGAIN && adopted.again[i].bytes)
		i++;
	if (i < MOST_AGAIN && adopted.fd >= 0)
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, adopted.fd,
		          (off_t)offset);
	if (at != MAP_FAILED) {
		adopted.again[i].at = (uintptr_t)at;
		adopted.again[i].bytes = bytes;
	}
	unlock(&before);
	return at == MAP_FAILED ? NULL : at;
}

void hca_adopt_unmap(void *at, uint64_t bytes)
{
	sigset_t before = lock();

	munmap(at, bytes);
	for (unsigned i = 0; i < MOST_AGAIN; i++)
		if (adopted.again[i].at == (uintptr_t)at)
			adopted.again[i].at = adopted.again[i].bytes = 0;
	unlock(&before);
}

/* ---- fork ---- */

/* A signal's handler in the parent could write what the child has yet to copy, one in the child
 * find memory that is just moving, and either of them fork: none runs until the child has the
 * memory. */
static void hold_signals(const sigset_t *before)
{
	if (!signals.are_held)
		signals.before = *before;
	signals.are_held = true;
}

static void release_signals(void)
{
	if (signals.are_held)
		pthread_sigmask(SIG_SETMASK, &signals.before, NULL);
	signals.are_held = false;
}

/* Nothing moves until fork() is over. No lock is held meanwhile: other handlers of fork() may wait
 * for threads that register. */
static void before_fork(void)
{
	sigset_t before, blocked = signals_to_block();

	if (!adopted.owner)
		return;
	before = lock();
	adopted.forking++;
	if (adopted.n) {
		file_step(HCA_ADOPT_FILE_OVER);
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, child_says))
			child_says[0] = child_says[1] = -1;
		hold_signals(&before);
		sigorset(&before, &before, &blocked);
	}
	unlock(&before);
}

static void close_end(unsigned i)
{
	if (child_says[i] >= 0)
		close(child_says[i]);
	child_says[i] = -1;
}

/* Until the child has the memory, or has ended. */
static void wait_for_child(void)
{
	struct pollfd said = { .fd = child_says[0], .events = POLLIN };
	char what = TAKES_MEMORY;
	int n;

	while (what == TAKES_MEMORY) {
		n = poll(&said, 1, MOST_WAIT_MS);
		if (n < 0 && errno == EINTR)
			continue;
		if (!n)
			base_log_warning(verbs, "a child of fork() does not go on: it shares "
			                        "registered memory until it does");
		if (n <= 0 || read(said.fd, &what, 1) <= 0)
			break;
	}
}

/* The child takes the adopted memory out of the file, as it is before fork() returns here. */
static void after_fork_in_parent(void)
{
	int cancel_state;
	sigset_t before;

	if (!adopted.owner)
		return;
	cancel_state = base_cancel_off();
	if (child_says[1] >= 0) {
		close_end(1); /* then the child has the only one */
		wait_for_child();
	}
	close_end(0);
	before = lock();
	adopted.forking--;
	unlock(&before);
	release_signals();
	base_cancel_restore(cancel_state);
}

static void close_files(void)
{
	const int files[] = { adopted.fd, adopted.proc, adopted.spare };

	for (unsigned i = 0; i < ARRAY_SIZE(files); i++)
		if (files[i] >= 0)
			close(files[i]);
	adopted.fd = adopted.proc = adopted.spare = -1;
}

/* The child starts anew. It has the memory mapped of its parent's file until it has copied it. */
static void after_fork_in_child(void)
{
	if (!adopted.owner)
		return;
	forget_what_is_closed();
	adopted.in_child = true;
	close_end(0);
	for (unsigned i = 0; i < SHM_OBJECTS; i++) {
		if (adopted.to[i] && !each_mapping(i, move_out))
			base_log_warning(verbs, "a child of fork() shares registered memory");
		drop_page(i);
		step(i, HCA_ADOPT_CHILD);
	}
	if (child_says[1] >= 0)
		say(HAS_MEMORY, 0);
	close_end(1);
	close_files();
	pthread_mutex_init(&adopted.lock, NULL);
	memset(adopted.from, 0, sizeof(adopted.from));
	memset(adopted.to, 0, sizeof(adopted.to));
	adopted.n = adopted.forking = adopted.ends = 0;
	adopted.owner = NULL;
	adopted.in_child = false;
	file_step(HCA_ADOPT_FILE_CHILD);
	release_signals();
}

/* When the library is loaded, so that handlers of the program come after ours, in both processes:
 * what the handlers write is their own process's. */
__attribute__((constructor)) static void watch_forks(void)
{
	adopted.forks_watched =
	        !pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- adopting ---- */

static bool has_files(void)
{
	forget_what_is_closed();
	if (adopted.proc < 0)
		adopted.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!identify(adopted.proc, &adopted.proc_id))
		return false;
	if (adopted.spare < 0)
		adopted.spare = fcntl(adopted.proc, F_DUPFD_CLOEXEC, 0);
	return adopted.spare >= 0 &&
	       (adopted.fd >= 0 || adopted.file == HCA_ADOPT_OVER || make_file());
}

static bool prepare(struct hca_process *p, const sigset_t *before)
{
	if (adopted.owner && adopted.owner != p)
		return false; /* a former fabric's */
	if (!has_files())
		file_step(HCA_ADOPT_FILE_OVER); /* it would not be better next time */
	if (adopted.file == HCA_ADOPT_OVER)
		return false;
	if (!adopted.forks_watched)
		return false;
	adopted.owner = p;
	return offer(p, before);
}

/* Whether nobody writes there while it moves: nobody else is there, *@is_alone, or others can be
 * held. */
static bool can_stand_still(bool *is_alone)
{
	*is_alone = hca_plain_alone();
	return *is_alone || hca_hold_is_possible();
}

static bool can_adopt(struct hca_process *p, uint64_t from, uint64_t to, const sigset_t *before,
                      bool *is_alone)
{
	return p->region.control->settings.adopt && !p->is_watched &&
	       adopted.file != HCA_ADOPT_OVER && p->mrs.ids.used <= MOST_REGIONS &&
	       to - from <= HCA_ADOPT_MOST && to < SLOT_BYTES && can_stand_still(is_alone) &&
	       may_write_files() && !hca_mr_overlaps(&p->mrs, from, to) && !hca_plain_pinned() &&
	       hca_plain_range(from, to) && prepare(p, before);
}

/* Moves all in. Returns up to where: there may be no memory left. @hold: -1, or writes go on as
 * soon as what is written has moved. */
static uint64_t move_range(unsigned slot, uint64_t from, uint64_t to, int hold)
{
	uint64_t first = from;

	for (uint64_t n; from < to; from += n) {
		n = to - from < PIECE ? to - from : PIECE;
		if (!move_in(slot, from, n, hold < 0 && from == first))
			break;
		if (hold >= 0)
			hca_hold_replaced(hold, from, from + n);
	}
	return from;
}

/*
 * The same beside other threads. They may have asked the kernel to write there, or to wait there,
 * before their writes were held. Such calls are looked for behind that: they would go on by pages,
 * not by addresses.
 */
static uint64_t move_held(unsigned slot, uint64_t from, uint64_t to)
{
	int hold = hca_hold(from, to);
	uint64_t at = from;

	if (hold < 0)
		return from;
	if (!hca_plain_pinned() && !hca_plain_noticed(from, to))
		at = move_range(slot, from, to, hold);
	hca_hold_end(hold);
	return at;
}

/* With the lock held. */
static bool adopt(unsigned slot, uint64_t from, uint64_t to, bool is_alone)
{
	struct hca_vma moved = { .from = from,
		                 .to = from,
		                 .offset = hca_adopt_offset(slot, from),
		                 .prot = PROT_READ | PROT_WRITE };

	if (!adopted.forking)
		moved.to = is_alone ? move_range(slot, from, to, -1) : move_held(slot, from, to);
	if (moved.to == to) {
		adopted.from[slot] = from;
		adopted.to[slot] = to;
		step(slot, HCA_ADOPT_MOVED_IN);
		adopted.n++;
		return true;
	}
	/* the pages that were moved become private memory again */
	if (moved.to > from && !(is_alone ? move_out : detach)(&moved))
		base_log_warning(verbs, "registered memory stays in a file");
	drop_page(slot);
	return false;
}

/* A signal's handler that forks in the middle would leave its child with this process's file, and
 * about to use that. */
bool hca_adopt(struct hca_process *p, unsigned slot, uint64_t from, uint64_t to)
{
	int cancel_state = base_cancel_off();
	sigset_t before = block_signals();
	bool is_alone = false, done = can_adopt(p, from, to, &before, &is_alone);

	if (done) {
		pthread_mutex_lock(&adopted.lock);
		done = adopt(slot, from, to, is_alone);
		pthread_mutex_unlock(&adopted.lock);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	base_cancel_restore(cancel_state);
	return done;
}
