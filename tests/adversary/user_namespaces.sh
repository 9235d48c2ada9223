#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# In user namespaces owners are numbers that may mean nothing: with no user mapped, with this user
# mapped to root, with the daemon inside and the program outside, and the other way round. The same
# user always reaches the fabric; another user never does.

. "${0%/*}/../system/lib.sh"

devices='*umbel_h1_0*'

for options in "--user" "--user --map-root-user" "--user --map-current-user"; do
	# shellcheck disable=SC2086
	expect 0 "$devices" unshare $options umbel run --hosts 1 -- ibv_devices
	# shellcheck disable=SC2086
	expect 0 "$devices" umbel run --hosts 1 -- unshare $options ibv_devices
	# shellcheck disable=SC2086
	expect 0 "*is up*" unshare $options umbel up --hosts 1
	expect 0 "$devices" umbel exec -- ibv_devices
	# shellcheck disable=SC2086
	expect 0 "*is down" unshare $options umbel down
done

# the directory of last resort is in /tmp, which belongs to a user that is not mapped
# (umbel goes along: a checkout may be there, too)
# shellcheck disable=SC2016
expect 0 "$devices" env "BUILD=${UMBEL%/bin/*}" unshare --user --mount --map-root-user sh -c '
	mount -t tmpfs -o mode=1777 tmpfs /mnt && mkdir /mnt/lib && cp -r "$BUILD/bin" /mnt &&
	cp -r "$BUILD/lib/umbel" /mnt/lib && mount --move /mnt /tmp && cd /tmp && PATH=/tmp/bin:$PATH &&
	env -u UMBEL_RUNTIME_DIR -u XDG_RUNTIME_DIR umbel run --hosts 1 -- ibv_devices'

[ "$(id -u)" -eq 0 ] || exit 0

# ---- a program that root starts as another user is another user
expect 0 $'umbel: fabric *cannot be used: it belongs to another user*\n*device*\n*------*' \
	umbel run --hosts 1 -- setpriv --reuid 65534 --regid 65534 --clear-groups ibv_devices
