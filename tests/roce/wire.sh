#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connected queue pairs between two machines with Umbel, on RoCEv2: pingpongs and perftest, all opcodes.

. "${0%/*}/lab.sh"
. "${0%/*}/pairs.bash"

lab_up 2
roce_up h1 h2
capture h2

n=0
for program in "ibv_rc_pingpong -g 1 -n 100 -c" "ibv_rc_pingpong -g 1 -e -s 1 -n 100" \
	"ibv_srq_pingpong -g 1 -q 4 -n 100"; do
	n=$((n + 1))
	# shellcheck disable=SC2086
	whole_pair "$n" $program
	expect_said "client-$n" '[0-9]* iters in '
done
for program in "ib_send_bw -F -n 200" "ib_send_lat -n 50" "ib_write_bw -F -n 200" "ib_write_lat -n 50" "ib_write_bw -F -n 200 -c UC" \
	"ib_read_bw -F -n 200" "ib_read_lat -n 50" "ib_atomic_bw -F -n 200" "ib_atomic_lat -n 50 -A CMP_AND_SWAP" \
	"ib_write_bw -F -n 200 -b -q 4" "ib_read_bw -F -n 20 -s 1000000" "ib_send_bw -F -n 20 -s 1000000"; do
	n=$((n + 1))
	# shellcheck disable=SC2086
	whole_pair "$n" $program
done

# total COUNTER: of both hosts.
total()
{
	local host sum=0
	for host in h1 h2; do
		sum=$((sum + $(umbel_on $host show counters --json | sed -n "s/^ *\"$1\": \([0-9]*\),*\$/\1/p")))
	done
	echo $sum
}

# With two receives: each second message would be refused, but for credits. While the receiver stands still,
# as on a busy machine it may, the sender asks again each time that its timer ends: then once more.
few_refused()
{
	local before
	before=$(total rnr_nak_retry_err)
	whole_pair few ib_send_bw -F -s 64 -n 2000 -r 2
	few=$(($(total rnr_nak_retry_err) - before))
	[ $few -lt 200 ]
}
few=
wait_until 'few of 2000 messages are refused' few_refused || complain "$few of 2000 were refused"

# Of programs that wait for events the daemon sends, too, and neither overtakes the other's packets. Now and
# then the machine may keep one of them from a processor for so long that it is not waited for.
for i in 1 2 3; do
	before=$(total out_of_sequence)
	begin_pair "one$i" ib_send_bw -e -F -s 64 -n 20000
	begin_pair "two$i" ib_send_bw -e -F -s 64 -n 20000
	end_pair "one$i"
	end_pair "two$i"
	overtaken=$(($(total out_of_sequence) - before))
	[ $overtaken -ge 50 ] || break
done
[ $overtaken -lt 50 ] || complain "$overtaken of 40000 packets were overtaken"

# UC: what gets lost is lost, and a pingpong waits for it
for i in 1 2 3 4 5; do
	begin_pair "uc$i" timeout 10 ibv_uc_pingpong -g 1 -n 100
	for side in client server; do
		wait_until "$side-uc$i ends" gone "${pid[$side-uc$i]}"
	done
	! says "client-uc$i" '[0-9]* iters in ' || break
done
expect_said "client-uc$i" '[0-9]* iters in '

captured h2
expect_sound h2
