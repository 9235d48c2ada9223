#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A program gives the daemon a file that nobody can close, as its file system does not answer: the fabric ends
# all the same, its neighbours are told at once, and `umbel down` and `umbel run` say so.

. "${0%/*}/../system/lib.sh"

# to look for leaks the sanitizer would stop the thread that is held, and wait for that
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
export unflushed=${UMBEL%/bin/*}/tests/programs/adversary.unflushed
mkdir "$TMPDIR/files"
# what there is of it is in a namespace of its own
serve=(unshare --user --map-root-user --mount "$unflushed" "$TMPDIR/files")

# check_end WORD [ARGUMENT]: when unflushed says WORD, the fabric's end is as any.
check_end()
{
	umbel up --hosts 2 > /dev/null
	launch neighbour umbel exec h2 -- stdbuf -oL ibv_asyncwatch
	wait_said neighbour '.*async event FD'
	launch unflushed "${serve[@]}" "${@:2}"
	wait_until "it says $1" says_or_ended unflushed "$1"
	if gone "${pid[unflushed]}"; then
		wait_ended unflushed 77
		echo "skipped: no file systems of users here"
		exit
	fi
	expect 0 "fabric 'default' is down" umbel down
	wait_ended neighbour 1
	expect_said neighbour '  event_type IBV_EVENT_DEVICE_FATAL (8), port 0$'
	says unflushed held || complain "nothing has held the daemon"
	[ -z "$(ls -A "$UMBEL_RUNTIME_DIR")" ] || complain "umbel down left files"
	expect 0 "*is up*" umbel up --hosts 1
	expect 0 "fabric 'default' is down" umbel down
	kill "${pid[unflushed]}"
	wait_until "it ends" gone "${pid[unflushed]}"
}

# a thread of the daemon is held; or its end is
check_end held
check_end offered stays

# The same of `umbel run`, whose command ends while the file system lives.
# shellcheck disable=SC2016
expect 7 '' umbel run --hosts 1 -- sh -c '
	"$@" > "$TMPDIR/held" 2>&1 & echo $! > "$TMPDIR/server"
	until grep -qs held "$TMPDIR/held"; do sleep 0.05; done
	exit 7' sh "${serve[@]}"
kill "$(cat "$TMPDIR/server")"
