#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The Debian package on a Debian made from nothing: it installs, an ordinary user runs the demo's programs
# through it, and the libraries of the system are as before. Purged, it leaves nothing.
#
# ./run package has made the package (test reach.package_build). $UMBEL_TEST_ROOTS keeps fresh roots for tests to
# copy (tools/debian-root.sh --copy), which only root can make.

. "$(dirname "$0")/../system/lib.sh"

cd "$(dirname "$0")/../.." || exit 1

# Every file, link and folder but for what apt and dpkg write, the checkout and what is mounted: path, mode,
# owner and what it is; then the checksums of the files.
everything()
{
	local but=(-path /umbel -o -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run
		-o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/log)

	find / -xdev \( "${but[@]}" \) -prune -o -printf '%p %M %u %g %l\n' | sort
	find / -xdev \( "${but[@]}" \) -prune -o -type f -exec sha256sum {} + | sort -k 2
	# the user's directory of fabrics is not the package's, but there is nothing in it
	find /tmp /run -mindepth 1 \( -path /tmp/test -prune \) -o ! -path /tmp/umbel-1000 -print | sort
	ldconfig -p
	dpkg-query -W -f '${Package} ${Status}\n'
}

install_package()
{
	expect 0 '*' apt-get -qq -y -o Dpkg::Use-Pty=0 install ./umbel_*.deb
}

as_user()
{
	setpriv --reuid tester --regid tester --init-groups env -i HOME=/home/tester LANG=C.UTF-8 \
		PATH=/usr/local/bin:/usr/bin:/bin "$@"
}

check_use()
{
	local soname own rdmacm

	# its version is that of the package
	expect 0 "umbel $(dpkg-query -W -f '${Version}' umbel)" umbel --version
	expect 0 '*received 10 messages of 100 bytes*h3 *received 10 messages*One-way latency*' \
		as_user tools/demo.sh /usr/bin/umbel
	for soname in libibverbs.so.1 librdmacm.so.1 libibumad.so.3; do
		own=$(ldconfig -p | sed -n "s/^\t$soname .*=> //p")
		[ "$own" ] && [[ $own != *umbel* ]] || complain "the system's linker finds $soname at '$own'"
	done
	expect 0 '*libibverbs.so.1 => /lib/x86_64-linux-gnu/libibverbs.so.1*' ldd /usr/bin/ibv_devinfo
	expect 0 '*libibverbs.so.1 => /usr/lib/umbel/libibverbs.so.1*' \
		as_user umbel run -- ldd /usr/bin/ibv_devinfo
	# Debian 13 calls it librdmacm1t64
	rdmacm=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'librdmacm1*' | sed -n 's/^installed //p')
	expect 0 '' dpkg --verify libibverbs1 "$rdmacm" libibumad3 umbel
}

inside()
{
	apt-get -qq update || exit 1
	useradd --create-home tester
	mkdir /tmp/test
	install_package
	expect 0 '*' apt-get -qq -y -o Dpkg::Use-Pty=0 install libibumad3
	expect 0 '*' dpkg --purge umbel # what came with it is the system's from now on
	everything > /tmp/test/before

	install_package
	check_use
	everything > /tmp/test/installed
	# what it adds is its own, and it changes nothing
	diff <(dpkg -L umbel | sort) <(diff /tmp/test/before /tmp/test/installed | sed -n 's/^> \(\/[^ ]*\) .*/\1/p' |
		cat - <(dpkg -L umbel | while read -r dir; do [ ! -d "$dir" ] || echo "$dir"; done) | sort -u) ||
		complain "the package and what is new differ (<, >)"
	! diff /tmp/test/before /tmp/test/installed | grep '^<' || complain "something is not as before"

	expect 0 '*' dpkg --purge umbel
	everything > /tmp/test/after
	diff /tmp/test/before /tmp/test/after || complain "something is left, or gone (<)"
	[ $failed -ne 0 ] || echo "the package installs, works and leaves"
}

if [ "${1-}" = inside ]; then
	TMPDIR=/tmp/test
	inside
	exit
fi
packages=(build/package/umbel_*.deb)
[ -e "${packages[0]}" ] || { complain "no package in build/package: ./run package"; exit; }
status=0
# shellcheck disable=SC1091
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
tools/debian-root.sh --suite "$suite" --copy "$UMBEL_TEST_ROOTS/$suite" --give "${packages[0]}" tests/reach/package.sh inside || status=$?
trap - EXIT
exit $status
