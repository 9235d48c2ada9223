# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Cases of wire_cases.py: what a program does with memory that it has registered. An HCA has pinned the pages: it
reaches what the program has protected. What is gone is an error, to whoever asks for it, and no signal, whichever
process receives: here it is the program, which polls.
"""

import contextlib
import struct

import packets
from packets import ACCESS, OPERATION, after
from responder_cases import expect_read
from wire_peer import PROT_ERR, Wrong, case, of_each, pattern

LAST = 0xC000  # where the pages begin of which that is said
BYTES = 3 * 256 - 100


@contextlib.contextmanager
def memory(c, kind):
    """Of the kind plain or file; afterwards all is as before."""
    c.qp()
    c.puppet.tell('reset')
    c.puppet.stand(kind)
    c.connect()
    yield
    c.puppet.tell('reset')
    c.puppet.stand('plain')
    c.qp()
    c.is_awake()


@contextlib.contextmanager
def polling(c):
    """The program polls for a message meanwhile, or until its queue pair fails."""
    c.receive(0, 8)
    c.puppet.say('wait')
    yield
    c.send('SEND_ONLY', c.ours, payload=b'the end!')
    line = c.puppet.line()
    if line[0] != 'wc' or line[1] != '0':
        raise Wrong(f'it polls, and hears {line}')


def write(c, at, data):
    """In three packets, which come as fast as they can. The PSN of the last one."""
    to = dict(va=c.va(at), rkey=c.puppet.rkey, length=len(data))
    c.request('WRITE_FIRST', ack=False, payload=data[:256], **to)
    c.request('WRITE_MIDDLE', ack=False, payload=data[256:512])
    return c.request('WRITE_LAST', payload=data[512:])


@of_each('read', 'none')
def protected(c, how):
    """It is written and read, changed and received into."""
    with memory(c, 'plain'):
        data = pattern(BYTES)
        c.poke(LAST, BYTES, 0)
        c.puppet.tell('protect', how)
        with polling(c):
            c.acknowledged(write(c, LAST + 3, data), 1)
            psn = c.request('READ_REQUEST', n=3, va=c.va(LAST + 3), rkey=c.puppet.rkey, length=BYTES)
            expect_read(c, psn, data, 0, 2, None)
            psn = c.request('FETCH_ADD', va=c.va(LAST + 0x800), rkey=c.puppet.rkey, swap=7)
            c.hear('ATOMIC_ACKNOWLEDGE', psn, original=0)
            psn = c.request('ATOMIC_WRITE', va=c.va(LAST + 0x808), rkey=c.puppet.rkey, length=8, payload=bytes(8 * [9]))
            c.hear('READ_ONLY', psn)
        c.puppet.tell('protect', 'all')
        c.holds(LAST + 3, data)
        c.holds(LAST + 0x800, struct.pack('=Q', 7) + bytes(8 * [9]))


@of_each(('file', 'cut'), ('file', 'unmapped'), ('plain', 'unmapped'))
def written_when_gone(c, kind, how):
    """It is refused; plain memory may be where the program does not see it, but its HCA does."""
    with memory(c, kind):
        c.puppet.tell('drop', how)
        with polling(c):
            write(c, LAST, pattern(BYTES))
            p = c.hear_any()
            allowed = (packets.NAK | OPERATION,) if kind == 'file' else (packets.NAK | OPERATION, c.all_is_well())
            if p.operation != 'ACKNOWLEDGE' or p.syndrome not in allowed:
                raise Wrong(f'{p}')


@of_each('cut', 'unmapped')
def read_when_gone(c, how):
    with memory(c, 'file'):
        c.puppet.tell('drop', how)
        with polling(c):
            psn = c.request('READ_REQUEST', n=3, va=c.va(LAST), rkey=c.puppet.rkey, length=BYTES)
            c.hear('ACKNOWLEDGE', psn, syndrome=packets.NAK | ACCESS)


@of_each('cut', 'unmapped')
def received_when_gone(c, how):
    """The receive fails, and so does its message."""
    with memory(c, 'file'):
        c.puppet.tell('drop', how)
        c.receive(LAST, 1000)
        c.puppet.say('wait')
        psn = c.request('SEND_ONLY', payload=pattern(100))
        c.hear('ACKNOWLEDGE', psn, syndrome=packets.NAK | OPERATION)
        line = c.puppet.line()
        if line[:3] != ['wc', str(LAST), str(PROT_ERR)]:
            raise Wrong(f'it hears {line}')


@of_each('cut', 'unmapped')
def answered_when_gone(c, how):
    """What a READ brings has no place."""
    with memory(c, 'file'):
        c.post('READ', BYTES, at=LAST, id=1)
        c.hear('READ_REQUEST', c.psn, length=BYTES)
        c.puppet.tell('drop', how)
        c.puppet.say('wait')
        c.respond('READ_FIRST', c.psn, pattern(256))
        c.respond('READ_MIDDLE', after(c.psn), pattern(256))
        c.respond('READ_LAST', after(c.psn, 2), pattern(BYTES - 512))
        line = c.puppet.line()
        if line[:3] != ['wc', '1', str(PROT_ERR)]:
            raise Wrong(f'it hears {line}')


@case
def sent_when_gone(c):
    with memory(c, 'file'):
        c.puppet.tell('drop', 'cut')
        c.post('SEND', BYTES, at=LAST, id=1)
        c.completes(1, PROT_ERR)


@case
def sent_behind_when_gone(c):
    """The message before it asks for no acknowledgement, as another one follows: its packet goes again, and asks."""
    with memory(c, 'file'):
        c.post('WRITE', 256 * 66, id=1)
        for i in range(64):
            c.hear('WRITE_FIRST' if not i else 'WRITE_MIDDLE', c.psn + i)
        c.puppet.tell('drop', 'cut')
        c.post('WRITE', BYTES, at=LAST, id=2)
        c.puppet.say('wait')
        c.ack(c.psn + 63, 0)
        c.hear('WRITE_MIDDLE', c.psn + 64, ack=False)
        c.hear('WRITE_LAST', c.psn + 65, ack=False)
        c.hear('WRITE_MIDDLE', c.psn + 64, ack=True)
        c.ack(c.psn + 65, 1)
        line = c.puppet.line()
        if line[:3] != ['wc', '1', '0']:
            raise Wrong(f'it hears {line}')
