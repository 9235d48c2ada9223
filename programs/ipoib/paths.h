/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths to ports: the SA is asked for a PathRecord once for each GID; packets wait meanwhile. The
 * table is bounded; the path that was not used for longest goes first. Not thread-safe.
 */
#ifndef IPOIB_PATHS_H
#define IPOIB_PATHS_H

#include "base/hash.h"
#include "ipoib/link.h"
#include "ipoib/packet.h"
#include "ipoib/sa.h"
#include "wire/ib.h"

#define IPOIB_PATHS_MAX 4096

/* The port's present state. */
struct ipoib_port {
	struct ib_gid gid;
	uint16_t lid;
	uint8_t lmc;
	uint16_t pkey; /* with the membership bit */
};

struct ipoib_path {
	struct base_hash_node node;
	TAILQ_ENTRY(ipoib_path) entry; /* oldest use first */
	struct ipoib_sa_request request;
	struct ipoib_paths *table;
	struct ib_gid gid;
	struct ibv_ah *ah; /* NULL: not known */
	uint16_t lid;
	uint64_t not_before_ns; /* when the SA may be asked again */
	struct ipoib_queue queue;
};

struct ipoib_paths {
	struct base_hash by_gid;
	TAILQ_HEAD(, ipoib_path) all;
	struct ipoib_sa *sa;
	struct ipoib_link *link;
	const struct ipoib_port *port;
	struct ipoib_budget *budget;
	/* Sends a packet that has waited. */
	void (*send)(void *arg, struct ibv_ah *ah, uint32_t qpn, const struct ipoib_packet *p);
	void *arg;
	uint64_t dropped;
};

void ipoib_paths_init(struct ipoib_paths *t);
void ipoib_paths_fini(struct ipoib_paths *t);

/* By which address handle to send @p to @qpn at @gid now. NULL: not known yet, and the table has
 * kept a copy of @p, or dropped it. */
struct ibv_ah *ipoib_paths_use(struct ipoib_paths *t, const struct ib_gid *gid, uint32_t qpn,
                               const struct ipoib_packet *p);

/* The path may be wrong: asks again when it is used. NULL: all. */
void ipoib_paths_doubt(struct ipoib_paths *t, const struct ib_gid *gid);

/* Whether the path that we know to @gid leads to @lid. */
enum ipoib_path_match {
	IPOIB_PATH_UNKNOWN,
	IPOIB_PATH_MATCHES,
	IPOIB_PATH_DIFFERS,
};
enum ipoib_path_match ipoib_paths_match(const struct ipoib_paths *t, const struct ib_gid *gid,
                                        uint16_t lid);

#endif
