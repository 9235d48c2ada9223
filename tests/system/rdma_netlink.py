# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdma_netlink.py QPS: requests of RDMA netlink that `rdma` would not send, by sockets that are
# duplicated, closed, shared by threads and by a fork; and a list of QPS queue pairs, longer than what
# a socket holds, read slowly; and as many regions and protection domains, which come and go meanwhile.
# Prints nothing, or fails.

import os
import random
import socket
import struct
import sys
import threading

import pyverbs.device
import pyverbs.cmid
import pyverbs.cq
import pyverbs.mr
import pyverbs.pd
import pyverbs.qp
from pyverbs import cm_enums
from pyverbs import enums

RDMA = 20
GET, PORT_GET, SYS_GET, RES_GET, QP_GET, CM_ID_GET, MR_GET, PD_GET, CTX_GET = 1, 5, 6, 9, 10, 11, 13, 14, 22
INDEX, NAME, PORT, LQPN, TABLE = 1, 2, 3, 21, 19
MR_TABLE, MRLEN, MRN, PD_TABLE, USERS, PDN = 40, 45, 62, 46, 38, 60
CM_ID_TABLE, CM_IDN, STATE, SPACE, SRC, DST = 30, 63, 27, 32, 33, 34
REQUEST, ACK, DUMP = 1, 4, 0x300
ERROR, DONE = 2, 3


def message(op, flags, attributes=(), seq=7, client=5):
    body = b''
    for kind, value in attributes:
        body += struct.pack('=HHI', 8, kind, value)
    return struct.pack('=IHHII', 16 + len(body), client << 10 | op, REQUEST | flags, seq, 0) + body


def messages(data):
    while data:
        length, kind, flags, seq, port = struct.unpack_from('=IHHII', data)
        assert 16 <= length <= len(data), 'a message of %d bytes in %d' % (length, len(data))
        yield kind, seq, port, data[16:length]
        data = data[(length + 3) & ~3:]


def attributes(data):
    while data:
        length, kind = struct.unpack_from('=HH', data)
        assert 4 <= length <= len(data)
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3:]


def opened():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, RDMA)
    s.bind((0, 0))
    s.settimeout(10)
    return s


def answer(s, seq=7):
    """All messages up to the status or the end of the list; and that status."""
    got = []
    while True:
        data, sender = s.recvfrom(4096)
        assert sender == (0, 0), 'not from the kernel: %s' % (sender,)
        for kind, number, port, body in messages(data):
            assert number == seq and port == s.getsockname()[0]
            if kind in (ERROR, DONE):
                return got, struct.unpack_from('=i', body)[0]
            got.append(dict(attributes(body)))


def ask(s, *args, **more):
    s.send(message(*args, **more))
    return answer(s)


def status(*args, **more):
    with opened() as s:
        got, error = ask(s, *args, **more)
        assert not got
        return -error


def names(devices):
    return [d[NAME].rstrip(b'\0').decode() for d in devices]


# what is wrong is refused as by the kernel
for wrong in ((GET, ACK), (GET, ACK, [(INDEX, 9999)]), (PORT_GET, ACK, [(INDEX, 0)]),
              (PORT_GET, ACK, [(INDEX, 0), (PORT, 0)]), (PORT_GET, ACK, [(INDEX, 0), (PORT, 9)]),
              (PORT_GET, DUMP), (QP_GET, DUMP), (QP_GET, ACK, [(INDEX, 0)]), (1023, ACK)):
    assert status(*wrong) == 22, wrong
assert status(GET, ACK, client=4) == 22
assert status(QP_GET, ACK, [(INDEX, 0), (LQPN, 0xABCDEF)]) == 2
for kind in (CM_ID_GET, MR_GET, PD_GET, CTX_GET):
    assert status(kind, ACK, [(INDEX, 0)]) == 22 and status(kind, DUMP) == 22
