#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# No circles between the modules of a folder in src/ and programs/. A module is x.c with its x.h; it uses those
# of its folder whose headers either includes. Prints each circle as A -> B -> ... -> A. If build/release is there, no circles
# of calls either (check-calls.py). Called by tools/check-static.sh. With arguments: only includes in these folders, such as
# src/server/cm.

set -eu -o pipefail

cd "$(dirname "$(readlink -f "$0")")/.."

folders()
{
	find src programs -name '*.h' ! -path '*/tests/*' -printf '%h\n' | sort -u
}

status=0
if [ $# -eq 0 ] && [ -e build/release/compile_commands.json ]; then
	tools/check-calls.py build/release || status=1
fi
[ $# -gt 0 ] || mapfile -t found < <(folders)
for folder in "${@:-${found[@]}}"; do
	find "$folder" -maxdepth 1 -name '*.[ch]' ! -name '*_test.c' ! -name 'testing*' | sort
done | xargs -r awk '
function module(path)
{
	sub(/\.[ch]$/, "", path)
	return path
}
function folder(path)
{
	sub(/\/[^\/]*$/, "", path)
	return path
}
match($0, /^[ \t]*#[ \t]*include[ \t]*"[^"]+"/) {
	split($0, quoted, "\"")
	from = module(FILENAME)
	match(FILENAME, /^(src\/[^\/]*|programs)\//)
	to = module(substr(FILENAME, 1, RLENGTH) quoted[2])
	if (folder(from) != folder(to) || from == to || (from, to) in seen)
		next
	seen[from, to] = 1
	uses[from] = uses[from] " " to
	users[from] = 1
}
# Looks for circles on the paths from @at. Those before it are path[0] ... path[depth - 1].
function visit(at, depth,    i, n, next_ones)
{
	if (at in place) {
		circle = at
		for (i = place[at] + 1; i < depth; i++)
			circle = circle " -> " path[i]
		print circle " -> " at
		bad = 1
		return
	}
	if (at in done)
		return
	place[at] = depth
	path[depth] = at
	n = split(uses[at], next_ones)
	for (i = 1; i <= n; i++)
		visit(next_ones[i], depth + 1)
	delete place[at]
	done[at] = 1
}
END {
	for (from in users)
		visit(from, 0)
	exit bad
}
' || status=1
exit $status
