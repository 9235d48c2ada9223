/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asking for service levels: see levels.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/check/levels.h"
#include "control/join.h"
#include "control/umad_message.h"
#include "wire/rmpp.h"
#include "wire/sa_records.h"

#define FIRST_MS    2000 /* of the first request, which is sent again: does anybody respond? */
#define TIMEOUT_MS  5000 /* of the others */
#define RETRIES     2
#define PATIENCE_MS (TIMEOUT_MS * (RETRIES + 2)) /* for the daemon, which tells of both */
#define AT_ONCE     4
#define LEAST_BYTES (sizeof(struct ib_user_mad) + wire_mad_bytes) /* of a message */
#define GROUPS      UINT32_MAX /* in the place of a host: the groups are asked for */

struct ask {
	struct cli_subnet *s;
	struct control_client *client;
	struct shm_region region;
	int fd;
	uint32_t agent;
	struct shm_port port;           /* that asks */
	uint32_t host[AT_ONCE];         /* that is asked about, by transaction ID modulo AT_ONCE */
	uint32_t tid[AT_ONCE];          /* 0: free */
	uint32_t last_tid, n_out, next; /* host */
	unsigned n_lids;                /* the highest LID and one */
	uint8_t room[sizeof(struct ib_user_mad) + CONTROL_UMAD_DATAGRAM]; /* for a message */
};

/* ---- the port that asks ---- */

/* An active port that knows a subnet administrator: its number in the port table. 0 or -ENXIO. */
static int find_port(struct ask *a, uint32_t *index)
{
	for (uint32_t i = 0; i < a->region.control->n_ports; i++) {
		shm_port_read(&a->region, i, &a->port);
		if (a->port.link_layer != IBV_LINK_LAYER_ETHERNET && a->port.sm_lid &&
		    a->port.state == IB_PORT_ACTIVE) {
			*index = i;
			return 0;
		}
	}
	return -ENXIO;
}

static int open_port(struct ask *a)
{
	struct control_umad_at at;
	struct control_umad_port opened = { 0 };
	struct control_umad_agent agent = { 0 };
	struct control_umad_register as = { .qpn = IB_QPN_GSI,
		                            .mgmt_class = MAD_CLASS_SUBN_ADM,
		                            .mgmt_class_version = MAD_VERSION_SUBN_ADM,
		                            .rmpp_version = RMPP_VERSION };
	struct control_call call =
	        CONTROL_CALL((enum control_type)CONTROL_UMAD_OPEN_PORT, &at, &opened);
	int ret = find_port(a, &at.index);

	call.fd = &a->fd;
	if (!ret)
		ret = control_call(a->client, &call);
	if (ret)
		return ret;
	as.port = opened.port;
	ret = control_ask(a->client, (enum control_type)CONTROL_UMAD_REGISTER, &as, &agent);
	a->agent = agent.agent;
	return ret;
}

/* ---- requests ---- */

static int send_table(struct ask *a, uint32_t host)
{
	struct {
		struct ib_user_mad head;
		uint8_t mad[MAD_BYTES];
	} m = { .head = { .agent_id = a->agent,
		          .timeout_ms = a->last_tid ? TIMEOUT_MS : FIRST_MS,
		          .retries = RETRIES,
		          .length = sizeof(m),
		          .addr = { .qpn = htonl(IB_QPN_GSI),
		                    .qkey = htonl(IB_QKEY_GSI),
		                    .lid = htons(a->port.sm_lid),
		                    .sl = a->port.sm_sl } } };
	struct wire_sa_mad mad = { .mad = { .base_version = MAD_BASE_VERSION,
		                            .mgmt_class = MAD_CLASS_SUBN_ADM,
		                            .class_version = MAD_VERSION_SUBN_ADM,
		                            .method = MAD_GET_TABLE,
		                            .attribute_id = SA_ATTR_MCMEMBER } };
	unsigned slot = ++a->last_tid % AT_ONCE;

	while (a->tid[slot])
		slot = ++a->last_tid % AT_ONCE;
	if (host != GROUPS) {
		const struct wire_path_record want = { .slid = a->s->net.host[host].lid };

		mad.mad.attribute_id = SA_ATTR_PATH;
		mad.component_mask = SA_PR(slid);
		wire_path_record_encode(&want, mad.data);
	}
	mad.mad.transaction_id = a->last_tid;
	wire_sa_mad_encode(&mad, m.mad);
	if (send(a->fd, &m, sizeof(m), MSG_NOSIGNAL) < 0)
		return -errno;
	a->host[slot] = host;
	a->tid[slot] = a->last_tid;
	a->n_out++;
	return 0;
}

/* As many as may be under way. */
static int send_more(struct ask *a)
{
	int ret = 0;

	while (a->n_out < AT_ONCE && a->next < a->s->net.n_hosts && !ret) {
		const struct check_host *h = &a->s->net.host[a->next++];

		if (h->lid && h->at != CHECK_NONE)
			ret = send_table(a, (uint32_t)(h - a->s->net.host));
	}
	return ret;
}

/* ---- responses ---- */

/* Calls @take for each record of the @bytes of a response. */
static int each_record(struct ask *a, const uint8_t *mad, size_t bytes, size_t least,
                       int (*take)(struct ask *a, const uint8_t *record, void *arg), void *arg)
{
	struct wire_sa_mad head;
	int ret = 0;

	if (bytes < SA_DATA_AT)
		return 0;
	wire_sa_mad_decode(mad, &head);
	if (head.attribute_offset * 8u < least)
		return 0; /* no records */
	for (size_t at = SA_DATA_AT; at + least <= bytes && !ret; at += head.attribute_offset * 8u)
		ret = take(a, mad + at, arg);
	return ret;
}

