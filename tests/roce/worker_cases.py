# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Cases of wire_cases.py: another program of the host receives for the queue pair, and is stopped or dies in the
middle of what it does for that.
"""

import contextlib
import itertools
import os
import resource
import select
import signal
import time

from egress_cases import goes_on, has_met, receives
from packets import PSNS, after
from wire_peer import ERR, QP_ACCESS_ERR, WAIT, Case, Puppet, Wrong, case, of_each, pattern, wait_until


def until_met(other, fate):
    """The rounds in which the other program may meet its fate, which it does if it is who receives; from 1 on."""
    end = time.monotonic() + WAIT
    for n in itertools.count(1):
        if has_met(other.puppet, fate):
            return
        yield n
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
    goes_on(c, c.psn)


@contextlib.contextmanager
def far_memory(c):
    """Another case, whose memory other programs reach by system calls only."""
    c.set('adopt', 0)
    far = Case(c.wire, Puppet(c.puppet.command), c.show_counters)
    try:
        yield far
    finally:
        c.set('adopt', 1)
        far.puppet.process.kill()
        far.puppet.process.wait()


def write(c, payload):
    return c.request('WRITE_ONLY', va=c.va(0), rkey=c.puppet.rkey, length=len(payload), payload=payload)


def has_come_before(c, other, fate):
    wait_until('nothing comes', lambda: c.wire.has_come() or has_met(other.puppet, fate))
    return not has_met(other.puppet, fate)


def message(c, parts=1):
    """Its receive is posted."""
    if parts == 1:
        return c.request('SEND_ONLY', payload=pattern(10))
    c.request('SEND_FIRST', ack=False, payload=pattern(c.mtu))
    return c.request('SEND_LAST', payload=pattern(10))


def bring_something(c, other, what, fate='stops'):
    """That somebody copies to its memory, and tells, unless the other program does."""
    if what == 'response':
        c.post('READ', 10, id=7)
        c.hear('READ_REQUEST', c.psn)
        c.answer('READ', c.psn, pattern(10))
        c.psn += 1
        wait_until('nothing completes', lambda: has_met(other.puppet, fate) or
                   c.puppet.tell('look')[:3] == ['wc', '7', '0'])
        return
    if what == 'write':
        psn = write(c, pattern(10))
    elif what == 'atomic':
        psn = c.request('FETCH_ADD', va=c.va(0), rkey=c.puppet.rkey, swap=1)
    else:
        c.receive(0, 1000)
        psn = message(c, PARTS[what])
    if has_come_before(c, other, fate):
        c.hear('ATOMIC_ACKNOWLEDGE' if what == 'atomic' else 'ACKNOWLEDGE', psn)
        if what in PARTS:
            c.completes(0)


# packets of messages
PARTS = {'message': 1, 'long_message': 2, 'shared_message': 1}


def copies(c, other, what, fate):
    """Until that happens to who does."""
    other.puppet.tell('fate', fate, 'copies')
    other.puppet.say('wait')
    for _ in until_met(other, fate):
        bring_something(c, other, what, fate)


@of_each('write', 'message', 'response')
def stops_while_it_copies_a(c, what):
    """It goes on when the queue pair has begun anew, of which it knows nothing."""
    with far_memory(c) as far, c.other_program() as other:
        far.qp()
        for each in far, other:
            each.receive(0, 10)  # more than it takes: it tells of none that are posted later
            each.receive(0, 10)
        copies(far, other, what, 'stops')
        far.keys.update(sq_psn=100, rq_psn=200)
        far.connect_again()
        far.receive(0, 10)
        other.puppet.process.send_signal(signal.SIGCONT)
        other.acknowledged(other.request('SEND_ONLY', payload=pattern(10)), 1)
        receives(other)
        far.hear('ACKNOWLEDGE', write(far, pattern(10, seed=5)), msn=1)  # it has yet to find that receive
        far.told = 1
        far.completes_nothing()
        far.holds(0, pattern(10, seed=5))
        goes_on(far, far.psn)


@of_each('write', *PARTS, 'response')
def dies_while_it_copies_a(c, what):
    """The peer sends again what got lost, and hears no more of it."""
    with far_memory(c) as far, c.other_program() as other:
        far.qp(srq=int(what == 'shared_message'))
        copies(far, other, what, 'dies')
        if what == 'response':
            far.psn -= 1
            far.hear('READ_REQUEST', far.psn)
            far.answer('READ', far.psn, pattern(10))
            far.completes(7)
            far.psn += 1
        else:
            far.ours = (far.ours - PARTS.get(what, 1)) % PSNS
            psn = message(far, PARTS[what]) if what in PARTS else write(far, pattern(10))
            while far.hear_any().psn != psn:  # of what comes twice it tells, too
                pass
            if what in PARTS:
                far.completes(0, bytes=10 + (PARTS[what] - 1) * far.mtu)
        far.completes_nothing()
        if what == 'long_message':
            far.holds(0, pattern(far.mtu) + pattern(10))
        else:
            far.holds(0, pattern(10))
        far.hear('ACKNOWLEDGE', write(far, pattern(10, seed=5)))
        far.holds(0, pattern(10, seed=5))


@case
def dies_in_an_atomic_operation(c):
    """Whether it is done nobody can tell."""
    with far_memory(c) as far, c.other_program() as other:
        far.qp()
        copies(far, other, 'atomic', 'dies')
        wait_until('it is not in error', lambda: int(far.puppet.tell('state')[1]) == ERR)
        far.event(QP_ACCESS_ERR)


@case
def dies_when_a_message_is_there(c):
    """Before it tells the peer, or counts it."""
    c.qp(apart=2)
    with c.other_program() as other:
        other.puppet.tell('fate', 'dies', 'wakes')
        other.puppet.say('wait')
        for msn in until_met(other, 'dies'):
            c.puppet.tell('arm')
            c.receive(0, 10)
            psn = c.request('SEND_ONLY', payload=pattern(10))
            c.puppet.say('sleep')
            if c.puppet.line() != ['woken']:
                raise Wrong('nobody wakes it')
            c.completes(0, bytes=10)
            c.acknowledged(psn, msn)
    c.send('SEND_ONLY', psn, payload=pattern(10), ack=True)
    c.acknowledged(psn, msn)
    c.nothing_came()
    goes_on(c, c.psn)


@case
def is_told_from_who_had_its_place(c):
    """By who works on that one, which has ended: the number that says what is open comes only once."""
    seen = {}
    for _ in range(1000):
        c.qp()
        opened = int(c.puppet.tell('opened')[1])
        place = c.qpn % 65536
        if opened in seen.setdefault(place, []):
            raise Wrong(f'{opened} of {c.qpn} has been there')
        seen[place].append(opened)
        if len(seen[place]) > 2:
            return
    raise Wrong('no place comes again')


def adopted_of(puppet):
    """The files of programs' memory that it has mapped, its own, too."""
    with open(f'/proc/{puppet.process.pid}/maps', encoding='ascii') as file:
        return {line.split()[4] for line in file if 'umbel-adopted' in line}


