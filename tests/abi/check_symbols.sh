#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# check_symbols.sh LIB DEBIAN_LIB LEFT_OUT_FILE
#
# Holds what LIB exports against what DEBIAN_LIB exports: soname, version definitions with their
# parents, and of each symbol its name, its version, whether the version is the default ("@@"), its
# type, and for data its size. ctest runs it, once for each library.
#
# LEFT_OUT_FILE excuses what LIB lacks, one symbol a line: "symbol@VERSION  reason", in readelf's
# notation. It serves all libraries; a line belongs to the one whose versions begin with the same
# word (IBVERBS, RDMACM, ...). A line without a reason, of a symbol that is there after all, or of
# one that Debian does not have, is an error too.
#
# One line on standard output for each difference; exit status 1 if there is any, 2 for bad usage.
set -eu
export LC_ALL=C

if [ $# -ne 3 ]; then
	echo "usage: $0 LIB DEBIAN_LIB LEFT_OUT_FILE" >&2
	exit 2
fi
for file in "$@"; do
	if [ ! -r "$file" ]; then
		echo "$0: cannot read $file" >&2
		exit 2
	fi
done

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# One line a fact: "soname NAME", "version NAME [PARENT]", "symbol NAME@VERSION TYPE [SIZE]".
describe() {
	readelf -W -d "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\]/soname \1/p'
	readelf -W -V "$1" | awk '
		function flush() { if (name != "") print "version", name parents }
		/^Version .* section/ { flush(); name = ""; within = /\.gnu\.version_d/ }
		!within { next }
		/Flags:.*Name:/ { flush(); name = /BASE/ ? "" : $NF; parents = "" }
		/Parent [0-9]+:/ { parents = parents " " $NF }
		END { flush() }'
	# Undefined symbols are imports, absolute ones the names of the versions.
	readelf -W --dyn-syms "$1" | awk '
		$1 ~ /^[0-9]+:$/ && NF >= 8 && $7 != "UND" && $7 != "ABS" {
			print "symbol", $8, $4 ($4 == "OBJECT" ? " " $3 : "")
		}'
}

describe "$1" | sort > "$dir/ours"
describe "$2" | sort > "$dir/debians"
if ! grep -q '^symbol' "$dir/debians"; then
	echo "$0: $2 exports nothing to compare with" >&2
	exit 2
fi

awk -v ours="$dir/ours" -v debians="$dir/debians" -v left_out="$3" '
	function complain(text) { print text; failed = 1 }
	function rest(from,    i, text) {
		for (i = from; i <= NF; i++)
			text = text (i > from ? " " : "") $i
		return text
	}
	# The word that a version begins with: IBVERBS of ibv_alloc_pd@@IBVERBS_1.1
	function family(symbol) {
		sub(/^.*@/, "", symbol)
		sub(/_.*/, "", symbol)
		return symbol
	}
	BEGIN {
		while ((getline < debians) > 0) {
			theirs[$1, $2] = rest(3)
			if ($1 == "version")
				families[family($2)] = 1
		}
		while ((getline < left_out) > 0) {
			line++
			if (/^[ \t]*(#|$)/ || !(family($1) in families))
				continue
			if (NF < 2)
				complain(left_out ":" line ": " $1 " is left out without a reason")
			if (!(("symbol", $1) in theirs))
				complain(left_out ":" line ": " $1 " is not in Debian'\''s library")
			excused[$1] = line
		}
		while ((getline < ours) > 0) {
			seen[$1, $2] = 1
			if ($1 == "symbol" && $2 in excused)
				complain(left_out ":" excused[$2] ": " $2 " is listed but exported")
			if (!(($1, $2) in theirs))
				complain("extra " $1 " " $2)
			else if (theirs[$1, $2] != rest(3))
				complain($1 " " $2 " is \"" rest(3) "\", Debian'\''s is \"" \
					 theirs[$1, $2] "\"")
		}
		for (key in theirs) {
			split(key, part, SUBSEP)
			if (!(key in seen) && !(part[1] == "symbol" && part[2] in excused))
				complain("missing " part[1] " " part[2])
		}
		exit failed
	}'
