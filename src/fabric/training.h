/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the two ends of a link agree on when it comes up (InfiniBand specification volume 1,
 * section 14.2.5.6; volume 2, chapter 5): the widest width and the fastest speed that both
 * support and have enabled. What is enabled takes effect when the link trains, not before.
 *
 * The manager's; not thread-safe.
 */
#ifndef FABRIC_TRAINING_H
#define FABRIC_TRAINING_H

#include "fabric/fabric.h"

/* Of the port as it was built: enum fabric_width, or enum fabric_speed, ORed. */
uint8_t fabric_widths_supported(const struct fabric_port *p);
uint8_t fabric_speeds_supported(const struct fabric_port *p);

/* Whether the link at @p, which is plugged in, can come up. */
bool fabric_link_can_train(const struct fabric_port *p);

/* Gives both ends the width and the speed that they agree on, if they do. */
void fabric_link_train(struct fabric_port *p);

#endif
