/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process's sessions with daemons, by libibverbs's connection; there is one at a time for what
 * is made. The one registry of the library, with the lock that guards it.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "api/rdmacm/rdmacm.h"
#include "api/rdmacm/rsocket/rsocket.h"
#include "api/verbs/connection.h"
#include "base/array.h"
#include "base/idtable.h"
#include "base/reason.h"
#include "control/client.h"
#include "control/join.h"

#define BURIED 64

static struct {
	pthread_mutex_t lock;
	struct rdmacm_session *current; /* NULL: none yet */
	bool forks_watched;
	bool explained;           /* why there is no fabric */
	unsigned forks;           /* by which this process came about */
	struct rsocket **rsocket; /* by descriptor */
	uint32_t n_rsockets;
	int served; /* an epoll instance + 1; 0: there is none yet */
	atomic_uint n_served;
	_Atomic uint64_t served_ms; /* when a call did so in passing */
	struct rdmacm_channel *buried[BURIED];
	unsigned n_buried;           /* ever */
	struct base_idtable numbers; /* of identifiers */
} session = { .lock = PTHREAD_MUTEX_INITIALIZER, .numbers = { .limit = CONTROL_CM_MAX_IDS } };

int rdmacm_return_of(const char *name, int err)
{
	if (!err)
		return 0;
	err = err < 0 ? -err : err;
	base_call_failed(rdmacm, name, err);
	errno = err;
	return -1;
}

void rdmacm_session_lock(void)
{
	pthread_mutex_lock(&session.lock);
}

void rdmacm_session_unlock(void)
{
	pthread_mutex_unlock(&session.lock);
}

void rdmacm_session_bury(struct rdmacm_channel *ch)
{
	struct rdmacm_channel **grave, *old;

	rdmacm_session_lock();
	grave = &session.buried[session.n_buried++ % BURIED];
	old = *grave;
	*grave = ch;
	rdmacm_session_unlock();
	if (!old)
		return;
	pthread_mutex_destroy(&old->datagrams);
	free(old);
}

/* The connection is the parent's: two processes cannot share it. */
static void in_child(void)
{
	session.current = NULL;
	session.forks++;
	if (session.served)
		close(session.served - 1);
	session.served = 0;
	session.n_served = 0;
	for (uint32_t i = 0; i < session.n_rsockets; i++)
		if (session.rsocket[i])
			session.rsocket[i]->inherited = true;
	pthread_mutex_unlock(&session.lock);
}

/* With the lock held. 0 or -errno. */
static int begin(void)
{
	struct rdmacm_session *s = calloc(1, sizeof(*s));
	int ret = -ENOMEM;

	if (!s)
		return ret;
	s->client = umbel_connection(&ret);
	if (!s->client && !session.explained && !session.current)
		control_join_explain(ret);
	session.explained = !s->client;
	if (!s->client) {
		free(s);
		if (ret != -ENOENT && ret != -ECONNREFUSED)
			return ret;
		/* as on a machine without a card; or its fabric has ended, and none has come */
		return session.current ? -EIO : -ENODEV;
	}
	s->forks = session.forks;
	LIST_INIT(&s->devices);
	session.current = s;
	return 0;
}

int rdmacm_session_current(struct rdmacm_session **s)
{
	int ret = 0;

	if (!session.current || !umbel_connection_stands(session.current->client))
		ret = begin();
	if (ret)
		return ret;
	if (!session.forks_watched) {
		pthread_atfork(rdmacm_session_lock, rdmacm_session_unlock, in_child);
		session.forks_watched = true;
	}
	*s = session.current;
	return 0;
}

bool rdmacm_session_is_parents(const struct rdmacm_session *s)
{
	bool parents;

	rdmacm_session_lock();
	parents = s->forks != session.forks;
	rdmacm_session_unlock();
	return parents;
}

int rdmacm_session_call(struct rdmacm_session *s, enum control_cm_type type, const void *request,
                        uint32_t bytes, void *reply, uint32_t reply_bytes)
{
	if (rdmacm_session_is_parents(s))
		return -EINVAL;
	return control_call(s->client, &(struct control_call){ .type = (enum control_type)type,
	                                                       .request = request,
	                                                       .request_bytes = bytes,
	                                                       .reply = reply,
	                                                       .reply_bytes = reply_bytes });
}

int rdmacm_session_post(struct rdmacm_session *s, enum control_cm_type type, const void *request,
                        uint32_t bytes)
{
	if (rdmacm_session_is_parents(s))
		return -EINVAL;
	return control_post(s->client, (enum control_type)type, request, bytes);
}

void rdmacm_batch_begin(struct rdmacm_session *s, struct rdmacm_batch *b)
{
	b->client = rdmacm_session_is_parents(s) ? NULL : s->client;
	if (b->client)
		control_batch_begin(b->client, &b->batch);
}

int rdmacm_batch_end(struct rdmacm_batch *b)
{
	return b->client ? control_batch_end(b->client, &b->batch) : 0;
}

int rdmacm_session_number(struct rdmacm_id *id, uint32_t *number)
{
	int ret;

	if (rdmacm_session_is_parents(id->session))
		return -EINVAL;
	if (control_is_gone(id->session->client))
		return -EIO;
	rdmacm_session_lock();
	ret = base_idtable_add(&session.numbers, id, number);
	rdmacm_session_unlock();
	return ret;
}

