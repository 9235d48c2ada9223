#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# check_symbols.sh LIB INSTALLED_LIB TABLE LEFT_OUT
#
# Does LIB export what programs built for any rdma-core of the TABLE (symbols.txt) ask for?
#
#   - LIB has each symbol of the table in its version, and none that is not there, but for what our
#     libraries have among themselves (UMBEL_PRIVATE). Of a symbol with several versions the last is
#     the default ("@@"), as in rdma-core.
#   - LIB has no function ibv_... or rdma_... that its version script hides: a new call of which the
#     script was forgotten.
#   - INSTALLED_LIB, the distribution's, has none that is not in the table either, so that a newer
#     rdma-core shows here. Symbols that both have are alike: soname, versions with their parents, types, the
#     sizes of data.
#
# LEFT_OUT excuses what LIB lacks, one symbol a line: "symbol@VERSION  reason". It serves all
# libraries. A line without a reason, or of a symbol that is there after all or is not in the table,
# is an error too.
#
# One line on standard output for each difference; exit status 1 if there is any, 2 for bad usage.
# Called by ctest, once for each library. Needs no network.
set -eu
export LC_ALL=C

if [ $# -ne 4 ]; then
	echo "usage: $0 LIB INSTALLED_LIB TABLE LEFT_OUT" >&2
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

# "hidden NAME": a function with the name of a call that no program can reach. A number of a version
# behind the name (ibv_register_driver_1_1) is that of an old version, which has the name without it.
hidden()
{
	readelf -W --syms "$1" | awk '$4 == "FUNC" && $5 == "LOCAL" && $8 ~ /^(ibv|rdma)_[a-z0-9_]+$/ &&
		$8 !~ /_[0-9]+_[0-9]+$/ { print "hidden", $8 }'
}

# One line a fact: "soname NAME", "version NAME [PARENT]", "symbol NAME VERSION DEFAULT TYPE [SIZE]".
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
			n = split($8, part, "@")
			print "symbol", part[1], part[n], (n == 3 ? "default" : "-"), \
			      $4 ($4 == "OBJECT" ? " " $3 : "")
		}'
}

{ describe "$1" && hidden "$1"; } > "$dir/ours"
describe "$2" > "$dir/installed"
for file in ours installed; do
	if ! grep -q '^symbol' "$dir/$file"; then
		echo "$0: one of the libraries exports nothing" >&2
		exit 2
	fi
done
library=$(basename "$1")
library=${library#lib}

awk -v library="${library%%.*}" -v ours="$dir/ours" -v installed="$dir/installed" -v table="$3" \
	-v left_out="$4" '
	function complain(text) { print text; failed = 1 }
	function rest(from,    i, text) {
		for (i = from; i <= NF; i++)
			text = text (i > from ? " " : "") $i
		return text
	}
	function is_private(version) { return version ~ /_PRIVATE_/ }
	function read_table() {
		while ((getline < table) > 0) {
			if (/^[ \t]*(#|$)/)
				continue
			listed_anywhere[$3, $2] = 1
			if ($1 != library)
				continue
			listed[$3, $2] = 1
			if (!is_private($2) && $6 != "hidden")
				last[$3] = $2
		}
	}
	function read_left_out(    line, part) {
		while ((getline < left_out) > 0) {
			line++
			if (/^[ \t]*(#|$)/)
				continue
			split($1, part, "@")
			if (NF < 2)
				complain(left_out ":" line ": " $1 " is left out without a reason")
			if (!((part[1], part[2]) in listed_anywhere))
				complain(left_out ":" line ": " $1 " is not in the table")
			excused[part[1], part[2]] = line
		}
	}
	function read_ours() {
		while ((getline < ours) > 0) {
			if ($1 == "hidden") {
				complain($2 " is in no node of lib" library ".map: programs cannot call it")
				continue
			}
			if ($1 != "symbol") {
				fact[$1, $2] = rest(3)
				continue
			}
			have[$2, $3] = rest(5)
			is_default[$2, $3] = $4 == "default"
			if (!(($2, $3) in listed) && $3 != "UMBEL_PRIVATE")
				complain(table " has no row for " $2 "@" $3)
			if (($2, $3) in excused)
				complain(left_out ":" excused[$2, $3] ": " $2 "@" $3 " is exported")
		}
	}
	function check_table(    key, part) {
		for (key in listed) {
			split(key, part, SUBSEP)
			if (!(key in have) && !(key in excused))
				complain("missing: " part[1] "@" part[2])
			if (key in have && last[part[1]] == part[2] && !is_default[key])
				complain("not the default: " part[1] "@" part[2])
		}
	}
	function read_installed() {
		while ((getline < installed) > 0) {
			if ($1 != "symbol") {
				if (fact[$1, $2] != rest(3))
					complain($1 " " $2 " is \"" fact[$1, $2] "\", the installed is \"" \
						 rest(3) "\"")
				continue
			}
			if (!(($2, $3) in listed))
				complain("the installed library has " $2 "@" $3 ", the table has not")
			if (!(($2, $3) in have))
				continue
			if (have[$2, $3] != rest(5))
				complain($2 "@" $3 " is \"" have[$2, $3] "\", the installed is \"" rest(5) "\"")
			if (!is_private($3) && is_default[$2, $3] != ($4 == "default"))
				complain($2 "@" $3 " is the default in one library alone")
		}
	}
	BEGIN {
		read_table()
		read_left_out()
		read_ours()
		check_table()
		read_installed()
		exit failed
	}'
