#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The first process of the virtual ARM machine of tools/arm64.sh, from its initrd. Its disk is the
# root; /umbel is the same as outside. The script build/guest/command there takes over.

/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
while read -r module; do
	insmod "/modules/$module" || echo "cannot load $module"
done < /modules/order
mount -t ext4 -o noatime,nobarrier /dev/vda /root || mount -t ext4 /dev/vda /root
mkdir -p /root/umbel
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose umbel /root/umbel
mount -t proc proc /root/proc
mount -t sysfs sysfs /root/sys
mount -t devtmpfs devtmpfs /root/dev
mkdir -p /root/dev/shm /root/dev/pts
mount -t tmpfs tmpfs /root/dev/shm
mount -t devpts devpts /root/dev/pts
mount -t tmpfs tmpfs /root/tmp
mount -t tmpfs tmpfs /root/run
ip link set lo up
hostname umbel-arm64
# not chroot: who is in one may make no user namespaces
exec switch_root /root /bin/bash /umbel/build/guest/command
