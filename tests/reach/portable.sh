#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# portable.sh FOLDER: the programs and libraries of the build in that folder take from the C library what 2.31 has or
# src/shared/base/newer_libc.h stands in for, and from other libraries only those that are on all of Debian 12 and 13, Ubuntu 22.04
# and 24.04, by the same file names. A new function that is not so would be missed where the portable package is made.
#
# portable.sh: makes that package (./run package --portable), and shows that it takes nothing but what 2.31 has, that it
# installs and carries messages on Debian 11, whose C library is older than all of these, and that the action works with it
# on Debian 12 and 13. The one for 64-bit ARM is made, and not run. Ubuntu's releases lie between these, by C library
# (2.31, 2.35, 2.36, 2.39, 2.41) and rdma-core (33, 39, 44, 50, 56). It takes twenty minutes, and eight if the roots in
# build/ are there.

if [ ! "${UMBEL_RUNTIME_DIR:-}" ] && [ "${1-}" != inside ]; then
	here=$(cd "$(dirname "$0")" && pwd)
	export UMBEL_TEST_ROOTS=$here/../../build/roots
	exec "$here/../in-sandbox.sh" "$here/../../build/release/bin/umbel" '' "$here/portable.sh" "$@"
fi
. "$(dirname "$0")/../system/lib.sh"

# what all have: the C library's, those of rdma-core, and what the package depends on; a processor's loader besides
libraries='ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 libc.so.6 libdl.so.2 libdw.so.1 libpthread.so.0 libibumad.so.3 libibverbs.so.1
	libisal.so.2 libjson-c.so.5 libmnl.so.0 libncursesw.so.6 librdmacm.so.1 libtinfo.so.6'

# what 2.31 has in a library, by an older version, or as another function that the compiler finds for it
moved='__libc_start_main|__isoc23_[a-z]*|dladdr|dlerror|dlopen|dlsym|sem_[a-z]*|(__)?pthread_[a-z_]*|[lf]?stat|fstatat|mknod(at)?'
stood_in=$(grep -ow '__libc_single_threaded\|strerror[a-z]*_np\|close_range\|closefrom\|open_tree\|move_mount\|pidfd_[a-z_]*' \
	"$(dirname "$0")"/../../src/shared/base/{newer_libc,lock}.h -h | sort -u | paste -sd '|')

# check_file FILE [FUNCTIONS]: a pattern of those that it may take from later versions than 2.31
check_file()
{
	local file=$1 name version function

	while read -r name; do
		[[ " ${libraries//[$'\n\t']/ } " == *" $name "* ]] || complain "$file needs $name, which not all have"
	done < <(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p')
	while read -r version function; do
		[ "$(printf '%s\n' "$version" 2.31 | sort -V | tail -n 1)" != 2.31 ] || continue
		[[ $function =~ ^(${2:-none})$ ]] ||
			complain "$file takes $function from the C library $version"
	done < <(readelf -W --dyn-syms "$file" | sed -n 's/.* \([^ ]*\)@GLIBC_\([0-9.]*\).*/\2 \1/p')
}

# check_files FOLDER [FUNCTIONS]: of all programs and libraries there
check_files()
{
	local file files=0

	while read -r file; do
		head -c 4 "$file" | grep -q ELF || continue
		check_file "$file" "${2-}"
		((files++))
	done < <(find "$1" -type f)
	[ $files -ge 4 ] || complain "there are $files programs and libraries in $1"
}

as_user()
{
	setpriv --reuid tester --regid tester --init-groups env -i HOME=/home/tester LANG=C.UTF-8 PATH=/usr/bin:/bin "$@"
}

# Debian 11's rdma-core is older than what Umbel serves, but for programs that only use rdma_cm.
inside()
{
	apt-get -qq update || exit 1
	useradd --create-home tester
	expect 0 '*' apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends ./umbel_*.deb rdmacm-utils
	expect 0 '*received 10 messages of 100 bytes*h3 *received 10 messages*One-way latency*' \
		as_user tools/demo.sh /usr/bin/umbel
	expect 0 $'mlx5_0\ndirectory' as_user umbel run --hosts 1 --host h1 --device-names mlx5_%d -- \
		sh -c 'ls /sys/class/infiniband; stat -L -c %F /sys/class/infiniband/mlx5_0'
}

case ${1-} in
inside)
	TMPDIR=/tmp
	inside
	;;
'')
	cd "$(dirname "$0")/../.." || exit 1
	expect 0 '*' ./run package --portable
	package=$(echo build/portable/umbel_*.deb)
	expect 0 '*' ./run package --portable arm64
	for folder in portable portable-arm64; do
		for file in build/$folder/{umbel,libumbel0}_*.deb; do
			expect 0 '' dpkg-deb -x "$file" "$TMPDIR/$folder"
		done
		check_files "$TMPDIR/$folder"
	done
	readelf -h "$TMPDIR/portable-arm64/usr/bin/umbel" | grep -q 'Machine: *AArch64' || complain 'it is not for ARM'
	expect 0 '*' tools/debian-root.sh --suite bullseye --copy "$UMBEL_TEST_ROOTS/bullseye" --give "$package" \
		tests/reach/portable.sh inside
	for suite in bookworm trixie; do
		expect 0 '*20 jobs passed*' tests/reach/action.sh "$suite" "$package"
	done
	[ $failed -ne 0 ] || echo "the package works on all"
	;;
*)
	check_files "$1/bin" "$moved|$stood_in"
	check_files "$1/lib" "$moved|$stood_in"
	;;
esac
