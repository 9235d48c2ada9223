/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Partitions of the fabric: read from a text when it starts and when somebody sends another one,
 * and given to the embedded subnet manager, which writes them into the ports' P_Key tables
 * while it is the master.
 */
#ifndef DAEMON_PARTITIONS_H
#define DAEMON_PARTITIONS_H

#include "daemon/clients/request.h"
#include "daemon/subnet/subnet.h"

/* Adds the request to the table. */
void daemon_partitions_init(struct daemon_subnet *subnet, struct daemon_requests *all);

/* The fabric's partitions are those of the file from now on, in place of any before. 0; -EINVAL,
 * -ENOSPC and why; -ENOMEM. */
int daemon_partitions_read(struct daemon_subnet *subnet, const struct partitions_file *file,
                           char *why, size_t len);

#endif
