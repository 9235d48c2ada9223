/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of an endpoint (endpoint.h) where there is no rdma_cm: plain verbs on the one device of
 * a RoCE fabric, with groups that are attached by their IPv4-mapped MGID, which joins them on the
 * network as well. Errors end the program.
 *
 * Thread safety: one thread an endpoint.
 */
#ifndef BENCH_COMMON_BARE_H
#define BENCH_COMMON_BARE_H

#include "common/endpoint.h"

/* The GID of an IPv4 address, and the index that it has in the table of @verbs. */
union ibv_gid bench_mapped_gid(const char *address);
uint8_t bench_find_gid(struct ibv_context *verbs, const char *address);

/* The device, and its GID that stands for the IPv4 address @address. */
void bench_bare_open(struct bench_endpoint *e, const char *address);
void bench_bare_close(struct bench_endpoint *e);

/* Makes @e's queue pair, ready to send and to receive. */
void bench_bare_qp(struct bench_endpoint *e, struct ibv_qp_init_attr_ex *attr);

/* Receives from @group, an IPv4 address. */
void bench_bare_attach(struct bench_endpoint *e, const char *group);
/* Sends to @group. */
void bench_bare_lead(struct bench_endpoint *e, const char *group);

#endif