assert status(MR_GET, ACK, [(INDEX, 0), (MRN, 1 << 20 | 1)]) == 2
for change in (2, 3, 4, 7, 16, 18):
    assert status(change, ACK, [(INDEX, 0)]) == 95

# so is what is no message: nothing comes, and nothing breaks
with opened() as s:
    good = message(GET, DUMP)
    chance = random.Random(1)
    for length in range(len(good)):
        s.send(good[:length] or b'\0')
    s.send(struct.pack('=I', 1 << 31) + good[4:])
    s.settimeout(0)
    for _ in range(3000):
        s.send(bytes(chance.choice((b, b, b, chance.randrange(256))) for b in good + b'\x08\0\1\0\0\0\0\0'))
        try:
            while True:
                s.recv(65536)
        except BlockingIOError:
            pass
    s.settimeout(10)
    assert 'umbel_h1_0' in names(ask(s, GET, DUMP)[0])
    # several requests in a datagram
    s.send(message(SYS_GET, ACK) + message(GET, ACK, [(INDEX, 0)], seq=8))
    assert len(answer(s)[0]) == 1
    assert names(answer(s, 8)[0]) == ['umbel_h1_0']
    # another descriptor of it; and another socket that gets its number
    other = s.dup()
    other.send(message(GET, DUMP))
    assert answer(s)[0]
    number = s.fileno()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
assert udp.fileno() == number
udp.bind(('127.0.0.1', 0))
udp.sendto(b'x', udp.getsockname())
assert udp.recv(9) == b'x'
assert 'umbel_h1_0' in names(ask(other, GET, DUMP)[0])

# one socket each, of many threads; and all of them open at once
def thread():
    with opened() as s:
        for _ in range(200):
            assert 'umbel_h1_0' in names(ask(s, GET, DUMP)[0])
        done.append(1)


