/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The link of flows that are traced (UMBEL_LOG=packet=trace). It logs where each packet goes, marks
 * the packet, so that its receivers log it too, and sends it by the flow's own links. A flow has it
 * only while tracing is on, so tracing costs nothing otherwise.
 */
#ifndef HCA_LINK_TRACE_H
#define HCA_LINK_TRACE_H

#include "hca/link.h"

extern const struct hca_link_ops hca_link_trace;

#endif
