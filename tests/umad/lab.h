/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the programs in this folder: ports of the hosts h1 to h4 that ctest starts, and MADs of
 * a vendor class between them. They use the public API alone.
 *
 * A call that fails, and a wait in vain (deadline.h), fails the test. Ports that a test has opened
 * are closed when it ends: a test is LAB_CASE(name) { ... }.
 */
#ifndef TESTS_UMAD_LAB_H
#define TESTS_UMAD_LAB_H

#include "harness.h"

#include <infiniband/umad.h>
#include <infiniband/umad_types.h>

#define LAB_SECONDS  120  /* longer than a test waits */
#define LAB_CLASS    0x32 /* of range 2: with OUI and RMPP */
#define LAB_OUI      0x02756D
#define LAB_GET      0x01
#define LAB_SET      0x02
#define LAB_SEND     0x03
#define LAB_TRAP     0x05
#define LAB_RESPONSE 0x80
#define LAB_MAD      256
#define LAB_DATA_AT  40 /* of that class */
#define LAB_MAX_MAD  (1 << 20)
#define LAB_NOBODY   0xBFFF /* a LID that nobody has */

#define LAB_CASE(name) CASE_WITH(name, NULL, lab_clean_up)
#define LAB_COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define LAB_METHOD(m)  (1ull << (m))

/* A call that gives -errno, and has it in errno as well. */
#define assert_fails(call, err)                 \
	do {                                    \
		errno = 0;                      \
		assert_int_equal(call, -(err)); \
		assert_int_equal(errno, err);   \
	} while (0)

/* Closes the ports. cmocka calls it. */
int lab_clean_up(void **state);

/* The name of the HCA of host @host, from 1. */
const char *lab_ca(int host);
uint16_t lab_lid(int host);

/* Port 1 of host @host, open. */
int lab_open(int host);

/* Of the class above, for the methods in @methods. 0 methods: only responses come. */
int lab_agent(int fd, uint64_t methods);
int lab_rmpp_agent(int fd, uint64_t methods);

/* Of any class; what umad_register2() says in @err. */
int lab_register(int fd, const struct umad_reg_attr *attr, int *err);

/* A buffer with a MAD of @bytes in it: that class, that method, @tid, counted bytes behind the
 * header. To be freed. */
void *lab_mad(uint8_t method, uint64_t tid, size_t bytes);
uint8_t *lab_data(void *umad); /* of the MAD */
uint64_t lab_tid(void *umad);

/* Sends it from @fd to @lid's QP1, and frees it. */
struct lab_how {
	int agent;
	uint16_t lid;
	size_t bytes; /* 0: 256 */
	int timeout_ms, retries;
};
void lab_send(int fd, void *umad, const struct lab_how *how);

/* The next that arrives; its agent and its length. To be freed. */
#define lab_receive(fd, agent, bytes) lab_receive_at(fd, agent, bytes, __FILE__, __LINE__)
void *lab_receive_at(int fd, int *agent, int *bytes, const char *file, int line);

/* The next that arrives is this agent's, is @bytes long and has status 0. To be freed. */
#define lab_expect(fd, agent, bytes) lab_expect_at(fd, agent, bytes, __FILE__, __LINE__)
void *lab_expect_at(int fd, int agent, int bytes, const char *file, int line);

/* Sends the response to @request, a MAD as received, which is freed: sent back to where it came
 * from. */
void lab_respond(int fd, int agent, void *request);

#endif
