/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion channels: see channel.h.
 */
#define _GNU_SOURCE /* POLLRDHUP, preadv2() */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/reason.h"
#include "base/signals.h"
#include "base/util.h"
#include "hca/process/hearer.h"
#include "hca/queue/channel.h"
#include "hca/queue/cq.h"

int hca_channel_create(struct hca_context *ctx, struct hca_channel **out)
{
	const struct shm_region *r = &ctx->process->region;
	struct shm_cq_events *events =
	        shm_data_map(r, r->control->cq_events_off, SHM_MAX_CQS / 64 * sizeof(*events));
	struct hca_channel *ch = events ? calloc(1, sizeof(*ch)) : NULL;
	struct control_channel_reply rep;
	int ret;

	if (!ch)
		return -ENOMEM;
	ret = control_call(ctx->process->control,
	                   &(struct control_call){ .type = CONTROL_CREATE_CHANNEL,
	                                           .reply = &rep,
	                                           .reply_bytes = sizeof(rep),
	                                           .fd = &ch->channel.fd,
	                                           .undo = CONTROL_DESTROY_CHANNEL });
	if (ret) {
		free(ch);
		return ret;
	}
	ch->channel.context = &ctx->vctx.context;
	ch->id = rep.channel;
	pthread_mutex_init(&ch->lock, NULL);
	TAILQ_INIT(&ch->cqs);
	ch->due.events = events;
	hca_wakes_enter(&ctx->process->wakes, ch->id, ch->channel.fd);
	*out = ch;
	return 0;
}

int hca_channel_destroy(struct hca_channel *ch)
{
	struct hca_context *ctx = hca_context(ch->channel.context);
	struct control_handle req = { .handle = ch->id };
	int used;

	pthread_mutex_lock(&ch->lock);
	used = ch->channel.refcnt; /* a CQ that is being destroyed counts, too */
	pthread_mutex_unlock(&ch->lock);
	if (used)
		return base_because(-EBUSY, "completion queues still use it: destroy them first");
	hca_wakes_leave(&ctx->process->wakes, ch->id);
	hca_request(ctx->process, CONTROL_DESTROY_CHANNEL, &req, sizeof(req));
	close(ch->channel.fd);
	pthread_mutex_destroy(&ch->lock);
	hca_due_fini(&ch->due);
	free(ch);
	return 0;
}

/* ---- events: with the lock held ---- */

static bool has_event(struct hca_channel *ch)
{
	return hca_due_first(&ch->due);
}

static bool is_readable(const struct hca_channel *ch)
{
	struct pollfd p = { .fd = ch->channel.fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

/* Takes a unit out of the eventfd without waiting for one. 0; -EAGAIN: there is none; -errno. */
static int take_unit(struct hca_channel *ch)
{
	uint64_t one;
	struct iovec iov = { &one, sizeof(one) };

	if (preadv2(ch->channel.fd, &iov, 1, -1, RWF_NOWAIT) == sizeof(one))
		return 0;
	if (errno == EAGAIN || errno == EBADF)
		return -errno;
	/* kernels before 5.8, containers that deny the call */
	if (!is_readable(ch))
		return -EAGAIN;
	return read(ch->channel.fd, &one, sizeof(one)) == sizeof(one) ? 0 : -errno;
}

/* A unit may have been taken for an event whose own unit comes now: that one is surplus then. */
static void await_wakers(const struct hca_channel *ch)
{
	const uint64_t began = base_now_ns();
	const struct hca_cq *cq;

	TAILQ_FOREACH(cq, &ch->cqs, channel_entry)
	hca_cq_await_wakers(cq, began);
}

/*
 * An event is counted before its unit is written. So what is in the eventfd while no CQ has an
 * event is of a CQ that is gone, or a unit that the daemon wrote to be sure. If another unit is
 * written before we take one, one is left.
 */
void hca_channel_settle(struct hca_channel *ch)
{
	int cancel_state;

	if (!ch->has_surplus && !is_readable(ch))
		return;
	cancel_state = base_cancel_off();
	if (ch->has_surplus && !has_event(ch))
		await_wakers(ch);
	while (is_readable(ch) && !has_event(ch) && !take_unit(ch))
		;
	ch->has_surplus = ch->has_surplus && has_event(ch);
	base_cancel_restore(cancel_state);
}

/* The CQ whose event came first, or NULL. */
static struct hca_cq *take_event(struct hca_channel *ch)
{
	struct hca_cq *first = hca_due_first(&ch->due);

	if (first) {
		hca_due_take(&ch->due);
		first->comp_events_got++;
	}
	return first;
}

/* ---- waiting ---- */

/* Waits until the channel has an event. -EIO: the daemon has gone; -EINTR. Cancellation point. */
static int wait_event(struct hca_channel *ch)
{
	struct hca_process *p = hca_context(ch->channel.context)->process;
	struct pollfd fds[] = { { .fd = ch->channel.fd, .events = POLLIN },
		                { .fd = control_fd(p->control), .events = POLLRDHUP } };
	int n, timeout_ms = hca_is_heard(p) ? 1000 : -1;

	while ((n = poll(fds, 2, timeout_ms)) <= 0) {
		if (n && (errno != EINTR || !base_signals_restart()))
			return -errno;
		if (!n) {
			hca_vain_waits(ch);
			timeout_ms = -1;
		}
	}
	if (fds[0].revents & POLLIN)
		return 0;
	return fds[1].revents ? -EIO : 0;
}

/* Takes a unit and what it stands for. 0; -EAGAIN: there is nothing; -errno. In between no thread
 * ends, and no CQ is destroyed. */
static int get_event(struct hca_channel *ch, struct hca_cq **cq)
{
	int ret, cancel_state = base_cancel_off();

	pthread_mutex_lock(&ch->lock);
	ret = take_unit(ch);
	*cq = ret ? NULL : take_event(ch);
	if (!ret)
		hca_channel_settle(ch);
	pthread_mutex_unlock(&ch->lock);
	base_cancel_restore(cancel_state);
	return ret || *cq ? ret : -EAGAIN; /* the unit stood for a CQ that is gone */
}

int hca_channel_get_event(struct hca_channel *ch, struct hca_cq **cq)
{
	bool blocking = !(fcntl(ch->channel.fd, F_GETFL) & O_NONBLOCK);
	int ret;

	do {
		ret = blocking ? wait_event(ch) : 0;
		if (!ret)
			ret = get_event(ch, cq);
	} while (ret == -EAGAIN && blocking);
	if (ret == -EAGAIN && hca_process_gone(hca_context(ch->channel.context)->process))
		return -EIO;
	return ret;
}
