/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The layout of the memory that every process of a fabric maps. The daemon makes its two parts,
 * each a memfd:
 *
 *   control	written by the daemon only; seals keep all others from mapping it writable: HCAs,
 *		ports, queue pairs, shared receive queues, flows.
 *   data	written by every process: receive rings, payloads, completion queue doorbells,
 *		counters, what connected queue pairs share (connection.h).
 *
 * Rules: fixed-width fields; offsets and indices instead of pointers; sizes asserted. Values read
 * from the data part are checked before use, as their writer may have died or be hostile.
 * Therefore the offsets of its tables are in the control part.
 *
 * Writers: some cache lines have one writer at a time. A sender's record and the counts of a flow
 * belong to the thread that posts on the queue pair; the owner's half of a ring to the owner; a
 * slot of a ring to the sender that claimed it, until it is published. Other lines have several
 * writers in several processes, which use atomic operations: the senders' half of struct shm_ring,
 * shm_cq (senders, owner, daemon), shm_connection (both ends), shm_port_count, shm_roce_port, the
 * count in shm_data, and the words of shm_events (daemon and process; events.h).
 *
 * Receive rings are the core. A posted receive is a credit: one position of the ring of its receive
 * queue. A sender claims it by writing its own QP index to the slot, or to the header of the ring
 * if that is RC's or UC's, with one compare-and-swap (so a sender that dies leaves its name), fills
 * the slot, and publishes it. See ring.h. In the ring of a shared receive queue credits are only
 * claimed: the messages that use them arrive in a queue pair's own ring.
 */
#ifndef SHM_LAYOUT_H
#define SHM_LAYOUT_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/readers.h"
#include "wire/ib.h"

#define SHM_MAGIC   0x554d42454c524d41ull
#define SHM_VERSION 3

#define SHM_MAX_QPS       65536 /* an index is the low 16 bits of a QP number */
#define SHM_MAX_CQS       65536
#define SHM_MAX_FLOWS     (1u << 20)
#define SHM_QP_FLOWS      8    /* that every queue pair may have: reserved for it */
#define SHM_QP_MAX_FLOWS  4096 /* that one may have, if there are enough */
#define SHM_MAX_CHANNELS  65535
#define SHM_MAX_SRQS      65536
#define SHM_NO_CHANNEL    0xFFFFFFFF
#define SHM_CHANNEL_INDEX 0xFFFF /* the bits of a channel's number that are its index */
#define SHM_QP_INDEX(qpn) ((qpn)&0xFFFF)

#define SHM_GIDS    32 /* entries of the GID table of an Ethernet port */
#define SHM_IB_GIDS 16 /* entries of the GID table of an InfiniBand port */
#define SHM_PKEYS   16
#define SHM_INLINE  64 /* payload bytes that fit in the arrival itself */

/* ---- control part ---- */

