#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ./run package: makes Debian packages of the checkout as it is, in build/package, and has lintian look for
# mistakes in them. What the packages have is what `cmake --install` installs; debian/ says the rest.
# DEB_BUILD_OPTIONS=nocheck, the default here, leaves out the tests; set it to nothing to run some.

set -eu -o pipefail

cd "$(dirname "$(readlink -f "$0")")/.."
. tools/lib.sh

export DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-nocheck}
need_packages build package
version=$(dpkg-parsechangelog --show-field Version)
source=build/package/umbel-$version
rm -rf build/package
mkdir -p "$source"
copy_checkout "$source"

say "Making Debian packages of Umbel $version"
log=$PWD/build/package/build.log
(cd "$source" && dpkg-buildpackage --no-sign --build=full -jauto) > "$log" 2>&1 || {
	tail -n 40 "$log"
	fail "the package was not built; build/package/build.log has all of it"
}
rm -rf "$source"
# the policy that the package follows may be newer than that which an older Debian's lintian knows
lintian --allow-root --display-info --suppress-tags newer-standards-version \
	--fail-on 'error,warning,info' build/package/*.changes || fail "lintian has found mistakes"
printf '%s\n' build/package/*.deb
