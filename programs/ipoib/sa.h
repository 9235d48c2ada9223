/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests to the subnet administrator, by MADs of libibumad from the interface's port. Nothing
 * waits: the caller polls ipoib_sa_fd() and calls ipoib_sa_dispatch(), which calls what the
 * requests have said. Not thread-safe.
 */
#ifndef IPOIB_SA_H
#define IPOIB_SA_H

#include <infiniband/verbs.h>

#include "base/hash.h"
#include "wire/sa.h"

struct ipoib_sa;

/* Part of what the request is about. All zero: not under way. */
struct ipoib_sa_request {
	struct base_hash_node node;
	uint64_t tid; /* 0: not under way */
	/* @record: as the response has it; NULL: @status says why there is none, enum sa_status, or
	 * -errno if there was no response. The request is not under way any more. */
	void (*done)(struct ipoib_sa_request *r, int status, const uint8_t *record);
};

/* Of the port @port of the device @verbs, which stays the caller's. 0 or -errno. */
int ipoib_sa_open(struct ipoib_sa **sa, struct ibv_context *verbs, uint8_t port);
void ipoib_sa_close(struct ipoib_sa *sa);
int ipoib_sa_fd(const struct ipoib_sa *sa);

/* A question: @record, encoded, in the components of @mask. */
struct ipoib_sa_query {
	uint8_t method;
	uint16_t attribute;
	uint64_t mask;
	const struct wire_layout *layout;
	const void *record;
};

/*
 * Sends it; @r->done is called once, from ipoib_sa_dispatch(), unless this returns -errno or the
 * request is cancelled before. @r NULL: nobody wants to know.
 */
int ipoib_sa_send(struct ipoib_sa *sa, const struct ipoib_sa_query *query,
                  struct ipoib_sa_request *r);
void ipoib_sa_cancel(struct ipoib_sa *sa, struct ipoib_sa_request *r);

/* Receives what has come. 0; -errno: the port is gone. */
int ipoib_sa_dispatch(struct ipoib_sa *sa);

#endif
