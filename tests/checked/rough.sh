#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs that are right, and rough with the checker (rough.c): each ends as it does without, and is told of nothing but
# what stands here.

# rough.sh PROGRAM LIBRARY: checked.rough, checked.constructor.

. "${0%/*}/../system/lib.sh"

program=$1
cd "$TMPDIR" || exit 1
umbel up --hosts 4 > /dev/null

# check RULES NAME [N]: these are told of, with a space behind each
check()
{
	local rules=$1 got status=0
	shift
	umbel exec --checked=warn h1 -- timeout 20 "$program" "$@" > said 2>&1 || status=$?
	[ "$status" -eq 0 ] || complain "$1 ends with $status: $(cat said)"
	got=$(sed -n 's/^umbel: [a-z]*: .*\[\([a-z-]*\)\]$/\1/p' said | sort -u | tr '\n' ' ')
	[ "$got" = "$rules" ] || complain "$1 is told of '$got', not of '$rules': $(cat said)"
}

# Whether another command removes the folder.
removed()
{
	umbel exec --checked h1 -- true 2> /dev/null
	[ ! -d "$folder" ]
}

check '' exit-in-a-handler
check '' fork-in-a-handler
check 'overlapping-buffers ' cancelled
check '' locked-allocator
check 'overlapping-buffers ' constructor "$2"
check '' protected

# a program that has closed standard error, and has its data there: the command tells
umbel exec --checked=warn h1 -- "$program" closed data > said 2>&1 || complain "closed ends with $?: $(cat said)"
[ "$(cat data)" = data ] || complain "a report is in the data: $(cat data)"
grep -q '^umbel: warning, in process [0-9]* (.*), whose standard error is closed or another file: overlapping-buffers at .*lab.c:[0-9]*; the receive' said ||
	complain "closed: the command says: $(cat said)"

# what a command leaves that is killed goes with the next one; what one has that lives stays
umbel exec --checked h1 -- sh -c 'touch runs; exec sleep 60' 2> /dev/null &
wait_until "the program runs" test -e runs
folder=$(echo "$UMBEL_RUNTIME_DIR"/.checked-*)
touch -d '2 minutes ago' "$folder"
umbel exec --checked h1 -- true 2> /dev/null
[ -d "$folder" ] || complain "the folder of a command that lives is gone: $folder"
kill -9 $!
wait_until "the killed command's folder is gone" removed
