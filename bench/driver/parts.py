# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is measured: the parts of the benchmark, each a bit of work for every round.

A part's round() yields samples: dictionaries, with the series they belong to. What they mean
for the goals is in goals.py.
"""

import json
import os
import re
import shutil
import subprocess
import time

from driver import mpi, ucx
from driver.broadcast import Broadcast
from driver.lab import Failed, base, free_port
from driver.programs import Programs

SIZES = (64, 256, 1024, 4096)
CONNECTED_SIZES = (64, 4096, 65536, 1 << 20)
THREADED_SIZES = (64, 4096)  # of processes with a second thread
RECEIVERS = {1: (1, 2, 8, 64), 2: (2, 8, 64)}
GROUPS = (1024, 8192)
QPS = (1000, 10000)
CQ_QPS = (100, 1000)
WIDE_HOSTS = 1300
CONNECTIONS = 10000  # connected queue pairs
JOINS = 1000  # a second
CONNECTS = (1, 32)  # that are under way at once
SUBNETS = {36: ("2", "--hosts", "36"), 648: ("2",), 3456: ("3", "--radix", "24")}  # by hosts
WIRE_SIZES = {64: 1500, 1024: 1500, 4096: 4500}  # bytes of a message: MTU of the wire
WIRE_CONNECTED = {64: 1500, 4096: 4500, 65536: 1500}  # likewise, of connected queue pairs
WIRE_GOODPUT = {4096: 4500, 65536: 1500, 1 << 20: 1500}  # likewise, by programs that sleep
PROCESSES = (1, 2, 4, 8)
WIRES = 1000  # connections between two hosts on RoCEv2
SUBNET_SECONDS = 60
GROWTH = (2000, 64)  # groups, and hosts, each of them a member of all
GROWTH_EVENTS = (("a host's link fails", "link", "down", "h2:1"),
                 ("a host's link returns", "link", "up", "h2:1"),
                 ("a trunk fails", "link", "down", "sw1:1"),
                 ("a trunk returns", "link", "up", "sw1:1"),
                 ("a switch dies", "switch", "kill", "sw1"),
                 ("a switch returns", "switch", "revive", "sw1"))
GROWTH_END = "all members are killed"
JOIN_HOSTS = 648
JOIN_GROUPS = (1, 100, 10000)


def crowded(lab, what, number):
    """A fabric with so many groups or queue pairs, made once."""
    name = f"{what}-{number}"
    if name not in lab.fabrics:
        fabric = lab.fabric(name, "--hosts", "4", "--set", "max_mcast_grp=32768")
        fabric.fill(what, number)
    return lab.fabrics[name]


def tag(samples, **what):
    for sample in samples:
        yield {**sample, **what}


class Latency:
    """64-byte messages there and back: a raw ring, UDP, ibv_post_send, ibv_wr"""
    name = "latency"

    def round(self, lab):
        yield from base(lab).run("links", "--turns", 10, "latency",
                                 "ring", "umbel", "umbel-wr", "udp")


class Rate:
    """messages a second and bandwidth, 64 bytes to 4 KiB"""
    name = "rate"

    def round(self, lab):
        for size in SIZES:
            yield from base(lab).run("links", "--turns", 3, "--bytes", size, "rate",
                                     "ring", "umbel:32", "umbel", "umbel-wr:32", "udp:32")


class Connected:
    """RC: RDMA WRITE, READ, atomics and SEND, 64 bytes to 1 MiB, beside raw copies and UCX"""
    name = "connected"
    enough_of_ucx = 3

    def __init__(self):
        self.rounds = 0

    def round(self, lab):
        self.rounds += 1
        yield from base(lab).run("links", "--turns", 4, "latency",
                                 "ring", "rc-write", "umbel", "rc-send")
        yield from base(lab).run("links", "--turns", 2, "rate",
                                 "umbel:32", "rc-write:32", "rc-write", "rc-send:32", "rc-send")
        for size in CONNECTED_SIZES:
            yield from base(lab).run("connected", "--turns", 2, "--bytes", size)
        for size in THREADED_SIZES:
            yield from tag(base(lab).run("connected", "--turns", 2, "--threaded", "--bytes", size),
                           series="threaded")
            yield from tag(base(lab).run("connected", "--turns", 2, "--threaded", "--shared",
                                         "--bytes", size), series="threaded, shared")
        for size in CONNECTED_SIZES[2:]:
            yield from tag(base(lab).run("connected", "--turns", 2, "--shared", "--bytes", size),
                           series="shared")
        if self.rounds <= self.enough_of_ucx:
            yield from self.ucx(lab)

    def ucx(self, lab):
        """UCX's own shared memory, which its users have when there is no card."""
        for test, via, how, size in (("am_lat", "posix", "short", 64),
                                     ("am_bw", "posix", "short", 64),
                                     ("put_bw", "cma", "zcopy", 65536),
                                     ("put_bw", "cma", "zcopy", 1 << 20)):
            messages = 500000 if size == 64 else 2**31 // size
            yield {"measure": "ucx", "test": test, "bytes": size,
                   "ns": ucx.perftest(lab, test, size, messages, "-d", "memory", "-x", via,
                                      "-D", how)}


