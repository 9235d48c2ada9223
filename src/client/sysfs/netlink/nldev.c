/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RDMA netlink: see nldev.h. A new request is a row in the table and a function.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rdma/rdma_netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "shm/capabilities.h"
#include "sysfs/netlink/nldev.h"
#include "sysfs/session.h"
#include "sysfs/tree.h"

/* A request that is being answered. */
struct question {
	const struct sysfs_session *s;
	const struct nlmsghdr *request;
	struct netlink_answer *answer;
	uint32_t hca; /* it is about, and then */
	const struct kind *kind;
	uint32_t number; /* of the one object */
	bool found;      /* there was one */
	bool may_see_keys;
	struct use *uses; /* what uses objects of the kind, in their order */
	size_t n_uses;
};

struct use {
	uint32_t used, user; /* numbers */
};

/* ---- messages */

static size_t begin(const struct question *q)
{
	return netlink_begin(q->answer, q->request, q->request->nlmsg_type,
	                     q->request->nlmsg_flags & NLM_F_DUMP ? NLM_F_MULTI : 0);
}

/* Which device it is about: each message begins so. */
static size_t begin_device(const struct question *q, uint32_t hca)
{
	const size_t at = begin(q);

	netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_DEV_INDEX, hca);
	netlink_put_text(q->answer, RDMA_NLDEV_ATTR_DEV_NAME, sysfs_session_hca(q->s, hca),
	                 SYSFS_NAME_ROOM);
	return at;
}

static bool is_ethernet(const struct question *q, uint32_t port)
{
	return shm_port_at(&q->s->region, port)->link_layer == IBV_LINK_LAYER_ETHERNET;
}

/* ---- devices */

static void put_device(const struct question *q, uint32_t hca)
{
	const struct shm_hca *h = shm_hca_at(&q->s->region, hca);
	const size_t at = begin_device(q, hca);

	netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_PORT_INDEX, h->n_ports);
	netlink_put_u64(q->answer, RDMA_NLDEV_ATTR_CAP_FLAGS, SHM_DEVICE_CAP_FLAGS_EX);
	netlink_put_text(q->answer, RDMA_NLDEV_ATTR_FW_VERSION, h->fw_ver, sizeof(h->fw_ver));
	netlink_put_u64(q->answer, RDMA_NLDEV_ATTR_NODE_GUID, h->node_guid);
	netlink_put_u64(q->answer, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, h->system_guid);
	netlink_put_u8(q->answer, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, RDMA_NODE_IB_CA);
	netlink_put_text(q->answer, RDMA_NLDEV_ATTR_DEV_PROTOCOL,
	                 is_ethernet(q, h->first_port) ? "roce" : "ib", SYSFS_NAME_ROOM);
	netlink_end(q->answer, at);
}

static int one_device(struct question *q)
{
	put_device(q, q->hca);
	return 0;
}

static int each_device(struct question *q)
{
	for (uint32_t i = 0; i < q->s->region.control->n_hcas; i++)
		if (sysfs_session_sees(q->s, i))
			put_device(q, i);
	return 0;
}

/* ---- ports */

/* Of the machine's network device; none, if it is in another network namespace. */
static void put_netdev(const struct question *q, uint32_t ifindex)
{
	char name[IF_NAMESIZE];
	int error = errno;

	if (ifindex && if_indextoname(ifindex, name)) {
		netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_NDEV_INDEX, ifindex);
		netlink_put_text(q->answer, RDMA_NLDEV_ATTR_NDEV_NAME, name, sizeof(name));
	}
	errno = error;
}

static void put_subnet(const struct question *q, const struct shm_port *p)
{
	uint64_t prefix;

	memcpy(&prefix, p->gid[0].raw, sizeof(prefix));
	netlink_put_u64(q->answer, RDMA_NLDEV_ATTR_SUBNET_PREFIX, be64toh(prefix));
	netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_LID, p->lid);
	netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_SM_LID, p->sm_lid);
	netlink_put_u8(q->answer, RDMA_NLDEV_ATTR_LMC, p->lmc);
}

