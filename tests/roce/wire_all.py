# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
wire_all.py FILE ADDRESS ADDRESS ROUNDS , PROGRAM... , PROGRAM...: two programs (puppet.c), on the hosts at these
addresses, send each other requests of all kinds, by RC and by UC. FILE tells which queue pairs were
connected, for check_wire.py: a line "TRANSPORT ADDRESS QPN PSN ADDRESS QPN PSN MTU TIMEOUT" for each two. Runs
at the first address, and sends the other one as many congestion notifications as there are rounds.
"""

import random
import sys

import packets
from packets import Packet
from wire_peer import MTUS, OPCODE, SUCCESS, Puppet, Sender, Wrong, words_of

TIMEOUT = 17  # 0.54 s
POSTED = 40  # by each, in a round
RECEIVES = 0xC000  # where they all are
MOST = 2000
OF_RC = ['SEND', 'SEND_IMM', 'WRITE', 'WRITE_IMM', 'READ', 'CAS', 'ADD', 'FLUSH', 'ATOMIC_WRITE']
WORDS = ('CAS', 'ADD', 'ATOMIC_WRITE')
OF_UC = OF_RC[:4]
RECEIVING = {'SEND', 'SEND_IMM', 'WRITE_IMM', 'SEND_INV'}


def connect(ends, transport, file, seed):
    """Another queue pair of each, connected to each other. Each has its number before it is told that of the
    other one, so there are two steps."""
    psns = [(packets.PSNS - 20 - 7 * seed - 1000 * i) % packets.PSNS for i in range(2)]
    qpns = [int(e.tell('create', f'uc={int(transport == "UC")}')[1]) for e in ends]
    for i, e in enumerate(ends):
        e.tell('connect', f'uc={int(transport == "UC")}', f'peer={qpns[1 - i]}', 'mtu=1', f'sq_psn={psns[i]}',
               f'rq_psn={psns[1 - i]}', f'timeout={TIMEOUT}', 'retry=7', 'rnr=7', 'timer=1', 'reads=4')
    print(transport, ends[0].ip, qpns[0], psns[0], ends[1].ip, qpns[1], psns[1], MTUS[1], TIMEOUT, file=file)
    return qpns


def plan(rng, transport, turn):
    """What one side posts: kinds and lengths. Each kind with each number of packets at some time."""
    todo = []
    for i in range(POSTED):
        kinds = OF_UC if transport == 'UC' else OF_RC
        kind = kinds[(i + turn) % len(kinds)]
        length = rng.choice((0, 1, 3, 255, 256, 257, 511, 600, 1100, MOST))
        if kind == 'READ' and not rng.randrange(4):
            length = 20000  # asked for in two parts
        todo.append((kind, 8 if kind in WORDS else length))
    if transport == 'RC':
        todo[5], todo[15] = ('SEND_INV', 200), ('SEND_INV', 600)
    return todo


def post(e, other, id, kind, length, windows):
    key = windows.pop() if kind == 'SEND_INV' else other.rkey
    remote = other.address + (0x5000 if kind in WORDS else 0 if kind == 'READ' else 0x1000)
    at = 0x6000 if kind in ('READ', 'CAS', 'ADD') else 0
    e.tell('post', f'opcode={OPCODE[kind]}', f'id={id + (1 << 20)}', f'bytes={length}', f'at={at}', f'remote={remote}',
           f'rkey={key}', f'imm={id}', f'swap={packets.GLOBAL}')


def run_round(ends, transport, rng, turn):
    windows = [[], []]
    plans = [plan(rng, transport, turn + i) for i in range(2)]
    for i, e in enumerate(ends):
        if transport == 'RC':  # the peer invalidates them
            windows[1 - i] = [int(e.tell('window', 0, 16)[1]) for _ in range(2)]
        for _ in range(POSTED):
            e.tell('recv', RECEIVES, MOST)
    for id in range(POSTED):
        for i, e in enumerate(ends):
            post(e, ends[1 - i], id, *plans[i][id], windows[i])
    for i, e in enumerate(ends):
        left = POSTED
        if transport == 'RC':
            left += sum(kind in RECEIVING for kind, _ in plans[1 - i])
        done = 0
        while left or transport == 'UC':
            line = e.tell('wait' if left else 'look')
            if line == ['none']:
                break
            if int(line[2]) != SUCCESS:
                raise Wrong(f'round {turn} of {transport}, {e.ip}: {line}')
            if int(line[1]) >> 20:
                if int(line[1]) - (1 << 20) != done:
                    raise Wrong(f'request {line[1]} completes, not {done}')
                done += 1
                left -= 1
            elif transport == 'RC':
                left -= 1
        if done != POSTED:
            raise Wrong(f'round {turn} of {transport}, {e.ip}: {done} requests complete')


def main(arguments):
    (path, here, there, rounds), *programs = words_of(arguments)
    ends = [Puppet(program) for program in programs]
    ends[0].ip, ends[1].ip = here, there
    for e in ends:
        for at in range(0, MOST, 100):
            e.tell('poke', at, 100, at // 100 + 1)
    notifier = Sender(here, there)
    rng = random.Random(1)
    with open(path, 'w', encoding='ascii') as file:
        for turn in range(int(rounds)):
            for transport in ('RC', 'UC'):
                qpns = connect(ends, transport, file, turn)
                run_round(ends, transport, rng, turn)
            notifier.send(Packet(opcode=packets.CNP, qpn=qpns[1], payload=bytes(16)))
    for e in ends:
        e.end()
    print('all requests are done')


main(sys.argv[1:])
