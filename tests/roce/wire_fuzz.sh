#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A hostile peer of connected queue pairs (wire_fuzz.c): it harms no byte of its victim's memory that it was not
# let into, is sent none of it, and neither the victim's fabric nor others on it notice. Seed 1, then that of
# the day.
#
# By hand, with any of these arguments: seconds=N (for each seed), seed=N.

. "${0%/*}/lab.sh"
. "${0%/*}/pairs.bash"

seconds=9
seeds=(1 "$(date +%Y%m%d)")
for argument; do
	case $argument in
	seconds=*) seconds=${argument#*=} deadline=$((deadline + 2 * seconds)) patience=$((patience + 2 * seconds)) ;;
	seed=*) seeds=("${argument#*=}") ;;
	*) echo "unknown: $argument" >&2; exit 2 ;;
	esac
done

lab_up 2
roce_up h2
daemon=$(field pid h2)
# the pairs are on h2, and have nothing to do with h1
server_on=h2 server_address=192.0.2.2

# answers: the daemon is there at once.
answers()
{
	local began=${EPOCHREALTIME/./} took
	expect 0 '*' timeout 20 bash -c "$(declare -f on umbel_on); $(declare -p without_privileges)
		umbel_on h2 status"
	took=$(((${EPOCHREALTIME/./} - began) / 1000))
	[ $took -le $slowest ] || slowest=$took
}

# attack SEED
attack()
{
	local name=$1 rounds=0
	start_on "victim-$name" h2 "$programs_dir/roce.wire_fuzz_victim" 192.0.2.1
	wait_said "victim-$name" ready || return
	# as long as that polls it receives for all; then it is the victim, or the daemon while that sleeps
	begin_pair "bw-$name" ib_send_bw -F -D $((seconds / 2)) -s 2000 -u 20
	# not by launch_on(): the sanitizers' runtime must come before what stdbuf preloads
	launch "fuzz-$name" ip netns exec h1 "$programs_dir/roce.wire_fuzz" "$TMPDIR/victim-$name.out" \
		192.0.2.1 192.0.2.2 "$name" "$seconds"
	until gone "${pid[fuzz-$name]}" || [ $failed -ne 0 ]; do
		if gone "${pid[client-bw-$name]}"; then
			sleep 0.2
		else
			begin_pair "pp" ibv_rc_pingpong -g 1 -c -n 500
			end_pair pp
		fi
		answers
		rounds=$((rounds + 1))
		gone "${pid[victim-$name]}" && break
	done
	wait_ended "fuzz-$name" 0
	end_pair "bw-$name"
	kill -TERM "${pid[victim-$name]}"
	wait_ended "victim-$name" 0
	expect_said "victim-$name" unharmed
	echo "seed $name: $rounds rounds beside it; the slowest answer of the daemon took $slowest ms;" \
		"it has $(sed -n 's/^VmRSS:[[:space:]]*//p' "/proc/$daemon/status") of memory"
	tail -n 1 "$TMPDIR/fuzz-$name.out"
	rnrs=$((rnrs + $(sed -n 's/.* \([0-9]*\) RNR NAKs.*/\1/p' "$TMPDIR/fuzz-$name.out")))
	grep '^received' "$TMPDIR/victim-$name.out"
}

slowest=0
rnrs=0
for seed in "${seeds[@]}"; do
	attack "$seed"
done
[ $rnrs -gt 0 ] || complain "no receive was ever missing: the victim is not what it should be" # seldom: not with each seed
[ $slowest -lt 5000 ] || complain "the daemon took $slowest ms to answer"

[ "$(field pid h2)" = "$daemon" ] || complain "the daemon has died"
expect 0 '*' umbel_on h2 show counters
begin_pair after ibv_rc_pingpong -g 1 -c -n 1000
end_pair after
expect_said client-after '1000 iters in '
