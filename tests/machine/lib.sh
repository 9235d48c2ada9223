# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Hosts of the lab's network that are virtual machines: Debian's stock kernel (kernel.sh) under
# qemu, in software, so that it runs anywhere, with this host's file system (read-only below a
# layer in memory) and rdma_rxe on its network device. Machine vK is at the bridge's port of that
# name, as 192.0.2.K and 2001:db8::K; its RDMA device is rxe0. K has two digits.
#
# Sourced after tests/roce/lab.sh, which ends the machines with all else. Commands reach agent.sh,
# in the machine, by a virtio port and the folder $TMPDIR/vK, which both see.

machine_options=(-smp 1 -m 768)	# processors, memory
machine_dir=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
commands=0

# machine_up NAME...: boots these machines; returns when they are on the network.
machine_up()
{
	local name

	ip link show br0 > /dev/null || exit 1
	for name in "$@"; do
		machine_boot "$name" || { complain "$name cannot be started"; exit 1; }
	done
	for name in "$@"; do
		wait_until "$name is up" ready_or_ended "$name"
		[ -e "$TMPDIR/$name/ready" ] || { complain "$name does not boot"; exit 1; }
		machine_network "$name" || { complain "$name has no network"; exit 1; }
	done
}

ready_or_ended()
{
	[ -e "$TMPDIR/$1/ready" ] || gone "${pid[$1]}"
}

# machine_boot NAME: what it prints on its console is kept as that of a program of this name. It
# may be slow beside other tests: the kernel is not to be surprised by that.
machine_boot()
{
	local name=$1 dir=$TMPDIR/$1

	mkdir "$dir" && mkfifo "$dir/line.in" "$dir/line.out" || return
	ip tuntap add "$name" mode tap && ip link set "$name" master br0 up || return
	launch "$name" qemu-system-x86_64 -accel tcg,thread=multi -cpu max "${machine_options[@]}" \
		-nodefaults -display none -no-reboot -serial stdio \
		-kernel "$UMBEL_TEST_LINUX/vmlinux" -initrd "$UMBEL_TEST_LINUX/initrd" \
		-append "console=ttyS0 loglevel=4 panic=-1 no_timer_check nowatchdog mitigations=off
			agent=$machine_dir/agent.sh" \
		-virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
		-virtfs "local,path=$dir,mount_tag=commands,security_model=none" \
		-device virtio-serial-pci -chardev "pipe,id=line,path=$dir/line" \
		-device virtserialport,chardev=line \
		-netdev "tap,id=net,ifname=$name,script=no,downscript=no" \
		-device "virtio-net-pci,netdev=net,mac=02:00:00:00:00:${name#v}"
}

# machine_network NAME: addresses, and rdma_rxe on the device.
machine_network()
{
	machine "$1" bash -c "
		echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad &&
		echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad &&
		echo 0 > /proc/sys/net/ipv6/conf/eth0/router_solicitations &&
		ip link set eth0 up &&
		ip address add 192.0.2.${1#v}/24 dev eth0 &&
		ip address add 2001:db8::${1#v}/64 dev eth0 &&
		ip route add 224.0.0.0/4 dev eth0 &&
		rdma link add rxe0 type rxe netdev eth0"
}

# machine NAME COMMAND...: runs it there, prints what it prints, ends with its status.
machine()
{
	local name=$1 id=command-$((++commands))-$BASHPID
	shift
	machine_command "$name" "$id" "$@"
	wait_until "$name has run: $*" ended_or_off "$name" "$id"
	cat "$TMPDIR/$name/$id.out"
	machine_status "$name" "$id"
}

# machine_launch NAME MACHINE COMMAND...: runs it there in the background, as launch() does.
machine_launch()
{
	local name=$1
	shift
	rm -f "$TMPDIR/$1/$name".*
	ln -sf "$1/$name.out" "$TMPDIR/$name.out"
	launch "$name" machine_run "$name" "$@"
}

# machine_end NAME MACHINE: ends that command, and what it has started.
machine_end()
{
	echo "end $1" > "$TMPDIR/$2/line.in"
}

# machine_cm_listens NAME: whether a server of its kernel's rdma_cm does.
machine_cm_listens()
{
	machine "$1" rdma resource show cm_id | grep -q 'state LISTEN'
}

# machine_load MACHINE LIST: the modules of that list of kernel.sh's.
machine_load()
{
	machine "$1" bash -c "cd /run/modules && while read -r module; do insmod \$module || exit; done < $2"
}

machine_run()
{
	local id=$1 name=$2
	shift 2
	machine_command "$name" "$id" "$@"
	until ended_or_off "$name" "$id"; do
		sleep 0.05
	done
	machine_status "$name" "$id"
}

# machine_command NAME ID COMMAND...: has it started there under that name.
machine_command()
{
	local dir=$TMPDIR/$1 id=$2
	shift 2
	printf '%q ' "$@" > "$dir/$id.command"
	echo "run $id" > "$dir/line.in"
}

ended_or_off()
{
	[ -e "$TMPDIR/$1/$2.status" ] || gone "${pid[$1]}"
}

# machine_status NAME ID: its status; 255 if it has none.
machine_status()
{
	return "$(cat "$TMPDIR/$1/$2.status" || echo 255)"
}
