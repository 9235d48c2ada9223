# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Cases of wire_cases.py: another program of the host receives for the queue pair, and is stopped or dies in the
middle of what it does for that.
"""

import time

from egress_cases import has_met
from wire_peer import WAIT, Wrong, case


def until_met(other, fate):
    """The rounds in which the other program may meet its fate, which it does if it is who receives."""
    end = time.monotonic() + WAIT
    while not has_met(other.puppet, fate):
        yield
        if time.monotonic() > end:
            raise Wrong(f'the other program never {fate}')


@case
def dies_before_it_wakes_who_waits_for_a_completion(c):
    c.qp(apart=1)
    with c.other_program() as other:
        other.puppet.tell('fate', 'dies', 'wakes')
        other.puppet.say('wait')
        for _ in until_met(other, 'dies'):
            c.puppet.tell('arm')
            c.post('SEND', 9, id=7)
            c.hear('SEND_ONLY', c.psn)
            c.puppet.say('sleep')
            c.ack(c.psn)
            if c.puppet.line() != ['woken']:
                raise Wrong('nobody wakes it')
            c.completes(7)
            c.psn += 1
