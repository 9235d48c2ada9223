/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files of the tree that the program has open: see opened.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"
#include "control/path.h"
#include "control/umad_message.h"
#include "sysfs/opened.h"
#include "sysfs/real.h"
#include "sysfs/session.h"
#include "sysfs/stand_in.h"

#define MAX_TRACKED 1024

/* The registry of open files, by descriptor; node 0: none. One that is being replaced while
 * another thread looks has another identity, and is not found. */
static struct {
	_Atomic uint64_t node, identity;
} opened[MAX_TRACKED];
static atomic_bool any_opened;

/* ---- what is remembered */

/* Of the inode behind a descriptor; 0: there is none. From the kernel itself: another preloaded
 * library may ask us for what it does. */
static uint64_t identity_of(int fd)
{
	struct stat st;
	int error = errno;

	if (!syscall(SYS_fstat, fd, &st))
		return st.st_ino ^ (uint64_t)st.st_dev << 40;
	errno = error;
	return 0;
}

static int remember(int fd, const struct sysfs_node *node)
{
	if (fd < 0 || fd >= MAX_TRACKED)
		return fd;
	atomic_store(&opened[fd].node, 0);
	atomic_store(&opened[fd].identity, identity_of(fd));
	atomic_store(&opened[fd].node, sysfs_pack(node));
	atomic_store(&any_opened, true);
	return fd;
}

void sysfs_opened_forget(int fd)
{
	if (atomic_load_explicit(&any_opened, memory_order_relaxed) && fd >= 0 && fd < MAX_TRACKED)
		atomic_store(&opened[fd].node, 0);
}

static bool find(int fd, struct sysfs_node *node)
{
	uint64_t packed, identity;

	if (!atomic_load_explicit(&any_opened, memory_order_relaxed) || fd < 0 || fd >= MAX_TRACKED)
		return false;
	packed = atomic_load(&opened[fd].node);
	if (!packed)
		return false;
	identity = identity_of(fd);
	*node = sysfs_unpack(packed);
	return identity && identity == atomic_load(&opened[fd].identity);
}

bool sysfs_opened_find(int fd, struct sysfs_node *node)
{
	return find(fd, node) && sysfs_kind(node) != SYSFS_OUTSIDE;
}

bool sysfs_opened_find_dir(int fd, struct sysfs_node *node)
{
	return find(fd, node) && sysfs_kind(node) == SYSFS_OUTSIDE;
}

void sysfs_opened_note_dir(int fd, const struct sysfs_node *node)
{
	if (sysfs_adds_to(node))
		remember(fd, node);
	sysfs_note_dir();
}

/* ---- contents */

/* Where no file may be written: a pipe holds the text, too, though it cannot be read again. */
static int open_pipe(const char *text, size_t length, int cloexec)
{
	int fd[2];

	if (pipe2(fd, cloexec))
		return -1;
	if (write(fd[1], text, length) != (ssize_t)length) {
		close(fd[0]);
		fd[0] = -1;
	}
	close(fd[1]);
	return fd[0];
}

/* Whether the process may write files of this size: else it would get a signal. */
static bool may_write(size_t length)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= length;
}

static int open_text(const char *text, size_t length, bool cloexec)
{
	int fd = may_write(length) ? memfd_create("umbel-sysfs", cloexec ? MFD_CLOEXEC : 0) : -1;

	if (fd < 0 && may_write(length) && errno != ENOSYS && errno != EPERM && errno != EACCES)
		return -1;
	if (fd < 0)
		return open_pipe(text, length, cloexec ? O_CLOEXEC : 0);
	if (pwrite(fd, text, length, 0) == (ssize_t)length)
		return fd;
	close(fd);
	errno = EIO;
	return -1;
}

void sysfs_opened_refresh(int fd)
{
	char text[SYSFS_TEXT_ROOM];
	struct sysfs_node node;
	int n, error = errno, cancel_state;

	if (!sysfs_opened_find(fd, &node) || sysfs_kind(&node) != SYSFS_FILE)
		return;
	cancel_state = base_cancel_off();
	n = sysfs_text(&node, text);
	if (n == -EINVAL)
		n = 0; /* an entry that has become empty */
	if (n < 0 || !may_write(sizeof(text)) || pwrite(fd, text, (size_t)n, 0) != n ||
	    ftruncate(fd, n))
		base_log_debug(sysfs, "descriptor %d keeps the text that it has", fd);
	base_cancel_restore(cancel_state);
	errno = error;
}

static int open_file(const struct sysfs_node *node, int flags)
{
	char text[SYSFS_TEXT_ROOM];
	int n;

	if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC)) {
		errno = EACCES;
		return -1;
	}
	n = sysfs_text(node, text);
	if (n < 0) {
		errno = -n;
		return -1;
	}
	return remember(open_text(text, (size_t)n, flags & O_CLOEXEC), node);
}

/* ---- directories and devices */

static int open_dir(const struct sysfs_place *place, int flags)
{
	char path[PATH_MAX];
	int ret;

	if ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC))) {
		errno = EISDIR;
		return -1;
	}
	ret = sysfs_stand_in_make(place, true, path);
	if (ret) {
		errno = -ret;
		return -1;
	}
	sysfs_note_dir();
	return sysfs_real()->open(path, flags);
}

/* The program that has it open is a subnet manager at the port. */
static int open_issm(uint32_t port, int flags)
{
	char path[PATH_MAX];
	int fd, ret = sysfs_session_issm(port, path, sizeof(path));

	if (ret) {
		errno = -ret;
		return -1;
	}
	/* without waiting for the daemon to open the other end */
	fd = sysfs_real()->open(path, O_RDONLY | O_NONBLOCK | (flags & O_CLOEXEC));
	if (fd >= 0 && !(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, 0) < 0) {
		close(fd);
		return -1;
	}
	if (fd >= 0)
		sysfs_session_look_at_issm(port);
	return fd;
}

