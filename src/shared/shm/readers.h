/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns to READ by an Ethernet port. Only the requests limit the responses to RDMA READs, and the
 * responses to all queue pairs of a port come to one socket. If they are more than it holds, they
 * get lost, are asked for again, and get lost again, until a queue pair has no retry left. So only
 * some queue pairs have a long READ under way at one time: half as many as before when the socket
 * has dropped datagrams, and slowly more while it does not.
 *
 * A turn is a place in this record, in shared memory. A queue pair keeps its turn while it asks for
 * more. After SHM_READERS_PARTS it leaves the turn to queue pairs that wait. A place is free again
 * when its queue pair has asked for nothing for SHM_READERS_MS: the peer is slow or dead, or the
 * process is, and nobody waits for that. Any program can write here: the worst is that too many
 * READ, or few for that long.
 */
#ifndef SHM_READERS_H
#define SHM_READERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SHM_READERS       32
#define SHM_READERS_LEAST 2
#define SHM_READERS_PARTS \
	16 /* of a READ, in one turn while others wait: a MiB with an MTU of 1024 */
#define SHM_READERS_MS 50

struct shm_readers {
	_Atomic uint32_t most;    /* places that are in use; 0: as many as at the start */
	_Atomic uint32_t parts;   /* that were asked for, ever */
	_Atomic uint32_t grew;    /* parts when most changed last */
	_Atomic uint32_t shrank;  /* parts when it became less; 0: it never did */
	_Atomic uint32_t refused; /* times that there was no place */
	uint32_t reserved[11];
	/* the queue pair number and, from bit 32 on, when it has asked last, ms; 0: nobody's */
	_Atomic uint64_t place[SHM_READERS];
};

/* A queue pair's turn, of which only it knows. */
struct shm_reader {
	uint32_t place;   /* the first is 1; 0: none */
	uint32_t parts;   /* asked for in this turn */
	uint32_t refused; /* shm_readers.refused when it began */
};

/* Queue pair @qpn wants to ask for a part of a READ, at @ms. False: it has to wait. */
bool shm_readers_ask(struct shm_readers *r, struct shm_reader *reader, uint32_t qpn, uint32_t ms);

/* It has nothing under way any more. */
void shm_readers_leave(struct shm_readers *r, struct shm_reader *reader, uint32_t qpn);

/* Whether there is a place for one that waits. */
bool shm_readers_have_room(const struct shm_readers *r, uint32_t ms);

/* The socket has dropped datagrams. */
void shm_readers_lose(struct shm_readers *r);

#endif
