#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# install.sh BUILD_DIR: `cmake --install` with a prefix brings the programs and their libraries, and
# they work from there: umbel finds its libraries, Debian's programs load them. But for libumbel nothing
# lies where the system's linker would find it, and nothing looks into the build directory.

. "${0%/*}/../system/lib.sh"

prefix=$TMPDIR/opt/umbel
expect 0 '*' cmake --install "$1" --prefix "$prefix"

installed=$(cd "$prefix" && find . ! -type d ! -path './bin/umbel*' ! -path './share/man/*' | LC_ALL=C sort)
expected='./include/umbel.h
./lib/libumbel.so
./lib/libumbel.so.0
./lib/pkgconfig/umbel.pc
./lib/python3/dist-packages/umbel.py
./lib/python3/dist-packages/umbel_pytest.py
./lib/systemd/user/umbel@.service
./lib/umbel/libibumad.so.3
./lib/umbel/libibverbs.so.1
./lib/umbel/librdmacm.so.1
./lib/umbel/libumbel-checked.so
./lib/umbel/libumbel-sockets.so
./lib/umbel/libumbel-sysfs.so
./lib/umbel/tsan.supp
./lib/umbel/valgrind.supp
./share/bash-completion/completions/umbel
./share/umbel/cards/connectx-6
./share/umbel/cards/e810
./share/umbel/cards/rxe
./share/umbel/show.schema.json'
[ "$installed" = "$expected" ] || complain "installed are: $installed"
for file in "$prefix"/bin/* "$prefix"/lib/libumbel.so.0 "$prefix"/lib/umbel/*.so*; do
	readelf -d "$file" | grep -E 'R(UN)?PATH.*'"$1" && complain "${file##*/} looks into $1"
done

# The copy in the build directory is not on the PATH of what follows.
PATH=$prefix/bin:$PATH
UMBEL=$prefix/bin/umbel
expect 0 '*umbel_h1_0*umbel_h2_0*' umbel run --hosts 2 -- ibv_devices
# shellcheck disable=SC2016 # the shell in there replaces it
expect 0 "*libibverbs.so.1 => $prefix/lib/umbel/libibverbs.so.1 *" \
	umbel run --hosts 2 -- bash -c 'ldd "$(command -v ibv_devinfo)"'
umbel up --hosts 2 > /dev/null
expect 0 '*hca_id:*umbel_h1_0*PORT_ACTIVE*' umbel exec h1 -- ibv_devinfo
umbel down

# PATH: umbel is the one that runs, and other programs beside it do not come before the user's own
other=$TMPDIR/other
mkdir "$other"
# shellcheck disable=SC2016 # the shell in there replaces it
path='printf "%s\n" "$PATH"'
for first in "$other" "$other:$prefix/bin"; do
	PATH=$first:$PATH expect 0 "$first:$PATH" umbel run -- sh -c "$path"
done
PATH=/usr/bin:/bin expect 0 "$prefix/bin:/usr/bin:/bin" "$UMBEL" run -- sh -c "$path"
ln -s /bin/true "$other/umbel"
PATH=$other:$PATH expect 0 "$prefix/bin:$other:$PATH" "$UMBEL" run -- sh -c "$path"
