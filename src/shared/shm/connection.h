/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records that connected queue pairs (RC, UC) share, all in the data part.
 *
 * Mostly a request is carried out while it is posted, by the thread that posts it, and leaves no
 * trace here. A request that has to wait lies in a queue in shared memory, so that the responder
 * can go on with it as soon as it has removed the obstacle: as soon as it has posted a receive. A
 * thread that works on the queue holds its lock. The lock names the holder, so that the daemon can
 * release the lock of a dead process.
 *
 * The keys of a process's memory regions and windows lie here as well: the process of the other
 * queue pair looks them up. A process writes its own keys. These name its own memory only, so wrong
 * keys harm no other process (shm/key.h).
 */
#ifndef SHM_CONNECTION_H
#define SHM_CONNECTION_H

#include <stdbool.h>

#include "shm/layout.h"

/* RDMA READs or WRITEs that peers have carried out, if the queue pair counts them
 * (SHM_QP_COUNTS_REMOTE). They only grow while a queue pair has the number. */
struct shm_remote {
	_Atomic uint64_t requests, bytes, errors;
};

/* The state of a queue pair's connection: how far its send queue is. By queue pair index. */
struct shm_connection {
	/* number of a queue pair whose process works on the queue, and above its 24 bits which
	 * thread does; 0: none. It is one of the two; or, if they exchange packets, that by
	 * which a process receives from the network (hca/transport/packet_connection.h) */
	_Atomic uint32_t lock;
	_Atomic uint32_t head; /* requests below are done; the lock's holder writes it */
	_Atomic uint32_t tail; /* requests below were posted; the owner writes it */
	_Atomic uint32_t flow; /* by which they go */
	/* not 0: the first request has failed, and nobody works on the queue any more
	 * (shm_failed()) */
	_Atomic uint32_t failed;
	/* number of the queue pair whose requests this one's process is carrying out, and above its
	 * 24 bits which thread does; 0: none. The holder of that one's lock writes it. */
	_Atomic uint32_t helps;
	/* asynchronous events of the queue pair: events.h */
	_Atomic uint32_t events;
	/* 1: messages that it has sent may lie unplaced in the ring where it sends, none of them
	 * before unplaced_from (hca/transport/place.h). The thread that carries out its requests
	 * writes both. */
	_Atomic uint32_t unplaced, unplaced_from;
	/* 1 + the position there, modulo 2^30, of the one that its own thread is placing; 0: none
	 */
	_Atomic uint32_t placing;
	/* UD: the receiver that senders have waited for in vain: QP number << 32 | posted of its
	 * ring then; 0: nobody. Senders write it. */
	_Atomic uint64_t given_up;
	/* RC, UC: how the owner exchanges requests with its peer: number of that << 8 | SHM_BY_;
	 * 0: it is not connected */
	_Atomic uint32_t chosen;
	/* the PSNs that its own requests begin with, and its peer's: RTS and RTR set them.
	 * SHM_PSN_ANY once both have matched, as nobody counts in memory */
	_Atomic uint32_t sq_psn, rq_psn;
	_Atomic uint32_t path_mtu; /* enum ibv_mtu; RTR sets it */
	/*
	 * enum ibv_event_type: what the peer's process found wrong with a request; or
	 * SHM_ERROR_RECEIVE; 0: nothing. The owner moves its queue pair to ERR when it sees that.
	 * SHM_ERROR_ENDED: the owner has moved it there; so nobody has to wait for its record.
	 */
	_Alignas(64) _Atomic uint32_t error;
	/* it is in RTS, or was told that the first message came before */
	_Atomic uint32_t established;
	struct shm_remote remote_reads, remote_writes;
	/* of any type: 1 + enum ibv_qp_state, and the port, for tools that show it; the record has
	 * only what senders must know. 0: the record's. The owner writes both. */
	_Atomic uint16_t state, port_num;
	/* requests below have completed as far as their owner knows, which writes it: nobody needs
	 * to tell it */
	_Atomic uint32_t harvested;
};
static_assert(sizeof(struct shm_connection) == 128, "layout");

#define SHM_PSN_ANY UINT32_MAX

#define SHM_BY_MEMORY 1
#define SHM_BY_DETOUR 2 /* as packets that go by the daemon */
#define SHM_BY_MASK   0x7F
/* beside SHM_BY_MEMORY: the peer does not go on with its requests */
#define SHM_BY_ITSELF 0x80

#define SHM_ERROR_RECEIVE 256 /* a receive has failed */
#define SHM_ERROR_ENDED   257 /* it is in ERR */

/* Value of `failed`: the request at @position has failed with @status, an enum ibv_wc_status. */
static inline uint32_t shm_failed(uint32_t position, uint32_t status)
{
	return position << 8 | (status & 0xFF);
}

