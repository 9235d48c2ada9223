/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of all layouts: see words.h.
 */
#include "base/util.h"
#include "wire/cc.h"
#include "wire/sm_attr.h"
#include "wire/smp.h"

#include "wire/words.h"

#define PASS WIRE_TABLE_
#include "wire/all.def"