/* The settings of a fabric; fixed when it starts unless a comment says "may change". */
struct shm_settings {
	uint32_t max_mcast_grp;
	uint32_t max_mcast_qp_attach;
	uint32_t max_total_mcast_qp_attach;
	uint32_t mtu;       /* enum ibv_mtu, of every link */
	uint32_t max_qp_wr; /* of either queue */
	uint32_t max_sge;   /* of either queue */
	uint32_t max_cqe;
	uint32_t sa_send_only;        /* flag: the SA supports send-only full members; may change */
	uint32_t block_loopback_host; /* flag: BLOCK_SELF_MCAST_LB blocks copies to the whole HCA,
	                                 not only to the QP */
	uint32_t mft_delay_ms;        /* how long after a join tables change, ms; may change */
	uint32_t mft_capacity;        /* multicast LIDs that a switch can forward */
	uint32_t sm_embedded;         /* flag: the embedded subnet manager runs */
	uint32_t sm_priority;         /* of the embedded subnet manager; may change */
	uint32_t sm_poll_ms; /* the interval in which it polls other subnet managers, ms; may change
	                      */
	uint32_t routing;    /* enum sm_routing */
	uint32_t lmc;        /* each HCA port has 2^lmc LIDs */
	uint32_t mlid_sharing;      /* flag: groups share MLIDs when all are in use; may change */
	uint32_t roce_attach_joins; /* flag: attaching on an Ethernet port joins the IP group */
	uint32_t roce_segments; /* flag: messages leave in larger pieces, which the device cuts */
	uint32_t keep_groups; /* flag: no program hears that it is to register again; may change */
	uint32_t host_cpus;   /* processors that a host with a network of its own may use; 0: all */
	uint32_t ipoib_mode;  /* of the hosts' interfaces. 0: datagram, 1: connected */
	uint32_t routing_lanes; /* that routing may give to paths */
	uint32_t adopt;         /* flag: processes adopt memory (hca/memory/adopt.h); may change */
	uint32_t arm_fires;     /* flag: arming a CQ fires its event for a completion that it holds,
	                         * unless that one's event was told already */
	uint32_t exact_sizes;   /* flag: queues are as large as asked for, and not rounded up */
	uint32_t ud_wait_us;    /* how long UD waits for a receive, us; may change */
	uint32_t roce_ecn;      /* flag: connections on RoCEv2 react to congestion */
	uint32_t
	        roce_adp_retrans; /* flag: they send again before the timeout is over; may change */
	uint32_t roce_rxe_flush;  /* flag: FLUSHes have the ICRC of Linux's rdma_rxe */
	uint32_t roce_selective_repeat; /* flag: they send again only what got lost; may change */
	uint32_t checked;               /* flag: programs are checked; may change */
	uint32_t weak;      /* what programs meet of a weak fabric: bits by enum base_weak_kind; may
	                     * change
	                     */
	uint32_t weak_seed; /* may change */
};
static_assert(sizeof(struct shm_settings) == 136, "layout");

#define SHM_DETOUR_QPNS 64

struct shm_control {
	uint64_t magic;
	uint32_t version;
	uint32_t n_hcas;
	uint32_t n_ports;
	uint32_t reserved0;
	uint64_t hcas_off, ports_off, qps_off, srqs_off, flows_off, lists_off, size;
	uint64_t data_size;
	char fabric[40];
	/* offsets in the data part, bytes */
	uint64_t senders_off, cqs_off, flow_counts_off, port_counts_off, roce_ports_off;
	uint64_t connections_off, wires_off, wire_busy_off;
	uint64_t cq_events_off;
	uint64_t rings_off, rings_size;
	uint64_t payloads_off, payloads_size;
	_Alignas(64) struct shm_settings settings;
	/*
	 * A robust futex that the daemon holds. When the daemon dies, the kernel sets
	 * FUTEX_OWNER_DIED here, and every process sees it without a system call.
	 */
	_Alignas(64) _Atomic uint32_t daemon_futex;
	_Atomic uint32_t daemon_stopped; /* 1: the daemon has ended the fabric */
	/* enum shm_detour: packets of connections that are made now go by the daemon, if the record
	 * of their flow says so, and if detour_qpns names one of their ends or nothing. Of
	 * datagrams the record alone says it. */
	_Atomic uint32_t detour;
	/* rules of faults that are about calls: of programs that open an HCA now */
	_Atomic uint32_t faulty_calls;
	_Atomic uint32_t detour_qpns[SHM_DETOUR_QPNS]; /* 0 behind the last one */
	/* CLOCK_MONOTONIC, ns: when the daemon last took packets on their detour off a socket */
	_Atomic uint64_t detour_ns;
};
static_assert(sizeof(struct shm_control) == 768, "layout");

struct shm_hca {
	char name[32]; /* the fabric's */
	char host[32];
	uint64_t node_guid;  /* host order */
	uint32_t first_port; /* index of port 1 in the port table */
	uint32_t n_ports;
	uint32_t host_index;
	uint32_t is_router; /* 1: its node is a router */
	uint64_t system_guid;
	char device[32]; /* its host's: HCAs of several hosts may have the same one */
	/* what it says that it is */
	uint32_t vendor_id; /* an OUI */
	uint32_t device_id;
	char type[16];
	char fw_ver[16];
	char board_id[16];
	uint32_t reserved[2];
};
static_assert(sizeof(struct shm_hca) == 192, "layout");

/* A program's name for the HCA: of a program on a host, or of one that sees the HCAs of all hosts,
 * @host_index -1. */
