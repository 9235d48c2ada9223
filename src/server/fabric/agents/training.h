/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Training: when a link comes up, its two ends choose the widest width and the fastest speed that
 * both support and have enabled, and the link is not too bad for (InfiniBand specification volume
 * 1, section 14.2.5.6; volume 2, chapter 5). A change of what is enabled has no effect before the
 * link trains again.
 *
 * Only the daemon uses this; not thread-safe.
 */
#ifndef FABRIC_TRAINING_H
#define FABRIC_TRAINING_H

#include "fabric/model/fabric.h"

/* The widths or speeds that the port supports: enum fabric_width, or enum fabric_speed, ORed. */
uint8_t fabric_widths_supported(const struct fabric_port *p);
uint8_t fabric_speeds_supported(const struct fabric_port *p);

/* Whether the link at @p, which is plugged in, can come up. */
bool fabric_link_can_train(const struct fabric_port *p);

/* Whether a link that is up would get the width and speed that it has, if it trained now. */
bool fabric_link_is_trained(const struct fabric_port *p);

/* The widths that are no wider than @width, or speeds no faster than @speed, for struct
 * fabric_link_fault. */
uint8_t fabric_widths_up_to(uint8_t width);
uint8_t fabric_speeds_up_to(uint8_t speed);

/* Sets width and speed of both ends to what they share; nothing, if they share none. */
void fabric_link_train(struct fabric_port *p);

#endif
