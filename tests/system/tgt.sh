#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# tgt exports a disk by iSER, which libiscsi reads and writes, by itself and in QEMU's tools: a file system gets there
# and back byte for byte.

. "${0%/*}/rdmacm.bash"

PATH=$PATH:/usr/sbin:/sbin
cd "$TMPDIR" || exit
name=iqn.2026-11.example.umbel initiator=iqn.2026-11.example.umbel:initiator
export TGT_IPC_SOCKET=$TMPDIR/tgtd

# admin OPTION...: of the target
admin()
{
	tgtadm --lld iser "$@" > /dev/null 2>> admin.out
}

# tool NAME COMMAND...: one of QEMU's on h2, on the disk
tool()
{
	local output
	output=$(timeout 300 umbel exec h2 -- "$@" 2>&1) || complain "$* says: $output"
}

truncate -s 8M image disk
mkdir files && head -c 3M /dev/urandom > files/random && cp "$0" files
mkfs.ext4 -q -d files image || complain 'no file system'

umbel up --hosts 2 > /dev/null
new_port
# its own port of TCP is in nobody's way; a pool of 64 MiB for data, instead of 1 GiB
start tgt h1 tgtd -f --iscsi portal="127.0.0.1:$port" --iser port=3260,pool_sz_mb=64
wait_until 'tgtd listens by IPv4 and IPv6' listen 2
wait_until 'tgtd takes orders' admin --mode target --op new --tid 1 --targetname "$name"
for order in "logicalunit --op new --tid 1 --lun 1 -b $TMPDIR/disk" \
	'target --op bind --tid 1 -I ALL' "target --op bind --tid 1 -Q $initiator"; do
	# shellcheck disable=SC2086 # words
	admin --mode $order || complain "tgtadm refuses $order: $(< admin.out)"
done
expect 0 '*Vendor:IET*Product:VIRTUAL-DISK*' timeout 300 umbel exec h2 -- \
	iscsi-inq -i "$initiator" "iser://10.0.0.1:3260/$name/1"
expect 10 '*Target not found*' timeout 300 umbel exec h2 -- iscsi-inq "iser://10.0.0.1:3260/$name/1"

# pieces of 128 KiB: libiscsi takes 256 KiB at most
disk=driver=raw,file.driver=iscsi,file.transport=iser,file.portal=10.0.0.1:3260,file.target=$name
disk+=,file.lun=1,file.initiator-name=$initiator
writes=()
for ((at = 0; at < 8 << 20; at += 128 << 10)); do
	dd if=image of="piece-$at" bs=128k skip=$((at >> 17)) count=1 status=none
	writes+=(-c "write -s piece-$at $at 128k")
done
tool qemu-io --image-opts "$disk" "${writes[@]}"
cmp image disk || complain 'what was written differs'
tool qemu-img dd --image-opts bs=128k if="$disk" of=back
cmp image back || complain 'what was read differs'
expect 0 '*Pass 5*' e2fsck -fn back