static inline const char *shm_hca_called(const struct shm_hca *h, int host_index)
{
	return host_index < 0 ? h->name : h->device;
}

/* A port of an HCA. Readers copy it and retry until seq is even and the same before and after. */
struct shm_port {
	_Atomic uint32_t seq;
	uint32_t hca;
	uint64_t guid;
	/* what senders read for each message is in the first cache line */
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
	uint8_t n_gids;     /* entries of gid[], empty ones too */
	uint32_t cap_flags;
	uint32_t ifindex; /* Ethernet: of the network device; 0: the device is gone */
	uint8_t n_pkeys;
	uint8_t has_issm_open; /* by a program, as far as the daemon knows: control/issm.h */
	union {
		uint16_t socket_round; /* Ethernet: changes when the port gets other sockets */
		uint16_t cap_flags2;   /* InfiniBand: PortInfo:CapabilityMask2 */
	};
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
	SHM_QP_COUNT_ARRIVALS = 8, /* its CQ may overrun: senders count what arrives */
	SHM_QP_STAMPS = 32,        /* its CQ has timestamps: senders write when a packet arrived */
	SHM_QP_COUNTS_REMOTE = 64, /* peers count RDMA that they do there: struct shm_remote */
	SHM_QP_ROCE = 16,          /* the sender of all that a port receives from the network */
};

/* A shared receive queue. Readers copy it as they do shm_port. */
struct shm_srq {
	_Atomic uint32_t seq;
	uint32_t live;
	uint64_t ring_off;    /* its credits; nothing arrives there */
	uint64_t entries_off; /* scatter entries: max_sge for each receive */
	uint16_t ring_gen;
	uint8_t ring_shift;
	uint8_t reserved;
	uint32_t max_sge;
	uint32_t reserved2[8];
};
static_assert(sizeof(struct shm_srq) == 64, "layout");

#define SHM_NO_READY_BIT 0xFFFF

/*
 * An XRC shared receive queue is a queue pair that no program sees: messages to XRC targets arrive
 * in its ring. Its number is that of the queue.
 */
#define SHM_QPT_XRC_SRQ 0xFE
/* Ored to that number where others have an index in the table of shared receive queues. */
#define SHM_XRC_SRQ (1u << 31)

/* A queue pair's record for senders. Readers copy it as they do shm_port. Of a number that lies
 * reserved, and is no queue pair yet, it tells the number and the memory; its flags are 0. */
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
	uint16_t ready_bit;  /* of its ring in the CQ's ready bitmap, or SHM_NO_READY_BIT */
	uint16_t pkey_index; /* of pkey in the port's table */
	uint32_t client;     /* the number of its owner's connection to the daemon */
	uint8_t type;        /* enum ibv_qp_type or SHM_QPT_XRC_SRQ */
	uint8_t state;       /* enum ibv_qp_state */
	uint8_t reserved2[14];
	/* of a connected queue pair: shm/connection.h */
	struct shm_qp_connection {
		uint64_t keys_off;     /* struct shm_keys of its process, in the data part */
		uint64_t requests_off; /* the requests of its send queue that wait, likewise */
		uint64_t entries_off;  /* the scatter entries of its posted receives, likewise */
		uint32_t dest_qpn;
		uint32_t access; /* enum ibv_access_flags: what a peer may do */
		uint32_t domain; /* the number of its protection domain in its process */
		int32_t pid;     /* of its process, as the daemon sees it */
		uint32_t send_cq;
		uint16_t request_bytes; /* of one request, scatter entries or inline data included
		                         */
		uint16_t max_recv_sge;
		uint8_t request_shift; /* log2 of the requests */
		uint8_t min_rnr_timer; /* as in ibv_qp_attr */
		uint8_t max_dest_rd_atomic;
		uint8_t reserved;
		uint32_t srq; /* 1 + its index: receives come from there; 0: it has its own */
		/* of an XRC target or shared receive queue: its domain; 0: it is another type */
		uint32_t xrcd;
		uint16_t dlid; /* of its path, by which it acknowledges, too */
		uint8_t reserved2[2];
	} connection;
};
static_assert(sizeof(struct shm_qp) == 128, "layout");
static_assert(offsetof(struct shm_qp, connection) == 64, "layout");