static void put_port(const struct question *q, uint32_t port)
{
	const size_t at = begin_device(q, q->hca);
	struct shm_port p;

	sysfs_session_read_port(q->s, port, &p);
	netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_PORT_INDEX, p.port_num);
	netlink_put_u64(q->answer, RDMA_NLDEV_ATTR_CAP_FLAGS, p.cap_flags);
	if (!is_ethernet(q, port))
		put_subnet(q, &p);
	netlink_put_u8(q->answer, RDMA_NLDEV_ATTR_PORT_STATE, p.state);
	netlink_put_u8(q->answer, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, p.phys_state);
	put_netdev(q, p.ifindex);
	netlink_end(q->answer, at);
}

/* The port that the request names. 0, or -EINVAL: there is none such. */
static int port_of(const struct question *q, uint32_t *port)
{
	const struct shm_hca *h = shm_hca_at(&q->s->region, q->hca);
	uint32_t n;

	if (!netlink_get_u32(q->request, RDMA_NLDEV_ATTR_PORT_INDEX, &n) || !n || n > h->n_ports)
		return -EINVAL;
	*port = h->first_port + n - 1;
	return 0;
}

static int one_port(struct question *q)
{
	uint32_t port;
	int ret = port_of(q, &port);

	if (!ret)
		put_port(q, port);
	return ret;
}

static int each_port(struct question *q)
{
	const struct shm_hca *h = shm_hca_at(&q->s->region, q->hca);

	for (uint32_t i = 0; i < h->n_ports; i++)
		put_port(q, h->first_port + i);
	return 0;
}

/* ---- the system */

/* HCAs are seen in all network namespaces, and memory is never pinned: rdma-system(8). */
static int the_system(struct question *q)
{
	const size_t at = begin(q);

	netlink_put_u8(q->answer, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1);
	netlink_put_u8(q->answer, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
	netlink_end(q->answer, at);
	return 0;
}

/* ---- counters */

static int put_counter(void *question, const char *name, const struct sysfs_node *counter)
{
	const struct question *q = question;
	char text[SYSFS_TEXT_ROOM];
	size_t entry;

	if (sysfs_text(counter, text) < 0)
		return 0;
	entry = netlink_nest(q->answer, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
	netlink_put_text(q->answer, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name,
	                 SYSFS_NAME_ROOM);
	netlink_put_u64(q->answer, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE,
	                strtoull(text, NULL, 10));
	netlink_end_nest(q->answer, entry);
	return 0;
}

/* Those of a port. Counters of queue pairs or memory regions, which STAT_RES asks for, are not
 * kept: nothing is listed. */
static int port_counters(struct question *q)
{
	uint32_t resource, port;
	size_t at, table;
	int ret;

	if (netlink_get_u32(q->request, RDMA_NLDEV_ATTR_STAT_RES, &resource))
		return q->request->nlmsg_flags & NLM_F_DUMP ? 0 : -EOPNOTSUPP;
	ret = port_of(q, &port);
	if (ret)
		return ret;
	at = begin_device(q, q->hca);
	netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_PORT_INDEX,
	                shm_port_at(&q->s->region, port)->port_num);
	table = netlink_nest(q->answer, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	sysfs_list_counters(port, put_counter, q);
	netlink_end_nest(q->answer, table);
	netlink_end(q->answer, at);
	return 0;
}

/* ---- objects */

struct kind {
	const char *name;              /* in the summary */
	uint16_t table, entry, number; /* attributes */
	bool has_port;
	void (*put)(const struct question *q, const struct control_object *o);
};

static void put_pd_of(const struct question *q, const struct control_object *o)
{
	if (o->pd)
		netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_RES_PDN, o->pd - 1);
}

static void put_qp(const struct question *q, const struct control_object *o)
{
	const bool connected = o->type == IBV_QPT_RC || o->type == IBV_QPT_UC;

	if (connected) {
		netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_RES_RQPN, o->qp.peer);
		netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_RES_RQ_PSN, o->qp.expected_psn);
	}
	netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_RES_SQ_PSN, o->qp.next_psn);
	if (connected || o->type == IBV_QPT_XRC_SEND || o->type == IBV_QPT_XRC_RECV)
		netlink_put_u8(q->answer, RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE, IBV_MIG_MIGRATED);
	netlink_put_u8(q->answer, RDMA_NLDEV_ATTR_RES_TYPE, o->type);
	netlink_put_u8(q->answer, RDMA_NLDEV_ATTR_RES_STATE, o->state);
	put_pd_of(q, o);
}

