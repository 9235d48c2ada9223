/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which socket a descriptor's number means: see sockets.h. The one table of them is here.
 */
#include <errno.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <unistd.h>

#include "sockets/sockets.h"

_Thread_local unsigned sockets_inside;
_Atomic(struct sockets_socket *) sockets_table[SOCKETS_MOST];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, sockets_socket) all = TAILQ_HEAD_INITIALIZER(all);

void sockets_table_lock(void)
{
	pthread_mutex_lock(&lock);
}

void sockets_table_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static pid_t pid;

void sockets_table_begin(void)
{
	pid = getpid();
}

bool sockets_is_here(void)
{
	return getpid() == pid;
}

static struct sockets_socket *at(int fd)
{
	return atomic_load_explicit(&sockets_table[fd], memory_order_relaxed);
}

static void set(int fd, struct sockets_socket *s)
{
	atomic_store_explicit(&sockets_table[fd], s, memory_order_relaxed);
}

struct sockets_socket *sockets_find(int fd)
{
	struct sockets_socket *s;

	if (!sockets_may_be(fd))
		return NULL;
	pthread_mutex_lock(&lock);
	s = at(fd);
	if (s)
		s->refs++;
	pthread_mutex_unlock(&lock);
	return s;
}

struct sockets_socket *sockets_rsocket(int fd)
{
	struct sockets_socket *s = sockets_find(fd);

	/* one that is about to be relayed still has its rsocket */
	if (!s || (s->rs >= 0 && !s->is_relayed) || s->listens)
		return s;
	sockets_put(s);
	return NULL;
}

/* Nobody knows it any more. */
static void destroy(struct sockets_socket *s)
{
	const int saved = errno;

	if (s->rs >= 0)
		SOCKETS_INSIDE(rclose(s->rs));
	sockets_set_left(s, false);
	free(s);
	errno = saved;
}

void sockets_put(struct sockets_socket *s)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = !--s->refs;
	if (last)
		TAILQ_REMOVE(&all, s, entry);
	pthread_mutex_unlock(&lock);
	if (last)
		destroy(s);
}

void sockets_abandon(void *socket)
{
	sockets_inside = 0;
	sockets_put(socket);
}

struct sockets_socket *sockets_new(int fd, int domain, int rs)
{
	struct sockets_socket *s = (unsigned)fd < SOCKETS_MOST ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return NULL;
	s->numbers = 1;
	s->refs = 2;
	s->fd = fd;
	s->domain = domain;
	s->rs = rs;
	LIST_INIT(&s->watches);
	sockets_close(fd); /* of an old one, closed behind our back */
	pthread_mutex_lock(&lock);
	TAILQ_INSERT_TAIL(&all, s, entry);
	set(fd, s);
	pthread_mutex_unlock(&lock);
	return s;
}

void sockets_also(int from, int to)
{
	struct sockets_socket *s = to < SOCKETS_MOST ? sockets_find(from) : NULL;

	if (!s)
		return;
	if (!sockets_is_here()) {
		sockets_put(s);
		return;
	}
	pthread_mutex_lock(&lock);
	set(to, s);
	s->numbers++;
	pthread_mutex_unlock(&lock);
	sockets_put(s);
}

void sockets_close(int fd)
{
	struct sockets_socket *s;
	bool last;

	if (!sockets_may_be(fd) || !sockets_is_here())
		return;
	pthread_mutex_lock(&lock);
	s = at(fd);
	last = s && !--s->numbers;
	set(fd, NULL);
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	sockets_epoll_leave(s, false);
	sockets_put(s); /* as with the kernel's, a call on it goes on */
}

void sockets_close_range(unsigned first, unsigned last)
{
	for (unsigned fd = first; fd <= last && fd < SOCKETS_MOST; fd++) {
		sockets_close((int)fd);
		sockets_epoll_close((int)fd);
	}
}

void sockets_forget(struct sockets_socket *s)
{
	unsigned n = 0;

	sockets_epoll_leave(s, true);
	pthread_mutex_lock(&lock);
	for (int fd = 0; s->numbers && fd < SOCKETS_MOST; fd++) {
		if (at(fd) != s)
			continue;
		set(fd, NULL);
		s->numbers--;
		n++;
	}
	pthread_mutex_unlock(&lock);
	if (n)
		sockets_put(s);
}

void sockets_each(void (*each)(struct sockets_socket *s))
{
	struct sockets_socket *s, *next;

	pthread_mutex_lock(&lock);
	s = TAILQ_FIRST(&all);
	if (s)
		s->refs++;
	while (s) {
		pthread_mutex_unlock(&lock);
		each(s);
		pthread_mutex_lock(&lock);
		next = TAILQ_NEXT(s, entry);
		if (next)
			next->refs++;
		pthread_mutex_unlock(&lock);
		sockets_put(s);
		pthread_mutex_lock(&lock);
		s = next;
	}
	pthread_mutex_unlock(&lock);
}

/* In the child: rsockets are the parent's. */
void sockets_table_forked(void)
{
	struct sockets_socket *s;

	pthread_mutex_init(&lock, NULL);
	pid = getpid();
	TAILQ_FOREACH(s, &all, entry)
	{
		s->is_parents = s->rs >= 0;
		s->is_inherited = true;
		LIST_INIT(&s->watches);
	}
}
