/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sets of epoll with rsockets in them. The kernel's descriptors are in the kernel's set, as the
 * program has put them there. An rsocket's descriptor is there, too; if it was armed, it is
 * readable when something has happened. And the rsocket has a watch, which holds the events that
 * the program wants to hear of.
 *
 * A watch is hot while something may have happened to its rsocket: the kernel says so, or the
 * program has made a call. To wait is to look at the hot watches, by memory alone; if they have no
 * events, to arm them, look once more, and sleep on the kernel's set. A watch that is hot in vain
 * for a while is armed, too, and costs nothing from then on.
 *
 * A thread that makes a call while another thread sleeps on the set looks in its place, and wakes
 * it by the set's eventfd.
 *
 * The first sets also watch rsockets of the process that listen or connect, which may be in no set.
 * librdmacm has to serve these, and any thread can do it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "api/rdmacm/rsocket/look.h"
#include "base/signals.h"
#include "base/util.h"
#include "sockets/sockets.h"

#define SPIN_NS   10000 /* that a call looks before it sleeps */
#define MOST_IDLE 16    /* looks in vain, then it is armed */
#define READ_BITS (EPOLLIN | EPOLLRDNORM)
#define N_BITS    20 /* of the data of what is ours in a set: a descriptor */
#define KICK      ((1u << N_BITS) - 1)
#define SERVE     (KICK - 1)

/* Sets that have what is to be served: the kernel lets a descriptor be in so many sets of sets. */
#define MOST_SERVING 32

struct set {
	unsigned numbers; /* descriptors of the program */
	unsigned refs;    /* one for them all, and those of calls */
	int own;          /* a descriptor of the kernel's set that is not the program's */
	int kick;         /* an eventfd that wakes the threads that sleep on the set */
	bool is_kicked;
	bool is_exposed; /* poll() or another set may sleep on it */
	bool serves;
	bool turn; /* of events that have room for one: it is the rsockets' */
	unsigned n_sleepers;
	LIST_HEAD(, sockets_watch) watches;
	TAILQ_HEAD(sockets_hot, sockets_watch) hot;
};

struct sockets_watch {
	LIST_ENTRY(sockets_watch) of_socket, of_set;
	TAILQ_ENTRY(sockets_watch) hot;
	struct set *set;
	struct sockets_socket *socket;
	int fd; /* as the program named it */
	struct epoll_event wanted;
	bool in_kernel; /* it is no rsocket yet */
	bool is_hot;
	bool is_fired;     /* the kernel says that its descriptor is readable */
	bool is_spent;     /* EPOLLONESHOT: it was reported */
	unsigned idle;     /* looks in vain */
	uint32_t reported; /* EPOLLET: these bits were, and have not been over since */
	uint32_t news;     /* likewise: as it was then */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct set *) sets[SOCKETS_MOST];
static struct sockets_socket *owner[SOCKETS_MOST]; /* of an rsocket's descriptor that is in sets */
static unsigned n_serving;

static _Thread_local int cancel_state; /* outside of the lock */

/* No thread is cancelled that has it. */
void sockets_lock(void)
{
	const int state = base_cancel_off();

	pthread_mutex_lock(&lock);
	cancel_state = state;
}

void sockets_unlock(void)
{
	const int state = cancel_state;

	pthread_mutex_unlock(&lock);
	base_cancel_restore(state);
}

static int fail(int error)
{
	errno = error;
	return -1;
}

/* ---- what is ours in the kernel's set ---- */

/* A program cannot have that in its own data but by chance. */
static uint64_t tag(const struct set *set)
{
	return (uintptr_t)set * 0x9E3779B97F4A7C15u >> N_BITS << N_BITS;
}

static int add_to_kernel(const struct set *set, int fd, uint32_t low)
{
	struct epoll_event event = { .events = EPOLLIN | (low == SERVE ? EPOLLET : 0),
		                     .data.u64 = tag(set) | low };

	return sockets_real()->epoll_ctl(set->own, EPOLL_CTL_ADD, fd, &event);
}

/* Whether another watch of the set is of that rsocket. */
static bool is_shared(const struct sockets_watch *w)
{
	const struct sockets_watch *other;

	LIST_FOREACH(other, &w->socket->watches, of_socket)
	if (other != w && other->set == w->set && !other->in_kernel)
		return true;
	return false;
}

static int attach(struct sockets_watch *w)
{
	const int rs = w->socket->rs;

	if (rs < 0 || is_shared(w))
		return 0;
	if (rs >= SOCKETS_MOST)
		return fail(ENOSPC);
	owner[rs] = w->socket;
	return add_to_kernel(w->set, rs, (uint32_t)rs);
}