enum shm_detour {
	SHM_DETOUR_CLOSED,
	SHM_DETOUR_CAPTURES, /* open, but not for connections with other machines */
	SHM_DETOUR_RULES,    /* for all */
};

enum shm_flow_flags {
	SHM_FLOW_ROCE = 1,   /* a copy of each message goes to the network */
	SHM_FLOW_DETOUR = 2, /* messages go by the daemon (hca/link/detour.h) */
};

/*
 * A flow is what one queue pair sends to one destination. Its record is the result of the walk
 * through the switches: the list of the QP numbers that a multicast message reaches, or the port
 * that a unicast message reaches. The daemon rewrites it in place when the result changes. Senders
 * keep a copy, which is valid while seq is the same.
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

/*
 * A credit of a shared receive queue names a receive by its number. The bits above say which of the
 * receive's credits this is: a receive gets a new credit if the message that took the last one does
 * not come.
 */
#define SHM_RECEIVE_BITS 15
#define SHM_RECEIVE_USES ((1u << (32 - SHM_RECEIVE_BITS)) - 1) /* the last one is of none: */

/* class_flow of a position whose sender has taken no receive of the shared queue */
#define SHM_NO_RECEIVE UINT32_MAX

static inline uint32_t shm_receive(uint32_t number, uint32_t use)
{
	return use << SHM_RECEIVE_BITS | number;
}

static inline uint32_t shm_receive_number(uint32_t receive)
{
	return receive & ((1u << SHM_RECEIVE_BITS) - 1);
}

/* Payload memory: a message's part of it begins where a slot does, and takes up to four slots. */
#define SHM_PAYLOAD_SLOT 4096u /* bytes: the largest MTU */
#define SHM_PAYLOAD_MOST (4 * SHM_PAYLOAD_SLOT)

enum shm_arrival_flags {
	SHM_ARRIVAL_GRH = 1,
	SHM_ARRIVAL_IMM = 2,
	SHM_ARRIVAL_SOLICITED = 4,
	SHM_ARRIVAL_PAYLOAD = 8,   /* the payload is at payload_off, not in data */
	SHM_ARRIVAL_ETHERNET = 16, /* sent by an Ethernet port: the GRH is an IP header */
	SHM_ARRIVAL_ROCE = 32,     /* from the network, or another subnet: data holds the GRH */
	SHM_ARRIVAL_STAMPED = 128, /* its sender wrote when it arrived: shm_arrival_time() */
	SHM_ARRIVAL_TRACED = 64,   /* its sender logs each step (UMBEL_LOG=packet=trace) */
};

/*
 * One slot of a receive ring: two cache lines. The second one is used only by payloads of at most
 * SHM_INLINE bytes and by packets from the network. ring.h describes the state word. It is at the
 * start of every 128-byte unit of ring memory, in all uses of that memory, so that a late
 * compare-and-swap of a sender that slept finds a value that it does not expect.
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
	uint8_t more; /* a hint: how many more packets of the same list follow */
	/* between connected queue pairs: */
	uint8_t operation; /* enum shm_operation */
	uint8_t status;    /* enum ibv_wc_status of the receive */
	union {
		uint64_t payload_off; /* in the data part; with SHM_ARRIVAL_PAYLOAD */
		uint64_t time_ns;     /* shm_arrival_time() without it */
	};
	union {
		struct ib_gid dgid;
		/* of a connected queue pair: the receive that was posted; its owner writes it. If
		 * it has one scatter entry, operation is 1, and this is it. Else operation is 0,
		 * and length says how many there are (struct shm_qp_connection.entries_off). In the
		 * ring of a shared receive queue, imm is the receive (shm_receive()); in an
		 * arrival that uses it, class_flow is. */
		struct {
			uint64_t addr;
			uint32_t length;
			uint32_t lkey;
		} receive;
	};
	union {
		uint8_t data[SHM_INLINE];
		struct {
			uint8_t roce_grh[SHM_INLINE - 8];
			uint64_t payload_time_ns; /* shm_arrival_time() with SHM_ARRIVAL_PAYLOAD */
		};
	};
};
static_assert(sizeof(struct shm_arrival) == 128, "layout");
static_assert(offsetof(struct shm_arrival, data) == 64, "layout");

