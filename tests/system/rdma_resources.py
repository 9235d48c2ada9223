# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdma_resources.py: compares what `rdma resource` of iproute2 lists on all hosts with itself, and with
# what `umbel show` knows of the programs that run. Prints nothing, or fails.

import collections
import json
import subprocess
import sys

NUMBERS = {'pd': 'pdn', 'cq': 'cqn', 'qp': 'lqpn', 'cm_id': 'cm-idn', 'mr': 'mrn', 'ctx': 'ctxn', 'srq': 'srqn'}
CAP_NET_ADMIN = 12


def output(*command):
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout
    return json.loads(text or '[]')


def rdma(*command):
    return output('umbel', 'exec', '--', 'rdma', '-j', 'resource', 'show', *command)


def count(things):
    return sorted(collections.Counter(things).items())


listed = {kind: rdma(kind) for kind in NUMBERS}
by_number = {kind: {(o['ifname'], o[NUMBERS[kind]]): o for o in listed[kind]} for kind in NUMBERS}
for kind, objects in listed.items():
    assert objects, 'the test has no %s' % kind
    assert len(by_number[kind]) == len(objects), 'two of a number: %s' % objects
    assert all(o['pid'] and o['comm'] for o in objects), objects

# the summary has as many
for device in rdma():
    for kind in NUMBERS:
        own = [o for o in listed[kind] if o['ifname'] == device['ifname']]
        assert device[kind] == len(own), (device, kind, own)

# one by its number is what the list has
for kind, number in NUMBERS.items():
    for o in listed[kind][:3]:
        if kind in ('qp', 'cm_id') and 'port' not in o:
            continue
        where = ('link', '%s/%d' % (o['ifname'], o['port'])) if 'port' in o else ('dev', o['ifname'])
        alone = rdma(kind, *where, number, str(o[number]))
        assert [a[number] for a in alone] == [o[number]] and alone[0]['pid'] == o['pid'], (o, alone)
    by_link = kind in ('qp', 'cm_id')
    gone = rdma(kind, 'link' if by_link else 'dev', 'umbel_h1_0/1' if by_link else 'umbel_h1_0', number, '1048575')
    assert not gone, gone

# what is in something is in what there is, and of the same process
inside = collections.Counter()
for kind, of, number in (('mr', 'pd', 'pdn'), ('qp', 'pd', 'pdn'), ('srq', 'pd', 'pdn'), ('pd', 'ctx', 'ctxn'),
                         ('cq', 'ctx', 'ctxn')):
    for o in listed[kind]:
        whole = by_number[of][o['ifname'], o[number]]
        assert whole['pid'] == o['pid'], (o, whole)
        if of == 'pd':
            inside[o['ifname'], o[number]] += 1
for place, pd in by_number['pd'].items():
    assert pd['users'] == inside[place], (pd, inside[place])

# memory regions and their domains; keys are for who may configure networks
shown = [r for r in output('umbel', 'show', 'mrs', '--json') if 'window' not in r['access']]
assert count((r['pid'], r['length']) for r in shown) == count((r['pid'], r['mrlen']) for r in listed['mr'])
assert count(n for _, n in count((r['pid'], r['pd']) for r in shown)) == count(
    n for _, n in count((r['pid'], r['pdn']) for r in listed['mr']))
capable = int([line.split()[1] for line in open('/proc/self/status') if line.startswith('CapEff:')][0], 16)
if capable >> CAP_NET_ADMIN & 1:
    keys = [(r['pid'], int(str(r['lkey']), 16), int(str(r['rkey']), 16)) for r in listed['mr']]
    assert count(keys) == count((r['pid'], int(r['key'], 16), int(r['key'], 16)) for r in shown), keys
    hidden = output('setpriv', '--bounding-set', '-net_admin', 'umbel', 'exec', '--', 'rdma', '-j', 'resource', 'show',
                    'mr')
    assert len(hidden) == len(keys) and not any('lkey' in r or 'rkey' in r for r in hidden), hidden
else:
    assert not any('lkey' in r or 'rkey' in r for r in listed['mr']), listed['mr']

# queue pairs: port, state
qps = {int(q['qpn'], 16): q for q in output('umbel', 'show', 'qps', '--json')}
assert sorted(qps) == sorted(q['lqpn'] for q in listed['qp'])
for q in listed['qp']:
    own = qps[q['lqpn']]
    assert (q.get('port', 0), q['state'], q['pid'], q['ifname']) == (own['port'], own['state'], own['pid'],
                                                                    own['hca']), (q, own)

# identifiers of rdma_cm
there = [c for c in output('umbel', 'show', 'connections', '--json') if c['by'] == 'rdma_cm']
ids = [i for i in listed['cm_id'] if 'port' in i]
assert count((c['pid'], c['source'], c.get('destination', '0.0.0.0:0'), c['port']) for c in there if 'port' in c) == \
    count((i['pid'], i['src-addr'], i['dst-addr'], i['port']) for i in ids), (there, ids)
for i in ids:
    if i['state'] == 'LISTEN':
        assert 'lqpn' not in i and i['dst-addr'] == '0.0.0.0:0', i
    else:
        assert i['state'] == 'CONNECT' and i['qp-type'] == 'RC' and qps[i['lqpn']]['pid'] == i['pid'], i
everywhere = [i for i in listed['cm_id'] if 'port' not in i]
assert {(i['src-addr'], i['state'], i['ifname']) for i in everywhere} == \
    {('0.0.0.0:' + sys.argv[1], 'LISTEN', 'umbel_h%d_0' % h) for h in (1, 2, 3)}, everywhere
