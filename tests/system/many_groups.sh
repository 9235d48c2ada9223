#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Thousands of groups, and groups of thousands of queue pairs: all join, each message arrives once,
# also while a member's link is down, and who is killed leaves nothing behind. How long that takes is
# measured by ./run bench growth.

. "${0%/*}/lib.sh"

growth=${UMBEL%/bin/*}/bench/bin/growth
HOSTS=4
SENT=64	# messages of a "send"

# have_arrived TIMES QPS: the sends so far to QPS queue pairs.
have_arrived()
{
	wait_said growth "{\"measure\": \"send\".*\"arrived\": $((SENT * $2))}" "$1"
}

nothing_is_left()
{
	# but the group of IPoIB's broadcasts
	[ "$(field qps default) $(field flows default) $(field groups default)" = '0 0 1' ]
}

# grow GROUPS QPS
grow()
{
	local groups=$1 qps=$2 commands

	rm -f "$TMPDIR/commands"
	mkfifo "$TMPDIR/commands"
	launch growth sh -c 'exec "$@" < "$0"' "$TMPDIR/commands" \
		umbel exec -- "$growth" "$groups" $HOSTS "$qps"
	exec {commands}> "$TMPDIR/commands"
	wait_said growth "{\"measure\": \"join\", \"groups\": $groups, \"qps\": $qps," || return
	[ "$(field groups default)" -eq $((groups + 1)) ] || complain "not $groups groups"
	printf '%s\n' "send 0" "send $((groups - 1))" "flows 2" >&"$commands"
	have_arrived 2 "$qps" || return
	wait_said growth "{\"measure\": \"flows\", \"n\": $((2 * groups))}"

	expect 0 '' umbel link down h2:1
	echo "send $((groups / 2))" >&"$commands"
	have_arrived 1 $((qps - qps / HOSTS))
	expect 0 '' umbel link up h2:1
	[ "$(field groups default)" -eq $((groups + 1)) ] || complain "a link failed: not $groups groups"

	kill_hard growth
	exec {commands}>&-
	wait_until "nothing of $groups groups is left" nothing_is_left
}

umbel up --hosts $HOSTS --set max_mcast_grp=4096 --set max_mcast_qp_attach=6000 > /dev/null
grow 3000 $HOSTS
grow 4 6000
umbel down > /dev/null || complain 'it does not go down'
