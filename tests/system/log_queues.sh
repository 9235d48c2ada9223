#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A queue that has no room, and a completion queue that is overrun: the log says which one it is,
# how large, and whose.

. "${0%/*}/lib.sh"

# says PATTERN CASE: a case of a test program has such a line in its log
says()
{
	local out

	out=$(UMBEL_LOG=warning CMOCKA_TEST_FILTER=$2 umbel exec -- "$tests/verbs.sizes" 2>&1)
	grep -qE "$1" <<< "$out" || complain "$2 does not say '$1':"$'\n'"$out"
}

tests=$(dirname "$(dirname "$(command -v umbel)")")/tests/programs
umbel up --hosts 4 --set max_qp_wr=200 --set max_cqe=1000 > /dev/null
says 'umbel\[[0-9]+\] verbs warning: .*the send queue of QP 0x[0-9a-f]{6} is full: it has room for 16 ' \
	a_queue_pair_takes_as_many_as_it_says
says 'verbs warning: .*the receive queue of QP 0x[0-9a-f]{6} is full: it has room for 64 ' \
	a_queue_pair_takes_as_many_as_it_says
says 'verbs warning: .*the shared receive queue is full: it has room for 16 ' \
	a_shared_queue_takes_as_many_as_it_says
says 'verbs warning: .*completion queue [0-9]+ has overrun: it has room for 16 ' \
	an_overrun_queue_is_in_error
grep -qE 'daemon warning: CQ [0-9]+ of process [0-9]+ on h1 is overrun: it holds 16 completions' \
	"$UMBEL_RUNTIME_DIR/default/log" ||
	complain "the daemon's log has no overrun:"$'\n'"$(cat "$UMBEL_RUNTIME_DIR/default/log")"