class Checked:
    """RC SEND where `umbel exec --checked` tells what is wrong, beside the same program without"""
    name = "checked"
    enough = 5

    def round(self, lab):
        for over, options in (("plain", ()), ("checked", ("--checked=warn",))):
            for program, *arguments in (("links", "--turns", 2, "latency", "rc-send"),
                                        ("connected", "--turns", 1, "--bytes", 65536)):
                command = base(lab).exec(lab.program(program), *map(str, arguments),
                                         options=options)
                yield from tag(lab.samples(command), over=over)


class Mpi:
    """Open MPI over UCX and RC, beside Open MPI's own shared memory"""
    name = "mpi"
    enough = 3

    def round(self, lab):
        for over, how in (("umbel", mpi.UCX), ("shared", mpi.SHARED)):
            yield from tag(mpi.run(base(lab), 2, how, "pair", pinned=True), over=over)


class Fanout:
    """what each further receiver costs the sender"""
    name = "fanout"

    def round(self, lab):
        for size in (64, 4096):
            for processes, counts in RECEIVERS.items():
                for qps in counts:
                    yield from base(lab).run("fanout", "--turns", 2, "--bytes", size,
                                             "--qps", qps, "--processes", processes)
            for qps in RECEIVERS[1]:
                yield from base(lab).run("fanout", "--turns", 2, "--bytes", size,
                                         "--qps", qps, "--bare")


class Flat:
    """whether size matters: groups, queue pairs, switches, the daemon at work"""
    name = "flat"

    def measure(self, fabric, series, *options):
        for what, link in (("latency", "umbel"), ("rate", "umbel:32")):
            yield from tag(fabric.run("links", "--turns", 2, *options, what, link),
                           series=series)

    def base(self, lab):
        return self.measure(base(lab), "base")

    def round(self, lab):
        for number in GROUPS:
            yield from self.base(lab)
            yield from self.measure(crowded(lab, "groups", number), f"groups-{number}")
        for number in QPS:
            yield from self.base(lab)
            yield from self.measure(crowded(lab, "qps", number), f"qps-{number}")
        for number in CQ_QPS:
            yield from self.base(lab)
            yield from self.measure(base(lab), f"cq-{number}", "--cq-qps", number)
        for series, fabric in (("base", base(lab)),
                               ("connections", crowded(lab, "connections", CONNECTIONS))):
            yield from tag(fabric.run("links", "--turns", 2, "latency", "rc-send", "rc-write"),
                           series=series)
        yield from self.base(lab)
        yield from self.wide(lab)
        yield from self.base(lab)
        yield from self.busy(lab)

    def wide(self, lab):
        """From the first host to the last; how many switches that takes is the fabric's."""
        fabric = lab.fabric("wide", "--hosts", str(WIDE_HOSTS))
        if not hasattr(self, "switches"):
            self.switches = switches_between(fabric.show("topology"))
        last = WIDE_HOSTS - 1
        for sample in self.measure(fabric, "wide", "--to",
                                   f"10.0.{last // 254}.{last % 254 + 1}"):
            yield {**sample, "switches": self.switches}

    def busy(self, lab):
        fabric = lab.fabric("busy", "--hosts", "4")
        fabric.fill("joins", JOINS)
        begin = time.time()
        samples = list(self.measure(fabric, "busy"))
        took = time.time() - begin
        yield from tag(samples, joins=fabric.dismiss()["n"] / took)


