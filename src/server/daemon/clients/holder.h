/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Holders of objects: a client, which lives by its connection, or the daemon itself. The objects of
 * each kind are lists here; hca.h, pd.h, channel.h, cq.h and qp.h say what they are.
 */
#ifndef DAEMON_HOLDER_H
#define DAEMON_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "control/message.h"
#include "daemon/clients/memory.h"

struct cm_client;
struct daemon_loop;
struct daemon_objects;

struct daemon_holder {
	struct daemon_objects *objects;
	uint32_t client;                     /* its number */
	pid_t pid;                           /* of its process, as the daemon sees it */
	uid_t uid;                           /* likewise */
	uint64_t keys_off;                   /* of its keys (shm/connection.h); 0: it has none */
	int memory_fd[CONTROL_MEMORY_KINDS]; /* of its memory; -1: it offers none */
	struct daemon_loop *loop;            /* which closes them */
	LIST_HEAD(, daemon_extent) key_chunks;
	uint32_t extra_flows;           /* of its QPs, beyond those that each may have */
	bool dead;                      /* its objects are being freed, and then this */
	struct daemon_memory_want want; /* of rings */
	struct daemon_chore undo, end;
	unsigned undone; /* how many times its QPs' unfinished actions were undone, or are being */
	LIST_HEAD(, daemon_hca) hcas;
	LIST_HEAD(, daemon_gid_users) gid_users; /* hca.h */
	unsigned n_pds;
	LIST_HEAD(, daemon_channel) channels;
	LIST_HEAD(, daemon_cq) cqs;
	TAILQ_HEAD(, daemon_qp) qps; /* those last that were undone */
	LIST_HEAD(, daemon_srq) srqs;
	LIST_HEAD(, daemon_xrcd_handle) xrcds;
	LIST_HEAD(, daemon_qp_user) used_qps; /* XRC targets that others own */
	struct cm_client *cm;                 /* once it has asked for something of rdma_cm */
	TAILQ_HEAD(, daemon_qp) reserved;     /* what lies reserved, the oldest first (reserve.h) */
	unsigned n_reserved;
	uint64_t reserved_bytes;
};

#endif
