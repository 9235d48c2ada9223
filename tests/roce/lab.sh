# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A network for a test: hosts h1, h2..., each a network namespace with one device, eth0, on a
# bridge that snoops IGMP and MLD and sends queries. Host hK has the addresses 192.0.2.K and
# 2001:db8::K, and the bridge's port to it is hK, too. The bridge, br0, with 192.0.2.254 and
# 2001:db8::fe, is in the namespace that the test itself runs in.
#
# Sourced by a script before it does anything else. This starts the script again, as the first
# process of namespaces of its own (mount, network, process IDs; user as well, unless root): when
# that process ends, however it does, the kernel ends the others and removes devices and
# namespaces, and no name used here is in anybody's way. tests/system/lib.sh is part of it.

if [ "${LAB_PID:-}" != $$ ]; then
	namespaces=(--mount --net --pid)
	[ "$(id -u)" -eq 0 ] || namespaces+=(--user --map-root-user)
	exec unshare "${namespaces[@]}" --fork --kill-child --mount-proc \
		env LAB_PID=1 "$0" "$@"
fi

. "$(dirname "${BASH_SOURCE[0]}")/../system/lib.sh"

PATH+=:/usr/sbin:/sbin
# The tests' own programs.
programs_dir=${UMBEL%/bin/*}/tests/programs
fences=0

# on HOST COMMAND...
on()
{
	ip netns exec "$@"
}

# launch_on NAME HOST COMMAND...: in the background, as start() of tests/system/lib.sh.
launch_on()
{
	local name=$1 host=$2
	shift 2
	launch "$name" ip netns exec "$host" stdbuf -oL "$@"
}

# ---- Umbel on the hosts, each with a fabric that has the host's name. It gets no privilege.

without_privileges=(setpriv --inh-caps -all --bounding-set -all --no-new-privs)

# umbel_on HOST ARGUMENT...: the command umbel.
umbel_on()
{
	local host=$1
	shift
	UMBEL_FABRIC=$host on "$host" "${without_privileges[@]}" umbel "$@"
}

# roce_up HOST...: RoCEv2 on the host's device.
roce_up()
{
	local host

	for host in "$@"; do
		umbel_on "$host" up --roce eth0 > /dev/null || exit 1
	done
}

# start_on NAME HOST COMMAND...: in the background, as start().
start_on()
{
	local name=$1 host=$2
	shift 2
	launch "$name" env UMBEL_FABRIC="$host" ip netns exec "$host" "${without_privileges[@]}" \
		umbel exec -- stdbuf -oL "$@"
}

# ---- the network

# lab_up COUNT: the bridge and that many hosts. When it returns links are up, addresses usable,
# and the bridge forwards to members only.
lab_up()
{
	local i

	mount -t tmpfs tmpfs /run && mkdir /run/netns && prepare_namespace || exit 1
	# The bridge floods until queries could have been answered, so for the first no time is
	# given. Last members are asked twice, a tenth of a second apart.
	ip link add br0 type bridge mcast_igmp_version 3 mcast_mld_version 2 \
		mcast_query_response_interval 0 mcast_last_member_interval 10 || exit 1
	ip address add 192.0.2.254/24 dev br0
	ip address add 2001:db8::fe/64 dev br0
	ip link set br0 up
	ip route add 224.0.0.0/4 dev br0
	for ((i = 1; i <= $1; i++)); do
		lab_host $i || exit 1
	done
	ip link set br0 type bridge mcast_querier 1
	# Before the first MLD query is out it does not know that it can send them, and floods.
	wait_until "the bridge has sent a query" heard_query h1 || exit 1
	ip link set br0 type bridge mcast_query_response_interval 10
}

# lab_host K: adds host hK. What leaves it in one piece is cut before its device, as captures want
# it.
lab_host()
{
	ip netns add "h$1" &&
	on "h$1" bash -c "$(declare -f prepare_namespace); prepare_namespace" &&
	lab_device "$1"
}

# lab_device K: its device; neighbours will not notice if it is a new one.
lab_device()
{
	ip link add "h$1" type veth peer name eth0 netns "h$1" address "02:00:00:00:00:0$1" &&
	ip link set "h$1" master br0 up &&
	ip -n "h$1" link set eth0 up gso_max_segs 1 &&
	ip -n "h$1" address add "192.0.2.$1/24" dev eth0 &&
	ip -n "h$1" address add "2001:db8::$1/64" dev eth0 &&
	ip -n "h$1" route add 224.0.0.0/4 dev eth0
}

# prepare_namespace: lo is up; IPv6 addresses will be usable at once, and nobody asks for routers.
prepare_namespace()
{
	echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad &&
	echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad &&
	echo 0 > /proc/sys/net/ipv6/conf/default/router_solicitations &&
	ip link set lo up
}

# heard_query HOST: whether an MLD query has reached it.
heard_query()
{
	on "$1" grep -q '^Icmp6InGroupMembQueries[[:space:]]*[1-9]' /proc/net/snmp6
}

# ---- the bridge's groups

# members GROUP: the bridge's ports that it forwards the group to, "h1 h3".
members()
{
	bridge mdb show dev br0 |
		awk -v group="$1" '$5 == "grp" && $6 == group { print $4 }' | sort -uV | paste -sd' '
}

# wait_members GROUP PORTS: until it is these, in order; none is "".
wait_members()
{
	wait_until "the bridge forwards $1 to '$2'" members_are "$@" && return
	complain "it forwards it to '$(members "$1")'"
	return 1
}

members_are()
{
	[ "$(members "$1")" = "$2" ]
}

# ---- captures

# capture HOST: all that its port of the bridge carries from now on, in $TMPDIR/HOST.pcap.
capture()
{
	launch "capture-$1" dumpcap -q -p -P -i "$1" -w "$TMPDIR/$1.pcap"
	wait_said "capture-$1" 'File: '
}

# captured HOST...: waits until what has passed so far is in their captures, which go on.
captured()
{
	local host mark

	mark="fence $((++fences)) of the lab"
	# to all systems: forwarded to every port
	echo "$mark" > /dev/udp/224.0.0.1/9
	for host in "$@"; do
		wait_until "the capture of $host is written" \
			grep -qaF "$mark" "$TMPDIR/$host.pcap"
	done
}

# decode HOST FILTER [OPTION...]: tshark on the captured packets that fit its display filter.
decode()
{
	local host=$1 filter=$2
	shift 2
	# UDP checksums of packets that never leave this machine are left to the device
	plain_tshark -r "$TMPDIR/$host.pcap" -Y "$filter" \
		-o ip.check_checksum:TRUE -o udp.ignore_ipv6_zero_checksum:TRUE "$@" \
		2> "$TMPDIR/tshark.err" && return
	# of a packet that has come since, half may be written
	grep -q 'cut short in the middle of a packet' "$TMPDIR/tshark.err" ||
		complain "tshark cannot decode it: $(cat "$TMPDIR/tshark.err")"
}

# expect_packets COUNT HOST FILTER: that many fit it.
expect_packets()
{
	local got

	decode "$2" "$3" -T fields -e frame.number > "$TMPDIR/decoded"
	got=$(wc -l < "$TMPDIR/decoded")
	[ "$got" -eq "$1" ] || complain "$got packets, not $1, on $2: $3; the last with UDP:"$'\n'"$(
		decode "$2" udp | tail -n 20)"
}

# expect_sound HOST: the captured RoCEv2 packets, one at least, are such as tshark has nothing to
# complain of, and their ICRCs, which it does not check, are right.
expect_sound()
{
	decode "$1" 'udp.port == 4791 &&
		(!infiniband || _ws.malformed || _ws.expert.severity >= "Warning")' \
		> "$TMPDIR/decoded"
	[ ! -s "$TMPDIR/decoded" ] ||
		complain "not sound, at $1:"$'\n'"$(cat "$TMPDIR/decoded")"
	"$programs_dir/roce.check_icrc" "$TMPDIR/$1.pcap" || complain "of the packets on $1"
}
