#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The image that packaging/oci.sh makes of our packages, for the tests that run it: build/containers/image.tar. ./run package
# has made the packages (test reach.package_build).

. "$(dirname "$0")/../system/lib.sh"

cd "$(dirname "$0")/../.." || exit 1
. tools/lib.sh

[ "$(id -u)" -eq 0 ] || { echo "only root can make the containers of this image here: skipped"; trap - EXIT; exit 77; }
mkdir -p build/containers
exec 9> build/containers/lock # as in docker.bash
flock 9
(need_packages container) || exit 1
exec 9>&-
expect 0 '*' packaging/oci.sh --add infiniband-diags,perftest build/containers/image.tar build/package/umbel_*.deb \
	build/package/umbel-kubernetes_*.deb
