# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Cases of wire_cases.py with selective repeat: what comes behind a gap is kept, and after a loss one packet is
sent again first, as the peer may have kept what came behind it. Kept it is by who receives: the daemon, as
long as the program does not wait for completions.
"""

from packets import ACCESS, RNR, SEQUENCE, after
from wire_peer import BAD_RESP, FLUSHED, RETRY_EXC, RTS, REM_ACCESS, case, of_each, pattern

AHEAD = 256  # packets, that are kept behind a gap


# ---- the responder keeps

def to_memory(c, at=0, **fields):
    return dict(va=c.va(at), rkey=c.puppet.rkey, **fields)


@of_each((1, 2, 3), (3, 2, 1), (2, 2, 1, 3, 1))
def selective_sends(c, *order):
    """In whatever order they come, also twice: carried out once, in theirs, and acknowledged together."""
    c.qp()
    for i in range(4):
        c.receive(64 * i, 64)
    gap = c.ours
    for i in order:
        c.send('SEND_ONLY', gap + i, ack=True, payload=bytes([i]))
    c.refused(gap, SEQUENCE)
    c.notify()  # all of these have been received
    c.completes_nothing()
    c.receives -= 3
    c.ours = after(gap, 4)
    c.send('SEND_ONLY', gap, ack=True, payload=b'\0')
    c.receives -= 1
    c.acknowledged(gap + 3, 4)
    for i in range(4):
        c.completes(64 * i, bytes=1)
        c.holds(64 * i, bytes([i]))
    c.nothing_came()


@case
def selective_gaps(c):
    """Of each gap it tells, one after the other; the NAK acknowledges what is before."""
    c.qp()
    c.poke(0, 256, 0)
    gap = c.ours
    for i in (1, 3, 5, 6):
        c.send('WRITE_ONLY', gap + i, ack=True, payload=bytes([i]), **to_memory(c, i, length=1))
    c.refused(gap, SEQUENCE)
    for i, msn in (0, 2), (2, 4):
        c.send('WRITE_ONLY', gap + i, ack=True, payload=bytes([i]), **to_memory(c, i, length=1))
        c.told = msn
        c.refused(gap + i + 2, SEQUENCE)
    c.send('WRITE_ONLY', gap + 4, ack=True, payload=b'\4', **to_memory(c, 4, length=1))
    c.ours = after(gap, 7)
    c.acknowledged(gap + 6, 7)
    c.holds(0, bytes(range(7)))
    c.nothing_came()


@of_each('WRITE', 'SEND')
def selective_message(c, what):
    """Packets of one message, the first one last."""
    c.qp()
    c.poke(0, 2048, 0)
    c.receive(0, 2048)
    data = pattern(256 * 5 + 9)
    names = ['FIRST', *['MIDDLE'] * 4, 'LAST_IMM']
    fields = to_memory(c, length=len(data)) if what == 'WRITE' else {}
    psn = c.ours

    def send(i):
        c.send(f'{what}_{names[i]}', psn + i, ack=i == 5, payload=data[256 * i:256 * (i + 1)], imm=5,
               **(fields if i == 0 else {}))

    for i in (5, 3, 1, 4, 2):
        send(i)
    c.refused(psn, SEQUENCE)
    c.notify()
    c.completes_nothing()
    send(0)
    c.ours = after(psn, 6)
    c.receives -= 1
    c.acknowledged(psn + 5, 1)
    c.completes(0, bytes=len(data), imm=5)
    c.holds(0, data)
    c.nothing_came()


@case
def selective_answers(c):
    """READs and atomic operations that are kept are answered once, in their turn."""
    c.qp()
    c.poke(0, 64, 0)
    c.poke(64, 64, 7)
    gap = c.ours
    for _ in range(2):
        c.send('FETCH_ADD', gap + 1, ack=True, swap=5, **to_memory(c, 8))
    c.send('WRITE_ONLY', gap + 2, ack=True, payload=b'a', **to_memory(c, 16, length=1))
    c.refused(gap, SEQUENCE)
    c.holds(8, bytes(8))
    c.send('WRITE_ONLY', gap, ack=False, payload=b'b', **to_memory(c, 17, length=1))
    c.hear('ATOMIC_ACKNOWLEDGE', gap + 1, original=0, msn=2)
    c.ours = after(gap, 3)
    c.acknowledged(gap + 2, 3)
    c.holds(8, b'\5' + bytes(7) + b'ab')
    gap = c.ours
    c.send('READ_REQUEST', gap + 1, ack=True, **to_memory(c, 64, length=9))
    c.refused(gap, SEQUENCE)
    c.send('WRITE_ONLY', gap, ack=False, payload=b'c', **to_memory(c, 64, length=1))
    c.told = 5
    c.hear('READ_ONLY', gap + 1, payload=b'c' + b'\7' * 8, msn=5)
    c.ours = after(gap, 2)
    c.nothing_came()


@case
def selective_refuses(c):
    """What is kept is refused in its turn, and nothing behind it is carried out."""
    c.qp()
    c.poke(0, 64, 0)
    gap = c.ours
    c.send('WRITE_ONLY', gap + 2, ack=True, payload=b'c', **to_memory(c, 2, length=1))
    c.send('WRITE_ONLY', gap + 1, ack=True, payload=b'b', va=c.va(1), rkey=0x123, length=1)
    c.refused(gap, SEQUENCE)
    c.send('WRITE_ONLY', gap, ack=True, payload=b'a', **to_memory(c, 0, length=1))
    c.refused(gap + 1, ACCESS, msn=1)
    c.holds(0, b'a' + bytes(2))


@case
def selective_without_receives(c):
    """Who finds no receive in its turn is told to wait; who was kept behind it goes on."""
    c.qp()
    gap = c.ours
    c.receive(0, 9)
    c.send('SEND_ONLY', gap + 1, ack=True, payload=b'b')
    c.send('SEND_ONLY', gap + 2, ack=True, payload=b'c')
    c.refused(gap, SEQUENCE)
    c.send('SEND_ONLY', gap, ack=True, payload=b'a')
    c.hear('ACKNOWLEDGE', gap + 1, syndrome=RNR | c.keys['timer'], msn=1)
    c.hear('ACKNOWLEDGE', gap, msn=1)
    c.puppet.tell('recv', 64, 9)
    c.hear('ACKNOWLEDGE', gap, msn=1)
    c.puppet.tell('recv', 128, 9)
    c.send('SEND_ONLY', gap + 1, ack=True, payload=b'b')
    c.hear('ACKNOWLEDGE', gap + 2, msn=3)
    for at in (0, 64, 128):
        c.completes(at, bytes=1)
    c.holds(128, b'c')


@of_each(AHEAD, AHEAD + 1)
def selective_far(c, n):
    """So many are kept behind a gap, and no more."""
    c.qp()
    c.poke(0, 512, 0)
    gap = c.ours
    for i in range(n, 0, -1):
        c.send('WRITE_ONLY', gap + i, ack=False, payload=b'x', **to_memory(c, i, length=1))
    c.refused(gap, SEQUENCE)
    c.send('WRITE_ONLY', gap, ack=True, payload=b'x', **to_memory(c, 0, length=1))
    c.ours = after(gap, AHEAD + 1)
    c.acknowledged(gap + AHEAD, AHEAD + 1)
    c.holds(0, b'x' * (AHEAD + 1) + bytes(3))
    c.nothing_came()


@case
def selective_again(c):
    """The same numbers, of another connection of the same queue pair: of before nothing is left."""
    c.qp()
    c.poke(0, 64, 0)
    gap = c.ours
    c.send('WRITE_ONLY', gap + 1, ack=True, payload=b'b', **to_memory(c, 1, length=1))
    c.refused(gap, SEQUENCE)
    c.connect_again()
    c.request('WRITE_ONLY', payload=b'a', **to_memory(c, 0, length=1))
    c.acknowledged(gap, 1)
    c.nothing_came()
    c.holds(0, b'a\0')


# ---- the requester

def hear_sends(c, first, last):
    for i in range(first, last + 1):
        c.hear('SEND_ONLY', c.psn + i)


def post_sends(c, n):
    for i in range(n):
        c.post('SEND', 1, id=i)
    hear_sends(c, 0, n - 1)


@case
def selective_probes(c):
    """Of a gap only the first packet is sent again, until its answer tells what else is missing."""
    c.qp()
    post_sends(c, 6)
    c.nak(c.psn + 1, SEQUENCE)
    c.hear('SEND_ONLY', c.psn + 1, ack=True)
    c.nothing_came_but((0,))
    c.nak(c.psn + 3, SEQUENCE)
    c.hear('SEND_ONLY', c.psn + 3, ack=True)
    c.nothing_came_but((1, 2))
    c.ack(c.psn + 5, 6)
    c.nothing_came_but((3, 4, 5))
    c.is_in(RTS)


@case
def selective_in_vain(c):
    """A peer that keeps nothing gets the rest when it says so; and soon at once."""
    c.qp()
    psn = c.psn
    for _ in range(2):
        post_sends(c, 4)
        c.nak(c.psn, SEQUENCE)
        c.hear('SEND_ONLY', c.psn, ack=True)
        c.nothing_came()
        c.ack(c.psn, 1)
        hear_sends(c, 1, 3)
        c.ack(c.psn + 3, 4)
        for i in range(4):
            c.completes(i)
        c.psn = after(c.psn, 4)
    post_sends(c, 4)
    c.nak(c.psn, SEQUENCE)
    hear_sends(c, 0, 3)
    c.ack(c.psn + 3, 4)
    for i in range(4):
        c.completes(i)
    assert c.psn != psn


@case
def selective_probe_lost(c):
    """Then all is sent again, at the timeout."""
    c.qp(timeout=16)
    post_sends(c, 3)
    c.nak(c.psn, SEQUENCE)
    c.hear('SEND_ONLY', c.psn)
    hear_sends(c, 0, 2)
    c.ack(c.psn + 2, 3)
    c.nothing_came_but((0, 1, 2))


@case
def selective_peer_gone(c):
    """It fails after as many timeouts as without."""
    c.qp(timeout=16, retry=2)
    post_sends(c, 2)
    c.hear('SEND_ONLY', c.psn)
    hear_sends(c, 0, 1)
    c.completes(0, RETRY_EXC)
    c.completes(1, FLUSHED)


def respond_part(c, data, i, name='MIDDLE'):
    c.respond(f'READ_{name}', c.psn + i, data[256 * i:256 * (i + 1)], **({} if name == 'MIDDLE' else {'syndrome': 0}))


def begin_read(c, bytes):
    """It has asked for that; what it is to get."""
    c.qp()
    data = pattern(bytes)
    c.post('READ', bytes, id=1)
    c.hear('READ_REQUEST', c.psn, va=0x70000, length=bytes)
    c.msn = 1
    return data


def begin_read_with_gap(c):
    """Of four parts it has the first and the third, and has asked for the second one again."""
    data = begin_read(c, 256 * 4)
    respond_part(c, data, 0, 'FIRST')
    respond_part(c, data, 2)
    c.hear('READ_REQUEST', c.psn + 1, length=256)
    return data


@case
def selective_read(c):
    """Only the responses that got lost are asked for again, of each gap in turn."""
    data = begin_read(c, 256 * 7 + 3)
    c.poke(0, 2048, 0)
    respond_part(c, data, 0, 'FIRST')
    for i in (3, 4, 6):
        respond_part(c, data, i)
    respond_part(c, data, 7, 'LAST')
    c.hear('READ_REQUEST', c.psn + 1, va=0x70000 + 256, length=512)
    c.nothing_came()
    respond_part(c, data, 1, 'FIRST')
    respond_part(c, data, 2, 'LAST')
    c.hear('READ_REQUEST', c.psn + 5, va=0x70000 + 5 * 256, length=256)
    c.nothing_came()
    respond_part(c, data, 5, 'ONLY')
    c.is_awake()
    c.completes(1)
    c.holds(0, data)
    c.nothing_came()


@case
def selective_read_too_short(c):
    """A response that ends where nobody asked for an end is none."""
    data = begin_read(c, 256 * 3)
    respond_part(c, data, 0, 'ONLY')
    c.fails(1, BAD_RESP)


@case
def selective_read_without(c):
    """The setting changes while a gap is filled: what was asked for is still taken."""
    data = begin_read_with_gap(c)
    c.set('roce_selective_repeat', 0)
    try:
        respond_part(c, data, 1, 'ONLY')
        c.hear('READ_REQUEST', c.psn + 3, length=256)
    finally:
        c.set('roce_selective_repeat', 1)
    respond_part(c, data, 3, 'ONLY')
    c.completes(1)
    c.holds(0, data)
    c.nothing_came()


@case
def selective_read_late(c):
    """What was taken for lost comes after all, with what was asked for: both are the same."""
    data = begin_read_with_gap(c)
    respond_part(c, data, 1)
    c.hear('READ_REQUEST', c.psn + 3, length=256)
    respond_part(c, data, 1, 'ONLY')
    respond_part(c, data, 3, 'LAST')
    c.is_awake()
    c.completes(1)
    c.holds(0, data)
    c.nothing_came()


@case
def selective_read_tail(c):
    """Behind what is kept all is missing: it is asked for when the gap is filled."""
    data = begin_read(c, 256 * 5)
    respond_part(c, data, 1)
    c.hear('READ_REQUEST', c.psn, length=256)
    respond_part(c, data, 0, 'ONLY')
    c.hear('READ_REQUEST', c.psn + 2, va=0x70000 + 512, length=768)
    respond_part(c, data, 2, 'FIRST')
    respond_part(c, data, 3)
    respond_part(c, data, 4, 'LAST')
    c.completes(1)
    c.holds(0, data)
    c.nothing_came()


@case
def selective_read_and_atomic(c):
    """Answers to later requests are kept, too, also of READs of one packet."""
    c.qp()
    c.post('READ', 9, id=1)
    c.post('ADD', 8, id=2, at=64)
    c.post('READ', 9, id=3, at=128)
    c.hear('READ_REQUEST', c.psn)
    c.hear('FETCH_ADD', c.psn + 1)
    c.hear('READ_REQUEST', c.psn + 2)
    c.msn = 2
    c.send('ATOMIC_ACKNOWLEDGE', c.psn + 1, msn=2, original=77)
    c.hear('READ_REQUEST', c.psn, length=9)
    c.nothing_came()
    c.msn = 3
    c.respond('READ_ONLY', c.psn + 2, pattern(9))
    c.respond('READ_ONLY', c.psn, pattern(9, 2))
    c.is_awake()
    for id in (1, 2, 3):
        c.completes(id)
    c.holds(0, pattern(9, 2))
    c.nothing_came()


@case
def selective_read_wrong(c):
    """What is kept is held against the request in its turn."""
    data = begin_read(c, 256 * 3)
    c.respond('READ_MIDDLE', c.psn + 1, data[:99].ljust(100))
    c.hear('READ_REQUEST', c.psn, length=256)
    respond_part(c, data, 0, 'ONLY')
    c.notify()  # that response has been received
    c.fails(1, BAD_RESP)


@case
def selective_refused(c):
    """A NAK that refuses what was sent again fails it."""
    c.qp()
    post_sends(c, 3)
    c.nak(c.psn + 1, SEQUENCE)
    c.hear('SEND_ONLY', c.psn + 1)
    c.completes(0)
    c.nak(c.psn + 1, ACCESS)
    c.completes(1, REM_ACCESS)
