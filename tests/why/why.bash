# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts here share. Sourced by them; their first argument is the program why.c.

. "${0%/*}/../system/lib.sh"

program=$1

# hold CAUSE [NUMBER]: until it is as it should be; sets $from and $to, the numbers of its queue pairs.
hold()
{
	start "$1" all "$program" "$@"
	wait_said "$1" ready || return
	# shellcheck disable=SC2034 # for the scripts
	read -r _ from to < <(grep ^ready "$TMPDIR/$1.out")
}