static void put_cq(const struct question *q, const struct control_object *o)
{
	netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_RES_CQE, o->cq.size);
	netlink_put_u64(q->answer, RDMA_NLDEV_ATTR_RES_USECNT, o->cq.users);
	netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_RES_CTXN, o->context);
}

/* The kernel shows keys only to processes that may configure networks. */
static void put_mr(const struct question *q, const struct control_object *o)
{
	if (q->may_see_keys) {
		netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_RES_RKEY, o->mr.key);
		netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_RES_LKEY, o->mr.key);
	}
	netlink_put_u64(q->answer, RDMA_NLDEV_ATTR_RES_MRLEN, o->mr.length);
	put_pd_of(q, o);
}

static void put_context(const struct question *q, const struct control_object *o)
{
	(void)q;
	(void)o; /* it has a number and a process */
}

/* Attributes are as long as the kernel has them: struct sockaddr_storage. */
static void put_address(const struct question *q, uint16_t type,
                        const struct control_object_address *a)
{
	union {
		struct sockaddr_storage storage;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} out = { .storage.ss_family = a->family };

	if (a->family == AF_INET) {
		out.in.sin_port = a->port;
		memcpy(&out.in.sin_addr, a->addr, sizeof(out.in.sin_addr));
	} else if (a->family == AF_INET6) {
		out.in6.sin6_port = a->port;
		memcpy(&out.in6.sin6_addr, a->addr, sizeof(out.in6.sin6_addr));
	} else {
		return;
	}
	netlink_put(q->answer, type, &out.storage, sizeof(out.storage));
}

static void put_cm_id(const struct question *q, const struct control_object *o)
{
	if (o->cm_id.qpn) {
		netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_RES_LQPN, o->cm_id.qpn);
		netlink_put_u8(q->answer, RDMA_NLDEV_ATTR_RES_TYPE, o->type);
	}
	netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_RES_PS, o->cm_id.space);
	netlink_put_u8(q->answer, RDMA_NLDEV_ATTR_RES_STATE, o->state);
	put_address(q, RDMA_NLDEV_ATTR_RES_SRC_ADDR, &o->cm_id.src);
	put_address(q, RDMA_NLDEV_ATTR_RES_DST_ADDR, &o->cm_id.dst);
}

/* ---- objects that others use */

static int by_used(const void *a, const void *b)
{
	const struct use *one = a, *other = b;

	if (one->used != other->used)
		return one->used < other->used ? -1 : 1;
	return one->user < other->user ? -1 : one->user > other->user;
}

static void keep_use(struct question *q, uint32_t used, uint32_t user)
{
	struct use *all;

	if (!(q->n_uses & (q->n_uses - 1))) { /* it is full */
		all = realloc(q->uses, (q->n_uses ? q->n_uses * 2 : 1) * sizeof(*all));
		if (!all) {
			q->answer->failed = true;
			return;
		}
		q->uses = all;
	}
	q->uses[q->n_uses++] = (struct use){ .used = used, .user = user };
}

