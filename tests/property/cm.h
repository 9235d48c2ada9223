/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Joins by librdmacm: an identifier a port, without a queue pair. A call that fails, and does not
 * depend on the response of the subnet administrator, ends the program.
 */
#ifndef TESTS_PROPERTY_CM_H
#define TESTS_PROPERTY_CM_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

struct cm {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
};

/* @address: the port's IPv4 one. */
void cm_open(struct cm *cm, const char *address);

/*
 * As a full member, or a send-only one. 0 and the group's *mlid; or the error of the event;
 * -EADDRNOTAVAIL before the port has its broadcast group.
 */
int cm_join(struct cm *cm, const uint8_t mgid[16], bool send_only, uint16_t *mlid);

/* Returns before the subnet administrator knows. */
void cm_leave(struct cm *cm, const uint8_t mgid[16]);

#endif