done = []
threads = [threading.Thread(target=thread) for _ in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert len(done) == 8

# a list that is longer than what the socket holds
context = pyverbs.device.Context(name='umbel_h1_0')
pd = pyverbs.pd.PD(context)
cq = pyverbs.cq.CQ(context, 4)
init = pyverbs.qp.QPInitAttr(qp_type=enums.IBV_QPT_RC, scq=cq, rcq=cq)
qps = [pyverbs.qp.QP(pd, init) for _ in range(int(sys.argv[1]))]
expected = sorted(qp.qp_num for qp in qps)


def numbers(listed):
    found = []
    for row in listed:
        for _, entry in attributes(row[TABLE]):
            found.append(struct.unpack('=I', dict(attributes(entry))[LQPN])[0])
    return sorted(found)


# a queue pair has its port from INIT on
def port_of(qp):
    with opened() as s:
        return ask(s, QP_GET, ACK, [(INDEX, 0), (LQPN, qp.qp_num)])[0][0].get(PORT)


moved = qps[-1]
assert port_of(moved) is None
moved.to_init(pyverbs.qp.QPAttr(port_num=1))
assert port_of(moved) == struct.pack('=I', 1)
moved.modify(pyverbs.qp.QPAttr(qp_state=enums.IBV_QPS_ERR), enums.IBV_QP_STATE)
assert port_of(moved) == struct.pack('=I', 1)
moved.modify(pyverbs.qp.QPAttr(qp_state=enums.IBV_QPS_RESET), enums.IBV_QP_STATE)
assert port_of(moved) is None

with opened() as s:
    assert numbers(ask(s, QP_GET, DUMP, [(INDEX, 0)])[0]) == expected
    assert ask(s, QP_GET, ACK, [(INDEX, 0), (LQPN, expected[-1])])[0][0][LQPN] == struct.pack('=I', expected[-1])
    # who forks while an answer is on its way reads it to the end, and the child asks for itself
    s.send(message(QP_GET, DUMP, [(INDEX, 0)]))
    child = os.fork()
    if not child:
        with opened() as own:
            os._exit(numbers(ask(own, QP_GET, DUMP, [(INDEX, 0)])[0]) != expected)
    assert numbers(answer(s)[0]) == expected
    assert os.waitpid(child, 0)[1] == 0
    # who does not read it has what is left for it, and others are not concerned
    s.send(message(QP_GET, DUMP, [(INDEX, 0)]))
    with opened() as second:
        assert numbers(ask(second, QP_GET, DUMP, [(INDEX, 0)])[0]) == expected

# regions and domains, more than a page of the daemon's and a socket hold; and while others come and go
pds = [pyverbs.pd.PD(context) for _ in range(int(sys.argv[1]))]
mrs = [pyverbs.mr.MR(pds[i // 3], 100 + i, enums.IBV_ACCESS_LOCAL_WRITE) for i in range(int(sys.argv[1]))]


def entries(kind, table):
    with opened() as s:
        listed, error = ask(s, kind, DUMP, [(INDEX, 0)])
    assert not error
    return [dict(attributes(entry)) for row in listed for _, entry in attributes(row[table])]


def number(value):
    return int.from_bytes(value, sys.byteorder)


def check(exactly):
    regions = {number(e[MRN]): (number(e[MRLEN]), number(e[PDN])) for e in entries(MR_GET, MR_TABLE)}
    domains = {number(e[PDN]): number(e[USERS]) for e in entries(PD_GET, PD_TABLE)}
    lengths = sorted(length for length, _ in regions.values() if length >= 100)
    assert lengths == list(range(100, 100 + len(mrs))), (len(lengths), len(mrs))
    assert {domain for length, domain in regions.values() if length >= 100} <= set(domains)
    if exactly:
        assert len(domains) == len(pds) + 1 and len(regions) == len(mrs)
        assert sorted(domains.values()) == sorted(
            [len(qps)] + [3] * (len(mrs) // 3) + [0] * (len(pds) - len(mrs) // 3))


def come_and_go():
    while not done:
        with pyverbs.pd.PD(context) as one, pyverbs.mr.MR(one, 50, enums.IBV_ACCESS_LOCAL_WRITE):
            pass


assert len(mrs) % 3 == 0
check(True)
done = []
other = threading.Thread(target=come_and_go)
other.start()
try:
    check(False)
finally:
    done.append(1)
    other.join()

# identifiers of rdma_cm: more than a page, and each as far as it is
ids = [pyverbs.cmid.CMID(creator=pyverbs.cmid.AddrInfo(
    src='10.0.0.1', src_service=str(7100 + i), port_space=cm_enums.RDMA_PS_TCP, flags=cm_enums.RAI_PASSIVE))
    for i in range(40)]
ids[0].listen()
ids.append(pyverbs.cmid.CMID(creator=pyverbs.cmid.AddrInfo(dst='10.0.0.2', dst_service='7100',
                                                           port_space=cm_enums.RDMA_PS_UDP)))
ADDR_BOUND, LISTEN, ROUTE_RESOLVED = 7, 8, 4
listed = entries(CM_ID_GET, CM_ID_TABLE)
assert len({e[CM_IDN] for e in listed}) == len(ids)
assert sorted(number(e[STATE]) for e in listed) == [ROUTE_RESOLVED] + [ADDR_BOUND] * 39 + [LISTEN]
for e in listed:
    family, port = struct.unpack_from('=H', e[SRC])[0], struct.unpack_from('>H', e[SRC], 2)[0]
    if number(e[STATE]) == ROUTE_RESOLVED:
        assert number(e[SPACE]) == cm_enums.RDMA_PS_UDP
        assert struct.unpack_from('>H4s', e[DST], 2) == (7100, bytes((10, 0, 0, 2)))
    else:
        assert number(e[SPACE]) == cm_enums.RDMA_PS_TCP and port - 7100 in range(40)
        assert (number(e[STATE]) == LISTEN) == (port == 7100)
    assert family == socket.AF_INET and len(e[SRC]) == len(e[DST]) == 128 and e[SRC][4:8] == bytes((10, 0, 0, 1))
