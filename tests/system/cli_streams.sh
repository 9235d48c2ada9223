#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Commands whose standard streams are closed, or cannot be written: what is printed gets nowhere, least of all to the daemon,
# and the status says so.

. "${0%/*}/lib.sh"

lost='umbel: cannot write the output: '

# without COMMAND...: with the three streams closed, in vain.
without()
{
	timeout 60 "$@" <&- >&- 2>&-
}

# mute COMMAND...: with standard output closed.
mute()
{
	timeout 60 "$@" >&-
}

umbel up --hosts 2 > /dev/null || complain 'no fabric'
umbel up --name other --hosts 2 > /dev/null || complain 'no other fabric'
for command in 'show hosts' 'show topology --json' 'show counters --watch 1' status 'env h1' --help --version check; do
	# shellcheck disable=SC2086
	expect 1 "${lost}Bad file descriptor" mute umbel $command
	# shellcheck disable=SC2086
	expect 1 '' without umbel $command
done
expect 1 "umbel: cannot write '-': Bad file descriptor" mute umbel show topology --dot
expect 0 '' without umbel set sa_send_only=0
expect 1 '' without umbel down --name other
expect 1 "umbel: no fabric 'other' is up in *" umbel down --name other
# they are closed for a command, too
# shellcheck disable=SC2016
closed='[ ! -e /proc/$$/fd/0 ] && [ ! -e /proc/$$/fd/1 ] && [ ! -e /proc/$$/fd/2 ]'
expect 0 '' without umbel exec h1 -- sh -c "$closed"
expect 0 '' without umbel run --hosts 2 -- sh -c "$closed"
