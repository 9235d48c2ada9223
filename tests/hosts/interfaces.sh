#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The interfaces of hosts that are namespaces: each host has its addresses on ib0 when `umbel up` returns,
# and reaches the others by name. It checks what umbel shows of them, and the end of one of them.

. "${0%/*}/lab.sh"

on()
{
	umbel exec "$1" -- sh -c "$2"
}

# program HOST: the process of its interface
program()
{
	umbel show hosts --json | awk -v name="\"host\": \"$1\"," '
		index($0, name) { found = 1 } found && /"pid":/ { gsub(/[^0-9]/, ""); print; exit }'
}

# every_pair COMMAND...: of each two hosts, as FROM TO
reach_all()
{
	local from to

	for from in h1 h2 h3; do
		for to in h1 h2 h3; do
			expect 0 '*' on $from "ping -4 -c 1 -w 200 $to"
			expect 0 '*' on $from "ping -6 -c 1 -w 200 $to"
		done
	done
}

umbel up --hosts 3 --ipoib > /dev/null || exit 1
expect 0 '*ib0 *10.0.0.2/16 *fd75:6d62:656c::2/64 *' on h2 'ip -brief address'
# it can be used at once; that a carrier has come the kernel notes a moment later
operstate_up()
{
	[ "$(on h2 'cat /sys/class/net/ib0/operstate')" = up ]
}
expect 0 1 on h2 'cat /sys/class/net/ib0/carrier'
wait_until "the kernel says that ib0 is up" operstate_up
expect 0 '10.0.0.3 *STREAM h3*' on h1 'getent ahostsv4 h3'
expect 0 $'ib0\nlo' on h1 'ls /sys/class/net'
expect 0 ib0 on h1 'cat /sys/class/net/ib0/uevent | sed -n "s/INTERFACE=//p"'
reach_all

# what Linux shows of an interface of IPoIB
expect 0 $'datagram\n0xffff\n0' on h2 'cd /sys/class/net/ib0; cat mode pkey umcast'
expect 0 datagram on h2 'cat /sys/class/net/*/mode'
expect 0 /sys/class/net/ib0/device/infiniband/umbel_h2_0 on h2 'echo /sys/class/net/*/device/infiniband/*'
expect 0 '4: ACTIVE' on h2 'cat /sys/devices/virtual/net/ib0/device/infiniband/*/ports/1/state'
expect 1 '*No such file*' on h2 'cat /sys/class/net/lo/mode'
expect 2 '*Permission denied' on h2 'echo connected > /sys/class/net/ib0/mode'
expect 1 '*No such file*' umbel exec --net host h2 -- cat /sys/class/net/ib0/mode

# TCP and UDP, by name
new_port
start server h3 socat -u "TCP-LISTEN:$port" STDOUT
tcp()
{
	echo by name | umbel exec h1 -- socat -u STDIN "TCP:h3:$port,connect-timeout=5" 2> /dev/null
}
wait_until "h3 is reached by TCP" tcp
wait_ended server 0
expect_said server 'by name'

# multicast, without a word of interfaces
new_port
start member h2 socat -u "UDP4-RECVFROM:$port,ip-add-membership=239.1.2.3:10.0.0.2" STDOUT
multicast()
{
	umbel exec h3 -- sh -c "echo to all | socat -u STDIN UDP4-DATAGRAM:239.1.2.3:$port"
	says member 'to all'
}
wait_until "h2 gets multicast of h3" multicast
wait_ended member 0

