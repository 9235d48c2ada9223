#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Open MPI runs all collectives and, if it is version 4, one-sided operations over libfabric and RC. ofi_rxm connects by rdma_cm,
# and takes interfaces that have the hosts' addresses to find out what they are.

. "${0%/*}/lab.sh"
. "${0%/*}/../mpi/lib.bash"

unset OMPI_MCA_plm_rsh_agent
export OMPI_MCA_mpi_yield_when_idle=1
provider='verbs;ofi_rxm'

umbel up --hosts 4 --ipoib > /dev/null || exit 1
ranks()
{
	timeout 500 umbel mpirun --mpirun mpirun.openmpi --bind-to none -n 4 "$TMPDIR/$1.openmpi"
}
use_libfabric "$provider"
expect 0 '*4 ranks, 0 wrong*' ranks collectives
if one_sided_libfabric "$provider"; then
	expect 0 '*4 ranks, 0 wrong*' ranks rma
fi
