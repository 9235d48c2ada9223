#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# AddressSanitizer, ThreadSanitizer and valgrind's memcheck tell of a checked program which touches memory while the card
# has it, where it does that, and say nothing of its right twin.

. "${0%/*}/../system/lib.sh"

export ASAN_OPTIONS=halt_on_error=0:suppress_equal_pcs=0 TSAN_OPTIONS=suppress_equal_stacks=0:suppress_equal_addresses=0
umbel up --hosts 1 > /dev/null
for tool in address thread; do
	gcc -g -O1 -pthread -fsanitize=$tool -fsanitize-recover=all -o "$TMPDIR/$tool" "${0%/*}/tools.c" -libverbs || exit 1
done
gcc -g -O1 -pthread -o "$TMPDIR/plain" "${0%/*}/tools.c" -libverbs || exit 1

# report NAME: the words that came while this program ran
report()
{
	sed -n "/^begins: $1\$/,/^begins: /p" "$TMPDIR/said"
}

exec_checked()
{
	UMBEL_CHECKED=1 umbel exec h1 -- env "LD_PRELOAD=$UMBEL_LIBDIR/libumbel-checked.so" "$@"
}

# finds LETTER NUMBER PATTERN COMMAND...: so many wrong programs, and of each there is a report that fits; of right ones none
finds()
{
	local letter=$1 number=$2 pattern=$3 name names
	shift 3
	exec_checked "$@" wrong "$letter" > "$TMPDIR/said" 2>&1
	names=$(sed -n 's/^begins: //p' "$TMPDIR/said")
	[ "$(wc -l <<< "$names")" -eq $((number + 1)) ] || complain "$* wrong does not come to its end: $(tail -n 30 "$TMPDIR/said")"
	for name in ${names%done}; do
		report "$name" | tr '\n' ' ' | grep -Eq "$pattern" || complain "$*: $name is not found: $(report "$name")"
	done
	exec_checked "$@" right "$letter" > "$TMPDIR/said" 2>&1 ||
		complain "$* right: status $?: $(tail -n 60 "$TMPDIR/said")"
	[ "$(sort -u "$TMPDIR/said" | grep -vc '^begins: ')" -eq 0 ] ||
		complain "$* right is accused: $(head -n 60 "$TMPDIR/said")"
}

finds a 8 'use-after-poison .*#0 0x[0-9a-f]+ in (look|change) ' "$TMPDIR/address"
# both stacks: the program's, and the card's, above the call that posted
finds t 12 'data race .*(#0 (look|change) .*#0 umbel_the_(card|peers_card) .*#[1-5] (receive|request|post_send|written_by_peer) |'\
'#0 umbel_the_(card|peers_card) .*#[1-5] (receive|request|post_send|written_by_peer) .*#0 (look|change) ).*'"Thread T[0-9]+ 'the card'" "$TMPDIR/thread"
finds v 9 '(Invalid (read|write) of size 1|Conditional jump) .*at 0x[0-9A-F]+: [a-z_]+ \(tools\.c:[0-9]+\)' valgrind -q "$TMPDIR/plain"
