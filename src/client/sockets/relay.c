/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An rsocket is the process's that made it. Servers such as sshd and rsync accept a connection and
 * fork a child for it, clients such as rsync connect and fork; then they use it there, or after
 * exec(). So before fork() a connection that is not close-on-exec becomes one end of a pair of
 * sockets of the kernel's, which any process may have; the other end, and the rsocket, are a
 * relay's, a thread of the process that copies between them as long as it lives.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/rdmacm/rsocket/look.h"
#include "base/signals.h"
#include "sockets/relay.h"
#include "sockets/sockets.h"

#define ROOM        65536
#define MOST_END_MS 2000

/* One direction. */
struct stream {
	char bytes[ROOM];
	size_t from, to; /* those that are there */
	bool is_over;    /* no more come */
	bool is_told;    /* nor are to be sent */
};

struct relay {
	TAILQ_ENTRY(relay) entry;
	int rs, end;
	bool is_new;
	atomic_bool is_busy;   /* bytes may be on their way */
	struct stream in, out; /* from the rsocket, and to it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static TAILQ_HEAD(, relay) relays = TAILQ_HEAD_INITIALIZER(relays);

/* ---- copying ---- */

static bool is_empty(const struct stream *s)
{
	return s->from == s->to;
}

/* Notes the result of a call on either side. False: that side is broken. */
static bool got(struct stream *s, ssize_t n)
{
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	s->is_over = n == 0;
	s->from = 0;
	s->to = (size_t)n;
	return true;
}

static bool put(struct stream *s, ssize_t n)
{
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	s->from += (size_t)n;
	return true;
}

/* Takes from one side what there is room for, and gives it to the other. False: it is broken. */
static bool copy_in(struct relay *r)
{
	struct stream *s = &r->in;

	if (is_empty(s) && !s->is_over && !got(s, rrecv(r->rs, s->bytes, ROOM, MSG_DONTWAIT)))
		return false;
	if (!is_empty(s))
		return put(s, sockets_real()->send(r->end, s->bytes + s->from, s->to - s->from,
		                                   MSG_DONTWAIT | MSG_NOSIGNAL));
	if (s->is_over && !s->is_told)
		sockets_real()->shutdown(r->end, SHUT_WR);
	s->is_told = s->is_over;
	return true;
}

static bool copy_out(struct relay *r)
{
	struct stream *s = &r->out;

	if (is_empty(s) && !s->is_over &&
	    !got(s, sockets_real()->recv(r->end, s->bytes, ROOM, MSG_DONTWAIT)))
		return false;
	if (!is_empty(s))
		return put(s, rsend(r->rs, s->bytes + s->from, s->to - s->from,
		                    MSG_DONTWAIT | MSG_NOSIGNAL));
	if (s->is_over && !s->is_told)
		rshutdown(r->rs, SHUT_WR);
	s->is_told = s->is_over;
	return true;
}

/* The event of poll() that @s needs: of its source if @source is set, else of its destination. */
static short wants(const struct stream *s, short source)
{
	if (source)
		return is_empty(s) && !s->is_over ? POLLIN : 0;
	return is_empty(s) ? 0 : POLLOUT;
}

/* Until something can be copied. False: nobody is there any more. */
static bool await(struct relay *r)
{
	struct pollfd p[] = { { .fd = r->rs, .events = wants(&r->in, 1) | wants(&r->out, 0) },
		              { .fd = r->end, .events = wants(&r->out, 1) | wants(&r->in, 0) } };

	for (unsigned i = 0; i < 2; i++)
		if (!p[i].events) /* what it would say is known */
			p[i].fd = -1;
	return umbel_rpoll(p, 2, -1, NULL) >= 0 || errno == EINTR;
}

static void *run(void *arg)
{
	struct relay *r = arg;

	sockets_inside = 1; /* what is called here is for nobody else */
	while (copy_in(r) && copy_out(r) && !(r->in.is_told && r->out.is_told)) {
		r->is_busy = !is_empty(&r->out);
		if (!await(r))
			break;
		r->is_busy = true;
	}
	rclose(r->rs);
	pthread_mutex_lock(&lock);
	TAILQ_REMOVE(&relays, r, entry);
	sockets_real()->close(r->end);
	pthread_mutex_unlock(&lock);
	free(r);
	return NULL;
}

/* ---- the end of the process ---- */

static bool is_behind(struct relay *r)
{
	int bytes = 0;

	return (!sockets_real()->ioctl(r->end, FIONREAD, &bytes) && bytes) || r->is_busy;
}

static bool are_behind(void)
{
	bool any = false;
	struct relay *r;

	pthread_mutex_lock(&lock);
	TAILQ_FOREACH(r, &relays, entry)
	any |= is_behind(r);
	pthread_mutex_unlock(&lock);
	return any;
}

/* Data that others have sent before the process ends is copied, if the peer takes it. */
__attribute__((destructor)) static void finish(void)
{
	for (unsigned i = 0; i < MOST_END_MS && are_behind(); i++)
		sockets_real()->poll(NULL, 0, 1);
}

/* ---- around fork() ---- */

static struct sockets_socket *candidate(int fd)
{
	struct sockets_socket *s = sockets_find(fd);

