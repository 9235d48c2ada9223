#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Has a fabric up for the rest of a CI job, whose commands then see RDMA devices by themselves. On GitHub action.yml does this;
# elsewhere:
#
#	eval "$(packaging/ci-start.sh)"
#
# Variables, those of action.yml's inputs:
#
#	INPUT_NAME                of the fabric (default)
#	INPUT_HOSTS, INPUT_HCAS   how many hosts (1, if options do not describe the fabric), and HCAs of each (1)
#	INPUT_ROCE                true: RoCEv2 on a network device, instead of InfiniBand
#	INPUT_NETDEV              that device; else the one that leads out, else lo
#	INPUT_NAMES               of devices, such as mlx5_%d
#	INPUT_HOST                the host that commands run on (h1); all: they see the devices of all
#	INPUT_OPTIONS             others of umbel up, with blanks between
#	INPUT_PACKAGE             Umbel, a file or its URL: a Debian package to install, or an archive of ./run package --tar
#	                          to unpack, for which nobody needs root; {arch} in its name is amd64 or arm64, as the
#	                          machine is. Else an umbel on the PATH is used, and without one this checkout is built
#
# With GITHUB_ENV and GITHUB_PATH the variables for later steps go to these files. Without, commands for a
# shell that set them are all that is on standard output.

set -eu -o pipefail

checkout=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)

fail()
{
	echo "ci-start.sh: $*" >&2
	exit 1
}

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo > /dev/null; then
		sudo "$@"
	else
		fail "only root can do this, and there is no sudo: $*"
	fi
}

# Debian's name of this processor.
architecture()
{
	case $(uname -m) in
	x86_64) echo amd64 ;;
	aarch64) echo arm64 ;;
	*) fail "there is no Umbel for the processor $(uname -m)" ;;
	esac
}

# unpack_archive FILE|URL: its programs are on the PATH from now on
unpack_archive()
{
	local folder

	folder=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/umbel.XXXXXX")
	chmod 755 "$folder"
	case $1 in
	http://* | https://*)
		if command -v curl > /dev/null; then
			curl -fsSL --retry 3 -o "$folder/archive" "$1"
		elif command -v wget > /dev/null; then
			wget -q -O "$folder/archive" "$1"
		else
			/usr/lib/apt/apt-helper -q download-file "$1" "$folder/archive"
		fi || fail "cannot download $1"
		tar -C "$folder" --strip-components 1 -xzf "$folder/archive" || fail "$1 is no archive of Umbel"
		rm "$folder/archive"
		;;
	*)
		[ -f "$1" ] || fail "there is no archive '$1'"
		tar -C "$folder" --strip-components 1 -xzf "$1" || fail "'$1' is no archive of Umbel"
		;;
	esac
	PATH=$folder/bin:$PATH
	"$folder/bin/umbel" --version > /dev/null || fail "$1 does not run here, on $(uname -m)"
	[ ! "${GITHUB_PATH-}" ] || echo "$folder/bin" >> "$GITHUB_PATH"
}

install_package()
{
	local package downloaded=

	case $1 in
	http://* | https://*)
		downloaded=$(mktemp -d)
		chmod 755 "$downloaded" # apt downloads and reads it as a user of its own
		package=$downloaded/${1##*/}
		as_root /usr/lib/apt/apt-helper download-file "$1" "$package" || fail "cannot download $1"
		;;
	*)
		package=$(realpath "$1")
		[ -f "$package" ] || fail "there is no package '$1'"
		;;
	esac
	as_root apt-get -qq update
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 \
		install --no-install-recommends "$package"
	[ ! "$downloaded" ] || as_root rm -r "$downloaded"
}

get_umbel()
{
	local package=${INPUT_PACKAGE-}

	[[ $package != *'{arch}'* ]] || package=${package//'{arch}'/$(architecture)}
	case $package in
	?*.tar.gz) unpack_archive "$package" ;;
	?*) install_package "$package" ;;
	esac
	if [ ! "$package" ] && ! command -v umbel > /dev/null; then
		"$checkout/run" build
		PATH=$checkout/build/release/bin:$PATH
		[ ! "${GITHUB_PATH-}" ] || echo "$checkout/build/release/bin" >> "$GITHUB_PATH"
	fi
}

# The network device of the default route, in the kernel's table.
outward()
{
	awk '$2 == "00000000" { print $1; found = 1; exit } END { if (!found) print "lo" }' /proc/net/route
}

# options that say which hosts there are; --roce DEVICE does, --roce DEVICE@HOST does not
describes='--(hosts|topology|fat-tree|roce-hosts|roce(=|[[:blank:]]+)[^@[:blank:]]+([[:blank:]]|$))'

start_fabric()
{
	local options=() more=()

	case ${INPUT_ROCE:-false} in
	true)
		[ "${INPUT_HOSTS:-1}" = 1 ] && [ "${INPUT_HCAS:-1}" = 1 ] ||
			fail "RoCE on a network device is one host's, with one HCA; see umbel up --roce-hosts"
		options=(--roce "${INPUT_NETDEV:-$(outward)}")
		;;
	false)
		if [ "${INPUT_HOSTS-}" ]; then
			options=(--hosts "$INPUT_HOSTS")
		elif [[ ! ${INPUT_OPTIONS-} =~ $describes ]]; then
			options=(--hosts 1)
		fi
		[ ! "${INPUT_HCAS-}" ] || options+=(--hcas "$INPUT_HCAS")
		;;
	*) fail "roce is true or false, not '$INPUT_ROCE'" ;;
	esac
	[ ! "${INPUT_NAMES-}" ] || options+=(--device-names "$INPUT_NAMES")
	read -r -a more <<< "${INPUT_OPTIONS-}"
	umbel up --name "$name" "${options[@]}" "${more[@]}"
}

name=${INPUT_NAME:-default}
path=$PATH
get_umbel >&2
start_fabric >&2
host=${INPUT_HOST:-h1}
[ "$host" != all ] || host=
if [ "${GITHUB_ENV-}" ]; then
	umbel env --name "$name" --plain ${host:+"$host"} >> "$GITHUB_ENV"
else
	umbel env --name "$name" ${host:+"$host"}
	[ "$PATH" = "$path" ] || printf 'export PATH=%q\n' "$PATH"
fi
