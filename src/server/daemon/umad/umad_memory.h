/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of requests and messages, both directions: each open port has a budget, so that a peer
 * that floods one leaves memory for the others.
 */
#ifndef DAEMON_UMAD_MEMORY_H
#define DAEMON_UMAD_MEMORY_H

#include "daemon/umad/umad_state.h"

/* Reserves so much for the port. False: there is not so much left. A port that has only a little is
 * not refused though others have used up all. */
bool umad_memory_reserve(struct umad_open *port, size_t bytes);

/* Gives back what was reserved. */
void umad_memory_release(struct umad_open *port, size_t bytes);

/* Memory that is reserved, for a message of so many bytes that the port sends: at least a MAD.
 * NULL: there is none. */
uint8_t *umad_memory_alloc(struct umad_open *port, size_t bytes);
void umad_memory_free(struct umad_open *port, uint8_t *message, size_t bytes);

/* The units of work (chores.h) that it takes to free a request, or what is received, with a message
 * of so many bytes. */
uint32_t umad_memory_work(size_t bytes);

#endif