def switches_between(topology):
    """Switches on the path from the first host to the last: breadth first, over names."""
    links = {n["name"]: [p["peer"] for p in n["ports"] if p.get("peer")]
             for n in topology["nodes"]}
    hosts = [n["name"] for n in topology["nodes"] if n["type"] == "host"]
    reached, edge, steps = {hosts[0]}, {hosts[0]}, 0
    while edge and hosts[-1] not in edge:
        edge = {peer for name in edge for peer in links.get(name, ())} - reached
        reached |= edge
        steps += 1
    return steps - 1


class Blocking:
    """receivers that sleep: a completion channel beside a bare eventfd"""
    name = "blocking"

    def round(self, lab):
        yield from base(lab).run("links", "--turns", 2, "latency", "eventfd", "umbel-event")
        yield from base(lab).run("control", "quiet")


class Control:
    """address handles, attach and detach, connections, a process's and a fabric's start"""
    name = "control"

    def round(self, lab):
        full = crowded(lab, "groups", 8192)
        for what in ("request", "ah", "attach", "exec", "first"):
            yield from base(lab).run("control", what)
        yield from tag(full.run("control", "attach"), series="groups-8192")
        for at_once in CONNECTS:
            yield from base(lab).run("connections", 100 * at_once + 500, at_once)
        begin = time.perf_counter()
        lab.call("run", "--", "true")
        yield {"measure": "up", "ms": (time.perf_counter() - begin) * 1000}


def status_bytes(pid, key):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(rf"^{key}:\s+(\d+) kB", f.read(), re.M).group(1)) * 1024


def shared_bytes(pid):
    """What the daemon's shared memory takes: its memfds."""
    fds, seen = f"/proc/{pid}/fd", {}
    for fd in os.listdir(fds):
        path = os.path.join(fds, fd)
        if os.readlink(path).startswith("/memfd:"):
            stat = os.stat(path)
            seen[stat.st_ino] = stat.st_blocks * 512
    return sum(seen.values())


class Memory:
    """an idle fabric, an idle queue pair, ten thousand of them at work"""
    name = "memory"
    qps = 10000
    enough = 3

    def round(self, lab):
        fabric = lab.fabric("memory", "--hosts", "4")
        pid = fabric.status()["pid"]
        yield {"measure": "idle", "bytes": status_bytes(pid, "VmRSS")}
        before = status_bytes(pid, "RssAnon") + shared_bytes(pid)
        private = fabric.fill("qps", self.qps)["private_bytes"]
        after = status_bytes(pid, "RssAnon") + shared_bytes(pid)
        queues = fabric.status()["ring_bytes"]
        yield {"measure": "qp", "bytes": (after - before + private - queues) / self.qps,
               "private": private / self.qps, "queues": queues / self.qps}
        yield fabric.ask()
        fabric.down()
        del lab.fabrics["memory"]
        yield from self.connections(lab)

    def connections(self, lab):
        fabric = lab.fabric("memory", "--hosts", "4")
        fabric.fill("connections", 2)
        alone = fabric.ask()["region_us"]
        fabric.dismiss()
        pid = fabric.status()["pid"]
        before = status_bytes(pid, "RssAnon") + shared_bytes(pid)
        private = fabric.fill("connections", CONNECTIONS)["private_bytes"]
        after = status_bytes(pid, "RssAnon") + shared_bytes(pid)
        queues = fabric.status()["ring_bytes"]
        yield {"measure": "connected", "bytes": (after - before + private - queues) / CONNECTIONS,
               "queues": queues / CONNECTIONS}
        yield {**fabric.ask(), "alone_us": alone}
        fabric.down()
        del lab.fabrics["memory"]


