/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a subnet manager may route, and what its owner does for it. sm.h and the SM's own files use
 * this.
 */
#ifndef SUBNET_SM_OPS_H
#define SUBNET_SM_OPS_H

#include <stdint.h>

#define SM_MAX_LMC 7

/* The setting "routing". */
enum sm_routing { SM_ROUTING_MINHOP, SM_ROUTING_UPDN, SM_ROUTING_FTREE, SM_ROUTING_DFSSSP };

/*
 * @wake asks the daemon to call sm_run_due() after @ms milliseconds. @now_ms: the clock whose time
 * sm_run_due() is given, ms; NULL: the system's monotonic clock.
 */
struct sm_ops {
	void (*wake)(void *arg, unsigned ms);
	uint64_t (*now_ms)(void *arg);
	void *arg;
};

#endif
