#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Crowds of requests and objects under the checker (crowd.c): 10,000 work, and each of four times as many costs
# hardly more instructions than each of a few (valgrind's callgrind counts).

# crowd.sh PROGRAM: checked.crowd.

. "${0%/*}/../system/lib.sh"

program=$1
few=400
cd "$TMPDIR" || exit 1
umbel up --hosts 4 > /dev/null

# crowd RULES NAME N [COMMAND]...: these are told of, with a space behind each
crowd()
{
	local rules=$1 name=$2 n=$3 got status=0
	shift 3
	umbel exec --checked=warn -- "$@" "$program" "$name" "$n" > said 2>&1 || status=$?
	[ "$status" -eq 0 ] || complain "$name $n ends with $status: $(cat said)"
	got=$(sed -n 's/^umbel: [a-z]*: .*\[\([a-z-]*\)\]$/\1/p' said | sort -u | tr '\n' ' ')
	[ "$got" = "$rules" ] || complain "$name is told of '$got', not of '$rules': $(cat said)"
}

# count RULES NAME N: the instructions, in $counted
count()
{
	crowd "$@" valgrind --tool=callgrind --toggle-collect=counted --callgrind-out-file=/dev/null
	counted=$(sed -n 's/^==.*Collected : //p' said)
}

# may grow to so many hundredths: regions are in a tree
while read -r name most; do
	rules=
	[ $name != regions ] || rules='destroyed-in-use '
	crowd "$rules" $name 10000
	count "$rules" $name $few
	once=$((counted / few))
	count "$rules" $name $((4 * few))
	many=$((counted / 4 / few))
	echo "$name: $once instructions each of $few, $many each of $((4 * few))"
	[ "$once" -gt 0 ] && [ $((100 * many)) -le $((most * once)) ] ||
		complain "$name: $once instructions each of $few, $many each of $((4 * few))"
done << 'end'
shared-receives 104
regions 120
sends 104
end
