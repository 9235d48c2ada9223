#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# mpi4py over Open MPI and UCX: four ranks on four hosts reduce and gather objects, broadcast memory, and put and get one-sided.

. "${0%/*}/lib.sh"

cat > "$TMPDIR/ranks.py" <<'END'
import array
import socket

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
assert world.allreduce(rank + 1) == ranks * (ranks + 1) // 2
assert world.allgather({"rank": rank}) == [{"rank": i} for i in range(ranks)]
data = array.array("B", bytes(range(256)) * 4096 if rank == 0 else bytes(1 << 20))
world.Bcast(data)
assert data.tobytes() == bytes(range(256)) * 4096
memory = array.array("i", [-1] * ranks)
window = MPI.Win.Create(memory, disp_unit=memory.itemsize, comm=world)
window.Fence()
for peer in range(ranks):
    window.Put(array.array("i", [rank * 100]), peer, target=rank)
window.Fence()
assert list(memory) == [i * 100 for i in range(ranks)], memory
got = array.array("i", [0])
window.Get(got, (rank + 1) % ranks, target=rank)
window.Fence()
assert got[0] == rank * 100
window.Free()
print(f"rank {rank} of {ranks} on {socket.gethostname()}", flush=True)
END

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
umbel up --hosts 4 --ipoib > /dev/null
umbel mpirun -n 4 /usr/bin/python3 "$TMPDIR/ranks.py" > "$TMPDIR/out" 2>&1 || complain "a rank failed: $(cat "$TMPDIR/out")"
expect 0 $'rank 0 of 4 on h1\nrank 1 of 4 on h2\nrank 2 of 4 on h3\nrank 3 of 4 on h4' \
	sh -c "grep '^rank' '$TMPDIR/out' | sort"