	if (s && s->rs >= 0 && !s->listens && !s->is_parents)
		return s;
	if (s)
		sockets_put(s);
	return NULL;
}

static bool note_names(struct sockets_socket *s)
{
	socklen_t bytes = sizeof(s->name), peer_bytes = sizeof(s->peer);

	if (SOCKETS_INSIDE(rgetpeername(s->rs, (struct sockaddr *)&s->peer, &peer_bytes)) ||
	    SOCKETS_INSIDE(rgetsockname(s->rs, (struct sockaddr *)&s->name, &bytes)))
		return false;
	s->name_bytes = bytes;
	s->peer_bytes = peer_bytes;
	return true;
}

/* All numbers of the socket become @fd. False: a thread is in a call on it, where it would wait for
 * bytes that a relay takes. None begins one meanwhile. */
static bool replace(struct sockets_socket *s, int fd)
{
	sockets_table_lock();
	s->is_relayed = s->refs == 2; /* its numbers' and ours */
	for (int number = 0; s->is_relayed && number < SOCKETS_MOST; number++) {
		/* relaxed: the lock is held */
		const bool same =
		        atomic_load_explicit(&sockets_table[number], memory_order_relaxed) == s;
		const int flags = same ? sockets_real()->fcntl(number, F_GETFD) : -1;

		if (flags >= 0)
			sockets_real()->dup3(fd, number, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
	}
	sockets_table_unlock();
	return s->is_relayed;
}

/* It is used in children, too: the rsocket is the relay's from now on. */
static void hand_over(struct sockets_socket *s, int fd)
{
	struct relay *r = calloc(1, sizeof(*r));
	bool is_idle;
	int pair[2];

	if (!r || !note_names(s) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		free(r); /* it is the parent's, then, or is not connected */
		return;
	}
	sockets_real()->fcntl(pair[0], F_SETFL, sockets_real()->fcntl(fd, F_GETFL));
	is_idle = replace(s, pair[0]);
	sockets_real()->close(pair[0]);
	if (!is_idle) {
		sockets_real()->close(pair[1]);
		free(r); /* it stays the parent's */
		return;
	}
	r->rs = s->rs;
	r->end = pair[1];
	r->is_new = r->is_busy = true;
	sockets_epoll_leave(s, true);
	s->rs = -1;
	pthread_mutex_lock(&lock);
	TAILQ_INSERT_TAIL(&relays, r, entry);
	pthread_mutex_unlock(&lock);
}

void sockets_relay_prepare(void)
{
	struct sockets_socket *s;

	for (int fd = 0; fd < SOCKETS_MOST; fd++) {
		s = candidate(fd);
		if (!s)
			continue;
		if (!(sockets_real()->fcntl(fd, F_GETFD) & FD_CLOEXEC))
			hand_over(s, fd);
		sockets_put(s);
	}
}

void sockets_relay_lock(void)
{
	pthread_mutex_lock(&lock);
}

void sockets_relay_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* No signal of the program's is for a relay. */
static bool start(struct relay *r)
{
	pthread_t thread;
	int ret = base_thread_start(&thread, 0, run, r);

	if (!ret)
		pthread_detach(thread);
	return !ret;
}

void sockets_relay_start(void)
{
	struct relay *r, *next;

	pthread_mutex_lock(&lock);
	for (r = TAILQ_FIRST(&relays); r; r = next) {
		next = TAILQ_NEXT(r, entry);
		if (!r->is_new)
			continue;
		r->is_new = false;
		if (start(r))
			continue;
		TAILQ_REMOVE(&relays, r, entry);
		SOCKETS_INSIDE(rclose(r->rs));
		sockets_real()->close(r->end);
		free(r);
	}
	pthread_mutex_unlock(&lock);
}

void sockets_relay_forked(void)
{
	struct relay *r;

	pthread_mutex_init(&lock, NULL);
	while ((r = TAILQ_FIRST(&relays))) {
		TAILQ_REMOVE(&relays, r, entry);
		sockets_real()->close(r->end);
		free(r);
	}
}
