# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Packets of RoCEv2, for tests only: made and taken apart as volume 1 of the InfiniBand specification has
it (chapter 9, annexes A17 and A19). Nothing of Umbel's is used, which is held against it.
"""

import dataclasses
import os
import struct

PORT = 4791
RXE_FLUSH = 'RXE_FLUSH' in os.environ  # the ICRC of a FLUSH is that of Linux's rdma_rxe
PSNS = 1 << 24

RC, UC, UD, XRC = 0x00, 0x20, 0x60, 0xA0
CNP = 0x81

OPERATIONS = (
    'SEND_FIRST', 'SEND_MIDDLE', 'SEND_LAST', 'SEND_LAST_IMM', 'SEND_ONLY', 'SEND_ONLY_IMM',
    'WRITE_FIRST', 'WRITE_MIDDLE', 'WRITE_LAST', 'WRITE_LAST_IMM', 'WRITE_ONLY', 'WRITE_ONLY_IMM',
    'READ_REQUEST', 'READ_FIRST', 'READ_MIDDLE', 'READ_LAST', 'READ_ONLY',
    'ACKNOWLEDGE', 'ATOMIC_ACKNOWLEDGE', 'COMPARE_SWAP', 'FETCH_ADD', None,
    'SEND_LAST_INVALIDATE', 'SEND_ONLY_INVALIDATE', None, None, None, None, 'FLUSH', 'ATOMIC_WRITE')
NUMBER = {name: number for number, name in enumerate(OPERATIONS) if name}

RESPONSES = {'READ_FIRST', 'READ_MIDDLE', 'READ_LAST', 'READ_ONLY', 'ACKNOWLEDGE', 'ATOMIC_ACKNOWLEDGE'}
REQUESTS = set(NUMBER) - RESPONSES
OF_UC = set(OPERATIONS[:12])
# What each has behind the BTH.
RETH = {'WRITE_FIRST', 'WRITE_ONLY', 'WRITE_ONLY_IMM', 'READ_REQUEST', 'FLUSH', 'ATOMIC_WRITE'}
ATOMIC = {'COMPARE_SWAP', 'FETCH_ADD'}
AETH = RESPONSES - {'READ_MIDDLE'}
IMM = {name for name in NUMBER if name.endswith(('_IMM', '_INVALIDATE'))}
FULL = {name for name in NUMBER if name.endswith(('_FIRST', '_MIDDLE'))}
EMPTY = {'READ_REQUEST', 'FLUSH', 'ACKNOWLEDGE', 'ATOMIC_ACKNOWLEDGE'} | ATOMIC
# What is answered by a READ response without data.
PLACED = {'FLUSH', 'ATOMIC_WRITE'}
ANSWERED = PLACED | ATOMIC | {'READ_REQUEST'}

ACK, RNR, NAK = 0x00, 0x20, 0x60
NO_CREDITS = 0x1F
# What the other codes of an ACK mean.
CREDITS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072,
           4096, 6144, 8192, 12288, 16384, 24576, 32768)
SEQUENCE, INVALID, ACCESS, OPERATION, INVALID_READ = range(5)
# Of a FLUSH: bits of its placement type, and its selectivity level.
GLOBAL, PERSISTENT = 1, 2
RANGE, REGION = 0, 1


def after(psn, n=1):
    return (psn + n) % PSNS


def credits(n):
    """The code of the most credits that are not more than @n."""
    return max(code for code, number in enumerate(CREDITS) if number <= n)


def distance(a, b):
    """How far @a is behind @b, as PSNs go; negative, if it is before."""
    return (a - b + PSNS // 2) % PSNS - PSNS // 2


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0xEDB88320 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def icrc(ip, udp, bth):
    """Of a packet without its ICRC. What may change on the way counts as ones."""
    ip, udp, bth = bytearray(ip), bytearray(udp), bytearray(bth)
    if ip[0] >> 4 == 4:
        ip[1] = ip[8] = ip[10] = ip[11] = 0xFF
    else:
        ip[0] |= 0x0F
        ip[1] = ip[2] = ip[3] = ip[7] = 0xFF
    # rdma_rxe takes the headers of a FLUSH for its payload as well
    payload = bytes(bth) if RXE_FLUSH and bth[0] == RC | NUMBER['FLUSH'] else b''
    udp[6] = udp[7] = bth[4] = 0xFF
    crc = 0xFFFFFFFF
    for byte in b'\xff' * 8 + ip + udp + bth + payload:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return struct.pack('<I', crc ^ 0xFFFFFFFF)


@dataclasses.dataclass
class Packet:
    """The fields that the operation does not have stay as they are."""
    operation: str = None
    transport: int = RC
    psn: int = 0
    qpn: int = 0
    payload: bytes = b''
    ack: bool = False
    solicited: bool = False
    pkey: int = 0xFFFF
    pad: int = None
    version: int = 0
    va: int = 0
    rkey: int = 0
    length: int = 0
    swap: int = 0
    compare: int = 0
    syndrome: int = ACK | NO_CREDITS
    msn: int = 0
    original: int = 0
    imm: int = 0
    placement: int = GLOBAL
    selectivity: int = RANGE
    opcode: int = None  # in place of what transport and operation make

    def __str__(self):
        words = [self.operation or f'opcode 0x{self.opcode:02x}', f'PSN {self.psn}']
        if self.operation in RETH:
            words.append(f'va 0x{self.va:x} rkey 0x{self.rkey:x} length {self.length}')
        if self.operation in AETH:
            words.append(f'syndrome 0x{self.syndrome:02x} MSN {self.msn}')
        if self.payload:
            words.append(f'{len(self.payload)} bytes')
        return ', '.join(words) + (', asks for an acknowledgement' if self.ack else '')

    def pack(self):
        """From the BTH to the padding."""
        name = self.operation
        opcode = self.transport | NUMBER[name] if self.opcode is None else self.opcode
        pad = -len(self.payload) % 4
        out = struct.pack('>BBHII', opcode,
                          self.solicited << 7 | 1 << 6 | (pad if self.pad is None else self.pad) << 4 |
                          self.version, self.pkey, self.qpn, self.ack << 31 | self.psn % PSNS)
        if name == 'FLUSH':
            out += struct.pack('>I', self.selectivity << 4 | self.placement)
        if name in RETH:
            out += struct.pack('>QII', self.va, self.rkey, self.length)
        if name in ATOMIC:
            out += struct.pack('>QIQQ', self.va, self.rkey, self.swap, self.compare)
        if name in AETH:
            out += struct.pack('>I', self.syndrome << 24 | self.msn)
        if name == 'ATOMIC_ACKNOWLEDGE':
            out += struct.pack('>Q', self.original)
        if name in IMM:
            out += struct.pack('>I', self.imm)
        return out + self.payload + bytes(pad)


class Malformed(Exception):
    pass


def _unpack_bth(data):
    opcode, flags, pkey, qpn, psn = struct.unpack('>BBHII', data[:12])
    p = Packet(transport=opcode & 0xE0, opcode=opcode, pkey=pkey, qpn=qpn & 0xFFFFFF, psn=psn % PSNS,
               ack=bool(psn >> 31), solicited=bool(flags >> 7), pad=flags >> 4 & 3, version=flags & 15)
    if p.transport in (RC, UC) and opcode & 31 < len(OPERATIONS):
        p.operation = OPERATIONS[opcode & 31]
    if psn >> 24 & 0x7F or qpn >> 24 & 0x3F:
        raise Malformed('reserved bits of the BTH are set')
    return p


def unpack(data):
    """What UDP carries, but for the ICRC."""
    if len(data) < 12 or len(data) % 4:
        raise Malformed(f'{len(data)} bytes')
    p, data = _unpack_bth(data), data[12:]
    if p.operation == 'FLUSH':
        (feth,) = struct.unpack('>I', data[:4])
        p.placement, p.selectivity, data = feth & 15, feth >> 4 & 3, data[4:]
        if feth >> 6:
            raise Malformed('reserved bits of the FETH are set')
    if p.operation in RETH:
        p.va, p.rkey, p.length = struct.unpack('>QII', data[:16])
        data = data[16:]
    if p.operation in ATOMIC:
        p.va, p.rkey, p.swap, p.compare = struct.unpack('>QIQQ', data[:28])
        data = data[28:]
    if p.operation in AETH:
        (aeth,) = struct.unpack('>I', data[:4])
        p.syndrome, p.msn, data = aeth >> 24, aeth % PSNS, data[4:]
    if p.operation == 'ATOMIC_ACKNOWLEDGE':
        (p.original,) = struct.unpack('>Q', data[:8])
        data = data[8:]
    if p.operation in IMM:
        (p.imm,) = struct.unpack('>I', data[:4])
        data = data[4:]
    if len(data) < p.pad or any(data[len(data) - p.pad:]):
        raise Malformed('the padding')
    p.payload = data[:len(data) - p.pad]
    return p


def check(p, mtu):
    """What must hold for each packet that is as it should be."""
    if p.operation is None:
        raise Malformed(f'opcode 0x{p.opcode:02x}')
    if p.version or p.pkey != 0xFFFF:
        raise Malformed(f'version {p.version}, P_Key 0x{p.pkey:04x}')
    if p.transport == UC and p.operation not in OF_UC:
        raise Malformed(f'{p.operation} by UC')
    if (p.payload and p.operation in EMPTY) or len(p.payload) > mtu:
        raise Malformed(f'{p.operation} of {len(p.payload)} bytes')
    if p.operation in FULL and len(p.payload) != mtu:
        raise Malformed(f'{p.operation} of {len(p.payload)} bytes')
    if p.operation == 'ATOMIC_WRITE' and (len(p.payload) != 8 or p.length != 8):
        raise Malformed(f'an atomic WRITE of {len(p.payload)} bytes, said to be {p.length}')
    if not p.payload and '_LAST' in p.operation:
        raise Malformed('an empty last packet')
