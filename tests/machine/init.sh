#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The first process of the virtual machine, from the initrd that kernel.sh makes. The root file
# system is the host's, read-only, under a layer in memory; agent.sh, in it, takes over.

/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /lower /layer /root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev

# load NAME: the modules in that list
load()
{
	while read -r module; do
		insmod "/modules/$module" || echo "init.sh: cannot load $module"
	done < "/modules/$1"
}

load early
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro root /lower
mount -t tmpfs tmpfs /layer
mkdir /layer/upper /layer/work
mount -t overlay -o lowerdir=/lower,upperdir=/layer/upper,workdir=/layer/work overlay /root
load late
cp -r /modules /root/run/modules # what a test may load
mount -t proc proc /root/proc
mount -t sysfs sysfs /root/sys
mount -t devtmpfs devtmpfs /root/dev
mkdir -p /root/dev/shm
mount -t tmpfs tmpfs /root/dev/shm

# where things are on the host: agent.sh, and the folder for its commands
agent=$(sed -n 's/.*agent=\([^ ]*\).*/\1/p' /proc/cmdline)
mkdir -p /root/mnt
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none commands /root/mnt
exec chroot /root /bin/bash "$agent" /mnt
