#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test_infra.sh PLUGIN: what NVIDIA/k8s-test-infra asks of a node without hardware (its issues 374, 478 and 558), and what its
# scripts check with Debian's programs in two pods, here with two HCAs each: the commands of the table in docs/kubernetes.md.

. "${0%/*}/lab.sh"

umbel up --hosts 2 --hcas 2 --device-names 'mlx5_%d' > /dev/null
node_up node '' h1 h2

# lines HOST PATTERN COMMAND...: how many lines of what it prints match this extended regular expression
node=node
lines()
{
	in_pod $node "$1" "${@:3}" | grep -cE "$2"
}

for host in h1 h2; do
	# libibverbs finds the HCAs, and opens them
	expect 0 2 lines $host '^[[:space:]]+mlx5_[01]$' ibv_devinfo -l
	expect 0 2 lines $host '^[[:space:]]+mlx5_[01][[:space:]]+[0-9a-f]{16}$' ibv_devices
	expect 0 2 lines $host 'state:.*PORT_ACTIVE' ibv_devinfo
	# sysfs
	expect 0 $'mlx5_0\nmlx5_1' in_pod node $host ibstat -l
	expect 0 2 lines $host "^CA 'mlx5_[01]'" ibstat
	expect 0 2 lines $host '[^_]state:[[:space:]]+4: ACTIVE' ibstatus
	expect 0 2 lines $host 'phys state:[[:space:]]+5: LinkUp' ibstatus
	# both see one subnet manager, and each other
	expect 0 '*sm guid 0x2756d0000000101,*state 3 SMINFO_MASTER*' in_pod node $host sminfo
	expect 0 4 lines $host '^Ca[[:space:]]' ibnetdiscover
	expect 0 '*"h1 mlx5_0"*"h2 mlx5_0"*' in_pod node $host sh -c 'iblinkinfo | sort'
	expect 0 'DRIVER=mlx5_core*' in_pod node $host cat /sys/class/infiniband/mlx5_0/device/uevent
	# what does not look by the C library's calls sees the kernel's, where there is nothing
	expect 1 '*No such file*' in_pod node $host busybox ls /sys/class/infiniband/mlx5_0
done
expect 0 '' in_pod node h1 /usr/bin/test -c /dev/infiniband/uverbs0
for file in umad0 rdma_cm; do
	expect 0 '' in_pod node h1 test -c /dev/infiniband/$file
done

# another pod answers, by LID and by GUID
pod server node h2 ibping -S
for address in 3 '-G 0x02756d0000000301'; do
	# shellcheck disable=SC2086 # an option and its value
	wait_until "h2 answers to $address" in_pod node h1 ibping -c 1 $address > /dev/null
done
end_pod server

# data: pods meet by rdma_cm, or by TCP on the pods' network, which is the test's own here
for program in ib_write_bw ib_read_bw ib_send_bw; do
	options='-d mlx5_0 -R -s 65536 -n 500'
	# shellcheck disable=SC2086
	pair node h1 $program $options -- node h2 $program $options 10.0.0.1
	bandwidth
done
by_tcp()
{
	new_port
	pod server node h1 "$@" -p "$port"
	wait_listening server "$port"
	pod client node h2 "$@" -p "$port" 127.0.0.1
	wait_ended client 0
	wait_ended server 0
}
export CONTAINER_NET=node
by_tcp ib_write_bw -d mlx5_0 -F -s 65536 -n 500
bandwidth
by_tcp ibv_rc_pingpong -d mlx5_1
expect_said client '.*bytes in .* seconds'
unset CONTAINER_NET
node_down node

# under the name of the Network Operator's resource
node=operator
node_up operator '--resource rdma/ib --share 64' h1.0 h1.63
expect 0 2 lines h1.63 'state:.*PORT_ACTIVE' ibv_devinfo
node_down operator
umbel down > /dev/null

# the table names no other command
while read -r command; do
	case $command in
	*.yaml | kubernetes.* | 'eval '*) ;;
	*) grep -qF -- "$command" "$0" || complain "docs/kubernetes.md names '$command', which is not run here" ;;
	esac
done < <(sed -n '/^| asked/,/^$/p' "$here/../../docs/kubernetes.md" | cut -d '|' -f 3 | grep -o '`[^`]*`' | tr -d '`')
