# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Cases of wire_cases.py: another worker of the queue pair has packets on their way out, and what is to be sent
meanwhile follows them (src/client/hca/transport/packet_send_order.c). Then those in which a program is stopped, ends or forks
while packets are on their way out, which it has made for itself or for another one's queue pair.
"""

import itertools
import signal
import time

from packets import ACCESS, INVALID, RNR, SEQUENCE
from wire_peer import (FLUSHED, LEN_ERR, QP_ACCESS_ERR, QP_REQ_ERR, RETRY_EXC, WAIT, Wrong, case, of_each, pattern,
                       wait_until)


@case
def behind_others_an_acknowledgement(c):
    c.qp()
    c.receive(0, 10)
    with c.others_send():
        psn = c.request('SEND_ONLY', payload=pattern(10))
    c.acknowledged(psn, 1)
    c.completes(0, bytes=10)
    c.nothing_came()


@case
def behind_others_a_response(c):
    c.qp()
    with c.others_send():
        psn = c.request('READ_REQUEST', va=c.va(0), rkey=c.puppet.rkey, length=9)
    c.told = 1
    c.hear('READ_ONLY', psn, msn=1)
    c.nothing_came()


@case
def behind_others_a_request(c):
    c.qp()
    with c.others_send():
        c.post('SEND', 9, id=7)
    c.hear('SEND_ONLY', c.psn)
    c.ack(c.psn)
    c.completes(7)
    c.nothing_came()


@case
def behind_others_a_request_with_one_under_way(c):
    """It does not wait until that one is acknowledged."""
    c.qp()
    c.post('SEND', 9, id=6)
    c.hear('SEND_ONLY', c.psn)
    with c.others_send():
        c.post('SEND', 9, id=7)
    c.hear('SEND_ONLY', c.psn + 1)
    c.ack(c.psn + 1, 2)
    c.completes(6)
    c.completes(7)
    c.nothing_came()


@case
def behind_others_there_is_no_receive(c):
    """The peer is told that, and of no gap, which would use up a retry."""
    c.qp()
    with c.others_send():
        psn = c.request('SEND_ONLY', payload=pattern(10))
        c.request('SEND_ONLY', payload=pattern(10))
    c.hear('ACKNOWLEDGE', psn, syndrome=RNR | 1)


@case
def behind_others_there_is_a_receive_by_now(c):
    """The peer is told that there was none, and of the new one."""
    c.qp(timer=0)
    with c.others_send():
        psn = c.request('SEND_ONLY', payload=pattern(10))
        c.wants_to_send()
        c.receive(0, 10)
    c.hear('ACKNOWLEDGE', psn, syndrome=RNR)
    c.hear('ACKNOWLEDGE', psn - 1, syndrome=c.all_is_well())
    c.send('SEND_ONLY', psn, payload=pattern(10), ack=True)
    c.receives = 0
    c.acknowledged(psn, 1)
    c.completes(0, bytes=10)


@of_each('WRITE_ONLY', 'READ_REQUEST', 'FETCH_ADD', 'WRITE_ONLY_IMM')
def behind_others_access_is_denied(c, operation):
    """The peer is told that, and of no gap: it may have no retry."""
    c.qp()
    c.receive(0, 10)
    payload = pattern(9) if 'WRITE' in operation else b''
    with c.others_send():
        psn = c.request(operation, va=c.va(0), rkey=1, length=9, payload=payload)
        c.request('WRITE_ONLY', va=c.va(0), rkey=c.puppet.rkey, length=9, payload=pattern(9))
        c.no_event()
    c.refused(psn, ACCESS)
    c.event(QP_ACCESS_ERR)
    c.completes(0, FLUSHED)
    c.is_silent()


@case
def behind_others_access_is_denied_after_a_read(c):
    """The answer to that comes first."""
    c.qp()
    c.poke(0, 9, 3)
    with c.others_send():
        psn = c.request('READ_REQUEST', va=c.va(0), rkey=c.puppet.rkey, length=9)
        c.request('WRITE_ONLY', va=c.va(0), rkey=1, length=9, payload=pattern(9))
    c.hear('READ_ONLY', psn, msn=1, payload=bytes([3] * 9))
    c.refused(psn + 1, ACCESS, msn=1)
    c.event(QP_ACCESS_ERR)
    c.is_silent()


@case
def behind_others_a_packet_is_too_long(c):
    c.qp()
    with c.others_send():
        psn = c.request('WRITE_ONLY', va=c.va(0), rkey=c.puppet.rkey, length=8, payload=pattern(9))
    c.refused(psn, INVALID)
    c.event(QP_REQ_ERR)
    c.is_silent()


@of_each('ONLY', 'FIRST', 'LAST')
def behind_others_a_send_does_not_fit_its_receive(c, part):
    """The peer is told that, and of no gap; the receive fails then. What comes again meanwhile changes nothing."""
    c.qp()
    c.receive(0, 300 if part == 'LAST' else 200)
    if part == 'LAST':
        c.request('SEND_FIRST', ack=False, payload=pattern(256))
    sent = pattern(45 if part == 'LAST' else 256)
    with c.others_send():
        psn = c.request('SEND_' + part, payload=sent)
        c.request('SEND_ONLY', payload=pattern(10))
        c.send('SEND_' + part, psn, ack=True, payload=sent)
        c.completes_nothing()
    c.refused(psn, INVALID)
    c.completes(0, LEN_ERR)
    c.no_event()
    c.is_silent()


@case
def behind_others_another_request_is_refused_in_its_place(c):
    """Of a broken peer: what fails is the queue pair, not the receive of the one before."""
    c.qp()
    c.receive(0, 200)
    with c.others_send():
        psn = c.request('SEND_ONLY', payload=pattern(256))
        c.send('WRITE_ONLY', psn, va=c.va(0), rkey=1, length=9, payload=pattern(9))
        c.will_refuse(ACCESS)
        c.completes_nothing()
    c.refused(psn, ACCESS)
    c.event(QP_ACCESS_ERR)
    c.completes(0, FLUSHED)
    c.is_silent()


@case
def behind_others_a_gap(c):
    c.qp()
    c.receive(0, 10)
    psn = c.ours
    with c.others_send():
        c.send('SEND_ONLY', psn + 1, payload=pattern(9))
    c.refused(psn, SEQUENCE)
    c.request('SEND_ONLY', payload=pattern(10))
    c.acknowledged(psn, 1)
    c.completes(0, bytes=10)
    c.nothing_came()


# ---- who sends is stopped, or ends


def has_met(puppet, fate):
    state, name = puppet.status()
    return {'stops': state == 'T', 'dies': state == 'Z', 'execs': name == 'sleep'}[fate]


def meets(puppet, fate):
    wait_until(f'the program never {fate}', lambda: has_met(puppet, fate))


def message(c):
    return c.request('SEND_ONLY', payload=pattern(10))


def again(c, psn):
    """As its timer would ask. The last message is acknowledged again."""
    c.send('SEND_ONLY', psn, payload=pattern(10), ack=True)
    c.acknowledged(psn, c.told)


def messages(c, what):
    """The number of each message, which finds a receive; until that has happened. Then one receive is left."""
    end = time.monotonic() + WAIT
    c.receive(0, 10)
    for n in itertools.count(1):
        c.receive(0, 10)
        yield n
        if time.monotonic() > end:
            raise Wrong(f'the program never {what}')


def receives(c):
    if c.puppet.line()[:3] != ['wc', '0', '0']:
        raise Wrong('a message does not come')


def goes_on(c, psn):
    """It receives and sends, @psn next, as before."""
    if not c.receives:
        c.receive(0, 10)
    c.acknowledged(c.request('SEND_ONLY', payload=pattern(10, seed=9)), c.told + 1)
    c.completes(0, bytes=10)
    c.holds(0, pattern(10, seed=9))
    c.post('SEND', 9, id=8)
    c.hear('SEND_ONLY', psn)
    c.ack(psn)
    c.completes(8)
    c.nothing_came()


@of_each('before', 'after')
def stops_while_a_request_leaves(c, when):
    """The daemon sends it again when its time is over."""
    c.qp(timeout=17)
    c.puppet.tell('fate', 'stops', when)
    c.puppet.say('post', 'opcode=2', 'bytes=9', 'id=7')
    meets(c.puppet, 'stops')
    if when == 'after':
        c.hear('SEND_ONLY', c.psn)
    c.hear('SEND_ONLY', c.psn)
    c.ack(c.psn)
    c.puppet.process.send_signal(signal.SIGCONT)
    c.puppet.line()
    c.completes(7)
    c.only_came('SEND_ONLY', c.psn)
    goes_on(c, c.psn + 1)


@of_each('before', 'after')
def stops_while_a_request_leaves_that_nobody_answers(c, when):
    c.qp(timeout=14, retry=1)
    c.puppet.tell('fate', 'stops', when)
    c.puppet.say('post', 'opcode=2', 'bytes=9', 'id=7')
    meets(c.puppet, 'stops')
    c.hear('SEND_ONLY', c.psn)
    c.puppet.process.send_signal(signal.SIGCONT)
    c.puppet.line()
    c.fails(7, RETRY_EXC)
    c.qp()
    c.only_came('SEND_ONLY', c.psn)


@of_each('before', 'after')
def stops_while_an_acknowledgement_leaves(c, when):
    """Another program does not notice. The peer asks again when its time is over, and the daemon answers."""
    c.qp()
    c.puppet.tell('fate', 'stops', when)
    for msn in messages(c, 'stops'):
        c.puppet.say('wait')
        psn = message(c)
        wait_until('a message does not come',
                   lambda: c.puppet.has_answered() or has_met(c.puppet, 'stops'))
        if not c.puppet.has_answered():
            break
        receives(c)
        c.acknowledged(psn, msn)  # the daemon was faster
    if when == 'after':
        c.acknowledged(psn, msn)
    c.told = msn
    with c.other_program() as other:
        goes_on(other, other.psn)
    again(c, psn)
    c.puppet.process.send_signal(signal.SIGCONT)
    receives(c)
    c.only_came('ACKNOWLEDGE', psn)
    goes_on(c, c.psn)


@case
def stops_with_an_acknowledgement_due(c):
    """And a request that is to follow it: the daemon sends both."""
    c.qp()
    c.receive(0, 10)
    c.puppet.tell('hold', 1)
    psn = c.request('SEND_ONLY', payload=pattern(10))
    c.completes(0, bytes=10)
    c.post('SEND', 9, id=7)
    c.puppet.process.send_signal(signal.SIGSTOP)
    c.acknowledged(psn, 1)
    c.hear('SEND_ONLY', c.psn)
    c.ack(c.psn)
    c.puppet.process.send_signal(signal.SIGCONT)
    c.completes(7)
    c.nothing_came()
    goes_on(c, c.psn + 1)


@case
def another_worker_stops_that_would_acknowledge(c):
    """It has the responder's lock. What is to follow the acknowledgement does not wait for ever."""
    c.qp()
    for _ in messages(c, 'sends without an acknowledgement'):
        c.puppet.tell('hold', 1)
        psn = message(c)
        c.completes(0, bytes=10)
        c.puppet.tell('lock')
        c.post('SEND', 9, id=7)
        c.puppet.tell('let_go')
        p = c.hear_any()
        c.puppet.tell('unlock')
        if p.operation == 'SEND_ONLY':
            break
        c.told += 1  # who has the egress was taken for stopped before
        c.hear('SEND_ONLY', c.psn)
        c.ack(c.psn)
        c.completes(7)
        c.psn += 1
    c.acknowledged(psn, c.told + 1)
    c.ack(c.psn)
    c.completes(7)
    c.nothing_came()
    goes_on(c, c.psn + 1)


