/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SMPs and requests to agents: see agent.h.
 */
#include "posix.h"

#include <cmocka.h>
#include <infiniband/umad.h>

#include "deadline.h"
#include "wrong_sm/agent.h"

#define MAD_BYTES 256
#define LOST_MS   100   /* no response comes */
#define WAIT_MS   20000 /* one comes */
#define NO_LID    0xFFFF
#define MASK      0x7FFF /* of a status: the highest bit is the direction of an SMP */

static int fd, agents[256];
static uint64_t last_tid = 1;

static int agent_of(uint8_t class)
{
	if (agents[class] < 0)
		agents[class] = umad_register(fd, class, 1, 0, NULL);
	assert_true(agents[class] >= 0);
	return agents[class];
}

void agent_open(void)
{
	memset(agents, 0xFF, sizeof(agents));
	fd = umad_open_port("umbel_h1_0", 1);
	assert_true(fd >= 0);
}

void agent_close(void)
{
	umad_close_port(fd);
}

/* Sends the MAD in @umad and has the response in its place. */
static unsigned exchange(uint8_t *umad, uint8_t class, bool is_lost)
{
	const int ms = (int)((is_lost ? LOST_MS : WAIT_MS) * deadline_scale());
	struct umad_hdr *h = umad_get_mad(umad);
	const uint32_t tid = (uint32_t)++last_tid;

	h->base_version = UMAD_BASE_VERSION;
	h->mgmt_class = class;
	h->class_version = 1;
	h->tid = htobe64(tid);
	assert_int_equal(umad_send(fd, agent_of(class), umad, MAD_BYTES, ms, 0), 0);
	do {
		int length = MAD_BYTES;

		assert_true(umad_recv(fd, umad, &length, -1) >= 0);
	} while ((uint32_t)be64toh(h->tid) != tid);
	return umad_status(umad) ? AGENT_NO_RESPONSE : be16toh(h->status) & MASK;
}

unsigned agent_request(struct agent_attribute *a, uint8_t method, bool is_lost)
{
	uint8_t *umad = umad_alloc(1, umad_size() + MAD_BYTES);
	unsigned status;
	struct umad_smp *smp;

	assert_non_null(umad);
	smp = umad_get_mad(umad);
	umad_set_addr(umad, NO_LID, 0, 0, 0);
	smp->method = method;
	smp->hop_cnt = a->at->hops;
	smp->attr_id = htobe16(a->id);
	smp->attr_mod = htobe32(a->modifier);
	smp->mkey = htobe64(a->m_key);
	smp->dr_slid = smp->dr_dlid = 0xFFFF;
	memcpy(smp->data, a->data, sizeof(smp->data));
	memcpy(smp->initial_path + 1, a->at->path, sizeof(a->at->path));
	status = exchange(umad, UMAD_CLASS_SUBN_DIRECTED_ROUTE, is_lost);
	memcpy(a->data, smp->data, sizeof(a->data));
	umad_free(umad);
	return status;
}

void agent_get(struct agent_attribute *a)
{
	assert_int_equal(agent_request(a, UMAD_METHOD_GET, false), 0);
}

void agent_set(struct agent_attribute *a)
{
	assert_int_equal(agent_request(a, UMAD_METHOD_SET, false), 0);
}

uint64_t agent_number(const uint8_t *data, unsigned bytes)
{
	uint64_t n = 0;

	while (bytes--)
		n = n << 8 | *data++;
	return n;
}

void agent_put(uint8_t *data, unsigned bytes, uint64_t number)
{
	while (bytes--) {
		data[bytes] = (uint8_t)number;
		number >>= 8;
	}
}

unsigned agent_perf_get(uint16_t lid, uint16_t attribute, uint8_t *mad, bool is_lost)
{
	uint8_t *umad = umad_alloc(1, umad_size() + MAD_BYTES);
	struct umad_hdr *h;
	unsigned status;

	assert_non_null(umad);
	h = umad_get_mad(umad);
	memcpy(h, mad, MAD_BYTES);
	umad_set_addr(umad, lid, 1, 0, UMAD_QKEY);
	h->method = UMAD_METHOD_GET;
	h->attr_id = htobe16(attribute);
	status = exchange(umad, UMAD_CLASS_PERF_MGMT, is_lost);
	memcpy(mad, h, MAD_BYTES);
	umad_free(umad);
	return status;
}
