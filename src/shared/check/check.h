/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Proves of a subnet's tables, from any subnet manager, that packets arrive, that none goes round
 * in circles, that links cannot wait for each other in one, and that groups reach their members.
 * `umbel check`; and tests of the subnet manager. Single-threaded.
 */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include "check/report.h"
#include "check/net.h"

/* Judges @net, which is finished. @r: all zero but ->keep; check_report_fini() is due in any case.
 * 0 or -ENOMEM. */
int check_run(const struct check_net *net, struct check_report *r);

#endif
