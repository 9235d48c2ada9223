/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process's end of the detour: see detour.h.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/signals.h"
#include "base/util.h"
#include "hca/link/detour.h"

/* So often the daemon is waited for, and each time so long: then it is stopped. By looks and not by
 * the clock alone, as where the whole machine has stood still the daemon had no time either. */
#define LOOKS   10
#define LOOK_MS 100
#define MOST_NS 30000000000ull /* with signals all the time */

static int open_socket(struct hca_process *p)
{
	int fd;
	int ret = control_call(p->control,
	                       &(struct control_call){ .type = CONTROL_OPEN_DETOUR, .fd = &fd });

	return ret ? ret : fd;
}

/* The descriptor, or -errno. */
static int socket_of(struct hca_process *p)
{
	int fd = atomic_load_explicit(&p->detour.fd, memory_order_acquire);

	if (base_likely(fd > 0))
		return fd - 1;
	base_lock(&p->detour.lock);
	fd = atomic_load_explicit(&p->detour.fd, memory_order_relaxed) - 1;
	if (fd < 0) {
		fd = open_socket(p);
		if (fd >= 0)
			atomic_store_explicit(&p->detour.fd, fd + 1, memory_order_release);
	}
	base_unlock(&p->detour.lock);
	return fd;
}

/* Waits for room. False: there is none. */
static bool has_room(struct hca_process *p, int fd)
{
	struct pollfd out = { .fd = fd, .events = POLLOUT };
	uint64_t began = base_now_ns();

	for (unsigned vain = 0; vain < LOOKS && base_now_ns() - began < MOST_NS;) {
		int ready;

		if (hca_process_gone(p))
			return false;
		ready = poll(&out, 1, LOOK_MS);
		if (ready > 0)
			return true;
		vain += !ready;
	}
	return false;
}

static bool send_datagram(struct hca_process *p, int fd, const struct msghdr *msg)
{
	ssize_t n;

	do
		n = sendmsg(fd, msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 &&
	       (errno == EINTR || ((errno == EAGAIN || errno == ENOBUFS) && has_room(p, fd))));
	return n >= 0;
}

bool hca_detour_send(struct hca_process *p, const struct control_detour *packet,
                     const void *payload)
{
	struct iovec iov[2] = { { (void *)packet, sizeof(*packet) },
		                { (void *)payload, packet->payload_bytes } };
	const struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	int fd, cancel_state;
	bool sent;

	if (p->detour.take) {
		p->detour.take(p->detour.arg, packet, payload);
		return true;
	}
	/* there never was a detour: a program has written that into shared memory. A socket would
	 * be the daemon's own, and its room never come */
	if (p->must_not_block)
		return false;
	cancel_state = base_cancel_off(); /* the caller holds locks */
	fd = socket_of(p);
	sent = fd >= 0 && send_datagram(p, fd, &msg);
	base_cancel_restore(cancel_state);
	return sent;
}

bool hca_detour_is_held_up(const struct hca_process *p, uint64_t since_ns)
{
	int unread, fd = atomic_load_explicit(&p->detour.fd, memory_order_acquire) - 1;

	return fd >= 0 && !p->detour.take &&
	       atomic_load_explicit(&p->region.control->detour_ns, memory_order_relaxed) <
	               since_ns &&
	       !ioctl(fd, SIOCOUTQ, &unread) && unread;
}

void hca_detour_call(struct hca_process *p)
{
	const struct control_detour call = { .flow = CONTROL_DETOUR_CALL };

	hca_detour_send(p, &call, NULL);
}
