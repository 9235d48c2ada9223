# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Debian's Open MPI and MPICH, unmodified: the programs in bench/mpi, and how they are run."""

import os

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SETTINGS = {**ROOT, "OMPI_MCA_plm_rsh_agent": "false", "OMPI_MCA_btl_base_warn_component_unused": "0"}
UCX = {"OMPI_MCA_pml": "ucx", "UCX_TLS": "rc_v,self", "OMPI_MCA_opal_common_ucx_tls": "any",
       "OMPI_MCA_opal_common_ucx_devices": "any",  # over RC, whose connections are made by UD:
       "UCX_UD_TIMEOUT": "10m"}  # many ranks on few processors answer late
SHARED = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "vader,self"}  # its own shared memory
TCP = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "lo"}


def program(lab, name, library="openmpi"):
    """The program of that name, compiled once."""
    path = os.path.join(lab.directory, f"{library}-{name}")
    if not os.path.exists(path):
        here = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
        lab.samples([f"mpicc.{library}", "-O2", "-o", path, os.path.join(here, "mpi", f"{name}.c")])
    return path


def run(fabric, ranks, how, name, *arguments, pinned=False, seconds=30):
    """Runs it with so many ranks, each on a host of its own. pinned: and on a processor of its
    own. Its samples."""
    lab = fabric.lab
    pin = "taskset -c $rank" if pinned else ""
    return lab.samples(["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n", str(ranks),
                        "sh", "-c", 'umbel=$1 fabric=$2 rank=$OMPI_COMM_WORLD_RANK; shift 2; '
                        f'exec {pin} "$umbel" exec --name "$fabric" h$((rank + 1)) -- "$@"',
                        "rank", lab.umbel, fabric.name, program(lab, name),
                        *map(str, arguments)],
                       env={**lab.env, **SETTINGS, **how}, seconds=seconds)


def run_alone(lab, library, name):
    """Runs it with two ranks as a user of this machine would, without a fabric. Its samples."""
    return start(lab, library, name, [])


def run_on_hosts(fabric, library, name):
    """Likewise, on two hosts of a fabric, by `umbel mpirun`."""
    return start(fabric.lab, library, name,
                 [fabric.lab.umbel, "mpirun", "--name", fabric.name, "--mpirun"])


def start(lab, library, name, before):
    return lab.samples([*before, f"mpirun.{library}", "-n", "2", program(lab, name, library)],
                       env={**lab.env, **ROOT}, seconds=60)
