# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# For tests of hosts that are namespaces. Sourced by a script before it does anything else: this starts
# the script again as the first process of namespaces of its own (mount, network, process IDs), so what
# it sees there is its own, and nothing that it leaves stays. With --user as the script's argument root
# becomes an ordinary user before. tests/system/lib.sh is part of it.

other=65534	# the ordinary user

# To where another user can reach what the test needs: /mnt, but in a namespace of mounts.
if [ "${1:-}" = --user ] && [ "$(id -u)" -eq 0 ] && [ ! "${LAB_PID:-}" ]; then
	if [ "${LAB_MOUNTS:-}" != yes ]; then
		exec unshare --mount env LAB_MOUNTS=yes "$0" "$@"
	fi
	tests=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
	mount -t tmpfs -o mode=755 tmpfs /mnt && mkdir /mnt/build /mnt/tests /mnt/place &&
		mount --bind "${UMBEL%/bin/*}" /mnt/build && mount --bind "$tests" /mnt/tests &&
		mkdir -m 700 /mnt/place/run /mnt/place/tmp && chown -R $other:$other /mnt/place || exit 1
	export UMBEL=/mnt/build/bin/umbel UMBEL_LIBDIR=/mnt/build/lib/umbel PATH=/mnt/build/bin:$PATH
	export UMBEL_RUNTIME_DIR=/mnt/place/run TMPDIR=/mnt/place/tmp
	cd / || exit 1
	exec setpriv --reuid $other --regid $other --clear-groups "/mnt/tests/hosts/${0##*/}" "$@"
fi
if [ "${LAB_PID:-}" != $$ ]; then
	namespaces=(--mount --net --pid)
	[ "$(id -u)" -eq 0 ] || namespaces+=(--user --map-current-user)
	exec unshare "${namespaces[@]}" --fork --kill-child --mount-proc env LAB_PID=1 "$0" "$@"
fi

. "$(dirname "${BASH_SOURCE[0]}")/../system/lib.sh"

PATH+=:/usr/sbin:/sbin

# traces: all that a fabric could leave: namespaces that processes are in, or hold, mounts, network
# devices, and files.
traces()
{
	lsns -n -o NS,TYPE | sort
	find /proc/[0-9]*/fd -lname '*:\[[0-9]*\]' -printf '%l\n' 2> /dev/null | grep -E '^(net|uts|mnt|user):'
	sed 's/^[0-9]* [0-9]* //' /proc/self/mountinfo
	ip -o link
	find "$UMBEL_RUNTIME_DIR" -mindepth 1
}

# remember: what there is now; nothing_left WHAT: waits until there is no more and no less.
remember()
{
	traces > "$TMPDIR/before"
}

nothing_left()
{
	wait_until "nothing is left after $1" as_before && return
	diff "$TMPDIR/before" "$TMPDIR/now" >&2
}

as_before()
{
	traces > "$TMPDIR/now"
	cmp -s "$TMPDIR/before" "$TMPDIR/now"
}

# keeper: the process that made the namespaces of the default fabric's hosts
keeper()
{
	pgrep -P "$(field pid default)" -x umbel-keeper
}
