/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How calls on an rsocket wait, without the lock. A completion channel fires once, so of the
 * threads that wait in calls on one rsocket, one polls its epoll instance and acknowledges what has
 * woken it; the others follow, by a condition variable. If a thread is in rpoll() with the rsocket,
 * that thread polls: all threads that wait in calls follow. (With two such threads, one may not
 * notice what the other one acknowledges, so rpoll() looks twice a second, as the original does.)
 *
 * Rsockets that listen or connect go on though no call waits for them: whatever thread sleeps in a
 * call of the process serves them, and each call does so in passing. One thread alone is told of an
 * event (rdmacm_session_serve_add()). It serves the rsocket, unless a thread leads, and then writes
 * the kick. The kick stays for threads that sleep: a thread in rpoll(), or a set of epoll of
 * libumbel-sockets, which might not see what was served before it ran.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "api/rdmacm/rsocket/rsocket.h"
#include "base/signals.h"

#define EVENTS 16

void rsocket_wake(struct rsocket *rs)
{
	eventfd_write(rs->kick, 1);
	pthread_cond_broadcast(&rs->changed);
}

void rsocket_changed(struct rsocket *rs)
{
	if (rs->n_followers)
		pthread_cond_broadcast(&rs->changed);
	if (rs->n_pollers)
		eventfd_write(rs->kick, 1);
}

/* Acknowledges what has woken somebody, the kick if it is for us. How much beside that. */
static unsigned serve_events(struct rsocket *rs, bool is_kick_ours)
{
	struct epoll_event event[EVENTS];
	unsigned n_served = 0;
	eventfd_t count;
	int n;

	do {
		n = epoll_wait(rs->fd, event, EVENTS, 0);
		for (int i = 0; i < n; i++) {
			n_served += event[i].data.ptr != &rs->kick;
			if (event[i].data.ptr == &rs->events)
				rs->type->progress(rs);
			else if (event[i].data.ptr != &rs->kick)
				rs->type->disarm(rs, event[i].data.ptr);
			else if (is_kick_ours)
				eventfd_read(rs->kick, &count);
		}
	} while (n == EVENTS);
	return n_served;
}

void rsocket_drain(struct rsocket *rs)
{
	if (!rs->is_led)
		serve_events(rs, true);
}

/* ---- those that go on ---- */

int rsocket_leave_to_all(struct rsocket *rs)
{
	const bool goes_on = rs->type->goes_on(rs) && !rs->closed;
	int ret = 0;

	if (goes_on == rs->is_served)
		return 0;
	if (goes_on)
		ret = rdmacm_session_serve_add(rs->fd);
	else
		rdmacm_session_serve_remove(rs->fd);
	rs->is_served = goes_on && !ret;
	return ret;
}

/* The thread that leads serves its rsocket by itself; other threads that sleep are woken by the
 * kick. */
static void serve(struct rsocket *rs)
{
	if (!rs->is_led && serve_events(rs, false) && (rs->n_pollers || rs->is_watched))
		rsocket_wake(rs);
	rsocket_leave_to_all(rs);
}

/* How many were told of: of EVENTS there may be more. */
static int serve_some(int (*lock)(pthread_mutex_t *mutex))
{
	struct epoll_event event[EVENTS];
	int n = epoll_wait(rdmacm_session_served(), event, EVENTS, 0);

	for (int i = 0; i < n; i++) {
		struct rsocket *rs = rdmacm_session_rsocket(event[i].data.fd);

		if (!rs)
			continue;
		if (lock(&rs->lock)) {
			rdmacm_session_serve_again(rs->fd);
		} else {
			serve(rs);
			pthread_mutex_unlock(&rs->lock);
		}
		rdmacm_session_rsocket_put(rs);
	}
	return n;
}

void rsocket_serve_all(void)
{
	while (serve_some(pthread_mutex_lock) == EVENTS)
		;
}

void rsocket_serve_in_passing(void)
{
	if (rdmacm_session_serve_is_due())
		serve_some(pthread_mutex_trylock);
}

/* ---- sleeping ---- */