/* As struct ibv_sge. */
struct shm_entry {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

/* A request of a send queue. Its scatter entries or its inline data follow. */
struct shm_request {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint64_t compare_add, swap;
	uint32_t rkey;
	uint32_t imm; /* as given; or the key to invalidate */
	uint32_t length;
	uint16_t n_entries;
	uint8_t opcode;  /* enum ibv_wr_opcode */
	uint8_t flags;   /* enum ibv_send_flags */
	uint32_t access; /* of a window that it binds */
	uint32_t srqn;   /* XRC: where the target receives it */
	bool quiet;      /* it has no completion unless it fails */
	uint8_t reserved[7];
};
static_assert(sizeof(struct shm_request) == 64, "layout");

/* Arrivals of a connected queue pair. */
enum shm_operation {
	SHM_OPERATION_SEND,   /* the message is in the arrival, or in payload memory */
	SHM_OPERATION_PLACED, /* a SEND whose message lies in the receive's memory already */
	SHM_OPERATION_WRITE,  /* an RDMA WRITE with immediate data */
	/* ORed to SHM_OPERATION_SEND: the receive has other than one entry. There are as many as
	 * receive.length says, at receive.addr in the data part */
	SHM_OPERATION_MANY = 0x40,
	SHM_OPERATION_INVALIDATE = 0x80, /* ORed: it has invalidated a key, which is in imm */
};

/* Whether the message in the arrival is yet to be copied to the receive's memory. */
static inline bool shm_arrival_is_unplaced(const struct shm_arrival *a)
{
	return (a->operation & ~(SHM_OPERATION_INVALIDATE | SHM_OPERATION_MANY)) ==
	       SHM_OPERATION_SEND;
}

/* ---- keys ---- */

#define SHM_KEY_CHUNK  1024
#define SHM_KEY_CHUNKS 1024

/* Beside those of enum ibv_access_flags that say what may be done. */
enum shm_key_access {
	SHM_KEY_WINDOW = 1 << 28,   /* for tools that show it */
	SHM_KEY_MAPPABLE = 1 << 29, /* the memory lies in a memory object: shm_key_object() */
	SHM_KEY_NULL = 1 << 30,     /* reads as zeros, discards what is written */
};

#define SHM_KEY_OBJECT_SHIFT 16
#define SHM_KEY_OBJECT_MASK  (0xFFFu << SHM_KEY_OBJECT_SHIFT)

/* The index of a mappable key's memory object in the table of its process. */
static inline uint32_t shm_key_object(uint32_t access)
{
	return (access & SHM_KEY_OBJECT_MASK) >> SHM_KEY_OBJECT_SHIFT;
}

#define SHM_KEY_USERS 5
#define SHM_KEY_MANY  UINT32_MAX /* as the last user: others may use it, too */

/*
 * A region or window that can be named by a key. Its owner clears the key before it changes the
 * rest; a reader compares the key before and after it has copied the rest. A process joins a key
 * before it uses it (shm_key_join()), so that the owner knows whom to wait for when it removes the
 * key.
 */
struct shm_key {
	_Atomic uint32_t key; /* 0: none */
	_Atomic uint32_t access;
	_Atomic uint64_t iova;   /* what requests call the first byte */
	_Atomic uint64_t length; /* bytes */
	_Atomic uint64_t start;  /* where it is in its process */
	_Atomic uint32_t domain; /* that may use it */
	_Atomic uint32_t qpn;    /* not 0: that queue pair alone may use it */
	_Atomic uint32_t serial; /* another one each time that a key is written here */
	/* numbers of the queue pairs whose processes use it; 0: none */
	_Atomic uint32_t users[SHM_KEY_USERS];
};
static_assert(sizeof(struct shm_key) == 64, "layout");

#define SHM_OBJECTS 256

enum shm_object_kind {
	SHM_OBJECT_ADOPTED, /* in the file of adopted memory (hca/memory/adopt.h) */
	SHM_OBJECT_SYSV,    /* a System V segment, which @id names in IPC namespace @space */
};

/*
 * A memory object: memory of the process that another process can map. Its owner writes it before
 * it publishes a key of memory there, and changes it when nobody can be using such keys any more.
 */
struct shm_object {
	_Atomic uint32_t serial; /* another one each time that an object is written here */
	uint32_t kind;
	uint64_t from, to; /* its addresses in the process */
	uint64_t offset;   /* of @from, in the file or segment */
	uint64_t space;
	uint32_t id;
	uint32_t reserved;
};
static_assert(sizeof(struct shm_object) == 48, "layout");

#define SHM_ATOMIC_LOCKS 16
/*
 * The bits above the queue pair's number, which are no thread's number. On a weak fabric its
 * process has read the word, and will write what becomes of it. Nobody waits for that: another
 * operation takes the lock, and the one that had begun is done anew.
 */
#define SHM_ATOMIC_BEGUN (0xFFu << 24)

/* The keys of a process: chunks of SHM_KEY_CHUNK, by the upper 24 bits of a key. */
struct shm_keys {
	/* The address and value of a word in this process's memory: a peer that reads that value at
	 * that address reaches the right memory. */
	uint64_t witness_addr, witness;
	uint32_t reserved3;
	uint32_t reserved;
	/* The address of a byte where no other address space has anything: a peer that reaches the
	 * byte reaches the right process (hca/memory/memory.c). 0: there is none. */
	uint64_t guard;
	uint64_t reserved4;
	/* For tools that show them: how many keys there are, and a number above the index of every
	 * key. The owner writes both. */
	_Atomic uint32_t n_keys, key_end;
	uint32_t reserved2[4];
	_Atomic uint64_t chunk_off[SHM_KEY_CHUNKS];
	struct shm_object objects[SHM_OBJECTS];
	/* locks of atomic operations, by the address of the word: each names the queue pair whose
	 * process carries one out, or with SHM_ATOMIC_BEGUN one that has begun; 0: none does */
	_Atomic uint32_t atomics[SHM_ATOMIC_LOCKS];
};
static_assert(offsetof(struct shm_keys, chunk_off) == 64, "layout");

#endif
