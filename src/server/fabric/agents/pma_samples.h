/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sampling (InfiniBand specification volume 1, sections 16.1.3.2 to 16.1.3.4): after a delay a node
 * counts for a while what one of its ports sends and receives. A node has one sampling mechanism.
 * For pma.c; the daemon passes the time.
 */
#ifndef FABRIC_PMA_SAMPLES_H
#define FABRIC_PMA_SAMPLES_H

#include "fabric/model/fabric.h"

/* Serves a Get or a Set of PortSamplesControl, a Get of PortSamplesResult. Returns enum mad_status.
 * A Set while a sample is taken changes nothing. */
uint16_t fabric_pma_samples_control(struct fabric *f, struct fabric_node *node, uint32_t modifier,
                                    uint8_t *data, bool is_set);
uint16_t fabric_pma_samples_result(struct fabric_node *node, uint32_t modifier, uint8_t *data);

/* Begins and ends the samples that are due at @now_ns. UINT64_MAX, or when the next one is due. */
uint64_t fabric_pma_samples_run(struct fabric *f, uint64_t now_ns);

/* Forgets all samples. */
void fabric_pma_samples_fini(struct fabric *f);

#endif
