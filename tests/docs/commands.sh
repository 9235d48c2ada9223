#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Every command in CONTRIBUTING.md works: commands.sh SOURCE BUILD runs its blocks of shell
# commands, "```sh", one after the other, as a reader would in a fresh checkout. The checkout is made of
# links, and both its builds are the build under test, so nothing is built twice. A block that does not
# end is named: on an idle machine each takes a second or two.

set -u
unset DEBUGINFOD_URLS # gdb asks no server for symbols

source=$1 build=$2
status=0

mkdir -p "$TMPDIR/umbel/build"
cd "$TMPDIR/umbel" || exit 1
for file in "$source"/*; do
	[ "${file##*/}" = build ] || ln -s "$file" .
done
rm -f run
cp "$source/run" .
ln -s "$build" build/release
ln -s "$build" build/sanitize
ln -s "$build" build/threads

awk '/^```sh$/ { n++; next } /^```/ { inside = 0 }
	{ if (n > last) { last = n; inside = 1 } if (inside) print > ("block." n) }' CONTRIBUTING.md
blocks=$(find . -name 'block.*' | sort -V)
[ "$(wc -l <<< "$blocks")" -ge 5 ] || { echo "CONTRIBUTING.md has few commands"; exit 1; }
for block in $blocks; do
	# a session of its own: gdb finds no terminal to fight for
	setsid --wait timeout -k 10 "${UMBEL_TEST_BLOCK_SECONDS:-300}" bash -eu "$block" \
		< /dev/null > output 2>&1
	ended=$?
	[ $ended -ne 0 ] || continue
	echo "FAIL: in CONTRIBUTING.md ($([ $ended -eq 124 ] && echo 'it did not end' || echo "status $ended")):"
	cat "$block"
	echo "---- prints:"
	cat output
	status=1
done
exit $status
