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
#include <sys/queue.h>

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

/*
 * What became of MADs; an answer counts as one more. None is lost without a trace:
 *
 *	sent = delivered + wire + no_route + bad_path + bad_p_key
 *	delivered = answered + taken + repressed + bad_m_key + unwanted
 */
struct fabric_mad_stats {
	uint64_t sent;      /* or come in by the wire of an Ethernet port */
	uint64_t delivered; /* at the node that it was for */
	uint64_t wire;      /* out of the fabric, by an Ethernet port */
	uint64_t no_route;  /* no table entry, a link down, a path that leads out of the fabric */
	uint64_t bad_path;  /* hop pointer and count that no path has */
	uint64_t bad_p_key;
	uint64_t answered;  /* by an agent */
	uint64_t taken;     /* by the sink */
	uint64_t repressed; /* answers to traps */
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
	/* Sends by the wire of an Ethernet port what is for none of the fabric's. NULL: nobody. */
	void (*wire)(void *arg, struct fabric_port *from, const struct fabric_mad *mad);
};

/* Where time comes from; all may be NULL, and time stands still. */
struct fabric_clock {
	uint64_t (*now_ns)(void *arg); /* of a clock that does not jump */
	/* Asks to call fabric_traps_run() at that time, or sooner. */
	void (*wake)(void *arg, uint64_t at_ns);
	void *arg;
};

struct fabric_mads {
	struct fabric_mad_sink sink;
	struct fabric_clock clock;
	struct fabric_mad_stats stats;
	LIST_HEAD(, fabric_trap) traps; /* traps.c: sent, and not settled */
	uint64_t n_traps;
	uint64_t bad_keys_seen; /* of the shared memory's */
	/* which flows are to be walked again */
	bool stale, all_stale;
	uint64_t stale_lid[(1 << 16) / 64];
};

/* The time; 0 without a clock. */
static inline uint64_t fabric_now_ns(const struct fabric *f)
{
	const struct fabric_clock *c = &f->mads->clock;

	return c->now_ns ? c->now_ns(c->arg) : 0;
}

/* What a Set of PortInfo changed. */
enum fabric_port_change {
	FABRIC_PORT_STATE = 1,
	FABRIC_PORT_LID = 2,
	FABRIC_PORT_SM = 4,
	FABRIC_PORT_REREGISTER = 8,
	FABRIC_PORT_PKEYS = 16,
	FABRIC_PORT_GIDS = 32,   /* of all ports: the subnet prefix */
	FABRIC_PORT_OTHER = 64,  /* the MTU, SubnetTimeout */
	FABRIC_PORT_ALIAS = 128, /* GIDs of this port */
};

/*
 * Sends @mad from @from, an HCA port or port 0 of a switch: the data's copy is ours. All that
 * follows from it, answers too, has happened when it returns, but for what settles later.
 */
void fabric_mad_send(struct fabric *f, struct fabric_port *from, const struct fabric_mad *mad);

/* @mad has come in by the wire of Ethernet port @at; what follows from it, as above. */
void fabric_mad_input(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad);

/*
 * The shortest directed route from HCA port @from to HCA port @to, into @smp's initial path and
 * hop count. False: no links that are up lead there, or more than SMP_MAX_HOPS of them.
 */
bool fabric_mad_path(const struct fabric *f, struct fabric_port *from, struct fabric_port *to,
                     struct wire_smp *smp);

/*
 * Flows follow what Sets have changed in tables and ports only here, all at once, as a subnet
 * manager changes thousands in a row: to be called before anybody sends data again, after each
 * turn of the manager's loop. Costs nothing if nothing has changed.
 */
void fabric_mads_settle(struct fabric *f);

/* Notes what is to settle: flows to a LID, or all. */
void fabric_mads_lid_changed(struct fabric *f, uint16_t lid);
void fabric_mads_all_changed(struct fabric *f);

/*
 * The agents: answer the request in @mad, which arrived at @at, in place. False: no answer
 * is due.
 */
bool fabric_sma_answer(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad);
bool fabric_pma_answer(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad);

/* Takes the SubnTrapRepress @mad, which arrived at @at and answers a trap of that port. */
void fabric_sma_repress(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad);
bool fabric_sma_wants_repress(struct fabric *f, struct fabric_port *at,
                              const struct fabric_mad *mad);

/*
 * What the SMA at @at would answer to a Get: for who runs in the same process. @data: 64
 * bytes. enum mad_status.
 */
uint16_t fabric_sma_get(struct fabric *f, struct fabric_port *at, uint16_t attribute,
                        uint32_t modifier, uint8_t *data);

/* The same of a Set: as if it came with the M_Key. @data becomes what it reads then. */
uint16_t fabric_sma_set(struct fabric *f, struct fabric_port *at, uint16_t attribute,
                        uint32_t modifier, uint8_t *data);

/* PortInfo:CapabilityMask of an HCA's port or a switch's port 0; 0 of a switch's others. */
uint32_t fabric_sma_capabilities(const struct fabric_port *p);

/*
 * Sets and clears bits of it, such as PORT_CAP_SM. The subnet manager is told by trap 144,
 * processes by the shared record.
 */
void fabric_sma_set_capabilities(struct fabric *f, struct fabric_port *p, uint32_t set,
                                 uint32_t clear);

/* Whether the agents, not somebody behind the sink, are whom this MAD is for. */
bool fabric_sma_wants(const struct fabric_mad *mad);
bool fabric_pma_wants(const struct fabric_mad *mad);

/* The port that answers for @p: a switch's own port 0, or itself. */
static inline struct fabric_port *fabric_own_port(struct fabric_port *p)
{
	return p->node->type == FABRIC_SWITCH ? &p->node->port[0] : p;
}

static inline bool fabric_port_has_lid(const struct fabric_port *p, uint16_t lid)
{
	return p->lid && lid >= p->lid && lid < p->lid + (1u << p->lmc);
}

#endif
