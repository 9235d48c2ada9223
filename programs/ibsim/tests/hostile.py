# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ibsim_hostile.py HOSTS PID: clients of ibsim's protocol that libumad2sim would never be, for
ibsim_hostile.sh; PID is the server's. Each test is a function; what is wrong raises."""
import os
import random
import select
import signal
import socket
import struct
import sys
import time

BASE = os.environ['IBSIM_SOCKNAME']
HOSTS, SERVER = map(int, sys.argv[1:])
ERROR, CONNECT, DISCONNECT, GET_PORT, GET_VENDOR, GET_GID, GET_GUID, GET_NODE_INFO, GET_PORT_INFO, \
    SET_ISSM, GET_PKEYS = range(11)
MAGIC = 0xdeadbeef
CTL, MAD = 80, 288
PATIENCE = 60
ids = iter(range(1 << 22, 1 << 30))  # no process has these


def name(end):
    return b'\0%s:%s\0' % (BASE.encode(), end.encode())


def ctl(kind, client=0, data=b'', magic=MAGIC):
    return struct.pack('=IIII64s', magic, client, kind, len(data), data)


class Client:
    def __init__(self, node='', is_sm=0, pid=None):
        self.pid = pid or next(ids)
        self.control = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.control.settimeout(PATIENCE)
        self.control.bind(name('ctl%d' % self.pid))
        self.data = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.data.bind(name('in%d' % self.pid))
        self.id = 0
        answer = self.ask(CONNECT, struct.pack('=III32s', self.pid, 0, is_sm, node.encode()))
        self.is_refused = answer is None
        if not self.is_refused:
            self.id = struct.unpack_from('=I', answer)[0]
            self.data.connect(name('out%d' % self.id))

    def question(self, kind, data=b'', client=None):
        self.control.sendto(ctl(kind, self.id if client is None else client, data), name('ctl'))

    def answer(self):
        """Its data, or None: refused."""
        answer = self.control.recv(4096)
        assert len(answer) == CTL
        return None if struct.unpack_from('=I', answer, 8)[0] == ERROR else answer[16:]

    def ask(self, *question, **client):
        self.question(*question, **client)
        return self.answer()

    def close(self):
        assert self.ask(DISCONNECT) is not None
        self.drop()

    def drop(self):
        self.control.close()
        self.data.close()

    def send(self, mad, dlid=0xffff, qpn=0):
        self.data.send(struct.pack('>HHIIIIIQ', dlid, 0, 0, qpn, 0, 0, 0, len(mad)) +
                       mad.ljust(256, b'\0'))

    def receive(self, seconds=PATIENCE):
        """(status, MAD), or None: nothing came."""
        if not select.select([self.data], [], [], seconds)[0]:
            return None
        got = self.data.recv(4096)
        assert len(got) == MAD
        return struct.unpack_from('>I', got, 16)[0], got[32:]


def get(tid, attribute, path=b'', modifier=0, method=1, m_key=0, data=b''):
    """SubnGet, or another method, by a directed route."""
    return struct.pack('>BBBBHBBQHHIQHH28x', 1, 0x81, 1, method, 0, 0, len(path), tid, attribute, 0,
                       modifier, m_key, 0xffff, 0xffff) + data.ljust(65, b'\0') + path.ljust(127, b'\0')


def tid_of(mad):
    return struct.unpack_from('>Q', mad, 8)[0]


def works():
    """Somebody else is served as if nothing had happened."""
    c = Client('h1')
    c.send(get(0x1234567890abcdef, 0x11))
    status, mad = c.receive()
    assert status == 0 and tid_of(mad) == 0x1234567890abcdef and mad[3] == 0x81
    c.close()


def questions_have_answers():
    c = Client('h2')
    assert struct.unpack_from('=HB', c.ask(GET_PORT))[1] == 4  # ACTIVE
    gid = c.ask(GET_GID)[:16]
    assert gid[8:] == c.ask(GET_GUID)[:8]
    info = c.ask(GET_NODE_INFO)
    assert info[2] == 1 and gid[8:] == struct.pack('>Q', struct.unpack_from('>Q', info, 12)[0] + 1)
    assert c.ask(GET_PORT_INFO, b'\1') == c.ask(GET_PORT_INFO) is not None
    assert struct.unpack_from('=I', c.ask(GET_VENDOR))[0] == struct.unpack_from('>I', info, 36)[0] & 0xffffff
    assert c.ask(GET_PKEYS)[:2] == b'\xff\xff'
    assert c.ask(11) is None and c.ask(ERROR) is None and c.ask(1 << 31) is None
    c.close()


