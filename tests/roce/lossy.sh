#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connected queue pairs between two machines over a bad cable: whatever it does to packets, all that programs get
# is exact, and by RC it comes, in seconds; when the cable is good again, nothing stalls.

. "${0%/*}/lab.sh"
. "${0%/*}/pairs.bash"
. "${0%/*}/crossing.bash"

lab_up 2
cross
cable
roce_up h1 h2
unplug

shopt -s extglob
runs=0

# lossy FAULTS [KEY=VALUE]...: lossy.c on both hosts, over a cable with these faults, and again when it is
# good.
lossy()
{
	local client server fault faults=$1 command=("$programs_dir/roce.lossy" seed=$((++runs)) again=1)
	shift
	client=client-$runs server=server-$runs
	# shellcheck disable=SC2086
	cable $faults
	new_port
	start_on $server h1 "${command[@]}" port="$port" "$@"
	wait_until "$server listens" listens h1 "$port" || return
	start_on $client h2 "${command[@]}" port="$port" "$@" server=192.0.2.1
	wait_said $client again && wait_said $server again && good_cable || return
	kill -USR1 "${pid[$client]}" "${pid[$server]}"
	wait_ended $client 0
	wait_ended $server 0
	expect_said $client 'all is exact'
	expect_said $server 'all is exact'
	unplug
	for fault in ${faults//=*([^ ])/}; do
		case $fault in
		delay|jitter) ;;
		*) not grep -q " $fault 0 " "$cable_report" || complain "no packet has the fault $fault" ;;
		esac
	done
}

# pair PROGRAM [OPTION]...: starts Debian's, on both hosts.
pair()
{
	client=client-$((++runs)) server=server-$runs
	new_port
	start_on $server h1 "$@" -p "$port"
	wait_until "$server listens" listens h1 "$port" || return
	start_on $client h2 "$@" -p "$port" 192.0.2.1
}

# ends_perhaps NAME: it ends well, or with a request that was not acknowledged.
ends_perhaps()
{
	wait_until "$1 ends" gone "${pid[$1]}" || return
	wait_ended "$1" "$(grep -q 'transport retry counter exceeded' "$TMPDIR/$1.out" && echo 1 || echo 0)"
}

if [ $# -gt 0 ]; then	# by hand: what is to be seen
	lossy "$@"
	cat "$TMPDIR/client-1.out" "$cable_report"
	exit
fi

lossy ''
lossy 'drop=0.1' count=800
lossy 'drop=1' sleeps=1
lossy 'drop=5'
lossy 'duplicate=5'
lossy 'reorder=10 delay=200'
lossy 'corrupt=2' sleeps=1
lossy 'delay=1000'
lossy 'delay=5000'
lossy 'delay=50000' adds=100
lossy 'drop=0.5 duplicate=1 reorder=2 corrupt=0.5 delay=300 jitter=500' gid=2
# nobody waits for this timeout, of 34 s
lossy 'drop=5' timeout=23
for faults in 'drop=1' 'drop=5 corrupt=2' 'reorder=10 delay=200 drop=2' 'duplicate=5'; do
	lossy "$faults" uc=1 count=400
done

cable drop=1
# Who has all destroys its queue pair, which does not acknowledge a second time what it did before: of
# the two one may fail at its last message, as with any HCA.
pair ibv_rc_pingpong -g 1 -c -n 500
ends_perhaps $client
ends_perhaps $server
[ "${ended[$client]}${ended[$server]}" != 11 ] || complain "both ends of ibv_rc_pingpong fail"
for program in "ib_send_bw -F -n 200" "ib_write_bw -F -n 200" "ib_read_bw -F -n 200" "ib_atomic_bw -F -n 200"; do
	# shellcheck disable=SC2086
	pair $program
	wait_ended $client 0
	wait_ended $server 0
done
unplug
