/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of netlink(7): see message.h.
 */
#include <stdlib.h>
#include <string.h>

#include "sysfs/netlink/message.h"

/* ---- writing */

void netlink_free(struct netlink_answer *a)
{
	free(a->data);
	*a = (struct netlink_answer){ 0 };
}

/* Room for @bytes more, aligned and zeroed. NULL: no memory. */
static void *add(struct netlink_answer *a, size_t bytes)
{
	const size_t aligned = NLMSG_ALIGN(bytes);
	size_t room = a->room;
	void *at;

	while (room - a->bytes < aligned)
		room = room ? room * 2 : 4096;
	if (room != a->room) {
		at = a->failed ? NULL : realloc(a->data, room);
		if (!at) {
			a->failed = true;
			return NULL;
		}
		a->data = at;
		a->room = room;
	}
	at = a->data + a->bytes;
	memset(at, 0, aligned);
	a->bytes += aligned;
	return at;
}

size_t netlink_begin(struct netlink_answer *a, const struct nlmsghdr *request, uint16_t type,
                     uint16_t flags)
{
	const size_t at = a->bytes;
	struct nlmsghdr *m = add(a, NLMSG_HDRLEN);

	if (m)
		*m = (struct nlmsghdr){ .nlmsg_type = type,
			                .nlmsg_flags = flags,
			                .nlmsg_seq = request->nlmsg_seq,
			                .nlmsg_pid = request->nlmsg_pid };
	return at;
}

void netlink_end(struct netlink_answer *a, size_t message)
{
	if (!a->failed)
		((struct nlmsghdr *)(a->data + message))->nlmsg_len =
		        (uint32_t)(a->bytes - message);
}

void netlink_put(struct netlink_answer *a, uint16_t type, const void *value, size_t bytes)
{
	struct nlattr *attr = add(a, NLA_HDRLEN + bytes);

	if (!attr)
		return;
	*attr = (struct nlattr){ .nla_len = (uint16_t)(NLA_HDRLEN + bytes), .nla_type = type };
	memcpy((char *)attr + NLA_HDRLEN, value, bytes);
}

void netlink_put_u8(struct netlink_answer *a, uint16_t type, uint8_t value)
{
	netlink_put(a, type, &value, sizeof(value));
}

void netlink_put_u32(struct netlink_answer *a, uint16_t type, uint32_t value)
{
	netlink_put(a, type, &value, sizeof(value));
}

void netlink_put_u64(struct netlink_answer *a, uint16_t type, uint64_t value)
{
	netlink_put(a, type, &value, sizeof(value));
}

void netlink_put_text(struct netlink_answer *a, uint16_t type, const char *text, size_t most)
{
	const size_t length = strnlen(text, most);
	struct nlattr *attr = add(a, NLA_HDRLEN + length + 1);

	if (!attr)
		return;
	*attr = (struct nlattr){ .nla_len = (uint16_t)(NLA_HDRLEN + length + 1), .nla_type = type };
	memcpy((char *)attr + NLA_HDRLEN, text, length);
}

size_t netlink_nest(struct netlink_answer *a, uint16_t type)
{
	const size_t at = a->bytes;
	struct nlattr *attr = add(a, NLA_HDRLEN);

	if (attr)
		attr->nla_type = type | NLA_F_NESTED;
	return at;
}

void netlink_end_nest(struct netlink_answer *a, size_t nest)
{
	if (!a->failed)
		((struct nlattr *)(a->data + nest))->nla_len = (uint16_t)(a->bytes - nest);
}

void netlink_put_status(struct netlink_answer *a, const struct nlmsghdr *request, int status)
{
	const size_t at = netlink_begin(a, request, NLMSG_ERROR, NLM_F_CAPPED);
	struct nlmsgerr *e = add(a, sizeof(*e));

	if (e)
		*e = (struct nlmsgerr){ .error = status, .msg = *request };
	netlink_end(a, at);
}

void netlink_put_done(struct netlink_answer *a, const struct nlmsghdr *request)
{
	const size_t at = netlink_begin(a, request, NLMSG_DONE, NLM_F_MULTI);

	add(a, sizeof(int)); /* 0: nothing went wrong on the way */
	netlink_end(a, at);
}

size_t netlink_next(const struct netlink_answer *a, size_t most)
{
	const struct nlmsghdr *m;
	size_t bytes = 0;
	bool list = true;

	while (list && a->sent + bytes < a->bytes) {
		m = (const struct nlmsghdr *)(a->data + a->sent + bytes);
		if (bytes && bytes + m->nlmsg_len > most)
			break;
		bytes += m->nlmsg_len;
		list = m->nlmsg_flags & NLM_F_MULTI && m->nlmsg_type != NLMSG_DONE;
	}
	return bytes;
}

/* ---- reading */

bool netlink_get_u32(const struct nlmsghdr *request, uint16_t type, uint32_t *value)
{
	const unsigned char *at = (const unsigned char *)request + NLMSG_HDRLEN;
	const unsigned char *end = (const unsigned char *)request + request->nlmsg_len;
	struct nlattr attr;

	while ((size_t)(end - at) >= sizeof(attr)) {
		memcpy(&attr, at, sizeof(attr));
		if (attr.nla_len < sizeof(attr) || attr.nla_len > end - at)
			return false;
		if ((attr.nla_type & NLA_TYPE_MASK) == type) {
			if (attr.nla_len < NLA_HDRLEN + sizeof(*value))
				return false;
			memcpy(value, at + NLA_HDRLEN, sizeof(*value));
			return true;
		}
		at += NLA_ALIGN(attr.nla_len) < end - at ? NLA_ALIGN(attr.nla_len) : end - at;
	}
	return false;
}