def nobody_is_another():
    one, other = Client('h1'), Client('h2')
    assert other.ask(GET_PORT, client=one.id) is None
    assert other.ask(DISCONNECT, client=one.id) is not None  # and nothing happens:
    assert one.ask(GET_PORT) is not None
    assert other.ask(GET_PORT, client=0xffffffff) is None
    stranger = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        stranger.sendto(b'\0' * MAD, name('out%d' % one.id))
        assert False, 'a stranger sends MADs'
    except PermissionError:
        pass
    one.close()
    other.close()


def another_user_is_refused():
    if os.geteuid():
        return
    c = Client('h1')
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        mine = Client('h1')
        os._exit(0 if mine.is_refused and mine.ask(GET_PORT, client=c.id) is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    c.close()


def another_user_reads_no_answers():
    if os.geteuid():
        return
    end, its_end = socket.socketpair()
    child = os.fork()
    if not child:
        end.close()
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        mine = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        mine.bind(name('ctl%d' % next(ids)))
        mine.connect(name('ctl'))  # so that what waits for it has no limit
        for _ in range(400):
            mine.send(ctl(GET_PORT))
        its_end.send(b'x')
        its_end.recv(1)  # the socket is open, and unread
        os._exit(0)
    next(ids)  # the child's
    its_end.close()
    end.settimeout(PATIENCE)
    assert end.recv(1) == b'x'
    works()
    end.close()
    assert os.waitpid(child, 0)[1] == 0


def what_nobody_answers_comes_back():
    c = Client('h1')
    for path in (b'\1\7', b'\7'):  # no cable at the switch's port; there is no such port here
        c.send(get(77, 0x11, path))
        assert c.receive() == (110, get(77, 0x11, path))
    c.close()


def an_m_key_does_not_keep_clients_out():
    c = Client('h2')
    was = c.ask(GET_NODE_INFO), c.ask(GET_PORT_INFO), c.ask(GET_GID)
    c.send(get(1, 0x15))
    info = bytearray(c.receive()[1][64:128])
    info[32] &= 0xf0  # no change of the states
    info[33] = 0
    key = 0x1122334455667788
    locked = bytearray(info)
    locked[:8] = key.to_bytes(8, 'big')
    locked[34] |= 0x80  # protection level 2
    c.send(get(2, 0x15, method=2, data=bytes(locked)))
    status, mad = c.receive()
    assert status == 0 and tid_of(mad) == 2 and mad[4:6] == b'\x80\0', mad  # direction: back
    try:
        c.send(get(3, 0x11))
        assert c.receive()[0] == 110  # its agent is silent
        other = Client('h2')
        assert not other.is_refused
        assert (other.ask(GET_NODE_INFO), other.ask(GET_PORT_INFO), other.ask(GET_GID)) == was
        assert other.ask(GET_PORT) and other.ask(GET_GUID) and other.ask(GET_VENDOR) and other.ask(GET_PKEYS)
        other.send(get(4, 0x11, m_key=key))
        assert other.receive()[0] == 0  # whoever has the key
        other.close()
    finally:
        c.send(get(5, 0x15, method=2, m_key=key, data=bytes(info)))
        assert c.receive()[0] == 0
    c.close()


def two_requests_of_one_low_half_are_told_apart():
    c = Client('h1')
    for high in (1, 2):
        c.send(get(high << 32 | 5, 0x10 + high))  # NodeInfo, SwitchInfo
    got = [c.receive() for _ in range(2)]
    assert {(tid_of(mad) >> 32, mad[17]) for _, mad in got} == {(1, 0x11), (2, 0x12)}
    c.close()


def many_clients():
    all_ = [Client('h%d' % (i % HOSTS + 1)) for i in range(300)]
    assert len({c.id for c in all_}) == len(all_) and not any(c.is_refused for c in all_)
    for i, c in enumerate(all_):
        c.send(get(i << 32 | 1, 0x11))
    for i, c in enumerate(all_):
        status, mad = c.receive()
        assert status == 0 and tid_of(mad) == i << 32 | 1
    for c in all_[::2]:
        c.close()
    for c in all_[1::2]:  # gone without a word, and another has their names
        c.drop()
        again = Client('h1', pid=c.pid)
        assert again.id == c.id or again.ask(GET_PORT, client=c.id) is None
        again.close()


def who_takes_nothing_costs_itself():
    c = Client('h1')
    c.data.settimeout(PATIENCE)
    for i in range(6000):
        c.send(get(i + 1, 0x11))
        if i % 2000 == 0:
            works()
    n, end = 0, time.time() + PATIENCE
    c.send(get(1 << 40, 0x11))
    while True:
        got = c.receive(1)
        if got and tid_of(got[1]) == 1 << 40:
            break
        assert time.time() < end, n
        if got:
            n += 1
        else:
            c.send(get(1 << 40, 0x11))  # it may have got lost
    assert got[0] == 0 and n >= 100, n  # the rest may have
    c.close()


def what_waits_for_room_is_not_replaced():
    c = Client('h1')
    c.data.settimeout(PATIENCE)
    for i in range(1000):
        c.send(get(i + 1, 0x11))
    works()
    for _ in range(20):
        c.send(get(1 << 40, 0x11, b'\7'))  # which comes back at once, or not at all
        works()
    got = []
    while len(got) < 1000:
        status, mad = c.receive()
        if tid_of(mad) != 1 << 40:
            got.append(tid_of(mad))
    assert sorted(got) == list(range(1, 1001))
    c.close()


class Dying(Client):
    """The process that connects is dead when the server hears of it. The sockets are not."""

    def question(self, *question, **client):
        os.kill(SERVER, signal.SIGSTOP)
        try:
            while open('/proc/%d/stat' % SERVER).read().rsplit(')')[1].split()[0] != 'T':
                time.sleep(0.001)
            child = os.fork()
            if not child:
                super().question(*question, **client)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        finally:
            os.kill(SERVER, signal.SIGCONT)


def who_dies_connecting_is_no_client():
    dead = Dying('h2', is_sm=1)
    assert dead.is_refused
    manager = Client('h2', is_sm=1)
    assert not manager.is_refused
    manager.close()
    dead.drop()


def a_dead_manager_is_missed():
    child = os.fork()
    if not child:
        c = Client('h2', is_sm=1)
        os.kill(os.getpid(), signal.SIGSTOP if not c.is_refused else signal.SIGTERM)
    assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
    next(ids)  # the child's
    second = Client('h2', is_sm=1)
    assert second.is_refused
    second.drop()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    end = time.time() + PATIENCE
    while True:
        c = Client('h2', is_sm=1)
        if not c.is_refused or time.time() > end:
            break
        c.drop()
        time.sleep(0.02)
    assert not c.is_refused
    assert c.ask(SET_ISSM, struct.pack('=I', 0)) is not None
    assert c.ask(SET_ISSM, struct.pack('=I', 1)) is not None
    c.close()


def noise(seconds):
    """Wild messages to each of the sockets."""
    seed = int.from_bytes(os.urandom(4), 'little')
    print('seed', seed, flush=True)
    r = random.Random(seed)
    c = Client('h3')
    for s in (c.control, c.data):
        s.setblocking(False)
    end = time.time() + seconds
    while time.time() < end:
        for _ in range(50):
            kind = r.randrange(4)
            bytes_ = r.choice((0, 1, CTL - 1, CTL + 1, MAD - 1, MAD + 1, 4000, r.randrange(500)))
            try:
                if kind == 0:
                    c.control.sendto(r.randbytes(bytes_), name('ctl'))
                elif kind == 1:  # not those that end it
                    c.control.sendto(ctl(r.choice((0, 3, 4, 5, 6, 7, 8, 9, 10, 11, r.getrandbits(32))),
                                         r.choice((c.id, r.getrandbits(32))), r.randbytes(64),
                                         r.choice((MAGIC, MAGIC, 0))), name('ctl'))
                elif kind == 2:
                    c.data.send(r.randbytes(bytes_))
                else:  # near to what is right
                    mad = bytearray(r.randbytes(256))
                    mad[:4] = bytes((1, r.choice((1, 3, 4, 7, 0x32, 0x81)), r.choice((1, 2)),
                                     r.choice((1, 2, 3, 5, 6, 7, 0x12, 0x14, 0x81, 0x92))))
                    if r.random() < 0.5:
                        mad[24:28] = bytes((1, r.randrange(6), r.randrange(256), 0))
                    c.data.send(struct.pack('>HHIIIIIQ', r.choice((0xffff, 1, 2, 3, r.getrandbits(16))),
                                            0, 0, r.randrange(3), 0, 0, 0,
                                            r.choice((256, r.getrandbits(9), r.getrandbits(64)))) + mad)
            except (BlockingIOError, OSError):
                pass
        for s in (c.control, c.data):
            try:
                while True:
                    assert len(s.recv(4096)) in (CTL, MAD)
            except BlockingIOError:
                pass
    c.drop()


for test in (questions_have_answers, nobody_is_another, another_user_is_refused,
             another_user_reads_no_answers, what_nobody_answers_comes_back,
             an_m_key_does_not_keep_clients_out, two_requests_of_one_low_half_are_told_apart, many_clients,
             who_takes_nothing_costs_itself, what_waits_for_room_is_not_replaced,
             who_dies_connecting_is_no_client, a_dead_manager_is_missed):
    print(test.__name__, flush=True)
    test()
    works()
noise(float(os.environ.get('UMBEL_FUZZ_SECONDS', 1)))
works()
