# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
wire_cases.py HERE THERE COUNTERS-COMMAND , PROGRAM... [, CASE...]: cases of a connected queue pair's peer that
errs, or over whose network packets get lost: see wire_peer.py. All of them, or those whose names have that in
them; those of selective repeat, which is a setting, only if they are named.
"""

import signal
import sys
import traceback

import credit_cases  # noqa: F401, it has cases
import egress_cases  # noqa: F401, likewise
import memory_cases  # noqa: F401, likewise
import packets
import placed_cases  # noqa: F401, likewise
import requester_cases  # noqa: F401, likewise
import responder_cases  # noqa: F401, likewise
import selective_cases  # noqa: F401, likewise
import worker_cases  # noqa: F401, likewise
from wire_peer import CASES, Case, Puppet, Wire, Wrong, words_of


def recover(c):
    """After a case that has failed: nothing of it is left."""
    c.puppet.process.send_signal(signal.SIGCONT)
    c.qp()
    c.request('READ_REQUEST', va=c.va(0), rkey=c.puppet.rkey, length=1)
    while True:
        p, _ = c.wire.receive()
        if p.qpn == c.keys['peer'] and p.operation == 'READ_ONLY':
            break
    while c.puppet.tell('look') != ['none']:
        pass


def main(arguments):
    (here, there, other, *counters), program, *named = words_of(arguments)
    wire, puppet = Wire(here, there, other), Puppet(program)
    failed = []
    chosen = [(name, run) for name, run in CASES
              if (any(n in name for n in named[0]) if named else not name.startswith('selective_'))]
    for name, run in chosen:
        c = Case(wire, puppet, counters)
        try:
            run(c)
        except (Wrong, packets.Malformed) as why:
            print(f'{name}: {why}')
            traceback.print_tb(why.__traceback__, limit=-3, file=sys.stdout)
            failed.append(name)
            sys.stdout.flush()
            recover(c)
    puppet.end()
    print(f'{len(chosen) - len(failed)} of {len(chosen)} cases are as they should be')
    return 1 if failed or not chosen else 0


sys.exit(main(sys.argv[1:]))
