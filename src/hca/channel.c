/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion channels: see channel.h.
 */
#define _GNU_SOURCE /* POLLRDHUP */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/reason.h"
#include "base/signals.h"
#include "hca/cq.h"

int hca_channel_create(struct hca_context *ctx, struct hca_channel **out)
{
	struct hca_channel *ch = calloc(1, sizeof(*ch));
	struct control_channel_reply rep;
	int ret;

	if (!ch)
		return -ENOMEM;
	ret = control_call(ctx->process->control,
	                   &(struct control_call){ .type = CONTROL_CREATE_CHANNEL,
	                                           .reply = &rep,
	                                           .reply_bytes = sizeof(rep),
	                                           .fd = &ch->channel.fd });
	if (ret) {
		free(ch);
		return ret;
	}
	ch->channel.context = &ctx->vctx.context;
	ch->id = rep.channel;
	pthread_mutex_init(&ch->lock, NULL);
	TAILQ_INIT(&ch->cqs);
	*out = ch;
	return 0;
}

int hca_channel_destroy(struct hca_channel *ch)
{
	struct hca_context *ctx = hca_context(ch->channel.context);
	struct control_handle req = { .handle = ch->id };

	pthread_mutex_lock(&ch->lock);
	if (!TAILQ_EMPTY(&ch->cqs)) {
		pthread_mutex_unlock(&ch->lock);
		return base_because(-EBUSY, "completion queues still use it: destroy them first");
	}
	pthread_mutex_unlock(&ch->lock);
	hca_request(ctx->process, CONTROL_DESTROY_CHANNEL, &req, sizeof(req));
	close(ch->channel.fd);
	pthread_mutex_destroy(&ch->lock);
	free(ch);
	return 0;
}

/* The next CQ with an event, or NULL. */
static struct hca_cq *next_notified(struct hca_channel *ch)
{
	struct hca_cq *cq;

	pthread_mutex_lock(&ch->lock);
	TAILQ_FOREACH(cq, &ch->cqs, channel_entry)
	{
		/* acquire: pairs with the release in hca_cq_wake() */
		uint32_t n = atomic_load_explicit(&cq->shm->notified, memory_order_acquire);

		if (!n)
			continue;
		atomic_fetch_sub_explicit(&cq->shm->notified, 1, memory_order_relaxed);
		cq->comp_events_got++;
		/* the others come first next time */
		TAILQ_REMOVE(&ch->cqs, cq, channel_entry);
		TAILQ_INSERT_TAIL(&ch->cqs, cq, channel_entry);
		break;
	}
	pthread_mutex_unlock(&ch->lock);
	return cq;
}

/* Waits until the channel has an event. -EIO: the daemon has gone; -EINTR. Cancellation point. */
static int wait_event(struct hca_channel *ch)
{
	struct hca_process *p = hca_context(ch->channel.context)->process;
	struct pollfd fds[] = { { .fd = ch->channel.fd, .events = POLLIN },
		                { .fd = control_fd(p->control), .events = POLLRDHUP } };

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR || !base_signals_restart())
			return -errno;
	if (fds[0].revents & POLLIN)
		return 0;
	return fds[1].revents ? -EIO : 0;
}

int hca_channel_get_event(struct hca_channel *ch, struct hca_cq **cq)
{
	struct hca_process *p = hca_context(ch->channel.context)->process;
	bool blocking = !(fcntl(ch->channel.fd, F_GETFL) & O_NONBLOCK);
	uint64_t one;

	for (;;) {
		if (blocking) {
			int ret = wait_event(ch);

			if (ret)
				return ret;
		}
		if (read(ch->channel.fd, &one, sizeof(one)) < 0) {
			if (errno == EAGAIN && hca_process_gone(p))
				return -EIO;
			return -errno;
		}
		*cq = next_notified(ch);
		if (*cq)
			return 0;
		/* the event was of a CQ that is gone */
	}
}
