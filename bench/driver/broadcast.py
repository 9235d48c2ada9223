# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The part `broadcast`: the same bytes from one host to many, three ways."""

import os
import re
import subprocess
import time

from driver import mpi
from driver.lab import Failed

RECEIVERS = (4, 16, 64)
GROUP = "239.1.1.1"
SECONDS = 150  # so long a run may take: 65 ranks of MPI that poll, on few processors


class Broadcast:
    """1 host to 4, 16 and 64: examples/broadcast beside MPI_Bcast over UCX and over TCP"""
    name = "broadcast"
    slow = True  # a minute a round
    enough = 1
    bytes = 64 << 20

    def round(self, lab):
        fabric = lab.fabric("broadcast", "--fat-tree", "2", "--hosts", str(max(RECEIVERS) + 1))
        failed = None
        for receivers in RECEIVERS:
            for over, how in (("ucx", mpi.UCX), ("tcp", mpi.TCP)):
                yield self.example(fabric, receivers)
                try:
                    samples = mpi.run(fabric, receivers + 1, how, "broadcast", self.bytes,
                                      seconds=SECONDS)
                except Failed as e:
                    failed, samples = e, []
                for sample in samples:
                    yield {**sample, "over": over}
            yield self.example(fabric, receivers)
        if failed:
            raise failed

    def example(self, fabric, receivers):
        """One broadcast. The sender's time: from when all are ready until all have said that they
        have all."""
        program = build(fabric.lab)

        def start(host, *arguments):
            return subprocess.Popen(fabric.exec(program, *arguments, host=f"h{host}"),
                                    env=fabric.lab.env, text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT)

        running = [start(1, "-m", str(self.bytes), "-n", str(receivers), "10.0.0.1", GROUP)]
        try:
            if "listens" not in running[0].stdout.readline():
                raise Failed("examples/broadcast does not listen")
            running += [start(i, "-v", f"10.0.0.{i}", GROUP, "10.0.0.1")
                        for i in range(2, receivers + 2)]
            said = [p.communicate(timeout=SECONDS)[0] for p in running]
        except subprocess.TimeoutExpired:
            raise Failed("examples/broadcast does not end") from None
        finally:
            for process in running:
                process.kill()
                process.wait()
        for process, text in zip(running, said):
            if process.returncode:
                raise Failed(f"examples/broadcast: {text.strip()[-300:]}")
        seconds = re.search(r"^sent \d+ bytes in ([0-9.]+) s", said[0], re.M).group(1)
        return {"measure": "broadcast", "over": "example", "receivers": receivers,
                "bytes": self.bytes, "ns": float(seconds) * 1e9, "time": time.time(),
                "repaired": sum(int(n) for n in re.findall(r"repaired (\d+)", "".join(said)))}


def build(lab):
    """examples/broadcast, compiled once, as its Makefile does."""
    path = os.path.join(lab.directory, "broadcast")
    if not os.path.exists(path):
        examples = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "examples")
        lab.samples(["cc", "-O2", "-o", path, os.path.join(examples, "broadcast.c"),
                     os.path.join(examples, "setup.c"), "-lrdmacm", "-libverbs"])
    return path
