#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Counts the instructions that a message of 64 bytes costs (valgrind's callgrind; the same every
# time), alone, as one of a list and by the extended calls, by UD and RC, and compares them with those
# in ./expected: count.sh PROGRAM. Fails if one is more than 10 % above. Counted with K and with 2 K messages; the difference is what K cost.
# With UPDATE=yes in the environment it writes ./expected anew.
# Needs $UMBEL: in-sandbox.sh sets it.

set -eu -o pipefail

expected=$(dirname "$(readlink -f "$0")")/expected
program=$1
messages=3200
functions=19 # marked in messages.c
counts=$(mktemp -d)
trap 'rm -rf "$counts"' EXIT

command -v valgrind >/dev/null || {
	echo "valgrind is missing (debian-packages)" >&2
	exit 1
}

# count K: instructions of each marked function, with all that it calls, as NAME NUMBER.
count()
{
	local out=$counts/$1

	"$UMBEL" run --hosts 2 -- valgrind --quiet --tool=callgrind --callgrind-out-file="$out" \
		"$program" "$1" >&2
	callgrind_annotate --inclusive=yes --threshold=100 --show-percs=no "$out" |
		sed -nE 's/^ *([0-9,]+) .*:counted_([a-z_]+)( .*)?$/\2 \1/p' | tr -d , | sort -u
}

once=$(count "$messages")
twice=$(count $((2 * messages)))
[ "$(wc -l <<< "$once")" -eq $functions ] || {
	echo "callgrind did not see the $functions functions:" "$once" >&2
	exit 1
}
now=$(join <(echo "$once") <(echo "$twice") |
	awk -v k="$messages" '{ printf "%s %.0f\n", $1, ($3 - $2) / k }')

if [ "${UPDATE:-}" = yes ]; then
	{
		echo "# Instructions that a 64-byte multicast message costs, inline, to one receiver, and one"
		echo "# between RC queue pairs (srq_: of a shared receive queue), those of the measuring program included; written anew by:"
		echo "# UPDATE=yes ./run test --all -R instructions"
		echo "$now"
	} > "$expected"
	cat "$expected"
	exit
fi

join <(grep -v '^#' "$expected") <(echo "$now") | awk -v functions=$functions '
{
	over = $3 > $2 * 1.1
	failed += over
	printf "%-14s %5d instructions a message, expected %5d (%+.1f %%)%s\n", $1, $3, $2,
		($3 / $2 - 1) * 100, over ? ": TOO MANY" : $3 < $2 * 0.9 ? ": please update" : ""
}
END {
	if (NR != functions)
		print "the file \"expected\" does not name the", functions, "functions"
	if (failed || NR != functions)
		print "If that is meant: UPDATE=yes ./run test --all -R instructions"
	exit failed || NR != functions
}'
