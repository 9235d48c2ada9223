/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by feed.c and broadcast.c: addresses, groups, connections, and waiting for completions. An
 * error ends the program, with words that say which call failed.
 */
#ifndef SETUP_H
#define SETUP_H

#include <stdbool.h>
#include <stdint.h>
#include <netinet/in.h>

#include <rdma/rdma_cma.h>

#define GRH_BYTES    40 /* what a UD queue pair receives has a GRH in front */
#define SERVICE_PORT 7471

/* A queue pair of UD at a port, and what it takes to send to the group that it has joined. */
struct group {
	struct rdma_cm_id *id;
	struct ibv_ah *ah;
	uint32_t qpn, qkey;
};

/* Says @what and errno, and ends the program, unless it is @done. */
void must(bool done, const char *what);

/* A number in [@least, @most], or the program ends. */
uint64_t number(const char *text, uint64_t least, uint64_t most);

uint64_t now_ns(void);

/* An identifier for UD at the port that has the IPv4 @address: it has a device and a protection
 * domain. Its calls wait until they are done. */
struct rdma_cm_id *open_port(const char *address);

/* Joins the group with this IPv4 address. The queue pair is there, and has its receives; with
 * RDMA_MC_JOIN_FLAG_FULLMEMBER messages come from now on. */
void join(struct group *g, const char *address, uint32_t flags);

/* Memory of zeros, registered in the protection domain. */
struct ibv_mr *allocate(struct ibv_pd *pd, size_t size, int access);

/* Connects queue pairs of RC: from the @local address to the listener at @remote. Fills @offer, of
 * @size bytes, with the private data of the reply. Later events are in the identifier's own
 * channel. */
struct rdma_cm_id *connect_to(const char *local, const char *remote, struct ibv_qp_init_attr *init,
                              void *offer, uint8_t size);

/* Listens at the address; requests come to @channel. */
void listen_at(struct rdma_event_channel *channel, const char *address);

/* Accepts a request to connect, with @offer as private data. The peer may READ. */
void accept_request(struct rdma_cm_id *id, struct ibv_qp_init_attr *init, const void *offer,
                    uint8_t size);

/* Forgets a connection that has ended. Its events are acknowledged. */
void end_connection(struct rdma_cm_id *id);

/* Waits, asleep, until there are completions, and takes up to @n of them. 0: the file descriptor
 * @other is readable instead. -1: @timeout_ms (-1: none) is over. */
int wait_completions(struct ibv_cq *cq, int n, struct ibv_wc *wc, int other, int timeout_ms);

/* Likewise, but only messages that were sent with IBV_SEND_SOLICITED, and errors, end its sleep:
 * many messages may wake it once. */
int wait_solicited(struct ibv_cq *cq, int n, struct ibv_wc *wc, int other);

/* Ends the program if it is in error. */
void check_completion(const struct ibv_wc *wc);

#endif
