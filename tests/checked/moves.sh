#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Checked programs whose memory moves or goes, or that use what they have destroyed (moves.c): the wrong one is told of its
# rule and of no other, with the line of both places, the right one of nothing.

# moves.sh PROGRAM: checked.moves.

. "${0%/*}/../system/lib.sh"

program=$1
cd "$TMPDIR" || exit 1
umbel up --hosts 1 > /dev/null

# check NAME wrong|right RULES: these are told of, with a space behind each
check()
{
	local got
	UMBEL_CHECKED=1 umbel exec h1 -- env "LD_PRELOAD=$UMBEL_LIBDIR/libumbel-checked.so" "$program" "$1" "$2" > said 2>&1 ||
		complain "$1 $2 ends with $?: $(cat said)"
	got=$(sed -n 's/^umbel: .*\[\([a-z-]*\)\]$/\1/p' said | sort -u | tr '\n' ' ')
	[ "$got" = "$3" ] || complain "$1 $2 is told of '$got', not of '$3': $(cat said)"
	! grep -q 'not checked' said || complain "$1 $2: $(cat said)"
}

while read -r name rule; do
	check "$name" right ''
	check "$name" wrong "$rule "
	case $rule in
	fork*) continue ;;
	esac
	[ "$(grep -Ec '^  [a-z ]+: .*at .*/tests/checked/moves.c:[0-9]+$' said)" -ge 2 ] || complain "$name: a place is not known: $(cat said)"
done < <("$program" --list)
