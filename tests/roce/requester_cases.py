# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Cases of wire_cases.py: a requester, and a responder that does not get what it sends, answers wrongly or not
at all (volume 1, sections 9.7.5 to 9.7.7 and 9.9.2).
"""

import struct
import time

import packets
from packets import ACCESS, INVALID, INVALID_READ, OPERATION, SEQUENCE, after
from wire_peer import (ASKS, BAD_RESP, ERR, FLUSHED, INV_RD_REQ, INV_REQ, REM_ACCESS, REM_OP, RETRY_EXC, RNR_EXC,
                       RTS, SQ_DRAINED, SQD, SUCCESS, Wrong, case, of_each, pattern)


# ---- the requester: what it sends

@of_each('SEND', 'WRITE')
def sends_in_packets(c, what):
    """Of 3 packets, with immediate data; headers are in the first one or the last one."""
    c.qp()
    c.poke(0, 600, 0x5A)
    c.post(what + '_IMM', 600, imm=0x12345678, id=1)
    reth = dict(va=0x70000, rkey=0x77, length=600) if what == 'WRITE' else {}
    c.hear(what + '_FIRST', c.psn, payload=b'\x5a' * 256, ack=False, **reth)
    c.hear(what + '_MIDDLE', c.psn + 1, payload=b'\x5a' * 256, ack=False)
    c.hear(what + '_LAST_IMM', c.psn + 2, payload=b'\x5a' * 88, ack=True, imm=0x12345678)
    c.completes_nothing()
    c.ack(c.psn + 2)
    c.completes(1, SUCCESS)


@case
def drains(c):
    """In SQD what was sent is finished, and sent again if need be; what is posted then waits for RTS."""
    c.qp()
    c.poke(0, 2, 0)
    c.post('SEND', 1, id=1)
    c.hear('SEND_ONLY', c.psn)
    c.move(SQD)
    c.post('SEND', 2, id=2)
    c.nak(c.psn, SEQUENCE)
    c.hear('SEND_ONLY', c.psn, payload=bytes(1))
    c.ack(c.psn)
    c.completes(1)
    c.nothing_came()
    c.move(RTS, 1)
    c.hear('SEND_ONLY', after(c.psn), payload=bytes(2))
    c.ack(after(c.psn))
    c.completes(2)


@case
def tells_that_it_has_drained(c):
    """When what was begun is done, not before, though nobody polls; at once, if nothing is under way."""
    c.qp()
    c.post('SEND', 1, id=1)
    c.post('READ', 300, id=2)
    c.hear('SEND_ONLY', c.psn)
    c.hear('READ_REQUEST', c.psn + 1)
    c.move(SQD)
    c.post('SEND', 2, id=3)
    c.nothing_came()
    c.no_event()
    c.ack(c.psn)
    c.respond('READ_FIRST', c.psn + 1, pattern(256))
    c.nothing_came_but((1,))
    c.no_event()
    c.respond('READ_LAST', c.psn + 2, pattern(44))
    c.event(SQ_DRAINED)
    c.completes(2)
    c.move(RTS, 1)
    c.hear('SEND_ONLY', c.psn + 3)
    c.ack(c.psn + 3)
    c.completes(3)
    c.no_event()
    c.move(SQD)
    c.event(SQ_DRAINED)
    c.no_event()


@case
def drains_a_message(c):
    """One that was begun is sent to its end; going back does not count as done."""
    c.qp()
    n = 100
    c.post('WRITE', 256 * n, id=1)
    for i in range(64):
        c.hear('WRITE_FIRST' if not i else 'WRITE_MIDDLE', c.psn + i)
    c.move(SQD)
    c.ack(c.psn + 63, 0)
    for i in range(64, n):
        c.hear('WRITE_LAST' if i + 1 == n else 'WRITE_MIDDLE', c.psn + i)
    c.no_event()
    c.nak(c.psn + n - 1, SEQUENCE)
    c.hear('WRITE_LAST', c.psn + n - 1)
    c.no_event()
    c.ack(c.psn + n - 1)
    c.event(SQ_DRAINED)
    c.completes(1)


@case
def asks_once_in_half_a_window(c):
    """Of messages behind one another: the last one of a message asks only if nothing follows it at once."""
    c.qp()
    c.post('WRITE', 256 * 100, id=1)
    for i in range(64):
        c.hear('WRITE_FIRST' if not i else 'WRITE_MIDDLE', c.psn + i, ack=i % 32 == 31)
    c.post('WRITE', 256 * 2, id=2)
    c.post('SEND', 256 * 2, id=3)
    c.ack(c.psn + 63, 0)
    for i in range(64, 104):
        c.hear({99: 'WRITE_LAST', 100: 'WRITE_FIRST', 101: 'WRITE_LAST', 102: 'SEND_FIRST', 103: 'SEND_LAST'}
               .get(i, 'WRITE_MIDDLE'), c.psn + i, ack=i == 103)
    c.ack(c.psn + 103, 3)
    for id in 1, 2, 3:
        c.completes(id)


@case
def does_not_drain(c):
    """It has left SQD before: nobody is told."""
    c.qp()
    c.post('SEND', 1, id=1)
    c.hear('SEND_ONLY', c.psn)
    c.move(SQD)
    c.move(RTS, 1)
    c.ack(c.psn)
    c.completes(1)
    c.nothing_came()
    c.no_event()


@case
def sends_operations(c):
    """All requests of one packet, in sequence; the first acknowledgement is for all before."""
    c.qp()
    c.post('SEND', 0, id=1)
    c.hear('SEND_ONLY', c.psn, payload=b'', ack=True)
    c.post('SEND_INV', 3, id=2)
    c.hear('SEND_ONLY_INVALIDATE', c.psn + 1, imm=0x77, pad=1)
    c.post('SEND_INV', 257, id=3)
    c.hear('SEND_FIRST', c.psn + 2)
    c.hear('SEND_LAST_INVALIDATE', c.psn + 3, imm=0x77, pad=3)
    c.post('WRITE', 0, id=4)
    c.hear('WRITE_ONLY', c.psn + 4, length=0)
    c.post('WRITE_IMM', 1, imm=7, id=5)
    c.hear('WRITE_ONLY_IMM', c.psn + 5, length=1, imm=7)
    c.completes_nothing()
    c.ack(c.psn + 4)
    for id in range(1, 5):
        c.completes(id)
    c.completes_nothing()
    c.post('CAS', 8, at=0x100, compare=3, swap=4, id=6)
    c.hear('COMPARE_SWAP', c.psn + 6, va=0x70000, rkey=0x77, compare=3, swap=4)
    c.post('ADD', 8, at=0x108, compare=9, id=7)
    c.hear('FETCH_ADD', c.psn + 7, va=0x70000, rkey=0x77, swap=9)
    c.send('ATOMIC_ACKNOWLEDGE', c.psn + 6, original=0x1122334455667788)
    for id in (5, 6):
        c.completes(id)
    c.completes_nothing()
    c.send('ATOMIC_ACKNOWLEDGE', c.psn + 7, original=1)
    c.completes(7)
    c.holds(0x100, struct.pack('=QQ', 0x1122334455667788, 1))


@case
def fence(c):
    c.qp()
    c.post('READ', 1, id=1)
    c.hear('READ_REQUEST', c.psn)
    c.post('WRITE', 1, id=2, fence=1)
    c.nothing_came()
    c.respond('READ_ONLY', c.psn, b'x')
    c.hear('WRITE_ONLY', c.psn + 1)
    c.ack(c.psn + 1)
    c.completes(1)
    c.completes(2)


@case
def reads_under_way(c):
    """No more than max_rd_atomic."""
    c.qp(reads=2)
    for id in (1, 2, 3):
        c.post('READ', 1, id=id)
    c.hear('READ_REQUEST', c.psn)
    c.hear('READ_REQUEST', c.psn + 1)
    c.nothing_came()
    c.respond('READ_ONLY', c.psn, b'x')
    c.hear('READ_REQUEST', c.psn + 2)
    c.respond('READ_ONLY', c.psn + 1, b'x')
    c.respond('READ_ONLY', c.psn + 2, b'x')
    for id in (1, 2, 3):
        c.completes(id)


# ---- the requester: acknowledgements of what it has not sent

@of_each('WRITE', 'SEND', 'READ')
def ghost_acknowledgement(c, what):
    """Of PSNs that were never sent, or were acknowledged before: they mean nothing."""
    c.qp()
    c.post('SEND', 5, id=1)
    c.hear('SEND_ONLY', c.psn)
    c.ack(c.psn)
    c.completes(1)
    c.post(what, 5, id=2)
    psn = after(c.psn)
    c.hear('READ_REQUEST' if what == 'READ' else what + '_ONLY', psn)
    for n in (1, 2, 100, 1 << 22, (1 << 23) - 1, 1 << 23, -1, -2, -100, -(1 << 22)):
        c.ack(psn + n, 1)
        for code in (SEQUENCE, INVALID, ACCESS, OPERATION):
            c.nak(psn + n, code)
        c.rnr(psn + n, 1)
        c.respond('READ_ONLY', psn + n, pattern(5))
        c.send('ATOMIC_ACKNOWLEDGE', psn + n, original=1)
    c.nothing_came()
    if what == 'READ':
        c.respond('READ_ONLY', psn, pattern(5))
        c.completes(2)
        c.holds(0, pattern(5))
    else:
        c.ack(psn)
        c.completes(2)
    c.is_in(RTS)


@case
def ghost_acknowledgement_alone(c):
    """The answer to a READ has the next PSN: as if none had come."""
    c.qp(retry=0, timeout=14)
    c.post('READ', 1, id=1)
    c.hear('READ_REQUEST', c.psn)
    c.ack(c.psn + 1)
    c.respond('READ_ONLY', c.psn + 1, b'x')
    c.fails(1, RETRY_EXC)


@case
def answers_of_strangers(c):
    """Of another partition, transport, queue pair or address, or damaged."""
    c.qp()
    c.post('SEND', 5, id=1)
    c.hear('SEND_ONLY', c.psn)
    no_qp = c.counter('no_qp')
    c.send('ACKNOWLEDGE', c.psn, pkey=0x1234)
    c.send('ACKNOWLEDGE', c.psn, opcode=packets.UC | 0x1F)
    c.send('ACKNOWLEDGE', c.psn, transport=packets.XRC)
    c.send('ACKNOWLEDGE', c.psn, qpn=c.qpn ^ 0x400000)
    c.send('ACKNOWLEDGE', c.psn, by=c.wire.to_other)
    c.send('ACKNOWLEDGE', c.psn, version=1)
    c.send('ACKNOWLEDGE', c.psn, damage=1)
    c.counts('no_qp', no_qp, 3)
    c.nothing_came()
    c.ack(c.psn)
    c.completes(1)


@case
def acknowledged_twice(c):
    c.qp()
    for id in (1, 2):
        c.post('SEND', 5, id=id)
        c.hear('SEND_ONLY', c.psn + id - 1)
    for _ in range(3):
        c.ack(c.psn, 1)
    c.completes(1)
    c.nothing_came()
    c.ack(c.psn + 1, 2)
    c.completes(2)


@case
def notification(c):
    """A CNP is counted, and changes nothing."""
    c.qp()
    c.post('SEND', 5, id=1)
    c.hear('SEND_ONLY', c.psn)
    c.notify()
    c.nothing_came()
    c.ack(c.psn)
    c.completes(1)


# ---- the requester: something got lost

@of_each(*ASKS)
def implied_nak(c, what):
    """What comes behind a READ is acknowledged, but the response has not come: asked again, once."""
    c.qp()
    before = c.counter('implied_nak_seq_err')
    request = ASKS[what]
    c.post('SEND', 1, id=1)
    c.post(what, 8, id=2)
    c.post('WRITE', 5, id=3)
    for _ in range(2):
        c.hear('SEND_ONLY', c.psn) if not _ else None
        c.hear(request, c.psn + 1)
        c.hear('WRITE_ONLY', c.psn + 2)
        if not _:
            for _ in range(3):
                c.ack(c.psn + 2, 3)
    c.completes(1)
    c.nothing_came()
    c.counts('implied_nak_seq_err', before)
    c.answer(what, c.psn + 1, pattern(8))
    c.completes(2)
    c.ack(c.psn + 2, 3)
    c.completes(3)


@case
def implied_nak_without_retries(c):
    c.qp(retry=0)
    c.post('READ', 1, id=1)
    c.post('SEND', 1, id=2)
    c.hear('READ_REQUEST', c.psn)
    c.hear('SEND_ONLY', c.psn + 1)
    c.ack(c.psn + 1, 2)
    c.completes(1, RETRY_EXC)
    c.completes(2, FLUSHED)
    c.is_in(ERR)


@case
def acknowledged_instead_of_answered(c):
    """A plain acknowledgement of a READ, as that of a SEND before it which came again: the response
    got lost."""
    c.qp()
    c.post('READ', 1, id=1)
    c.hear('READ_REQUEST', c.psn)
    c.ack(c.psn)
    c.hear('READ_REQUEST', c.psn)
    c.respond('READ_ONLY', c.psn, b'y')
    c.completes(1)
    c.holds(0, b'y')


@of_each(1, 2, 3)
def gap_in_responses(c, lost):
    """Of a READ of 5: it asks for what is left, once."""
    c.qp()
    data = pattern(1100)
    parts = [data[i:i + 256] for i in range(0, 1100, 256)]
    c.post('READ', 1100, id=1)
    c.hear('READ_REQUEST', c.psn, va=0x70000, rkey=0x77, length=1100)
    for i in range(5):
        if i != lost:
            c.respond('READ_FIRST' if not i else 'READ_LAST' if i == 4 else 'READ_MIDDLE', c.psn + i, parts[i])
    c.hear('READ_REQUEST', c.psn + lost, va=0x70000 + 256 * lost, rkey=0x77, length=1100 - 256 * lost)
    c.nothing_came()
    for i in range(lost, 5):
        c.respond('READ_FIRST' if i == lost else 'READ_LAST' if i == 4 else 'READ_MIDDLE', c.psn + i, parts[i])
    c.completes(1)
    c.holds(0, data)


@case
def first_response_lost(c):
    c.qp()
    c.post('READ', 300, id=1)
    c.hear('READ_REQUEST', c.psn)
    c.respond('READ_LAST', c.psn + 1, pattern(44))
    c.hear('READ_REQUEST', c.psn, length=300)
    c.respond('READ_FIRST', c.psn, pattern(256))
    c.respond('READ_LAST', c.psn + 1, pattern(44, 9))
    c.completes(1)
    c.holds(0, pattern(256) + pattern(44, 9))


@of_each(0, 1, 2, 3, 4)
def sequence_nak(c, lost):
    """In a WRITE of 5 behind a SEND: all from there on is sent again, as it was, once."""
    c.qp()
    before = c.counter('packet_seq_err')
    c.poke(0, 1100, 0x42)
    c.post('SEND', 1, id=1)
    c.hear('SEND_ONLY', c.psn)
    c.post('WRITE', 1100, id=2)
    names = ['WRITE_FIRST', 'WRITE_MIDDLE', 'WRITE_MIDDLE', 'WRITE_MIDDLE', 'WRITE_LAST']
    for i, name in enumerate(names):
        c.hear(name, c.psn + 1 + i)
    c.nak(c.psn + 1 + lost, SEQUENCE)
    for i in range(lost, 5):
        reth = {} if i else dict(va=0x70000, rkey=0x77, length=1100)
        c.hear(names[i], c.psn + 1 + i, payload=b'\x42' * (256 if i < 4 else 76), **reth)
    c.completes(1)
    c.nak(c.psn + 1 + lost, SEQUENCE)
    c.nothing_came()
    c.ack(c.psn + 5)
    c.completes(2)
    c.counts('packet_seq_err', before, 2)


@case
def sequence_nak_without_retries(c):
    c.qp(retry=0)
    c.post('SEND', 1, id=1)
    c.hear('SEND_ONLY', c.psn)
    c.nak(c.psn, SEQUENCE)
    c.fails(1, RETRY_EXC)


@of_each(0, 1)
def sequence_nak_after_wait(c, retries):
    """What was sent again after an RNR NAK can get lost as well. Not each one is a retry: what was behind the
    one for which there was no receive is a gap to some responders, which say so, and late."""
    c.qp(retry=retries)
    c.post('SEND', 300, id=1)
    for i in range(9):
        c.hear('SEND_FIRST', c.psn)
        c.hear('SEND_LAST', c.psn + 1)
        if i % 2:
            c.nak(c.psn, SEQUENCE)
        elif i < 8:
            c.rnr(c.psn, 1)
    c.ack(c.psn + 1)
    c.completes(1)


@case
def response_lost_after_wait(c):
    """Likewise, of a READ: here, too, one is enough."""
    c.qp()
    c.post('READ', 1, id=1)
    c.post('SEND', 1, id=2)
    for i in range(3):
        c.hear('READ_REQUEST', c.psn)
        c.hear('SEND_ONLY', c.psn + 1)
        if i == 0:
            c.rnr(c.psn, 1)
        elif i == 1:
            for _ in range(3):
                c.ack(c.psn + 1, 2)
    c.nothing_came()
    c.respond('READ_ONLY', c.psn, b'x')
    c.ack(c.psn + 1, 2)
    c.completes(1)
    c.completes(2)


@case
def no_answer(c):
    """As often as retry_cnt says, and not too soon."""
    c.qp(timeout=18, retry=2)
    before = c.counter('local_ack_timeout_err')
    c.post('SEND', 300, id=1)
    last = None
    for _ in range(3):
        c.hear('SEND_FIRST', c.psn)
        if last is not None and c.came - last < 0.6:  # 1.07 s, less what the first one was late
            raise Wrong(f'it sends again after {c.came - last} seconds')
        last = c.came
        c.hear('SEND_LAST', c.psn + 1)
    c.fails(1, RETRY_EXC)
    c.counts('local_ack_timeout_err', before, 3)
    c.is_silent()


@case
def late_answer(c):
    """What was acknowledged is not sent again, after the timeout; and the count of retries begins anew."""
    c.qp(timeout=19, retry=1)
    c.post('WRITE', 1024, id=1)
    names = ['WRITE_FIRST', 'WRITE_MIDDLE', 'WRITE_MIDDLE', 'WRITE_LAST']
    for i, name in enumerate(names):
        c.hear(name, c.psn + i)
    for begin in (1, 2, 3):
        c.ack(c.psn + begin - 1, 0)
        for i in range(begin, 4):
            c.hear(names[i], c.psn + i)
    c.ack(c.psn + 3, 1)
    c.completes(1)


@case
def late_response(c):
    """As before, of a READ."""
    c.qp(timeout=19, retry=1)
    c.post('READ', 700, id=1)
    for i in range(3):
        c.hear('READ_REQUEST', c.psn + i, va=0x70000 + 256 * i, length=700 - 256 * i)
        if i < 2:
            c.respond('READ_FIRST', c.psn + i, pattern(256, i))
    c.respond('READ_ONLY', c.psn + 2, pattern(188, 2))
    c.completes(1)
    c.holds(0, pattern(256, 0) + pattern(256, 1) + pattern(188, 2))


@of_each('SEND', 'WRITE_IMM', 'READ', 'CAS', 'FLUSH', 'ATOMIC_WRITE')
def receiver_not_ready(c, what):
    """It waits as long as it is told, however often."""
    c.qp()
    name = dict(ASKS, SEND='SEND_ONLY', WRITE_IMM='WRITE_ONLY_IMM')[what]
    c.post(what, 8, id=1)
    c.hear(name, c.psn)
    began = time.time()
    for _ in range(3):
        c.rnr(c.psn, 0)
    c.hear(name, c.psn)
    if c.came - began < 0.65536:
        raise Wrong(f'it waits {c.came - began} seconds only')
    for _ in range(11):
        c.rnr(c.psn, 1)
        c.hear(name, c.psn)
    c.nothing_came()
    if what in ASKS:
        c.answer(what, c.psn, pattern(8))
    else:
        c.ack(c.psn)
    c.completes(1)


@of_each(0, 1, 3)
def receiver_never_ready(c, retries):
    c.qp(rnr=retries)
    before = c.counter('rnr_nak_retry_err')
    c.post('SEND', 1, id=1)
    c.post('SEND', 1, id=2)
    for i in range(retries + 1):
        c.hear('SEND_ONLY', c.psn)
        c.hear('SEND_ONLY', c.psn + 1)
        c.rnr(c.psn, 1)
    c.completes(1, RNR_EXC)
    c.completes(2, FLUSHED)
    c.is_in(ERR)
    c.counts('rnr_nak_retry_err', before, retries + 1)


@case
def receiver_not_ready_behind_lost_response(c):
    """The READ is not what there is no receive for."""
    c.qp(rnr=0)
    c.post('READ', 8, id=1)
    c.post('SEND', 8, id=2)
    for _ in range(3):
        c.hear('READ_REQUEST', c.psn)
        c.hear('SEND_ONLY', c.psn + 1)
        if _ < 2:
            c.rnr(c.psn + 1, 1)
    c.respond('READ_ONLY', c.psn, pattern(8))
    c.completes(1)
    c.rnr(c.psn + 1, 1)
    c.fails(2, RNR_EXC)


# ---- the requester: it is refused, or answered wrongly

@of_each(('SEND', INVALID, INV_REQ), ('WRITE', ACCESS, REM_ACCESS), ('READ', ACCESS, REM_ACCESS),
         ('CAS', ACCESS, REM_ACCESS), ('SEND', OPERATION, REM_OP), ('READ', OPERATION, REM_OP),
         ('READ', INVALID, INV_REQ), ('SEND', INVALID_READ, INV_RD_REQ), ('FLUSH', ACCESS, REM_ACCESS),
         ('FLUSH', INVALID, INV_REQ), ('ATOMIC_WRITE', ACCESS, REM_ACCESS), ('ATOMIC_WRITE', INVALID, INV_REQ))
def refused(c, what, code, status):
    """The second of three: the first one is done by that, the third is flushed."""
    c.qp()
    c.post('SEND', 8, id=1)
    c.post(what, 8, id=2)
    c.post('SEND', 8, id=3)
    c.hear('SEND_ONLY', c.psn)
    c.hear(ASKS.get(what, what + '_ONLY'), c.psn + 1)
    c.hear('SEND_ONLY', c.psn + 2)
    c.nak(c.psn + 1, code)
    c.completes(1)
    c.completes(2, status)
    c.completes(3, FLUSHED)
    c.is_in(ERR)
    c.is_silent()


@of_each(1, 2)
def refused_behind_lost_response(c, times):
    """The READ before it comes first, and is not what was refused, also if the network repeats the NAK."""
    c.qp()
    c.post('READ', 8, id=1)
    c.post('WRITE', 8, id=2)
    for tries in range(2):
        c.hear('READ_REQUEST', c.psn)
        c.hear('WRITE_ONLY', c.psn + 1)
        for _ in range(0 if tries else times):
            c.nak(c.psn + 1, ACCESS)
    c.nothing_came()
    c.respond('READ_ONLY', c.psn, pattern(8))
    c.completes(1)
    c.nak(c.psn + 1, ACCESS)
    c.fails(2, REM_ACCESS)


@of_each('READ', 'CAS')
def answered_twice_before_longest(c, what):
    """The longest message has half of all PSNs: what is before its first one is not behind its last one."""
    c.qp()
    c.post(what, 8, id=1)
    c.hear(ASKS[what], c.psn)
    c.answer(what, c.psn, pattern(8))
    c.completes(1)
    c.post('WRITE', 1 << 31, id=2)
    for i in range(64):
        c.hear('WRITE_FIRST' if not i else 'WRITE_MIDDLE', c.psn + 1 + i)
    c.answer(what, c.psn, pattern(8))
    c.nothing_came()


@case
def reserved_syndromes(c):
    """Nobody knows what they mean: as if they had not come, or as if the packet's PSN was expected."""
    c.qp()
    c.post('SEND', 8, id=1)
    c.hear('SEND_ONLY', c.psn)
    for syndrome in [*range(0x40, 0x60), *range(0x65, 0x80)]:
        c.send('ACKNOWLEDGE', c.psn, syndrome=syndrome)
    c.nothing_came()
    c.ack(c.psn)
    c.completes(1)