/* Where the first use of what has that number is; behind it are its others. */
static size_t first_use(const struct question *q, uint32_t used)
{
	size_t from = 0, to = q->n_uses;

	while (from < to) {
		size_t middle = (from + to) / 2;

		if (q->uses[middle].used < used)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool is_use(const struct question *q, size_t at, uint32_t used)
{
	return at < q->n_uses && q->uses[at].used == used;
}

static void keep_receiver(void *question, const struct control_object *o)
{
	if (o->qp.srq)
		keep_use(question, o->qp.srq - 1, o->number);
}

/* More ranges than that make a message that no program has room for. */
#define RANGES 64

/* Queue pairs whose numbers follow each other are one entry. */
static void put_srq(const struct question *q, const struct control_object *o)
{
	const struct use *u = q->uses;
	size_t i = first_use(q, o->number), first, table, entry;

	netlink_put_u8(q->answer, RDMA_NLDEV_ATTR_RES_TYPE, IBV_SRQT_BASIC);
	put_pd_of(q, o);
	table = netlink_nest(q->answer, RDMA_NLDEV_ATTR_RES_QP);
	for (unsigned n = 0; n < RANGES && is_use(q, i, o->number); n++) {
		for (first = i++; is_use(q, i, o->number) && u[i].user == u[i - 1].user + 1;)
			i++;
		entry = netlink_nest(q->answer, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
		if (i - first == 1) {
			netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_RES_LQPN, u[first].user);
		} else {
			netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_MIN_RANGE, u[first].user);
			netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_MAX_RANGE, u[i - 1].user);
		}
		netlink_end_nest(q->answer, entry);
	}
	netlink_end_nest(q->answer, table);
}

static void keep_in_pd(void *question, const struct control_object *o)
{
	if (o->pd)
		keep_use(question, o->pd - 1, o->number);
}

static void put_pd(const struct question *q, const struct control_object *o)
{
	const size_t first = first_use(q, o->number);
	size_t users = 0;

	while (is_use(q, first + users, o->number))
		users++;
	netlink_put_u64(q->answer, RDMA_NLDEV_ATTR_RES_USECNT, users);
	netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_RES_CTXN, o->context);
}

/* ---- objects in messages: by kind, in the order of the kernel's summary */

static const struct kind kinds[CONTROL_OBJECT_KINDS] = {
	[CONTROL_PDS] = { "pd", RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY,
	                  RDMA_NLDEV_ATTR_RES_PDN, false, put_pd },
	[CONTROL_CQS] = { "cq", RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY,
	                  RDMA_NLDEV_ATTR_RES_CQN, false, put_cq },
	[CONTROL_QPS] = { "qp", RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY,
	                  RDMA_NLDEV_ATTR_RES_LQPN, true, put_qp },
	[CONTROL_CM_IDS] = { "cm_id", RDMA_NLDEV_ATTR_RES_CM_ID, RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY,
	                     RDMA_NLDEV_ATTR_RES_CM_IDN, true, put_cm_id },
	[CONTROL_MRS] = { "mr", RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY,
	                  RDMA_NLDEV_ATTR_RES_MRN, false, put_mr },
	[CONTROL_CONTEXTS] = { "ctx", RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTX_ENTRY,
	                       RDMA_NLDEV_ATTR_RES_CTXN, false, put_context },
	[CONTROL_SRQS] = { "srq", RDMA_NLDEV_ATTR_RES_SRQ, RDMA_NLDEV_ATTR_RES_SRQ_ENTRY,
	                   RDMA_NLDEV_ATTR_RES_SRQN, false, put_srq },
};

static void put_attributes(const struct question *q, const struct control_object *o)
{
	if (o->port_num)
		netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_PORT_INDEX, o->port_num);
	netlink_put_u32(q->answer, q->kind->number, o->number);
	q->kind->put(q, o);
	if (o->pid)
		netlink_put_u32(q->answer, RDMA_NLDEV_ATTR_RES_PID, o->pid);
}