# ---- what is shown
# shown PATTERN [VIEW...]: whether `umbel show` says that of hosts, or of the view. A program that does not get a
# processor in time is shown without its status.
shown()
{
	local pattern=$1
	shift
	[ $# -gt 0 ] || set -- hosts
	# shellcheck disable=SC2053
	[[ $(umbel show "$@") == $pattern ]]
}
wait_until 'all interfaces are shown' shown '*
host *interface *state *sent *received*
h1 *ib0 *up *
h2 *ib0 *up *
h3 *ib0 *up *'
wait_until 'neighbours are shown' shown 'HOST *INTERFACE *ADDRESS *STATE *MODE *QPN *GID
*h1 *ib0 *10.0.0.3 * datagram *fe80::275:6d00:0:301*' neighbours
wait_until 'neighbours are shown as JSON' shown '*"host": "h1",*"ip": "10.0.0.2",*' neighbours --json
wait_until 'counters are shown as JSON' \
	shown '*"name": "h1",*"interfaces": \[*"interface": "ib0",*"counters": {*"name": "h2",*' hosts --json

# ---- a program that ends is started again, with the same addresses
first=$(program h2)
[ "$first" ] && kill -9 "$first" || complain "no program to kill: '$first'"
again()
{
	local now

	now=$(program h2)
	[ "$now" ] && [ "$now" != "$first" ] && on h2 'ip -brief address' | grep -q 'ib0.*UP.*10.0.0.2/16'
}
wait_until "h2 has a new interface" again
grep -q "the program of host 'h2' (pid $first) was ended by signal 9; it is started again" \
	"$UMBEL_RUNTIME_DIR/default/log" || complain "the log has no word of it"
pings()
{
	on "$1" "ping -c 1 -W 1 $2" > /dev/null
}
wait_until "h2 is reached again" pings h1 h2
wait_until "h2 reaches others" pings h2 h3

# ---- one that is stopped: it is shown without its status, the others with theirs
stopped=$(program h2)
kill -STOP "$stopped"
wait_until 'the others are shown' shown '*
h1 *ib0 *up *
h2 *- *- *
h3 *ib0 *up *'
kill -CONT "$stopped"

# ---- without the keeper there are none
kill -9 "$(keeper)"
no_interface()
{
	! on h1 'ip -brief address' | grep -q ib0
}
wait_until "the interface is gone" no_interface
expect 0 $'*interfaces of the hosts do not answer*\nHOST *' umbel show hosts
umbel down > /dev/null

# ---- a fabric without
umbel up --hosts 1 > /dev/null
[ "$(umbel show neighbours | wc -l)" -eq 1 ] || complain "a fabric without interfaces has neighbours"
expect 0 '\[*\]' umbel show neighbours --json
! umbel show hosts --json | grep -q interfaces || complain "a fabric without interfaces shows them"
umbel down > /dev/null

# ---- two ports, two interfaces
cat > "$TMPDIR/two.net" <<'END'
Switch	4 "S-1"	# "sw1"
[1]	"H-a"[1]
[2]	"H-a"[2]
[3]	"H-b"[1]

Hca	2 "H-a"	# "a HCA-1"
[1]	"S-1"[1]
[2]	"S-1"[2]

Hca	1 "H-b"	# "b HCA-1"
[1]	"S-1"[3]
END
umbel up --topology "$TMPDIR/two.net" --ipoib > /dev/null || exit 1
expect 0 '*ib0 *10.0.0.1/16*ib1 *10.1.0.1/16*' on a 'ip -brief address | sort'
expect 0 '*' on b 'ping -c 1 -w 200 -4 10.0.0.1'
umbel down > /dev/null

# ---- in connected mode
umbel up --hosts 2 --ipoib --set ipoib_mode=connected > /dev/null || exit 1
expect 0 '*ib0*mtu 65520 *' on h1 'ip link show ib0'
expect 0 connected on h1 'cat /sys/class/net/ib0/mode'
expect 0 '* 0% packet loss*' on h1 'ping -4 -q -c 3 -i 0.1 -w 200 -M do -s 60000 h2'
mode_shown()
{
	[[ $(umbel show neighbours) == *"h1 "*" ib0 "*" 10.0.0.2 "*" connected "* ]]
}
wait_until "the neighbour's mode is shown" mode_shown
umbel down > /dev/null

# ---- interfaces in partitions, on hosts whose port is a member: more of them when partitions change
cat > "$TMPDIR/partitions" <<-'END'
	Default=0x7fff, ipoib: ALL=full;
	Red=0x1, ipoib: 0x02756d0000000101=full, 0x02756d0000000201=limited;
	Blue=0x2: 0x02756d0000000101=full, 0x02756d0000000301=full;
END
umbel up --hosts 3 --ipoib --partitions "$TMPDIR/partitions" --ipoib-pkey 0x8001 --ipoib-pkey 2 > /dev/null || exit 1
expect 0 '*ib0.8001 *10.16.0.1/16 fd75:6d62:656c:10::1/64 *ib0.8002 *10.32.0.1/16 fd75:6d62:656c:20::1/64 *' \
	on h1 'ip -brief address show scope global | sort'
expect 0 '*IPoIB in datagram mode, port 1 of umbel_h1_0, P_Key 0x8002, QPN *' on h1 'ip link show ib0.8002'
expect 0 $'ib0\nib0.8001\nlo' on h2 'ls /sys/class/net'
expect 0 $'ib0\nib0.8002\nlo' on h3 'ls /sys/class/net'
expect 0 '*' on h2 'ping -c 1 -w 200 10.16.0.1'
expect 0 '*' on h3 'ping -c 1 -w 200 fd75:6d62:656c:20::1'
expect 0 '*' on h3 'ping -4 -c 1 -w 200 h2'
wait_until 'all interfaces are shown' shown '*
h1 *ib0 *up *
h1 *ib0.8001 *up *
h1 *ib0.8002 *up *
h2 *ib0 *up *
h2 *ib0.8001 *up *
h2 *ib0.8002 *absent *
h3 *ib0 *up *
h3 *ib0.8001 *absent *
h3 *ib0.8002 *up *'
sed -i 's/=limited;/=limited, 0x02756d0000000301=full;/' "$TMPDIR/partitions"
umbel sm partitions "$TMPDIR/partitions"
wait_until 'h3 has an interface in Red' pings h3 10.16.0.2
umbel down > /dev/null
expect 2 "umbel: up: '0x8000' is no P_Key, as 0x8001 is;*" umbel up --ipoib --ipoib-pkey 0x8000
expect 2 'umbel: up: hosts have an interface in the default partition*' umbel up --ipoib --ipoib-pkey 0x7fff
expect 2 'umbel: up: --ipoib-pkey has 0x8001 twice*' umbel up --ipoib --ipoib-pkey 1 --ipoib-pkey 0x8001
expect 2 'umbel: up: --ipoib-pkey needs --ipoib*' umbel up --ipoib-pkey 1

# ---- without a subnet manager ports do not get ready, and nobody waits for that
expect 0 '*is up*' umbel up --hosts 2 --ipoib --sm none
expect 0 '*ib0 *' on h1 'ip -brief address'
umbel down > /dev/null
