/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Management datagrams on the fabric. They travel the simulated links hop by hop: SMPs by
 * directed routes or LIDs on the management lane, which works in every port state but DOWN; other
 * MADs by LID over active links, as data packets do. The agents of a node respond for it: sma.c is
 * its subnet management agent, pma.c its performance management agent, cca.c that of congestion
 * control. MADs for a subnet manager
 * or a program at an HCA port go to the sink.
 *
 * Whatever a MAD contains, it gets a response with a status, is delivered, or is dropped and
 * counted.
 *
 * Only the daemon uses this; not thread-safe.
 */
#ifndef FABRIC_MADS_H
#define FABRIC_MADS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "fabric/model/fabric.h"
#include "wire/perf.h"
#include "wire/smp.h"

/* A MAD with its addresses: the fields of LRH, BTH, DETH and GRH. */
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
 * Counters of MADs, by their fate; a response counts as one more MAD. None is lost without a trace:
 *
 *	sent = delivered + roce + no_route + bad_path + bad_p_key + faulty
 *	delivered = answered + accepted + repressed + bad_m_key + bad_cc_key + unwanted
 */
struct fabric_mad_stats {
	uint64_t sent;      /* from a port, or received from the network by an Ethernet port */
	uint64_t delivered; /* to the node that it was for */
	uint64_t roce;      /* sent to the network by an Ethernet port */
	uint64_t no_route;  /* no table entry, a link down, a path that leads out of the fabric */
	uint64_t bad_path;  /* hop pointer and count that no path has */
	uint64_t bad_p_key;
	uint64_t faulty;    /* lost as the gate said */
	uint64_t answered;  /* an agent responded */
	uint64_t accepted;  /* by the sink's deliver() */
	uint64_t repressed; /* TrapRepress: responses to traps */
	uint64_t bad_m_key, bad_cc_key;
	uint64_t unwanted; /* for nobody */
	/* lost, where they count as nothing else, or as accepted: */
	uint64_t no_memory;  /* never sent */
	uint64_t unread;     /* for a program that does not read: too many wait */
	uint64_t backlog;    /* connect requests that a listener has no room for */
	uint64_t unreported; /* notices that subscribers do not hear of: too many wait */
};

/*
 * Receives the MADs that arrive at an HCA port, or port 0 of a switch, and are not for SMA or PMA.
 */
struct fabric_mad_sink {
	/* Copies what it needs of @mad. False: nobody wants it. */
	bool (*deliver)(void *arg, struct fabric_port *at, const struct fabric_mad *mad);
	/* A Set has changed @port: enum fabric_port_change, ORed. */
	void (*port_changed)(void *arg, struct fabric_port *port, unsigned what);
	void *arg;
	/* Sends @mad to the network by the Ethernet port @from. NULL: it is dropped. */
	void (*roce)(void *arg, struct fabric_port *from, const struct fabric_mad *mad);
};

/* The fate of a MAD. */
enum fabric_mad_fate {
	FABRIC_MAD_DELIVERED, /* answered, accepted or repressed, or sent to the network */
	FABRIC_MAD_NO_ROUTE,
	FABRIC_MAD_BAD_PATH,
	FABRIC_MAD_BAD_P_KEY,
	FABRIC_MAD_BAD_M_KEY,
	FABRIC_MAD_BAD_CC_KEY,
	FABRIC_MAD_UNWANTED,
	FABRIC_MAD_FAULTY, /* the gate lost it */
	FABRIC_MAD_HELD,   /* the gate has it */
};

/* A MAD whose way has ended. */
struct fabric_mad_seen {
	const struct fabric_mad *mad; /* as it has arrived, or got lost */
	struct fabric_port *from;
	struct fabric_port *at; /* NULL: it got lost, or went to the network */
	uint16_t pkey;          /* of the packet; 0: it used the management lane */
	enum fabric_mad_fate fate;
};

/* Sees each MAD when its way has ended, responses as well. A NULL function: nobody looks. */
struct fabric_mad_tap {
	void (*see)(void *arg, const struct fabric_mad_seen *seen);
	void *arg;
};

/*
 * Judges each MAD, responses as well, before it is delivered at @at, or, if @at is NULL, sent to
 * the network: for rules of faults. FABRIC_MAD_DELIVERED: it goes on. FABRIC_MAD_FAULTY: it is
 * lost. FABRIC_MAD_HELD: it is nowhere, and comes by fabric_mad_land() later. A NULL function: all
 * go on.
 */
struct fabric_mad_gate {
	enum fabric_mad_fate (*judge)(void *arg, struct fabric_port *from, struct fabric_port *at,
	                              const struct fabric_mad *mad);
	void *arg;
};

/* The clock. Members may be NULL: then time stands still. */
struct fabric_clock {
	uint64_t (*now_ns)(void *arg); /* monotonic time, ns */
	/* Asks the owner to call fabric_traps_run() at @at_ns or sooner. */
	void (*wake)(void *arg, uint64_t at_ns);
	void *arg;
};

struct fabric_late_mad;
struct fabric_pma_samples;

