/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A transport: what queue pairs of one type do with work requests and arrivals. The common code of
 * all types is in qp_create.c and qp_modify.c, which call the transport by this table. A transport
 * consists of one or two files with one constant table at the end, which transport.c lists.
 */
#ifndef HCA_TRANSPORT_H
#define HCA_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct hca_qp;
struct hca_rq;

/* A change of state that ibv_modify_qp() can ask for, and the attributes that go with it. */
struct hca_transition {
	enum ibv_qp_state from, to;
	int required, optional; /* enum ibv_qp_attr_mask */
};

struct hca_transport {
	const char *name;
	enum ibv_qp_type type;
	size_t qp_bytes;   /* of its queue pair, which begins with struct hca_qp */
	uint64_t send_ops; /* enum ibv_qp_create_send_ops_flags that the ibv_wr_ calls may use */
	int ignored; /* enum ibv_qp_attr_mask: attributes that a program may set without effect */
	const struct hca_transition *transitions; /* ends with one from RESET to RESET */

	/* Initializes the transport's part of a new queue pair; the common part is done. 0 or
	 * -errno. */
	int (*init)(struct hca_qp *qp);
	/* The daemon knows the queue pair now: it has a number and memory. NULL: nothing to do. */
	void (*made)(struct hca_qp *qp);
	/* Frees the transport's part of the queue pair, and requests that the send queue keeps. */
	void (*fini)(struct hca_qp *qp);

	/* Sets the path of a connected queue pair, by hca_ah_fill(); @attr NULL: removes the path.
	 * 0 or -EINVAL. No function: queue pairs of this type have no path. */
	int (*set_path)(struct hca_qp *qp, struct ibv_ah_attr *attr);

	/* Checks @wr, but not whether the queue has room. 0 or -errno. */
	int (*check)(const struct hca_qp *qp, const struct ibv_send_wr *wr);
	/* ibv_post_send(): 0, or -errno and *@bad. */
	int (*post)(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	/* The same with the send lock held, for requests that check() would pass and that there is
	 * room for; *@wr becomes the request that failed. */
	int (*post_checked)(struct hca_qp *qp, const struct ibv_send_wr **wr);
	/* Polls up to @n completions of the receive queue, as hca_rq_poll() does. */
	int (*receive)(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals);
	/* The same for one with a shared receive queue. */
	int (*receive_shared)(struct hca_rq *rq, int n, struct ibv_wc *wc, uint32_t *arrivals);

	/* The state has changed. Carries out the requests that the send queue kept (SQD); in ERR
	 * and SQE they are flushed. With the send lock held. */
	void (*progress)(struct hca_qp *qp);
	/* The queue pair has moved to SQD. True: requests are still under way, and the transport
	 * sends IBV_EVENT_SQ_DRAINED when they are done. NULL: no request is ever under way. With
	 * the send lock held. */
	bool (*drains)(struct hca_qp *qp);
	/* Goes on with requests that wait (hca_cq_add_waiting()). With the send lock held. */
	void (*poll)(struct hca_qp *qp);
	/* The queue pair has moved to ERR. From now on no sender begins to deliver to it, even if
	 * the daemon does not know yet. NULL: senders stop when the daemon knows. */
	void (*end)(struct hca_qp *qp);
	/* Drops the requests that the send queue kept. With the send lock held. */
	void (*flush)(struct hca_qp *qp);
};

/* *@t: the transport for queue pairs of @type. -EOPNOTSUPP: none yet; -EINVAL: no such type. */
int hca_transport_get(enum ibv_qp_type type, const struct hca_transport **t);

extern const struct hca_transport hca_ud, hca_rc, hca_uc, hca_xrc_send;
/* Not by hca_transport_get(): xrc.h */
extern const struct hca_transport hca_xrc_recv, hca_xrc_srq;

#endif
