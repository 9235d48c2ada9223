/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process and its fabric: the connection to the daemon, and the shared memory that came by it.
 * Both end once the fabric has, or the process has forked, and no context is left. The structure
 * itself is never freed: adopted memory knows its owner by the address.
 *
 * Thread-safe. Functions return 0 or -errno unless they say otherwise.
 */
#ifndef HCA_PROCESS_H
#define HCA_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/hash.h"
#include "base/lock.h"
#include "base/timer.h"
#include "control/client.h"
#include "hca/process/mr_table.h"
#include "hca/process/reserve.h"
#include "hca/process/wake.h"
#include "shm/region.h"

struct control_detour;
struct hca_ah;
struct hca_command_file;
struct hca_flow;
struct hca_hearer;
struct hca_process;
struct hca_weak;

/* Waits until the queue pairs @users (shm_key_join()) do not use a key that is gone. */
typedef void hca_wait_for_users(struct hca_process *p, const uint32_t users[SHM_KEY_USERS]);

/* Its socket for packets that go by the daemon (hca/link/detour.h). */
struct hca_process_detour {
	struct base_lock lock;
	_Atomic int fd; /* 1 + the descriptor; 0: none was needed */
	/* of the daemon itself: takes a packet, as if it had come by the socket */
	void (*take)(void *arg, const struct control_detour *packet, const void *payload);
	void *arg;
};

/* The neighbours that answer on Ethernet: hca/queue/neighbour.h. */
#define HCA_NEIGHBOURS 64
struct hca_neighbour {
	struct ib_gid sgid, dgid;
	uint32_t hca;
	uint64_t until_ns; /* so long that holds */
};
struct hca_neighbours {
	struct base_lock lock;
	struct hca_neighbour known[HCA_NEIGHBOURS]; /* by a hash */
};

struct hca_process {
	pid_t pid;
	unsigned refs; /* contexts and calls; under the registry's lock */
	struct control_client *control;
	struct shm_region region;
	int host_index; /* -1: all hosts */
	pthread_mutex_t device_lock;
	void *devices; /* api/verbs keeps its list of devices here */
	unsigned n_devices;
	pthread_mutex_t file_lock;
	LIST_HEAD(, hca_command_file) files; /* of contexts, under file_lock: command_file.h */
	uint32_t n_domains;                  /* that there ever were, under file_lock */
	bool must_not_block;                 /* it is the daemon */
	bool is_watched;                 /* its program is checked: none of its memory is adopted */
	const struct hca_hearer *hearer; /* hears of its mistakes then; or NULL: hearer.h */
	/* bytes of shared memory that it was given, and whether memory is limited: process.c */
	_Atomic uint64_t taken_bytes;
	_Atomic uint8_t limited; /* enum hca_limited */
	/* what was left of these when it was looked at, so long that holds, and how many bytes
	 * of it may be taken meanwhile: hca_memory_is_left() */
	_Atomic uint64_t left_bytes, left_until_ns, left_to_take;
	struct hca_wakes wakes;
	struct hca_mr_table mrs;
	hca_wait_for_users *wait_for_users; /* NULL: no keys are published */
	struct hca_reserve reserve;
	pthread_mutex_t memory_lock;
	struct base_hash memories; /* struct hca_memory: of peers, under memory_lock */
	struct base_lock cqs_lock;
	LIST_HEAD(, hca_cq) cqs; /* all, under that */
	struct base_lock connected_lock;
	LIST_HEAD(, hca_connected_qp) connected; /* all connected queue pairs, under that */
	struct base_lock waiting_lock;
	TAILQ_HEAD(, hca_qp) waiting; /* whose requests wait, under that */
	struct base_timers waits;     /* the same on a weak fabric, under that (weak_due.h) */
	_Atomic uint32_t n_waiting;
	_Atomic uint32_t armed_cq; /* the completion queue that was armed last */
	struct base_lock flow_lock;
	SLIST_HEAD(, hca_flow) free_flows; /* used again for flows, never freed */
	uint64_t flow_uses;                /* the last struct hca_flow.use */
	struct hca_process_detour detour;
	struct base_lock ah_lock;
	/* used again too, so that a destroyed handle can be recognized */
	STAILQ_HEAD(, hca_ah) free_ahs;
	uint64_t ah_serials; /* the last struct hca_ah.serial */
	struct hca_neighbours neighbours;
	struct hca_weak *weak; /* NULL: its fabric is not weak (weak.h) */
};

/* The process's connection, with a reference; connects if there is none. NULL: no fabric (*@error
 * says why). */
struct hca_process *hca_process_get(int *error);
void hca_process_put(struct hca_process *p);

/*
 * The daemon as a process of its own fabric: it sends requests by @control, the shared memory is
 * @region. It has no devices; it delivers what it receives from the network. NULL: no memory.
 */
struct hca_process *hca_process_local(struct control_client *control,
                                      const struct shm_region *region);
void hca_process_local_free(struct hca_process *p);

/* How long anybody waits for a process that may be stopped, ns. */
#define HCA_STOPPED_WAIT_NS 1000000000ull

/* Whether the daemon is gone. One load. */
static inline bool hca_process_gone(struct hca_process *p)
{
	return base_unlikely(shm_daemon_gone(&p->region));
}

/* Sends a request whose reply is a status only. -EIO: the daemon is gone. */
int hca_request(struct hca_process *p, enum control_type type, const void *request, uint32_t bytes);

/* The same, but does not wait until the daemon has served it, before later requests. */
int hca_post(struct hca_process *p, enum control_type type, const void *request, uint32_t bytes);

/*
 * A request for an object that has shared memory. The daemon may be about to free what somebody
 * had: this asks until it has, and waits as long. Then as control_call(). -ENOMEM also if no memory
 * is left for this process.
 */
int hca_ask_memory(struct hca_process *p, const struct control_call *call);

/* Whether there is memory for @bytes more (base/memory.h). */
bool hca_memory_is_left(struct hca_process *p, uint64_t bytes);

/*
 * Maps the @bytes at @off in the data part, which the daemon gave to this process. Where memory is
 * limited, and the process has more than a little, they are there from then on, charged to its
 * cgroup: the kernel ends nobody for writing there first. NULL: they cannot be had.
 */
void *hca_take_memory(struct hca_process *p, uint64_t off, uint64_t bytes);

/* How large a queue is for which @asked is asked: a power of two, as on hardware, but not more than
 * the device has (@most); just that by the setting exact_sizes. */
uint32_t hca_queue_size(const struct hca_process *p, uint32_t asked, uint32_t most);

/* Adds 1 to a counter of port @port (index), which is @field bytes into struct shm_port_count,
 * and logs its @name, and what it means. */
void hca_count(struct hca_process *p, uint32_t port, size_t field, const char *name);

#define HCA_COUNT(p, port, what) hca_count(p, port, offsetof(struct shm_port_count, what), #what)

#endif