int rsocket_timeout_ms(uint64_t until_ms)
{
	uint64_t now = rsocket_now_ms();

	if (until_ms == UINT64_MAX)
		return -1;
	if (until_ms <= now)
		return 0;
	return until_ms - now < INT32_MAX ? (int)(until_ms - now) : INT32_MAX;
}

/* Of the thread that is in a call, or in several, as by a signal's handler: its own. */
static _Thread_local int cancel_state, cancel_type;
static _Thread_local unsigned n_calls;

/*
 * The signal by which glibc cancels an asynchronous thread may be on its way while the thread
 * forbids that. It acts within the next system call that is a cancellation point, whose end waits
 * for it: that is here, where the thread has no lock yet.
 */
void rsocket_begin_call(void)
{
	const int state = base_cancel_off();

	if (n_calls++)
		return;
	cancel_state = state;
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type);
	if (cancel_type == PTHREAD_CANCEL_ASYNCHRONOUS)
		poll(NULL, 0, 0);
}

void rsocket_end_call(void)
{
	if (--n_calls)
		return;
	pthread_setcanceltype(cancel_type, NULL);
	base_cancel_restore(cancel_state);
}

void rsocket_cancel_on(void)
{
	base_cancel_restore(cancel_state);
}

/* The thread is cancelled as it waits, which ends with the lock held. */
static void follow_no_more(void *rsocket)
{
	struct rsocket *rs = rsocket;

	rs->n_followers--;
	rsocket_leave_to_all(rs);
	pthread_mutex_unlock(&rs->lock);
	rdmacm_session_rsocket_put(rs);
}

static int follow(struct rsocket *rs, uint64_t until_ms)
{
	struct timespec until = { .tv_sec = (time_t)(until_ms / 1000),
		                  .tv_nsec = (long)(until_ms % 1000) * 1000000 };
	int ret;

	rs->n_followers++;
	pthread_cleanup_push(follow_no_more, rs);
	rsocket_cancel_on();
	if (until_ms == UINT64_MAX)
		ret = pthread_cond_wait(&rs->changed, &rs->lock);
	else
		ret = pthread_cond_timedwait(&rs->changed, &rs->lock, &until);
	base_cancel_off();
	pthread_cleanup_pop(0);
	rs->n_followers--;
	return -ret;
}

/* The thread is cancelled as it sleeps: another one leads. */
static void lead_no_more(void *rsocket)
{
	struct rsocket *rs = rsocket;

	pthread_mutex_lock(&rs->lock);
	rs->is_led = false;
	rsocket_changed(rs);
	rsocket_leave_to_all(rs);
	if (rs->is_served) /* others left to us what it has */
		rdmacm_session_serve_again(rs->fd);
	pthread_mutex_unlock(&rs->lock);
	rdmacm_session_rsocket_put(rs);
}

static int lead(struct rsocket *rs, uint64_t until_ms)
{
	struct pollfd p[] = { { .fd = rs->fd, .events = POLLIN },
		              { .fd = rdmacm_session_served(), .events = POLLIN } };
	int n, err;

	rs->is_led = true;
	pthread_mutex_unlock(&rs->lock);
	pthread_cleanup_push(lead_no_more, rs);
	rsocket_cancel_on();
	n = poll(p, 2, rsocket_timeout_ms(until_ms));
	err = errno;
	base_cancel_off();
	pthread_cleanup_pop(0);
	if (n > 0 && p[1].revents)
		rsocket_serve_all();
	pthread_mutex_lock(&rs->lock);
	rs->is_led = false;
	rsocket_drain(rs);
	rsocket_changed(rs);
	if (n < 0) /* the caller looks again, and sleeps on */
		return err == EINTR && base_signals_restart() ? 0 : -err;
	return n ? 0 : -ETIMEDOUT;
}

int rsocket_sleep(struct rsocket *rs, uint64_t until_ms)
{
	if (rs->is_led || rs->n_pollers)
		return follow(rs, until_ms);
	return lead(rs, until_ms);
}

void rsocket_pass_on(struct rsocket *rs)
{
	if (!rs->is_led && !rs->n_followers && !rs->n_pollers)
		return;
	rs->type->arm(rs);
	if (rs->type->events(rs) & POLLIN)
		rsocket_wake(rs);
}
