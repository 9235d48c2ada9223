/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of netlink(7) with attributes: read where they lie, and written one behind the other. A
 * library for this would come into every program that is preloaded with ours.
 *
 * Memory that is refused is remembered: writes after that are left out.
 */
#ifndef SYSFS_NETLINK_MESSAGE_H
#define SYSFS_NETLINK_MESSAGE_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The answer to a request: its messages, of which @sent bytes are gone. */
struct netlink_answer {
	unsigned char *data;
	size_t bytes, room, sent;
	bool failed; /* no memory */
};

void netlink_free(struct netlink_answer *a);

/* A message in answer to @request, up to netlink_end(), whose value it takes. */
size_t netlink_begin(struct netlink_answer *a, const struct nlmsghdr *request, uint16_t type,
                     uint16_t flags);
void netlink_end(struct netlink_answer *a, size_t message);

void netlink_put(struct netlink_answer *a, uint16_t type, const void *value, size_t bytes);
void netlink_put_u8(struct netlink_answer *a, uint16_t type, uint8_t value);
void netlink_put_u32(struct netlink_answer *a, uint16_t type, uint32_t value);
void netlink_put_u64(struct netlink_answer *a, uint16_t type, uint64_t value);
/* At most @most bytes of @text, up to its end. */
void netlink_put_text(struct netlink_answer *a, uint16_t type, const char *text, size_t most);

/* Attributes within an attribute, up to netlink_end_nest(), likewise. */
size_t netlink_nest(struct netlink_answer *a, uint16_t type);
void netlink_end_nest(struct netlink_answer *a, size_t nest);

/* The status of @request: 0 or -errno; and the end of what it asked to be listed. */
void netlink_put_status(struct netlink_answer *a, const struct nlmsghdr *request, int status);
void netlink_put_done(struct netlink_answer *a, const struct nlmsghdr *request);

/* How many bytes from @sent on are to be sent together: one message, or @most bytes of a list. */
size_t netlink_next(const struct netlink_answer *a, size_t most);

/* The attribute of @request; false: it has none, or a shorter one. */
bool netlink_get_u32(const struct nlmsghdr *request, uint16_t type, uint32_t *value);

#endif
