# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Cases of wire_cases.py: another worker of the queue pair has packets on their way out, and what is to be sent
meanwhile follows them (src/hca/transport/wire_egress.c).
"""

from packets import ACCESS, RNR, SEQUENCE
from wire_peer import QP_ACCESS_ERR, case, pattern


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


@case
def behind_others_access_is_denied(c):
    """The peer is told to ask again, and hears then why it is refused."""
    c.qp()
    fields = dict(va=c.va(0), rkey=1, length=9, payload=pattern(9))
    with c.others_send():
        psn = c.request('WRITE_ONLY', **fields)
    c.refused(psn, SEQUENCE)
    c.send('WRITE_ONLY', psn, ack=True, **fields)
    c.refused(psn, ACCESS)
    c.event(QP_ACCESS_ERR)


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
