/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The layout of the memory that every process of a fabric maps. There are two
 * parts, each a memfd of the manager's:
 *
 *   control	written by the manager alone (sealed: no one else can map it
 *		writable): HCAs, ports, queue pairs, flows.
 *   data	written by every process: receive rings, payloads, completion
 *		queue doorbells, counters.
 *
 * Rules: fixed-width fields, offsets and indices instead of pointers, one writer
 * a cache line, layout asserted. What is read from the data part may be anything
 * (its writer may have died or may be hostile) and is checked before use; where
 * things lie there is therefore said in the control part.
 *
 * Receive rings are the heart. A receive that was posted is a credit: one
 * position of the ring of its receive queue. A sender takes it by writing its own
 * name into the slot (one compare-and-swap, so that a death leaves a name), fills
 * the slot and publishes it. See ring.h.
 */
#ifndef SHM_LAYOUT_H
#define SHM_LAYOUT_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ib.h"

#define SHM_MAGIC   0x554d42454c524d41ull
#define SHM_VERSION 1

#define SHM_MAX_QPS       65536 /* an index is the low 16 bits of a QP number */
#define SHM_MAX_CQS       65536
#define SHM_MAX_FLOWS     (1u << 20)
#define SHM_MAX_CHANNELS  65535
#define SHM_NO_CHANNEL    0xFFFFFFFF
#define SHM_QP_INDEX(qpn) ((qpn)&0xFFFF)

#define SHM_GIDS    32 /* of an Ethernet port: as many as addresses */
#define SHM_IB_GIDS 16 /* of an InfiniBand port */
#define SHM_PKEYS   16
#define SHM_INLINE  64 /* payload bytes that ride in the arrival itself */

/* ---- control part ---- */

/* Limits and choices of a fabric, fixed when it starts unless a comment says otherwise. */
struct shm_settings {
	uint32_t max_mcast_grp;
	uint32_t max_mcast_qp_attach;
	uint32_t max_total_mcast_qp_attach;
	uint32_t mtu;       /* enum ibv_mtu, of every link */
	uint32_t max_qp_wr; /* of either queue */
	uint32_t max_sge;   /* of either queue */
	uint32_t max_cqe;
	uint32_t sa_send_only;        /* the SA supports send-only full members; may change */
	uint32_t block_loopback_host; /* BLOCK_SELF_MCAST_LB covers the whole HCA, not the QP */
	uint32_t mft_delay_ms;        /* tables follow a join by so much; may change */
	uint32_t mft_capacity;        /* multicast LIDs that a switch can forward */
	uint32_t sm_embedded;         /* there is a subnet manager from the start */
	uint32_t sm_priority;         /* of the embedded one; may change */
	uint32_t sm_poll_ms;          /* how often it asks other subnet managers; may change */
	uint32_t routing;             /* enum sm_routing */
	uint32_t lmc;                 /* of HCA ports: each has 2^lmc LIDs */
	uint32_t mlid_sharing;        /* groups share MLIDs if there are no more; may change */
	uint32_t roce_attach_joins;   /* attaching joins the group on an Ethernet port's network */
	uint32_t roce_segments;       /* messages leave in larger pieces, which the device cuts */
	uint32_t reserved[13];
};
static_assert(sizeof(struct shm_settings) == 128, "layout");

struct shm_control {
	uint64_t magic;
	uint32_t version;
	uint32_t n_hcas;
	uint32_t n_ports;
	uint32_t reserved0;
	uint64_t hcas_off, ports_off, qps_off, flows_off, lists_off, size;
	uint64_t data_size;
	char fabric[40];
	/* in the data part */
	uint64_t senders_off, cqs_off, flow_counts_off, port_counts_off, wires_off;
	uint64_t rings_off, rings_size;
	uint64_t payloads_off, payloads_size;
	_Alignas(64) struct shm_settings settings;
	/*
	 * The manager's life: a robust futex that it holds. When it dies the kernel
	 * sets FUTEX_OWNER_DIED here, and every process sees it without a system call.
	 */
	_Alignas(64) _Atomic uint32_t manager_futex;
	_Atomic uint32_t manager_stopped; /* an orderly end */
};
static_assert(sizeof(struct shm_control) == 384, "layout");

