/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ports, agents and MADs for tests: see lab.h.
 */
#include "lab.h"
#include "deadline.h"

#define MAX_PORTS 64
#define TID_AT    8
#define OUI_AT    37

static int open_ports[MAX_PORTS];
static size_t n_open_ports;

int lab_clean_up(void **state)
{
	(void)state;
	while (n_open_ports)
		umad_close_port(open_ports[--n_open_ports]);
	return 0;
}

const char *lab_ca(int host)
{
	static const char *const names[] = { "umbel_h1_0", "umbel_h2_0", "umbel_h3_0",
		                             "umbel_h4_0" };

	return names[host - 1];
}

uint16_t lab_lid(int host)
{
	umad_port_t port;
	uint16_t lid;

	assert_int_equal(umad_get_port(lab_ca(host), 1, &port), 0);
	lid = (uint16_t)port.base_lid;
	umad_release_port(&port);
	return lid;
}

int lab_open(int host)
{
	int fd = umad_open_port(lab_ca(host), 1);

	assert_true(fd >= 0);
	assert_true(n_open_ports < MAX_PORTS);
	open_ports[n_open_ports++] = fd;
	return fd;
}

int lab_register(int fd, const struct umad_reg_attr *attr, int *err)
{
	struct umad_reg_attr copy = *attr;
	uint32_t agent = UINT32_MAX;

	*err = umad_register2(fd, &copy, &agent);
	return (int)agent;
}

static int register_vendor(int fd, uint64_t methods, uint8_t rmpp_version)
{
	const struct umad_reg_attr attr = { .mgmt_class = LAB_CLASS,
		                            .mgmt_class_version = 1,
		                            .method_mask = { methods, 0 },
		                            .oui = LAB_OUI,
		                            .rmpp_version = rmpp_version };
	int err, agent = lab_register(fd, &attr, &err);

	assert_int_equal(err, 0);
	assert_in_range(agent, 0, UMAD_CA_MAX_AGENTS - 1);
	return agent;
}

int lab_agent(int fd, uint64_t methods)
{
	return register_vendor(fd, methods, 0);
}

int lab_rmpp_agent(int fd, uint64_t methods)
{
	return register_vendor(fd, methods, UMAD_RMPP_VERSION);
}

uint8_t *lab_data(void *umad)
{
	return umad_get_mad(umad);
}

uint64_t lab_tid(void *umad)
{
	uint64_t tid;

	memcpy(&tid, lab_data(umad) + TID_AT, sizeof(tid));
	return be64toh(tid);
}

void *lab_mad(uint8_t method, uint64_t tid, size_t bytes)
{
	void *umad = umad_alloc(1, umad_size() + bytes);
	uint8_t *d;

	assert_non_null(umad);
	d = lab_data(umad);
	for (size_t i = LAB_DATA_AT; i < bytes; i++)
		d[i] = (uint8_t)(i * 7 + i / 251);
	d[0] = UMAD_BASE_VERSION;
	d[1] = LAB_CLASS;
	d[2] = 1;
	d[3] = method;
	tid = htobe64(tid);
	memcpy(d + TID_AT, &tid, sizeof(tid));
	d[OUI_AT] = LAB_OUI >> 16;
	d[OUI_AT + 1] = LAB_OUI >> 8 & 0xFF;
	d[OUI_AT + 2] = LAB_OUI & 0xFF;
	return umad;
}

void lab_send(int fd, void *umad, const struct lab_how *how)
{
	umad_set_addr(umad, how->lid, 1, 0, (int)UMAD_QKEY);
	assert_int_equal(umad_send(fd, how->agent, umad, how->bytes ? (int)how->bytes : LAB_MAD,
	                           how->timeout_ms, how->retries),
	                 0);
	umad_free(umad);
}

void *lab_receive_at(int fd, int *agent, int *bytes, const char *file, int line)
{
	void *umad = umad_alloc(1, umad_size() + LAB_MAX_MAD);

	assert_non_null(umad);
	*bytes = LAB_MAX_MAD;
	deadline_await(umad_get_fd(fd), "a MAD", file, line);
	*agent = umad_recv(fd, umad, bytes, 0);
	assert_true(*agent >= 0);
	return umad;
}

void *lab_expect_at(int fd, int agent, int bytes, const char *file, int line)
{
	int got_agent, got_bytes;
	void *umad = lab_receive_at(fd, &got_agent, &got_bytes, file, line);

	assert_int_equal(umad_status(umad), 0);
	assert_int_equal(got_agent, agent);
	assert_int_equal(got_bytes, bytes);
	return umad;
}

void lab_respond(int fd, int agent, void *request)
{
	ib_mad_addr_t *addr = umad_get_mad_addr(request);

	lab_data(request)[3] |= LAB_RESPONSE;
	lab_send(fd, request, &(struct lab_how){ .agent = agent, .lid = be16toh(addr->lid) });
}