@case
def forgets_the_memory_of_who_is_gone(c):
    c.qp()
    with c.other_program() as other:
        other.puppet.say('wait')
        with c.other_program() as third:
            theirs = adopted_of(third.puppet)
            end = time.monotonic() + WAIT
            while not theirs & adopted_of(other.puppet):
                third.hear('ACKNOWLEDGE', write(third, pattern(10)))
                if time.monotonic() > end:
                    raise Wrong('the other program never receives')
        end = time.monotonic() + WAIT
        while theirs & adopted_of(other.puppet):
            c.hear('ACKNOWLEDGE', write(c, pattern(10)))
            if time.monotonic() > end:
                raise Wrong('it still has the memory of one that has died')


@contextlib.contextmanager
def no_descriptor(puppet):
    """It has none free meanwhile."""
    pid = puppet.process.pid
    has = {int(name) for name in os.listdir(f'/proc/{pid}/fd')}
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(set(range(len(has) + 1)) - has), before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def denied(command):
    """The same command, whose program may not copy by system calls from and to other processes."""
    at = command.index('--') + 1
    deny = os.path.join(os.path.dirname(command[at]), 'adversary.deny')
    return [*command[:at], deny, 'EPERM', 'process_vm_readv', 'process_vm_writev', '--', *command[at:]]


def answers_soon(c):
    return c.wire.has_come() or select.select([c.wire.frames], [], [], 0.2)[0] and c.wire.has_come()


@case
def is_not_refused_for_want_of_a_descriptor(c):
    """Who receives reaches the memory by a descriptor only, and has none free: the packet is as if lost."""
    with far_memory(c) as far, c.other_program(denied(c.puppet.command)) as other:
        far.qp()
        with no_descriptor(other.puppet):
            other.puppet.say('wait')
            end = time.monotonic() + WAIT
            psn = write(far, pattern(10))
            while answers_soon(far):
                far.hear('ACKNOWLEDGE', psn)
                if time.monotonic() > end:
                    raise Wrong('the other program never receives')
                psn = write(far, pattern(10))
        end = time.monotonic() + WAIT
        while not answers_soon(far):
            far.send('WRITE_ONLY', psn, ack=True, va=far.va(0), rkey=far.puppet.rkey, length=10,
                     payload=pattern(10))
            if time.monotonic() > end:
                raise Wrong('it still is as if lost')
        far.hear('ACKNOWLEDGE', psn)
        far.holds(0, pattern(10))


def takes_acknowledgement(c):
    """Another program receives the acknowledgement of our request, and dies. False: somebody else was faster."""
    with c.other_program() as other:
        other.puppet.tell('fate', 'dies', 'takes')
        other.receive(0, 8)
        other.puppet.say('wait')
        end = time.monotonic() + 20
        while other.puppet.process.poll() is None:
            c.ack(c.psn, 1)
            time.sleep(0.01)
            if time.monotonic() > end:
                raise Wrong('no other program takes a packet')
    return c.puppet.tell('look') == ['none']


@case
def receiver_dies(c):
    """With an acknowledgement in its hands. The answer behind it comes when the request is complete, not before."""
    end = time.monotonic() + 20
    while True:
        c.qp(timeout=17)
        c.receive(0x100, 100)
        c.post('SEND', 8, id=1)
        c.hear('SEND_ONLY', c.psn)
        if takes_acknowledgement(c):
            break
        if time.monotonic() > end:
            raise Wrong('the other program never takes the acknowledgement')
    answer = c.request('SEND_ONLY', payload=b'answer')
    while (p := c.hear_any()).operation != 'SEND_ONLY':  # it asks again
        if p.operation != 'ACKNOWLEDGE' or p.psn != after(answer, -1):
            raise Wrong(f'{p}, though what was sent before is not acknowledged')
    c.completes_nothing()
    c.ack(c.psn, 1)
    c.completes(1)
    c.send('SEND_ONLY', answer, ack=True, payload=b'answer')
    while (p := c.hear_any()).psn != answer:
        pass
    c.completes(0x100, bytes=6)
