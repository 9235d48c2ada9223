#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel run` leaves nothing on an overlayfs of two file systems, as live systems and diskless nodes have it: there a file
# has another device number than its directory.

if [ "${OWN_MOUNTS:-}" != yes ]; then
	namespaces=(--mount)
	[ "$(id -u)" -eq 0 ] || namespaces+=(--user --map-root-user)
	exec unshare "${namespaces[@]}" env OWN_MOUNTS=yes "$0" "$@"
fi

. "${0%/*}/lib.sh"

place=$TMPDIR/overlay
mkdir "$place" "$TMPDIR/upper" && mount -t tmpfs tmpfs "$TMPDIR/upper" && mkdir "$TMPDIR/upper/up" "$TMPDIR/upper/work" &&
	mount -t overlay -o "lowerdir=/usr/share/doc,upperdir=$TMPDIR/upper/up,workdir=$TMPDIR/upper/work" overlay "$place" || exit 1
mkdir -m 700 "$place/run"
touch "$place/run/file"
[ "$(stat -c %d "$place/run")" != "$(stat -c %d "$place/run/file")" ] || complain "files have the device number of directories"
rm "$place/run/file"
expect 0 'here' env UMBEL_RUNTIME_DIR="$place/run" umbel run --hosts 2 -- sh -c 'ls /sys/class/infiniband > /dev/null; echo here'
expect 0 '' ls -A "$place/run"
umount "$place" "$TMPDIR/upper"
