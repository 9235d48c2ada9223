# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The part `programs`: what users run, unmodified and as Debian has it, over Umbel and, in turns,
over what they would take instead on one machine. Samples say over which, and nanoseconds of a
message, a request or a byte.
"""

import re
import shutil
from collections import namedtuple
from functools import partial

from driver import mpi, ucx
from driver.lab import Failed, base, free_port

MPIS = {"openmpi": "Open MPI", "mpich": "MPICH"}
MPI_SIZES = (8, 65536, 1 << 20)
UCX_TESTS = (("tag_lat", 8, 50000), ("tag_bw", 65536, 8000), ("ucp_put_lat", 8, 50000),
             ("ucp_put_bw", 65536, 8000), ("ucp_get", 65536, 8000))  # bytes, messages
# bytes of a block: of all. Enough for seconds: fio's engine rdma sleeps for half a second once it has connected, and counts that
FIO_SIZES = {4096: "2g", 65536: "8g"}
FIO_VERBS = ("write", "read")
CLIENTS = {1: 10000, 20: 20000}  # of redis: requests

# Commands that run server and client, and the server's address.
Way = namedtuple("Way", "server client address")
ALONE = Way([], [], "127.0.0.1")


def each(match, of=1):
    """Nanoseconds of each, where a match says how many there are in a second, or how many bytes
    of blocks of that size; None: it does not, or none."""
    rate = float(match.group(1)) if match else 0
    return of * 1e9 / rate if rate else None


def two_hosts(lab, *options):
    server, client = (base(lab).exec(host=host, options=options) for host in ("h1", "h2"))
    return Way(server, client, "10.0.0.1")


def run_mpi(library, lab):
    fabric = lab.fabric("programs", "--hosts", "2", "--ipoib")
    for samples in zip(mpi.run_on_hosts(fabric, library, "pair"),
                       mpi.run_alone(lab, library, "pair")):
        for over, sample in zip(("umbel", "alone"), samples):
            yield {**sample, "program": library, "over": over}


def run_ucx(lab):
    hosts = two_hosts(lab)
    for test, size, messages in UCX_TESTS:
        for over, way, transports in (("umbel", hosts, "rc_v,self"), ("alone", ALONE, "shm,self")):
            yield {"program": "ucx", "test": test, "over": over,
                   "ns": ucx.perftest(lab, test, size, messages, "-w", "1000", server=way.server,
                                      client=way.client, transports=transports)}


def run_fio(lab):
    hosts = two_hosts(lab)
    for size, total in FIO_SIZES.items():
        which = {"program": "fio", "bytes": size}
        for verb in FIO_VERBS:
            yield {**which, "over": "umbel", "verb": verb,
                   "ns": fio(lab, hosts, size, total, "--ioengine=rdma", "--iodepth=16",
                             client=[f"--verb={verb}"])}
        yield {**which, "over": "alone",
               "ns": fio(lab, ALONE, size, total, "--ioengine=net", "--protocol=tcp",
                         server=["--listen", "--size=1t"])}  # until the client has ended


def fio(lab, way, size, total, engine, *options, server=(), client=()):
    """Nanoseconds of a block. Its rdma engine wants a server that has the client's size, and
    does not wait for one that has posted no receives yet; then there is no figure."""
    command = ["fio", "--name=job", "--thread", f"--bs={size}", f"--size={total}", engine,
               f"--port={free_port()}", *options]

    def read(said):
        if re.search(r'"error" : [^0]', said):
            return None
        return each(re.search(r'"write" : \{[^{}]*"bw_bytes" : (\d+)', said), size)

    return lab.exchange([*way.server, *command, "--rw=read", *server],
                        [*way.client, *command, "--rw=write", f"--hostname={way.address}",
                         "--output-format=json", *client], read)


def run_iperf3(lab):
    def read(said):
        return each(re.search(r'"sum_received":\s*\{[^}]*"bits_per_second":\s*([0-9.e+]+)', said), 8)

    for over, way in (("umbel", two_hosts(lab, "--sockets")), ("alone", ALONE)):
        command = ["iperf3", "-p", str(free_port())]
        yield {"program": "iperf3", "over": over,
               "ns": lab.exchange([*way.server, *command, "-s", "-B", way.address],
                                  [*way.client, *command, "-c", way.address, "-t", "1", "-J"],
                                  read)}


def run_redis(lab):
    def read(said):
        return each(re.search(r'^"GET","([0-9.]+)"', said, re.M))

    for clients, requests in CLIENTS.items():
        for over, way in (("umbel", two_hosts(lab, "--sockets")), ("alone", ALONE)):
            port = str(free_port())
            yield {"program": "redis", "clients": clients, "over": over,
                   "ns": lab.exchange([*way.server, "redis-server", "--bind", way.address,
                                       "--port", port, "--protected-mode", "no", "--save", ""],
                                      [*way.client, "redis-benchmark", "-h", way.address,
                                       "-p", port, "-c", str(clients), "-n", str(requests),
                                       "-t", "get", "--csv"], read)}


# What is measured, and the programs that it needs.
MEASURES = (*((partial(run_mpi, library), (f"mpicc.{library}", f"mpirun.{library}"))
              for library in MPIS),
            (run_ucx, ("ucx_perftest",)), (run_fio, ("fio",)), (run_iperf3, ("iperf3",)),
            (run_redis, ("redis-server", "redis-benchmark")))


class Programs:
    """what users run: Open MPI, MPICH, UCX, fio, iperf3, redis, beside what they have without RDMA"""
    name = "programs"
    slow = True  # a quarter of a minute a round
    enough = 3

    def round(self, lab):
        """A program that fails keeps no other from being measured."""
        failures = []
        for measure, needed in MEASURES:
            missing = [program for program in needed if not shutil.which(program)]
            if missing:
                yield {"cannot": f"{', '.join(missing)}: not installed, so rows are missing."}
                continue
            try:
                yield from measure(lab)
            except Failed as e:
                failures.append(str(e))
        if failures:
            raise Failed("; ".join(failures))
