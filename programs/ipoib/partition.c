/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The partition of an interface: where its P_Key is in the port's table, and the time before it is
 * there.
 */
#include <errno.h>
#include <poll.h>

#include "base/util.h"
#include "ipoib/interface.h"

/* The entry of the port's table that is in the partition. */
static int find(struct ipoib_interface *i, uint16_t *index)
{
	struct ibv_device_attr device;
	__be16 pkey;

	if (ibv_query_device(i->verbs, &device))
		return -EIO;
	for (uint16_t n = 0; n < device.max_pkeys; n++) {
		if (ibv_query_pkey(i->verbs, i->port_num, n, &pkey))
			break;
		if ((be16toh(pkey) ^ i->options->pkey) & IB_PKEY_BASE_MASK)
			continue;
		i->port.pkey = be16toh(pkey);
		*index = n;
		return 0;
	}
	return -ENOENT;
}

int ipoib_partition_find(struct ipoib_interface *i)
{
	return find(i, &i->pkey_index);
}

bool ipoib_partition_follow(struct ipoib_interface *i)
{
	uint16_t index;

	if (find(i, &index))
		return false;
	if (index != i->pkey_index && !ipoib_link_set_pkey_index(i->link, index))
		i->pkey_index = index;
	return index == i->pkey_index;
}

/* ---- the time before ---- */

/* Takes the port's events. -ENODEV: the fabric has ended. */
static int take_events(struct ipoib_interface *i)
{
	struct ibv_async_event event;
	bool fatal = false;

	while (!ibv_get_async_event(i->verbs, &event)) {
		fatal |= event.event_type == IBV_EVENT_DEVICE_FATAL;
		ibv_ack_async_event(&event);
	}
	return fatal ? -ENODEV : ipoib_partition_find(i);
}

int ipoib_partition_await(struct ipoib_interface *i)
{
	enum { VERBS, SIGNAL, CONTROL };
	struct pollfd fd[] = {
		[VERBS] = { .fd = i->verbs->async_fd, .events = POLLIN },
		[SIGNAL] = { .fd = i->signals, .events = POLLIN },
		[CONTROL] = { .fd = i->options->control_fd, .events = POLLIN },
	};
	int ret = -ENOENT;

	ipoib_report(i);
	while (ret == -ENOENT) {
		if (poll(fd, ARRAY_SIZE(fd), -1) < 0 && errno != EINTR)
			return -errno;
		if (fd[SIGNAL].revents)
			return -ECANCELED;
		if (fd[CONTROL].revents & (POLLHUP | POLLERR))
			fd[CONTROL].fd = -1;
		else if (fd[CONTROL].revents)
			ipoib_status_answer(i);
		ret = take_events(i);
	}
	return ret;
}
