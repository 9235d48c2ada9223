#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ./run package: makes Debian packages of the checkout as it is, in build/package, and has lintian look for
# mistakes in them. What the packages have is what `cmake --install` installs; debian/ says the rest.
# DEB_BUILD_OPTIONS=nocheck, the default here, leaves out the tests; set it to nothing to run some.
#
# ./run package --portable: packages for Debian 12 and 13, Ubuntu 22.04 and 24.04, in build/portable. They are made on a
# Debian 11 of its own, which is kept in build/bullseye.root: what its libraries have, those of all four have, too. Only
# the headers that say what RDMA and the kernel are come from this machine, as Umbel serves what is newer. Needs root.
# ./run package --portable arm64: the same for 64-bit ARM, in build/portable-arm64, by a cross-build.

set -eu -o pipefail

cd "$(dirname "$(readlink -f "$0")")/.."
. tools/lib.sh

export DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-nocheck}
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)

# make_packages OPTION...: in build/package, by dpkg-buildpackage with these options.
make_packages()
{
	local source=build/package/umbel-$version log=$PWD/build/package/build.log

	rm -rf build/package
	mkdir -p "$source"
	copy_checkout "$source"
	say "Making Debian packages of Umbel $version"
	(cd "$source" && dpkg-buildpackage --no-sign "$@" -jauto) > "$log" 2>&1 || {
		tail -n 40 "$log"
		fail "the package was not built; build/package/build.log has all of it"
	}
	rm -rf "$source"
}

# check_packages DIR [TAG]: but for lintian's tag
check_packages()
{
	# the policy that the package follows may be newer than that which an older Debian's lintian knows
	lintian --allow-root --display-info --suppress-tags "newer-standards-version${2:+,$2}" \
		--fail-on 'error,warning,info' "$1"/*.changes || fail "lintian has found mistakes"
	printf '%s\n' "$1"/*.deb
}

# make_portable DIR [ARCHITECTURE]: the packages, in DIR
make_portable()
{
	local root=build/bullseye${2:+-$2}.root status=0

	[ "$(id -u)" -eq 0 ] || fail "only root can make the root of a Debian 11"
	need_packages build package
	mkdir -p build
	tar -C /usr/include -cf build/headers.tar infiniband rdma linux asm-generic
	tools/debian-root.sh --suite bullseye --keep "$root" --give build/headers.tar tools/package.sh inside ${2:+"$2"} || status=$?
	rm -rf "$1"
	cp -r "$root/umbel/build/package" "$1"
	[ $status -eq 0 ] || fail "the package was not built; $1/build.log has all of it"
}

inside()
{
	rm -rf build/headers
	mkdir -p build/headers
	tar -C build/headers -xf headers.tar
	export C_INCLUDE_PATH=$PWD/build/headers
	if [ "${1-}" = arm64 ]; then
		need_packages package
		need_arm64_packages
		# no package says of its tools that they serve for other processors, too
		make_packages --build=any --host-arch=arm64 --no-check-builddeps
	else
		need_packages build package
		make_packages --build=binary
	fi
}

case $* in
'')
	need_packages build package
	make_packages --build=full
	check_packages build/package
	;;
--portable)
	make_portable build/portable
	check_packages build/portable
	;;
'--portable arm64')
	make_portable build/portable-arm64 arm64
	# some instructions of this processor read as a word that is written wrong
	check_packages build/portable-arm64 spelling-error-in-binary
	;;
inside*) "$@" ;;
*) fail "it takes no '$*'; see ./run --help" ;;
esac
