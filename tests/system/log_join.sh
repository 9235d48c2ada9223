#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# UMBEL_LOG=join=trace: the steps of a join (ARCHITECTURE.md, "One join, step by step") in the order
# of time, each with its port, group or MLID, from the program and from the daemon.

. "${0%/*}/mckey.bash"

export UMBEL_LOG=join=trace
umbel up --hosts 2 > /dev/null
log=$UMBEL_RUNTIME_DIR/default/log

# steps PROGRAM: what was traced since the daemon's log had $seen lines, without time and process.
steps()
{
	{ tail -n +$((seen + 1)) "$log"; grep ' join trace: ' "$TMPDIR/$1.out"; } | sort |
		sed 's/^[^ ]* umbel\[[0-9]*\] join trace: //'
}

# join NAME HOST OPTION...: mckey joins; its steps must be those of $expected, a pattern.
join()
{
	local name=$1 host=$2
	shift 2
	seen=$(wc -l < "$log")
	receive "$name" "$host" "$@"
	wait_joined "$name"
	# shellcheck disable=SC2053
	[[ $(steps "$name") == $expected ]] ||
		complain "$name joins"$'\n'"expected: $expected"$'\n'"got: $(steps "$name")"
}

mgid=ff12:4001:ffff::f01:101
expected="umbel_h1_0: the program joins 239.1.1.1: request to the daemon
umbel_h1_0:1: 239.1.1.1 is the group $mgid, P_Key 0xffff, Q_Key 0x01234567
umbel_h1_0:1: SubnAdmSet(MCMemberRecord) of $mgid to the SA at LID 1
SA: umbel_h1_0:1 joins $mgid, MLID 0xc001, a new group
SM: a new tree for MLID 0xc001, written in 0 ms; members: 1
sw1: the MFT leads MLID 0xc001 to the ports in mask 0x2
flows to MLID 0xc001 that cross sw1: they reach umbel_h1_0
umbel_h1_0:1: the SA's response for $mgid: done
umbel_h1_0:1: member of $mgid; joins that share it: 1
umbel_h1_0:1: the process gets an event: joined
umbel_h1_0: the program gets the event: member of $mgid, MLID 0xc001
umbel_h1_0: QP 0x?????? is to be attached: request to the daemon
QP 0x?????? is attached to $mgid, MLID 0xc001"
join first h1 -m 239.1.1.1

# another process on the port: nobody is asked
expected="umbel_h1_0: the program joins 239.1.1.1: request to the daemon
umbel_h1_0:1: 239.1.1.1 is the group $mgid, P_Key 0xffff, Q_Key 0x01234567
umbel_h1_0:1: member of $mgid; joins that share it: 2
umbel_h1_0:1: the process gets an event: joined
umbel_h1_0: the program gets the event: member of $mgid, MLID 0xc001
umbel_h1_0: QP 0x?????? is to be attached: request to the daemon
QP 0x?????? is attached to $mgid, MLID 0xc001"
join second h1 -m 239.1.1.1

# the port's last join ends: the port leaves
seen=$(wc -l < "$log")
kill -9 "${pid[first]}" "${pid[second]}"
left()
{
	grep -q 'they reach umbel_h1_0 no more$' "$log"
}
wait_until "the tables lead nowhere" left
[[ $(steps none 2> /dev/null) == *"SubnAdmDelete(MCMemberRecord) of $mgid "*"SA: umbel_h1_0:1 leaves $mgid"*"sw1: the MFT leads MLID 0xc001 to the ports in mask 0x0"* ]] ||
	complain "the port leaves: $(steps none)"
