# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Holds packets against RFC 4391: wire.py FILE PCAP MODE LID QPN GID LID GID. FILE is what
ipoib.tap has printed, of an interface at the first LID, QPN and GID; the tap is at the others. PCAP gets
the packets as they are on a wire, but for their CRCs. Status 2: not all kinds are there yet.
"""

import ipaddress
import struct
import sys

IPV4, ARP, IPV6 = 0x0800, 0x0806, 0x86DD
PKEY, QKEY, UD_SEND_ONLY = 0xFFFF, 0x0B1B, 0x64
MULTICAST_QPN = 0xFFFFFF
LINKTYPE_ERF, ERF_INFINIBAND = 197, 21


def ip(text):
    return ipaddress.ip_address(text).packed


path, pcap, mode, *rest = sys.argv[1:]
lid, qpn, tap_lid = int(rest[0]), int(rest[1]), int(rest[3])
gid, tap_gid = ip(rest[2]), ip(rest[4])


class Packet:
    def __init__(self, line):
        words = line.split()
        self.slid, self.sqpn, self.tap_qpn = (int(w) for w in words[:3])
        self.grh = bytes.fromhex(words[3]) if words[3] != '-' else None
        self.bytes = bytes.fromhex(words[4])
        self.type, self.reserved = struct.unpack('>HH', self.bytes[:4])
        self.data = self.bytes[4:]

    def protocol(self):
        return self.data[9 if self.type == IPV4 else 6]

    def on_wire(self):
        """LRH, GRH, BTH, DETH, the packet, and room for ICRC and VCRC."""
        pad = -len(self.bytes) % 4
        rest = struct.pack('>BBHII', UD_SEND_ONLY, pad << 4, PKEY,
                           MULTICAST_QPN if self.grh else self.tap_qpn, 0)
        rest += struct.pack('>II', QKEY, self.sqpn) + self.bytes + bytes(pad + 4)
        rest = (self.grh or b'') + rest
        dlid = 0xC000 if self.grh else tap_lid
        return struct.pack('>BBHHH', 0, 3 if self.grh else 2, dlid, len(rest) // 4 + 2,
                           self.slid) + rest + bytes(2)


def write_pcap(packets):
    with open(pcap, 'wb') as file:
        file.write(struct.pack('=IHHiIII', 0xA1B2C3D4, 2, 4, 0, 0, 65535, LINKTYPE_ERF))
        for p in packets:
            wire = p.on_wire()
            record = struct.pack('>QBBHHH', 0, ERF_INFINIBAND, 4, len(wire) + 16, 0, len(wire)) + wire
            file.write(struct.pack('=IIII', 0, 0, len(record), len(record)) + record)


def is_nd(p, kind):
    return p.type == IPV6 and p.protocol() == 58 and p.data[40] == kind


def is_udp(p, family):
    return p.type == family and p.protocol() == 17


# kind -> whether a packet is of it
KINDS = {
    'ARP request': lambda p: p.type == ARP and p.data[7] == 1 and p.data[52:] == ip('192.0.2.77'),
    'ARP reply': lambda p: p.type == ARP and p.data[7] == 2,
    'solicitation': lambda p: is_nd(p, 135) and p.data[48:64] == ip('2001:db8::3'),
    'advertisement': lambda p: is_nd(p, 136),
    'ping': lambda p: p.type == IPV4 and p.protocol() == 1,
    'ping of IPv6': lambda p: is_nd(p, 128),
    'multicast': lambda p: is_udp(p, IPV4),
    'multicast of IPv6': lambda p: is_udp(p, IPV6),
}

wrong = False


def check(what, got, expected):
    global wrong
    if got != expected:
        got, expected = ((v.hex() if isinstance(v, bytes) else v) for v in (got, expected))
        print(f'{what}: {got}, not {expected}')
        wrong = True


def check_group(what, p, group):
    """Section 4: it has a GRH, to the group that the IP address is mapped to."""
    if p.grh is None:
        check(what, 'no GRH', 'a GRH')
        return
    check(f'{what}: IPVer', p.grh[0] >> 4, 6)
    check(f'{what}: PayLen', struct.unpack('>H', p.grh[4:6])[0],
          12 + 8 + len(p.bytes) + -len(p.bytes) % 4 + 4)
    check(f'{what}: NxtHdr', p.grh[6], 0x1B)
    check(f'{what}: SGID', p.grh[8:24], gid)
    check(f'{what}: DGID', p.grh[24:], ip(group))


def check_arp(what, p, operation, target, target_ip):
    """Section 9.1.1, 9.2: hardware type 32, addresses of flags, queue pair and GID."""
    check(f'{what}: bytes', len(p.data), 8 + 2 * (20 + 4))
    check(f'{what}: types and lengths', p.data[:8], struct.pack('>HHBBH', 32, IPV4, 20, 4, operation))
    check(f'{what}: sender', p.data[8:28], our_address)
    check(f'{what}: sender IP', p.data[28:32], ip('192.0.2.1'))
    check(f'{what}: target', p.data[32:52], target)
    check(f'{what}: target IP', p.data[52:], ip(target_ip))


def check_nd(what, p, kind, target, option):
    """Section 9.3: an option of 24 bytes, with 16 reserved bits before the address."""
    check(f'{what}: hop limit', p.data[7], 255)
    check(f'{what}: type and code', p.data[40:42], bytes([kind, 0]))
    check(f'{what}: target', p.data[48:64], ip(target))
    check(f'{what}: option', p.data[64:], bytes([option, 3, 0, 0]) + our_address)


with open(path, encoding='ascii') as file:
    lines = [line for line in file if line[0].isdigit() and line.endswith('\n')]
packets = [p for p in map(Packet, lines) if p.slid == lid and p.sqpn == qpn]
found = {kind: next(filter(is_one, packets), None) for kind, is_one in KINDS.items()}
if None in found.values():
    sys.exit(2)
tap_qpn = packets[0].tap_qpn
our_address = struct.pack('>I', (0x80 if mode == 'connected' else 0) << 24 | qpn) + gid
tap_address = struct.pack('>I', tap_qpn) + tap_gid

for kind, p in found.items():
    check(f'{kind}: reserved', p.reserved, 0)
check_group('ARP request', found['ARP request'], 'ff12:401b:ffff::ffff:ffff')
check_arp('ARP request', found['ARP request'], 1, bytes(20), '192.0.2.77')
check_arp('ARP reply', found['ARP reply'], 2, tap_address, '192.0.2.9')
check_group('solicitation', found['solicitation'], 'ff12:601b:ffff::1:ff00:3')
check_nd('solicitation', found['solicitation'], 135, '2001:db8::3', 1)
check_nd('advertisement', found['advertisement'], 136, '2001:db8::1', 2)
check('advertisement: flags', found['advertisement'].data[44], 0x60)
check_group('multicast', found['multicast'], 'ff12:401b:ffff::f01:203')
check_group('multicast of IPv6', found['multicast of IPv6'], 'ff12:601b:ffff::1:203')
for kind in ('ARP reply', 'advertisement', 'ping', 'ping of IPv6'):
    check(f'{kind}: GRH within a subnet', found[kind].grh, None)
write_pcap(found.values())
sys.exit(wrong)
