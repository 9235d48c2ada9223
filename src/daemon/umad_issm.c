/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a subnet manager says that it is one: see umad_issm.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "control/path.h"
#include "daemon/subnet.h"
#include "daemon/umad_issm.h"
#include "wire/sm_attr.h"

struct umad_issm {
	LIST_ENTRY(umad_issm) entry;
	struct daemon_umad *u;
	struct fabric_port *at;
	sd_event_source *opened; /* somebody opens it */
	sd_event_source *closed; /* all have closed it; NULL: nobody has it open */
	int fd;                  /* our end, while somebody has the other */
	char path[512];
};

static void set_is_sm(struct umad_issm *i, bool is_sm)
{
	fabric_sma_set_capabilities(i->u->d.f, i->at, is_sm ? PORT_CAP_SM : 0,
	                            is_sm ? 0 : PORT_CAP_SM);
	daemon_subnet_issm(i->u->d.subnet, i->at, is_sm);
}

static void look(struct umad_issm *i);

static int on_closed(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct umad_issm *i = arg;

	(void)s;
	(void)fd;
	(void)revents;
	i->closed = sd_event_source_disable_unref(i->closed);
	close(i->fd);
	set_is_sm(i, false);
	look(i); /* another may have come meanwhile */
	return 0;
}

/* Looks whether anybody has it open. */
static void look(struct umad_issm *i)
{
	if (i->closed)
		return;
	i->fd = open(i->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (i->fd < 0)
		return; /* ENXIO: no */
	/* without events: EPOLLERR, which says that there is no reader, always comes */
	if (sd_event_add_io(i->u->d.loop->events, &i->closed, i->fd, 0, on_closed, i) < 0) {
		base_log_warning(umad, "cannot watch '%s'", i->path);
		close(i->fd);
		return;
	}
	set_is_sm(i, true);
}

static int on_opened(sd_event_source *s, const struct inotify_event *event, void *arg)
{
	(void)s;
	(void)event;
	look(arg);
	return 0;
}

static void issm_free(struct umad_issm *i)
{
	sd_event_source_disable_unref(i->opened);
	if (i->closed) {
		sd_event_source_disable_unref(i->closed);
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
	if (i->at == at)
		return 0;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	i->u = u;
	i->at = at;
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
		ret = sd_event_add_inotify(u->d.loop->events, &i->opened, i->path, IN_OPEN,
		                           on_opened, i);
	if (ret < 0)
		issm_free(i);
	return ret < 0 ? ret : 0;
}

void umad_issm_fini(struct daemon_umad *u)
{
	while (!LIST_EMPTY(&u->issms))
		issm_free(LIST_FIRST(&u->issms));
}
