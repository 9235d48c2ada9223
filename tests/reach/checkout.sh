#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# checkout.sh SOURCE BUILD: the ./run of a checkout. What it builds without tests is what is installed and
# no more; it needs no dpkg where all is there; and it says what stands in the way. The checkout is made of
# links, and its build is the one under test.

. "${0%/*}/../system/lib.sh"

source=$1 build=$2

# ---- the target of `./run build` and `./run umbel`
made=$(ninja -C "$build" -t query product | sed -n '/input/,/outputs/s/^    //p')
for file in "$build"/bin/* "$build"/lib/umbel/*.so; do
	[ "${file##*/}" = umbel-rsh ] || grep -qxF "${file#"$build"/}" <<< "$made" ||
		complain "./run build does not make ${file##*/}, but only: $made"
done
sources=$(ninja -C "$build" -t inputs product | grep '\.c$')
grep -q /src/command/cli/main.c <<< "$sources" || complain "ninja does not list what 'product' is made of"
tests=$(grep "_test[.]c$\|^$source/tests/" <<< "$sources")
[ -z "$tests" ] || complain "./run build makes tests: $tests"

# ---- without dpkg; as there is a build, nothing is missed
mkdir -p "$TMPDIR/umbel/build" "$TMPDIR/bin"
cd "$TMPDIR/umbel" || exit 1
for file in "$source"/*; do
	[ "${file##*/}" = build ] || ln -s "$file" .
done
rm run && cp "$source/run" .
ln -s "$build" build/release
for program in /usr/bin/* /bin/*; do
	ln -s "$program" "$TMPDIR/bin" 2> /dev/null
done
rm -f "$TMPDIR"/bin/{dpkg-query,sudo}
expect 0 'umbel [0-9]*' env "PATH=$TMPDIR/bin" ./run umbel --version
# the action builds, where there is no umbel, and later steps find it
rm -f packaging "$TMPDIR/bin/umbel" && cp -r "$source/packaging" .
expect 0 "*built: *fabric 'default' is up*" env "PATH=$TMPDIR/bin" "GITHUB_ENV=$TMPDIR/env" "GITHUB_PATH=$TMPDIR/path" \
	packaging/ci-start.sh
expect 0 "$PWD/build/release/bin" cat "$TMPDIR/path"
grep -q '^UMBEL_HOST=h1$' "$TMPDIR/env" || complain "the action says no host: $(cat "$TMPDIR/env")"
umbel down > /dev/null
# what is missed is named, and where it is to be had
rm build/release "$TMPDIR/bin/cmake"
expect 1 '*What it takes is in these packages on Debian: * cmake *run: CMake could not configure build/release' \
	env "PATH=$TMPDIR/bin" ./run build

# on Fedora and what is made of it by its names
printf 'ID=rhel\nID_LIKE="fedora"\nNAME=Other\n' > "$TMPDIR/os-release"
expect 1 "*What it takes is in Fedora's packages: * rdma-core-devel *run: CMake could not configure build/release" \
	unshare --map-root-user --mount env "PATH=$TMPDIR/bin" sh -c \
	'mount --bind "$0" /etc/os-release && exec ./run build' "$TMPDIR/os-release"

# ---- who may not install is told so, and not that apt-get failed
mkdir "$TMPDIR/none" && touch "$TMPDIR/none/status"
ln -s /usr/bin/dpkg-query "$TMPDIR/bin/dpkg-query"
ln -s /bin/false "$TMPDIR/bin/sudo"
expect 1 '*Installing the Debian packages: *run: sudo refuses; run it as root once, or: apt-get install *gcc*' \
	unshare --user env "DPKG_ADMINDIR=$TMPDIR/none" "PATH=$TMPDIR/bin" ./run build
rm "$TMPDIR/bin/sudo"
expect 1 '*run: run it as root once, or: apt-get install *gcc*' \
	unshare --user env "DPKG_ADMINDIR=$TMPDIR/none" "PATH=$TMPDIR/bin" ./run build
