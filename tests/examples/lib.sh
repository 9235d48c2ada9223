# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the tests of examples/ share. Sourced by them, after system/lib.sh: builds the examples as a
# reader does, in a copy of the folder, $examples.

. "${BASH_SOURCE[0]%/*}/../system/lib.sh"

source=$(readlink -f "${BASH_SOURCE[0]%/*}/../..")
examples=$TMPDIR/examples

# build_examples [PROGRAM]...: by default all
build_examples()
{
	make -s -C "$examples" "$@" > "$TMPDIR/make.out" 2>&1 ||
		complain "make $*: $(cat "$TMPDIR/make.out")"
	[ ! -s "$TMPDIR/make.out" ] || complain "make $*: $(cat "$TMPDIR/make.out")"
}

# address HOST: h3 of --hosts, r3 of --roce-hosts
address()
{
	case $1 in
		h*) echo "10.0.0.${1#h}" ;;
		r*) echo "172.16.0.${1#r}" ;;
	esac
}

mkdir "$examples"
cp "$source"/examples/{*.[ch],Makefile} "$examples"