struct fabric_mads {
	struct fabric_mad_sink sink;
	struct fabric_clock clock;
	struct fabric_mad_tap tap;
	struct fabric_mad_gate gate;
	struct fabric_mad_stats stats;
	LIST_HEAD(, fabric_trap) traps; /* traps.c: those without TrapRepress yet */
	uint64_t n_traps;
	uint64_t bad_keys_seen; /* how many of the bad keys in shared memory are reported */
	LIST_HEAD(, fabric_late_mad) late; /* requests for counters: smi.c */
	unsigned n_late;
	LIST_HEAD(, fabric_pma_samples) samples; /* pma_samples.c: those that run */
	unsigned n_samples;
};

/* Drops the requests that wait. */
void fabric_mads_fini(struct fabric *f);

/* The fabric's time, ns; 0 without a clock. */
static inline uint64_t fabric_now_ns(const struct fabric *f)
{
	const struct fabric_clock *c = &f->mads->clock;

	return c->now_ns ? c->now_ns(c->arg) : 0;
}

/* The changes that a Set of PortInfo made. */
enum fabric_port_change {
	FABRIC_PORT_STATE = 1,
	FABRIC_PORT_LID = 2,
	FABRIC_PORT_SM = 4,
	FABRIC_PORT_REREGISTER = 8,
	FABRIC_PORT_PKEYS = 16,
	FABRIC_PORT_GIDS = 32,   /* the subnet prefix, so the GIDs of all ports */
	FABRIC_PORT_OTHER = 64,  /* MTU or SubnetTimeout */
	FABRIC_PORT_ALIAS = 128, /* additional GIDs of this port */
};

/*
 * Sends a copy of @mad from @from, an HCA port or port 0 of a switch. Does not block: when it
 * returns, everything that follows has happened, responses too; but flows follow in slices
 * (fabric_flow_follow()), and the response of a PMA may come later (collect.h).
 */
void fabric_mad_send(struct fabric *f, struct fabric_port *from, const struct fabric_mad *mad);

/* Delivers a copy of @mad, which the Ethernet port @at received from the network; as above. */
void fabric_mad_input(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad);

/* Delivers a copy of @mad as the gate was about to let it, by the same @from and @at, unless the
 * link to @at is down by now. */
void fabric_mad_land(struct fabric *f, struct fabric_port *from, struct fabric_port *at,
                     const struct fabric_mad *mad);

/*
 * Writes the shortest directed route from HCA port @from to HCA port @to to @smp's initial path
 * and hop count. False: there is none over links that are up, of SMP_MAX_HOPS hops at most; or
 * there is no memory.
 */
bool fabric_mad_path(const struct fabric *f, struct fabric_port *from, struct fabric_port *to,
                     struct wire_smp *smp);

/*
 * The agents: replace the request @mad, which arrived at @at, by its response. False: it gets
 * none.
 */
bool fabric_sma_respond(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad);
bool fabric_pma_respond(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad);
/* False: it had a wrong key, and gets no response. */
bool fabric_cca_respond(struct fabric *f, struct fabric_port *at, struct fabric_mad *mad);

/* PortCounters and PortCountersExtended of one port, as the agent responds, without a MAD. The
 * caller has had the counters collected (collect.h). */
void fabric_pma_read(struct fabric *f, struct fabric_port *p, struct wire_port_counters *basic,
                     struct wire_port_counters_extended *extended);

/*
 * Ends the trap of @at that the SubnTrapRepress @mad, which arrived there, responds to.
 * fabric_sma_wants_repress(): whether there is such a trap.
 */
void fabric_sma_repress(struct fabric *f, struct fabric_port *at, const struct fabric_mad *mad);
bool fabric_sma_wants_repress(struct fabric *f, struct fabric_port *at,
                              const struct fabric_mad *mad);

/*
 * The response of the SMA at @at to a Get; for callers in the same process. Writes @data, 64 bytes.
 * Returns enum mad_status.
 */
uint16_t fabric_sma_get(struct fabric *f, struct fabric_port *at, uint16_t attribute,
                        uint32_t modifier, uint8_t *data);

/* The same of a Set that has the M_Key. @data becomes what a Get then reads. */
uint16_t fabric_sma_set(struct fabric *f, struct fabric_port *at, uint16_t attribute,
                        uint32_t modifier, uint8_t *data);

/*
 * Sets and clears bits of fabric_port_capabilities(), such as PORT_CAP_SM. Sends trap 144 to the
 * subnet manager and publishes the port to processes.
 */
void fabric_sma_set_capabilities(struct fabric *f, struct fabric_port *p, uint32_t set,
                                 uint32_t clear);

/* Whether @mad is for the agent, not for the sink. */
bool fabric_sma_wants(const struct fabric_mad *mad);
bool fabric_pma_wants(const struct fabric_mad *mad);
bool fabric_cca_wants(const struct fabric_mad *mad);

/* The port that has the LID for @p: port 0 of its switch, or @p itself of an HCA. */
static inline struct fabric_port *fabric_own_port(struct fabric_port *p)
{
	return p->node->type == FABRIC_SWITCH ? &p->node->port[0] : p;
}

static inline bool fabric_port_has_lid(const struct fabric_port *p, uint16_t lid)
{
	return p->lid && lid >= p->lid && lid < p->lid + (1u << p->lmc);
}

#endif
