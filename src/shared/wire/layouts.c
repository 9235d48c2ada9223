/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of all layouts: see words.h.
 */
#include "wire/cc.h"
#include "wire/cm_mad.h"
#include "wire/notice.h"
#include "wire/perf.h"
#include "wire/sa_records.h"
#include "wire/sm_attr.h"
#include "wire/smp.h"

#include "wire/words.h"

#define PASS WIRE_TABLE_
#include "wire/all.def"

/* without issuer_gid */
WIRE_DEFINE(wire_smp_notice, wire_notice, 1)
