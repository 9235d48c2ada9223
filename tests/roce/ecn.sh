#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Congestion: a network that marks packets (ECN). Whose packets come marked is told by CNPs, and slows down
# if its fabric has the setting roce_ecn; without it no packet says that it may be marked.

. "${0%/*}/lab.sh"
. "${0%/*}/pairs.bash"
. "${0%/*}/crossing.bash"

# counter HOST NAME: of its port.
counter()
{
	umbel_on "$1" show counters --json | sed -n "s/^ *\"$2\": \([0-9]*\),*\$/\1/p"
}

# run NAME: WRITEs and READs by both hosts, while the cable marks half of what it may.
run()
{
	cable mark=50
	whole_pair "write-$1" ib_write_bw -F -b -n 500 -s 20000
	whole_pair "read-$1" ib_read_bw -F -n 100 -s 20000
	unplug
}

lab_up 2
cross
cable
umbel_on h1 up --roce eth0 --set roce_ecn=1 > /dev/null || exit 1
umbel_on h2 up --roce eth0 > /dev/null || exit 1
unplug

run one
# h1's may be marked, so h2 tells it, and it slows down. h2's may not
grep -q '^h1 to h2.* mark [1-9]' "$cable_report" || complain "nothing of h1's was marked"
grep -q '^h2 to h1.* mark 0 ' "$cable_report" || complain "something of h2's was marked"
marked=$(sed -n 's/^h1 to h2.* mark \([0-9]*\) .*/\1/p' "$cable_report")
for expected in "h2 np_ecn_marked_roce_packets $marked" "h1 np_ecn_marked_roce_packets 0" "h1 np_cnp_sent 0" \
	"h2 rp_cnp_handled 0" "h2 rp_cnp_ignored 0"; do
	read -r host name value <<< "$expected"
	[ "$(counter $host $name)" = "$value" ] || complain "$host $name: $(counter $host $name), not $value"
done
sent=$(counter h2 np_cnp_sent) handled=$(counter h1 rp_cnp_handled) ignored=$(counter h1 rp_cnp_ignored)
[ "$sent" -gt 0 ] && [ "$sent" -lt "$marked" ] || complain "$sent CNPs for $marked packets"
# some come when their queue pair has ended
[ "$handled" -gt 0 ] && [ $((handled + ignored)) -le "$sent" ] ||
	complain "of $sent CNPs h1 has handled $handled and ignored $ignored"

# programs may let their packets be marked by their traffic class, and are told; without the setting nothing
# slows down
umbel_on h1 down > /dev/null
umbel_on h1 up --roce eth0 > /dev/null || exit 1
cable mark=100
whole_pair class ib_write_bw -F -n 200 -s 20000 --tclass=2
unplug
[ "$(counter h1 np_cnp_sent)" -gt 0 ] || complain "h2 was not told"
[ "$(counter h2 rp_cnp_handled)" -eq 0 ] && [ "$(counter h2 rp_cnp_ignored)" -gt 0 ] ||
	complain "h2 has handled a CNP, or got none"
