#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# kernel.sh DIR: Debian's stock kernel, for the virtual machines of the interoperation tests, in
# DIR: vmlinux, uncompressed (qemu starts it by PVH, without firmware and unpacking), and initrd:
# busybox, init.sh and the modules. The package is downloaded and unpacked below DIR, once, not
# installed. ctest runs this before those tests.

set -eu -o pipefail

here=$(dirname "$(readlink -f "$0")")
mkdir -p "$1"
cd "$1"

fail()
{
	echo "kernel.sh: $*" >&2
	exit 1
}

# What init.sh loads before it has the root file system, and after; and what tests load (machine_load() of lib.sh).
early=(virtio_pci 9pnet_virtio 9p overlay)
late=(virtio_net virtio_console veth 8021q crc32_generic crc32_pclmul rdma_rxe rdma_ucm ib_umad)
ib_isert=(crc32c_generic target_core_file ib_isert)
ib_iser=(crc32c_generic sd_mod ib_iser)

# one at a time: two builds' tests may share DIR
exec 9> lock
flock 9

# download: the package that linux-image-amd64 stands for, into ./package.deb
download()
{
	local package

	package=$(apt-cache depends linux-image-amd64 |
		sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p')
	[ "$package" ] || fail "apt-get does not know linux-image-amd64: apt-get update, as root"
	rm -f ./*.deb
	# its own user must not be in need of access to this folder
	apt-get -qq -o APT::Sandbox::User="$(id -un)" download "$package" ||
		fail "apt-get cannot download $package: apt-get update, as root, may help"
	mv ./*.deb package.deb
}

# modules NAME...: their files, each after those that it needs
modules()
{
	local name

	for name in "$@"; do
		modprobe -S "$version" -d unpacked --show-depends "$name"
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++'
}

# unpack_kernel: ./vmlinux out of the bzImage, which says (Documentation/arch/x86/boot.rst) where
# its compressed payload lies: the boot sector and setup_sects sectors, then payload_offset.
unpack_kernel()
{
	local image=unpacked/boot/vmlinuz-$version sectors offset length

	sectors=$(od -An -tu1 -j $((0x1f1)) -N 1 "$image")
	offset=$(od -An -tu4 -j $((0x248)) -N 4 "$image")
	length=$(od -An -tu4 -j $((0x24c)) -N 4 "$image")
	# four bytes behind it are the unpacked length
	dd if="$image" bs=1M iflag=skip_bytes,count_bytes status=none of=payload \
		skip=$(((sectors + 1) * 512 + offset)) count=$((length - 4))
	# Debian 12 packs it by xz, Debian 13 by zstd
	xz -dcq < payload > vmlinux.new || zstd -dcq < payload > vmlinux.new ||
		fail "$image is packed neither by xz nor by zstd"
	rm payload
}

# order LIST NAME...: writes what to load, and in which order, for these modules; what is in an earlier list is there.
order()
{
	local list=$1
	shift
	modules "$@" | sed 's:.*/::; s/[.]xz$//' | grep -vxFf <(cat modules/early modules/late 2> /dev/null) \
		> "modules/$list"
}

# copy_modules: ./modules/ and the orders to load them in
copy_modules()
{
	rm -rf modules
	mkdir modules
	modules "${wanted[@]}" | xargs cp -t modules
	# Debian 13 packs them
	find modules -name '*.xz' -exec xz -d {} +
	order early "${early[@]}"
	order late "${late[@]}"
	order ib_isert "${ib_isert[@]}"
	order ib_iser "${ib_iser[@]}"
	echo "${wanted[@]}" > modules/wanted
}

# make_initrd: ./initrd
make_initrd()
{
	rm -rf root
	mkdir -p root/bin
	cp -r modules root/
	cp /bin/busybox root/bin/
	cp "$here/init.sh" root/init
	(cd root && find . | cpio -o -H newc --quiet) > initrd.new
	mv initrd.new initrd
	rm -rf root
}

wanted=("${early[@]}" "${late[@]}" "${ib_isert[@]}" "${ib_iser[@]}")
if [ ! -s vmlinux ] || [ "$(cat modules/wanted 2>&1)" != "${wanted[*]}" ]; then
	rm -f vmlinux
	download
	rm -rf unpacked
	dpkg -x package.deb unpacked
	# Debian 13's has its modules there
	[ -e unpacked/lib ] || ln -s usr/lib unpacked/lib
	version=$(ls unpacked/lib/modules)
	depmod -b unpacked "$version"
	copy_modules
	unpack_kernel
	mv vmlinux.new vmlinux	# the last: now it is all there
	rm -rf unpacked package.deb
fi
make_initrd