@of_each('stops', 'dies', 'execs')
def another_program_acknowledges_and(c, fate):
    """
    Whose queue pair it was goes on, and so does the peer. What a program that is gone has not sent leaves before all
    that comes behind it.
    """
    c.qp()
    with c.other_program() as other:
        other.puppet.tell('fate', fate)
        other.puppet.say('wait')
        for msn in messages(c, fate):
            psn = message(c)
            wait_until('a message does not come',
                       lambda: c.wire.has_come() or has_met(other.puppet, fate))
            if has_met(other.puppet, fate):
                break
            c.acknowledged(psn, msn)  # another one was faster
            c.completes(0)
        c.told = msn
        c.post('SEND', 9, id=7)
        if fate != 'stops':
            c.acknowledged(psn, msn)
        c.hear('SEND_ONLY', c.psn)
        c.completes(0, bytes=10)
        c.ack(c.psn)
        c.completes(7)
        again(c, psn)
        if fate == 'stops':
            other.puppet.process.send_signal(signal.SIGCONT)
            c.acknowledged(psn, msn)
        goes_on(c, c.psn + 1)


@of_each('forks', 'spawns')
def while_a_request_leaves_it(c, fate):
    c.qp()
    c.puppet.tell('fate', fate)
    c.post('SEND', 9, id=7)
    c.hear('SEND_ONLY', c.psn)
    c.ack(c.psn)
    c.completes(7)
    c.nothing_came()
    goes_on(c, c.psn + 1)


@of_each('forks', 'spawns')
def while_acknowledgements_leave_it(c, fate):
    c.qp()
    for msn in itertools.islice(messages(c, fate), 5):
        c.puppet.tell('fate', fate)
        c.puppet.say('wait')
        c.acknowledged(message(c), msn)
        receives(c)
    c.nothing_came()
    goes_on(c, c.psn)
