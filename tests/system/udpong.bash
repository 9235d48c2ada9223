# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Clients of udpong, for scripts that have counters(), which prints the counters of the ports as JSON.
#
# A client receives into the message that it sends. When an echo has been late and a datagram is lost then, as when the
# server sleeps until its receives are used up, the client sends the echoed message again and again, and waits for ever for
# another one; so it would on any network. Such a client is started anew.

begin=start # what starts a program: start NAME HOST COMMAND...

declare -A asked

# client NAME HOST OPTION...
client()
{
	asked[$1]=$*
	"$begin" "$1" "$2" udpong "${@:3}"
}

# Datagrams that found no receive.
lost()
{
	counters | awk '/"no_receive":/ { n += $2 } END { print n + 0 }'
}

# Ended, or it has gone on for 20 s, and something was lost meanwhile.
ended_or_locked_up()
{
	gone "${pid[$1]}" || { [ $SECONDS -ge $again ] && [ "$(lost)" -gt "$lost_before" ]; }
}

# wait_result NAME [TEST]: until it has ended well, and said how long the test took: "inf" for each datagram if all that
# were sent one way found no receive.
wait_result()
{
	local again lost_before=0
	while true; do
		again=$((SECONDS + 20))
		wait_until "$1 ends" ended_or_locked_up "$1" || return
		! gone "${pid[$1]}" || break
		lost_before=$(lost)
		kill -9 "${pid[$1]}"
		wait "${pid[$1]}" 2>/dev/null
		# shellcheck disable=SC2086
		client ${asked[$1]}
	done
	wait_ended "$1" 0
	expect_said "$1" "${2:-custom} .* [0-9.]*s  *[0-9.]*  *[0-9.inf]*\$"
}
