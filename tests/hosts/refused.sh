#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Where hosts cannot be namespaces, --ipoib says in one line what is missing, and nothing is left; all
# else goes on. As in a container: by a filter of system calls, limits, a chroot.

. "${0%/*}/lab.sh"

deny=${UMBEL%/bin/*}/tests/programs/adversary.deny

# refused TEXT COMMAND...: the command fails with that one line after "umbel: "
refused()
{
	local text=$1
	shift
	expect 1 "umbel: $text" "$@"
	[ "$("$@" 2>&1 | wc -l)" -eq 1 ] || complain "several lines: $*"
	nothing_left "a failure: $*"
}

remember
refused 'hosts with a network of their own need user namespaces, which this machine or container forbids (unshare): Operation not permitted' \
	"$deny" EPERM unshare -- umbel up --ipoib
refused 'hosts with a network of their own need mounts in a namespace, which this machine or container forbids (mount*): Operation not permitted' \
	"$deny" EPERM mount -- umbel up --ipoib
refused '*setns*: Operation not permitted' "$deny" EPERM setns -- umbel up --ipoib
refused '*raise the limit (ulimit -n)' bash -c 'ulimit -n 40; exec umbel up --hosts 20 --ipoib'

refused 'hosts with a network of their own need user namespaces, which this machine or container forbids (unshare): Operation not permitted' \
	"$deny" EPERM unshare -- umbel up --roce-hosts 2
refused '*raise the limit (ulimit -n)' bash -c 'ulimit -n 60; exec umbel up --roce-hosts 16'
refused '*setns*: Operation not permitted' "$deny" EPERM setns -- umbel up --roce-hosts 2

# ---- /sys as it is, if it cannot be had anew; and a program that may not go to its host
umbel up --hosts 2 --ipoib > /dev/null
refuse_to_enter()
{
	expect 1 "umbel: cannot go to the network of host 'h1': Operation not permitted; 'umbel exec --net host' stays on this one" \
		"$@"
}
refuse_to_enter "$deny" EPERM setns -- umbel exec h1 -- true
refuse_to_enter unshare --user --map-root-user umbel exec h1 -- true
expect 0 '*umbel_h1_0*' "$deny" EPERM setns -- umbel exec --net host h1 -- ibv_devices
umbel down > /dev/null
expect 0 '*is up*' "$deny" EPERM move_mount open_tree -- umbel up --hosts 2 --ipoib
expect 0 h2 umbel exec h2 -- hostname
umbel down > /dev/null
nothing_left 'a few failures'

[ "$(id -u)" -eq 0 ] || exit $failed

# ---- a chroot, which the way to a host would lead out of
mount --rbind / /mnt
expect 1 'umbel: hosts with a network of their own cannot be made in a chroot' \
	chroot /mnt env "UMBEL_RUNTIME_DIR=$UMBEL_RUNTIME_DIR" "PATH=$PATH" umbel up --ipoib
umount -l /mnt
nothing_left 'a chroot'

# ---- no device for interfaces
mount -t tmpfs tmpfs /dev/net
expect 1 'umbel: interfaces of hosts need the device /dev/net/tun: No such file or directory; a container may have to be given it' \
	umbel up --ipoib
mknod /dev/net/tun c 1 3
expect 1 "*interface*" umbel up --ipoib
umount /dev/net
nothing_left 'no /dev/net/tun'
