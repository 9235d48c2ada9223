# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Debian's ucx_perftest, unmodified."""

import re

from driver.lab import free_port


def perftest(lab, test, size, messages, *options, server=(), client=(), transports=None):
    """Nanoseconds of a message, as it reports them: the median of one way, or what each takes of
    many. server, client: commands that run either side on its host."""
    command = ["ucx_perftest", "-t", test, "-s", str(size), "-n", str(messages), "-f", "-v",
               "-p", str(free_port()), *options]

    def read(said):
        numbers = re.findall(r"^(?:[0-9.]+,){7}[0-9.]+$", said, re.M)
        if not numbers:
            return None
        column = numbers[-1].split(",")
        return float(column[1]) * 1000 if test.endswith("lat") else 1e9 / float(column[7])

    return lab.exchange([*server, "taskset", "-c", "1", *command],
                        [*client, "taskset", "-c", "0", *command, "127.0.0.1"], read,
                        {"UCX_TLS": transports} if transports else None)