@of_each(('READ', 300, 0, 'READ_MIDDLE', 256), ('READ', 300, 0, 'READ_LAST', 256),
         ('READ', 300, 0, 'READ_ONLY', 256), ('READ', 300, 0, 'READ_FIRST', 255),
         ('READ', 300, 0, 'READ_FIRST', 252), ('READ', 300, 0, 'READ_FIRST', 260),
         ('READ', 300, 0, 'READ_FIRST', 0), ('READ', 300, 1, 'READ_MIDDLE', 44),
         ('READ', 300, 1, 'READ_LAST', 43), ('READ', 300, 1, 'READ_LAST', 45), ('READ', 300, 1, 'READ_LAST', 0),
         ('READ', 600, 1, 'READ_LAST', 256), ('READ', 600, 1, 'READ_MIDDLE', 200),
         ('READ', 8, 0, 'READ_LAST', 8), ('READ', 8, 0, 'READ_ONLY', 7), ('READ', 8, 0, 'READ_ONLY', 9),
         ('READ', 8, 0, 'READ_MIDDLE', 8), ('READ', 8, 0, 'READ_FIRST', 256), ('READ', 0, 0, 'READ_ONLY', 1),
         ('READ', 8, 0, 'ATOMIC_ACKNOWLEDGE', 0), ('CAS', 8, 0, 'READ_ONLY', 8), ('ADD', 8, 0, 'READ_ONLY', 8),
         ('WRITE', 8, 0, 'READ_ONLY', 8), ('WRITE', 8, 0, 'READ_ONLY', 0), ('SEND', 8, 0, 'READ_FIRST', 256),
         ('SEND', 300, 1, 'READ_LAST', 44), ('SEND', 8, 0, 'ATOMIC_ACKNOWLEDGE', 0),
         ('WRITE', 8, 0, 'ATOMIC_ACKNOWLEDGE', 0), ('CAS', 8, 0, 'READ_ONLY', 0), ('READ', 8, 0, 'READ_ONLY', 0),
         *((what, 8, 0, *wrong) for what in ('FLUSH', 'ATOMIC_WRITE')
           for wrong in (('READ_ONLY', 1), ('READ_ONLY', 8), ('READ_FIRST', 0), ('READ_FIRST', 256), ('READ_MIDDLE', 0),
                         ('READ_LAST', 0), ('ATOMIC_ACKNOWLEDGE', 0))))
