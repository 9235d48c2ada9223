# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A peer by script, of a real queue pair (puppet.c): it says what the program there posts, sends packets,
and holds what comes back against what must come. It waits long for what must come, and for nothing
that must not: it asks for something else, and sees that the answer to that is the next packet.
"""

import contextlib
import json
import os
import re
import select
import socket
import struct
import subprocess
import time

import packets
from packets import Packet, after

WAIT = float(os.environ.get('WIRE_WAIT', 40))  # seconds, for what must come
QPN = 0x123400  # the first number of ours
TIMESTAMPS = 35  # SO_TIMESTAMPNS
MTUS = {1: 256, 2: 512, 3: 1024}

SUCCESS, LEN_ERR, PROT_ERR, FLUSHED, BAD_RESP, INV_REQ = 0, 1, 4, 5, 7, 9
REM_ACCESS, REM_OP, RETRY_EXC, RNR_EXC = 10, 11, 12, 13
INV_RD_REQ = 15
RTS, SQD, ERR = 3, 4, 6
QP_REQ_ERR, QP_ACCESS_ERR, SQ_DRAINED = 2, 3, 5
OPCODE = {'WRITE': 0, 'WRITE_IMM': 1, 'SEND': 2, 'SEND_IMM': 3, 'READ': 4, 'CAS': 5, 'ADD': 6, 'SEND_INV': 9,
          'FLUSH': 14, 'ATOMIC_WRITE': 15}
# The packets of those that have a response of their own.
ASKS = dict(READ='READ_REQUEST', CAS='COMPARE_SWAP', ADD='FETCH_ADD', FLUSH='FLUSH', ATOMIC_WRITE='ATOMIC_WRITE')
TAKES_RECEIVE = ('SEND_FIRST', 'SEND_ONLY', 'SEND_ONLY_IMM', 'SEND_ONLY_INVALIDATE', 'WRITE_LAST_IMM',
                 'WRITE_ONLY_IMM')


class Wrong(Exception):
    pass


class Sender:
    """Sends from @here to @there, from that UDP port or any."""

    def __init__(self, here, there, port=0):
        self.there = there
        self.addresses = socket.inet_aton(here) + socket.inet_aton(there)
        self.out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.out.setsockopt(socket.IPPROTO_IP, 10, 3)  # IP_MTU_DISCOVER, IP_PMTUDISC_PROBE
        self.out.bind((here, port))
        self.port = self.out.getsockname()[1]

    def send(self, p, damage=0):
        body = p.pack()
        length = len(body) + 12
        ip = struct.pack('>BBHHHBBH', 0x45, 0, 20 + length, 0, 0x4000, 0, 17, 0) + self.addresses
        udp = struct.pack('>HHHH', self.port, packets.PORT, length, 0)
        crc = packets.icrc(ip, udp, body)
        self.out.sendto(body + bytes([crc[0] ^ damage]) + crc[1:], (self.there, packets.PORT))


class Wire(Sender):
    """UDP port 4791 at @here, and what comes there from @there, whose host has the address @other, too."""

    def __init__(self, here, there, other):
        super().__init__(here, there, packets.PORT)  # its own: nothing is sent back by ICMP
        self.to_other = Sender(here, other)
        self.frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self.frames.bind(('eth0', 0x0800))
        self.frames.setsockopt(socket.SOL_SOCKET, 33, 4 << 20)  # SO_RCVBUFFORCE
        self.frames.setsockopt(socket.SOL_SOCKET, TIMESTAMPS, 1)
        self.frames.settimeout(WAIT)

    def receive(self):
        """The next packet, and when it came, by the kernel's clock."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            try:
                frame, control, _, origin = self.frames.recvmsg(9000, 64)
            except TimeoutError:
                break
            if not self.is_ours(frame, origin):
                continue
            ip = frame[14:]
            udp = ip[(ip[0] & 15) * 4:]
            seconds, ns = struct.unpack('qq', control[0][2])
            return self.take_apart(ip[:(ip[0] & 15) * 4], udp), seconds + ns / 1e9
        raise Wrong('nothing comes')

    def is_ours(self, frame, origin):
        ip = frame[14:]
        return (origin[2] != socket.PACKET_OUTGOING and ip[9] == 17 and ip[12:16] == self.addresses[4:] and
                struct.unpack('>H', ip[(ip[0] & 15) * 4 + 2:][:2])[0] == packets.PORT)

    def has_come(self):
        """Whether a packet has."""
        while select.select([self.frames], [], [], 0)[0]:
            frame, origin = self.frames.recvfrom(9000, socket.MSG_PEEK)
            if self.is_ours(frame, origin):
                return True
            self.frames.recv(1)
        return False

    def take_apart(self, ip, udp):
        body = udp[8:struct.unpack('>H', udp[4:6])[0]]
        if packets.icrc(ip, udp[:8], body[:-4]) != body[-4:]:
            raise Wrong(f'a wrong ICRC: {body.hex()}')
        return packets.unpack(body[:-4])


