#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A thousand participants are killed at random moments. The others go on, and the daemon
# then holds no more than before. ../death/churn.c runs and kills the participants, and checks the survivors.

. "${0%/*}/lib.sh"

churn=${UMBEL_LIBDIR%/lib/umbel}/tests/programs/churn
# the sanitizer holds back what is freed; here that would look like a leak
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=1"

held()
{
	umbel status --name soak --json |
		grep -E '"(clients|qps|cqs|channels|flows|groups|ring_bytes|payload_bytes)"'
}

holds_what_it_held()
{
	[ "$(held)" = "$before" ]
}

# so many and the timer's, which comes when it is needed first
few_descriptors()
{
	[ "$(ls "/proc/$daemon/fd" | wc -l)" -le $((descriptors + 1)) ]
}

# memory in KiB, the shared one too
memory()
{
	sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$daemon/status"
}

expect 0 "fabric 'soak' is up: *" umbel up --name soak
export UMBEL_FABRIC=soak
daemon=$(field pid soak)
before=$(held)
descriptors=$(ls "/proc/$daemon/fd" | wc -l)

# a few first: then the daemon has the memory that so many at a time take
umbel exec -- "$churn" 50 || complain "the first 50"
kib=$(memory)
umbel exec -- "$churn" 1000 || complain "the thousand"

wait_until "the daemon holds what it held before" holds_what_it_held ||
	diff <(echo "$before") <(held) >&2
wait_until "the daemon has as few descriptors as before" few_descriptors ||
	ls -l "/proc/$daemon/fd" >&2
[ "$(memory)" -le $((kib + 4096)) ] || complain "the daemon grew from $kib to $(memory) KiB"
[ "$(field pid soak)" = "$daemon" ] || complain "that is another daemon"
expect 0 "fabric 'soak' is down" umbel down