struct shm_hca {
	char name[32];
	char host[32];
	uint64_t node_guid;  /* host order */
	uint32_t first_port; /* index of port 1 in the port table */
	uint32_t n_ports;
	uint32_t host_index;
	uint32_t reserved0;
	uint64_t system_guid;
	uint32_t reserved[8];
};
static_assert(sizeof(struct shm_hca) == 128, "layout");

/* A port of an HCA. Readers copy it between two equal even values of seq. */
struct shm_port {
	_Atomic uint32_t seq;
	uint32_t hca;
	uint64_t guid;
	/* what senders look at for each message lies in the first cache line */
	uint16_t lid;
	uint16_t sm_lid;
	uint8_t lmc;
	uint8_t sm_sl;
	uint8_t state; /* enum ib_port_state */
	uint8_t phys_state;
	uint8_t max_mtu;
	uint8_t active_mtu;
	uint8_t active_width;
	uint8_t active_speed;
	uint8_t port_num;
	uint8_t subnet_timeout;
	uint8_t link_layer; /* IBV_LINK_LAYER_* */
	uint8_t n_gids;     /* entries of the table below that there are, empty ones too */
	uint32_t cap_flags;
	uint32_t ifindex; /* Ethernet: of the network device; 0: it is gone */
	uint8_t n_pkeys;
	uint8_t wire_round; /* Ethernet: another one, other sockets */
	uint8_t reserved[2];
	uint32_t ipv4; /* of the host on this port, network order */
	uint8_t ipv6[16];
	uint16_t pkey[SHM_PKEYS];
	uint8_t gid_type[SHM_GIDS]; /* enum ibv_gid_type */
	struct ib_gid gid[SHM_GIDS];
};
static_assert(sizeof(struct shm_port) == 640, "layout");
static_assert(offsetof(struct shm_port, pkey) == 64, "layout");
static_assert(offsetof(struct shm_port, gid) % 64 == 0, "layout");

enum shm_qp_flags {
	SHM_QP_LIVE = 1,
	SHM_QP_RECEIVES = 2, /* in a state that accepts packets */
	SHM_QP_BLOCK_LOOPBACK = 4,
	SHM_QP_COUNT_ARRIVALS = 8, /* its CQ is smaller than what may arrive: watch for overrun */
	SHM_QP_WIRE = 16,          /* stands for what a port brings in from the wire */
};

#define SHM_NO_READY_BIT 0xFFFF

/* What a sender must know of a queue pair. Readers as for shm_port. */
struct shm_qp {
	_Atomic uint32_t seq;
	uint32_t qpn;
	uint32_t qkey;
	uint16_t pkey;
	uint8_t flags;
	uint8_t port_num;
	uint32_t port; /* index in the port table */
	uint32_t cq;   /* index of the receive CQ */
	uint64_t ring_off;
	uint16_t ring_gen;
	uint8_t ring_shift; /* log2 of its positions */
	uint8_t reserved0;
	uint16_t ready_bit;  /* in the CQ's ready bitmap, or SHM_NO_READY_BIT */
	uint16_t pkey_index; /* where in the port's table pkey is from */
	uint32_t client;     /* whose it is */
	uint32_t reserved2[4];
};
static_assert(sizeof(struct shm_qp) == 64, "layout");

enum shm_flow_flags {
	SHM_FLOW_WIRE = 1, /* a copy of each message goes out on the wire */
};

/*
 * A flow is what one queue pair sends to one destination: the outcome of the walk
 * through the switches, kept as a list of the QP numbers that a multicast message
 * reaches (or the port that a unicast one does). The manager rewrites it in place
 * whenever the walk would end elsewhere; senders keep a copy and compare seq.
 */
