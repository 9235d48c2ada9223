#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# libumbel as it is installed: the header, the library and pkg-config are enough for a program in C and one in C++,
# and the example of umbel(3) is one; from Python, and by the plugin of pytest, the same.

. "${0%/*}/../system/lib.sh"

here=$(readlink -f "${0%/*}")
build=${UMBEL%/bin/*}
prefix=$TMPDIR/prefix
cd "$TMPDIR" || exit
cmake --install "$build" --prefix "$prefix" > install.out || complain "not installed: $(< install.out)"
export PATH=$prefix/bin:$PATH
lib=$(find "$prefix/lib" -name umbel.pc -printf '%h')
# as pkg-config finds it in the place for which it was configured
sed -i "s:^prefix=.*:prefix=$prefix:" "$lib/umbel.pc"
export PKG_CONFIG_PATH=$lib LD_LIBRARY_PATH=${lib%/pkgconfig} PYTHONPATH=$prefix/lib/python3/dist-packages

# ---- the manual page's example
sed -n "/^#include <infiniband/,/^\\.Ed/p" "$prefix/share/man/man3/umbel.3" | sed "/^\\.Ed/d; s/\\\\e/\\\\/g" > example.c
[ -s example.c ] || complain 'umbel(3) has no example'
read -ra flags <<< "$(pkg-config --cflags --libs umbel libibverbs)"
expect 0 '' gcc -Wall -Wextra -Werror example.c "${flags[@]}" -o example
cp example.c example.cc
expect 0 '' g++ -Wall -Wextra -Werror example.cc "${flags[@]}" -o example++
expect 0 '*the port is down*' ./example
expect 0 '*the port is down*' ./example++

# ---- Python
expect 0 'h2 is cut off' /usr/bin/python3 "$here/links.py" 'two words'
UMBEL_FABRIC='' expect 0 'h2 is cut off' /usr/bin/python3 "$here/links.py" 'two words'
cp "$here/test_faults.py" .
# -p no:cacheprovider: it leaves nothing here
expect 0 '*5 passed*' /usr/bin/python3 -m pytest -q -p no:cacheprovider -p umbel_pytest --umbel='--hosts 2' -k 'not idle' \
	test_faults.py
expect 1 "*these faults have not fired: ?'to=h2:\* drop'*" /usr/bin/python3 -m pytest -q -p no:cacheprovider -p umbel_pytest \
	--umbel='--hosts 2' -k idle test_faults.py