/* Whether it is the fabric's FIFO itself, by the path that umad_get_issm_path() says. */
static bool is_fifo_of(int fd, uint32_t port)
{
	struct stat opened_one, own;
	char leaf[32], full[PATH_MAX];

	snprintf(leaf, sizeof(leaf), CONTROL_UMAD_ISSM_LEAF, port);
	return !control_path(full, sizeof(full), control_fabric_name(), leaf) &&
	       !syscall(SYS_fstat, fd, &opened_one) && S_ISFIFO(opened_one.st_mode) &&
	       !sysfs_real()->stat(full, &own) && own.st_dev == opened_one.st_dev &&
	       own.st_ino == opened_one.st_ino;
}

void sysfs_opened_look_at_issm(int fd, const char *path)
{
	const char *name = strrchr(path, '/');
	int cancel_state;
	uint32_t port;

	/* any open() comes here, one in a signal handler too, which sscanf() is not for */
	if (!name || strncmp(name, "/issm", 5) != 0 ||
	    sscanf(name, "/" CONTROL_UMAD_ISSM_LEAF, &port) != 1)
		return;
	cancel_state = base_cancel_off();
	if (is_fifo_of(fd, port))
		sysfs_session_look_at_issm(port);
	base_cancel_restore(cancel_state);
}

static int open_device(const struct sysfs_node *node, int flags)
{
	uint32_t port;
	int fd;

	if (sysfs_is_issm(node, &port))
		fd = open_issm(port, flags);
	else
		fd = sysfs_real()->open("/dev/null", flags & (O_ACCMODE | O_CLOEXEC | O_NONBLOCK));
	return remember(fd, node);
}

/* A link itself, as programs open it that follow links by code of their own: the one in its
 * directory's stand-in. */
static int open_link(const struct sysfs_place *place, int flags)
{
	char path[PATH_MAX], dir[PATH_MAX];
	struct sysfs_place parent;
	const char *name = strrchr(place->canonical, '/') + 1;
	size_t n = (size_t)(name - place->canonical);
	int ret;

	memcpy(dir, place->canonical, n);
	dir[n] = '\0';
	sysfs_resolve(AT_FDCWD, dir, true, &parent);
	ret = sysfs_stand_in_make(&parent, true, path);
	n = strlen(path);
	if (!ret && snprintf(path + n, sizeof(path) - n, "/%s", name) >= (int)(sizeof(path) - n))
		ret = -ENAMETOOLONG;
	if (!ret)
		return sysfs_real()->open(path, flags);
	errno = -ret;
	return -1;
}

static int open_place(const struct sysfs_place *place, int flags)
{
	enum sysfs_kind kind = sysfs_kind(&place->node);

	if ((flags & O_CREAT) && (flags & O_EXCL)) {
		errno = EEXIST;
		return -1;
	}
	if (kind == SYSFS_DIR)
		return open_dir(place, flags);
	if (flags & O_DIRECTORY) {
		errno = ENOTDIR;
		return -1;
	}
	if (kind == SYSFS_LINK && (flags & O_PATH))
		return open_link(place, flags);
	if (kind == SYSFS_LINK) {
		errno = ELOOP;
		return -1;
	}
	return kind == SYSFS_DEVICE ? open_device(&place->node, flags)
	                            : open_file(&place->node, flags);
}

/* A thread that is cancelled here would leave a descriptor that nobody knows. */
int sysfs_open_place(const struct sysfs_place *place, int flags)
{
	int cancel_state = base_cancel_off(), fd = open_place(place, flags);

	base_cancel_restore(cancel_state);
	return fd;
}

/* ---- stat */

int sysfs_stat_node(const struct sysfs_node *node, struct stat *st)
{
	static const mode_t modes[] = { [SYSFS_OUTSIDE] = S_IFDIR | 0755,
		                        [SYSFS_DIR] = S_IFDIR | 0755,
		                        [SYSFS_LINK] = S_IFLNK | 0777,
		                        [SYSFS_FILE] = S_IFREG | 0444,
		                        [SYSFS_DEVICE] = S_IFCHR | 0666 };
	enum sysfs_kind kind = sysfs_kind(node);
	char text[SYSFS_TEXT_ROOM];

	/* its times and device; or that @st leads nowhere */
	if (sysfs_real()->stat(kind == SYSFS_DEVICE ? "/dev" : "/sys", st) &&
	    sysfs_real()->stat("/", st))
		return -1;
	st->st_ino = sysfs_pack(node);
	st->st_mode = modes[kind];
	st->st_nlink = kind == SYSFS_DIR ? 2 : 1;
	st->st_uid = st->st_gid = 0;
	st->st_rdev = kind == SYSFS_DEVICE ? sysfs_device(node) : 0;
	st->st_size = kind == SYSFS_FILE ? 4096 : kind == SYSFS_LINK ? sysfs_text(node, text) : 0;
	st->st_blksize = 4096;
	st->st_blocks = 0;
	return 0;
}

int sysfs_stat_place(const struct sysfs_place *place, struct stat *st)
{
	char path[PATH_MAX];

	/* programs compare it with fstat() of what they open */
	if (sysfs_kind(&place->node) == SYSFS_DIR && !sysfs_stand_in_make(place, false, path))
		return sysfs_real()->stat(path, st);
	return sysfs_stat_node(&place->node, st);
}
