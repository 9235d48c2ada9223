/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses that this process has resolved lately. Resolving one of them again, by another
 * identifier in the same state, cannot be refused at once, so the call need not wait for the
 * daemon's answer.
 */
#include <string.h>

#include "api/rdmacm/rdmacm.h"

#define KNOWN 16

/* guarded by the session's lock */
static struct {
	struct known {
		const struct rdmacm_session *session;
		union control_cm_addr src, dst;
		enum rdma_port_space ps;
		struct ibv_context *verbs; /* of the port that was found */
		uint8_t port_num;
	} entry[KNOWN];
	unsigned n; /* ever */
} known;

/* NULL: it was not resolved. */
static struct known *find(const struct rdmacm_id *id, const struct control_cm_resolve_addr *request)
{
	for (struct known *k = known.entry; k < known.entry + KNOWN; k++)
		if (k->session == id->session && k->ps == id->id.ps &&
		    !memcmp(&k->src, &request->src, sizeof(k->src)) &&
		    !memcmp(&k->dst, &request->dst, sizeof(k->dst)))
			return k;
	return NULL;
}

bool rdmacm_known(const struct rdmacm_id *id, const struct control_cm_resolve_addr *request)
{
	struct ibv_context *verbs = NULL;
	const struct known *k;
	uint8_t port_num = 0;

	rdmacm_session_lock();
	k = find(id, request);
	if (k) {
		verbs = k->verbs;
		port_num = k->port_num;
	}
	rdmacm_session_unlock();
	return verbs && rdmacm_port_is_ready(verbs, port_num);
}

void rdmacm_known_add(const struct rdmacm_id *id, const struct control_cm_resolve_addr *request)
{
	struct known *k;

	rdmacm_session_lock();
	k = find(id, request);
	if (!k)
		k = &known.entry[known.n++ % KNOWN];
	*k = (struct known){ .session = id->session,
		             .src = request->src,
		             .dst = request->dst,
		             .ps = id->id.ps,
		             .verbs = id->id.verbs,
		             .port_num = id->id.port_num };
	rdmacm_session_unlock();
}
