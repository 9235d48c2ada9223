#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Another user makes /tmp/umbel-UID before this user does, and listens there. Libraries do not
# connect to it, and umbel neither follows its links nor makes a file there. Needs root, for a
# /tmp and a second user of its own.

if [ "$(id -u)" -ne 0 ]; then
	echo "skipped: only root can be two users"
	exit 0
fi
if [ "${OWN_TMP:-}" != yes ]; then
	exec unshare --mount env OWN_TMP=yes "$0" "$@"
fi

. "${0%/*}/../system/lib.sh"

# The files of the other user are moved out of the /tmp over which another one is mounted now.
programs=/run/umbel-test.$$
mkdir "$programs" && mount -t tmpfs -o mode=755 tmpfs "$programs" || exit 1
cp "${UMBEL%/bin/*}/tests/programs/adversary.foreign_daemon" "$programs/daemon"
mkdir -m 700 "$programs/private" "$programs/tmp"
chmod 755 "$programs" "$programs/daemon"
mkdir "$programs/build" && mount --bind "${UMBEL%/bin/*}" "$programs/build"
mount -t tmpfs -o mode=1777 tmpfs /tmp
cd / || exit 1
export TMPDIR=$programs/tmp UMBEL=$programs/build/bin/umbel PATH=$programs/build/bin:$PATH
libdir=$programs/build/lib/umbel
unset UMBEL_RUNTIME_DIR XDG_RUNTIME_DIR UMBEL_FABRIC

as_other()
{
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# not as_other: its shell would be what is killed at the end
setpriv --reuid 65534 --regid 65534 --clear-groups "$programs/daemon" /tmp/umbel-0 > "$TMPDIR/daemon.out" 2>&1 &
foreign=$!
wait_until "the other user's daemon listens" grep -q listens "$TMPDIR/daemon.out"

# ---- the libraries and the commands do not talk to it
no_devices=$'*device*\n*------*'
expect 0 "$no_devices" env LD_LIBRARY_PATH="$libdir" ibv_devices
expect 0 "umbel: fabric 'default' is not safe to use: '/tmp/umbel-0' belongs to another user (65534)
$no_devices" env LD_LIBRARY_PATH="$libdir" UMBEL_FABRIC=default ibv_devices
for command in "status --name default" "down" "exec -- true" "set sm_poll_ms=1"; do
	# shellcheck disable=SC2086
	expect 1 "umbel: fabric 'default' is not safe to use: '/tmp/umbel-0' belongs to another user (65534)" \
		umbel $command
done
! grep -q connected "$TMPDIR/daemon.out" || complain "somebody connected to another user's daemon"

# ---- root may name another user's fabric; even then it maps no memory that leads outside
expect 0 "$no_devices" env LD_LIBRARY_PATH="$libdir" UMBEL_RUNTIME_DIR=/tmp/umbel-0 ibv_devices
as_other chmod 700 /tmp/umbel-0 /tmp/umbel-0/default
expect 0 "umbel: fabric 'default' cannot be used: its daemon is of another version of Umbel; *
$no_devices" env LD_LIBRARY_PATH="$libdir" UMBEL_RUNTIME_DIR=/tmp/umbel-0 UMBEL_FABRIC=default ibv_devices

# ---- nothing is made there, and no link is followed
as_other rm /tmp/umbel-0/default/ctl
as_other ln -s "$programs/private/made" /tmp/umbel-0/default/log
as_other ln -s "$programs/private/made" /tmp/umbel-0/default/lock
refused="umbel: no private directory for *: '/tmp/umbel-0' belongs to another user (65534); *"
expect 1 "$refused" umbel up
expect 125 "$refused" umbel run -- true
[ -z "$(ls -A "$programs/private")" ] || complain "a link of another user was followed"
left=$(find /tmp/umbel-0 -user 0)
[ -z "$left" ] || complain "made in another user's directory: $left"

# ---- nor when the link is the directory itself
as_other rm -r /tmp/umbel-0
as_other ln -s "$programs/private" /tmp/umbel-0
expect 1 "umbel: no private directory for *: '/tmp/umbel-0' is a symbolic link; *" umbel up
[ -z "$(ls -A "$programs/private")" ] || complain "a link of another user was followed"

# ---- in a directory of its own root has its fabric as ever
as_other rm /tmp/umbel-0
expect 0 "fabric 'default' is up: *" umbel up --hosts 1
expect 0 "*umbel_h1_0*" env LD_LIBRARY_PATH="$libdir" ibv_devices
# where another user cannot enter
expect 0 "umbel: fabric 'default' cannot be used: it belongs to another user
$no_devices" as_other env LD_LIBRARY_PATH="$libdir" UMBEL_RUNTIME_DIR=/tmp/umbel-0 UMBEL_FABRIC=default ibv_devices
expect 0 "fabric 'default' is down" umbel down

kill $foreign
wait $foreign 2> /dev/null
cd / && umount -l "$programs/build" /tmp "$programs"
rmdir "$programs"
