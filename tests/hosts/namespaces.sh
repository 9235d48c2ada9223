#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Hosts that are namespaces (--ipoib): what a program sees on one, and that it keeps the rest of its
# world; how it gets from one to another; what stays as it is without.

. "${0%/*}/lab.sh"

# on HOST SCRIPT: what a shell there prints
on()
{
	umbel exec "$1" -- sh -c "$2"
}

umbel up --hosts 3 --ipoib > /dev/null || exit 1

# ---- a host of its own
expect 0 h2 on h2 hostname
expect 0 '*lo *127.0.0.1/8*' on h2 'ip -brief address'
expect 0 '*0% packet loss*' on h2 'ping -c 1 127.0.0.1'
expect 0 '::1 *localhost*' on h2 'getent hosts localhost'
expect 0 $'10.0.0.3\th3\nfd75:6d62:656c::3\th3' on h1 'grep h3 /etc/hosts'
expect 0 "fd75:6d62:656c::3 *h3" on h1 'getent hosts h3'
expect 0 $'ib0\nlo' on h2 'ls /sys/class/net'
expect 0 '00:00:00:00:00:00' on h2 'cat /sys/class/net/lo/address'
for link in /proc/self/ns/net /proc/self/ns/uts /proc/self/ns/mnt; do
	here=$(readlink $link) first=$(on h1 "readlink $link") second=$(on h2 "readlink $link")
	[ "$first" != "$here" ] && [ "$first" != "$second" ] || complain "hosts share $link"
	[ "$first" = "$(on h1 "readlink $link")" ] || complain "two programs of h1 do not share $link"
done

# the same port on two hosts; nobody else is connected
new_port
start one h1 socat -u "TCP-LISTEN:$port,bind=127.0.0.1" STDOUT
start two h2 socat -u "TCP-LISTEN:$port,bind=127.0.0.1" STDOUT
connects()
{
	echo "to $1" | umbel exec "$1" -- socat -u STDIN "TCP:127.0.0.1:$port" 2> /dev/null
}
wait_until "h2 is connected" connects h2
wait_until "h1 is connected" connects h1
wait_ended one 0
wait_ended two 0
expect_said one 'to h1'
expect_said two 'to h2'
not connects h3 || complain "h3 has the others' socket"

# ---- the rest is the caller's
expect 0 "$(id)" on h1 id
mkdir "$TMPDIR/here" && cd "$TMPDIR/here" || exit 1
expect 0 "$PWD" on h1 'pwd -P'
expect 0 127.0.0.1*localhost on h1 'cd /etc && head -n 1 hosts'
expect 0 '*umbel_h1_0*' on h1 ibv_devices
! on h1 ibv_devices | grep -q umbel_h2 || complain "h1 has the HCA of h2"
expect 0 '4: ACTIVE' on h1 'cat /sys/class/infiniband/umbel_h1_0/ports/1/state'
expect 0 '' diff <(ls /sys/fs/cgroup) <(on h1 'ls /sys/fs/cgroup')

# ---- from host to host, with rdma_cm and verbs between them
expect 0 $'h2\nh3\nh1' on h1 'umbel exec h2 -- sh -c "hostname; umbel exec h3 -- hostname"; hostname'
start server h1 rping -s -a 10.0.0.1 -C 3 -v
cmconnects()
{
	umbel exec h2 -- rping -c -a 10.0.0.1 -C 3 > /dev/null 2>&1
}
wait_until "rping gets to h1" cmconnects
wait_ended server 0

# a launcher on h1 gives its own environment to what it starts on h2
expect 0 '*umbel_h2_0*' on h2 'UMBEL_HOST=h1 ibv_devices'
expect 0 umbel_h2_0 on h2 'UMBEL_HOST=h1 ls /sys/class/infiniband'
expect 0 '*umbel_h2_0*' on h1 'umbel exec --net host h2 -- ibv_devices'

# ---- who stays outside
outside=$(readlink /proc/self/ns/net)
outside=${outside//[/\\[}	# of a pattern
expect 0 "$outside" umbel exec -- readlink /proc/self/ns/net
expect 0 "$outside" umbel exec --net host h1 -- readlink /proc/self/ns/net
expect 0 '*umbel_h1_0*' umbel exec --net host h1 -- ibv_devices
expect 2 "umbel: exec: no network 'moon': host; *" umbel exec --net moon h1 -- true
umbel down > /dev/null
umbel up --hosts 1 > /dev/null
expect 0 "$outside" umbel exec h1 -- readlink /proc/self/ns/net
umbel down > /dev/null
expect 0 h3 umbel run --hosts 3 --ipoib --host h3 -- hostname
expect 0 "$outside" umbel run --hosts 3 --ipoib -- readlink /proc/self/ns/net

# ---- many
expect 0 $'h60\nfd75:6d62:656c::3c *h60' umbel run --hosts 60 --ipoib --host h60 -- \
	sh -c 'hostname; getent hosts h60'

# ---- processors of a host: as many as it is to have, or as there are
all=$(nproc --all)
umbel up --hosts 2 --ipoib --set host_cpus=1 > /dev/null || exit 1
expect 0 1 on h1 nproc
expect 0 1 umbel exec h1 -- umbel exec h2 -- nproc
expect 0 "$(nproc)" nproc
if [ "$(nproc)" -ge 2 ]; then
	[ "$(on h1 'taskset -cp $$' | sed 's/.*: //')" != "$(on h2 'taskset -cp $$' | sed 's/.*: //')" ] ||
		complain 'h1 and h2 share a processor'
	way=$(umbel exec h1 -- umbel exec h2 -- sh -c 'taskset -cp $$')
	[ "${way##*: }" = "$(on h2 'taskset -cp $$' | sed 's/.*: //')" ] || complain "h2 has others by way of h1: $way"
fi
umbel down > /dev/null
umbel up --hosts 2 --ipoib --set host_cpus=$((all + 1)) > /dev/null
expect 0 "$(nproc)" on h2 nproc
umbel down > /dev/null
expect 1 '*the value is out of range*' umbel up --hosts 2 --set host_cpus=8193

# ---- where the keeper may have no thread
expect 0 $'h12\nfd75:6d62:656c::c *h12' "${UMBEL%/bin/*}/tests/programs/adversary.deny" EPERM clone3 -- \
	umbel run --hosts 12 --ipoib --roce @h12 --host h12 -- sh -c 'hostname; getent hosts h12'
