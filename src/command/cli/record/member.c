/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memberships by MADs: see member.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/base/exit.h"
#include "cli/record/member.h"
#include "control/join.h"
#include "control/umad_message.h"
#include "wire/text.h"

#define TIMEOUT_MS 1000 /* of a request, which is sent again */
#define RETRIES    5

#define JOIN_MASK (SA_MCM_MGID | SA_MCM_PORT_GID | SA_MCM_JOIN_STATE)
#define GROUP_MASK                                                                   \
	(SA_MCM_QKEY | SA_MCM_TCLASS | SA_MCM_PKEY | SA_MCM_FLOW_LABEL | SA_MCM_SL | \
	 SA_MCM_MTU_SELECTOR | SA_MCM_MTU | SA_MCM_RATE_SELECTOR | SA_MCM_RATE)

/* A port that is open for MADs: by its number in the port table. */
struct port {
	int fd; /* -1: it is not open */
	uint32_t agent;
};

struct cli_members {
	struct control_client *client;
	struct shm_region region;
	struct port *port;
	uint32_t tid;
};

int cli_members_open(struct cli_members **out, const char *name)
{
	struct cli_members *all = calloc(1, sizeof(*all));
	int ret = all ? 0 : -ENOMEM;

	setenv("UMBEL_FABRIC", name, 1);
	unsetenv("UMBEL_HOST");
	if (!ret)
		ret = control_join(&all->client, CONTROL_ROLE_UMAD, &all->region, NULL);
	if (ret) {
		base_log("cannot have ports of fabric '%s' join groups: %s", name, strerror(-ret));
		free(all);
		return CLI_FAILED;
	}
	all->port = calloc(all->region.control->n_ports, sizeof(*all->port));
	if (!all->port) {
		base_log("%s", strerror(ENOMEM));
		cli_members_close(all);
		return CLI_FAILED;
	}
	for (uint32_t i = 0; i < all->region.control->n_ports; i++)
		all->port[i].fd = -1;
	*out = all;
	return 0;
}

void cli_members_close(struct cli_members *all)
{
	for (uint32_t i = 0; all->port && i < all->region.control->n_ports; i++)
		if (all->port[i].fd >= 0)
			close(all->port[i].fd);
	free(all->port);
	shm_region_unmap(&all->region);
	control_close(all->client);
	free(all);
}

/* Its number in the port table; UINT32_MAX: there is none. */
static uint32_t find(const struct cli_members *all, const char *hca, unsigned port)
{
	for (uint32_t i = 0; i < all->region.control->n_hcas; i++) {
		const struct shm_hca *h = shm_hca_at(&all->region, i);

		if (!strncmp(h->name, hca, sizeof(h->name)))
			return port && port <= h->n_ports ? h->first_port + port - 1 : UINT32_MAX;
	}
	return UINT32_MAX;
}

bool cli_members_know(const struct cli_members *all, const char *hca, unsigned port)
{
	return find(all, hca, port) != UINT32_MAX;
}

/* 0 or -errno. */
static int open_port(struct cli_members *all, uint32_t index)
{
	const struct control_umad_at at = { .index = index };
	struct control_umad_port opened;
	struct control_umad_agent agent;
	struct port *p = &all->port[index];
	struct control_call call =
	        CONTROL_CALL((enum control_type)CONTROL_UMAD_OPEN_PORT, &at, &opened);
	struct control_umad_register as = { .qpn = IB_QPN_GSI,
		                            .mgmt_class = MAD_CLASS_SUBN_ADM,
		                            .mgmt_class_version = MAD_VERSION_SUBN_ADM };
	int ret;

	if (p->fd >= 0)
		return 0;
	call.fd = &p->fd;
	ret = control_call(all->client, &call);
	if (ret)
		return ret;
	as.port = opened.port;
	ret = control_ask(all->client, (enum control_type)CONTROL_UMAD_REGISTER, &as, &agent);
	p->agent = agent.agent;
	if (!ret)
		return 0;
	close(p->fd);
	p->fd = -1;
	return ret;
}

struct message {
	struct ib_user_mad head;
	uint8_t mad[MAD_BYTES];
};

static int send_request(const struct port *p, const struct shm_port *port,
                        const struct wire_sa_mad *mad)
{
	struct message m = { .head = { .agent_id = p->agent,
		                       .timeout_ms = TIMEOUT_MS,
		                       .retries = RETRIES,
		                       .length = sizeof(m),
		                       .addr = { .qpn = htonl(IB_QPN_GSI),
		                                 .qkey = htonl(IB_QKEY_GSI),
		                                 .lid = htons(port->sm_lid),
		                                 .sl = port->sm_sl } } };

	wire_sa_mad_encode(mad, m.mad);
	return send(p->fd, &m, sizeof(m), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* The status of the response, or -errno. The daemon sends one in any case. */
static int receive(const struct port *p, uint32_t tid)
{
	struct wire_sa_mad mad;
	struct message m;
	ssize_t n;

	do {
		n = recv(p->fd, &m, sizeof(m), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		if ((size_t)n < sizeof(m))
			return -EPROTO;
		wire_sa_mad_decode(m.mad, &mad);
	} while (n < 0 || (mad.mad.transaction_id & UINT32_MAX) != tid);
	return m.head.status ? -(int)m.head.status : mad.mad.status;
}

static int request(struct cli_members *all, uint32_t index, struct wire_mcmember *rec, bool joins)
{
	struct wire_sa_mad mad = { .mad = { .base_version = MAD_BASE_VERSION,
		                            .mgmt_class = MAD_CLASS_SUBN_ADM,
		                            .class_version = MAD_VERSION_SUBN_ADM,
		                            .method = joins ? MAD_SET : MAD_DELETE,
		                            .transaction_id = ++all->tid,
		                            .attribute_id = SA_ATTR_MCMEMBER } };
	struct shm_port port;
	int ret = open_port(all, index);

	if (ret)
		return ret;
	shm_port_read(&all->region, index, &port);
	rec->port_gid = port.gid[0];
	rec->mtu_selector = rec->rate_selector = SA_EXACTLY;
	mad.component_mask = JOIN_MASK;
	/* a state that cannot make a group is asked for in one that is there */
	if (joins && (rec->join_state & (IB_JOIN_FULL | IB_JOIN_SEND_ONLY_FULL)))
		mad.component_mask |= GROUP_MASK;
	wire_mcmember_encode(rec, mad.data);
	ret = send_request(&all->port[index], &port, &mad);
	return ret ? ret : receive(&all->port[index], all->tid);
}

static int change(struct cli_members *all, const char *hca, unsigned port,
                  struct wire_mcmember *rec, bool joins)
{
	const uint32_t index = find(all, hca, port);
	int ret = index == UINT32_MAX ? -ENODEV : request(all, index, rec, joins);

	if (!ret)
		return 0;
	if (ret < 0)
		base_log("%s:%u cannot %s %s: %s", hca, port, joins ? "join" : "leave",
		         wire_gid_text(&rec->mgid), strerror(-ret));
	else
		base_log("%s:%u cannot %s %s: the subnet administrator refuses, status 0x%04x", hca,
		         port, joins ? "join" : "leave", wire_gid_text(&rec->mgid), (unsigned)ret);
	return CLI_FAILED;
}

int cli_members_join(struct cli_members *all, const char *hca, unsigned port,
                     struct wire_mcmember *rec)
{
	return change(all, hca, port, rec, true);
}

int cli_members_leave(struct cli_members *all, const char *hca, unsigned port,
                      struct wire_mcmember *rec)
{
	return change(all, hca, port, rec, false);
}