def bad_response(c, what, length, at, response, payload):
    """It has the PSN that is expected, and is not what was asked for."""
    c.qp()
    c.poke(0, 1024, 0xEE)
    c.post(what, length, id=1)
    if what in ASKS:
        c.hear(ASKS[what], c.psn)
        if at:
            c.respond('READ_FIRST', c.psn, pattern(256))
    else:
        c.hear(what + ('_ONLY' if length <= 256 else '_FIRST'), c.psn)
        if at:
            c.hear(what + '_LAST', c.psn + at)
    c.respond(response, c.psn + at, pattern(payload))
    c.fails(1, BAD_RESP)
    c.holds(256 * at, b'\xee' * 600)
    c.is_silent()


@of_each(*((what, syndrome) for what in ('READ', 'FLUSH', 'ATOMIC_WRITE')
           for syndrome in (packets.RNR, packets.NAK | ACCESS, packets.NAK | SEQUENCE)))
def read_response_with_syndrome(c, what, syndrome):
    """A response that has data says that all is well, or is none."""
    c.qp()
    c.post(what, 8, id=1)
    c.hear(ASKS[what], c.psn)
    c.respond('READ_ONLY', c.psn, pattern(8) if what == 'READ' else b'', syndrome=syndrome)
    c.fails(1, BAD_RESP)
