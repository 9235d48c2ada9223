#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# debian.sh SUITE: on a Debian of that code name, made from nothing, ./run builds Umbel, shows the
# demo and passes the tests of what depends on the release most: libraries, headers, diagnostics,
# OpenSM. Programs that measure are loaded only, not run (all tests, in ten minutes:
# tools/debian-root.sh --suite SUITE ./run test). Needs root and the package registry.

set -eu

cd "$(dirname "$(readlink -f "$0")")/../.."
# shellcheck disable=SC2016 # the shell over there replaces these
exec tools/debian-root.sh --suite "$1" bash -eu -c '
	./run demo
	./run test -R "^(abi|umad|rdmacm|verbs|shm|netdev)[.]|^system[.](ib|opensm|mckey|saquery)" \
		-E "soak"'