static void detach(const struct sockets_watch *w)
{
	if (w->socket->rs >= 0 && !is_shared(w))
		sockets_real()->epoll_ctl(w->set->own, EPOLL_CTL_DEL, w->socket->rs, NULL);
}

/* ---- sets ---- */

static struct set *set_at(int fd)
{
	if ((unsigned)fd >= SOCKETS_MOST)
		return NULL;
	return atomic_load_explicit(&sets[fd], memory_order_relaxed);
}

static void put_at(int fd, struct set *set)
{
	atomic_store_explicit(&sets[fd], set, memory_order_relaxed);
}

bool sockets_is_set(int fd)
{
	return !sockets_inside && set_at(fd);
}

static void put_set(struct set *set)
{
	if (--set->refs)
		return;
	n_serving -= set->serves;
	sockets_real()->close(set->kick);
	sockets_real()->close(set->own);
	free(set);
}

static void attach_served(struct set *set)
{
	const int fd = n_serving < MOST_SERVING ? SOCKETS_INSIDE(umbel_rsockets_to_serve()) : -1;

	set->serves = fd >= 0 && !add_to_kernel(set, fd, SERVE);
	n_serving += set->serves;
}

/* NULL and errno: it is none of epoll's. */
static struct set *new_set(int fd)
{
	struct set *set = (unsigned)fd < SOCKETS_MOST ? calloc(1, sizeof(*set)) : NULL;

	if (!set) {
		errno = fd < 0 ? EBADF : ENOMEM;
		return NULL;
	}
	set->numbers = set->refs = 1;
	LIST_INIT(&set->watches);
	TAILQ_INIT(&set->hot);
	set->own = sockets_real()->fcntl(fd, F_DUPFD_CLOEXEC, 0);
	set->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (set->own < 0 || set->kick < 0 || add_to_kernel(set, set->kick, KICK)) {
		const int saved = errno;

		if (set->kick >= 0)
			sockets_real()->close(set->kick);
		if (set->own >= 0)
			sockets_real()->close(set->own);
		free(set);
		errno = saved;
		return NULL;
	}
	attach_served(set);
	put_at(fd, set);
	return set;
}

static void kick(struct set *set)
{
	if (set->is_kicked)
		return;
	set->is_kicked = true;
	eventfd_write(set->kick, 1);
}

static void drain_kick(struct set *set)
{
	eventfd_t n;

	set->is_kicked = false;
	if (sockets_real()->read(set->kick, &n, sizeof(n)) < 0)
		return; /* another thread has */
}

/* ---- watches ---- */

static void heat(struct sockets_watch *w)
{
	w->idle = 0;
	if (w->is_hot || w->in_kernel)
		return;
	w->is_hot = true;
	TAILQ_INSERT_TAIL(&w->set->hot, w, hot);
}

static void cool(struct sockets_watch *w)
{
	if (!w->is_hot)
		return;
	w->is_hot = false;
	TAILQ_REMOVE(&w->set->hot, w, hot);
}

static void remove_watch(struct sockets_watch *w)
{
	cool(w);
	LIST_REMOVE(w, of_socket);
	LIST_REMOVE(w, of_set);
	free(w);
}

/* The events that the program is to hear of now; 0: none. */
static uint32_t look(struct sockets_watch *w, bool arm)
{
	const unsigned flags =
	        (w->is_fired ? UMBEL_RSOCKET_FIRED : 0) | (arm ? UMBEL_RSOCKET_ARM : 0);
	struct umbel_rsocket_look l;
	uint32_t bits;

	w->is_fired = false;
	if (w->socket->rs < 0 || SOCKETS_INSIDE(umbel_rsocket_look(w->socket->rs, flags, &l)))
		return 0;
	if (w->is_spent)
		return 0;
	bits = (uint16_t)l.events & (w->wanted.events | EPOLLERR | EPOLLHUP);
	if (!(w->wanted.events & EPOLLET))
		return bits;
	if (l.news != w->news)
		w->reported &= ~READ_BITS;
	w->reported &= bits;
	if (!(bits & ~w->reported))
		return 0;
	w->news = l.news;
	return bits;
}

static void settle(struct sockets_watch *w);

/* By what one watch has served, others of the same rsocket may have something. */
static void tell_others(struct sockets_watch *w)
{
	struct sockets_watch *other;

	LIST_FOREACH(other, &w->socket->watches, of_socket)
	{
		if (other == w)
			continue;
		heat(other);
		if (other->set != w->set)
			settle(other);
	}
}

