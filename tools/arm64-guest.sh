#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# arm64-guest.sh COMMAND [ARGUMENT]...: runs a command in a virtual 64-bit ARM machine under qemu, in
# software: Debian 12's kernel, and a root with what our tests run. /umbel is the same inside and
# outside. The status is the command's. Its files stay in build/guest. Part of
# tools/arm64.sh, which has made the Debian on which this runs.

set -eu -o pipefail

cd "$(dirname "$(readlink -f "$0")")/.."
. tools/lib.sh

guest=$PWD/build/guest
processors=2
memory=6144 # MiB: the largest message has 2 GiB

# The programs that the tests run, and the libraries of these and of Umbel.
list='cmake procps iproute2 python3 kmod strace binutils socat file busybox-static
	libcmocka0 libdw1 libjson-c5 libisal2 libmnl0 libncursesw6 ibverbs-utils rdmacm-utils perftest qperf
	infiniband-diags opensm ibsim-utils libumad2sim0 ibverbs-providers libibmad5 libopensm9 srptools ucx-utils
	libfabric-bin python3-pyverbs fio iperf iperf3 curl netcat-traditional iputils-ping'
# Modules of the kernel, in this order: for the root, and for networks of namespaces.
modules='virtio_pci virtio_blk ext4 9pnet_virtio 9p virtio_rng veth bridge macvlan 8021q'

# make_root: $guest/root. Packages are unpacked, not configured: that takes an hour in software, and
# nothing here is in need of it but what follows.
make_root()
{
	local mirror package

	say "Making a root of Debian for ARM"
	rm -rf root
	mirror=$(awk '$1 == "deb" { print $2; exit }' /etc/apt/sources.list)
	# shellcheck disable=SC2086 # words become one list
	debootstrap --foreign --arch=arm64 --variant=minbase --include="$(tr -s ' \n\t' , <<< $list)" \
		bookworm root "$mirror" > debootstrap.log 2>&1 || {
		tail -n 20 debootstrap.log
		fail "debootstrap could not make a root"
	}
	for package in root/var/cache/apt/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$package" | tar -x -C root --keep-directory-symlink
	done
	rm -rf root/var/cache/apt/archives root/debootstrap
	ln -sf mawk root/usr/bin/awk
	ln -sf nc.traditional root/bin/nc
	cp root/usr/share/base-passwd/passwd.master root/etc/passwd
	cp root/usr/share/base-passwd/group.master root/etc/group
	printf '127.0.0.1 localhost\n::1 localhost\n' > root/etc/hosts
	# the build's unit tests are called by qemu-user, which this machine stands for
	printf '#!/bin/sh\nexec "$@"\n' > root/usr/bin/qemu-aarch64
	chmod 755 root/usr/bin/qemu-aarch64
}

# make_kernel: $guest/kernel, and its modules, in the order to load them in, in $guest/modules.
make_kernel()
{
	local package version name

	say "Unpacking its kernel"
	package=$(apt-cache depends linux-image-arm64:arm64 |
		sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p')
	rm -rf ./*.deb unpacked modules
	apt-get -qq -o APT::Sandbox::User=root download "$package"
	dpkg -x ./*.deb unpacked
	version=$(ls unpacked/lib/modules)
	depmod -b "$PWD/unpacked" "$version"
	mkdir modules
	for name in $modules; do
		modprobe -S "$version" -d "$PWD/unpacked" --show-depends "$name"
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' > order
	xargs cp -t modules < order
	sed 's:.*/::' order > modules/order
	cp "unpacked/boot/vmlinuz-$version" kernel
	rm -rf ./*.deb unpacked order
}

make_initrd()
{
	rm -rf initrd.root
	mkdir -p initrd.root/bin
	cp -r modules initrd.root/
	cp root/bin/busybox initrd.root/bin/
	cp ../../tools/arm64-init.sh initrd.root/init
	(cd initrd.root && find . | cpio -o -H newc --quiet) > initrd
	rm -rf initrd.root
}

# The disk is new each time: what a test has left there does no harm to the next.
make_disk()
{
	rm -f disk
	truncate -s 8G disk
	mke2fs -q -t ext4 -O ^has_journal -d root disk
}

boot()
{
	rm -f status
	nice -n 5 qemu-system-aarch64 -M virt -cpu max,pauth-impdef=on -accel tcg,thread=multi \
		-smp "$processors" -m "$memory" -nodefaults -display none -no-reboot -serial stdio \
		-kernel kernel -initrd initrd \
		-append "console=ttyAMA0 loglevel=4 panic=-1 nowatchdog" \
		-drive if=none,id=disk,file=disk,format=raw,cache=unsafe \
		-device virtio-blk-pci,drive=disk -device virtio-rng-pci \
		-virtfs local,path=/umbel,mount_tag=umbel,security_model=none,multidevs=remap \
		< /dev/null
}

mkdir -p "$guest"
cd "$guest"
[ "$(cat wanted 2> /dev/null)" = "$list" ] || { make_root && echo "$list" > wanted; }
[ "$(cat modules/wanted 2> /dev/null)" = "$modules" ] ||
	{ make_kernel && echo "$modules" > modules/wanted; }
make_initrd
make_disk
{
	echo 'export HOME=/root LANG=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
	echo 'export UMBEL_TEST_SECONDS=3000'
	echo 'ldconfig; uname -srm; cd /umbel; ulimit -l unlimited; ulimit -Hn 1048576'
	printf '%q ' "$@"
	# the first process may not end: it turns the machine off
	printf '\necho $? > build/guest/status; sync; busybox poweroff -f\n'
} > "$guest/command"
boot
[ -e status ] || fail "the machine did not come to the end of: $*"
exit "$(cat status)"