/* In a list, each is a table with one row, so that no message is longer than a datagram. */
static void put_row(void *question, const struct control_object *o)
{
	const struct question *q = question;
	size_t at, table, entry;
	uint32_t port;

	if (q->kind->has_port && netlink_get_u32(q->request, RDMA_NLDEV_ATTR_PORT_INDEX, &port) &&
	    port != o->port_num)
		return;
	at = begin_device(q, q->hca);
	table = netlink_nest(q->answer, q->kind->table);
	entry = netlink_nest(q->answer, q->kind->entry);
	put_attributes(q, o);
	netlink_end_nest(q->answer, entry);
	netlink_end_nest(q->answer, table);
	netlink_end(q->answer, at);
}

static void put_if_asked(void *question, const struct control_object *o)
{
	struct question *q = question;
	size_t at;

	if (o->number != q->number || q->found)
		return;
	q->found = true;
	at = begin_device(q, q->hca);
	put_attributes(q, o);
	netlink_end(q->answer, at);
}

static int objects(struct question *q, enum control_object_kind kind)
{
	int ret;

	q->kind = &kinds[kind];
	if (q->n_uses)
		qsort(q->uses, q->n_uses, sizeof(*q->uses), by_used);
	if (q->request->nlmsg_flags & NLM_F_DUMP)
		return sysfs_session_objects(q->hca, kind, put_row, q);
	if (!netlink_get_u32(q->request, q->kind->number, &q->number))
		return -EINVAL;
	ret = sysfs_session_objects(q->hca, kind, put_if_asked, q);
	return ret || q->found ? ret : -ENOENT;
}

static int qps(struct question *q)
{
	return objects(q, CONTROL_QPS);
}

static int cqs(struct question *q)
{
	return objects(q, CONTROL_CQS);
}

static int cm_ids(struct question *q)
{
	return objects(q, CONTROL_CM_IDS);
}

static int mrs(struct question *q)
{
	struct __user_cap_header_struct who = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	q->may_see_keys =
	        !syscall(SYS_capget, &who, caps) && caps[0].effective & 1u << CAP_NET_ADMIN;
	return objects(q, CONTROL_MRS);
}

static int contexts(struct question *q)
{
	return objects(q, CONTROL_CONTEXTS);
}

static int srqs(struct question *q)
{
	int ret = sysfs_session_objects(q->hca, CONTROL_QPS, keep_receiver, q);

	return ret ? ret : objects(q, CONTROL_SRQS);
}

/* The objects in domains are those that have a domain. */
static int pds(struct question *q)
{
	static const enum control_object_kind in_pds[] = { CONTROL_QPS, CONTROL_SRQS, CONTROL_MRS };

	for (size_t i = 0; i < ARRAY_SIZE(in_pds); i++) {
		int ret = sysfs_session_objects(q->hca, in_pds[i], keep_in_pd, q);

		if (ret)
			return ret;
	}
	return objects(q, CONTROL_PDS);
}

static void count(void *n, const struct control_object *o)
{
	(void)o;
	++*(uint64_t *)n;
}

