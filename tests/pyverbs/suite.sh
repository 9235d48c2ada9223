#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# suite.sh DIR: rdma-core's Python test suite in DIR/tests. Debian's python3-pyverbs ships it as
# documentation. Where packages are installed without theirs, as in containers, the package is
# downloaded and unpacked once more. ctest runs this before the tests.

set -eu -o pipefail

fail()
{
	echo "suite.sh: $*" >&2
	exit 1
}

version=$(dpkg-query -W -f '${Version}' python3-pyverbs) || fail "python3-pyverbs is not installed"
docs=usr/share/doc/rdma-core/tests

mkdir -p "$1"
cd "$1"
# one at a time: two builds' tests may share DIR
exec 9> lock
flock 9
[ ! -e tests/run_tests.py ] || [ "$(cat version 2>&1)" != "$version" ] || exit 0

if [ -e /$docs/run_tests.py ]; then
	from=/$docs
else
	rm -rf unpacked ./*.deb
	# its own user must not be in need of access to this folder
	apt-get -qq -o APT::Sandbox::User="$(id -un)" download "python3-pyverbs=$version" ||
		fail "apt-get cannot download python3-pyverbs: apt-get update, as root, may help"
	dpkg -x ./python3-pyverbs_*.deb unpacked
	from=unpacked/$docs
fi
rm -rf tests
mkdir tests
cp "$from"/*.py* tests/
find tests -name '*.gz' -exec gunzip {} +
rm -rf unpacked ./*.deb
echo "$version" > version