struct shm_flow {
	_Atomic uint32_t seq; /* odd while being written */
	uint32_t count;       /* QP numbers in the list; unicast: 1 if the port is reached */
	uint64_t list_off;    /* uint32_t[count] in the control part */
	uint32_t dest_port;   /* unicast: index in the port table */
	uint32_t mtu;         /* bytes, smallest along the path */
	uint32_t flags;       /* enum shm_flow_flags */
	uint32_t reserved[9];
};
static_assert(sizeof(struct shm_flow) == 64, "layout");

/* ---- data part ---- */

enum shm_slot_kind { SHM_SLOT_CLOSED, SHM_SLOT_DONE, SHM_SLOT_CLAIMED, SHM_SLOT_VOID };

enum shm_arrival_flags {
	SHM_ARRIVAL_GRH = 1,
	SHM_ARRIVAL_IMM = 2,
	SHM_ARRIVAL_SOLICITED = 4,
	SHM_ARRIVAL_PAYLOAD = 8,   /* payload lies at payload_off, not in data */
	SHM_ARRIVAL_ETHERNET = 16, /* of a port of that link layer: an IP header is its GRH */
	SHM_ARRIVAL_WIRE = 32,     /* came from the wire: data holds what its GRH is to be */
};

/*
 * One slot of a receive ring: two cache lines, the second touched only by small
 * payloads. The state word is described in ring.h. Its 64 bits come first in every
 * 128-byte unit of ring memory, for ever, so that a late compare-and-swap by a
 * sender that slept can only miss.
 */
struct shm_arrival {
	_Atomic uint64_t state;
	uint32_t src_qpn;
	uint32_t length;
	uint32_t imm;        /* as sent: network order */
	uint32_t class_flow; /* traffic class << 20 | flow label */
	uint16_t slid;
	uint16_t pkey;
	uint32_t src_port; /* index in the port table */
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t flags;
	uint8_t path_bits;
	uint8_t more; /* a hint: as many more come at once, in one list */
	uint8_t reserved[2];
	uint64_t payload_off; /* in the data part */
	struct ib_gid dgid;
	uint8_t data[SHM_INLINE];
};
static_assert(sizeof(struct shm_arrival) == 128, "layout");
static_assert(offsetof(struct shm_arrival, data) == 64, "layout");

/* Before the slots of a ring. Its first 64 bits never look like a free slot. */
struct shm_ring {
	uint64_t magic;            /* a slot of kind CLOSED to whoever takes it for one */
	_Atomic uint32_t posted;   /* positions below are credits; owner writes */
	_Atomic uint32_t consumed; /* positions below have been taken out; owner writes */
	uint32_t gen;
	uint32_t qpn;
	_Alignas(
	        64) _Atomic uint32_t tail; /* a hint: positions below were claimed; senders write */
	_Atomic uint32_t posted_seen;      /* a hint: posted is at least this; senders write */
};
static_assert(sizeof(struct shm_ring) == 128, "layout");

enum shm_cq_arm { SHM_CQ_IDLE, SHM_CQ_ARMED_SOLICITED, SHM_CQ_ARMED };

#define SHM_CQ_READY_BITS 1024

/* The part of a completion queue that senders touch. */
struct shm_cq {
	_Atomic uint32_t arm;     /* enum shm_cq_arm; senders take it back to IDLE when they wake */
	uint32_t channel;         /* whose eventfd to write; owner writes before arming */
	_Atomic uint32_t arrived; /* counted arrivals (SHM_QP_COUNT_ARRIVALS); senders add */
	_Atomic uint32_t limit;   /* arrived beyond this is an overrun; owner moves it on */
	_Atomic uint32_t overrun;
	_Atomic uint32_t notified; /* completion events not yet taken by ibv_get_cq_event */
	uint32_t gen;
	uint32_t reserved[9];
	_Atomic uint64_t ready[SHM_CQ_READY_BITS / 64]; /* rings that may have arrivals */
};
static_assert(sizeof(struct shm_cq) == 192, "layout");

