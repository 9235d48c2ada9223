#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs with connections to another machine are killed, stopped, fork and exec, at random instructions while both
# ends send: the other end gets right data, or an error within its timeouts; the next program connects at once.
#
# By hand: wire_death.sh ROUNDS SEED [WAY], by wire_death.c's numbers. Then there is a second pair of programs on the
# same hosts, which lives: whoever dies may do so while it receives for them. On a machine with ten busy programs for
# each processor they may count as stopped.

. "${0%/*}/lab.sh"
. "${0%/*}/traffic.bash"

lab_up 2
roce_up h1 h2
daemons=$(field pid h1)\ $(field pid h2)

others=()
if [ $# -gt 0 ]; then	# others on the same hosts, of which all live
	begin_both rounds="$1" seed="${2:-1}" only=11
	others=("$victims" "$peer")
fi
begin_both rounds="${1:-200}" seed="${2:-$RANDOM}" ${3:+only="$3"}
end_both
for name in "${others[@]}"; do
	wait_ended "$name" 0
	expect_said "$name" 'all is well'
done
[ "$(field pid h1) $(field pid h2)" = "$daemons" ] || complain "a daemon has died"
[ $# -eq 0 ] || { cat "$TMPDIR/$peer.out"; exit; }

# ---- rdma_cm tells at once
start_on listener h1 "$programs_dir/roce.wire_cm_death" listen "$TMPDIR/rounds" 192.0.2.1
start_on connectors h2 "$programs_dir/roce.wire_cm_death" connect "$TMPDIR/rounds" 192.0.2.1
for name in connectors listener; do
	wait_ended $name 0
	expect_said $name 'all is well'
done

# ---- a daemon dies: its own program is told so, the other one's requests fail
declare -A dies=([h1]=12 [h2]=13)	# wire_death.c's numbers
for host in h1 h2 h1 h2 h1 h2; do
	begin_both seed=$RANDOM only=${dies[$host]}
	wait_said "$victims" sends
	sleep 0.00$((RANDOM % 10))
	kill -9 "$(field pid $host)"
	end_both
	roce_up $host
done
