#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Open MPI as Debian ships it runs all collectives and one-sided operations over libfabric, with its
# reliable messages above UD. (With 3 ranks it crashes in libfabric's ofi_rxd, over UDP as well. Debian's MPICH
# has no libfabric. Above RC: hosts.mpi_libfabric.)

. "${0%/*}/lib.sh"
. "${0%/*}/../mpi/lib.bash"

provider='verbs;ofi_rxd'

umbel up --hosts 4 > /dev/null
use_libfabric $provider
for ranks in 2 4; do
	expect 0 "*$ranks ranks, 0 wrong*" run_mpi openmpi $ranks bash "$TMPDIR/rank.sh" \
		"$TMPDIR/collectives.openmpi"
done
one_sided_libfabric $provider
expect 0 '*4 ranks, 0 wrong*' run_mpi openmpi 4 bash "$TMPDIR/rank.sh" "$TMPDIR/rma.openmpi"
