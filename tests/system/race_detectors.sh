#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A program whose threads are ordered by completions is right for race detectors, as on a card, which they do not see
# copying; and they find a race of its own.

. "${0%/*}/lib.sh"

gcc -g -O1 -pthread -o "$TMPDIR/racer" "${0%/*}/race_detectors.c" -libverbs || exit 1
gcc -g -O1 -pthread -fsanitize=thread -o "$TMPDIR/racer_tsan" "${0%/*}/race_detectors.c" -libverbs || exit 1
umbel up --hosts 1 > /dev/null

# finds STATUS FRAME COMMAND...: the program comes to its end, and of what is reported the first frame is FRAME
finds()
{
	local status=$1 frame=$2 reports ours
	shift 2
	umbel exec h1 -- "$@" > "$TMPDIR/said" 2>&1
	[ $? -eq "$status" ] || complain "$*: the status is not $status: $(tail -n 40 "$TMPDIR/said")"
	grep -q '^done$' "$TMPDIR/said" || complain "$* does not come to its end: $(tail -n 40 "$TMPDIR/said")"
	reports=$(grep -Ec 'data race|Conflicting (load|store)' "$TMPDIR/said")
	ours=$(grep -E -A 3 'data race|Conflicting (load|store)' "$TMPDIR/said" | grep -Ec "$frame")
	((reports > 0 && ours == reports)) ||
		complain "$*: $ours of $reports reports are of the program's own race: $(head -n 60 "$TMPDIR/said")"
}

# ThreadSanitizer says the frame and, in its summary, the function
expect 0 'done' umbel exec h1 -- "$TMPDIR/racer_tsan"
finds 66 '#0 race |SUMMARY: .* in race' "$TMPDIR/racer_tsan" variable
for tool in helgrind drd; do
	finds 9 'at 0x[0-9A-F]+: race ' valgrind --error-exitcode=9 --tool=$tool "$TMPDIR/racer" registered
done

# what the user says counts, or counts too
expect 0 '*/lib/umbel/tsan.supp:suppressions=own halt_on_error=1' \
	env 'TSAN_OPTIONS=suppressions=own halt_on_error=1' umbel exec h1 -- printenv TSAN_OPTIONS
expect 0 '--suppressions=*/lib/umbel/valgrind.supp -q --suppressions=own' \
	env 'VALGRIND_OPTS=-q --suppressions=own' umbel exec h1 -- printenv VALGRIND_OPTS