/* When the packet arrived, CLOCK_MONOTONIC in nanoseconds; with SHM_ARRIVAL_STAMPED. */
static inline uint64_t *shm_arrival_time(struct shm_arrival *a)
{
	return a->flags & SHM_ARRIVAL_PAYLOAD ? &a->payload_time_ns : &a->time_ns;
}

/* The header of a ring, before its slots. Its first 64 bits never look like a free slot. */
struct shm_ring {
	/* of RC and UC: the newest position that was claimed, as the state of its slot
	 * when it is claimed; else SHM_RING_MAGIC. Senders write it, the owner withdraws by it */
	_Atomic uint64_t claim;
	_Atomic uint32_t tail;        /* a hint: positions below were claimed; senders write */
	_Atomic uint32_t posted_seen; /* a hint: posted is at least this; senders write */
	/* the owner writes these two rarely, and senders read them with each message: */
	/* of a shared receive queue: an event is due once fewer credits are left; 0: none is */
	_Atomic uint32_t limit;
	/* its credits are being moved to another ring, or from one: a sender that finds none looks
	 * again */
	_Atomic uint32_t moving;
	/* positions below are credits; owner writes */
	_Alignas(64) _Atomic uint32_t posted;
	_Atomic uint32_t consumed; /* positions below have been consumed; owner writes */
	uint32_t gen;
	uint32_t qpn;
	/* a request waits for a receive (shm/connection.h), or a peer on another machine may */
	_Atomic uint32_t waited_for;
	_Atomic uint32_t limit_reached; /* fewer credits than the limit: the event can be sent */
	/* the owner has made a claim void whose sender lives: that one may still write there */
	_Atomic uint32_t taken;
};
static_assert(sizeof(struct shm_ring) == 128, "layout");
static_assert(!offsetof(struct shm_ring, claim), "layout"); /* where a slot has its state */

enum shm_cq_arm { SHM_CQ_IDLE, SHM_CQ_ARMED_SOLICITED, SHM_CQ_ARMED };
#define SHM_CQ_ARM_BITS 2

static inline enum shm_cq_arm shm_cq_arm(uint32_t arm)
{
	return (enum shm_cq_arm)(arm & ((1u << SHM_CQ_ARM_BITS) - 1));
}

#define SHM_CQ_READY_BITS 1024

/* The part of a completion queue that senders use; written by them, its owner and the daemon. */
struct shm_cq {
	/* enum shm_cq_arm, and above SHM_CQ_ARM_BITS which arming it is; the sender that wakes the
	 * owner sets all of it to IDLE */
	_Atomic uint32_t arm;
	/* the completion channel to wake; owner writes it before it arms, and when it destroys the
	 * queue SHM_NO_CHANNEL */
	_Atomic uint32_t channel;
	_Atomic uint32_t arrived; /* counted arrivals (SHM_QP_COUNT_ARRIVALS); senders add */
	_Atomic uint32_t limit;   /* more arrivals than this are an overrun; owner advances it */
	_Atomic uint32_t overrun;
	_Atomic uint32_t
	        notified; /* completion events that ibv_get_cq_event() has not returned yet */
	uint32_t gen;
	/* armed for solicited messages: one of more bytes, GRH included, fails some receive that is
	 * posted, so it wakes, too; owner writes it before it arms and posts */
	_Atomic uint32_t fails_above;
	/* of ibv_modify_cq(): completions that fire the event together, at most 65,535, and above
	 * these 16 bits microseconds after which fewer do; 0: each does at once */
	_Atomic uint32_t moderation;
	_Atomic uint32_t held_back; /* completions that the armed CQ's event waits with */
	/* threads that are about to fire its event, 16 bits, and above these how often such threads
	 * were forgotten (shm_cq_forget_wakers()) */
	_Atomic uint32_t waking;
	_Atomic uint32_t cqe;         /* how many completions it holds; owner writes */
	_Atomic uint64_t notified_ns; /* CLOCK_MONOTONIC: when the first of these events came */
	uint32_t reserved[2];
	_Atomic uint64_t
	        ready[SHM_CQ_READY_BITS / 64]; /* bits of the rings that may have arrivals */
};
static_assert(sizeof(struct shm_cq) == 192, "layout");

