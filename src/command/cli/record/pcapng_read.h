/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading capture files that pcapng.h wrote, on a machine of the same byte order. Blocks and
 * options of others are passed over; a file may end anywhere, as it does while a capture runs.
 */
#ifndef CLI_PCAPNG_READ_H
#define CLI_PCAPNG_READ_H

#include <stddef.h>

#include "cli/record/pcapng.h"

/* Calls @each for every packet of the @bytes bytes at @file, until it returns nonzero; its texts
 * are valid during the call. That, 0, -ENOMEM, or -EINVAL: no such file. */
int cli_pcapng_each(const uint8_t *file, size_t bytes,
                    int (*each)(void *arg, const struct cli_pcapng_packet *packet), void *arg);

#endif
