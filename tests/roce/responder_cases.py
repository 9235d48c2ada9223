# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Cases of wire_cases.py: a responder, and a requester that asks twice, or leaves out something, or asks for what
it must not (volume 1, sections 9.7.3, 9.7.4, 9.8.2 and 9.9.3).
"""

import struct

import packets
from packets import ACCESS, INVALID, OPERATION, RNR, SEQUENCE, after
from wire_peer import (FLUSHED, LEN_ERR, PROT_ERR, QP_ACCESS_ERR, QP_REQ_ERR, RTS, Wrong, case, of_each, pattern)


# What a queue pair may be denied, as in enum ibv_access_flags.
WRITE, READ, ATOMIC, FLUSH = 2, 4, 8, 256


# ---- the responder: what comes twice

@case
def send_again(c):
    c.qp()
    c.receive(0, 1000)
    c.receive(1024, 1000)
    psn = c.request('SEND_ONLY_IMM', payload=pattern(9), imm=3)
    c.acknowledged(psn, 1)
    c.completes(0, bytes=9, imm=3)
    for ack in (True, False):
        c.send('SEND_ONLY_IMM', psn, payload=pattern(9), imm=3, ack=ack)
        c.acknowledged(psn, 1)
    c.nothing_came()
    first = c.request('SEND_FIRST', ack=False, payload=pattern(256))
    last = c.request('SEND_LAST', payload=pattern(9))
    c.acknowledged(last, 3)
    c.completes(1024, bytes=265)
    c.send('SEND_FIRST', first, payload=pattern(256))
    c.acknowledged(last, 3)
    c.send('SEND_LAST', last, payload=pattern(9))
    c.acknowledged(last, 3)
    c.nothing_came()


@case
def write_again(c):
    c.qp()
    c.poke(0, 1024, 0)
    to = dict(va=c.va(3), rkey=c.puppet.rkey)
    psn = c.request('WRITE_ONLY', payload=b'first', length=5, **to)
    c.acknowledged(psn, 1)
    second = c.request('WRITE_ONLY', payload=b'again', length=5, **to)
    c.acknowledged(second, 2)
    c.send('WRITE_ONLY', psn, ack=True, payload=b'first', length=5, **to)
    c.acknowledged(second, 2)
    c.holds(3, b'again')
    c.receive(0x400, 10)
    psn = c.request('WRITE_ONLY_IMM', payload=b'third', length=5, imm=8, **to)
    c.acknowledged(psn, 3)
    c.completes(0x400, imm=8, bytes=5)
    c.send('WRITE_ONLY_IMM', psn, ack=True, payload=b'other', length=5, imm=8, **to)
    c.acknowledged(psn, 3)
    c.holds(3, b'third')
    c.nothing_came()


def expect_read(c, psn, data, begin, msn, syndrome=packets.ACK):
    """What a READ of all @data that lies behind @begin gets. Without @syndrome: with any credits."""
    n = (len(data) - 1) // 256 + 1
    for i in range(begin // 256, n):
        name = ('READ_ONLY' if begin // 256 + 1 == n else 'READ_FIRST' if i == begin // 256
                else 'READ_LAST' if i + 1 == n else 'READ_MIDDLE')
        more = {} if name == 'READ_MIDDLE' else dict(msn=msn)
        if more and syndrome is not None:
            more['syndrome'] = syndrome
        c.hear(name, psn + i, payload=data[256 * i:256 * (i + 1)], **more)


@case
def read_again(c):
    """It is carried out again; also a part of it; not more than it was."""
    c.qp()
    c.poke(0, 1024, 0x11)
    key = dict(rkey=c.puppet.rkey)
    psn = c.request('READ_REQUEST', 4, va=c.va(0), length=1000, **key)
    expect_read(c, psn, b'\x11' * 1000, 0, 1)
    c.told = 1
    c.poke(0, 1024, 0x22)
    for begin in (0, 256, 512, 768):
        c.send('READ_REQUEST', psn + begin // 256, ack=True, va=c.va(begin), length=1000 - begin, **key)
        expect_read(c, psn, b'\x22' * 1000, begin, 1)
    c.send('READ_REQUEST', psn + 1, ack=True, va=c.va(256), length=256, **key)
    c.hear('READ_ONLY', psn + 1, payload=b'\x22' * 256)
    for begin, length in ((0, 1025), (768, 257), (256, 1 << 20)):
        c.send('READ_REQUEST', psn + begin // 256, ack=True, va=c.va(begin), length=length, **key)
    c.send('READ_REQUEST', psn, ack=True, va=c.va(0), length=1000, rkey=0x123)
    c.nothing_came()
    c.is_in(RTS)


@of_each('COMPARE_SWAP', 'FETCH_ADD')
def atomic_again(c, what):
    """It is not: the answer is what it found. Of the last 16 that is known."""
    c.qp()
    c.poke(0, 64, 0)
    fields = dict(va=c.va(8), rkey=c.puppet.rkey)
    answers = {}
    for i in range(17):
        p = dict(swap=i + 1, compare=i) if what == 'COMPARE_SWAP' else dict(swap=1)
        psn = c.request(what, **p, **fields)
        c.told += 1
        c.hear('ATOMIC_ACKNOWLEDGE', psn, original=i, msn=c.told, syndrome=packets.ACK)
        answers[psn] = i, p
    c.poke(8, 8, 0xFF)
    for psn, (i, p) in answers.items():
        c.send(what, psn, ack=True, **p, **fields)
        if i > 0:
            c.hear('ATOMIC_ACKNOWLEDGE', psn, original=i)
    c.nothing_came()
    c.holds(8, b'\xff' * 8)


# ---- the responder: what is missing, or in the wrong order

@of_each('SEND_ONLY', 'WRITE_ONLY', 'READ_REQUEST', 'COMPARE_SWAP', 'SEND_MIDDLE', 'FLUSH', 'ATOMIC_WRITE')
def out_of_sequence(c, what):
    """One NAK, until what is missing comes; nothing behind the gap is carried out."""
    c.qp()
    c.poke(0, 64, 0)
    before = c.counter('out_of_sequence')
    c.receive(0, 100)
    data = dict(payload=pattern(256)) if what == 'SEND_MIDDLE' else dict(payload=b'x', length=1)
    if what in packets.EMPTY:
        data = dict(length=1)
    if what == 'ATOMIC_WRITE':
        data = dict(payload=pattern(8), length=8)
    data.update(va=c.va(0), rkey=c.puppet.rkey, swap=7)
    gap = c.ours
    for n in (1, 2, 9, 1 << 20):
        c.send(what, gap + n, ack=True, **data)
    c.refused(gap, SEQUENCE)
    c.nothing_came()
    c.holds(0, bytes(16))
    for n in (2, 1):
        c.send(what, c.ours + n, ack=True, **data)
    c.refused(c.ours, SEQUENCE)
    psn = c.request('SEND_ONLY', payload=pattern(5))
    c.acknowledged(psn, 2)
    c.completes(0, bytes=5)
    c.nothing_came()
    c.counts('out_of_sequence', before, 6)


def ask_much(c, times=15, bytes=200 * 256):
    """More responses than are sent at one time are due; the function says that they have come."""
    c.poke(0, bytes, 0x33)
    asked = [c.request('READ_REQUEST', bytes // 256, va=c.va(0), rkey=c.puppet.rkey, length=bytes)
             for _ in range(times)]

    def hear():
        for psn in asked:
            c.told += 1
            expect_read(c, psn, b'\x33' * bytes, 0, c.told, None)
    return hear


@case
def out_of_sequence_behind_reads(c):
    """Responses come first, then the peer hears of the gap."""
    c.qp()
    hear = ask_much(c)
    for n in (1, 2):
        c.send('WRITE_ONLY', c.ours + n, ack=True, payload=b'x', va=c.va(0), rkey=c.puppet.rkey, length=1)
    hear()
    c.refused(c.ours, SEQUENCE)
    psn = c.request('WRITE_ONLY', payload=b'y', va=c.va(0), rkey=c.puppet.rkey, length=1)
    c.acknowledged(psn, c.told + 1)
    c.holds(0, b'y')
    c.nothing_came()


@of_each('WRITE', 'WRITE_IMM', 'READ', 'SEND', 'long SEND', 'CAS')
def refused_behind_reads(c, what):
    """Responses come first, then the peer hears why it is refused, and waits for no timeout."""
    c.qp()
    if what in ('long SEND', 'WRITE_IMM'):
        c.receive(0, 10)
    hear = ask_much(c)
    operation = dict(WRITE='WRITE_ONLY', WRITE_IMM='WRITE_ONLY_IMM', READ='READ_REQUEST', CAS='COMPARE_SWAP',
                     SEND='SEND_ONLY')[what.split()[-1]]
    data = pattern(11) if what == 'long SEND' else b'' if operation in packets.EMPTY else b'x'
    fields = dict(payload=data, va=c.va(0), rkey=0x123, length=1)
    psn = c.request(operation, **fields)
    hear()
    why = RNR | 1 if what == 'SEND' else packets.NAK | (INVALID if what == 'long SEND' else ACCESS)
    c.hear('ACKNOWLEDGE', psn, msn=c.told, syndrome=why)
    if what == 'SEND':
        return
    if what == 'long SEND':
        c.completes(0, LEN_ERR)
    else:
        c.event(QP_ACCESS_ERR)
    c.is_in(6)


@case
def missing_in_message(c):
    """The part that was lost, and what was behind it, comes again: the message is whole."""
    c.qp()
    c.receive(0, 2000)
    data = pattern(1100)
    names = ['SEND_FIRST', 'SEND_MIDDLE', 'SEND_MIDDLE', 'SEND_MIDDLE', 'SEND_LAST']
    first = c.ours
    for i in (0, 1, 3, 4):
        c.send(names[i], first + i, ack=i == 4, payload=data[256 * i:256 * (i + 1)])
    c.refused(after(first, 2), SEQUENCE)
    for i in (2, 3, 4):
        c.send(names[i], first + i, ack=i == 4, payload=data[256 * i:256 * (i + 1)])
    c.receives = 0
    c.acknowledged(after(first, 4), 1)
    c.completes(0, bytes=1100)
    c.holds(0, data)
    c.ours = after(first, 5)
    c.nothing_came()


@case
def acknowledged_within(c):
    """A packet within a message asks for it: the message is not counted before it is whole."""
    c.qp()
    c.receive(0, 2000)
    psn = c.request('SEND_FIRST', payload=pattern(256))
    c.acknowledged(psn, 0)
    psn = c.request('SEND_MIDDLE', payload=pattern(256))
    c.acknowledged(psn, 0)
    psn = c.request('SEND_LAST', payload=pattern(1))
    c.acknowledged(psn, 1)
    c.completes(0, bytes=513)


@case
def receive_is_missing(c):
    """Each try is told so; what comes behind it is not; then all goes on."""
    c.qp(timer=5)
    c.poke(0, 64, 0)
    to = dict(va=c.va(0), rkey=c.puppet.rkey, length=5)
    psn = c.ours
    for operation in ('SEND_ONLY', 'WRITE_ONLY_IMM', 'SEND_FIRST'):
        for _ in range(2):
            c.send(operation, psn, ack=True, payload=pattern(256 if operation == 'SEND_FIRST' else 5), **to)
            c.hear('ACKNOWLEDGE', psn, syndrome=RNR | 5, msn=0)
            c.send('WRITE_ONLY', psn + 1, ack=True, payload=b'wrong', **to)
    c.holds(0, bytes(5))
    c.receive(16, 100)
    c.request('SEND_ONLY', payload=b'right')
    c.acknowledged(psn, 1)
    c.completes(16, bytes=5)
    c.nothing_came()


@case
def timer_changes(c):
    """min_rnr_timer can be changed in RTS: the next one without a receive is told the new one."""
    c.qp(timer=5)
    psn = c.ours
    for timer in (5, 9, 31):
        if timer != 5:
            c.move(RTS, timer)
        c.send('SEND_ONLY', psn, ack=True, payload=b'x')
        c.hear('ACKNOWLEDGE', psn, syndrome=RNR | timer, msn=0)


@of_each('SEND_MIDDLE', 'SEND_LAST', 'SEND_LAST_IMM', 'SEND_LAST_INVALIDATE', 'WRITE_MIDDLE', 'WRITE_LAST',
         'WRITE_LAST_IMM')
def without_first(c, operation):
    c.qp()
    c.receive(0, 1000)
    psn = c.request(operation, payload=pattern(256))
    c.refused(psn, INVALID)
    c.event(QP_REQ_ERR)
    c.completes(0, FLUSHED)
    c.is_silent()


@of_each(0x15, 0x18, 0x1B, 0x1E, 0x1F)
def reserved_opcode(c, opcode):
    """Refused in its turn; before that it is a gap, and behind it nothing."""
    c.qp()
    c.receive(0, 1000)
    c.receive(1024, 1000)
    psn = c.request('SEND_ONLY', payload=b'x')
    c.acknowledged(psn, 1)
    c.completes(0, bytes=1)
    c.send('SEND_MIDDLE', psn, opcode=opcode, ack=True, payload=pattern(9))
    c.nothing_came()
    c.send('SEND_MIDDLE', after(c.ours), opcode=opcode, ack=True)
    c.refused(c.ours, SEQUENCE)
    c.is_in(RTS)
    psn = c.request('SEND_ONLY', payload=b'x')
    c.acknowledged(psn, c.told + 1)
    c.completes(1024, bytes=1)
    c.receive(0, 1000)
    psn = c.request('SEND_MIDDLE', opcode=opcode, payload=pattern(9))
    c.refused(psn, INVALID)
    c.event(QP_REQ_ERR)
    c.completes(0, FLUSHED)
    c.is_silent()


@of_each(*((first, then) for first in ('SEND_FIRST', 'WRITE_FIRST')
           for then in ('SEND_FIRST', 'SEND_ONLY', 'SEND_ONLY_IMM', 'SEND_ONLY_INVALIDATE', 'WRITE_FIRST',
                        'WRITE_ONLY', 'READ_REQUEST', 'COMPARE_SWAP', 'FLUSH', 'ATOMIC_WRITE',
                        'WRITE_MIDDLE' if first == 'SEND_FIRST' else 'SEND_MIDDLE',
                        'WRITE_LAST' if first == 'SEND_FIRST' else 'SEND_LAST')))
def message_without_end(c, first, then):
    """A message begins, and something else follows."""
    c.qp()
    c.receive(0, 1000)
    to = dict(va=c.va(0x1000), rkey=c.puppet.rkey, length=600)
    c.request(first, ack=False, payload=pattern(256), **to)
    psn = c.request(then, payload=b'' if then in packets.EMPTY else pattern(256), **to)
    c.refused(psn, INVALID)
    c.event(QP_REQ_ERR)
    c.completes(0, FLUSHED)
    c.is_silent()


@of_each(('SEND_FIRST', 255), ('SEND_FIRST', 257), ('SEND_FIRST', 0), ('SEND_ONLY', 257),
         ('WRITE_FIRST', 255), ('WRITE_FIRST', 260), ('WRITE_ONLY', 257), ('WRITE_ONLY', 6), ('WRITE_ONLY', 4),
         ('WRITE_ONLY_IMM', 4), ('READ_REQUEST', 1), ('READ_REQUEST', 4), ('READ_REQUEST', 256),
         ('COMPARE_SWAP', 8), ('FETCH_ADD', 1), ('FLUSH', 1), ('FLUSH', 8), ('ATOMIC_WRITE', 5),
         ('ATOMIC_WRITE', 8), ('ATOMIC_WRITE', 257))
def wrong_length(c, operation, size):
    """Of a packet: not the path MTU, not what the RETH says, or something where nothing may be."""
    c.qp()
    c.poke(0x1000, 64, 0)
    c.receive(0, 1000)
    length = 600 if operation == 'WRITE_FIRST' else 257 if size == 257 else 5
    psn = c.request(operation, payload=pattern(size), va=c.va(0x1000), rkey=c.puppet.rkey, length=length, swap=9)
    c.refused(psn, INVALID)
    c.event(QP_REQ_ERR)
    c.completes(0, FLUSHED)
    c.holds(0x1000, bytes(64))
    c.is_silent()


@of_each(('SEND', 'MIDDLE', 255), ('SEND', 'MIDDLE', 257), ('SEND', 'LAST', 0), ('SEND', 'LAST', 257),
         ('WRITE', 'MIDDLE', 255), ('WRITE', 'MIDDLE', 0), ('WRITE', 'LAST', 0), ('WRITE', 'LAST', 43),
         ('WRITE', 'LAST', 45), ('WRITE', 'LAST', 300))
def wrong_length_within(c, what, part, size):
    c.qp()
    c.receive(0, 1000)
    c.request(what + '_FIRST', ack=False, payload=pattern(256), va=c.va(0x1000), rkey=c.puppet.rkey, length=300)
    psn = c.request(f'{what}_{part}', payload=pattern(size))
    c.refused(psn, INVALID)
    c.event(QP_REQ_ERR)
    c.completes(0, FLUSHED)
    c.is_silent()


@case
def too_long_behind_reads(c):
    """It fails when these are answered, and is told so."""
    c.qp()
    c.receive(0xE000, 50)
    n = 220
    reads = [c.request('READ_REQUEST', n, va=c.va(0), rkey=c.puppet.rkey, length=n * 256) for _ in range(16)]
    psn = c.request('SEND_ONLY', payload=pattern(100))
    for read in reads:
        for i in range(n):
            c.hear('READ_FIRST' if not i else 'READ_LAST' if i + 1 == n else 'READ_MIDDLE', read + i)
    c.told = 16
    c.refused(psn, INVALID)
    c.completes(0xE000, LEN_ERR)
    c.is_silent()


@case
def too_long_for_receive(c):
    c.qp()
    c.receive(0, 300)
    c.request('SEND_FIRST', ack=False, payload=pattern(256))
    psn = c.request('SEND_LAST', payload=pattern(45))
    c.refused(psn, INVALID)
    c.completes(0, LEN_ERR)
    c.is_silent()


@case
def receive_reaches_beyond_its_region(c):
    """That ends at 0xF000. The receive is looked at as far as a message reaches."""
    c.qp()
    at = 0xF000 - 300
    c.receive(at, 400)
    c.request('SEND_FIRST', ack=False, payload=pattern(256))
    psn = c.request('SEND_LAST', payload=pattern(44))
    c.acknowledged(psn, 1)
    c.completes(at, bytes=300)
    c.holds(at + 256, pattern(44))
    c.receive(at, 400)
    c.request('SEND_FIRST', ack=False, payload=pattern(256))
    psn = c.request('SEND_LAST', payload=pattern(45))
    c.refused(psn, OPERATION)
    c.completes(at, PROT_ERR)
    c.is_silent()


@of_each(*((what, why) for what in ('WRITE_ONLY', 'WRITE_FIRST', 'READ_REQUEST', 'COMPARE_SWAP', 'FETCH_ADD',
                                    'FLUSH', 'ATOMIC_WRITE')
           for why in ('key', 'before', 'behind', 'around', 'right')
           if (what, why) != ('READ_REQUEST', 'right')))
def not_allowed(c, what, why):
    c.qp()
    c.poke(0xF000, 4096, 0x77)
    length = 300 if what == 'WRITE_FIRST' else 8
    va = dict(before=c.va(-8), behind=c.va(0xF000 - length + 8), around=(1 << 64) - 8).get(why, c.va(0xF000))
    rkey = dict(key=c.puppet.rkey ^ 1, right=c.puppet.readable).get(why, c.puppet.rkey)
    payload = b'' if what in packets.EMPTY else pattern(min(length, 256))
    psn = c.request(what, va=va, rkey=rkey, length=length, payload=payload, swap=1)
    c.refused(psn, ACCESS)
    c.event(QP_ACCESS_ERR)
    c.holds(0xF000, b'\x77' * 1000)
    c.is_silent()


@of_each('FETCH_ADD', 'ATOMIC_WRITE')
def not_aligned(c, what):
    c.qp()
    c.poke(0, 64, 0)
    payload = pattern(8) if what == 'ATOMIC_WRITE' else b''
    psn = c.request(what, va=c.va(4), rkey=c.puppet.rkey, swap=1, length=8, payload=payload)
    c.refused(psn, INVALID)
    c.holds(0, bytes(64))
    c.is_silent()


@of_each(('READ_REQUEST', READ), ('WRITE_ONLY', WRITE), ('FETCH_ADD', ATOMIC), ('ATOMIC_WRITE', WRITE),
         ('FLUSH', FLUSH))
def denied(c, what, right):
    """The key allows it, the queue pair does not."""
    c.qp(deny=right)
    c.poke(0, 64, 0)
    payload = b'' if what in packets.EMPTY else pattern(8)
    psn = c.request(what, va=c.va(0), rkey=c.puppet.rkey, swap=1, length=8, payload=payload)
    c.refused(psn, INVALID)
    c.holds(0, bytes(64))
    c.is_silent()


@case
def empty_messages(c):
    """They need no key."""
    c.qp()
    c.receive(0, 0)
    psn = c.request('SEND_ONLY')
    c.acknowledged(psn, 1)
    c.completes(0, bytes=0)
    psn = c.request('WRITE_ONLY', va=1, rkey=2, length=0)
    c.acknowledged(psn, 2)
    psn = c.request('READ_REQUEST', va=1, rkey=2, length=0)
    c.hear('READ_ONLY', psn, payload=b'', msn=3)
    c.told = 3
    c.nothing_came()


@case
def requests_of_strangers(c):
    """Of another partition, transport, queue pair, version or address, damaged, or of no known opcode."""
    c.qp()
    c.receive(0, 100)
    no_qp = c.counter('no_qp')
    psn = c.ours
    c.send('SEND_ONLY', psn, ack=True, pkey=0x7FFE)
    c.send('SEND_ONLY', psn, ack=True, transport=packets.UC)
    c.send('SEND_ONLY', psn, ack=True, qpn=c.qpn ^ 0x400000)
    c.send('SEND_ONLY', psn, ack=True, by=c.wire.to_other)
    c.counts('no_qp', no_qp, 4)
    c.send('SEND_ONLY', psn, ack=True, version=1)
    c.send('SEND_ONLY', psn, ack=True, damage=0x80)
    c.send('SEND_ONLY', psn, ack=True, transport=packets.XRC)
    c.send('SEND_ONLY', psn, ack=True, opcode=packets.UC | 0x1F)
    c.send('SEND_ONLY', psn, ack=True, payload=b'x', pad=0)
    c.counts('no_qp', no_qp, 4)
    c.receives = 0
    c.acknowledged(psn, 1)
    c.ours = after(psn)
    c.completes(0, bytes=4)
    c.nothing_came()
    c.request('SEND_ONLY', pkey=0x7FFF, ack=False)  # a limited member of it
    c.hear('ACKNOWLEDGE', after(psn, 2), syndrome=RNR | 1)


@case
def answers_in_order(c):
    """READs and atomic operations are answered before what was behind them."""
    c.qp()
    c.poke(0, 1024, 0)
    c.receive(0x800, 100)
    key = dict(va=c.va(0), rkey=c.puppet.rkey)
    read = c.request('READ_REQUEST', 3, length=700, **key)
    add = c.request('FETCH_ADD', swap=5, **key)
    again = c.request('READ_REQUEST', length=8, **key)
    send = c.request('SEND_ONLY', payload=b'behind')
    expect_read(c, read, bytes(700), 0, 1, packets.ACK | 1)
    c.hear('ATOMIC_ACKNOWLEDGE', add, original=0, msn=2)
    c.hear('READ_ONLY', again, payload=struct.pack('=Q', 5), msn=3)
    c.acknowledged(send, 4)
    c.completes(0x800, bytes=6)
    c.nothing_came()


# ---- UC: nobody answers

def uc(c, **keys):
    c.qp(uc=1, **keys)
    c.poke(0, 0x2000, 0)
    c.receive(0, 1000)
    c.receive(0x400, 1000)


@case
def uc_sends(c):
    """It completes at once, and is acknowledged by nobody."""
    uc(c)
    c.post('SEND_IMM', 300, imm=5, id=1)
    c.hear('SEND_FIRST', c.psn)
    c.hear('SEND_LAST_IMM', c.psn + 1, imm=5)
    c.completes(1)
    c.post('WRITE', 0, id=2)
    c.hear('WRITE_ONLY', c.psn + 2)
    c.completes(2)
    c.send('ACKNOWLEDGE', c.psn, syndrome=packets.NAK | ACCESS, transport=packets.RC)
    c.post('SEND', 3, id=3)
    c.hear('SEND_ONLY', c.psn + 3)
    c.completes(3)


@of_each('SEND', 'WRITE')
def uc_sends_long(c, what):
    """Of more packets than RC has under way at one time."""
    uc(c)
    n = 230
    c.post(what, 256 * n, id=1)
    for i in range(n):
        c.hear(what + ('_LAST' if i + 1 == n else '_MIDDLE' if i else '_FIRST'), c.psn + i)
    c.completes(1)
    c.post('SEND', 1, id=2)
    c.hear('SEND_ONLY', c.psn + n)
    c.completes(2)


@of_each('gap', 'middle', 'last', 'short', 'empty', 'mixed')
def uc_broken_message(c, what):
    """It is dropped as a whole, and its receive is used by the next one."""
    uc(c)
    if what not in ('middle', 'last'):
        c.request('SEND_FIRST', payload=pattern(256, 3))
    if what == 'gap':
        c.ours = after(c.ours)
        c.request('SEND_MIDDLE', payload=pattern(256, 3))
    if what == 'middle':
        c.request('SEND_MIDDLE', payload=pattern(256, 3))
    if what == 'short':
        c.request('SEND_MIDDLE', payload=pattern(200, 3))
    if what == 'mixed':
        c.request('WRITE_MIDDLE', payload=pattern(256, 3))
    c.request('SEND_LAST', payload=b'' if what == 'empty' else pattern(3, 3))
    c.request('SEND_ONLY', payload=b'whole')
    c.completes(0, bytes=5)
    c.holds(0, b'whole')
    # a gap between messages does no harm
    c.ours = after(c.ours, 100)
    c.request('SEND_FIRST', payload=pattern(256))
    c.request('SEND_LAST_IMM', payload=b'end', imm=9)
    c.completes(0x400, bytes=259, imm=9)
    c.holds(0x400, pattern(256) + b'end')
    c.completes_nothing()
    c.is_in(RTS)


@of_each(*((first, then) for first in ('SEND', 'WRITE') for then in ('ONLY', 'FIRST')))
def uc_begins_anew(c, first, then):
    """A message that is not whole ends where the next one begins, though no PSN is missing."""
    uc(c)
    c.request(first + '_FIRST', payload=pattern(256, 3), va=c.va(0x1000), rkey=c.puppet.rkey, length=600)
    if then == 'FIRST':
        c.request('SEND_FIRST', payload=pattern(256, 4))
    c.request('SEND_LAST' if then == 'FIRST' else 'SEND_ONLY', payload=b'whole')
    data = (pattern(256, 4) if then == 'FIRST' else b'') + b'whole'
    c.completes(0, bytes=len(data))
    c.holds(0, data)
    c.completes_nothing()
    c.is_in(RTS)


@of_each('key', 'length')
def uc_refused(c, why):
    """Nothing is written, and the queue pair goes on."""
    uc(c)
    before = c.counter('uc_refused')
    key = c.puppet.rkey ^ (why == 'key')
    c.request('WRITE_ONLY_IMM', va=c.va(0x1000), rkey=key, length=5 + (why == 'length'), payload=b'wrong')
    c.counts('uc_refused', before)
    c.request('WRITE_ONLY_IMM', va=c.va(0x1100), rkey=c.puppet.rkey, length=5, payload=b'right', imm=6)
    c.completes(0, bytes=5, imm=6)
    c.holds(0x1000, bytes(256) + b'right')
    c.is_in(RTS)
