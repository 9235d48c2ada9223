#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Makes an OCI image of Debian with Umbel, as an archive, without a container engine: from packages alone, by
# Debian's mmdebstrap and umoci. podman, skopeo and Docker (from 25.0 on) load it.
#
#	./run package
#	packaging/oci.sh umbel.tar build/package/umbel_*.deb
#	podman load -i umbel.tar
#
#	oci.sh [--add PACKAGE,...] ARCHIVE UMBEL.deb [DEB]...
#
# DEB: more of our packages, such as umbel-kubernetes. --add: more packages of Debian. The image's Debian is that of this machine,
# for which the packages were made; its mirror is the one that apt has. As root, or as a user whom newuidmap(1) gives numbers
# (mmdebstrap(1), "MODES").

set -eu -o pipefail

fail()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

packages=ibverbs-utils,rdmacm-utils
while [ $# -gt 0 ]; do
	case $1 in
	--add) packages+=,${2?which packages?} && shift 2 ;;
	-*) fail "no option '$1'; the first lines of this file are its manual" ;;
	*) break ;;
	esac
done
[ $# -ge 2 ] || fail "an archive to make, and umbel's package: oci.sh ARCHIVE UMBEL.deb"
archive=$(realpath "$1")
shift
debs=()
for deb; do
	[ -r "$deb" ] || fail "no package '$deb'; ./run package makes it"
	debs+=("'$(realpath "$deb")'")
done
for tool in mmdebstrap umoci; do
	command -v $tool > /dev/null || fail "$tool is missing: apt-get install mmdebstrap umoci"
done
# shellcheck disable=SC1091
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
# shellcheck disable=SC2016 # apt-get replaces these
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' |
	grep -v security | sed -n 1p)
proxy=$(apt-config dump --format '%v%n' Acquire::http::Proxy | sed -n 1p)
[ ! "$proxy" ] || export http_proxy=$proxy

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# shellcheck disable=SC2016 # mmdebstrap's shell replaces $1
mmdebstrap --quiet --variant=minbase --include="$packages" \
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
	--dpkgopt='path-exclude=/usr/share/locale/*' \
	--customize-hook="copy-in ${debs[*]} /var/tmp" \
	--customize-hook='chroot "$1" sh -c "DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends \
		/var/tmp/*.deb > /dev/null && rm /var/tmp/*.deb && apt-get clean"' \
	"$suite" "$dir/root.tar" "${mirror:-http://deb.debian.org/debian}" ||
	fail "mmdebstrap made no root of Debian $suite"

umoci init --layout "$dir/image"
umoci new --image "$dir/image:umbel"
umoci raw add-layer --image "$dir/image:umbel" "$dir/root.tar"
umoci config --image "$dir/image:umbel" \
	--config.env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	--config.cmd umbel --config.cmd run --config.cmd --hosts --config.cmd 2 --config.cmd -- --config.cmd ibv_devinfo
umoci gc --layout "$dir/image"
tar -C "$dir/image" -cf "$archive" .
