#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Open MPI runs all collectives and one-sided operations over libfabric and RC. ofi_rxm connects by rdma_cm,
# and takes interfaces that have the hosts' addresses to find out what they are.

. "${0%/*}/lab.sh"
. "${0%/*}/../mpi/lib.bash"

unset OMPI_MCA_plm_rsh_agent
export OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include='verbs;ofi_rxm'
export OMPI_MCA_osc=pt2pt OMPI_MCA_mpi_yield_when_idle=1

umbel up --hosts 4 --ipoib > /dev/null || exit 1
for program in collectives rma; do
	expect 0 '*4 ranks, 0 wrong*' timeout 500 umbel mpirun --mpirun mpirun.openmpi --bind-to none -n 4 \
		"$TMPDIR/$program.openmpi"
done