class Perftest:
    """what Debian's ib_send_lat and ib_send_bw report, unmodified"""
    name = "perftest"
    enough = 6

    def pair(self, lab, *command):
        """Runs a server on h1 and a client on h2. What the client printed; None: no end."""
        port = str(free_port())
        server = subprocess.Popen(
            base(lab).exec("taskset", "-c", "1", "stdbuf", "-oL", *command, "-p", port,
                           host="h1"),
            env=lab.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            for line in server.stdout:
                if "Waiting for client" in line:
                    break
            client = subprocess.run(
                base(lab).exec("taskset", "-c", "0", *command, "-p", port, "127.0.0.1",
                               host="h2"),
                env=lab.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                timeout=5)
            if client.returncode:
                raise Failed(f"{command[0]}: {client.stdout.strip()[-300:]}")
            server.communicate(timeout=30)
            return client.stdout
        except subprocess.TimeoutExpired:
            return None
        finally:
            server.kill()
            server.wait()

    def line(self, lab):
        """The floor right now."""
        samples = base(lab).run("links", "--turns", 1, "--exchanges", 100, "latency", "ring")
        return next(s["line"][1] for s in samples if "line" in s)

    def measure(self, lab, what, *options):
        """The columns of the line under the heading, and the floors; or what went wrong."""
        before = self.line(lab)
        text = self.pair(lab, what, "-c", "UD", "-F", *options)
        if not text:
            return {"cannot": f"{what} -c UD waited for ever for messages that were lost: its "
                              "sender overran its receiver."}
        lines = text.splitlines()
        at = next(i for i, line in enumerate(lines) if line.lstrip().startswith("#bytes"))
        return {"measure": what, "columns": [float(x) for x in lines[at + 1].split()],
                "line": [before, self.line(lab)]}

    def round(self, lab):
        lat = self.measure(lab, "ib_send_lat", "-s", "64", "-n", "100000")
        if "columns" in lat:
            lat.update(ns=lat["columns"][4] * 1000, p99=lat["columns"][7] * 1000)
        yield lat
        for size in (64, 4096):
            bw = self.measure(lab, "ib_send_bw", "-s", str(size), "-n", "200000")
            if "columns" in bw:
                bw.update(bytes=size, MB=bw["columns"][3], M=bw["columns"][4])
            yield bw


class Roce:
    """RoCEv2 between two hosts beside UDP sockets and TCP: latency, rate, receiving processes"""
    name = "roce"

    def links(self, lab, size, mtu, cut, what, *links):
        return tag(lab.wire(mtu, cut, "links", "--turns", 5, "--bytes", size,
                            "--device", "eth0", "--from", "192.0.2.1", "--to", "192.0.2.2",
                            what, *links), cut=cut)

    def connected(self, lab):
        for size, mtu in WIRE_CONNECTED.items():
            others = ("udp", "tcp") if size in WIRE_SIZES else ("tcp",)
            yield from self.links(lab, size, mtu, False, "latency", "--exchanges", 1000,
                                  "rc-send", "rc-write", *others)
            yield from self.links(lab, size, mtu, False, "rate", "rc-send:32", "rc-write:32",
                                  *(f"{other}:32" for other in others))

    def round(self, lab):
        yield from tag(self.connected(lab), series="connected")
        yield from lab.wire(1500, False, "wires", WIRES)
        for size, mtu in WIRE_GOODPUT.items():
            yield from lab.wire(mtu, False, "goodput", size)
        for size in WIRE_SIZES:
            mtu = WIRE_SIZES[size]
            yield from self.links(lab, size, mtu, False, "latency", "roce", "udp")
            for cut in (False, True):
                yield from self.links(lab, size, mtu, cut, "rate", "roce:32", "udp:32")
        for number in PROCESSES:
            yield from lab.wire(1500, False, "receivers", "--turns", 3, "--processes", number)


class Ipoib:
    """TCP between two hosts with interfaces: over IPoIB in either mode, beside a veth pair between them"""
    name = "ipoib"

    def round(self, lab):
        for mode in ("datagram", "connected"):
            yield from self.mode(lab, mode)

    def mode(self, lab, mode):
        fabric = lab.fabric(mode, "--hosts", "2", "--ipoib", "--set", f"ipoib_mode={mode}")
        with Server(fabric, "h2") as server:
            fabric.shell("h1", "ip link add wire type veth peer name wire "
                         f"netns {server.process.pid}")
            try:
                for host, address in (("h1", "192.0.2.1"), ("h2", "192.0.2.2")):
                    fabric.shell(host, f"ip addr add {address}/24 dev wire; ip link set wire up")
                for link, address in (("ipoib", "10.0.0.2"), ("veth", "192.0.2.2")):
                    yield from tag(lab.samples(fabric.exec(
                        lab.program("sockets"), "measure", link, address, str(server.port),
                        host="h1")), mode=mode)
            finally:
                fabric.shell("h1", "ip link delete wire")


class Server:
    """bench/sockets.c, on a host."""

    def __init__(self, fabric, host):
        self.process = subprocess.Popen(
            fabric.exec(fabric.lab.program("sockets"), "serve", host=host),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=fabric.lab.env, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"no server on {host}")
        self.port = json.loads(line)["port"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Subnet:
    """the embedded subnet manager beside OpenSM: bringing a fabric up, joins, memory"""
    name = "subnet"
    slow = True  # a quarter of a minute a round
    enough = 2

    def round(self, lab):
        for hosts, shape in SUBNETS.items():
            for manager in (Embedded, OpenSM):
                yield from tag(self.measure(lab, shape, manager, hosts), sm=manager.name,
                               hosts=hosts)

    def measure(self, lab, shape, manager, hosts):
        """A fabric without a subnet manager, until it has one, and what that one can do."""
        fabric = lab.fabric("subnet", "--fat-tree", *shape, "--sm", "none")
        pid = fabric.status()["pid"]
        with manager(fabric) as sm:
            before, begin = cpu_ms(pid), time.perf_counter()
            sm.start()
            ports = wait_active(fabric, sm)
            yield {"measure": "start", "ms": (time.perf_counter() - begin) * 1000,
                   "cpu_ms": cpu_ms(pid) - before, "ports": ports, "hops": 2 * int(shape[0])}
            yield {"measure": "resident", "bytes": status_bytes(sm.pid or pid, "VmRSS")}
            if hosts == JOIN_HOSTS:
                for groups in JOIN_GROUPS:
                    yield from fabric.run("joins", "--groups", groups, "--hosts", hosts)
        fabric.down()
        del lab.fabrics["subnet"]


class Growth:
    """thousands of groups: joins, and how long the daemon lets others wait when links fail"""
    name = "growth"
    slow = True
    enough = 2

    def round(self, lab):
        groups, hosts = GROWTH
        fabric = lab.fabric("growth", "--hosts", str(hosts), "--set", "max_mcast_grp=32768")
        yield fabric.fill(groups, hosts, hosts, program="growth")
        yield fabric.ask(f"send {groups // 2}")
        fabric.ask("flows 2")
        for event, *command in GROWTH_EVENTS:
            with Waiting(fabric, event) as waiting:
                lab.call(command[0], "--name", fabric.name, *command[1:])
            yield waiting.sample
        with Waiting(fabric, GROWTH_END) as waiting:
            fabric.kill()
            while fabric.status()["qps"] > 1:  # of who waits
                time.sleep(0.01)
        yield waiting.sample


class Waiting:
    """A program that asks the daemon for small things while something happens: how long it was
    let wait at most."""

    def __init__(self, fabric, event):
        self.fabric = fabric
        self.event = event

    def __enter__(self):
        self.process = self.fabric.start("growth", "ask", self.fabric.status()["pid"])
        if not self.process.stdout.readline():
            raise Failed("nobody asks the daemon")
        return self

    def __exit__(self, *_):
        said, _ = self.process.communicate()
        self.sample = {**json.loads(said), "event": self.event}


def cpu_ms(pid):
    """The processor time that a process of one thread has had."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e6


def wait_active(fabric, sm):
    """Until all ports with a cable are ACTIVE. How many there are. Looks so seldom that looking
    takes little of the time, and so often that it lasts at most a fiftieth longer."""
    begin = time.perf_counter()
    while True:
        ports = fabric.status()["ports"]
        if not any(n for state, n in ports.items() if state != "active"):
            return ports["active"]
        took = time.perf_counter() - begin
        if took > SUBNET_SECONDS:
            raise Failed(f"{sm.name}: not all ports are active after {took:.0f} s: {ports}")
        time.sleep(max(0.001, took / 50))


class Embedded:
    """The daemon's own."""
    name = "embedded"
    pid = None  # of a process of its own

    def __init__(self, fabric):
        self.fabric = fabric

    def start(self):
        self.fabric.lab.call("sm", "--name", self.fabric.name, "start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class OpenSM:
    """Debian's, on host h1, with what it keeps in a directory that is new each time."""
    name = "opensm"

    def __init__(self, fabric):
        self.fabric = fabric
        self.process = self.pid = None

    def start(self):
        cache = os.path.join(self.fabric.lab.directory, "opensm")
        shutil.rmtree(cache, ignore_errors=True)
        os.mkdir(cache)
        try:
            self.process = subprocess.Popen(
                self.fabric.exec("opensm", "-f", os.path.join(cache, "log"), host="h1"),
                env={**self.fabric.lab.env, "OSM_CACHE_DIR": cache, "OSM_TMP_DIR": cache},
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except OSError as e:
            raise Failed(f"opensm: {e.strerror}") from None
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()


PARTS = (Latency, Rate, Connected, Checked, Mpi, Programs, Broadcast, Fanout, Flat, Blocking, Control,
         Memory, Perftest, Roce, Ipoib, Subnet, Growth)
