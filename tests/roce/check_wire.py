# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
check_wire.py PAIRS ADDRESS PCAP [ADDRESS PCAP]...: whether captures show what must hold for connected queue
pairs (volume 1, sections 9.7 and 9.8), whatever gets lost between them. Each capture is of the cable's end
at the host of that address: it has what the host has sent, and what has reached it, in order. The host sees
to the latter a bit later. PAIRS is of wire_all.py.

A requester: no PSN is left out; what is sent again is what was sent before, and begins at the oldest that is
not acknowledged, which is a NAK's PSN if one has come; there is a reason for it, each time.
A responder: acknowledges what has come, and no more; READ responses are those to a request that came, in
order; of a gap it tells once; MSNs count up; an atomic operation is answered as it was before.
Of all: each operation is seen.
"""

import collections
import struct
import sys

import packets
from packets import NAK, SEQUENCE, after, distance

WINDOW = 256  # packets that may be under way
STRAYS = 1  # of a requester: see there
Seen = collections.namedtuple('Seen', 'number time port qpn out packet')


class Wrong(Exception):
    pass


def ip(text):
    return bytes(map(int, text.split('.')))


def read_pcap(path, address):
    """The RoCEv2 packets over IPv4; a CNP, too."""
    with open(path, 'rb') as file:
        data = file.read()
    magic, link = struct.unpack('=I', data[:4])[0], struct.unpack('=I', data[20:24])[0]
    if magic not in (0xA1B2C3D4, 0xA1B23C4D) or link != 1:
        raise Wrong(f'{path} is no pcap file of Ethernet frames')
    at, number, unit = 24, 0, 1e-6 if magic == 0xA1B2C3D4 else 1e-9
    while at + 16 <= len(data):
        seconds, part, captured, length = struct.unpack('=IIII', data[at:at + 16])
        frame, at, number = data[at + 16:at + 16 + captured], at + 16 + captured, number + 1
        if frame[12:14] != b'\x08\x00' or frame[23] != 17:
            continue
        header = (frame[14] & 15) * 4
        udp = frame[14 + header:]
        if captured < length or struct.unpack('>H', udp[2:4])[0] != packets.PORT:
            continue
        body = udp[8:struct.unpack('>H', udp[4:6])[0] - 4]
        p = packets.unpack(body)
        yield Seen(number, seconds + part * unit, udp[:2], p.qpn, frame[26:30] == address, p)


class Requester:
    """One end of a pair, as it asks. Its packets are held against each other and against what has come."""

    def __init__(self, psn, mtu, timeout):
        self.mtu, self.timeout = mtu, timeout
        self.first = psn
        self.newest = psn  # behind what was sent last
        self.beyond = psn  # PSNs from here on were never sent
        self.acked = psn  # before this all is, by what has come
        self.history = {psn}  # where that was, since it went back
        self.sent = {}  # by PSN; a READ has all its PSNs
        self.reasons = set()  # PSNs to go back to
        self.since = None  # when it has begun to wait
        self.counts = collections.Counter()

    def identity(self, p, i):
        """Of its PSN @i: what must be the same again."""
        if p.operation == 'READ_REQUEST':  # for the rest of what it was
            return p.operation, p.va + i * self.mtu, p.rkey, p.va + p.length
        return (p.operation, p.payload, p.va, p.rkey, p.length, p.imm, p.swap, p.compare, p.solicited, p.placement,
                p.selectivity)

    def size(self, p):
        return max(1, -(-p.length // self.mtu)) if p.operation == 'READ_REQUEST' else 1

    def check_messages(self):
        """Messages are sent as a whole, one after the other."""
        within, psn = None, self.first
        while psn != self.beyond:
            kind, part = f'{self.sent[psn][0]}_'.split('_')[:2]
            if (kind if part in ('MIDDLE', 'LAST') else None) != within:
                raise Wrong(f'PSN {psn} is {self.sent[psn][0]}, behind a part of {within}')
            within = kind if part in ('FIRST', 'MIDDLE') else None
            psn = after(psn)
        if within:
            raise Wrong('the last message is not whole')

    def ask(self, seen):
        p = seen.packet
        n = self.size(p)
        for i in range(n):
            psn, identity = after(p.psn, i), self.identity(p, i)
            if self.sent.get(psn, identity) != identity:
                raise Wrong(f'PSN {psn} was {self.sent[psn][0]}, or had something else')
        if p.psn != self.newest:
            self.jump(p, seen.time)
        self.newest = after(p.psn, n)
        for i in range(n):
            self.sent[after(p.psn, i)] = self.identity(p, i)
        if distance(self.newest, self.beyond) > 0:
            self.beyond = self.newest
        if distance(self.newest, self.acked) > WINDOW:
            raise Wrong(f'{distance(self.newest, self.acked)} packets are under way')
        if self.since is None:
            self.since = seen.time

    def jump(self, p, time):
        if p.psn in self.sent and distance(p.psn, self.newest) < 0:
            self.go_back(p, time)
        elif p.psn != self.acked and (p.psn not in self.sent or distance(p.psn, self.acked) > 0):
            self.stray()  # else it had gone back, and then that was acknowledged

    def stray(self):
        """The program and the daemon send; one that is kept from a processor for long is overtaken. That is rare."""
        self.counts['strays'] += 1
        if self.counts['strays'] > STRAYS:
            raise Wrong(f'{self.newest} was to be sent next; {self.acked} is acknowledged')

    def go_back(self, p, time):
        """To what was not acknowledged, as far as it could know."""
        if p.psn not in self.history:
            self.stray()
            return
        if p.psn in self.reasons:
            self.counts['naks obeyed'] += 1
        elif self.since is not None and time - self.since > self.timeout / 2:
            self.counts['timeouts'] += 1
        else:
            self.stray()
            return
        self.reasons.discard(p.psn)
        self.history = {psn for psn in self.history if distance(psn, p.psn) >= 0}
        self.since = time

    def is_answered(self, psn):
        return self.sent[psn][0] in packets.ANSWERED

    def move(self, psn, time):
        self.acked = psn
        self.history.add(psn)
        self.since = time

    def hear(self, p, time):
        """A response has come."""
        if distance(p.psn, self.beyond) >= 0:
            raise Wrong('of what was never sent')
        kind = p.syndrome & 0x60 if p.operation == 'ACKNOWLEDGE' else None
        to = after(p.psn) if kind == packets.ACK else p.psn
        while distance(to, self.acked) > 0:
            if self.acked not in self.sent:
                raise Wrong(f'PSN {self.acked} was never sent')
            if self.is_answered(self.acked):
                self.counts['implied naks'] += 1
                self.reasons.add(self.acked)
                return
            self.move(after(self.acked), time)
        if kind is None and p.psn == self.acked:
            self.move(after(self.acked), time)
        if kind == NAK:
            if p.syndrome != NAK | SEQUENCE:
                raise Wrong('it is refused')
            self.counts['sequence naks'] += 1
            self.reasons.add(p.psn)
        elif kind == packets.RNR:
            raise Wrong('a receive is missing')

    def end(self):
        if self.acked != self.beyond:
            raise Wrong(f'all before {self.acked} was acknowledged, and {self.beyond} was to be sent next')
        self.check_messages()


class Responder:
    """One end of a pair, as it answers."""

    def __init__(self, psn, mtu):
        self.mtu = mtu
        self.first = self.expected = psn
        self.asked = {}  # by first PSN: what is answered by READ responses, the longest of each: packets, bytes
        self.ends = {}  # by PSN that ends a message: how many messages have come then
        self.messages = 0
        self.gaps = set()  # that have not been told of
        self.answers = {}  # of atomic operations, by PSN; None: not yet
        self.unanswered = []  # PSNs of READ responses that are due
        self.run = None  # PSN that follows in the responses, end, bytes of the last one
        self.msn = 0
        self.counts = collections.Counter()

    def hear(self, p):
        """A request has come."""
        behind = distance(p.psn, self.expected)
        n = max(1, -(-p.length // self.mtu)) if p.operation == 'READ_REQUEST' else 1
        if behind > 0:
            self.gaps.add(self.expected)
            return
        if p.operation == 'READ_REQUEST':
            self.asked.setdefault(p.psn, set()).add((n, p.length))
        if p.operation in packets.PLACED:
            self.asked.setdefault(p.psn, set()).add((1, 0))
        if p.operation in packets.ATOMIC:
            self.answers.setdefault(p.psn, None)
        if behind < 0:
            self.counts['requests again'] += 1
            return
        if p.operation in packets.ANSWERED:
            self.unanswered.extend(after(p.psn, i) for i in range(n))
        self.expected = after(p.psn, n)
        if not p.operation.endswith(('_FIRST', '_MIDDLE')):
            self.messages += 1
            self.ends[after(p.psn, n - 1)] = self.messages

    def answer(self, p):
        if p.operation == 'ATOMIC_ACKNOWLEDGE':
            self.answer_atomic(p)
        elif p.operation.startswith('READ'):
            self.answer_read(p)
        elif p.syndrome == NAK | SEQUENCE:
            if p.psn not in self.gaps:
                raise Wrong('there is no gap, or it was told')
            self.gaps.remove(p.psn)
            self.counts['gaps told'] += 1
        elif p.syndrome & 0x60:
            raise Wrong('it refuses')
        else:
            self.acknowledge(p)
        if p.operation in packets.AETH:
            self.look_at_msn(p)

    def acknowledge(self, p):
        if distance(p.psn, self.expected) >= 0:
            raise Wrong(f'{self.expected} has not come')
        if self.unanswered and distance(p.psn, self.unanswered[0]) >= 0:
            raise Wrong(f'the response {self.unanswered[0]} was to come first')

    def look_at_msn(self, p):
        if p.msn < self.msn or p.msn > self.messages:
            raise Wrong(f'the last MSN was {self.msn}, and {self.messages} messages have come')
        if p.psn in self.ends and p.syndrome & 0x60 == packets.ACK and p.msn < self.ends[p.psn]:
            raise Wrong(f'it ends message {self.ends[p.psn]}')
        self.msn = p.msn

    def was_due(self, psn):
        if psn in self.unanswered:
            if psn != self.unanswered[0]:
                raise Wrong(f'the response {self.unanswered[0]} was to come first')
            del self.unanswered[0]
        else:
            self.counts['responses again'] += 1

    def answer_atomic(self, p):
        if p.psn not in self.answers:
            raise Wrong('nobody has asked for it')
        if self.answers[p.psn] not in (None, p.original):
            raise Wrong(f'it was {self.answers[p.psn]} before')
        self.answers[p.psn] = p.original
        self.was_due(p.psn)
        self.run = None

    def answer_read(self, p):
        part = p.operation.split('_')[1]
        if part in ('FIRST', 'ONLY'):
            self.run = [(after(p.psn, n - 1), length - (n - 1) * self.mtu)
                        for n, length in self.asked.get(p.psn, ()) if (n == 1) == (part == 'ONLY')]
        elif not self.run or p.psn != self.at:
            raise Wrong('it does not follow')
        if part in ('LAST', 'ONLY'):
            self.run = [end for end in self.run if end == (p.psn, len(p.payload))]
        else:
            self.run = [end for end in self.run if distance(end[0], p.psn) > 0]
        if not self.run:
            raise Wrong('nobody has asked for it')
        self.at = after(p.psn)
        self.was_due(p.psn)
        if part in ('LAST', 'ONLY'):
            self.run = None

    def end(self):
        if self.unanswered or self.run:
            raise Wrong(f'READ responses were never sent: {self.unanswered}')


class Uc(Requester):
    """UC: packets one after the other, and nobody answers."""

    def ask(self, seen):
        if seen.packet.psn in self.sent:
            raise Wrong('it sends again')
        self.acked = seen.packet.psn
        super().ask(seen)

    def end(self):
        self.check_messages()


class End:
    """One end of a pair: @line is of PAIRS."""

    def __init__(self, words, here):
        transport, *words, mtu, timeout = words
        mine, theirs = words[:3], words[3:]
        if ip(mine[0]) != here:
            mine, theirs = theirs, mine
        self.name = f'{transport}, queue pair {mine[1]} of {mine[0]}'
        self.transport = packets.RC if transport == 'RC' else packets.UC
        self.qpn, self.peer, self.mtu = int(mine[1]), int(theirs[1]), int(mtu)
        if transport == 'UC':
            self.halves = [Uc(int(mine[2]), self.mtu, 0)]
        else:
            self.halves = [Requester(int(mine[2]), self.mtu, 4.096e-6 * 2 ** int(timeout)),
                           Responder(int(theirs[2]), self.mtu)]

    def take(self, seen):
        p = seen.packet
        packets.check(p, self.mtu)
        if p.transport != self.transport:
            raise Wrong('of another transport')
        is_request = p.operation in packets.REQUESTS
        if self.transport == packets.UC:
            if seen.out:
                self.halves[0].ask(seen)
        elif is_request and seen.out:
            self.halves[0].ask(seen)
        elif is_request:
            self.halves[1].hear(p)
        elif seen.out:
            self.halves[1].answer(p)
        else:
            self.halves[0].hear(p, seen.time)


def check_capture(pairs, address, path, operations, counts):
    ends = {}
    for line in pairs:
        end = End(line.split(), ip(address))
        ends[True, end.peer], ends[False, end.qpn] = end, end
    for seen in read_pcap(path, ip(address)):
        if seen.packet.opcode == packets.CNP:
            counts['notifications sent' if seen.out else 'notifications'] += 1
            continue
        end = ends.get((seen.out, seen.qpn))
        if end is None:
            raise Wrong(f'{path}, packet {seen.number}, to queue pair {seen.qpn}: {seen.packet}')
        try:
            end.take(seen)
        except (Wrong, packets.Malformed) as why:
            raise Wrong(f'{path}, packet {seen.number}, {end.name}, {"sends" if seen.out else "gets"} '
                        f'{seen.packet}: {why}') from why
        counts['packets'] += 1
        if seen.out:
            operations.add((end.transport, seen.packet.operation))
    for end in set(ends.values()):
        for half in end.halves:
            try:
                half.end()
            except Wrong as why:
                raise Wrong(f'{path}, {end.name}: {why}') from why
            counts.update(getattr(half, 'counts', {}))


def main(pairs, *captures):
    with open(pairs, encoding='ascii') as file:
        pairs = file.read().splitlines()
    operations, counts = set(), collections.Counter()
    for address, path in zip(captures[::2], captures[1::2]):
        check_capture(pairs, address, path, operations, counts)
    missing = {(packets.RC, name) for name in packets.NUMBER} | {(packets.UC, name) for name in packets.OF_UC}
    missing -= operations
    if missing:
        raise Wrong(f'never seen: {missing}')
    for name, count in sorted(counts.items()):
        print(f'{name}: {count}')


try:
    main(*sys.argv[1:])
except Wrong as why:
    sys.exit(str(why))
