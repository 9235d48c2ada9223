/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The attach tables of the HCAs: which queue pairs get a copy of each packet that arrives for a
 * multicast GID (InfiniBand specification, section 10.5; ibv_attach_mcast(3)). An HCA delivers
 * by the MGID alone. A queue pair may be attached to one MGID by several MLIDs; it gets one copy.
 *
 * Flows list what these tables say; attach.h changes both. Only the daemon uses this; not
 * thread-safe.
 */
#ifndef FABRIC_ATTACH_TABLE_H
#define FABRIC_ATTACH_TABLE_H

#include "base/hash.h"
#include "fabric/model/fabric.h"

struct fabric_attachment {
	uint32_t qpn;
	uint16_t mlid;
	bool again;  /* the QP is in the group by another entry already; this one changes nothing */
	bool leaves; /* flows are leaving it out, and it goes when all have done so */
	uint32_t of_qp; /* where it is in the list of its QP */
};

/* One multicast group on one HCA. */
struct fabric_attached {
	struct base_hash_node node;
	uint32_t hca;
	struct ib_gid mgid;
	struct fabric_attachment *entry;
	uint32_t n, room;
	uint32_t n_qps; /* of them: a QP counts once, however many MLIDs it is attached by */
	bool joined;    /* on Ethernet: attaching has joined the group on the network */
};

/* Entries of an HCA beyond the first of each QP and group: no setting limits them. */
#define FABRIC_ATTACH_MAX_AGAIN 65536

/* All entries of a QP. */
struct fabric_attach_qp {
	struct fabric_attach_place {
		struct fabric_attached *group;
		uint32_t i; /* of its entries */
	} * at;
	uint32_t n, room;
};

struct fabric_attach {
	struct base_hash groups;     /* struct fabric_attached */
	struct fabric_attach_qp *qp; /* by QP index */
	struct fabric_attach_hca {
		uint32_t groups;
		uint32_t qps; /* sum of the groups' n_qps */
		uint32_t again;
	} * hca; /* by HCA */
	/* called when the last queue pair is detached, before @g goes; may be NULL */
	void (*emptied)(void *arg, const struct fabric_attached *g);
	void *emptied_arg;
};

int fabric_attach_init(struct fabric_attach *a, uint32_t n_hcas);
void fabric_attach_fini(struct fabric_attach *a);

/*
 * For attach.c: add an entry, or remove one. 1: flows have to follow, as the queue pair is in the
 * group now, or no longer. 0: they have not, as it is there by another entry, before and after.
 * -ENOMEM and -EINVAL: see fabric_attach_add() and fabric_attach_remove().
 */
int fabric_attach_table_add(struct fabric *f, uint32_t hca, uint32_t qpn, const struct ib_gid *mgid,
                            uint16_t mlid);
int fabric_attach_table_remove(struct fabric *f, uint32_t hca, uint32_t qpn,
                               const struct ib_gid *mgid, uint16_t mlid);

/* The same: removes an entry of @qpn, if it has any, and says in *@mgid of which group. */
bool fabric_attach_table_drop(struct fabric *f, uint32_t qpn, struct ib_gid *mgid);

/* How many attachments @qpn has, each MLID counted. */
uint32_t fabric_attach_count(const struct fabric *f, uint32_t qpn);

/* Whether @qpn is attached to @mgid on @hca, and not about to leave. */
bool fabric_attach_has(const struct fabric *f, uint32_t hca, uint32_t qpn,
                       const struct ib_gid *mgid);

/* The entry of @qpn, if it has no other one to @mgid; or NULL. */
struct fabric_attachment *fabric_attach_only(const struct fabric *f, uint32_t hca, uint32_t qpn,
                                             const struct ib_gid *mgid, uint16_t mlid);

/* The QPs attached to @mgid on @hca, or NULL. */
struct fabric_attached *fabric_attach_find(const struct fabric *f, uint32_t hca,
                                           const struct ib_gid *mgid);

#endif
