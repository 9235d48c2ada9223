/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A priority that is had for some milliseconds at a time: see priority.h.
 */
#define _GNU_SOURCE /* SCHED_RESET_ON_FORK, syscall() */
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/signals.h"
#include "base/util.h"
#include "daemon/core/priority.h"

static bool set_policy(pid_t tid, int policy)
{
	const struct sched_param param = { .sched_priority = sched_get_priority_min(policy) };

	return !sched_setscheduler(tid, policy | SCHED_RESET_ON_FORK, &param);
}

/* Takes it from the loop's thread, which may not run any more from then on, and gives it back. This
 * thread sleeps nearly always, so it has the priority all the time. */
static void *take_and_give(void *arg)
{
	const struct timespec rest = { .tv_nsec = DAEMON_PRIORITY_REST_NS };
	struct daemon_priority *p = arg;

	set_policy(0, SCHED_RR);
	for (;;) {
		while (sem_wait(&p->is_used_up))
			;
		if (atomic_load_explicit(&p->ends, memory_order_acquire))
			break;
		set_policy(p->tid, SCHED_OTHER);
		nanosleep(&rest, NULL);
		if (!set_policy(p->tid, SCHED_RR))
			continue;
		/* what it had no processor for was no work */
		atomic_store_explicit(&p->since_ns, base_now_ns(), memory_order_relaxed);
		/* release: pairs with the acquire in daemon_priority_note() */
		atomic_store_explicit(&p->has, true, memory_order_release);
	}
	return NULL;
}

static bool start_giver(struct daemon_priority *p)
{
	if (sem_init(&p->is_used_up, 0, 0))
		return false;
	if (!base_thread_start(&p->giver, 0, take_and_give, p))
		return true;
	sem_destroy(&p->is_used_up);
	return false;
}

static bool is_limited(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_RTTIME, &limit) || limit.rlim_cur != RLIM_INFINITY;
}

void daemon_priority_start(struct daemon_priority *p)
{
	p->tid = (pid_t)syscall(SYS_gettid);
	if (getpriority(PRIO_PROCESS, 0) > 0 || is_limited() || !set_policy(0, SCHED_RR))
		return;
	p->may = start_giver(p);
	if (!p->may) {
		set_policy(0, SCHED_OTHER);
		return;
	}
	atomic_store_explicit(&p->has, true, memory_order_relaxed);
	daemon_priority_begin(p);
}

void daemon_priority_stop(struct daemon_priority *p)
{
	if (!p->may)
		return;
	/* not cancelled: for that the C library loads another one, and aborts if it has no memory
	 * for it. release: pairs with take_and_give() */
	atomic_store_explicit(&p->ends, true, memory_order_release);
	sem_post(&p->is_used_up);
	pthread_join(p->giver, NULL);
	sem_destroy(&p->is_used_up);
	set_policy(0, SCHED_OTHER);
	*p = (struct daemon_priority){ 0 };
}

void daemon_priority_begin(struct daemon_priority *p)
{
	if (p->may)
		atomic_store_explicit(&p->since_ns, base_now_ns(), memory_order_relaxed);
}

void daemon_priority_spend(struct daemon_priority *p, uint64_t ns)
{
	/* acquire: pairs with the release in take_and_give() */
	if (p->may && atomic_load_explicit(&p->has, memory_order_acquire))
		p->worked_ns += ns;
}

void daemon_priority_note(struct daemon_priority *p)
{
	uint64_t now;

	/* acquire: pairs with the release in take_and_give() */
	if (!p->may || !atomic_load_explicit(&p->has, memory_order_acquire))
		return;
	now = base_now_ns();
	p->worked_ns += now - atomic_exchange_explicit(&p->since_ns, now, memory_order_relaxed);
	if (p->worked_ns < DAEMON_PRIORITY_WORK_NS)
		return;
	p->worked_ns = 0;
	atomic_store_explicit(&p->has, false, memory_order_relaxed);
	sem_post(&p->is_used_up);
}
