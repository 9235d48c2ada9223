#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# OpenSM as it is started on a machine on which another fabric's OpenSM has been: it does not give LIDs by
# that one's list, and leaves it as it is. Its own list is its host's, and goes
# with the fabric.

if [ "${SPACES_PID:-}" != $$ ]; then
	namespaces=(--mount)
	[ "$(id -u)" -eq 0 ] || namespaces+=(--user --map-root-user)
	exec unshare "${namespaces[@]}" env SPACES_PID=$$ "$0" "$@"
fi

. "${0%/*}/opensm.bash"

PATH=$PATH:/usr/sbin:/sbin
mount -t tmpfs tmpfs /var/cache && mount -t tmpfs tmpfs /var/log && mkdir /var/cache/opensm || exit 1
for host in 1 2 3; do
	printf '0x0%s 0x00%d0 0x00%d0\n\n' "$(guid $host)" $host $host
done > /var/cache/opensm/guid2lid
cp -a /var/cache/opensm "$TMPDIR/left"
printf '%s\n' 'sweep_interval 1' 'honor_guid2lid_file TRUE' > "$TMPDIR/conf"

# lids: of the hosts
lids()
{
	umbel exec -- ibstat | awk '/Base lid/ { printf "%s ", $3 }'
}

umbel up --hosts 3 --sm none > /dev/null
dir=$UMBEL_RUNTIME_DIR/default/sysfs/.opensm-h1
start manager h1 opensm -F "$TMPDIR/conf"
wait_until 'all ports are active' all_ports active
given=$(lids)
[[ " $given" != *' 16 '* && " $given" != *' 32 '* && " $given" != *' 48 '* ]] ||
	complain "LIDs are those of another fabric: $given"
kill_hard manager
diff -r "$TMPDIR/left" /var/cache/opensm || complain "what another fabric's OpenSM left was changed"
grep -q "^0x0$(guid 3) " "$dir/guid2lid" || complain "h1 has no list of LIDs"

# each host has its own, a fabric within too; what the user says counts
in_h2=$UMBEL_RUNTIME_DIR/default/sysfs/.opensm-h2
# shellcheck disable=SC2016
show='echo "$OSM_CACHE_DIR $OSM_TMP_DIR"; mkdir -p "$OSM_CACHE_DIR"; cd "$OSM_CACHE_DIR" && touch here && ls'
expect 0 "$in_h2 $in_h2"$'\nhere' umbel exec h1 -- umbel exec h2 -- sh -c "$show"
expect 0 "$UMBEL_RUNTIME_DIR/.run-*/run-*/sysfs/.opensm-all *"$'\nhere' \
	umbel exec h1 -- umbel run --hosts 1 -- sh -c "$show"
mkdir "$TMPDIR/mine"
expect 0 "$TMPDIR/mine $TMPDIR/mine"$'\nhere' env OSM_CACHE_DIR="$TMPDIR/mine" umbel exec h2 -- sh -c "$show"
[ -e "$in_h2/here" ] && [ -e "$TMPDIR/mine/here" ] || complain "a program's directory is not where it is named"
umbel down > /dev/null
[ ! -e "$dir" ] || complain 'the list of LIDs stays behind the fabric'
diff -r "$TMPDIR/left" /var/cache/opensm || complain "what another fabric's OpenSM left was changed at last"
