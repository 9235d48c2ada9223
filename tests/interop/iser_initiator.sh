#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The kernel as the one that asks: its iSER initiator (ib_iser, over rdma_rxe), told by Debian's open-iscsi, has a disk
# that tgt exports on Umbel. What is in tgt's file is what the kernel has written to the disk, byte for byte, and so
# is what it reads.

. "${0%/*}/sides.bash"

PATH=$PATH:/usr/sbin:/sbin
target=iqn.2026-11.example.umbel initiator=iqn.2026-11.example.umbel:initiator
size=$((8 << 20))
export TGT_IPC_SOCKET=$TMPDIR/tgtd

# admin WORD...: of the target
admin()
{
	tgtadm --lld iser "$@" > /dev/null 2>> "$TMPDIR/admin.out"
}

# node OPTION...: of the initiator
node()
{
	machine v11 iscsiadm -m node -T $target -p "${ip4[h1]}:3260" "$@" || complain "open-iscsi fails: $*"
}

head -c $size /dev/urandom > "$TMPDIR/image"
truncate -s $size "$TMPDIR/disk"
sides_up

# its own port of TCP is in nobody's way; a pool of 64 MiB for data, instead of 1 GiB
start_on tgt h1 tgtd -f --iscsi portal=127.0.0.1:3260 --iser port=3260,pool_sz_mb=64
wait_until 'tgtd listens by IPv4 and IPv6' eval '[ "$(field listeners h1)" -eq 2 ]'
wait_until 'tgtd takes orders' admin --mode target --op new --tid 1 --targetname $target
for order in "logicalunit --op new --tid 1 --lun 1 -b $TMPDIR/disk" \
	'target --op bind --tid 1 -I ALL' "target --op bind --tid 1 -Q $initiator"; do
	# shellcheck disable=SC2086 # words
	admin --mode $order || complain "tgtadm refuses $order: $(< "$TMPDIR/admin.out")"
done

machine_load v11 ib_iser || complain 'the kernel has no iSER initiator'
machine v11 bash -c "
	echo InitiatorName=$initiator > /etc/iscsi/initiatorname.iscsi
	mkdir -p /run/lock/iscsi"
machine_launch iscsid v11 iscsid -f
machine v11 timeout 200 bash -c 'until grep -q ISCSIADM /proc/net/unix; do sleep 0.1; done' ||
	complain 'iscsid takes no orders'
node -I iser -o new
# a machine in software is slow: the initiator does not give its target up for that
for setting in login_timeout=120 noop_out_interval=0; do
	node -o update -n "node.conn[0].timeo.${setting%=*}" -v "${setting#*=}"
done
node --login
machine v11 timeout 200 bash -c 'until [ -b /dev/sda ]; do sleep 0.1; done' || complain 'the kernel has no disk'
[ $failed -eq 0 ] || exit 1

# past the page cache, each way
machine v11 dd if="$TMPDIR/image" of=/dev/sda bs=256k oflag=direct status=none || complain 'the kernel cannot write'
cmp "$TMPDIR/image" "$TMPDIR/disk" || complain 'what was written differs'
machine v11 dd if=/dev/sda of=/mnt/back bs=256k iflag=direct status=none || complain 'the kernel cannot read'
cmp "$TMPDIR/image" "$TMPDIR/v11/back" || complain 'what was read differs'
node --logout
wait_until 'the kernel has given the disk up' not machine v11 test -b /dev/sda

# what the kernel wrote tgt has read, and the other way round
captured v11
expect_sound v11
[ "$(decode v11 'infiniband.bth.opcode == 12 && ip.src == 192.0.2.1' | wc -l)" -gt 0 ] || complain 'tgt reads nothing'
[ "$(decode v11 'infiniband.bth.opcode == 6 && ip.src == 192.0.2.1' | wc -l)" -gt 0 ] || complain 'tgt writes nothing'
exit $failed
