/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Management datagrams on the fabric: they travel the simulated links hop by hop, SMPs
 * by directed routes or LIDs on the management lane, which carries in every port state
 * but down; others by LID and only over active links, as data does. Each node answers
 * for itself: sma.c is its subnet management agent, pma.c its performance management
 * agent. What is for somebody else at an HCA port, a subnet manager or a program, goes
 * to the sink.
 *
 * Whatever is in a MAD, it is answered with a status, passed on, or dropped and counted.
 *
 * The manager's; not thread-safe.
 */
#ifndef FABRIC_MADS_H
#define FABRIC_MADS_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/fabric.h"
#include "wire/smp.h"

/* A MAD with its addresses: what LRH, BTH, DETH and GRH say. */
struct fabric_mad {
	uint8_t data[MAD_BYTES];
	uint16_t slid, dlid;
	uint32_t src_qpn, dest_qpn;
	uint32_t qkey;
	uint16_t pkey_index;
	uint8_t sl;
	bool has_grh;
	struct ib_gid sgid, dgid;
};

/* What became of MADs that went nowhere. */
struct fabric_mad_stats {
	uint64_t delivered;
	uint64_t no_route; /* no table entry, a link down, a path that leads out of the fabric */
	uint64_t bad_path; /* hop pointer or count beyond the format */
	uint64_t bad_m_key;
	uint64_t unwanted; /* for nobody */
};

/* Takes what arrives at an HCA port (or port 0 of a switch) for neither SMA nor PMA. */
struct fabric_mad_sink {
	/* Whether there was somebody to take it. */
	bool (*deliver)(void *arg, struct fabric_port *at, const struct fabric_mad *mad);
	/* A Set has changed what the port is (enum fabric_port_change, ORed). */
	void (*port_changed)(void *arg, struct fabric_port *port, unsigned what);
	void *arg;
};

struct fabric_mads {
	struct fabric_mad_sink sink;
	struct fabric_mad_stats stats;
};

/* What a Set of PortInfo changed. */
enum fabric_port_change {
	FABRIC_PORT_STATE = 1,
	FABRIC_PORT_LID = 2,
	FABRIC_PORT_SM = 4,
	FABRIC_PORT_REREGISTER = 8,
	FABRIC_PORT_PKEYS = 16,
	FABRIC_PORT_GIDS = 32,
};

/* Sends @mad from @from, an HCA port or port 0 of a switch: the data's copy is ours. */
void fabric_mad_send(struct fabric *f, struct fabric_port *from, const struct fabric_mad *mad);

/*
 * The agents: answer the request in @mad, which arrived at @at, in place. False: no answer
 * is due.
 */
bool fabric_sma_answer(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad);
bool fabric_pma_answer(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad);

/*
 * What the SMA at @at would answer to a Get: for who runs in the same process. @data: 64
 * bytes. enum mad_status.
 */
uint16_t fabric_sma_get(struct fabric *f, struct fabric_port *at, uint16_t attribute,
                        uint32_t modifier, uint8_t *data);

/* Whether the agents, not somebody behind the sink, are whom this MAD is for. */
bool fabric_sma_wants(const struct fabric_mad *mad);
bool fabric_pma_wants(const struct fabric_mad *mad);

#endif
