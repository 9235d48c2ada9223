/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part that the files of this folder share: the process's place in its fabric, and the ports
 * that it has open. The library keeps little: agents, requests and their timeouts are the daemon's,
 * as they are the kernel's with the original.
 *
 * Thread safety is that of the original: any thread may call anything.
 */
#ifndef API_UMAD_UMAD_H
#define API_UMAD_UMAD_H

#include <infiniband/umad.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/fast.h"
#include "control/client.h"
#include "control/umad_message.h"
#include "shm/region.h"

#define UMAD_MAD_BYTES 256

struct umad_fabric {
	struct control_client *client;
	struct shm_region region;
	int host_index; /* -1: all */
	pid_t pid;
};

/* A port that is open; a program knows it by its descriptor. */
struct umad_open {
	LIST_ENTRY(umad_open) entry;
	int fd;
	uint32_t handle;
	uint8_t port_num;
	struct {
		bool registered;
		bool reassembles; /* RMPP is the daemon's business */
	} agent[UMAD_CA_MAX_AGENTS];
};

/* ---- session.c ---- */

/*
 * The library's lock; no thread is cancelled while it holds it. umad_fabric_get() is to be
 * called with it held: connects if need be. 0 or -errno, -ENODEV: there is no fabric.
 */
void umad_lock(int *cancel_state);
void umad_unlock(int cancel_state);
int umad_fabric_get(struct umad_fabric **f);

/* A request of role umad that brings @reply. Takes the lock. 0 or -errno. */
int umad_call(enum control_umad_type type, const void *request, uint32_t bytes, void *reply,
              uint32_t reply_bytes);

/* Open ports, with the lock held. The one with that descriptor, or NULL. */
struct umad_open *umad_open_find(int fd);
void umad_open_add(struct umad_open *port);
/* Its descriptor is closed. If that was the last one, later requests of this process come after the
 * end of the port, and of its memberships unless they are many. */
void umad_open_closed(struct umad_open *port);

/*
 * The library's dialect: the call @name fails with @error, -errno. Logs why (base/reason.h), and
 * returns @ret, which is what the call returns then. All errors leave by this, so that none is
 * silent.
 */
int umad_failed(const char *name, int error, int ret);

static inline int umad_result_of(const char *name, int ret)
{
	return base_likely(!ret) ? 0 : umad_failed(name, ret, ret);
}

/* Of 0 or -errno that the exported function in which it stands returns. */
#define umad_result(ret) umad_result_of(__func__, ret)

/* ---- device.c ---- */

/*
 * Where @ca_name (NULL: any) and *@port_num (0: the best; set then) lead: the index in the port
 * table. With the lock held. 0; -ENODEV: no port there is usable; -ENOENT: no such HCA or port.
 */
int umad_resolve_port(const struct umad_fabric *f, const char *ca_name, int *port_num,
                      uint32_t *index);

/* ---- dump.c ---- */

/* The level that umad_debug() has set. */
int umad_debug_level(void);
void umad_warn(const char *func, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define TRACE(...)                                        \
	do {                                              \
		if (umad_debug_level())                   \
			umad_warn(__func__, __VA_ARGS__); \
	} while (0)

#endif