/*
 * What a sender is doing, by sending QP: which QP it delivers to (0: none). The
 * manager reads it when the sender is dead. One writer: the thread that posts.
 */
struct shm_sender {
	_Atomic uint32_t target_qpn;
	uint32_t reserved[15];
};
static_assert(sizeof(struct shm_sender) == 64, "layout");

/* Sent on a flow: written by the thread that posts on its QP, summed up by the manager. */
struct shm_flow_count {
	_Atomic uint64_t packets;
	_Atomic uint64_t bytes; /* payload of the UD message */
	uint64_t reserved[6];
};
static_assert(sizeof(struct shm_flow_count) == 64, "layout");

/* The last packet with a bad key at a port; if two came at once, a part may be of either. */
struct shm_bad_key {
	_Atomic uint64_t ends; /* SLID << 48 | QPN of the sender << 24 | QPN of the receiver */
	_Atomic uint64_t key;  /* SL << 32 | P_Key or Q_Key */
};

/* What went wrong at a port, by whoever noticed: rare, so atomic additions. */
struct shm_port_count {
	_Atomic uint64_t no_receive; /* no receive posted: message lost */
	_Atomic uint64_t bad_qkey;
	_Atomic uint64_t bad_pkey;
	_Atomic uint64_t no_qp;           /* unicast to a QP that is not there or not ready */
	_Atomic uint64_t xmit_discards;   /* larger than the path's MTU, or port not active */
	_Atomic uint64_t no_payload_slot; /* the sender ran out of payload memory */
	_Atomic uint64_t own_blocked;     /* copies held back by BLOCK_SELF_MCAST_LB */
	uint64_t reserved;
	struct shm_bad_key last_bad_pkey, last_bad_qkey;
	uint64_t reserved2[4];
};
static_assert(sizeof(struct shm_port_count) == 128, "layout");

#define SHM_WIRE_BAD 8

/*
 * What the wire of an Ethernet port brings in, some process of the host receives, for all of
 * them: whoever polls, or if nobody does, the manager (hca/wire.h). This is how they take turns.
 */
struct shm_wire {
	/* who receives just now: microseconds << 16 | its wire QP's index; 0: nobody */
	_Atomic uint64_t holder;
	_Atomic uint64_t polled_ns; /* when somebody looked who will look again soon */
	/* the manager has left the sockets to who polls: who stops polling wakes it */
	_Atomic uint32_t manager_away;
	_Atomic uint32_t lost[2]; /* what the sockets, IPv4 and IPv6, have said that they lost */
	uint32_t reserved[9];
	/* counts; additions, as anybody may receive */
	_Atomic uint64_t packets, bytes;    /* received and right */
	_Atomic uint64_t bad[SHM_WIRE_BAD]; /* received and not: by enum wire_roce_status */
	_Atomic uint64_t own;               /* our own messages to groups, come back */
	_Atomic uint64_t no_member;         /* to a group to which nobody here is attached */
	_Atomic uint64_t overflow;          /* lost as the sockets were full */
	_Atomic uint64_t unreachable;       /* sent, and the network takes them nowhere */
	_Atomic uint64_t overtakes;         /* somebody who was receiving had stalled */
	_Atomic uint64_t bad_mad;           /* to QP1, and no MAD */
};
static_assert(sizeof(struct shm_wire) == 192, "layout");
static_assert(offsetof(struct shm_wire, packets) == 64, "layout");

/* Its beginning says what it is to whoever looks at a dump; nobody relies on that. */
struct shm_data {
	uint64_t magic;
	uint32_t version;
	uint32_t reserved;
	_Atomic uint64_t bad_keys; /* packets with a bad key, at all ports: counted last */
};

/* Bytes of a ring with (1 << @shift) positions. */
static inline uint64_t shm_ring_bytes(unsigned shift)
{
	return sizeof(struct shm_ring) + (sizeof(struct shm_arrival) << shift);
}

#endif
