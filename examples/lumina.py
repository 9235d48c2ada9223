#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# lumina.py [--requester HOST] [--responder HOST] CONFIG: reads the configuration of a test of Lumina
# (github.com/lumina-test/lumina), and prints its events as rules for `umbel run --faults`, below the
# commands of perftest that send its traffic. Settings of switches, servers and network cards are ignored, but for adaptive
# retransmission: the fabric has none of them. Needs PyYAML.

import argparse
import sys

import yaml

PROGRAMS = {'write': ['ib_write_bw'], 'send': ['ib_send_bw'], 'read': ['ib_read_bw'],
            'send_read': ['ib_send_bw', 'ib_read_bw']}
FAULTS = {'drop': 'drop', 'ecn': 'ecn', 'bit-error': 'corrupt'}
FEWEST = 5  # messages that perftest sends


class Wrong(Exception):
    pass


def value(of, name, least=0):
    if name not in of:
        raise Wrong('%s is missing' % name)
    if not isinstance(of[name], int) or isinstance(of[name], bool) or of[name] < least:
        raise Wrong('%s is %r, not a number from %d on' % (name, of[name], least))
    return of[name]


class Traffic:
    """The traffic: connections of one kind after those of another one, messages of one length."""

    def __init__(self, of):
        self.verb = str(of.get('rdma-verb', '')).strip().lower()
        if self.verb not in PROGRAMS:
            raise Wrong('rdma-verb is %r, not one of: %s' % (self.verb, ', '.join(PROGRAMS)))
        try:
            self.connections = [int(n) for n in str(of.get('num-qps', '')).split(',')]
        except ValueError:
            self.connections = []
        if len(self.connections) != len(PROGRAMS[self.verb]) or min(self.connections) < 1:
            raise Wrong('num-qps is %r, not a number%s' %
                        (of.get('num-qps'), ', a comma and a number' * (self.verb == 'send_read')))
        self.messages = value(of, 'num-msgs-per-qp', 1)
        self.bytes = value(of, 'message-size', 1)
        self.mtu = value(of, 'mtu', 256)
        self.depth = value(of, 'tx-depth', 1)
        self.timeout = value(of, 'min-retransmit-timeout')
        self.packets = -(-self.bytes // self.mtu)  # of a message

    def commands(self, hosts):
        for program, n in zip(PROGRAMS[self.verb], self.connections):
            options = '-q %d -n %d -s %d -m %d -t %d -u %d' % (
                n, max(self.messages, FEWEST), self.bytes, self.mtu, self.depth, self.timeout)
            yield 'umbel exec %s -- %s %s' % (hosts[1], program, options)
            yield 'umbel exec %s -- %s %s localhost' % (hosts[0], program, options)

    def sends_data(self, connection):
        """0: the requester; 1: the responder does, as with READ."""
        return int(self.verb == 'read' or self.verb == 'send_read' and connection >= self.connections[0])

    def rule(self, event, hosts):
        if not isinstance(event, dict):
            raise Wrong('%r is no event' % event)
        connection, round_ = value(event, 'qpn'), value(event, 'iter', 1)
        kind = event.get('type')
        if connection >= sum(self.connections):
            raise Wrong('there is no qpn %d' % connection)
        if kind not in FAULTS:
            raise Wrong('type is %r, not one of: %s' % (kind, ', '.join(FAULTS)))
        if self.depth > 1 and kind != 'ecn':
            raise Wrong('tx-depth is %d: then packets can only be marked (ecn)' % self.depth)
        chosen = 'qp=%s:#%d' % (hosts[self.sends_data(connection)], 1 + connection)
        if str(event.get('psn')).lower() == 'all':
            return '%s round=%d %s' % (chosen, round_, FAULTS[kind])
        psn = value(event, 'psn')
        if psn >= self.packets:
            raise Wrong('a message has %d packets: there is no psn %d' % (self.packets, psn))
        return '%s psn=+%d/%d round=%d count=%d %s' % (
            chosen, psn, self.packets, round_, self.messages, FAULTS[kind])


def is_adaptive(config):
    """Whether the requester sends again before its timeout is over."""
    requester = config.get('requester')
    parameters = requester.get('roce-parameters') if isinstance(requester, dict) else None
    return isinstance(parameters, dict) and bool(parameters.get('adaptive-retrans'))


def lines(path, hosts):
    with open(path, encoding='utf-8') as file:
        config = yaml.safe_load(file)
    if not isinstance(config, dict) or not isinstance(config.get('traffic'), dict):
        raise Wrong('there is no traffic')
    traffic = Traffic(config['traffic'])
    # what Lumina checks is go-back-N
    yield '# on umbel run --hosts 2 --set roce_selective_repeat=0%s --faults FILE' % (
        ' --set roce_adp_retrans=0' * (not is_adaptive(config)))
    for command in traffic.commands(hosts):
        yield '#     ' + command
    for event in config['traffic'].get('data-pkt-events') or []:
        yield traffic.rule(event, hosts)


def main():
    parser = argparse.ArgumentParser(description="Prints the events of a test of Lumina as rules for 'umbel run --faults'.")
    parser.add_argument('config', metavar='CONFIG', help="Lumina's YAML file")
    parser.add_argument('--requester', metavar='HOST', default='h1', help='the host that sends requests (h1)')
    parser.add_argument('--responder', metavar='HOST', default='h2', help='the host that answers (h2)')
    options = parser.parse_args()
    try:
        print('\n'.join(lines(options.config, (options.requester, options.responder))))
    except (Wrong, OSError, UnicodeDecodeError, yaml.YAMLError) as why:
        sys.exit('lumina.py: %s: %s' % (options.config, why))


if __name__ == '__main__':
    main()
