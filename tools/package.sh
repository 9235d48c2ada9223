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
#
# ./run package --tar [arm64]: one archive for any Linux with the C library 2.31 or later, in build/archive, made on that
# Debian 11, too. It is unpacked anywhere, by anybody; bin/umbel runs from there. What Umbel needs of other libraries is in
# lib/umbel/private, where programs on a fabric do not look.
# ./run package --wheel [arm64]: the same as a wheel for pip, in build/archive.

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

# on_bullseye ARCHITECTURE COMMAND...: runs this script so on that Debian 11, whose root is $root then
on_bullseye()
{
	root=build/bullseye${1:+-$1}.root

	[ "$(id -u)" -eq 0 ] || fail "only root can make the root of a Debian 11"
	need_packages build package
	mkdir -p build
	tar -C /usr/include -cf build/headers.tar infiniband rdma linux asm-generic
	tools/debian-root.sh --suite bullseye --keep "$root" --give build/headers.tar tools/package.sh "${@:2}" ${1:+"$1"}
}

# make_portable DIR [ARCHITECTURE]: the packages, in DIR
make_portable()
{
	local status=0

	on_bullseye "${2-}" inside || status=$?
	rm -rf "$1"
	cp -r "$root/umbel/build/package" "$1"
	[ $status -eq 0 ] || fail "the package was not built; $1/build.log has all of it"
}

# make_archive [ARCHITECTURE]: in build/archive
make_archive()
{
	local name

	on_bullseye "${1-}" inside_archive || fail "the archive was not built"
	mkdir -p build/archive
	for name in "$root"/umbel/build/archive/*.tar.gz; do
		cp "$name" build/archive
		echo "build/archive/${name##*/}"
	done
}

# make_wheel [ARCHITECTURE]: out of the archive, in build/archive
make_wheel()
{
	local archive

	archive=build/archive/umbel-$version-linux-${1:-$(dpkg --print-architecture)}.tar.gz
	make_archive "${1-}"
	tools/wheel.py "$archive" build/archive
}

use_headers()
{
	rm -rf build/headers
	mkdir -p build/headers
	tar -C build/headers -xf headers.tar
	export C_INCLUDE_PATH=$PWD/build/headers
}

# copy_needed TRIPLET DIR: what its programs and libraries need that the C library does not bring, to its lib/umbel/private, and
# the copyright of that
copy_needed()
{
	local private=$2/lib/umbel/private copied=-1 file name package

	mkdir -p "$private"
	while [ "$copied" -ne "$(find "$private" -type f | wc -l)" ]; do # what was copied needs others
		copied=$(find "$private" -type f | wc -l)
		find "$2/bin" "$2/lib" -type f | while read -r file; do
			! head -c 4 "$file" | grep -q ELF || readelf -d "$file"
		done | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' | sort -u > build/needed
		while read -r name; do
			case $name in
			ld-linux* | libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.*) continue ;;
			libibverbs.so.1 | librdmacm.so.1 | libibumad.so.3) continue ;; # ours
			esac
			[ ! -e "$private/$name" ] || continue
			for file in {/usr,}/lib/"$1/$name"; do
				[ ! -e "$file" ] || break
			done
			cp -L "$file" "$private/$name"
			package=$(dpkg-query -S "*/$name" | sed -n '1s/:.*//p')
			mkdir -p "$2/share/doc/umbel/private"
			cp "/usr/share/doc/$package/copyright" "$2/share/doc/umbel/private/$package"
		done < build/needed
	done
}

# inside_archive [ARCHITECTURE]
inside_archive()
{
	local architecture=${1:-$(dpkg --print-architecture)} triplet=x86_64-linux-gnu options=() name log=build/archive.log

	use_headers
	if [ "$architecture" = arm64 ] && [ "$(dpkg --print-architecture)" != arm64 ]; then
		need_arm64_packages
		options=(-DCMAKE_TOOLCHAIN_FILE="$PWD/tools/arm64.cmake" -DCMAKE_STRIP=/usr/bin/aarch64-linux-gnu-strip)
	else
		need_packages build
	fi
	[ "$architecture" != arm64 ] || triplet=aarch64-linux-gnu
	say "Making an archive of Umbel $version for $architecture"
	name=umbel-$version-linux-$architecture
	rm -rf build/archive
	cmake -G Ninja -S . -B build/relocatable "${options[@]}" -DUMBEL_RELOCATABLE=ON -DBUILD_TESTING=OFF \
		-DCMAKE_INSTALL_LIBDIR=lib > $log 2>&1 && ninja -C build/relocatable product >> $log 2>&1 &&
		cmake --install build/relocatable --strip --prefix "build/archive/$name" >> $log 2>&1 || { tail -n 40 $log; return 1; }
	copy_needed "$triplet" "build/archive/$name"
	cp -r README.md CHANGELOG.md LICENSE LICENSES "build/archive/$name/share/doc/umbel"
	tar -C build/archive --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(date -d "$(sed -n 's/^ -- .*>  //p' \
		debian/changelog)" +%s)" -czf "build/archive/$name.tar.gz" "$name"
}

inside()
{
	use_headers
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
--tar) make_archive ;;
'--tar arm64') make_archive arm64 ;;
--wheel) make_wheel ;;
'--wheel arm64') make_wheel arm64 ;;
inside*) "$@" ;;
*) fail "it takes no '$*'; see ./run --help" ;;
esac
