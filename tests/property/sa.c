/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests to the subnet administrator by libibumad: see sa.h.
 */
#include "must.h"

#include <infiniband/umad.h>
#include <infiniband/umad_sa_mcm.h>
#include <infiniband/umad_types.h>

#include "sa.h"

#define TIMEOUT_MS 500
#define RETRIES    3
#define WAIT_MS    60000 /* for a response of many segments, after the first */
#define LIST_BYTES 65536
#define QKEY       0x01234567 /* of groups, as librdmacm has it */
#define SM_KEY     1          /* a request with it sees all */
#define JOIN_MASK                                                      \
	(UMAD_SA_MCM_COMP_MASK_MGID | UMAD_SA_MCM_COMP_MASK_PORT_GID | \
	 UMAD_SA_MCM_COMP_MASK_JOIN_STATE)
#define CREATE_MASK                                                              \
	(JOIN_MASK | UMAD_SA_MCM_COMP_MASK_QKEY | UMAD_SA_MCM_COMP_MASK_TCLASS | \
	 UMAD_SA_MCM_COMP_MASK_PKEY | UMAD_SA_MCM_COMP_MASK_SL | UMAD_SA_MCM_COMP_MASK_FLOW_LABEL)

struct packet {
	struct ib_user_mad umad;
	struct umad_sa_packet sa;
};

/* A response of many records. */
struct table {
	union {
		uint8_t bytes[sizeof(struct ib_user_mad) + LIST_BYTES];
		struct packet packet;
	};
	size_t step; /* from one to the next */
	int n;
};

void sa_open(struct sa_port *p, const char *ca, int num)
{
	umad_port_t port;

	snprintf(p->ca, sizeof(p->ca), "%s", ca);
	p->num = num;
	p->fd = umad_open_port(ca, num);
	p->agent = p->fd < 0 ? p->fd
	                     : umad_register(p->fd, UMAD_CLASS_SUBN_ADM, UMAD_SA_CLASS_VERSION,
	                                     UMAD_RMPP_VERSION, NULL);
	must(p->agent >= 0 && !umad_get_port(ca, num, &port),
	     "libibumad does not open port %d of %s", num, ca);
	p->qkey = QKEY;
	p->retries = RETRIES;
	memcpy(p->gid, &port.gid_prefix, 8);
	memcpy(p->gid + 8, &port.port_guid, 8);
	umad_release_port(&port);
}

static uint16_t sm_lid(const struct sa_port *p)
{
	umad_port_t port;
	uint16_t lid;

	must(!umad_get_port(p->ca, p->num, &port), "libibumad does not know port %d of %s", p->num,
	     p->ca);
	lid = (uint16_t)port.sm_lid;
	umad_release_port(&port);
	return lid;
}

static void begin(struct packet *q, uint8_t method, uint16_t attribute)
{
	static uint64_t tid;

	memset(q, 0, sizeof(*q));
	q->sa.mad_hdr.base_version = UMAD_BASE_VERSION;
	q->sa.mad_hdr.mgmt_class = UMAD_CLASS_SUBN_ADM;
	q->sa.mad_hdr.class_version = UMAD_SA_CLASS_VERSION;
	q->sa.mad_hdr.method = method;
	q->sa.mad_hdr.attr_id = htobe16(attribute);
	q->sa.mad_hdr.tid = htobe64(++tid);
}

/* Sends @q; its response in @response, with room for @bytes from its header on. -1, or the length.
 */
static int ask(const struct sa_port *p, struct packet *q, void *response, int bytes)
{
	struct ib_user_mad *header = response;
	uint32_t tid = (uint32_t)be64toh(q->sa.mad_hdr.tid); /* the other half is the kernel's */
	int ret, length;

	umad_set_addr(q, sm_lid(p), 1, 0, (int)UMAD_QKEY);
	ret = umad_send(p->fd, p->agent, q, sizeof(q->sa), TIMEOUT_MS, p->retries);
	if (ret == -ENETDOWN || ret == -EHOSTUNREACH)
		return -1;
	must(!ret, "umad_send: %s", strerror(-ret));
	do {
		length = bytes;
		if (umad_recv(p->fd, response, &length, WAIT_MS) < 0)
			return -1;
	} while ((uint32_t)be64toh(((struct umad_hdr *)header->data)->tid) != tid);
	return umad_status(response) ? -1 : length;
}

static int change(const struct sa_port *p, struct packet *q, struct umad_sa_mcmember_record *rec)
{
	struct packet response;

	memcpy(rec->portgid, p->gid, sizeof(rec->portgid));
	rec->qkey = htobe32(p->qkey);
	rec->pkey = htobe16(0xFFFF);
	memcpy(q->sa.data, rec, sizeof(*rec));
	if (ask(p, q, &response, sizeof(response.sa)) < 0)
		return SA_NO_RESPONSE;
	memcpy(rec, response.sa.data, sizeof(*rec));
	return be16toh(response.sa.mad_hdr.status);
}

