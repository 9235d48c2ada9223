#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# check_doc.sh TABLE DOC: does the DOC (docs/abi.md) say of each version since when it is there, and
# until when, what the TABLE (symbols.txt) says? Versions that all releases have are left out there.
#
# Prints the rows that the document lacks, and those that it has wrongly; exit status 1 if there are any.
set -eu
export LC_ALL=C

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

awk '
	/^(#|$)/ { next }
	!($2 in first) || $4 < first[$2] { first[$2] = $4 }
	{ until[$2] = $5 == "-" || until[$2] == "-" || $5 > until[$2] ? $5 : until[$2] }
	END {
		for (version in first)
			if (first[version] > 34 || until[version] != "-")
				print "| " version " | " first[version] " | " until[version] " |"
	}' "$1" | sort > "$dir/table"
grep -E '^\| (IBVERBS|IBUMAD|RDMACM)_' "$2" | sort > "$dir/doc"
comm -23 "$dir/table" "$dir/doc" | sed "s,^,$2 lacks: ,"
comm -13 "$dir/table" "$dir/doc" | sed "s,^,$2 has wrongly: ,"
cmp -s "$dir/table" "$dir/doc"
