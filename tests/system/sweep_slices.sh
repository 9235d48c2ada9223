#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Sweeps of a large fabric are done in slices: commands that change the subnet at the same time have
# their turns, one after the other, and all have what they asked for when they return; others are
# served in between. A command that is killed while it waits, and a subnet manager that goes, leave
# nobody behind.

. "${0%/*}/lib.sh"

umbel up --fat-tree 3 --radix 16 > /dev/null

# state PORT
state()
{
	umbel show topology | awk -v node="${1%:*}" -v port="${1#*:}" '$1 == node && $4 == port { print $5 }'
}

# at_once COMMAND FIRST...: on all of them at the same time, which must all succeed
at_once()
{
	local command=$1 pids=() each
	shift

	for each; do
		# shellcheck disable=SC2086
		umbel $command "$each" & pids+=($!)
	done
	umbel show hosts > /dev/null || complain 'nobody else is served'
	for each in "${pids[@]}"; do
		wait "$each" || complain "one of umbel $command fails"
	done
}

# same_routes: once all is up, paths are shared out anew as at the start
same_routes()
{
	umbel link down leaf8:16
	umbel link up leaf8:16
	expect 0 "$before" umbel show routes --load
}

links=(leaf1:9 leaf2:10 leaf3:11 spine4:3 spine5:4 umbel_h{7..9}_0:1)
before=$(umbel show routes --load)
at_once 'link down' "${links[@]}"
for link in "${links[@]}"; do
	expect 0 down state "$link"
done
at_once 'link up' "${links[@]}"
for link in "${links[@]}"; do
	expect 0 active state "$link"
done
same_routes

at_once 'switch kill' spine1 spine2 leaf5
at_once 'switch revive' spine1 spine2 leaf5
same_routes
at_once 'sm event lid-change' h1:1 h2:1 h3:1
at_once 'sm event client-reregister' h1:1 h2:1 h3:1
umbel link down leaf8:16
umbel link up leaf8:16
before=$(umbel show routes --load)

# one that fails waits for its turn, too
umbel link down leaf1:9 & first=$!
umbel link down leaf1:9 2> /dev/null & second=$!
wait $first && failures=0 || failures=1
wait $second || failures=$((failures + 1))
[ "$failures" = 1 ] || complain "of two that take a link down $failures fail"

# killed while they wait: what they asked for is done or not, and the next one is served
for _ in {1..10}; do
	umbel link up leaf1:9 2> /dev/null & one=$!
	umbel link down leaf1:9 2> /dev/null & other=$!
	kill -9 $one $other || true
	wait $one $other || true
done 2> /dev/null
umbel link up leaf1:9 2> /dev/null || true
expect 0 active state leaf1:9
same_routes

# the subnet manager goes, while others wait for it or behind it
umbel link down leaf1:9 & one=$!
umbel sm stop & other=$!
umbel link down leaf2:10 & third=$!
for each in $one $other $third; do
	wait "$each" || complain 'a command fails when the subnet manager goes'
done
expect 0 '' umbel sm start
expect 0 '' umbel link up leaf1:9
expect 0 '' umbel link up leaf2:10
same_routes

# one that takes over has others wait, too
umbel sm stop
umbel sm start & one=$!
umbel link down leaf1:9 & other=$!
umbel link down leaf2:10 & third=$!
umbel show hosts > /dev/null || complain 'nobody else is served'
for each in $one $other $third; do
	wait "$each" || complain 'a command fails when a subnet manager takes over'
done
expect 0 down state leaf1:9
expect 0 '' umbel link up leaf1:9
expect 0 '' umbel link up leaf2:10
same_routes

# so does the fabric
umbel link down leaf1:9 2> /dev/null & one=$!
umbel link down leaf2:10 2> /dev/null & other=$!
umbel down > /dev/null
wait $one $other || true
