# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# One program on fabrics that come and go: what it has of each ends with it, once its contexts are closed.
import os
import subprocess
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD

ROUNDS = 5


def umbel(*arguments):
    subprocess.run(['umbel', *arguments], check=True, stdout=subprocess.DEVNULL, timeout=60)


def holdings():
    """Descriptors, and mappings of fabrics."""
    with open('/proc/self/maps') as maps:
        return len(os.listdir('/proc/self/fd')), sum('umbel-' in line for line in maps)


def use(device):
    with Context(name=device) as context, PD(context) as pd, MR(pd, 4096, 1):
        return context.query_device().node_guid


held = []
left = None  # a context that is still open when its fabric has ended, and is closed under the next
for turn in range(ROUNDS):
    name = get_device_list()[0].name.decode()
    guid = use(name)
    held.append(holdings())
    if left:
        left.close()
    left = Context(name=name)
    umbel('down')
    assert get_device_list() == [], 'there is no fabric'
    umbel('up', '--hosts', '2')
    assert use(name) == guid, 'the device of the next fabric has another GUID'
left.close()
use(name)
held.append(holdings())
# the first round has no context that is left
assert len(set(held[1:-1])) == 1, f'descriptors and mappings in each turn: {held}'
assert held[-1] == held[0], f'descriptors and mappings in each turn, and at last: {held}'
