#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# newest.sh BUILD_DIR SUITE: rdma-core's Python test suite of a Debian that is newer, on what was built here: on InfiniBand,
# from within a host of --ipoib and one of --roce-hosts (run.py, expected). build/SUITE.root keeps that Debian, with its
# packages as they were when it was made. Needs root and the package registry.

set -eu -o pipefail

cd "$(dirname "$(readlink -f "$0")")/../.."

# On the other Debian, of whose packages it needs pyverbs, and the libraries that umbel uses.
inside()
{
	local packages=(python3-pyverbs iproute2 libjson-c5 libisal2 libmnl0 libncursesw6)

	if ! dpkg-query -W "${packages[@]}" > /dev/null 2>&1; then
		apt-get -qq update
		apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends "${packages[@]}" > /dev/null
	fi
	tar -xf installed.tar -C /opt
	tests/pyverbs/suite.sh build/pyverbs
	UMBEL_TEST_SUITE=$PWD/build/pyverbs exec tests/in-sandbox.sh /opt/bin/umbel /opt/lib/umbel tests/pyverbs/newest.sh fabrics
}

fabrics()
{
	. tests/system/lib.sh
	suite tests/pyverbs/ib.sh
	umbel up --hosts 2 --ipoib > /dev/null || exit 1
	suite umbel exec h1 -- tests/pyverbs/run.py "$UMBEL_TEST_SUITE" tests/pyverbs/expected ib umbel_h1_0=10.0.0.1
	umbel down > /dev/null
	umbel up --roce-hosts 2 > /dev/null || exit 1
	suite umbel exec r1 -- tests/pyverbs/run.py "$UMBEL_TEST_SUITE" tests/pyverbs/expected roce umbel_r1_0=172.16.0.1
	umbel down > /dev/null
}

# suite COMMAND...: runs it
suite()
{
	"$@" || complain "$*"
}

case $1 in
inside | fabrics)
	set +e
	"$1"
	;;
*)
	[ "$(id -u)" -eq 0 ] || { echo "only root can make the root of a Debian: skipped"; exit 77; }
	given=$(mktemp -d)
	trap 'rm -rf "$given"' EXIT
	cmake --install "$1" --prefix "$given/prefix" > /dev/null
	tar -C "$given/prefix" -cf "$given/installed.tar" .
	tools/debian-root.sh --suite "$2" --keep "build/$2.root" --give "$given/installed.tar" tests/pyverbs/newest.sh inside
	;;
esac
