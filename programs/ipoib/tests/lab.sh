# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A fabric for a test, whose hosts h1, h2... each have a network namespace with an interface, ib0, of
# umbel-ipoib. Host hK has the addresses 192.0.2.K and 2001:db8::K.
#
# With the option --connected the interfaces are in connected mode.
#
# Sourced by a script before it does anything else. This starts the script again, as the first
# process of namespaces of its own, as tests/roce/lab.sh does. tests/system/lib.sh is part of it.

if [ "${LAB_PID:-}" != $$ ]; then
	namespaces=(--mount --net --pid)
	[ "$(id -u)" -eq 0 ] || namespaces+=(--user --map-root-user)
	exec unshare "${namespaces[@]}" --fork --kill-child --mount-proc \
		env LAB_PID=1 "$0" "$@"
fi

. "$UMBEL_TESTS/system/lib.sh"

PATH+=:/usr/sbin:/sbin
mode=datagram
[ "${1-}" != --connected ] || mode=connected
# The tests' own programs.
programs_dir=${UMBEL%/bin/*}/tests/programs

# on HOST COMMAND...: in its namespace, not on the fabric
on()
{
	ip netns exec "$@"
}

# launch_on NAME HOST COMMAND...: in the background, as launch() of tests/system/lib.sh
launch_on()
{
	local name=$1 host=$2
	shift 2
	launch "$name" ip netns exec "$host" stdbuf -oL "$@"
}

# lab_up COUNT [OPTION...]: a fabric with that many hosts (or as the options have it), and their
# namespaces
lab_up()
{
	local i count=$1
	shift

	mount -t tmpfs tmpfs /run && mkdir /run/netns || exit 1
	[ $# -gt 0 ] || set -- --hosts "$count"
	umbel up "$@" > /dev/null || exit 1
	for ((i = 1; i <= count; i++)); do
		ip netns add "h$i" && ip -n "h$i" link set lo up || exit 1
	done
}

# interface HOST [OPTION...]: starts its interface, and waits until it can be used. Its output is that of the program
# "ib0-HOST".
interface()
{
	start_interface "$@"
	wait_said "ib0-$1" R || exit 1
}

start_interface()
{
	local host=$1 number=${1#h}
	shift
	# umbel-ipoib ends with its parent, which is this shell
	launch "ib0-$host" ip netns exec "$host" umbel exec "$host" -- umbel-ipoib \
		--interface ib0 --address "192.0.2.$number/24" \
		--address "2001:db8::$number/64" --status-fd 1 --mode $mode --multicast "$@"
}

# interfaces COUNT: those of the first hosts
interfaces()
{
	local i

	for ((i = 1; i <= $1; i++)); do
		start_interface "h$i"
	done
	for ((i = 1; i <= $1; i++)); do
		wait_said "ib0-h$i" R || exit 1
	done
}

# pings COUNT HOST OPTION...: so many replies come, however slow this machine is
pings()
{
	local count=$1 host=$2
	shift 2
	expect 0 '*' on "$host" ping -n -q -c "$count" -w 200 "$@"
}

# reaches HOST ADDRESS: one ping comes back
reaches()
{
	on "$1" ping -n -q -c 1 -W 1 "$2" > /dev/null
}

# ---- groups of the fabric

# members MGID: "h1 full, h2 send-only-non", in the order of hosts; nothing, if there is no such group
members()
{
	umbel show groups | awk -v mgid="$1" '
		$1 ~ /:/ { ours = $1 == mgid }
		ours && $1 == "members" { sub(/^ *members */, ""); print }' |
		sed 's/, /\n/g' | sort -V | paste -sd, | sed 's/,/, /g; s/^-$//'
}

members_are()
{
	[ "$(members "$1")" = "$2" ]
}

# wait_members MGID MEMBERS: until it is these
wait_members()
{
	wait_until "the members of $1 are '$2'" members_are "$@" && return
	complain "they are '$(members "$1")'"
	return 1
}

# ---- the status

# held_interface HOST [OPTION...]: as interface(), but status() can ask it
held_interface()
{
	local host=$1 number=${1#h}
	shift
	launch "ib0-$host" ip netns exec "$host" umbel exec "$host" -- \
		python3 "$(dirname "${BASH_SOURCE[0]}")/holder.py" "$TMPDIR/$host.control" \
		umbel-ipoib --interface ib0 --address "192.0.2.$number/24" \
		--address "2001:db8::$number/64" --status-fd 1 --mode $mode "$@"
	wait_said "ib0-$host" R || exit 1
}

# status HOST EXPRESSION: of its status, in Python; s is the JSON object
status()
{
	socat -u "UNIX:$TMPDIR/$1.control" STDOUT |
		python3 -c "import json, sys
s = json.load(sys.stdin)
print($2)"
}
