# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Cases of wire_cases.py: FLUSH and atomic WRITE (volume 1, annex A19). Either is answered by a READ response
without data, and carried out once.
"""

import struct

import packets
from packets import ACCESS, GLOBAL, INVALID, PERSISTENT, RANGE, REGION, SEQUENCE, after
from wire_peer import ASKS, QP_ACCESS_ERR, QP_REQ_ERR, RETRY_EXC, RTS, SUCCESS, case, of_each, pattern

FLUSH, ATOMIC_WRITE = 8, 9  # enum ibv_wc_opcode


# ---- the requester

@case
def asks_to_place(c):
    """An atomic WRITE has its word from memory, or in the request; a FLUSH says what of which bytes."""
    c.qp()
    c.poke(0x100, 8, 0xA5)
    c.post('ATOMIC_WRITE', 8, at=0x100, id=1)
    c.hear('ATOMIC_WRITE', c.psn, va=0x70000, rkey=0x77, length=8, payload=b'\xa5' * 8, ack=True)
    word = 0x1122334455667788
    c.post('ATOMIC_WRITE', remote=0x70008, swap=word, id=2)
    c.hear('ATOMIC_WRITE', c.psn + 1, va=0x70008, rkey=0x77, length=8, payload=struct.pack('=Q', word))
    c.post('FLUSH', 1 << 31, id=3)
    c.hear('FLUSH', c.psn + 2, va=0x70000, rkey=0x77, length=1 << 31, placement=GLOBAL, selectivity=RANGE, ack=True)
    c.post('FLUSH', 0, swap=PERSISTENT, id=4)
    c.hear('FLUSH', c.psn + 3, length=0, placement=PERSISTENT, selectivity=RANGE)
    c.post('FLUSH', 1 << 40, swap=REGION << 8 | GLOBAL | PERSISTENT, id=5)
    c.hear('FLUSH', c.psn + 4, rkey=0x77, length=0, placement=GLOBAL | PERSISTENT, selectivity=REGION)
    c.completes_nothing()
    for id in range(1, 6):
        c.answer('FLUSH', c.psn + id - 1)
        c.completes(id, SUCCESS, opcode=ATOMIC_WRITE if id < 3 else FLUSH)
    c.holds(0x100, b'\xa5' * 8)
    c.nothing_came()


@of_each('FLUSH', 'ATOMIC_WRITE')
def asked_in_order(c, what):
    """It counts to max_rd_atomic, and a fence waits for its answer."""
    c.qp(reads=2)
    c.post(what, 8, id=1)
    c.post('READ', 8, id=2)
    c.post(what, 8, id=3)
    c.post('WRITE', 1, id=4, fence=1)
    c.hear(what, c.psn)
    c.hear('READ_REQUEST', c.psn + 1)
    c.nothing_came()
    c.answer(what, c.psn)
    c.hear(what, c.psn + 2)
    c.answer('READ', c.psn + 1, pattern(8))
    c.nothing_came_but((1, 2))
    c.answer(what, c.psn + 2)
    c.hear('WRITE_ONLY', c.psn + 3)
    c.ack(c.psn + 3)
    c.completes(3)
    c.completes(4)


@of_each('FLUSH', 'ATOMIC_WRITE')
def asks_again(c, what):
    """As it was: after a gap, and when nothing comes; answers that come again mean nothing."""
    c.qp(timeout=17, retry=2)
    c.poke(0, 8, 0x42)
    fields = dict(va=0x70000, rkey=0x77, length=8, payload=b'' if what == 'FLUSH' else b'\x42' * 8)
    c.post(what, 8, id=1)
    c.hear(what, c.psn, **fields)
    c.nak(c.psn, SEQUENCE)
    c.hear(what, c.psn, **fields)
    c.hear(what, c.psn, **fields)  # after the timeout
    for _ in range(3):
        c.answer(what, c.psn)
    c.completes(1)
    c.post(what, 8, id=2)
    c.hear(what, after(c.psn), **fields)
    c.answer(what, c.psn)
    c.answer(what, after(c.psn))
    c.completes(2)
    c.nothing_came()
    c.is_in(RTS)


@of_each('FLUSH', 'ATOMIC_WRITE')
def never_answered(c, what):
    c.qp(timeout=14, retry=1)
    c.post(what, 8, id=1)
    c.hear(what, c.psn)
    c.hear(what, c.psn)
    c.fails(1, RETRY_EXC)


# ---- the responder

def flush(c, **fields):
    """It is answered so."""
    fields = dict(dict(va=c.va(0), rkey=c.puppet.rkey, length=8), **fields)
    psn = c.request('FLUSH', **fields)
    c.told += 1
    c.hear('READ_ONLY', psn, payload=b'', msn=c.told, syndrome=packets.ACK)
    return psn


@case
def flushes(c):
    """Bytes, none at all, and the region as a whole, of which address and length mean nothing."""
    c.qp()
    flush(c)
    flush(c, va=c.va(0xEFFF), length=1)
    flush(c, length=0xF000)
    flush(c, length=0)
    flush(c, va=12345, length=1 << 31, selectivity=REGION)
    c.nothing_came()


@case
def flush_behind(c):
    """What was written before is there when it is answered, and is acknowledged by that."""
    c.qp()
    c.poke(0, 64, 0)
    to = dict(va=c.va(0), rkey=c.puppet.rkey, length=5)
    c.request('WRITE_ONLY', ack=False, payload=b'first', **to)
    c.told = 1
    flush(c)
    c.holds(0, b'first')
    c.nothing_came()


@of_each((0, RANGE), (4, RANGE), (8 | GLOBAL, RANGE), (GLOBAL, 2), (GLOBAL, 3))
def flush_of_no_kind(c, placement, selectivity):
    c.qp()
    psn = c.request('FLUSH', va=c.va(0), rkey=c.puppet.rkey, length=8, placement=placement, selectivity=selectivity)
    c.refused(psn, INVALID)
    c.event(QP_REQ_ERR)
    c.is_silent()


@of_each(PERSISTENT, GLOBAL | PERSISTENT)
def flush_to_persistence(c, placement):
    """No queue pair allows it, as no memory is persistent."""
    c.qp()
    psn = c.request('FLUSH', va=c.va(0), rkey=c.puppet.rkey, length=8, placement=placement)
    c.refused(psn, INVALID)
    c.is_silent()


@of_each(('length', INVALID), ('end', ACCESS), ('empty', ACCESS), ('region', ACCESS))
def flush_not_allowed(c, why, code):
    """Longer than messages are; beyond the region; the key counts for no bytes and for the region, too."""
    c.qp()
    fields = dict(length=dict(length=(1 << 31) + 1), end=dict(va=c.va(0xEFFF), length=2),
                  empty=dict(length=0, rkey=c.puppet.readable),
                  region=dict(rkey=c.puppet.rkey ^ 1, selectivity=REGION))[why]
    fields = dict(dict(va=c.va(0), rkey=c.puppet.rkey), **fields)
    psn = c.request('FLUSH', **fields)
    c.refused(psn, code)
    c.event(QP_REQ_ERR if code == INVALID else QP_ACCESS_ERR)
    c.is_silent()


def write_word(c, word, at=8):
    psn = c.request('ATOMIC_WRITE', va=c.va(at), rkey=c.puppet.rkey, length=8, payload=struct.pack('=Q', word))
    c.told += 1
    c.hear('READ_ONLY', psn, payload=b'', msn=c.told, syndrome=packets.ACK)
    return psn


@of_each('ATOMIC_WRITE', 'FLUSH')
def placed_again(c, what):
    """Not again: it is answered only. Of the last 16 that is known."""
    c.qp()
    c.poke(0, 64, 0)
    psns = []
    for i in range(17):
        psns.append(write_word(c, i + 1) if what == 'ATOMIC_WRITE' else flush(c))
    if what == 'ATOMIC_WRITE':
        c.holds(0, bytes(8) + struct.pack('=Q', 17) + bytes(8))
    c.poke(0, 64, 0xFF)
    for i, psn in enumerate(psns):
        c.send(what, psn, ack=True, va=c.va(8), rkey=c.puppet.rkey, length=8,
               payload=b'' if what == 'FLUSH' else struct.pack('=Q', i + 1))
        if i:
            c.hear('READ_ONLY', psn, payload=b'', syndrome=packets.ACK)
    c.nothing_came()
    c.holds(0, b'\xff' * 64)


@case
def again_of_another_kind(c):
    """What comes again is what it was, or is dropped: nobody is told an answer to something else."""
    c.qp()
    c.poke(0, 64, 0)
    fields = dict(va=c.va(0), rkey=c.puppet.rkey, length=8, swap=1)
    add = c.request('FETCH_ADD', **fields)
    c.told += 1
    c.hear('ATOMIC_ACKNOWLEDGE', add, original=0)
    word = write_word(c, 5)
    for what in ('FLUSH', 'ATOMIC_WRITE'):
        c.send(what, add, ack=True, payload=b'' if what == 'FLUSH' else bytes(8), **fields)
    c.send('FETCH_ADD', word, ack=True, **fields)
    c.send('FLUSH', add, ack=True, payload=b'data', **fields)
    c.nothing_came()
    c.holds(0, struct.pack('=QQ', 1, 5))
    c.is_in(RTS)


@of_each((8, 7), (8, 9), (8, 0), (8, 16), (0, 0), (4, 4), (16, 16), (256, 256))
def word_of_another_length(c, length, size):
    """In the RETH, in the packet, or in both."""
    c.qp()
    c.poke(0, 512, 0)
    psn = c.request('ATOMIC_WRITE', va=c.va(0), rkey=c.puppet.rkey, length=length, payload=pattern(size))
    c.refused(psn, INVALID)
    c.event(QP_REQ_ERR)
    c.holds(0, bytes(512))
    c.is_silent()


@case
def placed_in_order(c):
    """Answered in their order, before what was behind them; a gap stops them."""
    c.qp()
    c.poke(0, 64, 0)
    c.receive(0x800, 100)
    fields = dict(va=c.va(8), rkey=c.puppet.rkey, length=8)
    word = c.request('ATOMIC_WRITE', payload=struct.pack('=Q', 40), **fields)
    add = c.request('FETCH_ADD', swap=2, **fields)
    flushed = c.request('FLUSH', **fields)
    send = c.request('SEND_ONLY', payload=b'behind')
    c.hear('READ_ONLY', word, payload=b'', msn=1)
    c.hear('ATOMIC_ACKNOWLEDGE', add, original=40, msn=2)
    c.hear('READ_ONLY', flushed, payload=b'', msn=3)
    c.acknowledged(send, 4)
    c.completes(0x800, bytes=6)
    c.send('ATOMIC_WRITE', c.ours + 1, ack=True, payload=bytes(8), **fields)
    c.refused(c.ours, SEQUENCE)
    c.holds(8, struct.pack('=Q', 42))
    c.nothing_came()


@of_each(*ASKS.values())
def answers_without_rights_of_others(c, what):
    """A READ response without data needs no right to read, nor does anything but its own."""
    rights = dict(READ_REQUEST=4, COMPARE_SWAP=8, FETCH_ADD=8, FLUSH=256, ATOMIC_WRITE=2)
    c.qp(deny=(2 | 4 | 8 | 256) & ~rights[what])
    c.poke(0, 8, 0)
    psn = c.request(what, va=c.va(0), rkey=c.puppet.rkey, length=8, payload=b'' if what in packets.EMPTY else bytes(8))
    c.hear('ATOMIC_ACKNOWLEDGE' if what in packets.ATOMIC else 'READ_ONLY', psn, msn=1,
           payload=bytes(8) if what == 'READ_REQUEST' else b'')