static int summary(struct question *q)
{
	const size_t at = begin_device(q, q->hca);
	const size_t table = netlink_nest(q->answer, RDMA_NLDEV_ATTR_RES_SUMMARY);

	for (unsigned kind = 0; kind < CONTROL_OBJECT_KINDS; kind++) {
		uint64_t n = 0;
		int ret = sysfs_session_objects(q->hca, kind, count, &n);
		size_t entry;

		if (ret)
			return ret;
		entry = netlink_nest(q->answer, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
		netlink_put_text(q->answer, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME,
		                 kinds[kind].name, SYSFS_NAME_ROOM);
		netlink_put_u64(q->answer, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, n);
		netlink_end_nest(q->answer, entry);
	}
	netlink_end_nest(q->answer, table);
	netlink_end(q->answer, at);
	return 0;
}

/* ---- requests */

/* @one: without NLM_F_DUMP, @each: with it. NULL: it is refused. */
static const struct row {
	int (*one)(struct question *q);
	int (*each)(struct question *q);
	bool of_device;      /* @one: the request names one */
	bool each_of_device; /* likewise @each */
} rows[RDMA_NLDEV_NUM_OPS] = {
	[RDMA_NLDEV_CMD_GET] = { one_device, each_device, .of_device = true },
	[RDMA_NLDEV_CMD_PORT_GET] = { one_port, each_port, true, true },
	[RDMA_NLDEV_CMD_SYS_GET] = { the_system, the_system },
	[RDMA_NLDEV_CMD_RES_GET] = { summary, NULL, .of_device = true },
	[RDMA_NLDEV_CMD_RES_QP_GET] = { qps, qps, true, true },
	[RDMA_NLDEV_CMD_RES_CQ_GET] = { cqs, cqs, true, true },
	[RDMA_NLDEV_CMD_RES_CM_ID_GET] = { cm_ids, cm_ids, true, true },
	[RDMA_NLDEV_CMD_RES_MR_GET] = { mrs, mrs, true, true },
	[RDMA_NLDEV_CMD_RES_PD_GET] = { pds, pds, true, true },
	[RDMA_NLDEV_CMD_RES_CTX_GET] = { contexts, contexts, true, true },
	[RDMA_NLDEV_CMD_RES_SRQ_GET] = { srqs, srqs, true, true },
	[RDMA_NLDEV_CMD_STAT_GET] = { port_counters, port_counters, true, true },
};

static int serve(struct question *q)
{
	const uint16_t type = q->request->nlmsg_type, op = RDMA_NL_GET_OP(type);
	const bool lists = q->request->nlmsg_flags & NLM_F_DUMP;
	const struct row *row = op < ARRAY_SIZE(rows) ? &rows[op] : NULL;

	if (RDMA_NL_GET_CLIENT(type) != RDMA_NL_NLDEV || !row)
		return -EINVAL;
	if (!(lists ? row->each : row->one))
		return -EOPNOTSUPP;
	q->s = sysfs_session();
	if (!q->s)
		return -ENODEV;
	if ((lists ? row->each_of_device : row->of_device) &&
	    (!netlink_get_u32(q->request, RDMA_NLDEV_ATTR_DEV_INDEX, &q->hca) ||
	     q->hca >= q->s->region.control->n_hcas || !sysfs_session_sees(q->s, q->hca)))
		return -EINVAL;
	return lists ? row->each(q) : row->one(q);
}

static void answer_one(const struct nlmsghdr *request, struct netlink_answer *a)
{
	const size_t before = a->bytes;
	struct question q = { .request = request, .answer = a };
	const int ret = serve(&q);

	free(q.uses);
	if (ret)
		a->bytes = before; /* what was written is not whole */
	if (ret || (request->nlmsg_flags & (NLM_F_ACK | NLM_F_DUMP)) == NLM_F_ACK)
		netlink_put_status(a, request, ret);
	else if (request->nlmsg_flags & NLM_F_DUMP)
		netlink_put_done(a, request);
}

void sysfs_nldev_answer(const void *data, size_t bytes, uint32_t port, struct netlink_answer *a)
{
	const unsigned char *at = data;
	struct nlmsghdr *m;

	for (uint32_t length; bytes >= sizeof(*m); at += length, bytes -= length) {
		memcpy(&length, at, sizeof(length));
		m = length >= sizeof(*m) && length <= bytes ? malloc(length) : NULL;
		if (!m)
			return;
		memcpy(m, at, length); /* where it may be, it is not aligned */
		m->nlmsg_pid = port;
		if (m->nlmsg_flags & NLM_F_REQUEST && m->nlmsg_type >= NLMSG_MIN_TYPE)
			answer_one(m, a);
		free(m);
		length = NLMSG_ALIGN(length) < bytes ? NLMSG_ALIGN(length) : (uint32_t)bytes;
	}
}
