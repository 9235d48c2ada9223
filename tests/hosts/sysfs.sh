#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Scripts and programs find the network device of an HCA, and the HCA of a network device, as they do on
# real machines: by the links of both, by `resource`, and by the address of an interface of IPoIB.

. "${0%/*}/lab.sh"

umbel up --hosts 2 --ipoib --roce-hosts 1 --roce @h1 --device-names 'mlx5_%d' > /dev/null || exit 1

# on HOST COMMAND
on()
{
	umbel exec "$1" -- bash -c "$2"
}

# in both directions, whichever way is gone
devices='for i in /sys/class/infiniband/*; do echo "${i##*/}" $(ls "$i/device/net"); done'
expect 0 $'mlx5_0 ib0\nmlx5_1 eth0' on h1 "$devices"
expect 0 'mlx5_0 eth0' on r1 "$devices"
expect 0 $'eth0 mlx5_1\nib0 mlx5_0' on h1 'cd /sys/class/net; for n in *; do
	[ ! -e "$n/device" ] || echo $n $(ls $n/device/infiniband); done'
for pair in 'mlx5_0 ib0' 'mlx5_1 eth0'; do
	read -r hca netdev <<< "$pair"
	expect 0 "$(on h1 "realpath /sys/class/infiniband/$hca/device")" on h1 "realpath /sys/class/net/$netdev/device"
	expect 0 "*/$hca" on h1 "realpath /sys/class/net/$netdev/device/net/$netdev/device/infiniband/$hca"
	expect 0 pci on h1 "basename \$(readlink /sys/class/infiniband/$hca/device/subsystem)"
	expect 0 infiniband on h1 "basename \$(readlink /sys/class/infiniband/$hca/subsystem)"
	expect 0 -1 on h1 "cat /sys/class/infiniband/$hca/../../numa_node"
	# as UCC: the name of the place is in uevent
	expect 0 "$(on h1 "basename \$(realpath /sys/class/infiniband/$hca/device)")" \
		on h1 "sed -n s/PCI_SLOT_NAME=//p /sys/class/infiniband/$hca/device/uevent"
done

# as ibdev2netdev: the same resource, and the port's number
match='for i in /sys/class/infiniband/*; do for n in /sys/class/net/*; do
	[ -f "$n/device/resource" ] && cmp -s "$n/device/resource" "$i/device/resource" &&
		echo "${i##*/} port $(($(cat "$n/dev_port") + 1)) ==> ${n##*/}"; done; done; true'
expect 0 $'mlx5_0 port 1 ==> ib0\nmlx5_1 port 1 ==> eth0' on h1 "$match"

# an interface of IPoIB has an InfiniBand's address: its queue pair, and the port's GID
guid=$(on h1 'cat /sys/class/infiniband/mlx5_0/ports/1/gids/0' | tr -d : | sed 's/../:&/g')
expect 0 "00:00:00:[0-9a-f][0-9a-f]$guid" on h1 'cat /sys/class/net/ib0/address'
expect 0 $'32\n20\n0x0\n0' on h1 'cd /sys/class/net/ib0; cat type addr_len dev_id dev_port'
expect 0 02:75:6d:00:00:02 on h1 'cat /sys/class/net/eth0/address'
expect 0 00:00:00:00:00:00 on h1 'cat /sys/class/net/lo/address'

# getifaddrs(3) has it, too, and no entry without an address, which programs would read; of all its entries the
# flags are those of a device of IPoIB: broadcast, not from point to point, with ARP
cat > "$TMPDIR/ifaddrs.py" <<- 'END'
	import ctypes
	class Entry(ctypes.Structure):
	    pass
	Entry._fields_ = [("next", ctypes.POINTER(Entry)), ("name", ctypes.c_char_p), ("flags", ctypes.c_uint),
	                  ("address", ctypes.POINTER(ctypes.c_ubyte * 32))]
	libc = ctypes.CDLL(None, use_errno=True)
	for again in range(2):
	    entry = ctypes.POINTER(Entry)()
	    assert libc.getifaddrs(ctypes.byref(entry)) == 0
	    first = entry
	    while entry:
	        a = bytes(entry.contents.address.contents)
	        if entry.contents.name == b"ib0":
	            assert entry.contents.flags & 0x92 == 0x02, hex(entry.contents.flags)
	        if a[0] == 17 and entry.contents.name == b"ib0":
	            print(a[8] | a[9] << 8, a[11], a[12:32].hex(":"))
	        entry = entry.contents.next
	    libc.freeifaddrs(first)
END
address="32 20 $(on h1 'cat /sys/class/net/ib0/address')"
expect 0 "$address"$'\n'"$address" on h1 "/usr/bin/python3 $TMPDIR/ifaddrs.py"

# one that gets another name is listed by that only, however often it is looked at
rename='ip link set $0 down && ip link set $0 name $1 && ip link set $1 up && ls /sys/class/infiniband/mlx5_0/device/net'
expect 0 ib7 umbel exec h1 -- bash -c "$rename" ib0 ib7
expect 0 ib0 umbel exec h1 -- bash -c "$rename" ib7 ib0

# of several HCAs each has an interface
expect 0 $'mlx5_0 ib0\nmlx5_1 ib1\nmlx5_2 ib2' umbel run --hosts 2 --hcas 3 --ipoib --device-names 'mlx5_%d' \
	--host h2 -- bash -c "$devices"

# a program that looks at other network devices asks no fabric, and so does not wait for one that is stopped
mkfifo "$TMPDIR/go"
start looker h1 bash -c "echo ready; read -r < $TMPDIR/go; exec timeout 3 cat /sys/class/net/lo/address /sys/class/net/lo/type"
wait_said looker ready
daemon=$(field pid default)
kill -STOP "$daemon"
echo > "$TMPDIR/go"
wait_ended looker 0
kill -CONT "$daemon"
[[ $(cat "$TMPDIR/looker.out") == *772 ]] || complain 'lo has another type'