/* Others sleep on the set: one that is hot is looked at in their place. */
static void settle(struct sockets_watch *w)
{
	if (!w->is_hot || !(w->set->n_sleepers || w->set->is_exposed))
		return;
	/* a thread that sleeps by poll() does not look whether it is for the program */
	w->is_fired |= w->set->is_exposed;
	if (look(w, true))
		kick(w->set);
	else
		cool(w);
}

void sockets_touch(struct sockets_socket *s, unsigned clear)
{
	struct sockets_watch *w;

	/* what is added now looks for itself */
	if (LIST_EMPTY(&s->watches))
		return;
	sockets_lock();
	LIST_FOREACH(w, &s->watches, of_socket)
	{
		w->reported &= ~clear;
		heat(w);
		settle(w);
	}
	sockets_unlock();
}

void sockets_epoll_adopt(struct sockets_socket *s)
{
	struct sockets_watch *w;

	sockets_lock();
	LIST_FOREACH(w, &s->watches, of_socket)
	{
		if (w->in_kernel)
			sockets_real()->epoll_ctl(w->set->own, EPOLL_CTL_DEL, w->fd, NULL);
		attach(w);
		w->in_kernel = false;
		heat(w);
		settle(w);
	}
	sockets_unlock();
}

void sockets_epoll_leave(struct sockets_socket *s, bool to_kernel)
{
	struct sockets_watch *w;

	sockets_lock();
	while ((w = LIST_FIRST(&s->watches))) {
		if (!w->in_kernel)
			detach(w);
		if (to_kernel && !w->in_kernel)
			sockets_real()->epoll_ctl(w->set->own, EPOLL_CTL_ADD, w->fd, &w->wanted);
		remove_watch(w);
	}
	if (s->rs >= 0 && s->rs < SOCKETS_MOST && owner[s->rs] == s)
		owner[s->rs] = NULL;
	sockets_unlock();
}

/* ---- descriptors of sets ---- */

void sockets_epoll_also(int from, int to)
{
	struct set *set;

	if (!sockets_is_set(from) || to >= SOCKETS_MOST || !sockets_is_here())
		return;
	sockets_lock();
	set = set_at(from);
	if (set) {
		set->numbers++;
		put_at(to, set);
	}
	sockets_unlock();
}

void sockets_epoll_close(int fd)
{
	struct sockets_watch *w;
	struct set *set;

	if (!sockets_is_set(fd) || !sockets_is_here())
		return;
	sockets_lock();
	set = set_at(fd);
	if (set) {
		put_at(fd, NULL);
		if (!--set->numbers) {
			while ((w = LIST_FIRST(&set->watches)))
				remove_watch(w);
			put_set(set);
		}
	}
	sockets_unlock();
}

void sockets_epoll_expose(int fd)
{
	struct sockets_watch *w, *next;
	struct set *set;

	sockets_lock();
	set = set_at(fd);
	if (set) {
		set->is_exposed = true;
		for (w = TAILQ_FIRST(&set->hot); w; w = next) {
			next = TAILQ_NEXT(w, hot);
			settle(w);
		}
	}
	sockets_unlock();
}

/* In the child: the kernel's sets are those of the parent, with its rsockets in them. */
void sockets_epoll_forked(void)
{
	struct sockets_watch *w;
	struct set *set;

	pthread_mutex_init(&lock, NULL);
	for (int fd = 0; fd < SOCKETS_MOST; fd++) {
		set = set_at(fd);
		while (set && (w = LIST_FIRST(&set->watches)))
			remove_watch(w);
		owner[fd] = NULL;
	}
}

/* ---- epoll_ctl ---- */

static struct sockets_watch *find_watch(const struct sockets_socket *s, const struct set *set,
                                        int fd)
{
	struct sockets_watch *w;

	LIST_FOREACH(w, &s->watches, of_socket)
	if (w->set == set && w->fd == fd)
		return w;
	return NULL;
}

static int add(struct sockets_socket *s, struct set *set, int fd, const struct epoll_event *event)
{
	struct sockets_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return fail(ENOMEM);
	w->set = set;
	w->socket = s;
	w->fd = fd;
	w->wanted = *event;
	w->in_kernel = s->rs < 0 && !s->listens;
	LIST_INSERT_HEAD(&s->watches, w, of_socket);
	LIST_INSERT_HEAD(&set->watches, w, of_set);
	if (!w->in_kernel && attach(w)) {
		remove_watch(w);
		return -1;
	}
	heat(w);
	settle(w);
	return 0;
}

