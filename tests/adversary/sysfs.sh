#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What stands for directories of sysfs is made in the fabric's directory: by other users for its
# owner, in user namespaces, never through links that somebody has put there, nor in a directory
# that may not be written, and while many programs look at once.

. "${0%/*}/../system/lib.sh"

state=/sys/class/infiniband/umbel_h1_0/ports/1/state
stand_ins=$UMBEL_RUNTIME_DIR/default/sysfs

umbel up --hosts 1 > /dev/null
for options in "--user" "--user --map-root-user" "--user --map-current-user"; do
	# shellcheck disable=SC2086
	expect 0 '4: ACTIVE' umbel exec h1 -- unshare $options sh -c "cd ${state%/*} && cat state"
done

# links in the place of directories are not followed
umbel exec h1 -- ls /sys/class/infiniband > /dev/null
mkdir "$TMPDIR/elsewhere"
for path in "$stand_ins" "$stand_ins/h1" "$stand_ins/h1/sys/class"; do
	rm -rf "$stand_ins"
	mkdir -p "${path%/*}"
	ln -s "$TMPDIR/elsewhere" "$path"
	expect 2 'ls: cannot open directory *' umbel exec h1 -- ls /sys/class/infiniband
	expect 2 '*sysfs warning: cannot make a directory that stands for *' \
		env UMBEL_LOG=warning umbel exec h1 -- ls /sys/class/infiniband
	expect 0 '4: ACTIVE' umbel exec h1 -- cat $state # files need none
	[ -z "$(ls "$TMPDIR/elsewhere")" ] || complain "a link at $path was followed"
	rm "$path"
done
mkdir -p "$stand_ins"
ln -s "$TMPDIR/elsewhere" "$stand_ins/h1"
touch "$TMPDIR/elsewhere/kept"
umbel down > /dev/null
[ -e "$TMPDIR/elsewhere/kept" ] || complain "the daemon has removed what a link led to"
[ ! -e "$stand_ins" ] || complain "stand-ins are left"

# many programs at once, of which each makes what is missing
umbel up --hosts 1 > /dev/null
# shellcheck disable=SC2016 # the shells in there replace these
expect 0 40 umbel exec h1 -- bash -c 'for i in {1..40}; do
	(cd /sys/class/infiniband/*/ports/1/gid_attrs/types && ls | wc -l) & done | grep -c "^16$"; wait'
umbel down > /dev/null

[ "$(id -u)" -eq 0 ] || exit 0

# ---- root looks on another user's fabric, who removes all of it
as_other()
{
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}
other=$(mktemp -d /tmp/umbel-test.XXXXXX)
chown 65534:65534 "$other"
as_other env UMBEL_RUNTIME_DIR="$other" umbel up --hosts 1 > /dev/null
expect 0 state env UMBEL_RUNTIME_DIR="$other" umbel exec h1 -- sh -c "cd ${state%/*} && ls -d state"
[ "$(find "$other/default/sysfs" -type d ! -user 65534)" = '' ] || complain "root owns what the owner must remove"
as_other env UMBEL_RUNTIME_DIR="$other" umbel down > /dev/null
[ ! -e "$other/default/sysfs" ] || complain "the owner cannot remove what root has made"
rm -r "$other"

# ---- a program of another user sees no fabric, and no files
expect 1 "*No such file or directory" umbel run --hosts 1 -- \
	setpriv --reuid 65534 --regid 65534 --clear-groups cat $state
