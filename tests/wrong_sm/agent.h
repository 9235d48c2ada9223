/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SMPs by directed routes and requests to performance management agents, as a subnet manager on
 * host h1 sends them. Not thread-safe.
 */
#ifndef TESTS_WRONG_SM_AGENT_H
#define TESTS_WRONG_SM_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/umad_sm.h>

#define AGENT_NO_RESPONSE 0x10000 /* a status that no response has */

/* A node of the fabric: a leaf and two spines are linked to h1's. */
struct agent_node {
	const char *name;
	uint8_t hops, path[4]; /* out ports, from h1 on */
};

/* An attribute of a node, or what is to become of it. */
struct agent_attribute {
	const struct agent_node *at;
	uint16_t id;
	uint32_t modifier;
	uint64_t m_key;
	uint8_t data[UMAD_LEN_SMP_DATA];
};

void agent_open(void);
void agent_close(void);

/* Sends it, and has the data of the response in it. The response's status; AGENT_NO_RESPONSE: none
 * has come. @is_lost: none is to come, and it does not wait for long. */
unsigned agent_request(struct agent_attribute *a, uint8_t method, bool is_lost);

/* The response's status is 0. */
void agent_get(struct agent_attribute *a);
void agent_set(struct agent_attribute *a);

/* Big-endian numbers in data. */
uint64_t agent_number(const uint8_t *data, unsigned bytes);
void agent_put(uint8_t *data, unsigned bytes, uint64_t number);

/* Get of performance management, of the node with @lid; likewise. */
unsigned agent_perf_get(uint16_t lid, uint16_t attribute, uint8_t *mad, bool is_lost);

#endif
