#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# load_test.sh LIBDIR
#
# Do real programs start with our libraries? For each program and library below: with LIBDIR first
# in LD_LIBRARY_PATH every symbol and version resolves (ldd -r binds all, as LD_BIND_NOW=1 does),
# and whatever LIBDIR holds is what the loader picked. One that is not installed is a failure. At
# last pyverbs is imported, so that the constructors of the drivers that it pulls in run as well.
#
# One line for each; exit status 1 if any failed, 2 for bad usage.
set -u
export LC_ALL=C

programs="ib_send_bw ib_send_lat ib_write_bw ibv_devices ibv_devinfo ibv_ud_pingpong
	ibv_asyncwatch mckey udaddy rping"
tools="opensm ibstat"
drivers="libmlx5.so.1 libefa.so.1"
pyverbs=/usr/lib/python3/dist-packages/pyverbs
ours="libibverbs.so.1 librdmacm.so.1 libibumad.so.3"

if [ $# -ne 1 ] || [ ! -e "$1/libibverbs.so.1" ]; then
	echo "usage: $0 LIBDIR (with libibverbs.so.1 in it)" >&2
	exit 2
fi
libdir=$(cd "$1" && pwd)
PATH=$PATH:/usr/sbin:/sbin
failed=0

complain() {
	echo "FAIL $1: $2"
	failed=1
}

# Where the loader would find a library that is not ours.
system_library() {
	local found
	found=$(ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }')
	echo "${found:-/usr/lib/$(uname -m)-linux-gnu/$1}"
}

# check FILE NEEDED: NEEDED, if given, must be among the libraries of FILE.
check() {
	local file=$1 needed=$2 name out bad lib path used=
	name=$(basename "$file")
	if [ ! -e "$file" ]; then
		complain "$name" "not installed"
		return
	fi
	out=$(LD_LIBRARY_PATH=$libdir LD_BIND_NOW=1 ldd -r "$file" 2>&1)
	# The interpreter itself provides the names of Python.
	bad=$(echo "$out" | grep -E 'undefined symbol|not found|not defined in' |
		grep -vE 'undefined symbol: _?Py')
	if [ -n "$bad" ]; then
		complain "$name" "$(echo "$bad" | head -n 1 | sed 's/^[[:space:]]*//')"
		return
	fi
	for lib in $ours; do
		path=$(echo "$out" | awk -v name="$lib" '$1 == name { print $3 }')
		if [ -n "$path" ] && [ -e "$libdir/$lib" ]; then
			if [ "$path" != "$libdir/$lib" ]; then
				complain "$name" "uses $path"
				return
			fi
			used="$used $lib"
		fi
	done
	if [ -n "$needed" ] && [[ " $used " != *" $needed "* ]]; then
		complain "$name" "does not use $needed"
		return
	fi
	echo "ok   $name:${used:- none of ours}"
}

for program in $programs; do
	check "$(command -v "$program" || echo "$program")" libibverbs.so.1
done
for tool in $tools; do
	check "$(command -v "$tool" || echo "$tool")" ""
done
for driver in $drivers; do
	check "$(system_library "$driver")" libibverbs.so.1
done

modules=$(find "$pyverbs" -name '*.so' 2> /dev/null | sort)
if [ -z "$modules" ]; then
	complain pyverbs "not installed"
fi
for module in $modules; do
	check "$module" ""
done

# A library built with a sanitizer runs only in a program built with it, which python3 is not.
if readelf -d "$libdir/libibverbs.so.1" | grep -qE 'lib(clang_rt\.)?[atu]b?san'; then
	echo "skip import of pyverbs: $libdir/libibverbs.so.1 has a sanitizer"
else
	# Debian's own interpreter: pyverbs is built for no other.
	if out=$(LD_LIBRARY_PATH=$libdir LD_BIND_NOW=1 /usr/bin/python3 -c "
import pyverbs.device, pyverbs.cmid
import pyverbs.providers.mlx5.mlx5dv, pyverbs.providers.efa.efadv
maps = open('/proc/self/maps').read()
assert '$libdir/libibverbs.so' in maps, 'our libibverbs is not the one loaded'" 2>&1); then
		echo "ok   import of pyverbs with its drivers"
	else
		complain "import of pyverbs" "$(echo "$out" | tail -n 1)"
	fi
fi
exit $failed
