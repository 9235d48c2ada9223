# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# lumina_check.py CONFIG CLIENT PACKETS: whether the events of a configuration of Lumina have happened at the
# packets that they name, and at no others, and whether what was lost came again as the InfiniBand
# specification says (volume 1, section 9.7.5). CLIENT is what perftest's clients print; PACKETS are the fields
# of a capture, by tshark: number, opcode, destination, PSN, syndrome, comment. It shares nothing with lumina.py.

import re
import sys

import yaml

ACKNOWLEDGE, READ_REQUEST, CNP = 17, 12, 0x81
BEGINS_READ = (13, 16)
SEQUENCE = 0x60
NOTES = {'drop': 'fault: dropped', 'bit-error': 'fault: damaged', 'ecn': 'fault: marked'}


class Packet:
    def __init__(self, line):
        number, opcode, qpn, psn, syndrome, note = (line.rstrip('\n') + '\t' * 5).split('\t')[:6]
        self.number, self.note = int(number), note
        self.opcode, self.qpn, self.psn = int(opcode or '-1'), int(qpn or '0', 0), int(psn or '0')
        self.syndrome = int(syndrome, 0) if syndrome else None


class Connection:
    """Of one pair of queue pairs; PSNs are counted from its first one on."""

    def __init__(self, packets, requester, responder, first_psn, reads):
        self.reads = reads
        source, sink = (responder, requester) if reads else (requester, responder)
        there = [self.relative(p, first_psn) for p in packets if p.qpn == sink]
        back = [self.relative(p, first_psn) for p in packets if p.qpn == source]
        self.data = [p for p in there if p.opcode not in (ACKNOWLEDGE, CNP)]
        self.asked = [p for p in back if p.opcode == READ_REQUEST]
        self.naks = [p for p in back if p.opcode == ACKNOWLEDGE and p.syndrome == SEQUENCE]
        self.cnps = [p for p in back if p.opcode == CNP]

    @staticmethod
    def relative(packet, first_psn):
        packet.psn = (packet.psn - first_psn) & 0xFFFFFF
        return packet

    def number_rounds(self, per_message):
        """As Lumina's switch does: what does not follow begins a round, the first packet of a message resets it."""
        following, round_ = 0, 1
        for p in self.data:
            if p.psn != following:
                round_ += 1
            elif p.psn % per_message == 0:
                round_ = 1
            p.round, following = round_, p.psn + 1


def fail(*words):
    sys.exit('FAIL: ' + ' '.join(str(w) for w in words))


def check_events(c, number, expected):
    met = {}
    for p in c.data:
        if p.note:
            if (p.psn, p.round) in met:
                fail('connection', number, 'PSN', p.psn, 'meets an event twice in round', p.round)
            met[p.psn, p.round] = p.note
    if met != expected:
        fail('connection', number, 'meets', met, 'and not', expected)


def check_loss(c, lost, per_message):
    """What follows a packet that was lost."""
    end = (lost.psn // per_message + 1) * per_message
    behind = [p for p in c.data if p.number > lost.number and p.round == lost.round and p.psn < end]
    again = [p for p in c.data if p.number > lost.number and p.psn // per_message == lost.psn // per_message
             and p.round == lost.round + 1]
    if not again:
        fail('PSN', lost.psn, 'is lost in round', lost.round, 'and not sent again')
    first = again[0]
    told_before = any(p.note in (NOTES['drop'], NOTES['bit-error']) and p.psn == lost.psn and p.round < lost.round
                      for p in c.data)
    came = [p for p in behind if p.number < first.number and p.note not in (NOTES['drop'], NOTES['bit-error'])]
    naks = [p for p in c.naks if p.psn == lost.psn and lost.number < p.number < first.number]
    if c.reads:
        if not any(p.psn == lost.psn and lost.number < p.number < first.number for p in c.asked):
            fail('PSN', lost.psn, 'is lost and not read again from there')
        if first.psn != lost.psn or first.opcode not in BEGINS_READ:
            fail('what is read again begins with', first.psn, 'and not', lost.psn)
    elif came and not told_before:
        if len(naks) != 1:
            fail(len(naks), 'NAKs tell that PSN', lost.psn, 'is missing')
        if first.psn != lost.psn:
            fail('the NAK of', lost.psn, 'is followed by', first.psn)
    else:  # nobody tells: the sender's time has passed, and it begins with what is not acknowledged
        if naks:
            fail('a NAK of PSN', lost.psn, 'that nobody can miss, or a second one')
        if first.psn > lost.psn:
            fail('PSN', lost.psn, 'is lost, and', first.psn, 'sent first')
    for before, after in zip(again, again[1:]):
        if after.psn != before.psn + 1:
            fail('round', before.round, 'goes from', before.psn, 'to', after.psn)
    if again[-1].psn < lost.psn:
        fail('PSN', lost.psn, 'is not sent again')


def check(c, number, events, traffic):
    per_message = -(-traffic['message-size'] // traffic['mtu'])
    n = traffic['num-msgs-per-qp']
    expected, losses = {}, []
    c.number_rounds(per_message)
    for event in events:
        for message in range(n):
            psns = range(per_message) if event['psn'] == 'all' else [event['psn']]
            for psn in psns:
                expected[message * per_message + psn, event['iter']] = NOTES[event['type']]
    check_events(c, number, expected)
    for p in c.data:
        if p.note in (NOTES['drop'], NOTES['bit-error']):
            losses.append(p)
            check_loss(c, p, per_message)
    # a READ is acknowledged by what it brings
    if not c.reads and len(c.naks) > len({p.psn for p in losses}):
        fail('connection', number, 'has', len(c.naks), 'NAKs of', len(losses), 'losses')
    if {p.psn for p in c.data} != set(range(per_message * max(n, 5))):
        fail('connection', number, 'has not sent all')
    if bool(c.cnps) != (NOTES['ecn'] in expected.values()):
        fail('connection', number, 'has', len(c.cnps), 'CNPs')
    if c.cnps and c.cnps[0].number < min(p.number for p in c.data if p.note == NOTES['ecn']):
        fail('connection', number, 'has a CNP before a mark')
    return len(losses), len(c.naks), len(c.cnps)


def main(config, client, captured):
    with open(config, encoding='utf-8') as file:
        traffic = yaml.safe_load(file)['traffic']
    with open(client, encoding='utf-8') as file:
        ends = re.findall(r'(local|remote) address: .*QPN (0x\w+) PSN (0x\w+)', file.read())
    with open(captured, encoding='utf-8') as file:
        packets = [Packet(line) for line in file]
    requesters = [(int(qpn, 0), int(psn, 0)) for side, qpn, psn in ends if side == 'local']
    responders = [int(qpn, 0) for side, qpn, _ in ends if side == 'remote']
    counts = [int(n) for n in str(traffic['num-qps']).split(',')]
    if len(requesters) != sum(counts) or len(responders) != sum(counts):
        fail('perftest tells of', len(requesters), 'queue pairs and', len(responders))
    for i, ((qpn, psn), peer) in enumerate(zip(requesters, responders)):
        reads = traffic['rdma-verb'] == 'read' or traffic['rdma-verb'] == 'send_read' and i >= counts[0]
        events = [e for e in traffic['data-pkt-events'] if e['qpn'] == i]
        found = check(Connection(packets, qpn, peer, psn, reads), i, events, traffic)
        print('connection %d: %d losses, %d NAKs, %d CNPs' % (i, *found))


main(*sys.argv[1:])
