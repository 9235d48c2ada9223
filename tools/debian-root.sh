#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs a command on another Debian: debian-root.sh [OPTION]... COMMAND [ARGUMENT]...
#
#   --suite SUITE   the Debian, by its code name; trixie if not given
#   --keep DIR      keep the root in DIR and use it again; else it is new, and removed at the end
#   --copy DIR      a copy of the root in DIR, which is made if need be and stays as debootstrap made it;
#                   the copy is removed at the end
#   --give FILE     copies this file to /umbel, too
#
# With --copy and no command it only sees to it that DIR is there.
#
# Makes a minimal root with debootstrap, copies the checkout to /umbel in it and runs the command
# there, in mount and PID namespaces of its own: what it starts ends with it. The network is
# the machine's, for the package registry; that is read from apt's configuration. DIR.debs, or
# build/debian.debs, keeps downloaded packages for the next time. Needs root.
#
# Exit status: the command's; 77: not root, as ctest's SKIP_RETURN_CODE.

set -eu -o pipefail

cd "$(dirname "$(readlink -f "$0")")/.."
. tools/lib.sh

suite=trixie root='' base='' given=()
while [ $# -gt 0 ]; do
	case $1 in
	--suite) suite=$2 && shift 2 ;;
	--keep) root=$(realpath -m "$2") && shift 2 ;;
	--copy) base=$(realpath -m "$2") && shift 2 ;;
	--give) given+=("$(realpath "$2")") && shift 2 ;;
	-*) fail "no option '$1'" ;;
	*) break ;;
	esac
done
[ $# -gt 0 ] || [ "$base" ] || fail "no command is given; see the first lines of this file"
if [ "$(id -u)" -ne 0 ]; then
	echo "only root can make the root of a Debian: skipped"
	exit 77
fi

# A value of apt's configuration, or nothing.
apt_value()
{
	apt-config dump --format '%v%n' "$1" | sed -n 1p
}

# The mirror of Debian itself, not of its security updates.
mirror()
{
	# shellcheck disable=SC2016 # apt-get replaces these
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' |
		grep -v security | sed -n 1p
}

# get_root DIR: makes it unless it is there. Tests side by side may want the same one.
get_root()
{
	mkdir -p "${1%/*}"
	exec 9> "$1.lock"
	flock 9
	[ -e "$1/.complete" ] || make_root "$1"
	exec 9>&-
}

make_root()
{
	local root=$1 uri proxy script=()

	need_packages root
	# debootstrap may be older than the release
	[ -e "/usr/share/debootstrap/scripts/$suite" ] || script=(/usr/share/debootstrap/scripts/sid)
	uri=$(mirror)
	[ "$uri" ] || fail "apt's configuration names no mirror of Debian"
	proxy=$(apt_value Acquire::http::Proxy)
	[ ! "$proxy" ] || export http_proxy=$proxy
	mkdir -p "$root" "$debs"
	chmod 755 "$root" # apt-get downloads as a user of its own
	say "Making a root of Debian $suite"
	debootstrap --variant=minbase --cache-dir="$debs" "$suite" "$root" "$uri" "${script[@]}" \
		> "$root.log" 2>&1 || {
		tail -n 20 "$root.log"
		fail "debootstrap could not make a root of $suite"
	}
	rm "$root.log"
	# As on a machine whose user has configured apt: the mirror, the proxy, no old indexes.
	[ ! "$proxy" ] || echo "Acquire::http::Proxy \"$proxy\";" > "$root/etc/apt/apt.conf.d/01proxy"
	echo 'Binary::apt-get::APT::Keep-Downloaded-Packages "true";' \
		> "$root/etc/apt/apt.conf.d/02keep"
	# Of suites that are not released yet the indexes are valid for a week, which a mirror may be behind.
	echo 'Acquire::Check-Valid-Until "false";' > "$root/etc/apt/apt.conf.d/03old"
	touch "$root/.complete"
}

# The checkout, and what was given besides. Files that are built there stay. A file that differs from the
# last copy becomes one of now: if it was changed while that was being built, it would be older than
# what was built without it.
fill()
{
	rm -rf "$root/umbel.new"
	mkdir -p "$root/umbel" "$root/umbel.new"
	copy_checkout "$root/umbel.new"
	{ LC_ALL=C diff -rq --exclude=build "$root/umbel" "$root/umbel.new" || true; } |
		sed -n 's/^Files .* and \(.*\) differ$/\1/p' | xargs -r -d '\n' touch
	find "$root/umbel" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
	find "$root/umbel.new" -mindepth 1 -maxdepth 1 -exec mv -t "$root/umbel" {} +
	rmdir "$root/umbel.new"
	[ ${#given[@]} -eq 0 ] || cp "${given[@]}" "$root/umbel"
}

# Inside of the namespaces: mounts, then the root becomes /.
enter()
{
	mount --bind "$root" "$root"
	cd "$root"
	mount -t proc proc proc
	mount --rbind /sys sys
	mount --rbind /dev dev
	mount -t tmpfs tmpfs tmp
	mount -t tmpfs tmpfs run
	mount --bind "$debs" var/cache/apt/archives
	cp -L /etc/resolv.conf etc/resolv.conf
	cp -L /etc/hosts etc/hosts
	mkdir -p old
	pivot_root . old
	umount -l /old
	cd /umbel
	exec env -i HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		UMBEL_WERROR="${UMBEL_WERROR:-}" \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

if [ "$root" ]; then
	debs=$root.debs
	get_root "$root"
elif [ "$base" ]; then
	debs=$base.debs
	get_root "$base"
	[ $# -gt 0 ] || exit 0
	root=$(mktemp -d "${base%/*}/root.XXXXXX")
	trap 'rm -rf --one-file-system "$root"' EXIT
	cp -a --reflink=auto "$base/." "$root"
else
	mkdir -p build
	debs=$PWD/build/debian.debs
	root=$(mktemp -d "$PWD/build/root.XXXXXX")
	trap 'rm -rf --one-file-system "$root" "$root.log" "$root.lock"' EXIT
	get_root "$root"
fi
fill
export root debs
export -f enter
say "On Debian $suite: $*"
unshare --mount --propagation private --pid --fork --kill-child bash -eu -c 'enter "$@"' enter "$@"
