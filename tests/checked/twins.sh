# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Programs of checked.mistakes that the scripts in this folder run by hand. Sourced behind tests/system/lib.sh, with the
# program as its argument.

export UMBEL_CHECKED=1
program=$1
cd "$TMPDIR" || exit 1

# twins NAME RULES COMMAND...: @RULES are told of the wrong one, with a space behind each, and none of the right one.
twins()
{
	local name=$1 rules=$2 twin got want
	shift 2
	for twin in right wrong; do
		want=
		[ "$twin" = right ] || want=$rules
		"$@" "$program" "$name" "$twin" > said 2>&1 || complain "$name $twin ends with $?: $(cat said)"
		got=$(sed -n 's/^umbel: [a-z]*: .*\[\([a-z-]*\)\]$/\1/p' said | sort -u | tr '\n' ' ')
		[ "$got" = "$want" ] || complain "$name $twin is told of '$got', not of '$want': $(cat said)"
	done
}
