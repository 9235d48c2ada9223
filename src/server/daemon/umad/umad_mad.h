/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MADs from programs to the fabric, and from the fabric to programs: whose they are, and whether
 * something is to wait for a response.
 */
#ifndef DAEMON_UMAD_MAD_H
#define DAEMON_UMAD_MAD_H

#include "daemon/umad/umad_state.h"

/* Takes a program's submission: @bytes of MAD or message behind @header. Checks all of it. */
void umad_mad_submit(struct umad_open *port, const struct ib_user_mad *header, const uint8_t *data,
                     size_t bytes);

/* Room for a long message of so many bytes that begins with @first, if it may be sent. NULL: not;
 * the program has been told, if it is to be told. */
uint8_t *umad_mad_expect(struct umad_open *port, const struct ib_user_mad *header,
                         const uint8_t first[static MAD_BYTES], size_t bytes);

/* It is there: the same as umad_mad_submit(). @message is not the caller's any more. */
void umad_mad_submit_long(struct umad_open *port, const struct ib_user_mad *header,
                          uint8_t *message, size_t bytes);

/* A MAD has come to the HCA port @at. Whether it was for a program. */
bool umad_mad_deliver(struct daemon_umad *u, struct fabric_port *at, const struct fabric_mad *mad);

#endif
