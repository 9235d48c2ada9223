# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What ./run, .ci/run and the scripts in tools/ share: messages, and the packages.
# Sourced; expects to be in the repository's root directory.

# Colour only on a terminal.
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
	bold=$'\033[1m' dim=$'\033[2m' green=$'\033[32m' red=$'\033[31m' plain=$'\033[0m'
else
	bold='' dim='' green='' red='' plain=''
fi

# say WORDS: prints what is done next, before steps that take a while.
say()
{
	printf '%s%s%s\n' "$bold" "$*" "$plain"
}

# fail WORDS: prints them as an error and ends the script.
fail()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# packages NEED...: the packages in ./debian-packages, or $list, for these needs, one a line.
packages()
{
	local need package _

	while read -r need package _; do
		case " $* " in
		*" $need "*) echo "$package" ;;
		esac
	done < "${list:-debian-packages}" | sort -u
}

# missing_packages NEED...: those that are not installed.
missing_packages()
{
	local wanted installed

	mapfile -t wanted < <(packages "$@")
	# "installed" is the state of a package, the rest of the line its name
	installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null |
		sed -n 's/^installed //p') || true
	comm -23 <(printf '%s\n' "${wanted[@]}" | sort) <(sort -u <<< "$installed")
}

# need_arm64_packages PACKAGE...: compiler and tools of this machine and libraries of 64-bit ARM to build Umbel, and these
# packages; on a Debian of its own.
need_arm64_packages()
{
	local package names=(crossbuild-essential-arm64 "$@")

	while read -r package; do
		case $package in
		gcc | libc6-dev | binutils) ;; # crossbuild-essential-arm64 has its own
		lib*) names+=("$package:arm64") ;;
		*) names+=("$package") ;;
		esac
	done < <(packages build)
	[ "$(cat /etc/umbel-arm64 2>/dev/null)" != "${names[*]}" ] || return 0
	say "Installing compiler and libraries"
	dpkg --add-architecture arm64
	apt-get -qq update
	apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends "${names[@]}" > /dev/null
	echo "${names[*]}" > /etc/umbel-arm64
}

# say_packages NEED...: what it takes, for systems without dpkg.
say_packages()
{
	local list=debian-packages system='these packages on Debian'

	# shellcheck disable=SC1091
	case $(. /etc/os-release 2> /dev/null && echo " ${ID-} ${ID_LIKE-} ") in
	*' fedora '*) list=fedora-packages system="Fedora's packages" ;;
	esac
	echo "What it takes is in $system: $(packages "$@" | tr '\n' ' ')" >&2
}

# need_packages NEED...: installs those that are missing, after it has named them.
need_packages()
{
	local missing as_root=()

	# who has no dpkg has installed by hand what is needed, or hears of it when it is missed
	command -v dpkg-query > /dev/null || return 0
	mapfile -t missing < <(missing_packages "$@")
	[ "${#missing[@]}" -eq 0 ] && return
	# tests side by side may be in need of packages: one after the other
	exec 8< /var/lib/dpkg
	flock 8
	mapfile -t missing < <(missing_packages "$@")
	[ "${#missing[@]}" -gt 0 ] || { exec 8<&-; return; }
	say "Installing the Debian packages: ${missing[*]}"
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null ||
			fail "run it as root once, or: apt-get install ${missing[*]}"
		sudo true || fail "sudo refuses; run it as root once, or: apt-get install ${missing[*]}"
		as_root=(sudo)
	fi
	"${as_root[@]}" apt-get -qq update ||
		fail "apt-get update failed"
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
		-o Dpkg::Use-Pty=0 install --no-install-recommends "${missing[@]}" ||
		fail "apt-get could not install: ${missing[*]}"
	exec 8<&-
}

# copy_checkout DIR: the files of the checkout as they are now, without what is built and what git ignores.
# Not all that has a checkout has git: then it is all files but those in build/.
copy_checkout()
{
	if git rev-parse --git-dir > /dev/null 2>&1; then
		git ls-files -z --cached --others --exclude-standard
	else
		find . -path ./build -prune -o ! -type d -print0
	fi | while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
		tar -c --null --no-recursion -T - | tar -x -C "$1" --no-same-owner
}
