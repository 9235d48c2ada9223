#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ./run package: makes Debian packages of the checkout as it is, in build/package, and has lintian look for
# mistakes in them. What the packages have is what `cmake --install` installs; debian/ says the rest.
# DEB_BUILD_OPTIONS=nocheck, the default here, leaves out the tests; set it to nothing to run some.
#
# ./run package --portable: packages for Debian 11 to 13 and Ubuntu 22.04 and 24.04, in build/portable. They are made on a
# Debian 11 of its own, which is kept in build/bullseye.root: its C library and its libraries are the oldest, and the later
# ones have all that they have. Only the headers that say what RDMA and the kernel are come from this machine, as
# Umbel serves what is newer, too. Needs root.

set -eu -o pipefail

cd "$(dirname "$(readlink -f "$0")")/.."
. tools/lib.sh

export DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-nocheck}
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)

# make_packages WHAT: in build/package, as dpkg-buildpackage --build=WHAT.
make_packages()
{
	local source=build/package/umbel-$version log=$PWD/build/package/build.log

	need_packages build package
	rm -rf build/package
	mkdir -p "$source"
	copy_checkout "$source"
	say "Making Debian packages of Umbel $version"
	(cd "$source" && dpkg-buildpackage --no-sign "--build=$1" -jauto) > "$log" 2>&1 || {
		tail -n 40 "$log"
		fail "the package was not built; build/package/build.log has all of it"
	}
	rm -rf "$source"
}

# check_packages DIR
check_packages()
{
	# the policy that the package follows may be newer than that which an older Debian's lintian knows
	lintian --allow-root --display-info --suppress-tags newer-standards-version \
		--fail-on 'error,warning,info' "$1"/*.changes || fail "lintian has found mistakes"
	printf '%s\n' "$1"/*.deb
}

make_portable()
{
	local root=build/bullseye.root status=0

	[ "$(id -u)" -eq 0 ] || fail "only root can make the root of a Debian 11"
	need_packages build package
	mkdir -p build
	tar -C /usr/include -cf build/headers.tar infiniband rdma linux asm-generic -C "$(gcc -print-multiarch)" asm
	tools/debian-root.sh --suite bullseye --keep "$root" --give build/headers.tar tools/package.sh inside || status=$?
	rm -rf build/portable
	cp -r "$root/umbel/build/package" build/portable
	[ $status -eq 0 ] || fail "the package was not built; build/portable/build.log has all of it"
}

case ${1-} in
'')
	make_packages full
	check_packages build/package
	;;
--portable)
	make_portable
	check_packages build/portable
	;;
inside)
	mkdir -p build/headers
	tar -C build/headers -xf headers.tar
	export C_INCLUDE_PATH=$PWD/build/headers
	make_packages binary
	;;
*) fail "no option '$1'; see ./run --help" ;;
esac
