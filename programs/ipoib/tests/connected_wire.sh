#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The messages by which connected mode makes connections, byte by byte, as RFC 4755 and Linux have them:
# the flag in link-layer addresses, the service ID and private data of REQ and REP.

. "${0%/*}/lab.sh"

lab_up 2
mode=connected
held_interface h1
held_interface h2

launch capture umbel capture --class cm -c 6 -o "$TMPDIR/mads"
wait_until "it captures" test -s "$TMPDIR/mads"
pings 1 h1 192.0.2.2
wait_ended capture 0

python3 - "$TMPDIR/mads" "$(status h1 "s['qpn']")" "$(status h2 "s['qpn']")" <<'END' || complain "wrong"
import re, sys

REQ, REP = 0x10, 0x13
SERVICE_ID, SRQ, REQ_PRIVATE, REP_PRIVATE = 8, 51, 140, 36
text = open(sys.argv[1], "rb").read()
qpn = [int(word) for word in sys.argv[2:4]]

def offer(qpn):
    return qpn.to_bytes(4, "big") + (65520 + 4).to_bytes(4, "big")

# those of class 7, version 2, that are sent
found = {}
for at in (m.start() for m in re.finditer(rb"\x01\x07\x02\x03\0\0", text)):
    attribute = int.from_bytes(text[at + 16:at + 18], "big")
    found.setdefault(attribute, []).append(text[at + 24:at + 256])
# h1 asks first, and h2 when it answers the ping
first, second = found[REQ][:2]
for message, ours, theirs in ((first, qpn[0], qpn[1]), (second, qpn[1], qpn[0])):
    assert message[SERVICE_ID:SERVICE_ID + 8] == b"\x10\0\0\0" + theirs.to_bytes(4, "big"), message
    assert message[REQ_PRIVATE:REQ_PRIVATE + 92] == offer(ours) + bytes(84), message
    assert message[SRQ] & 8, message
assert found[REP][0][REP_PRIVATE:REP_PRIVATE + 8] == offer(qpn[1]), found[REP][0]
END

# ---- ARP has told h1 that h2 has the flag, or it would have asked for no connection
expect 0 connected status h1 "*[n['mode'] for n in s['neighbours'] if n['ip'] == '192.0.2.2']"
