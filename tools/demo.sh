#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ./run demo: one sender, three receivers, Debian's own mckey. Called with the path of umbel, it
# starts itself again on a private fabric of four hosts on one switch; there it starts the
# programs, waits for what they print, and tells who received what.

set -eu -o pipefail

cd "$(dirname "$(readlink -f "$0")")/.."
. tools/lib.sh

group=239.1.1.1
messages=10
bytes=100
receivers=(h1 h2 h3)
sender=h4
declare -A pid status command

# The address of host hN.
address()
{
	echo "10.0.0.${1#h}"
}

heading()
{
	printf '\n%s%s%s\n' "$bold" "$*" "$plain"
}

# wait_until WHAT SECONDS COMMAND...: waits until the command succeeds; nonzero after so many
# seconds. On a terminal it says what it waits for, if that takes a while.
wait_until()
{
	local what=$1 limit=$2 start=$SECONDS said=
	shift 2
	until "$@"; do
		if [ $((SECONDS - start)) -ge "$limit" ]; then
			return 1
		fi
		if [ -t 1 ] && [ ! "$said" ] && [ $((SECONDS - start)) -gt 1 ]; then
			said=yes
			printf '\n%swaiting until %s ...%s' "$dim" "$what" "$plain"
		fi
		sleep 0.05
	done
	[ ! "$said" ] || printf '\r\033[K\033[A'
}

# start HOST [OPTION]...: starts mckey on that host; a file gets its output line by line.
start()
{
	local host=$1
	shift
	command[$host]="mckey -m $group -b $(address "$host") -C $messages -S $bytes${*:+ $*}"
	: > "$logs/$host"
	# shellcheck disable=SC2086
	umbel exec "$host" -- stdbuf -oL ${command[$host]} > "$logs/$host" 2>&1 &
	pid[$host]=$!
	printf '  %-3s %s\n' "$host" "${command[$host]}"
}

says()
{
	grep -q "$2" "$logs/$1"
}

# Whether it has printed that line, or has ended.
joined_or_ended()
{
	says "$1" 'mckey: joined' || ended "$1"
}

ended()
{
	! kill -0 "${pid[$1]}" 2>/dev/null
}

all_ended()
{
	local host

	for host in "${!pid[@]}"; do
		ended "$host" || return 1
	done
}

wait_joined()
{
	wait_until "$1 has joined" 20 joined_or_ended "$1" && says "$1" 'mckey: joined' && return
	echo "demo: mckey on $1 did not join:" >&2
	sed 's/^/  /' "$logs/$1" >&2
	exit 1
}

# The group with MGID $1, as the subnet sees it.
show_group()
{
	umbel show groups | awk -v RS= -v mgid="$1" '$1 == mgid' | sed '1s/^/  MGID      /'
}

# Prints a row with the outcome of one mckey. Counts the failures.
tell()
{
	local host=$1 done=$2 colour=$green

	if [ "${status[$host]}" -ne 0 ] || ! says "$host" 'data transfers complete'; then
		done="failed: $(tail -n 1 "$logs/$host")"
		colour=$red
		failed=$((failed + 1))
	fi
	printf '  %-3s %-9s %s%s%s\n' "$host" "$(address "$host")" "$colour" "$done" "$plain"
}

clean_up()
{
	local host

	for host in "${!pid[@]}"; do
		kill "${pid[$host]}" 2>/dev/null || true
	done
	rm -rf "$logs"
}

inside()
{
	local host mgid failed=0

	logs=$(mktemp -d)
	trap clean_up EXIT

	heading "Four hosts on one switch, and mckey from Debian's rdmacm-utils, unmodified, on each"
	for host in "${receivers[@]}"; do
		start "$host"
	done
	for host in "${receivers[@]}"; do
		wait_joined "$host"
	done
	start "$sender" -s
	wait_joined "$sender"

	heading "The group $group as the subnet sees it while they are joined"
	mgid=$(sed -n 's/^mckey: joined dgid: \([^ ]*\).*/\1/p' "$logs/$sender")
	show_group "$mgid"

	wait_until "the messages are there (mckey pauses 3 s after it has joined)" 30 all_ended ||
		echo "demo: mckey does not end" >&2
	for host in "${!pid[@]}"; do
		ended "$host" || kill "${pid[$host]}"
		status[$host]=0
		wait "${pid[$host]}" || status[$host]=$?
	done
	heading "Who received what"
	tell "$sender" "sent $messages messages of $bytes bytes"
	for host in "${receivers[@]}"; do
		tell "$host" "received $messages messages of $bytes bytes"
	done
	pid=()

	if command -v umbel-latency >/dev/null; then
		heading "One-way latency"
		umbel-latency | sed 's/^/  /' || failed=$((failed + 1))
	fi
	[ "$failed" -eq 0 ]
}

if [ "${1:-}" = --inside ]; then
	inside
else
	exec "$1" run --hosts 4 -- tools/demo.sh --inside
fi
