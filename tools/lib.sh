# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What ./run, .ci/run and the scripts in tools/ share: how they talk, and the packages.
# Sourced; expects to be in the repository's root directory.

# Colour only on a terminal.
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
	bold=$'\033[1m' dim=$'\033[2m' green=$'\033[32m' red=$'\033[31m' plain=$'\033[0m'
else
	bold='' dim='' green='' red='' plain=''
fi

# say WORDS: what is going on, for steps that take a while.
say()
{
	printf '%s%s%s\n' "$bold" "$*" "$plain"
}

# fail WORDS: the last words.
fail()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# packages NEED...: the packages in ./debian-packages for these needs, one a line.
packages()
{
	local need package _

	while read -r need package _; do
		case " $* " in
		*" $need "*) echo "$package" ;;
		esac
	done < debian-packages | sort -u
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

# need_packages NEED...: installs what is missing, naming it before.
need_packages()
{
	local missing as_root=()

	command -v dpkg-query >/dev/null || fail "this is no Debian; install by hand:" \
		"$(packages "$@" | tr '\n' ' ')"
	mapfile -t missing < <(missing_packages "$@")
	[ "${#missing[@]}" -eq 0 ] && return
	say "Installing the Debian packages: ${missing[*]}"
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null ||
			fail "run it as root once, or: apt-get install ${missing[*]}"
		as_root=(sudo)
	fi
	"${as_root[@]}" apt-get -qq update ||
		fail "apt-get update failed"
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
		-o Dpkg::Use-Pty=0 install --no-install-recommends "${missing[@]}" ||
		fail "apt-get could not install: ${missing[*]}"
}
