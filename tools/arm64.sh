#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Builds Umbel for 64-bit ARM and tests it: arm64.sh [prepare | build | test | data-path | system [ARGUMENT]...]
#
#   prepare only what building needs
#   build   the cross-build of what is installed, every warning an error: what CI does
#   test    that, and the unit tests under qemu-user (the default)
#   system  that, and the tests that the arguments name to ctest (-R NAME), or those of $whole, in a
#           virtual machine with a kernel of its own (tools/arm64-guest.sh)
#   data-path  likewise, those of $data_path, in ten minutes: after a change of it
#
# It does so on a Debian 12 of its own, which is kept in build/arm64.root: packages of another
# architecture do not touch the machine's. Needs root.

set -eu -o pipefail

cd "$(dirname "$(readlink -f "$0")")/.."
. tools/lib.sh

# Unit tests that qemu-user cannot run: it traces no process, passes no more descriptors than fit,
# and has threads of its own, so that no program of its can enter a new user namespace.
without_qemu='
	shm[.]ring_death|
	control[.]socket|
	netdev[.](mcast|netdev|udp)'

# Tests for the virtual machine: our own programs and Debian's on our libraries, and deaths.
whole='^(base|wire|shm|control|netdev|fabric|hca|subnet|cm|daemon|cli|sysfs|verbs|rdmacm|umad|system|death|ai)[.]'
# The tests that find stores and loads of the data path in another order than they were written in: rings and queues, messages
# and connections, the waking of sleepers, and Debian's programs that do all of it.
data_path='^(shm|hca)[.]|^verbs[.](arm|events|exact|multicast|rc_known|rc_order|rc_parts|rc_placed|rc_send|receive|repeat|send|srq|turns|uc|wakes)$|'
data_path+='^rdmacm[.](connect|multicast)$|^system[.](ibv_rc_pingpong|mckey_receivers|perftest_rc_write)$'
# Of these not: what wants a compiler, or another machine in this one.
beyond='^(sysfs[.]preload|system[.](mpi|qemu_migration))$'

install_packages()
{
	need_arm64_packages qemu-user ibsim-utils qemu-system-arm debootstrap e2fsprogs cpio kmod
}

# build TARGET
build()
{
	# qemu takes ten times as long, more beside others
	grep -qs UMBEL_TEST_SECONDS:STRING=3000 build/arm64/CMakeCache.txt ||
		cmake -G Ninja -S . -B build/arm64 --toolchain tools/arm64.cmake -DUMBEL_WERROR=ON \
			-DUMBEL_TEST_SECONDS=3000
	ninja --quiet -C build/arm64 "$1"
	readelf -h build/arm64/bin/umbel | grep -q 'Machine: *AArch64' ||
		fail "build/arm64/bin/umbel is for another machine"
	echo "built for AArch64"
}

command=${1:-test}
[ $# -eq 0 ] || shift
case $command in
prepare | build | test | data-path | system)
	[ $# -eq 0 ] || [ "$command" = system ] ||
		fail "one argument is enough; see the first lines of this file"
	exec tools/debian-root.sh --suite bookworm --keep build/arm64.root tools/arm64.sh \
		"inside-$command" "$@"
	;;
inside-prepare)
	need_arm64_packages
	;;
inside-build)
	need_arm64_packages
	build product
	;;
inside-data-path)
	exec "$0" inside-system -R "$data_path" -E '^shm[.]ring_death$'
	;;
inside-system)
	install_packages
	build all
	[ $# -gt 0 ] || set -- -R "$whole" -E "$beyond"
	exec tools/arm64-guest.sh ctest --test-dir build/arm64 --output-on-failure -j 2 "$@"
	;;
inside-test)
	install_packages
	build all
	ctest --test-dir build/arm64 --output-on-failure -j "$(nproc)" \
		-R '^(base|wire|shm|control|netdev|fabric|hca|subnet|cm|daemon|cli)[.]' \
		-E "^($(tr -d '[:space:]' <<< "$without_qemu"))\$"
	;;
*)
	fail "no command '$command'; see the first lines of this file"
	;;
esac
