/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How errors leave the library: see verbs.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/verbs/verbs.h"
#include "base/log.h"
#include "base/reason.h"

BASE_COLD int verbs_error(const char *name, int ret)
{
	static const char through_context[] = "verbs_";
	const size_t n = sizeof(through_context) - 1;
	char exported[64];

	if (base_log_on(verbs, BASE_LOG_WARNING) && !strncmp(name, through_context, n)) {
		snprintf(exported, sizeof(exported), "ibv_%s", name + n);
		name = exported;
	}
	base_call_failed(verbs, name, -ret);
	errno = -ret;
	return -ret;
}
