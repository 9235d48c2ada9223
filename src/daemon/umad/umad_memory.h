/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of messages, both directions: each open port has a budget, so that who floods one
 * leaves memory for the others.
 */
#ifndef DAEMON_UMAD_MEMORY_H
#define DAEMON_UMAD_MEMORY_H

#include "daemon/umad/umad_state.h"

/* Reserves so much for the port. False: there is not so much left. */
bool umad_memory_reserve(struct umad_open *port, size_t bytes);

/* Gives back what was reserved. */
void umad_memory_release(struct umad_open *port, size_t bytes);

#endif