/* A bit for each completion queue: the queue may have events that its channel has not returned
 * yet. */
struct shm_cq_events {
	_Atomic uint64_t bits;
};

/* @events: the bits of this queue and its neighbours. */
static inline void shm_cq_events_set(struct shm_cq_events *events, uint32_t cq)
{
	/* seq_cst: behind `notified`; pairs with clear_bit() in due.c of the HCA */
	atomic_fetch_or_explicit(&events->bits, 1ull << cq % 64, memory_order_seq_cst);
}

/*
 * Whether a sender is using its payload memory. A sender that posts a message which needs a payload
 * slot moves FREE to IN_USE, by a compare-and-swap, and stores FREE when its call ends. The daemon
 * moves FREE to REVOKED when others need the memory: it belongs to the sender no more. The sender
 * finds that out when its own swap fails. It forgets its slots, stores IN_USE, and asks for others.
 *
 * A sender that dies, in whatever state, loses its memory like all that it had.
 */
enum shm_lease { SHM_LEASE_FREE, SHM_LEASE_IN_USE, SHM_LEASE_REVOKED };

/*
 * The QP number that a sending QP is delivering to; 0: none. The daemon reads it after the sender's
 * death. A connected one has another number above its 24 bits each time, by which others see that a
 * delivery has ended (hca_connections_wait()). One writer: the thread that posts on the QP.
 *
 * A number that lies reserved for a process (CONTROL_RESERVE_QPS) has a ticket, another one each
 * time. Two may move it to 0, by a compare-and-swap, and the first one has the number: the process,
 * which makes a queue pair of it, or the daemon, which takes it back.
 */
struct shm_sender {
	_Atomic uint32_t target_qpn;
	_Atomic uint32_t payload_lease; /* enum shm_lease */
	_Atomic uint64_t ticket;
	/* the receive of a shared receive queue (shm_receive()) that it has taken for its newest
	 * claim, above 32 bits, and the position of that; or SHM_TAKING_NONE */
	_Atomic uint64_t taking;
	uint32_t reserved[10];
};
static_assert(sizeof(struct shm_sender) == 64, "layout");

#define SHM_TAKING_NONE UINT64_MAX

/* The packets that were sent on a flow. One writer: the thread that posts on its QP. The daemon
 * reads it. */
struct shm_flow_count {
	_Atomic uint64_t packets;
	_Atomic uint64_t bytes; /* payload */
	/* that came back: the responses to READs and atomic operations */
	_Atomic uint64_t back_packets, back_bytes;
	uint64_t reserved[4];
};
static_assert(sizeof(struct shm_flow_count) == 64, "layout");

/* The last packet with a bad key at a port. If two came at once, it may be a mixture of both. */
struct shm_bad_key {
	_Atomic uint64_t ends; /* SLID << 48 | QPN of the sender << 24 | QPN of the receiver */
	_Atomic uint64_t key;  /* SL << 32 | P_Key or Q_Key */
};

/* Errors at a port. The process that notices one adds it atomically; errors are rare. */
struct shm_port_count {
	_Atomic uint64_t no_receive; /* no receive was posted: the message is lost */
	_Atomic uint64_t bad_qkey;
	_Atomic uint64_t bad_pkey;
	_Atomic uint64_t no_qp; /* unicast to a QP that does not exist or does not receive */
	_Atomic uint64_t xmit_discards; /* larger than the path's MTU, or the port is not active */
	_Atomic uint64_t no_payload_slot; /* the sender ran out of payload memory */
	_Atomic uint64_t not_mcast_qpn;   /* sent to a group, but not to QP number 0xFFFFFF */
	_Atomic uint64_t xmit_mtu;        /* those of xmit_discards that were larger */
	struct shm_bad_key last_bad_pkey, last_bad_qkey;
	_Atomic uint64_t uc_refused;    /* requests of UC that a responder of the port refused */
	_Atomic uint64_t receive_waits; /* times that a sender waited for a receive (ud_wait_us) */
	_Atomic uint64_t mcast_by_lid;  /* sent to a group's GID, by a LID that is no group's */
	uint64_t reserved2;
};
static_assert(sizeof(struct shm_port_count) == 128, "layout");