static int modify(struct sockets_watch *w, const struct epoll_event *event)
{
	w->wanted = *event;
	w->is_spent = false;
	w->reported = 0;
	heat(w);
	settle(w);
	return 0;
}

static int del(struct sockets_watch *w)
{
	if (!w->in_kernel)
		detach(w);
	remove_watch(w);
	return 0;
}

/* Of an rsocket, with the lock. */
static int control(struct sockets_socket *s, int number, int op, int fd, struct epoll_event *event)
{
	struct set *set = set_at(number);
	struct sockets_watch *w;

	if (!set && op == EPOLL_CTL_ADD)
		set = new_set(number);
	else if (!set)
		return sockets_real()->epoll_ctl(number, op, fd, event); /* it is not there */
	if (!set)
		return -1;
	w = find_watch(s, set, fd);
	if (op != EPOLL_CTL_DEL && !event)
		return fail(EFAULT);
	if (op == EPOLL_CTL_ADD)
		return w ? fail(EEXIST) : add(s, set, fd, event);
	if (op != EPOLL_CTL_MOD && op != EPOLL_CTL_DEL)
		return fail(EINVAL);
	if (!w)
		return fail(ENOENT);
	return op == EPOLL_CTL_MOD ? modify(w, event) : del(w);
}

/* Of one that may become one: the kernel has it, and we remember. */
static int note(struct sockets_socket *s, int number, int op, int fd, struct epoll_event *event)
{
	int ret = sockets_real()->epoll_ctl(number, op, fd, event);
	struct sockets_watch *w;
	struct set *set;

	if (ret)
		return ret;
	set = set_at(number);
	w = set ? find_watch(s, set, fd) : NULL;
	if (op == EPOLL_CTL_ADD && !set)
		set = new_set(number);
	if (op == EPOLL_CTL_ADD && set)
		return add(s, set, fd, event);
	if (op == EPOLL_CTL_MOD && w)
		w->wanted = *event;
	else if (op == EPOLL_CTL_DEL && w)
		remove_watch(w);
	return 0;
}

int sockets_epoll_ctl(int number, int op, int fd, struct epoll_event *event)
{
	struct sockets_socket *s = sockets_find(fd);
	int ret, saved;

	if (!s) {
		ret = sockets_real()->epoll_ctl(number, op, fd, event);
		if (!ret && op == EPOLL_CTL_ADD && sockets_is_set(fd))
			sockets_epoll_expose(fd);
		return ret;
	}
	if (op != EPOLL_CTL_DEL)
		sockets_use(s, fd);
	sockets_lock();
	ret = s->rs >= 0 || s->listens ? control(s, number, op, fd, event)
	                               : note(s, number, op, fd, event);
	sockets_unlock();
	saved = errno;
	sockets_put(s);
	errno = saved;
	return ret;
}

/* ---- epoll_wait; with the lock but for sleeping ---- */

struct wait {
	struct set *set;
	int number;
	struct epoll_event *events;
	int room, n;
	const sigset_t *mask;
};

static void report(struct wait *wait, struct sockets_watch *w, uint32_t bits)
{
	wait->events[wait->n] = w->wanted;
	wait->events[wait->n++].events = bits;
	w->idle = 0;
	w->reported = bits;
	w->is_spent = w->wanted.events & EPOLLONESHOT;
	cool(w);
	if (!w->is_spent)
		heat(w); /* behind the others */
}

/* Looks at one that is hot. */
static void try(struct wait *wait, struct sockets_watch *w, bool arm)
{
	const bool fired = w->is_fired;
	uint32_t bits = look(w, arm);

	if (!bits && !arm && ++w->idle >= MOST_IDLE) {
		arm = true;
		bits = look(w, true);
	}
	if (bits)
		report(wait, w, bits);
	else if (arm)
		cool(w);
	if (fired)
		tell_others(w);
}

static void collect(struct wait *wait, bool arm)
{
	struct sockets_watch *w, *next, *last = TAILQ_LAST(&wait->set->hot, sockets_hot);

	for (w = TAILQ_FIRST(&wait->set->hot); w && wait->n < wait->room; w = next) {
		next = w == last ? NULL : TAILQ_NEXT(w, hot);
		try(wait, w, arm);
	}
	/* watches that we have not come to are for another thread that sleeps */
	if (wait->n == wait->room && w && wait->set->n_sleepers)
		kick(wait->set);
}

