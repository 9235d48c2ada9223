#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Open MPI and MPICH over UCX and UD on Ethernet ports: MPICH between two machines; Open MPI, whose
# ranks talk to mpirun by TCP, on one.

. "${0%/*}/lab.sh"
. "${0%/*}/../mpi/lib.bash"

cat > "$TMPDIR/machine.sh" <<'END'
host=h$((PMI_RANK + 1))
UMBEL_FABRIC=$host exec ip netns exec $host umbel exec -- "$@"
END

lab_up 2
roce_up h1 h2
expect 0 '*2 ranks, 0 wrong*' run_mpi mpich 2 bash "$TMPDIR/machine.sh" "$TMPDIR/collectives.mpich"
came=$(umbel_on h2 exec -- cat /sys/class/infiniband/umbel_eth0/ports/1/hw_counters/rcvd_pkts)
[ "$came" -gt 1000 ] || complain "h2 received $came packets"
expect 0 '*2 ranks, 0 wrong*' umbel_on h1 exec -- mpirun.openmpi --oversubscribe --bind-to none -n 2 \
	"$TMPDIR/collectives.openmpi"
