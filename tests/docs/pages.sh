#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# pages.sh SOURCE BUILD PAGE...: runs the commands of each page (pages.py), in their order, as a reader would in a fresh checkout
# after ./run build, with umbel on the PATH (pages.bash). The network is the test's own: devices eth0 and eth1, with nobody
# behind them.

if [ "${PAGES_PID:-}" != $$ ]; then
	namespaces=(--mount --net --pid)
	[ "$(id -u)" -eq 0 ] || namespaces+=(--user --map-root-user)
	exec unshare "${namespaces[@]}" --fork --kill-child --mount-proc env PAGES_PID=1 "$0" "$@"
fi

set -u -o pipefail
export SOURCE=$1 BUILD=$2 PATH=$PATH:/usr/sbin:/sbin
shift 2
here=$(readlink -f "$(dirname "$0")")

mount -t tmpfs tmpfs /run && mkdir /run/netns || exit 1
ip link set lo up
for i in 0 1; do
	ip link add eth$i type veth peer name peer$i &&
	ip address add 192.0.$((2 + i)).7/24 dev eth$i && ip link set eth$i up && ip link set peer$i up || exit 1
done

failed=0
for page; do
	"$here/pages.py" "$SOURCE" "$here/pages.txt" "$page" > "$TMPDIR/script" || failed=1
	[ -s "$TMPDIR/script" ] || continue
	# a session of its own, as for a terminal that has none
	setsid --wait bash "$here/pages.bash" "$TMPDIR/script" "$TMPDIR/page" < /dev/null || failed=1
	rm -rf "$TMPDIR/page"
done
exit $failed
