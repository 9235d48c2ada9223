/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process's session with the daemon: one connection, made when first needed, and again
 * after a fork() in the child or when a daemon has gone. The one registry of the library,
 * with the lock that guards it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/umad/umad.h"
#include "base/reason.h"
#include "control/join.h"

static struct {
	pthread_mutex_t lock;
	struct umad_fabric fabric; /* client NULL: none */
	LIST_HEAD(, umad_open) ports;
	bool forks_watched;
	bool explained; /* why there is no fabric */
} session = { .lock = PTHREAD_MUTEX_INITIALIZER };

BASE_COLD int umad_failed(const char *name, int error, int ret)
{
	base_call_failed(umad, name, -error);
	return ret;
}

void umad_lock(int *cancel_state)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel_state);
	pthread_mutex_lock(&session.lock);
}

void umad_unlock(int cancel_state)
{
	pthread_mutex_unlock(&session.lock);
	pthread_setcancelstate(cancel_state, NULL);
}

static void before_fork(void)
{
	pthread_mutex_lock(&session.lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&session.lock);
}

static void leave(struct umad_fabric *f)
{
	shm_region_unmap(&f->region);
	control_close(f->client);
	f->client = NULL;
}

int umad_fabric_get(struct umad_fabric **out)
{
	struct umad_fabric *f = &session.fabric;
	int ret;

	if (!session.forks_watched)
		pthread_atfork(before_fork, after_fork, after_fork);
	session.forks_watched = true;
	/* the connection is its process's: two cannot share it */
	if (f->client && (f->pid != getpid() || shm_daemon_gone(&f->region)))
		leave(f);
	if (!f->client) {
		ret = control_join(&f->client, CONTROL_ROLE_UMAD, &f->region, &f->host_index);
		if (ret)
			f->client = NULL;
		if (ret && !session.explained)
			control_join_explain(ret);
		session.explained = ret != 0;
		if (ret == -ENOENT || ret == -ECONNREFUSED)
			return -ENODEV; /* as on a machine without a card */
		if (ret)
			return ret;
		f->pid = getpid();
	}
	*out = f;
	return 0;
}

int umad_call(enum control_umad_type type, const void *request, uint32_t bytes, void *reply,
              uint32_t reply_bytes)
{
	struct umad_fabric *f;
	int cancel_state, ret;

	umad_lock(&cancel_state);
	ret = umad_fabric_get(&f);
	if (!ret)
		ret = control_call(f->client,
		                   &(struct control_call){ .type = (enum control_type)type,
		                                           .request = request,
		                                           .request_bytes = bytes,
		                                           .reply = reply,
		                                           .reply_bytes = reply_bytes });
	umad_unlock(cancel_state);
	return ret;
}

struct umad_open *umad_open_find(int fd)
{
	struct umad_open *port;

	LIST_FOREACH(port, &session.ports, entry)
	if (port->fd == fd)
		return port;
	return NULL;
}

static void open_remove(struct umad_open *port)
{
	LIST_REMOVE(port, entry);
	free(port);
}

void umad_open_add(struct umad_open *port)
{
	struct umad_open *stale = umad_open_find(port->fd);

	if (stale) /* closed by close() */
		open_remove(stale);
	LIST_INSERT_HEAD(&session.ports, port, entry);
}

void umad_open_closed(struct umad_open *port)
{
	struct control_umad_port req = { .port = port->handle };
	struct umad_fabric *f = &session.fabric;

	open_remove(port);
	if (!f->client || f->pid != getpid() || shm_daemon_gone(&f->region))
		return; /* it was another process's first, or nobody is there to be told */
	control_call(f->client,
	             &(struct control_call){ .type = (enum control_type)CONTROL_UMAD_CLOSED,
	                                     .request = &req,
	                                     .request_bytes = sizeof(req) });
}