#define PATH_MASK 0xC /* DGID, SGID */

/* PathRecord, section 15.2.5.16. */
struct path_record {
	uint8_t service_id[8], dgid[16], sgid[16];
	uint16_t dlid, slid;
	uint8_t flow_label[3], hop_limit;
	uint8_t tclass, numb_path;
	uint16_t pkey, sl;
};

int sa_path(const struct sa_port *p, const uint8_t dgid[16], struct sa_path *path)
{
	struct packet q, response;
	struct path_record rec = { 0 };

	begin(&q, UMAD_METHOD_GET, UMAD_SA_ATTR_PATH_REC);
	q.sa.comp_mask = htobe64(PATH_MASK);
	memcpy(rec.dgid, dgid, sizeof(rec.dgid));
	memcpy(rec.sgid, p->gid, sizeof(rec.sgid));
	memcpy(q.sa.data, &rec, sizeof(rec));
	if (ask(p, &q, &response, sizeof(response.sa)) < 0)
		return SA_NO_RESPONSE;
	memcpy(&rec, response.sa.data, sizeof(rec));
	*path = (struct sa_path){ .dlid = be16toh(rec.dlid),
		                  .sl = be16toh(rec.sl) & 0xF,
		                  .hop_limit = rec.hop_limit };
	return be16toh(response.sa.mad_hdr.status);
}

int sa_join_any(const struct sa_port *p, uint8_t mgid[16], uint8_t join_state, uint16_t *mlid)
{
	struct umad_sa_mcmember_record rec = { .scope_state = join_state };
	struct packet q;
	int status;

	begin(&q, UMAD_METHOD_SET, UMAD_SA_ATTR_MCMEMBER_REC);
	q.sa.comp_mask = htobe64(CREATE_MASK);
	memcpy(rec.mgid, mgid, sizeof(rec.mgid));
	status = change(p, &q, &rec);
	memcpy(mgid, rec.mgid, sizeof(rec.mgid));
	*mlid = be16toh(rec.mlid);
	return status;
}

int sa_join(const struct sa_port *p, const uint8_t mgid[16], uint8_t join_state, uint16_t *mlid)
{
	uint8_t joined[16];

	memcpy(joined, mgid, sizeof(joined));
	return sa_join_any(p, joined, join_state, mlid);
}

int sa_leave(const struct sa_port *p, const uint8_t mgid[16], uint8_t join_state)
{
	struct umad_sa_mcmember_record rec = { .scope_state = join_state };
	struct packet q;

	begin(&q, UMAD_SA_METHOD_DELETE, UMAD_SA_ATTR_MCMEMBER_REC);
	q.sa.comp_mask = htobe64(JOIN_MASK);
	memcpy(rec.mgid, mgid, sizeof(rec.mgid));
	return change(p, &q, &rec);
}

/* All records of a kind, those of others too. 0, or SA_NO_RESPONSE. */
static int get_table(const struct sa_port *p, uint16_t attribute, struct table *t)
{
	struct packet q;
	int length;

	begin(&q, UMAD_SA_METHOD_GET_TABLE, attribute);
	q.sa.sm_key[7] = SM_KEY;
	length = ask(p, &q, t->bytes, LIST_BYTES);
	if (length < 0 || t->packet.sa.mad_hdr.status)
		return SA_NO_RESPONSE;
	t->step = be16toh(t->packet.sa.attr_offset) * 8u;
	t->n = t->step ? (length - (int)offsetof(struct umad_sa_packet, data)) / (int)t->step : 0;
	return 0;
}

int sa_list(const struct sa_port *p, struct sa_member *member, int max)
{
	static struct table t;

	if (get_table(p, UMAD_SA_ATTR_MCMEMBER_REC, &t))
		return SA_NO_RESPONSE;
	for (int i = 0; i < t.n && i < max; i++) {
		struct umad_sa_mcmember_record rec;

		memcpy(&rec, t.bytes + offsetof(struct packet, sa.data) + (size_t)i * t.step,
		       sizeof(rec));
		memcpy(member[i].mgid, rec.mgid, sizeof(rec.mgid));
		memcpy(member[i].port_gid, rec.portgid, sizeof(rec.portgid));
		member[i].join_state = rec.scope_state & 0xF;
	}
	return t.n < max ? t.n : max;
}

int sa_count_nodes(const struct sa_port *p)
{
	static struct table t;

	return get_table(p, UMAD_SA_ATTR_NODE_REC, &t) ? SA_NO_RESPONSE : t.n;
}
