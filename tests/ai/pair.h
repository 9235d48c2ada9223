/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steps that libraries for collectives and transfers take before they send: they find HCAs by
 * their PCI paths, choose a GID, and connect RC queue pairs of several HCAs to those of one peer,
 * which they meet by a socket. The calls are those of NCCL's net_ib and of Mooncake's engine, in
 * their order. Everything that fails ends the program, with a line that says where.
 */
#ifndef AI_PAIR_H
#define AI_PAIR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

enum { AI_MAX_DEVICES = 8, AI_MAX_SENDS = 256, AI_SECONDS = 60 };

struct ai_device {
	struct ibv_context *context;
	char name[64], path[4096]; /* path: of its PCI device, in /sys/devices */
	int numa;
	uint8_t port;
	struct ibv_port_attr attr;
	union ibv_gid gid;
	uint8_t gid_index;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	bool failed; /* its link is down */
};

/* How a peer reaches a queue pair. */
struct ai_end {
	union ibv_gid gid;
	uint32_t qpn;
	uint16_t lid;
	uint8_t mtu;
};

_Noreturn void ai_fail(const char *file, int line, const char *what);

#define AI_CHECK(expression)                                      \
	do {                                                      \
		if (!(expression))                                \
			ai_fail(__FILE__, __LINE__, #expression); \
	} while (0)

/*
 * The HCAs with an active port, by their PCI paths, opened, with a protection domain and a
 * completion queue each. An alarm ends a program that takes longer than AI_SECONDS.
 */
int ai_find_devices(struct ai_device all[static AI_MAX_DEVICES]);

/* A queue pair in INIT, with room for AI_MAX_SENDS. */
struct ibv_qp *ai_make_qp(struct ai_device *d);
struct ai_end ai_end_of(const struct ibv_qp *qp, const struct ai_device *d);
/* To RTR and RTS. @timeout: ibv_modify_qp(3)'s. */
void ai_connect_qp(struct ibv_qp *qp, const struct ai_device *d, const struct ai_end *peer,
                   uint8_t timeout);

/* A connection to the other program, which calls it with the same @path. */
int ai_meet(const char *path, bool listens);
/* Each tells the other. */
void ai_swap(int sock, const void *mine, void *theirs, size_t bytes);

/* The byte at a place of a message. */
static inline unsigned char ai_byte(unsigned message, size_t at)
{
	return (unsigned char)(message * 31 + at * 7 + (at >> 8));
}

#endif