#define SHM_ROCE_BAD 8

/*
 * Packets that an Ethernet port receives from the network are received by one process for all
 * processes of the host: by one that polls, or if none does, by the daemon (hca/link/link_roce.h).
 * This record says whose turn it is, and counts. Several processes write it.
 */
struct shm_roce_port {
	/* the receiver now: microseconds << 16 | index of its QP for the network; 0: nobody */
	_Atomic uint64_t holder;
	_Atomic uint64_t polled_ns; /* when a process last polled that will poll again soon */
	/* 1: the daemon leaves the sockets to the processes that poll; the last one wakes it */
	_Atomic uint32_t daemon_away;
	_Atomic uint32_t lost[2]; /* datagrams that the sockets, IPv4 and IPv6, say they dropped */
	uint32_t reserved[9];
	/* counts: atomic additions, as any process may receive */
	_Atomic uint64_t packets, bytes;    /* received and valid */
	_Atomic uint64_t bad[SHM_ROCE_BAD]; /* received and invalid, by enum wire_roce_status */
	_Atomic uint64_t own;               /* our own messages to groups that came back */
	_Atomic uint64_t no_member;         /* to a group to which no QP is attached */
	_Atomic uint64_t overflow;          /* dropped because a socket was full */
	_Atomic uint64_t unreachable;       /* sent, but there is no route */
	_Atomic uint64_t overtakes; /* turns that were taken from a process which had stalled, or
	                               that ended with one which had died */
	_Atomic uint64_t bad_mad;   /* to QP1, but no MAD */
	/* of connections with other machines, by the names that HCAs have for them */
	_Atomic uint64_t duplicate_request; /* requests that came again */
	_Atomic uint64_t out_of_sequence;   /* requests that came before an earlier one */
	_Atomic uint64_t packet_seq_err;    /* NAKs of the sequence that came */
	_Atomic uint64_t
	        implied_nak_seq_err; /* responses that showed that an earlier one is lost */
	_Atomic uint64_t local_ack_timeout_err; /* times that nothing came for the timeout */
	_Atomic uint64_t rnr_nak_retry_err;     /* RNR NAKs that came */
	/* congestion notifications that came, and slowed a queue pair down, or did not */
	_Atomic uint64_t rp_cnp_handled, rp_cnp_ignored;
	_Atomic uint64_t np_ecn_marked_roce_packets; /* that came through congestion */
	_Atomic uint64_t np_cnp_sent;                /* notifications of that */
	/* bool: queue pairs of the port have been connected to other machines */
	_Atomic uint32_t has_wires;
	uint32_t reserved2[11];
	struct shm_readers readers;
	/* the GID that each place of the port's table has, or had last: the source of messages that
	 * left there before it went. The daemon writes it */
	struct ib_gid source[SHM_GIDS];
};
static_assert(sizeof(struct shm_roce_port) == 1152, "layout");
static_assert(offsetof(struct shm_roce_port, packets) == 64, "layout");

/*
 * How many address handles and queue pairs of a process send from each place in the GID table of an
 * Ethernet port. The process counts before it looks which GID is there; the daemon takes a GID away
 * before it looks who counts, and gives no place to another GID while somebody does. Both with a
 * fence between, so one of them sees the other.
 */
struct shm_gid_users {
	_Atomic uint32_t n[SHM_GIDS];
};

/* The start of the data part. magic and version help a reader of a dump; no code relies on them. */
struct shm_data {
	uint64_t magic;
	uint32_t version;
	_Atomic uint32_t ticking; /* the daemon looks at the times of connections (shm/packets.h) */
	_Atomic uint64_t bad_keys; /* packets with a bad key at all ports; added after the port's
	                              own counters */
};

/* Bytes of a ring with (1 << @shift) positions. */
static inline uint64_t shm_ring_bytes(unsigned shift)
{
	return sizeof(struct shm_ring) + (sizeof(struct shm_arrival) << shift);
}

#endif