static int take_path(struct ask *a, const uint8_t *record, void *arg)
{
	struct wire_path_record r;
	uint8_t *sl = arg;

	wire_path_record_decode(record, &r);
	if (r.dlid < a->n_lids)
		sl[r.dlid] = (uint8_t)(r.sl % CHECK_SLS);
	return 0;
}

static int take_paths(struct ask *a, uint32_t host, const uint8_t *mad, size_t bytes)
{
	uint8_t *sl = malloc(a->n_lids);

	if (!sl)
		return -ENOMEM;
	memset(sl, CHECK_ANY_SL, a->n_lids);
	each_record(a, mad, bytes, wire_path_record_bytes, take_path, sl);
	check_give_levels(&a->s->net, host, sl, a->n_lids);
	return 0;
}

/* A group whose members nobody knows, if there is a tree. */
static int take_group(struct ask *a, const uint8_t *record, void *arg)
{
	struct wire_mcmember r;
	struct check_group *g;

	(void)arg;
	wire_mcmember_decode(record, &r);
	if (!check_tree_of(&a->s->net, r.mlid))
		return 0;
	g = check_add_group(&a->s->net);
	if (!g)
		return -ENOMEM;
	g->mlid = r.mlid;
	g->sl = r.sl;
	g->is_open = true;
	return 0;
}

/* A response, or what the daemon says in its place. */
static int take(struct ask *a, const struct ib_user_mad *head, const uint8_t *mad, size_t bytes)
{
	struct wire_mad m;
	unsigned slot;

	wire_mad_decode(mad, &m);
	slot = m.transaction_id % AT_ONCE;
	if (!a->tid[slot] || a->tid[slot] != (uint32_t)m.transaction_id)
		return 0;
	a->tid[slot] = 0;
	a->n_out--;
	if (head->status)
		return -(int)head->status;
	if (m.status && m.status != SA_NO_RECORDS)
		return -EPROTO;
	if (m.status)
		return 0;
	if (a->host[slot] == GROUPS)
		return each_record(a, mad, bytes, wire_mcmember_bytes, take_group, NULL);
	return take_paths(a, a->host[slot], mad, bytes);
}

/* The bytes behind the header of a long message, which are in @memfd. From malloc(). */
static uint8_t *read_beside(int memfd, size_t bytes)
{
	uint8_t *to = malloc(bytes + MAD_BYTES);
	ssize_t n = to ? pread(memfd, to, bytes, 0) : -1;

	if (n >= 0 && (size_t)n == bytes)
		return to;
	free(to);
	return NULL;
}

/* The message, and what came beside it. */
static int receive_now(struct ask *a)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { a->room, sizeof(a->room) };
	struct msghdr msg = { .msg_iov = &iov,
		              .msg_iovlen = 1,
		              .msg_control = &control,
		              .msg_controllen = sizeof(control.space) };
	ssize_t n = recvmsg(a->fd, &msg, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	struct ib_user_mad head;
	uint8_t *beside;
	int memfd, ret;

	if (n < (ssize_t)LEAST_BYTES)
		return n < 0 ? -errno : -EIO;
	memcpy(&head, a->room, sizeof(head));
	if (!c)
		return take(a, &head, a->room + sizeof(head), (size_t)n - sizeof(head));
	memcpy(&memfd, CMSG_DATA(c), sizeof(memfd));
	beside = read_beside(memfd, head.length - sizeof(head));
	close(memfd);
	ret = beside ? take(a, &head, beside, head.length - sizeof(head)) : -ENOMEM;
	free(beside);
	return ret;
}

/* Waits for the next message and takes it. */
static int receive(struct ask *a)
{
	struct pollfd p = { .fd = a->fd, .events = POLLIN };
	int ret = poll(&p, 1, PATIENCE_MS);

	if (ret < 0)
		return errno == EINTR ? 0 : -errno;
	return ret ? receive_now(a) : -ETIMEDOUT;
}

/* ---- all ---- */

static void find_lids(struct ask *a)
{
	const struct check_net *net = &a->s->net;

	for (uint32_t i = 0; i < net->n_hosts; i++)
		if (net->host[i].lid && net->host[i].lid + net->host[i].n_lids > a->n_lids)
			a->n_lids = net->host[i].lid + net->host[i].n_lids;
	for (uint32_t i = 0; i < net->n; i++)
		if (net->sw[i].lid >= a->n_lids)
			a->n_lids = net->sw[i].lid + 1u;
	a->n_lids = a->n_lids ? a->n_lids : 1;
}

/* Takes what is under way, and sends @more until there is none. */
static int go_on(struct ask *a, bool more)
{
	int ret = more ? send_more(a) : 0;

	while (!ret && a->n_out) {
		ret = receive(a);
		if (!ret && more)
			ret = send_more(a);
	}
	return ret;
}

static int ask_all(struct ask *a)
{
	int ret = open_port(a);

	find_lids(a);
	if (!ret)
		ret = send_table(a, GROUPS);
	if (!ret)
		ret = go_on(a, false);
	if (!ret)
		ret = go_on(a, true);
	if (a->fd >= 0)
		close(a->fd);
	check_net_find_levels(&a->s->net);
	return ret;
}

int cli_levels_ask(struct cli_subnet *s, const char *fabric)
{
	struct ask a = { .s = s, .fd = -1 };
	int ret;

	setenv("UMBEL_FABRIC", fabric, 1);
	unsetenv("UMBEL_HOST");
	ret = control_join(&a.client, CONTROL_ROLE_UMAD, &a.region, NULL);
	if (ret)
		return ret;
	ret = ask_all(&a);
	shm_region_unmap(&a.region);
	control_close(a.client);
	return ret;
}
