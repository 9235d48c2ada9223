#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# container.sh DIRECTORY DEVICE COMMAND...: what a container runtime makes of an image, which is this machine's /usr and /etc, and
# of what kubelet.py has written of that device: the command sees nothing else, and is in namespaces of its own. DEVICE -: it
# gets no device. CONTAINER_NET=node: the network is that of the node, too. Run by lab.sh.

set -eu

if [ "${CONTAINER:-}" != $$ ]; then
	namespaces=(--mount --pid --ipc --uts)
	[ "${CONTAINER_NET:-}" = node ] || namespaces+=(--net)
	[ "$(id -u)" -eq 0 ] || namespaces+=(--user --map-root-user)
	exec unshare "${namespaces[@]}" --fork --kill-child env CONTAINER=1 "$0" "$@"
fi

directory=$1 device=$2
shift 2
variables=() mounts=()
if [ "$device" != - ]; then
	mapfile -t variables < "$directory/$device.env"
	mapfile -t mounts < "$directory/$device.mounts"
fi

root=$TMPDIR/root
mkdir -p "$root"
mount -t tmpfs tmpfs "$root"
mkdir "$root"/{usr,etc,dev,proc,sys,tmp,old}
for path in /bin /sbin /lib*; do
	[ ! -L "$path" ] || cp -P "$path" "$root" # to /usr
done
for path in /usr /etc /sys; do
	mount --rbind "$path" "$root$path"
done
for path in /dev/{null,zero,full,urandom}; do
	touch "$root$path"
	mount --bind "$path" "$root$path"
done
for mount in "${mounts[@]}"; do
	read -r from to how <<< "$mount"
	mkdir -p "$root$to"
	mount --bind "$from" "$root$to"
	[ "$how" = rw ] || mount -o "remount,bind,$how" "$root$to"
done
mount -t proc proc "$root/proc"
cd "$root"
pivot_root . old
umount -l /old
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "${variables[@]}" "$@"