/* The descriptor of an rsocket is readable. */
static void fire(struct set *set, uint32_t rs)
{
	struct sockets_watch *w;

	if (rs >= SOCKETS_MOST || !owner[rs])
		return;
	LIST_FOREACH(w, &owner[rs]->watches, of_socket)
	{
		if (w->set != set)
			continue;
		w->is_fired = true;
		heat(w);
	}
}

static void serve_rsockets(void)
{
	sockets_inside++;
	umbel_rsockets_serve();
	sockets_inside--;
}

/* Of @n events of the kernel's those that are not ours are the program's. */
static void take(struct wait *wait, int n)
{
	const uint64_t mine = tag(wait->set);
	struct epoll_event *from = &wait->events[wait->n];

	for (int i = 0; i < n; i++) {
		uint32_t low = from[i].data.u64 & KICK;

		if (from[i].data.u64 - low != mine)
			wait->events[wait->n++] = from[i];
		else if (low == KICK)
			drain_kick(wait->set);
		else if (low == SERVE)
			serve_rsockets();
		else
			fire(wait->set, low);
	}
}

/* Takes the events that there are now. @room: the kernel may fill. */
static int look_around(struct wait *wait)
{
	const bool hot = !TAILQ_EMPTY(&wait->set->hot);
	int room = hot && wait->room > 1 ? (wait->room + 1) / 2 : wait->room, n;

	wait->set->turn = !wait->set->turn;
	if (hot && wait->room == 1 && wait->set->turn)
		collect(wait, false);
	if (wait->n < wait->room) {
		n = sockets_real()->epoll_pwait(wait->number, wait->events + wait->n, room, 0,
		                                wait->mask);
		if (n < 0)
			return -1;
		take(wait, n);
		collect(wait, false);
	}
	return wait->n;
}

/* As long as peers answer at once, nothing needs to be armed. */
static int spin(struct wait *wait)
{
	const uint64_t until = base_now_ns() + SPIN_NS;

	while (!wait->n && !TAILQ_EMPTY(&wait->set->hot) && base_now_ns() < until) {
		sockets_unlock();
		sockets_lock();
		collect(wait, false);
	}
	return wait->n;
}

static int ms_until(uint64_t until)
{
	uint64_t now = base_now_ns(), ms;

	if (sockets_are_left() && until > now + SOCKETS_RETRY_MS * 1000000ull)
		return SOCKETS_RETRY_MS;
	if (until == UINT64_MAX)
		return -1;
	ms = until > now ? (until - now + 999999) / 1000000 : 0;
	return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

/* The thread is cancelled as it sleeps. */
static void wake_no_more(void *wait)
{
	struct set *set = ((struct wait *)wait)->set;

	sockets_lock();
	set->n_sleepers--;
	put_set(set);
	sockets_unlock();
}

static int nap(struct wait *wait, uint64_t until)
{
	int n, saved;

	collect(wait, true);
	if (wait->n)
		return wait->n;
	wait->set->n_sleepers++;
	sockets_unlock();
	pthread_cleanup_push(wake_no_more, wait);
	n = sockets_real()->epoll_pwait(wait->number, wait->events, wait->room, ms_until(until),
	                                wait->mask);
	saved = errno;
	pthread_cleanup_pop(0);
	if (!n && sockets_are_left())
		sockets_use_all();
	sockets_lock();
	wait->set->n_sleepers--;
	if (n < 0)
		return fail(saved);
	take(wait, n);
	collect(wait, false);
	return wait->n;
}

static int wait_for(struct wait *wait, int64_t timeout_ns)
{
	const uint64_t until = timeout_ns < 0 ? UINT64_MAX : base_now_ns() + (uint64_t)timeout_ns;
	int ret = look_around(wait);

	if (ret || !timeout_ns)
		return ret;
	do {
		ret = spin(wait);
		if (!ret)
			ret = nap(wait, until);
	} while (!ret && base_now_ns() < until);
	return ret;
}

int sockets_epoll_wait(int number, struct epoll_event *events, int n, int64_t timeout_ns,
                       const sigset_t *mask)
{
	struct wait wait = { .number = number, .events = events, .room = n, .mask = mask };
	int ret, saved;

	if (n <= 0)
		return fail(EINVAL);
	if (!events)
		return fail(EFAULT);
	sockets_lock();
	wait.set = set_at(number);
	if (!wait.set) {
		sockets_unlock();
		return fail(EBADF);
	}
	wait.set->refs++;
	ret = wait_for(&wait, timeout_ns);
	saved = errno;
	put_set(wait.set);
	sockets_unlock();
	errno = saved;
	return ret;
}