void rdmacm_session_number_free(uint32_t number)
{
	rdmacm_session_lock();
	base_idtable_remove(&session.numbers, number);
	rdmacm_session_unlock();
}

_Atomic uint32_t *rdmacm_session_word(const struct rdmacm_id *id)
{
	_Atomic uint32_t *word = NULL;

	rdmacm_session_lock();
	if (id->session->forks == session.forks)
		word = control_cm_word(id->session->events, id->handle);
	rdmacm_session_unlock();
	return word;
}

static void find_events(struct rdmacm_session *s, uint64_t off)
{
	struct shm_events *events =
	        off ? umbel_shared_memory(s->client, off, sizeof(*events)) : NULL;

	rdmacm_session_lock();
	s->events = events;
	rdmacm_session_unlock();
}

int rdmacm_session_channel(struct rdmacm_channel *ch)
{
	const enum control_type type = (enum control_type)CONTROL_CM_CREATE_CHANNEL;
	const enum control_type undo = (enum control_type)CONTROL_CM_DESTROY_CHANNEL;
	struct control_cm_channel_reply reply;
	int ret;

	rdmacm_session_lock();
	ret = rdmacm_session_current(&ch->session);
	rdmacm_session_unlock();
	if (ret)
		return ret;
	ret = control_call(ch->session->client,
	                   &(struct control_call){ .type = type,
	                                           .reply = &reply,
	                                           .reply_bytes = sizeof(reply),
	                                           .fd = &ch->channel.fd,
	                                           .undo = undo });
	if (ret)
		return ret;
	ch->handle = reply.channel;
	find_events(ch->session, reply.events);
	return 0;
}

/* ---- rsockets ---- */

/* The one with that descriptor, or NULL; with the lock held. */
static struct rsocket *find_rsocket(int fd)
{
	return fd >= 0 && (uint32_t)fd < session.n_rsockets ? session.rsocket[fd] : NULL;
}

struct rsocket *rdmacm_session_rsocket(int fd)
{
	struct rsocket *rs;

	rdmacm_session_lock();
	rs = find_rsocket(fd);
	if (rs && rs->inherited)
		rs = NULL;
	if (rs)
		rs->refs++;
	rdmacm_session_unlock();
	return rs;
}

void rdmacm_session_rsocket_put(struct rsocket *rs)
{
	bool last;

	rdmacm_session_lock();
	last = !--rs->refs;
	rdmacm_session_unlock();
	if (last)
		rsocket_free(rs);
}

/* Room for that descriptor; with the lock held. 0 or -ENOMEM. */
static int grow_rsockets(int fd)
{
	uint32_t before = session.n_rsockets;
	int ret = base_array_reserve(&session.rsocket, &session.n_rsockets, (size_t)fd + 1);

	for (uint32_t i = before; !ret && i < session.n_rsockets; i++)
		session.rsocket[i] = NULL;
	return ret;
}

/* With the lock held. 0 or -errno. */
static int open_served(void)
{
	if (!session.served)
		session.served = epoll_create1(EPOLL_CLOEXEC) + 1;
	return session.served ? 0 : -errno;
}

int rdmacm_session_rsocket_add(struct rsocket *rs)
{
	int ret;

	rdmacm_session_lock();
	ret = open_served(); /* now: a thread that sleeps does not hear of a new one */
	if (!ret)
		ret = grow_rsockets(rs->fd);
	if (!ret) {
		rs->refs = 1;
		session.rsocket[rs->fd] = rs;
	}
	rdmacm_session_unlock();
	return ret;
}

int rdmacm_session_rsocket_remove(int fd, bool *inherited)
{
	struct rsocket *rs;

	rdmacm_session_lock();
	rs = find_rsocket(fd);
	if (rs) {
		*inherited = rs->inherited;
		session.rsocket[fd] = NULL;
		rs->refs--;
	}
	rdmacm_session_unlock();
	return rs ? 0 : -EBADF;
}

/* ---- those that any call serves ---- */

/* Each event is told once, to one thread. With the lock held. */
static int control_served(int op, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = fd };
	int ret = open_served();

	return ret || !epoll_ctl(session.served - 1, op, fd, &event) ? ret : -errno;
}

int rdmacm_session_serve_add(int fd)
{
	int ret;

	rdmacm_session_lock();
	ret = control_served(EPOLL_CTL_ADD, fd);
	session.n_served += !ret;
	rdmacm_session_unlock();
	return ret;
}

void rdmacm_session_serve_remove(int fd)
{
	rdmacm_session_lock();
	session.n_served -= !control_served(EPOLL_CTL_DEL, fd);
	rdmacm_session_unlock();
}

void rdmacm_session_serve_again(int fd)
{
	rdmacm_session_lock();
	control_served(EPOLL_CTL_MOD, fd);
	rdmacm_session_unlock();
}

int rdmacm_session_served(void)
{
	int fd;

	rdmacm_session_lock();
	open_served();
	fd = session.served - 1;
	rdmacm_session_unlock();
	return fd;
}

bool rdmacm_session_serve_is_due(void)
{
	uint64_t now;

	/* relaxed: if this call comes too early to see an rsocket, later ones see it */
	if (!atomic_load_explicit(&session.n_served, memory_order_relaxed))
		return false;
	now = rsocket_now_ms();
	return atomic_load_explicit(&session.served_ms, memory_order_relaxed) != now &&
	       atomic_exchange_explicit(&session.served_ms, now, memory_order_relaxed) != now;
}
