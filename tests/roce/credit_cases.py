# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Cases of wire_cases.py: end-to-end flow control (volume 1, section 9.7.7.2). An ACK tells how many receives are
posted, as a number of messages behind its MSN.
"""

import packets
from packets import RNR
from wire_peer import case, of_each, pattern


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
