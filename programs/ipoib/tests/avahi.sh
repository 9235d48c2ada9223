#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Multicast DNS by avahi-daemon, one on each of three hosts over three switches, without D-Bus: they are asked
# by the socket that name services use. Each finds the others' names and addresses, also when a link
# between switches has failed; a name that a host gets anew, too.

. "${0%/*}/lab.sh"

lab_up 3 --fat-tree 2 --radix 4 --hosts 4
interfaces 3
mkdir /run/avahi-daemon

# avahi-daemon gives its directory to its user. An ordinary user who runs this test has one user in his
# namespace, and can give nothing to another: avahi is the same one here.
sed 's|^avahi:.*|avahi:x:0:0::/:/bin/false|' /etc/passwd > "$TMPDIR/passwd"
sed 's|^avahi:.*|avahi:x:0:|' /etc/group > "$TMPDIR/group"
for file in passwd group; do
	mount --bind "$TMPDIR/$file" /etc/$file || exit 1
done

# A shell's: a program with a /run/avahi-daemon of its host
# shellcheck disable=SC2016 # that shell replaces it
with_run='mount --bind "$0" /run/avahi-daemon && exec "$@"'

# start_avahi HOST NAME
start_avahi()
{
	mkdir -p "$TMPDIR/$1.run"
	# for the kernel ib0 is a device from point to point
	cat > "$TMPDIR/$1.conf" <<-END
		[server]
		host-name=$2
		allow-interfaces=ib0
		allow-point-to-point=yes
		enable-dbus=no
		[wide-area]
		enable-wide-area=no
	END
	launch_on "avahi-$2" "$1" sh -c "$with_run" "$TMPDIR/$1.run" \
		avahi-daemon --no-drop-root --no-chroot --no-rlimits -f "$TMPDIR/$1.conf"
}

# finds HOST QUESTION ANSWER, a pattern: what its avahi-daemon says is that. It may have to ask others, and
# forgets a question whose connection has ended.
finds()
{
	local answer

	answer=$(on "$1" sh -c "$with_run" "$TMPDIR/$1.run" \
		socat -t 10 - UNIX-CONNECT:/run/avahi-daemon/socket,shut-none 2> /dev/null <<< "$2")
	# shellcheck disable=SC2053
	[[ $answer == $3 ]]
}

# wait_found HOST NUMBER NAME: the name has the address with that number, and the address the name
wait_found()
{
	wait_until "$1 finds $3" finds "$1" "RESOLVE-HOSTNAME-IPV4 $3.local" "+ * 192.0.2.$2" &&
		wait_until "$1 finds $3 by IPv6" finds "$1" "RESOLVE-HOSTNAME-IPV6 $3.local" '+ * *:*' &&
		wait_until "$1 finds 192.0.2.$2" finds "$1" "RESOLVE-ADDRESS 192.0.2.$2" "+ * $3.local" ||
		exit 1
}

for number in 1 2 3; do
	start_avahi h$number name$number
done
for from in h1 h2 h3; do
	for number in 1 2 3; do
		wait_found $from $number name$number
	done
done
wait_members ff12:401b:ffff::fb 'h1 full, h2 full, h3 full'

spine=$(umbel show topology | grep -o 'spine[0-9]*' | sort -u | head -n 1)
umbel link down "$spine:1"
kill "${pid[avahi-name2]}"
wait_ended avahi-name2 0
start_avahi h2 other
wait_found h1 2 other
wait_found h3 2 other
