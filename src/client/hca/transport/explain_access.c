/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a responder refuses the memory that a request names: see responder.h. Looks once more at what
 * find_remote() in responder.c looked at, in its order.
 */
#include <byteswap.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"
#include "hca/transport/responder.h"
#include "shm/key.h"

static const char *access_name(uint32_t access)
{
	static const struct {
		uint32_t access;
		const char *name;
	} names[] = {
		{ IBV_ACCESS_REMOTE_WRITE, "IBV_ACCESS_REMOTE_WRITE" },
		{ IBV_ACCESS_REMOTE_READ, "IBV_ACCESS_REMOTE_READ" },
		{ IBV_ACCESS_REMOTE_ATOMIC, "IBV_ACCESS_REMOTE_ATOMIC" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (access & names[i].access)
			return names[i].name;
	return "IBV_ACCESS_FLUSH_GLOBAL or IBV_ACCESS_FLUSH_PERSISTENT";
}

static const char *kind_of(uint32_t access)
{
	return access & SHM_KEY_WINDOW ? "memory window" : "memory region";
}

/* Whether @key stands in the keys at @keys_off. */
static bool is_there(const struct hca_responder *t, uint64_t keys_off, uint32_t key)
{
	struct shm_reach reach;

	return keys_off && shm_key_read(&t->process->region, keys_off, key, &reach);
}

/* The keys of the process whose queue pair sent the request; 0: it is none of this fabric. */
static uint64_t keys_of_requester(const struct hca_responder *t)
{
	struct shm_qp q;

	shm_qp_read(&t->process->region, t->requester, &q);
	return q.qpn == t->requester ? q.connection.keys_off : 0;
}

/* Nothing stands there by that key now. */
static int explain_none(const struct hca_responder *t, char *text, size_t room)
{
	const struct hca_wanted *w = &t->wanted;
	const uint64_t keys = t->end.qp.connection.keys_off;
	struct shm_key *k = shm_key_at(&t->process->region, keys, w->key);
	const uint32_t now = k ? atomic_load_explicit(&k->key, memory_order_relaxed) : 0;

	if (is_there(t, keys, bswap_32(w->key)))
		return snprintf(text, room,
		                "its process has no rkey 0x%08x, but 0x%08x: the same "
		                "bytes in the other order",
		                w->key, bswap_32(w->key));
	if (keys_of_requester(t) != keys && is_there(t, keys_of_requester(t), w->key))
		return snprintf(text, room,
		                "rkey 0x%08x is of the requester's own process: it has "
		                "to be one of the responder's",
		                w->key);
	if (now)
		return snprintf(text, room,
		                "rkey 0x%08x was deregistered, or never was: in its "
		                "place is 0x%08x now",
		                w->key, now);
	if (k && atomic_load_explicit(&k->serial, memory_order_relaxed))
		return snprintf(
		        text, room, "rkey 0x%08x is not valid any more: its %s was %s", w->key,
		        kind_of(atomic_load_explicit(&k->access, memory_order_relaxed)),
		        atomic_load_explicit(&k->access, memory_order_relaxed) & SHM_KEY_WINDOW
		                ? "invalidated or freed"
		                : "deregistered");
	return snprintf(text, room, "its process has no rkey 0x%08x", w->key);
}

/* Says what is wrong with the use of @reach, which the key gives. */
static int explain_reach(const struct hca_responder *t, const struct shm_reach *reach, char *text,
                         size_t room)
{
	const struct hca_wanted *w = &t->wanted;
	const char *kind = kind_of(reach->access);
	uint64_t at;

	if (reach->domain != t->end.qp.connection.domain)
		return snprintf(text, room,
		                "rkey 0x%08x is of a %s in another protection domain "
		                "than the responder's",
		                w->key, kind);
	if ((reach->access & w->access) != w->access)
		return snprintf(text, room, "rkey 0x%08x is of a %s without %s", w->key, kind,
		                access_name(w->access & ~reach->access));
	if (reach->qpn && reach->qpn != t->end.qp.qpn)
		return snprintf(text, room, "rkey 0x%08x is of a memory window of QP 0x%06x alone",
		                w->key, reach->qpn);
	if (w->addr < reach->iova || w->addr - reach->iova >= reach->length)
		return snprintf(text, room, "the address is outside of the %s of rkey 0x%08x", kind,
		                w->key);
	if (!shm_reach_addr(reach, w->addr, w->length, &at))
		return snprintf(text, room, "the %s of rkey 0x%08x ends %" PRIu64 " bytes before",
		                kind, w->key,
		                w->length - (reach->length - (w->addr - reach->iova)));
	return snprintf(text, room, "rkey 0x%08x is no %s that the program has now", w->key, kind);
}

const char *hca_responder_explain(const struct hca_responder *t, char text[static BASE_REASON_MAX])
{
	const struct hca_wanted *w = &t->wanted;
	struct shm_reach reach;
	size_t n;

	if (t->why)
		return t->why;
	if (!w->access)
		return "the request is not valid";
	if (!shm_key_read(&t->process->region, t->end.qp.connection.keys_off, w->key, &reach)) {
		n = (size_t)explain_none(t, text, BASE_REASON_MAX);
		snprintf(text + n, BASE_REASON_MAX - n, " (%" PRIu64 " bytes at 0x%" PRIx64 ")",
		         w->length, w->addr);
		return text;
	}
	n = (size_t)explain_reach(t, &reach, text, BASE_REASON_MAX);
	snprintf(text + n, BASE_REASON_MAX - n,
	         " (%" PRIu64 " bytes at 0x%" PRIx64 "; it has %" PRIu64 " at 0x%" PRIx64 ")",
	         w->length, w->addr, reach.length, reach.iova);
	return text;
}
