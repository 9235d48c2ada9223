/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files that subnet managers open to set IsSM on their port: see umad_issm.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "control/path.h"
#include "daemon/subnet/subnet.h"
#include "daemon/umad/umad_issm.h"
#include "wire/sm_attr.h"

#define EVENTS_ROOM 4096

struct umad_issm {
	LIST_ENTRY(umad_issm) entry;
	struct daemon_umad *u;
	struct fabric_port *at;
	int opened;                  /* the watch: somebody opens it; -1: none */
	struct daemon_source closed; /* all have closed it; not watched: nobody has it open */
	int fd;                      /* our end, while somebody has the other */
	char path[512];
};

static void set_is_sm(struct umad_issm *i, bool is_sm)
{
	i->at->has_issm_open = is_sm;
	fabric_port_publish(i->u->d.f, i->at);
	fabric_sma_set_capabilities(i->u->d.f, i->at, is_sm ? PORT_CAP_SM : 0,
	                            is_sm ? 0 : PORT_CAP_SM);
	daemon_subnet_issm(i->u->d.subnet, i->at, is_sm);
}

static void look(struct umad_issm *i);

static void on_closed(struct daemon_source *s, uint32_t events)
{
	(void)events;
	look(container_of(s, struct umad_issm, closed));
}

/* Whether a program has it open that had it when we looked last, or since. */
static bool is_still_open(const struct umad_issm *i)
{
	struct pollfd end = { .fd = i->fd };

	return !poll(&end, 1, 0);
}

/* Looks whether anybody has it open. */
static void look(struct umad_issm *i)
{
	if (daemon_source_is_watched(&i->closed)) {
		if (is_still_open(i))
			return;
		daemon_source_stop(&i->closed);
		close(i->fd);
		set_is_sm(i, false);
	}
	i->fd = open(i->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (i->fd < 0)
		return; /* ENXIO: no */
	/* without events: EPOLLERR, which says that there is no reader, always comes */
	i->closed.ready = on_closed;
	if (daemon_source_watch(i->u->d.loop, &i->closed, i->fd, 0)) {
		base_log_warning(umad, "cannot watch '%s'", i->path);
		close(i->fd);
		return;
	}
	set_is_sm(i, true);
}

/* Somebody opens one, or several. */
static void on_opened(struct daemon_source *s, uint32_t events)
{
	struct daemon_umad *u = container_of(s, struct daemon_umad, issm_source);
	union {
		struct inotify_event event;
		char space[EVENTS_ROOM];
	} in;
	ssize_t n = read(u->issm_fd, &in, sizeof(in));
	struct umad_issm *i;

	(void)events;
	for (ssize_t at = 0; at < n; at += (ssize_t)sizeof(in.event)) {
		const struct inotify_event *e = (const void *)(in.space + at);

		at += e->len;
		LIST_FOREACH(i, &u->issms, entry)
		if (i->opened == e->wd || (e->mask & IN_Q_OVERFLOW))
			look(i);
	}
}

static void issm_free(struct umad_issm *i)
{
	if (i->opened >= 0)
		inotify_rm_watch(i->u->issm_fd, i->opened);
	if (daemon_source_is_watched(&i->closed)) {
		daemon_source_stop(&i->closed);
		close(i->fd);
	}
	unlink(i->path);
	LIST_REMOVE(i, entry);
	free(i);
}

int umad_issm_open(struct daemon_umad *u, struct fabric_port *at)
{
	struct umad_issm *i;
	char leaf[32];
	int ret;

	LIST_FOREACH(i, &u->issms, entry)
	if (i->at == at) {
		look(i); /* it may have been opened or closed just now */
		return 0;
	}
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	i->u = u;
	i->at = at;
	i->opened = -1;
	snprintf(leaf, sizeof(leaf), CONTROL_UMAD_ISSM_LEAF, at->index);
	ret = control_path(i->path, sizeof(i->path), u->d.fabric, leaf);
	if (ret) {
		free(i);
		return ret;
	}
	LIST_INSERT_HEAD(&u->issms, i, entry);
	unlink(i->path); /* a dead daemon's */
	ret = mkfifo(i->path, 0600) < 0 ? -errno : 0;
	if (!ret)
		i->opened = inotify_add_watch(u->issm_fd, i->path, IN_OPEN);
	if (!ret && i->opened < 0)
		ret = -errno;
	if (ret)
		issm_free(i);
	return ret;
}

int umad_issm_init(struct daemon_umad *u)
{
	int ret;

	u->issm_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (u->issm_fd < 0)
		return -errno;
	u->issm_source.ready = on_opened;
	ret = daemon_source_watch(u->d.loop, &u->issm_source, u->issm_fd, EPOLLIN);
	if (ret)
		close(u->issm_fd);
	return ret;
}

void umad_issm_fini(struct daemon_umad *u)
{
	while (!LIST_EMPTY(&u->issms))
		issm_free(LIST_FIRST(&u->issms));
	daemon_source_stop(&u->issm_source);
	close(u->issm_fd);
}
