/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MADs between programs and the fabric: see umad_mad.h.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "daemon/umad/umad_agents.h"
#include "daemon/umad/umad_mad.h"
#include "daemon/umad/umad_memory.h"
#include "daemon/umad/umad_program.h"
#include "daemon/umad/umad_request.h"
#include "daemon/umad/umad_rmpp.h"

#define MIN_BYTES 36 /* of what a program sends */

static bool is_smp(const struct wire_mad *head)
{
	return head->mgmt_class == MAD_CLASS_SUBN_LID ||
	       head->mgmt_class == MAD_CLASS_SUBN_DIRECTED;
}

/* ---- from the program ---- */

static bool set_addresses(const struct umad_agent *agent, const struct ib_user_mad *header,
                          struct fabric_mad *mad)
{
	const struct ib_mad_addr *addr = &header->addr;
	const struct fabric_port *at = agent->port->at;
	const struct shm_port *shared = shm_port_at(agent->port->u->d.f->region, at->index);

	mad->dlid = be16toh(addr->lid);
	mad->slid = at->lid | (addr->path_bits & ((1u << at->lmc) - 1));
	mad->src_qpn = agent->as.qpn;
	mad->dest_qpn = be32toh(addr->qpn) & IB_QPN_MASK;
	mad->qkey = agent->as.qpn == IB_QPN_GSI ? IB_QKEY_GSI : 0; /* not addr->qkey */
	mad->pkey_index = addr->pkey_index;
	mad->sl = addr->sl & (IB_SLS - 1); /* what a packet has room for, as by mlx5 */
	mad->has_grh = addr->grh_present;
	if (addr->pkey_index >= SHM_PKEYS)
		return false;
	if (!mad->has_grh)
		return true;
	if (addr->gid_index >= SHM_GIDS)
		return false;
	mad->sgid = shared->gid[addr->gid_index];
	memcpy(mad->dgid.raw, addr->gid, sizeof(mad->dgid.raw));
	return true;
}

/*
 * In a request the high half of the transaction ID becomes the agent's own: requests of
 * different agents differ, and a response finds its agent.
 */
static void set_tid(const struct umad_agent *agent, uint8_t *mad)
{
	uint32_t high = htobe32(agent->tid_high);

	memcpy(mad + MAD_TID_AT, &high, sizeof(high));
}

/* A submission of a program. */
struct submission {
	struct umad_agent *agent;
	const struct ib_user_mad *header;
	struct fabric_mad mad; /* the first one */
	struct wire_mad head;
	bool is_message; /* it is to be sent in segments, whatever else its header says */
};

static bool is_message(const struct umad_agent *agent, const struct fabric_mad *mad)
{
	return agent->reassembles && wire_rmpp_is_active(mad->data) &&
	       !cm_program_wants(agent->port->program, mad);
}

/* The error in a submission, as -errno, or 0. @bytes: of all of it. */
static int check(const struct submission *s, bool is_addressed, size_t bytes)
{
	if (!is_addressed || (bytes > MAD_BYTES && !s->is_message))
		return -EINVAL;
	if (is_smp(&s->head) != (s->agent->as.qpn == IB_QPN_SMI))
		return -EINVAL; /* the kernel drops it at the other end */
	if ((s->is_message || s->header->timeout_ms) &&
	    umad_request_find(s->agent, &s->head, umad_is_response(&s->head)))
		return -EINVAL; /* another one waits for the same response */
	return 0;
}

static void refuse(const struct submission *s, int ret)
{
	umad_program_return(s->agent, s->header, s->mad.data, -ret);
}

/* The library has refused most wrong submissions already. The program gets the others back. False:
 * it is not to be sent. */
static bool look_at(struct submission *s, struct umad_open *port, const struct ib_user_mad *header,
                    const uint8_t *data, size_t bytes)
{
	bool is_addressed;
	int ret;

	*s = (struct submission){ .header = header };
	s->agent = header->agent_id < UMAD_CA_MAX_AGENTS ? port->agent[header->agent_id] : NULL;
	if (!s->agent || bytes < MIN_BYTES)
		return false;
	memcpy(s->mad.data, data, bytes < MAD_BYTES ? bytes : MAD_BYTES);
	wire_mad_decode(s->mad.data, &s->head);
	if (!umad_is_response(&s->head)) {
		set_tid(s->agent, s->mad.data);
		wire_mad_decode(s->mad.data, &s->head);
	}
	is_addressed = set_addresses(s->agent, header, &s->mad);
	s->is_message = is_message(s->agent, &s->mad);
	ret = check(s, is_addressed, bytes);
	if (ret)
		refuse(s, ret);
	return !ret;
}

/* @message: NULL, or it is the request's from now on. */
static void submit_request(const struct submission *s, uint8_t *message, size_t bytes)
{
	struct umad_request *r;
	int ret = umad_request_new(s->agent, s->header, &s->mad, &r);

	if (ret) {
		umad_memory_free(s->agent->port, message, bytes);
		refuse(s, ret);
		return;
	}
	if (!message) {
		umad_request_send(r);
		return;
	}
	ret = umad_rmpp_send(r, message, bytes);
	if (ret) {
		umad_request_free(r);
		refuse(s, ret);
	}
}

void umad_mad_submit(struct umad_open *port, const struct ib_user_mad *header, const uint8_t *data,
                     size_t bytes)
{
	struct submission s;
	uint8_t *message = NULL;

	if (!look_at(&s, port, header, data, bytes))
		return;
	if (s.is_message) {
		message = umad_memory_alloc(port, bytes);
		if (!message) {
			refuse(&s, -ENOMEM);
			return;
		}
		memcpy(message, s.mad.data, MAD_BYTES); /* if it is shorter, with zeros behind it */
		memcpy(message, data, bytes);
	}
	if (message || header->timeout_ms)
		submit_request(&s, message, bytes);
	else
		umad_request_send_mad(port, &s.mad);
}

uint8_t *umad_mad_expect(struct umad_open *port, const struct ib_user_mad *header,
                         const uint8_t first[static MAD_BYTES], size_t bytes)
{
	struct submission s;
	uint8_t *message;

	/* of an agent that leaves no more than the first segments would be sent */
	if (!look_at(&s, port, header, first, bytes) || s.agent->leaving)
		return NULL;
	message = umad_memory_alloc(port, bytes);
	if (!message)
		refuse(&s, -ENOMEM);
	return message;
}

void umad_mad_submit_long(struct umad_open *port, const struct ib_user_mad *header,
                          uint8_t *message, size_t bytes)
{
	struct submission s;

	if (look_at(&s, port, header, message, bytes))
		submit_request(&s, message, bytes);
	else
		umad_memory_free(port, message, bytes);
}

/* ---- from the fabric ---- */

bool umad_mad_deliver(struct daemon_umad *u, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct umad_agent *agent;
	struct wire_mad head;

	wire_mad_decode(mad->data, &head);
	if (head.base_version != MAD_BASE_VERSION ||
	    mad->dest_qpn != (is_smp(&head) ? IB_QPN_SMI : IB_QPN_GSI))
		return false;
	agent = umad_is_response(&head) ? umad_agents_of_response(&u->agents, at, &head)
	                                : umad_agents_of_request(&u->agents, at, &head, mad->data);
	if (!agent || agent->as.qpn != mad->dest_qpn)
		return false;
	if (agent->reassembles && wire_rmpp_is_active(mad->data))
		umad_rmpp_receive(agent, mad);
	else
		umad_request_receive(agent, mad, mad->data, MAD_BYTES);
	daemon_mads_send_soon(u->d.mads);
	return true;
}
