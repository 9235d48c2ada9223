/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The attach tables of the HCAs: which queue pairs get a copy of what arrives for a
 * multicast GID (InfiniBand specification, section 10.5; ibv_attach_mcast(3)). An
 * HCA looks at the MGID alone; the MLID only tells attachments apart.
 *
 * The manager's; not thread-safe. A change reaches the flows to that group.
 */
#ifndef FABRIC_ATTACH_H
#define FABRIC_ATTACH_H

#include "base/hash.h"
#include "fabric/fabric.h"

struct fabric_attachment {
	uint32_t qpn;
	uint16_t mlid;
	bool again; /* the QP is attached by another MLID too, and gets one copy */
};

/* One multicast group on one HCA. */
struct fabric_attached {
	struct base_hash_node node;
	uint32_t hca;
	struct ib_gid mgid;
	struct fabric_attachment *entry;
	uint32_t n, room;
};

struct fabric_attach {
	struct base_hash groups;          /* struct fabric_attached */
	uint32_t *qp_count;               /* attachments by QP index */
	uint32_t *hca_groups, *hca_total; /* groups, attachments, by HCA */
	/* told when the last one is detached from @mgid on @hca; or NULL */
	void (*emptied)(void *arg, uint32_t hca, const struct ib_gid *mgid);
	void *emptied_arg;
};

int fabric_attach_init(struct fabric_attach *a, uint32_t n_hcas);
void fabric_attach_fini(struct fabric_attach *a);

/* 0 (also if it is attached already); -ENOMEM: a limit of the settings, or memory. */
int fabric_attach_add(struct fabric *f, uint32_t hca, uint32_t qpn, const struct ib_gid *mgid,
                      uint16_t mlid);

/* 0, or -EINVAL: not attached by this MGID and MLID. */
int fabric_attach_remove(struct fabric *f, uint32_t hca, uint32_t qpn, const struct ib_gid *mgid,
                         uint16_t mlid);

/* Detaches @qpn from all groups, as its process is dead. */
void fabric_attach_remove_all(struct fabric *f, uint32_t hca, uint32_t qpn);

/* How many attachments @qpn has. */
uint32_t fabric_attach_count(const struct fabric *f, uint32_t qpn);

/* The QPs attached to @mgid on @hca, or NULL. */
struct fabric_attached *fabric_attach_find(const struct fabric *f, uint32_t hca,
                                           const struct ib_gid *mgid);

/* Tells the flows that the port of @qpn is another one. */
void fabric_attach_qp_moved(struct fabric *f, uint32_t hca, uint32_t qpn);

#endif
