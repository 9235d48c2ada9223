#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A service of the kernel's as the peer: its iSER target (ib_isert, over rdma_rxe) exports a disk, which libiscsi and
# QEMU's tools on Umbel write and read by RDMA: what is in the kernel's file is what was written, byte for byte.

# The kernel's target may take a command before it has made the session that the command is for, and dies of
# that, now and then on a busy machine. Then another machine is booted, twice at most.
if [ ! "${UMBEL_TEST_TRY:-}" ]; then
	for try in 1 2 3; do
		mkdir "$TMPDIR/$try"
		TMPDIR=$TMPDIR/$try UMBEL_TEST_TRY=$try "$0" "$@"
		status=$?
		[ -e "$TMPDIR/$try/died" ] || break
	done
	exit "$status"
fi

. "${0%/*}/sides.bash"

PATH=$PATH:/usr/sbin:/sbin
name=iqn.2026-11.example.umbel
portal=${ip4[v11]}:3260
size=$((8 << 20))

sides_up
cd "$TMPDIR" || exit
machine_load v11 ib_isert || complain 'the kernel has no iSER target'

# The target, by its configfs. Without immediate data: libiscsi agrees to it over iSER, and never sends it.
machine v11 bash -eu -c "
	mount -t configfs configfs /sys/kernel/config
	truncate -s $size /run/disk
	cd /sys/kernel/config/target
	mkdir -p core/fileio_0/disk
	echo fd_dev_name=/run/disk,fd_dev_size=$size > core/fileio_0/disk/control
	echo 1 > core/fileio_0/disk/enable
	mkdir -p iscsi/$name/tpgt_1/np/$portal iscsi/$name/tpgt_1/lun/lun_0
	cd iscsi/$name/tpgt_1
	echo 1 > np/$portal/iser
	ln -s /sys/kernel/config/target/core/fileio_0/disk lun/lun_0/disk
	echo No > param/ImmediateData
	echo 0 > attrib/authentication
	echo 0 > attrib/demo_mode_write_protect
	echo 1 > attrib/generate_node_acls
	echo 1 > enable" || complain 'the kernel exports nothing'

died()
{
	grep -q 'RIP: .*target_submit+' "$TMPDIR/v11.out"
}

ends_or_dies()
{
	gone "${pid[$1]}" || died
}

# tool NAME COMMAND...: at Umbel's side, to its end
tool()
{
	local tool=$1
	shift
	start_at "$tool" h1 "$@"
	wait_until "$tool ends, or the kernel dies" ends_or_dies "$tool"
	if died; then
		touch "$TMPDIR/died"
		echo "the kernel's target died in target_submit()"
		exit 1
	fi
	wait_ended "$tool" 0
	[ $failed -eq 0 ] || exit 1
}

tool inquiry iscsi-inq "iser://$portal/$name/0"
expect_said inquiry 'Vendor:LIO-ORG'

head -c $size /dev/urandom > image
disk=driver=raw,file.driver=iscsi,file.transport=iser,file.portal=$portal,file.target=$name,file.lun=0
writes=()
for ((at = 0; at < size; at += 128 << 10)); do
	dd if=image of="piece-$at" bs=128k skip=$((at >> 17)) count=1 status=none
	writes+=(-c "write -s $TMPDIR/piece-$at $at 128k")
done
tool write qemu-io --image-opts "$disk" "${writes[@]}"
machine v11 cat /run/disk | cmp - image || complain 'what was written differs'
tool read qemu-img dd --image-opts bs=128k if="$disk" of="$TMPDIR/back"
cmp image back || complain 'what was read differs'

captured v11
expect_sound v11