class Puppet:
    def __init__(self, command):
        self.command = command
        self.process = subprocess.Popen([*command, str(int(WAIT))], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.hear_of_memory()

    def hear_of_memory(self):
        self.address, self.rkey, self.readable = map(int, self.line()[1:])

    def stand(self, kind):
        """With memory of that kind; it has no queue pair."""
        self.say('stand', kind)
        self.hear_of_memory()

    def line(self):
        line = self.process.stdout.readline().split()
        if not line:
            raise Wrong(f'the program has ended: {self.process.wait()}')
        return line

    def say(self, *words):
        try:
            self.process.stdin.write(' '.join(str(word) for word in words) + '\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Wrong(f'the program has ended: {self.process.wait()}') from None

    def tell(self, *words):
        self.say(*words)
        return self.line()

    def has_answered(self):
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def status(self):
        """Its state, a letter (proc_pid_stat(5)), and the name of its program."""
        with open(f'/proc/{self.process.pid}/stat', encoding='ascii') as file:
            _, name, rest = re.split(r'[()]', file.read())
        return rest.split()[0], name

    def end(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise Wrong(f'the program ends with {self.process.returncode}')


def wait_until(what, is_so):
    end = time.monotonic() + WAIT
    while not is_so():
        if time.monotonic() > end:
            raise Wrong(what)
        time.sleep(0.001)


class Case:
    """One queue pair, connected to us."""
    made = 0

    def __init__(self, wire, puppet, counters):
        self.wire, self.puppet, self.show_counters = wire, puppet, counters
        self.came = None  # when the last packet did
        self.before = QPN + Case.made  # numbers up to this are of former cases

    def qp(self, **keys):
        Case.made += 1
        # both directions come around soon
        self.keys = dict(uc=0, peer=QPN + Case.made, mtu=1, sq_psn=0xFFFFFE, rq_psn=0xFFFFFD, timeout=0,
                         retry=7, rnr=7, timer=1, reads=16, srq=0, deny=0, apart=0)
        self.keys.update(keys)
        self.transport = packets.UC if self.keys['uc'] else packets.RC
        self.mtu = MTUS[self.keys['mtu']]
        self.qpn = int(self.puppet.tell('create', *self.words())[1])
        self.connect()

    def words(self):
        return [f'{k}={v}' for k, v in self.keys.items()]

    def connect_again(self):
        self.puppet.tell('reset')
        self.connect()

    def connect(self):
        self.puppet.tell('connect', *self.words())
        self.psn = self.keys['sq_psn']  # of its next request, the first of those that are not answered
        self.ours = self.keys['rq_psn']  # of our next one
        self.msn = 0  # of its, that it has carried out
        self.told = 0  # MSN of ours
        self.receives = 0  # that its program has posted, and no message of ours has taken
        self.starves = False  # it has told that there are none

    # ---- the program

    def post(self, opcode, bytes=0, **keys):
        keys = dict(dict(opcode=OPCODE[opcode], bytes=bytes, remote=0x70000, rkey=0x77), **keys)
        if opcode == 'FLUSH':
            keys.setdefault('swap', packets.GLOBAL)
        self.puppet.tell('post', *(f'{k}={v}' for k, v in keys.items()))

    def receive(self, at, bytes):
        """If we were told that there was none, we are told of it."""
        self.puppet.tell('recv', at, bytes)
        self.receives += 1
        if self.starves:
            self.hear('ACKNOWLEDGE', self.ours - 1, syndrome=self.all_is_well())
            self.starves = False

    def all_is_well(self):
        """The syndrome that says so."""
        return packets.ACK | (packets.NO_CREDITS if self.keys['srq'] else packets.credits(self.receives))

    def completes(self, id, status=SUCCESS, **expected):
        """The next completion is that."""
        line = self.puppet.tell('wait')
        if line == ['none']:
            raise Wrong(f'request {id} never completes')
        got, got_status, opcode, length, imm = map(int, line[1:])
        found = dict(opcode=opcode, bytes=length, imm=imm)
        if got != id or got_status != status:
            raise Wrong(f'request {got} completes with status {got_status}, not {id} with {status}')
        for key, value in expected.items():
            if found[key] != value:
                raise Wrong(f'the completion of {id} has {key} {found[key]}, not {value}')

    def move(self, state, *timer):
        """Of min_rnr_timer to RTS; without to SQD."""
        self.puppet.tell('move', state, *timer)

    def completes_nothing(self):
        line = self.puppet.tell('look')
        if line != ['none']:
            raise Wrong(f'a completion too many: {line}')

    def is_in(self, state):
        got = int(self.puppet.tell('state')[1])
        if got != state:
            raise Wrong(f'the queue pair is in state {got}, not {state}')

    def fails(self, id, status):
        """The first request does; what is posted behind it is flushed."""
        self.completes(id, status)
        self.is_in(ERR)
        self.post('SEND', 1, id=999)
        self.completes(999, FLUSHED)

    def event(self, number):
        line = self.puppet.tell('event')
        if line != ['event', str(number)]:
            raise Wrong(f'{line}, not event {number}')

    def no_event(self):
        line = self.puppet.tell('look_event')
        if line != ['none']:
            raise Wrong(f'an event too early: {line}')

    def poke(self, at, bytes, value):
        self.puppet.tell('poke', at, bytes, value)

    def holds(self, at, content):
        got = self.puppet.tell('peek', at, len(content))[0]
        if got != content.hex():
            raise Wrong(f'at {at} there is {got}, not {content.hex()}')

    def va(self, at):
        return self.puppet.address + at

    def counter(self, name):
        out = subprocess.run(self.show_counters, check=True, capture_output=True).stdout
        return find(json.loads(out), name)

    def set(self, name, value):
        """A setting of its fabric."""
        umbel = self.show_counters[:self.show_counters.index('show')]
        subprocess.run([*umbel, 'set', f'{name}={value}'], check=True, capture_output=True)

    def counts(self, name, before, n=1):
        """The counter grows by that; not at once, perhaps."""
        end = time.monotonic() + WAIT
        while self.counter(name) < before + n and time.monotonic() < end:
            time.sleep(0.02)
        if self.counter(name) != before + n:
            raise Wrong(f'{name} is {self.counter(name)}, was {before}')

    @contextlib.contextmanager
    def other_program(self, command=None):
        """Another one on its host, with a queue pair of its own, which goes in the end."""
        other = Case(self.wire, Puppet(command or self.puppet.command), self.show_counters)
        try:
            other.qp()
            yield other
        finally:
            other.puppet.process.kill()
            other.puppet.process.wait()

    @contextlib.contextmanager
    def others_send(self):
        """Meanwhile another worker has packets of it on their way out. It wants to send some, too."""
        self.puppet.tell('hold', 1)
        yield
        self.wants_to_send()
        self.puppet.tell('let_go')

    def will_refuse(self, code):
        """While others send: all that came has been looked at."""
        end = time.monotonic() + WAIT
        turn = 1
        while self.puppet.tell('refusal') != ['refusal', str(packets.NAK | code)]:
            turn = turn % 100 + 1
            self.puppet.tell('hold', turn)
            if time.monotonic() > end:
                raise Wrong('it does not refuse that')

    def wants_to_send(self):
        end = time.monotonic() + WAIT
        turn = 1
        while self.puppet.tell('hold', turn) != ['wanted']:
            turn = turn % 100 + 1  # who is at one turn for long was stopped
            if time.monotonic() > end:
                raise Wrong('it does not want to send')

    # ---- packets

    def is_late(self, p):
        """A program that a former case has killed may have been about to acknowledge: that is done again."""
        return QPN < p.qpn <= self.before and p.operation == 'ACKNOWLEDGE' and p.syndrome & 0x60 == packets.ACK

    def hear_any(self):
        p, self.came = self.wire.receive()
        while self.is_late(p):
            p, self.came = self.wire.receive()
        packets.check(p, self.mtu)
        if p.operation in packets.AETH and (p.syndrome == packets.ACK or p.syndrome & 0x60 == packets.RNR):
            self.starves = not self.keys['srq']
        return p

    def hear(self, operation, psn, **expected):
        """The next packet is this one."""
        p = self.hear_any()
        expected = dict(operation=operation, psn=psn % packets.PSNS, transport=self.transport,
                        qpn=self.keys['peer'], **expected)
        for key, value in expected.items():
            if getattr(p, key) != value:
                raise Wrong(f'{p}; its {key} is not {value}, but {getattr(p, key)}')
        return p

    def send(self, operation, psn, **fields):
        damage, by = fields.pop('damage', 0), fields.pop('by', self.wire)
        fields = dict(dict(transport=self.transport, qpn=self.qpn), **fields)
        by.send(Packet(operation, psn=psn % packets.PSNS, **fields), damage)

    # ---- as its responder

    def ack(self, psn, msn=None, credits=None):
        self.msn = self.msn + 1 if msn is None else msn
        code = packets.NO_CREDITS if credits is None else packets.credits(credits)
        self.send('ACKNOWLEDGE', psn, msn=self.msn % packets.PSNS, syndrome=packets.ACK | code)

    def nak(self, psn, code):
        self.send('ACKNOWLEDGE', psn, syndrome=packets.NAK | code, msn=self.msn)

    def rnr(self, psn, timer):
        self.send('ACKNOWLEDGE', psn, syndrome=packets.RNR | timer, msn=self.msn)

    def respond(self, operation, psn, payload, **fields):
        self.send(operation, psn, payload=payload, msn=self.msn, **fields)

    def answer(self, what, psn, payload=b''):
        """What a request that has a response of its own gets."""
        if what in ('CAS', 'ADD'):
            self.send('ATOMIC_ACKNOWLEDGE', psn, msn=self.msn)
        else:
            self.respond('READ_ONLY', psn, payload if what == 'READ' else b'')

    # ---- as its requester

    def request(self, operation, n=1, ack=True, **fields):
        """With the next PSN; of a READ, @n."""
        psn = self.ours
        if operation in TAKES_RECEIVE and self.receives:
            self.receives -= 1
        self.send(operation, psn, ack=ack, **fields)
        self.ours = after(psn, n)
        return psn

    def acknowledged(self, psn, msn):
        self.told = msn
        self.hear('ACKNOWLEDGE', psn, syndrome=self.all_is_well(), msn=msn)

    def refused(self, psn, code, msn=None):
        self.hear('ACKNOWLEDGE', psn, syndrome=packets.NAK | code, msn=self.told if msn is None else msn)

    def nothing_came(self):
        """Neither packet nor completion, but for the answer to this."""
        self.is_awake()
        self.completes_nothing()

    def only_came(self, operation, psn):
        """Likewise, but for that packet, which may have come again."""
        came = self.request('READ_REQUEST', va=self.va(0xEF00), rkey=self.puppet.rkey, length=1)
        self.told += 1
        while (p := self.hear_any()).operation != 'READ_ONLY' or p.psn != came % packets.PSNS:
            if p.operation != operation or p.psn != psn % packets.PSNS:
                raise Wrong(f'{p}, not {operation} {psn} again')

    def is_awake(self):
        """All that was sent has been received, and no packet came but the answer to this."""
        at = 0xEF00
        psn = self.request('READ_REQUEST', va=self.va(at), rkey=self.puppet.rkey, length=1)
        self.told += 1
        self.hear('READ_ONLY', psn, msn=self.told)

    def notify(self):
        """A congestion notification, and until it is counted."""
        before = self.counter('rp_cnp_ignored')
        self.wire.send(Packet(opcode=packets.CNP, qpn=self.qpn, payload=bytes(16)))
        self.counts('rp_cnp_ignored', before)

    def nothing_came_but(self, ids):
        """Likewise, but for the completions of these requests."""
        for id in ids:
            self.completes(id)
        self.nothing_came()

    def is_silent(self):
        """It is in error, and does not answer any more."""
        self.is_in(ERR)
        for operation in ('SEND_ONLY', 'WRITE_ONLY', 'READ_REQUEST'):
            self.request(operation, va=self.va(0), rkey=self.puppet.rkey)
        self.notify()
        self.qp()
        self.nothing_came()


CASES = []  # name, function of a Case


def case(function):
    CASES.append((function.__name__, function))
    return function


def of_each(*values):
    """A case for each of these."""
    def add(function):
        for value in values:
            words = value if isinstance(value, tuple) else (value,)
            name = ' '.join([function.__name__, *map(str, words)])
            CASES.append((name, lambda c, words=words: function(c, *words)))
        return function
    return add


def pattern(n, seed=1):
    return bytes((i * 7 + seed) % 256 for i in range(n))


def words_of(arguments):
    """The lists that commas are between."""
    lists = [[]]
    for word in arguments:
        if word == ',':
            lists.append([])
        else:
            lists[-1].append(word)
    return lists


def find(value, name):
    """The counters of that name anywhere in what JSON says, added up."""
    if isinstance(value, dict):
        return sum(v if k == name else find(v, name) for k, v in value.items())
    if isinstance(value, list):
        return sum(find(v, name) for v in value)
    return 0
