/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric behind the files: its shared memory, and requests for what is not there. A process
 * that never looks at RDMA devices connects to nothing, and one that does keeps no descriptor: it
 * connects for each request, so a program that closes descriptors it did not open loses nothing.
 *
 * Thread-safe, and safe after fork(): no locks.
 */
#ifndef SYSFS_SESSION_H
#define SYSFS_SESSION_H

#include "control/message.h"
#include "shm/region.h"

struct sysfs_session {
	struct shm_region region;
	int host_index; /* -1: all hosts */
};

/* The session of this process. NULL: there is no fabric, or it has ended. Never freed. */
const struct sysfs_session *sysfs_session(void);

/* The process's name of the HCA. */
const char *sysfs_session_hca(const struct sysfs_session *s, uint32_t hca);

/* Whether the process may see that HCA. */
bool sysfs_session_sees(const struct sysfs_session *s, uint32_t hca);

/* Gets the facts about a port (an index) that the daemon alone knows. 0 or -errno. */
int sysfs_session_describe(uint32_t port, struct control_describe_port_reply *reply);

/* Calls @each for each object of the HCA (an index). 0 or -errno. */
typedef void sysfs_each_object(void *arg, const struct control_object *o);
int sysfs_session_objects(uint32_t hca, enum control_object_kind kind, sysfs_each_object *each,
                          void *arg);

/* The path of the FIFO that says, while it is open, that there is a subnet manager at the port.
 * 0 or -errno. */
int sysfs_session_issm(uint32_t port, char *path, size_t room);

/* Returns when the daemon has seen whether it is open. 0 or -errno. */
int sysfs_session_look_at_issm(uint32_t port);

/* Reads a port (an index) for its capabilities: as control/issm.h. */
void sysfs_session_read_port(const struct sysfs_session *s, uint32_t port, struct shm_port *copy);

#endif
