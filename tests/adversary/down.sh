#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel down` ends a fabric that is full, or from which all has just died: it need not kill the
# daemon. How long it took is printed.

. "${0%/*}/../system/lib.sh"

holder=${UMBEL%/bin/*}/tests/programs/adversary.ends

# full: a fabric with much on it.
full()
{
	umbel up --name s --hosts 4 > /dev/null
	launch holder umbel exec --name s -- "$holder" hold 1000 100000 500000
	wait_said holder 'all is made'
}

# down WHEN
down()
{
	local from=${EPOCHREALTIME/./}

	expect 0 "fabric 's' is down" umbel down --name s
	echo "$1: $(((${EPOCHREALTIME/./} - from) / 1000)) ms"
	[ -z "$(ls -A "$UMBEL_RUNTIME_DIR")" ] || complain "umbel down left files"
}

full
down "while all is there"
kill -9 "${pid[holder]}"
wait_ended holder 137
full
kill -9 "${pid[holder]}"
down "while it ends"
wait_ended holder 137
