/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The times of connections that leave the fabric (hca/transport/wire.h): a timeout, an RNR NAK's
 * delay, responses that are yet to be sent. Processes that poll see to them; the daemon does for
 * those that do not. It looks at the queue pairs whose bits are set (struct shm_wire_busy), each
 * millisecond while there are any.
 */
#ifndef DAEMON_ROCE_WIRES_H
#define DAEMON_ROCE_WIRES_H

#include "daemon/network/roce_state.h"

/* A process has called: begins to look, unless it does already. */
void roce_wires_begin(struct daemon_roce *r);
void roce_wires_stop(struct daemon_roce *r);

#endif
