/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XRC domains: see xrc.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/clients/xrc.h"

struct daemon_xrcd {
	uint32_t number;
	uint32_t hca;
	unsigned opened; /* handles */
	int fd;          /* keeps the file, so that its inode is not used again; -1: none */
	dev_t dev;
	ino_t ino;
};

struct daemon_xrcd_handle {
	LIST_ENTRY(daemon_xrcd_handle) entry; /* of the holder */
	struct daemon_xrcd *xrcd;
};

static struct daemon_xrcd *find(const struct daemon_xrcds *all, uint32_t hca,
                                const struct statx *file)
{
	for (uint32_t i = 1; i < all->ids.size; i++) {
		struct daemon_xrcd *x = base_idtable_get(&all->ids, i);

		if (x && x->fd >= 0 && x->hca == hca &&
		    x->dev == makedev(file->stx_dev_major, file->stx_dev_minor) &&
		    x->ino == file->stx_ino)
			return x;
	}
	return NULL;
}

static void free_xrcd(struct daemon_xrcds *all, struct daemon_xrcd *x)
{
	base_idtable_remove(&all->ids, x->number);
	if (x->fd >= 0)
		daemon_loop_close(all->loop, x->fd);
	free(x);
}

/* A domain of the file; @fd is -1: of none. NULL: there is no room. */
static struct daemon_xrcd *add(struct daemon_xrcds *all, uint32_t hca, int fd,
                               const struct statx *file)
{
	struct daemon_xrcd *x = calloc(1, sizeof(*x));

	if (!x || base_idtable_add(&all->ids, x, &x->number)) {
		free(x);
		return NULL;
	}
	x->hca = hca;
	x->fd = -1;
	if (fd < 0)
		return x;
	x->dev = makedev(file->stx_dev_major, file->stx_dev_minor);
	x->ino = file->stx_ino;
	x->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (x->fd >= 0)
		return x;
	free_xrcd(all, x);
	return NULL;
}

static bool has_room(const struct daemon_holder *holder)
{
	const struct daemon_xrcd_handle *handle;
	unsigned n = 0;

	LIST_FOREACH(handle, &holder->xrcds, entry)
	n++;
	return n < DAEMON_HOLDER_XRCDS;
}

int daemon_xrcd_open(struct daemon_xrcds *all, struct daemon_hca *h, int fd,
                     const struct control_open_xrcd *want, uint32_t *number)
{
	struct daemon_xrcd_handle *handle;
	struct daemon_xrcd *x = NULL;
	struct statx file = { 0 };

	/* not fstat(): a file system that does not answer must not keep the daemon */
	if (fd >= 0 && statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &file))
		return -EINVAL;
	if (fd >= 0)
		x = find(all, h->hca, &file);
	if (x && want->exclusive)
		return -EINVAL;
	if (!x && fd >= 0 && !want->create)
		return -EAGAIN;
	handle = has_room(h->holder) ? calloc(1, sizeof(*handle)) : NULL;
	if (!handle)
		return -ENOMEM;
	if (!x)
		x = add(all, h->hca, fd, &file);
	if (!x) {
		free(handle);
		return -ENOMEM;
	}
	x->opened++;
	handle->xrcd = x;
	LIST_INSERT_HEAD(&h->holder->xrcds, handle, entry);
	*number = x->number;
	return 0;
}

static void close_handle(struct daemon_xrcds *all, struct daemon_xrcd_handle *handle)
{
	LIST_REMOVE(handle, entry);
	if (!--handle->xrcd->opened)
		free_xrcd(all, handle->xrcd);
	free(handle);
}

/* A handle of the holder; NULL: it has none. */
static struct daemon_xrcd_handle *handle_of(const struct daemon_holder *holder, uint32_t number)
{
	struct daemon_xrcd_handle *handle;

	LIST_FOREACH(handle, &holder->xrcds, entry)
	if (handle->xrcd->number == number)
		return handle;
	return NULL;
}

int daemon_xrcd_close(struct daemon_xrcds *all, struct daemon_holder *holder, uint32_t number)
{
	struct daemon_xrcd_handle *handle = handle_of(holder, number);

	if (!handle)
		return -EINVAL;
	close_handle(all, handle);
	return 0;
}

bool daemon_xrcd_is_open(const struct daemon_holder *holder, uint32_t number)
{
	return handle_of(holder, number);
}

/* ---- all ---- */

/* There are few: DAEMON_HOLDER_XRCDS. */
static bool free_of_holder(void *arg, struct daemon_holder *holder, uint32_t *budget)
{
	(void)budget;
	while (!LIST_EMPTY(&holder->xrcds))
		close_handle(arg, LIST_FIRST(&holder->xrcds));
	return true;
}

int daemon_xrcds_init(struct daemon_xrcds *all, struct daemon_loop *loop,
                      struct daemon_endings *endings)
{
	uint32_t none;

	all->loop = loop;
	daemon_ending_register(endings, &all->ending, free_of_holder, all);
	base_idtable_init(&all->ids, DAEMON_MAX_XRCDS + 1);
	return base_idtable_add(&all->ids, all, &none); /* no domain is 0 */
}
