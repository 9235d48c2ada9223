# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Cases of wire_cases.py: end-to-end flow control (volume 1, section 9.7.7.2). An ACK tells how many receives are
posted, as a number of messages behind its MSN; a requester begins no more that need one.
"""

import time

import packets
from packets import RNR, SEQUENCE, after
from wire_peer import RNR_EXC, Wrong, case, of_each, pattern


def begin(c, credits, **keys):
    """One message was sent, for which there was no receive at first, and acknowledged, with so many credits."""
    c.qp(**keys)
    c.post('SEND', 1, id=1)
    c.hear('SEND_ONLY', c.psn)
    c.rnr(c.psn, 1)
    c.hear('SEND_ONLY', c.psn)
    c.ack(c.psn, 1, credits)
    c.completes(1)


def post(c, what, *ids, **keys):
    for id in ids:
        c.post(what, 8, id=id, **keys)


# ---- the requester

@of_each('SEND', 'SEND_IMM', 'SEND_INV', 'WRITE_IMM')
def sends_as_many_as_credits(c, what):
    """None: then one at a time, which has to find out. Two: two."""
    name = dict(SEND='SEND_ONLY', SEND_IMM='SEND_ONLY_IMM', SEND_INV='SEND_ONLY_INVALIDATE',
                WRITE_IMM='WRITE_ONLY_IMM')[what]
    begin(c, 0)
    post(c, what, 2, 3, 4, 5, 6)
    c.hear(name, c.psn + 1, ack=True)
    c.nothing_came()
    c.ack(c.psn + 1, 2, 2)
    c.hear(name, c.psn + 2)
    c.hear(name, c.psn + 3, ack=True)
    c.completes(2)
    c.nothing_came()
    c.ack(c.psn + 2, 3, 1)
    c.completes(3)
    c.nothing_came()
    c.ack(c.psn + 3, 4, 0)
    c.hear(name, c.psn + 4)
    c.completes(4)
    c.nothing_came()
    c.ack(c.psn + 3, 4, 1)  # a receive was posted: an acknowledgement of nothing new
    c.nothing_came()
    c.ack(c.psn + 3, 4, 2)
    c.hear(name, c.psn + 5)
    c.ack(c.psn + 5, 6, 0)
    c.completes(5)
    c.completes(6)


@case
def first_packet_alone(c):
    """Of a long SEND without a credit; the rest when that has found a receive."""
    begin(c, 0)
    c.post('SEND', 600, id=2)
    post(c, 'SEND', 3)
    c.hear('SEND_FIRST', c.psn + 1, ack=True)
    c.nothing_came()
    c.ack(c.psn + 1, 1, 0)
    c.hear('SEND_MIDDLE', c.psn + 2, ack=False)
    c.hear('SEND_LAST', c.psn + 3, ack=True)
    c.nothing_came()
    c.ack(c.psn + 3, 2, 0)
    c.hear('SEND_ONLY', c.psn + 4)
    c.ack(c.psn + 4, 3, 0)
    c.completes(2)
    c.completes(3)


@case
def first_packet_alone_without_receive(c):
    """It is told so, and comes again, alone."""
    begin(c, 0)
    c.post('SEND', 600, id=2)
    for _ in range(3):
        c.hear('SEND_FIRST', c.psn + 1, ack=True)
        c.nothing_came()
        c.rnr(c.psn + 1, 1)
    c.hear('SEND_FIRST', c.psn + 1, ack=True)
    c.ack(c.psn, 1, 1)
    c.nothing_came()  # it is under way
    c.nak(c.psn + 1, SEQUENCE)
    c.hear('SEND_FIRST', c.psn + 1)  # and now there is a receive
    c.hear('SEND_MIDDLE', c.psn + 2)
    c.hear('SEND_LAST', c.psn + 3, ack=True)
    c.ack(c.psn + 3, 2, 0)
    c.completes(2)


@case
def long_write_without_credit(c):
    """Its last packet alone takes a receive."""
    begin(c, 0)
    c.post('WRITE_IMM', 600, id=2)
    c.hear('WRITE_FIRST', c.psn + 1, ack=False)
    c.hear('WRITE_MIDDLE', c.psn + 2, ack=False)
    c.hear('WRITE_LAST_IMM', c.psn + 3, ack=True)
    c.rnr(c.psn + 3, 1)
    c.hear('WRITE_LAST_IMM', c.psn + 3, ack=True)
    c.ack(c.psn + 3, 2, 0)
    c.completes(2)


@case
def others_need_no_credit(c):
    """RDMA WRITE and READ, and atomic operations; and what is behind them is counted behind them."""
    begin(c, 0)
    post(c, 'SEND', 2)
    c.hear('SEND_ONLY', c.psn + 1)
    post(c, 'WRITE', 3)
    c.hear('WRITE_ONLY', c.psn + 2)
    post(c, 'READ', 4)
    c.hear('READ_REQUEST', c.psn + 3)
    post(c, 'CAS', 5)
    c.hear('COMPARE_SWAP', c.psn + 4)
    post(c, 'SEND', 6)
    post(c, 'WRITE', 7)
    c.nothing_came()
    c.ack(c.psn + 1, 2, 1)  # one receive, for request 6
    c.completes(2)
    c.hear('SEND_ONLY', c.psn + 5)
    c.hear('WRITE_ONLY', c.psn + 6)
    post(c, 'SEND', 8)
    c.nothing_came()
    c.respond('READ_ONLY', c.psn + 3, pattern(8), syndrome=packets.ACK)
    c.nothing_came_but((3, 4))
    c.send('ATOMIC_ACKNOWLEDGE', c.psn + 4, original=1, msn=5, syndrome=packets.ACK | 2)
    c.hear('SEND_ONLY', c.psn + 7)
    c.ack(c.psn + 7, 8, 0)
    for id in range(5, 9):
        c.completes(id)


@case
def responses_have_credits(c):
    begin(c, 0)
    post(c, 'SEND', 2)
    c.hear('SEND_ONLY', c.psn + 1)
    post(c, 'READ', 3)
    c.hear('READ_REQUEST', c.psn + 2)
    post(c, 'SEND', 4, 5)
    c.nothing_came()
    c.send('READ_ONLY', c.psn + 2, payload=pattern(8), msn=3, syndrome=packets.ACK | 1)
    c.hear('SEND_ONLY', c.psn + 3)
    c.nothing_came_but((2, 3))
    c.ack(c.psn + 3, 4, 0)
    c.hear('SEND_ONLY', c.psn + 4)
    c.ack(c.psn + 4, 5, 0)
    for id in range(4, 6):
        c.completes(id)


@case
def long_read_counts_for_its_parts(c):
    """It is asked for in parts, of which each is a message: an acknowledgement of before the last one tells
    nothing of what is behind."""
    begin(c, 0)
    data = pattern(65 * 256)
    c.post('READ', len(data), id=2)
    for first, n in (0, 64), (64, 1):
        c.hear('READ_REQUEST', c.psn + 1 + first, length=256 * n)
        c.msn += 1
        for i in range(n):
            name = 'ONLY' if n == 1 else 'FIRST' if i == 0 else 'LAST' if i == n - 1 else 'MIDDLE'
            c.respond(f'READ_{name}', c.psn + 1 + first + i, data[256 * (first + i):256 * (first + i + 1)],
                      **({} if name == 'MIDDLE' else {'syndrome': packets.ACK}))
    c.completes(2)
    post(c, 'SEND', 3, 4)
    c.hear('SEND_ONLY', c.psn + 66, ack=True)
    c.nothing_came()
    c.ack(c.psn + 65, 2, 2)  # it counts the part behind, too
    c.nothing_came()
    c.ack(c.psn + 66, 4, 1)
    c.completes(3)
    c.hear('SEND_ONLY', c.psn + 67)
    c.ack(c.psn + 67, 5, 0)
    c.completes(4)


@case
def unlimited(c):
    """A peer that has always had receives, or that tells no credits, and one that does not any more."""
    c.qp()
    c.post('SEND', 8, id=0)
    c.hear('SEND_ONLY', c.psn)
    c.ack(c.psn, 1, 0)
    c.completes(0)
    c.psn, c.msn = after(c.psn), 0
    post(c, 'SEND', 1, 2, 3)
    for i in range(3):
        c.hear('SEND_ONLY', c.psn + i)
    c.rnr(c.psn, 1)
    for i in range(3):
        c.hear('SEND_ONLY', c.psn + i)
    c.ack(c.psn + 2, 3)
    post(c, 'SEND', 4, 5, 6)
    for i in range(3, 6):
        c.hear('SEND_ONLY', c.psn + i)
    c.ack(c.psn + 4, 5, 0)
    c.nothing_came_but(range(1, 6))
    post(c, 'SEND', 7, 8)
    c.nothing_came()
    c.ack(c.psn + 4, 5)
    for i in range(6, 8):
        c.hear('SEND_ONLY', c.psn + i)
    c.ack(c.psn + 7, 8)
    for id in range(6, 9):
        c.completes(id)


@case
def credits_come_around(c):
    """MSN and credits are added with 24 bits. An older acknowledgement takes nothing back."""
    begin(c, 0)
    post(c, 'SEND', 2, 3, 4, 5)
    c.hear('SEND_ONLY', c.psn + 1)
    c.ack(c.psn, 0xFFFFFE, 3)  # message 1
    c.nothing_came()
    c.ack(c.psn, 0xFFFFFF, 4)  # message 3
    c.hear('SEND_ONLY', c.psn + 2)
    c.nothing_came()
    for msn, credits in ((1, 0), (0, 2), (0xFFFFFF, 2), (0xFFFFF0, 12), (0x800004, 0)):
        c.ack(c.psn, msn, credits)
    c.nothing_came()
    c.ack(c.psn, 0xFF8004, 32768)  # message 4
    c.hear('SEND_ONLY', c.psn + 3)
    c.nothing_came()
    c.ack(c.psn + 3, 4, 0)
    c.hear('SEND_ONLY', c.psn + 4)
    c.ack(c.psn + 4, 5, 0)
    for id in range(2, 6):
        c.completes(id)


@case
def lost_credits(c):
    """What tells of new receives is lost: it tries again when the time of the RNR NAK is over."""
    begin(c, 0)
    post(c, 'SEND', 2, 3)
    for _ in range(5):
        c.hear('SEND_ONLY', c.psn + 1)
        c.rnr(c.psn + 1, 1)
    c.hear('SEND_ONLY', c.psn + 1)
    c.ack(c.psn + 1, 2, 0)
    c.hear('SEND_ONLY', c.psn + 2)
    c.ack(c.psn + 2, 3, 0)
    c.completes(2)
    c.completes(3)


@case
def lost_acknowledgement(c):
    """Of what was sent without a credit: it comes again after the timeout."""
    begin(c, 0, timeout=14)
    post(c, 'SEND', 2, 3)
    for _ in range(3):
        c.hear('SEND_ONLY', c.psn + 1)
    c.ack(c.psn + 1, 2, 1)
    while (p := c.wire.receive()[0]).psn == after(c.psn, 1):
        pass
    if p.operation != 'SEND_ONLY' or p.psn != after(c.psn, 2):
        raise Wrong(f'{p}')
    c.ack(c.psn + 2, 3, 1)
    c.completes(2)
    c.completes(3)


@case
def never_ready(c):
    """As without credits: it fails after rnr_retry times."""
    begin(c, 0, rnr=2)
    post(c, 'SEND', 2)
    for _ in range(3):
        c.hear('SEND_ONLY', c.psn + 1)
        c.rnr(c.psn + 1, 1)
    c.fails(2, RNR_EXC)


@case
def credits_end_the_wait(c):
    """Who was told to wait goes on as soon as there is a receive. The program may be slow, but not always."""
    least = 0.65536
    for i in range(10):
        begin(c, i % 2 * 2)
        post(c, 'SEND', 2, 3)
        for n in range(1, 2 + i % 2):
            c.hear('SEND_ONLY', c.psn + n)
        c.rnr(c.psn + 1, 0)
        began = time.time()
        c.ack(c.psn, 1, 1)
        c.hear('SEND_ONLY', c.psn + 1)
        least = min(least, c.came - began)
        c.ack(c.psn + 1, 2, 2)
        c.hear('SEND_ONLY', c.psn + 2)
        c.ack(c.psn + 2, 3, 1)
        c.completes(2)
        c.completes(3)
    if least >= 0.65536:
        raise Wrong('it waits as long as it was told')


@of_each('READ', 'SEND')
def nothing_new_ends_no_wait(c, what):
    """An acknowledgement of before, or of a peer that tells no credits; and a READ waits for none."""
    begin(c, 2)
    name = 'READ_REQUEST' if what == 'READ' else 'SEND_ONLY'
    post(c, what, 2)
    c.hear(name, c.psn + 1)
    began = time.time()
    c.rnr(c.psn + 1, 0)
    for credits in (0, None) if what == 'SEND' else (0, 3, None):
        c.ack(c.psn, 1, credits)
    c.hear(name, c.psn + 1)
    if c.came - began < 0.65536:
        raise Wrong(f'it waits {c.came - began} seconds only')


@case
def fewer_than_were_told(c):
    """The peer takes them back by an RNR NAK: then one at a time, and what was acknowledged counts."""
    begin(c, 3)
    post(c, 'SEND', 2, 3, 4, 5)
    for n in (1, 2, 3):
        c.hear('SEND_ONLY', c.psn + n)
    c.nothing_came()
    c.rnr(c.psn + 2, 1)
    c.completes(2)
    c.hear('SEND_ONLY', c.psn + 2)
    c.nothing_came()
    c.msn = 2
    c.rnr(c.psn + 2, 0)
    c.ack(c.psn + 3, 4, 0)  # it was late, and waits for nothing any more
    c.hear('SEND_ONLY', c.psn + 4)
    post(c, 'SEND', 6)
    c.nothing_came_but((3, 4))
    c.ack(c.psn + 4, 5, 1)
    c.hear('SEND_ONLY', c.psn + 5)
    c.ack(c.psn + 5, 6, 0)
    c.completes(5)
    c.completes(6)


@case
def sent_again_within_credits(c):
    begin(c, 3)
    post(c, 'WRITE', 2)
    post(c, 'SEND', 3, 4, 5, 6)
    for _ in range(2):
        c.hear('WRITE_ONLY', c.psn + 1)
        for n in (2, 3, 4):
            c.hear('SEND_ONLY', c.psn + n)
        c.nothing_came()
        if not _:
            c.nak(c.psn + 1, SEQUENCE)
    c.ack(c.psn + 4, 5, 1)
    c.hear('SEND_ONLY', c.psn + 5)
    c.ack(c.psn + 5, 6, 1)
    for id in range(2, 7):
        c.completes(id)


# ---- the responder

@of_each(*range(14), 15, 16, 17, 23, 24, 25, 47, 48, 63, 64)
def tells_credits(c, n):
    """The most that can be said and is not more than the receives that are posted; fewer while a message is
    under way in one."""
    c.qp()
    for i in range(n):
        c.receive(16 * i, 1000)
    to = dict(va=c.va(0), rkey=c.puppet.rkey)
    psn = c.request('WRITE_ONLY', payload=b'x', length=1, **to)
    c.hear('ACKNOWLEDGE', psn, syndrome=packets.ACK | packets.credits(n), msn=1)
    if not n:
        return
    psn = c.request('SEND_FIRST', payload=pattern(256))
    c.hear('ACKNOWLEDGE', psn, syndrome=packets.ACK | packets.credits(n - 1), msn=1)
    psn = c.request('SEND_LAST', payload=b'end')
    c.hear('ACKNOWLEDGE', psn, syndrome=packets.ACK | packets.credits(n - 1), msn=2)
    c.completes(0, bytes=259)


@of_each('ACK', 'READ', 'CAS', 'RNR')
def tells_of_receives(c, what):
    """When there were none, once; it acknowledges what was acknowledged before."""
    c.qp()
    to = dict(va=c.va(0x100), rkey=c.puppet.rkey)
    if what == 'ACK':
        psn = c.request('WRITE_ONLY', payload=b'x', length=1, **to)
        c.hear('ACKNOWLEDGE', psn, syndrome=packets.ACK, msn=1)
    elif what == 'READ':
        psn = c.request('READ_REQUEST', 3, length=600, **to)
        for i, name in enumerate(('READ_FIRST', 'READ_MIDDLE', 'READ_LAST')):
            c.hear(name, psn + i, **({} if i == 1 else dict(syndrome=packets.ACK, msn=1)))
        psn += 2
    elif what == 'CAS':
        psn = c.request('COMPARE_SWAP', **to)
        c.hear('ATOMIC_ACKNOWLEDGE', psn, syndrome=packets.ACK, msn=1)
    else:
        psn = c.ours - 1
        c.send('SEND_ONLY', c.ours, payload=b'early', ack=True)
        c.hear('ACKNOWLEDGE', c.ours, syndrome=RNR | 1, msn=0)
    c.starves = False  # told here
    for i in range(4):
        c.receive(16 * i, 10)
        if not i:
            c.hear('ACKNOWLEDGE', psn, syndrome=packets.ACK | 1, msn=int(what != 'RNR'))
    c.told = int(what != 'RNR')
    c.nothing_came()
    for i in range(4):
        psn = c.request('SEND_ONLY', payload=b'x')
        c.acknowledged(psn, c.told + 1)
        c.completes(16 * i)
    c.receive(0, 10)
    c.receive(16, 10)
    c.nothing_came()


@case
def shared_receives_have_no_credits(c):
    c.qp(srq=1)
    psn = c.request('SEND_ONLY', payload=b'x')
    c.hear('ACKNOWLEDGE', psn, syndrome=RNR | 1, msn=0)
    c.ours = psn
    c.receive(0, 10)
    c.receive(16, 10)
    c.nothing_came()
    psn = c.request('SEND_ONLY', payload=b'x')
    c.acknowledged(psn, 2)
    c.completes(0, bytes=1)
    psn = c.request('READ_REQUEST', va=c.va(0), rkey=c.puppet.rkey, length=1)
    c.hear('READ_ONLY', psn, syndrome=packets.ACK | packets.NO_CREDITS, msn=3)


@of_each(0, 1, 5)
def receives_of_before_a_reset(c, n):
    """They are gone, and so are their credits."""
    c.qp()
    for i in range(9):
        c.receive(16 * i, 10)
    psn = c.request('SEND_ONLY', payload=b'x')
    c.acknowledged(psn, 1)
    c.puppet.tell('reset')
    c.puppet.tell('connect', *(f'{k}={v}' for k, v in c.keys.items()))
    c.ours, c.receives, c.told = c.keys['rq_psn'], 0, 0
    for i in range(n):
        c.receive(16 * i, 10)
    psn = c.request('WRITE_ONLY', payload=b'x', va=c.va(0x100), rkey=c.puppet.rkey, length=1)
    c.acknowledged(psn, 1)
    if n:
        psn = c.request('SEND_ONLY', payload=b'x')
        c.acknowledged(psn, 2)
