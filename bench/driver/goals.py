# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The goals: one row each of the table, from the samples of a run."""

from driver.broadcast import RECEIVERS, Broadcast
from driver.parts import (CONNECTED_SIZES, CONNECTIONS, CONNECTS, CQ_QPS, GROUPS, GROWTH,
                          GROWTH_END, GROWTH_EVENTS, JOIN_GROUPS, JOINS, PROCESSES, QPS, SUBNETS,
                          THREADED_SIZES, WIRES, WIRE_CONNECTED, WIRE_GOODPUT, WIRE_SIZES)
from driver.programs import CLIENTS, FIO_SIZES, FIO_VERBS, MPI_SIZES, MPIS, UCX_TESTS

LINE_OF_RATE = 50  # ns: the goal for the rate is stated for a line that takes so long
UCX_RATE = 23.0    # million a second: UCX's shared-memory active messages, measured elsewhere
CONNECTION_RATE = 20000  # a second
SIZES_OF_FANOUT = ((64, 12), (4096, 18))  # bytes, ns each receiver more may take
UCX_GOALS = {("tag_lat", 8): 1.2, ("ucp_put_lat", 8): 2, ("ucp_put_bw", 65536): 0.8}


def ns(x):
    return f"{x:,.0f} ns" if x < 10000 else f"{x / 1000:,.1f} us"


def rate(x):
    return f"{x:,.1f} M/s" if x >= 1 else f"{x:,.2f} M/s"


def size(x):
    if x >= 2**20:
        return f"{x / 2**20:,.1f} MiB"
    return f"{x // 1024} KiB" if x >= 2**12 and x % 1024 == 0 else f"{x:,.0f} B"


class Row:
    """measured: a Figure or None; form: how to write it; goal and met: None without a goal."""

    def __init__(self, what, measured, form, reference="", ratio=None, goal="", met=None):
        self.what = what
        self.figure = measured
        self.measured = form(measured.median) if measured else "no clean sample"
        self.reference = reference
        self.ratio = ratio
        self.goal = goal
        self.met = met if measured else None

    def json(self):
        return {"what": self.what, "measured": self.measured,
                "figure": self.figure and self.figure.json(), "reference": self.reference,
                "ratio": self.ratio, "goal": self.goal, "met": self.met}


def at_most(what, measured, form, limit, reference="", ratio=None):
    met = measured and measured.median <= limit
    return Row(what, measured, form, reference, ratio, f"at most {form(limit)}", met)


def compared(what, samples, field, one, other, name, limit, form=ns, invert=False):
    """A row whose goal is a ratio to something measured beside it; limit None: there is no goal.
    invert: more is better."""
    one, other = samples.select(**one), samples.select(**other)

    def how(a, b):
        return b["ns"] / a[field] if invert else a[field] / b["ns"]

    goal = "" if limit is None else f"at {'least' if invert else 'most'} {limit:g}"
    ratio = samples.compare(one, other, how)
    if not ratio:
        return Row(what, None, form, goal=goal)
    pairs = samples.pairs(one, other)
    value = samples.compare(one, other, lambda a, b: a[field])
    reference = sorted(b["ns"] for _, b in pairs)[len(pairs) // 2]
    met = None
    if limit is not None:
        met = ratio.median >= limit if invert else ratio.median <= limit
    return Row(what, value, form, f"{name} {form(reference)}", ratio.median, goal, met)


def latency(s):
    for link, what in (("umbel", "64 B, ibv_post_send to ibv_poll_cq"),
                       ("umbel-wr", "64 B, ibv_wr and extended CQ")):
        mine = dict(part="latency", measure="latency", link=link)
        ring = dict(part="latency", measure="latency", link="ring")
        udp = dict(part="latency", measure="latency", link="udp")
        yield compared(f"{what}, one way", s, "ns", mine, ring, "raw ring", 2.0)
        yield compared(f"{what}, p99", s, "p99", mine, ring, "raw ring", 3.0)
        yield compared(f"{what}, faster than UDP", s, "ns", mine, udp, "UDP", 20, invert=True)


def to_rate(x):
    return rate(1000 / x)


def absolute_rate(s, what, link, of_list, goal, part="rate"):
    figure = s.figure("ns", part=part, measure="rate", link=link, list=of_list, bytes=64)
    if not figure:
        return Row(what, None, to_rate, goal=f"at least {rate(goal)}")
    # in a farther placement as much less as its lines take longer
    wanted = goal * min(1, LINE_OF_RATE * 1.2 / figure.line)
    got = 1000 / figure.median
    return Row(what, figure, to_rate, "", None,
               f"at least {rate(wanted)}", got >= wanted)


def rates(s):
    mine = dict(part="rate", measure="rate", link="umbel", bytes=64, list=32)
    udp = dict(part="rate", measure="rate", link="udp", bytes=64)
    yield absolute_rate(s, "64 B in lists of 32", "umbel", 32, 20)
    yield compared("64 B in lists of 32, beside UDP", s, "ns", mine, udp, "UDP", 60,
                   form=to_rate, invert=True)
    yield absolute_rate(s, "64 B in lists of 32, beside UCX", "umbel", 32, UCX_RATE)
    yield absolute_rate(s, "64 B unlisted", "umbel", 1, 10)
    yield compared("4 KiB in lists of 32", s, "ns", {**mine, "bytes": 4096},
                   dict(part="rate", measure="rate", link="ring", bytes=4096),
                   "raw ring", 0.9, form=lambda x: f"{4096 / x:,.1f} GB/s", invert=True)


def bandwidth(bytes, digits=1):
    """How to write the nanoseconds that so many bytes take."""
    return lambda x: f"{bytes / x:,.{digits}f} GB/s"


def beside_lines(what, figure, limit):
    """A row whose goal is how many times as long as a cache line's way it may take."""
    ratio = figure and figure.median / figure.line
    return Row(what, figure, ns, f"a line {ns(figure.line)}" if figure else "", ratio,
               f"at most {limit:g}", figure and ratio <= limit)


def beside_ucx(s, what, mine, test, bytes, form, limit, invert=False):
    """A row beside UCX's own shared memory, which knows no placement: medians are compared."""
    mine, ucx = s.figure("ns", **mine), s.figure("ns", measure="ucx", test=test, bytes=bytes)
    if not mine or not ucx:
        return Row(what, None, form)
    ratio = ucx.median / mine.median if invert else mine.median / ucx.median
    return Row(what, mine, form, f"UCX {form(ucx.median)}", ratio,
               f"at {'least' if invert else 'most'} {limit:g}",
               ratio >= limit if invert else ratio <= limit)


def connected_rates(s):
    """As absolute_rate(): the goals are for near lines."""
    for link, of_list, what, goal in (("rc-write", 32, "RDMA WRITE, 64 B in lists of 32", 40),
                                      ("rc-write", 1, "RDMA WRITE, 64 B unlisted", 25)):
        yield absolute_rate(s, what, link, of_list, goal, part="connected")
    mine = dict(part="connected", measure="rate", link="rc-send", list=32)
    yield compared("SEND, 64 B in lists of 32, beside UD's", s, "ns", mine,
                   dict(part="connected", measure="rate", link="umbel", list=32), "UD", 0.8,
                   form=to_rate, invert=True)
    yield beside_ucx(s, "SEND, 64 B in lists of 32, beside UCX's active messages", mine, "am_bw",
                     64, to_rate, 1, invert=True)


def connected_threads(s, series, whose, bytes):
    """Beside one bare system call for the same pieces."""
    for what, how in (("", ""), ("-list", " in lists of 32")):
        for operation in ("write", "read"):
            yield compared(f"RDMA {operation.upper()}, {size(bytes)}{how}, {whose}", s, "ns",
                           series(operation + what, bytes, whose),
                           series(f"raw-{operation}{what}", bytes, whose),
                           f"process_vm_{operation}v", 0.9,
                           form=to_rate if bytes == 64 else bandwidth(bytes), invert=True)


def connected(s):
    """RC beside the copies that it is made of, and beside what UCX does without a card."""
    def link(name):
        return dict(part="connected", measure="latency", link=name)

    def series(operation, bytes, of=None):
        return dict(part="connected", measure="connected", operation=operation, bytes=bytes,
                    series=of)

    write = link("rc-write")
    yield compared("RDMA WRITE, 64 B, until the other side sees it", s, "ns", write, link("ring"),
                   "raw ring", 1.3)
    yield beside_ucx(s, "RDMA WRITE, 64 B, beside UCX's active messages", write, "am_lat", 64, ns,
                     1)
    yield compared("SEND, 64 B, one way", s, "ns", link("rc-send"), link("umbel"), "UD", 1.15)
    yield beside_lines("RDMA READ, 64 B, to its completion",
                       s.figure("ns", **series("read", 64)), 1.25)
    yield beside_lines("fetch-and-add, to its completion",
                       s.figure("ns", **series("fetch-add", 64)), 2)
    yield from connected_rates(s)
    for bytes in CONNECTED_SIZES[1:]:
        for operation in ("write", "read"):
            yield compared(f"RDMA {operation.upper()}, {size(bytes)}", s, "ns",
                           series(operation, bytes), series("memcpy", bytes), "memcpy",
                           0.6 if bytes == 4096 else 0.9, form=bandwidth(bytes), invert=True)
    for whose in ("threaded", "threaded, shared"):
        for bytes in THREADED_SIZES:
            yield from connected_threads(s, series, whose, bytes)
    for bytes in CONNECTED_SIZES[2:]:
        yield beside_ucx(s, f"RDMA WRITE, {size(bytes)}, beside UCX over CMA",
                         series("write", bytes), "put_bw", bytes, bandwidth(bytes), 1,
                         invert=True)
        for operation in ("write", "read"):
            yield compared(f"RDMA {operation.upper()}, {size(bytes)}, memory shared already", s,
                           "ns", series(operation, bytes, "shared"),
                           series(f"raw-{operation}", bytes, "shared"),
                           f"process_vm_{operation}v", 0.95, form=bandwidth(bytes), invert=True)
    for bytes in CONNECTED_SIZES[2:]:
        yield compared(f"SEND, {size(bytes)}, one way", s, "ns", series("send", bytes),
                       series("memcpy", bytes), "memcpy", 0.9, form=bandwidth(bytes), invert=True)


def checked(s):
    def mine(over, **what):
        return dict(part="checked", over=over, **what)

    short, long = dict(measure="latency", link="rc-send"), dict(operation="send", bytes=65536)
    yield compared("checked SEND, 64 B, one way", s, "ns", mine("checked", **short),
                   mine("plain", **short), "not checked", 10)
    yield compared(f"checked SEND, {size(65536)}", s, "ns", mine("checked", **long),
                   mine("plain", **long), "not checked", 3, form=bandwidth(65536))


def mpi(s):
    for bytes, what, limit, form in ((8, "8 B, one way", 1.6, ns),
                                     (1 << 20, "1.0 MiB, many", 1, bandwidth(1 << 20))):
        yield compared(f"Open MPI over UCX and RC, {what}", s, "ns",
                       dict(part="mpi", over="umbel", bytes=bytes),
                       dict(part="mpi", over="shared", bytes=bytes), "its shared memory", limit,
                       form=form, invert=bytes > 8)


def beside_alone(s, what, name, mine, other=None, form=ns, invert=True, limit=None):
    """A row of a program over Umbel and over what it has without."""
    return compared(what, s, "ns", dict(part="programs", over="umbel", **mine),
                    dict(part="programs", over="alone", **(other or mine)), name, limit, form,
                    invert)


def programs(s):
    for library, name in MPIS.items():
        for bytes in MPI_SIZES:
            short = bytes == MPI_SIZES[0]
            yield beside_alone(s, f"{name}, {size(bytes)}{', one way' if short else ', many'}",
                               "its shared memory", dict(program=library, bytes=bytes),
                               form=ns if short else bandwidth(bytes), invert=not short,
                               limit=1.6 if short else None)
    for test, bytes, _ in UCX_TESTS:
        late = test.endswith("lat")
        yield beside_alone(s, f"ucx_perftest {test}, {size(bytes)}", "UCX's shared memory",
                           dict(program="ucx", test=test),
                           form=ns if late else bandwidth(bytes), invert=not late,
                           limit=UCX_GOALS.get((test, bytes)))
    for bytes in FIO_SIZES:
        for verb in FIO_VERBS:
            block = dict(program="fio", bytes=bytes)
            yield beside_alone(s, f"fio, RDMA {verb.upper()}, {size(bytes)}", "TCP on lo",
                               dict(block, verb=verb), block, form=bandwidth(bytes, 2))
    yield beside_alone(s, "iperf3 on rsockets, one stream", "TCP on lo", dict(program="iperf3"),
                       form=bandwidth(1, 2))
    for clients in CLIENTS:
        yield beside_alone(s, f"redis on rsockets, GET, {clients} client{'s' * (clients > 1)}",
                           "TCP on lo", dict(program="redis", clients=clients),
                           form=each_second)


def broadcast(s):
    """What each receiver gets a second."""
    def each(x):
        return f"{Broadcast.bytes / x:,.2f} GB/s"

    for receivers in RECEIVERS:
        example, ucx, tcp = (dict(part="broadcast", over=over, receivers=receivers)
                             for over in ("example", "ucx", "tcp"))
        yield compared(f"multicast and READ, {receivers} receivers, each", s, "ns", example, tcp,
                       "MPI over TCP", 1, form=each, invert=True)
        yield compared(f"multicast and READ, {receivers} receivers, beside UCX", s, "ns", example,
                       ucx, "MPI over UCX", 1, form=each, invert=True)
        mine, other = s.figure("ns", **ucx), s.figure("ns", **tcp)
        yield Row(f"MPI_Bcast over UCX and RC, {receivers} receivers, each", mine, each,
                  f"MPI over TCP {each(other.median)}" if other else "",
                  mine and other and other.median / mine.median)


def fanout_cost(s, bytes, processes, qps, measure="fanout"):
    """What each receiver after the first costs the sender."""
    one = s.select(measure=measure, bytes=bytes, processes=1, qps=1)
    many = s.select(measure=measure, bytes=bytes, processes=processes, qps=qps)
    return s.compare(many, one, lambda a, b: (a["ns"] - b["ns"]) / (qps - 1))


def fanout(s):
    for bytes, limit in SIZES_OF_FANOUT:
        for processes in (1, 2):
            costs = [(fanout_cost(s, bytes, processes, qps), qps) for qps in (8, 64)]
            worst, qps = max(costs, key=lambda c: c[0].median if c[0] else 0)
            name = "64 B" if bytes == 64 else "4 KiB"
            where = "one process" if processes == 1 else "two processes"
            bare = fanout_cost(s, bytes, 1, qps, "bare fanout")
            yield at_most(f"{name}, each receiver more, of {qps} in {where}", worst,
                          lambda x: f"{x:,.1f} ns", limit,
                          f"bare rings {bare.median:,.1f} ns" if bare else "",
                          worst and bare and worst.median / bare.median)


def flat_compare(s, series, measure, how=None):
    """Against the plain fabric: of latency the time, of rate the messages a second."""
    def ratio(a, b):
        return a["ns"] / b["ns"] if measure == "latency" else b["ns"] / a["ns"]

    return s.compare(s.select(part="flat", measure=measure, series=series),
                     s.select(part="flat", measure=measure, series="base"), how or ratio)


def flat(s):
    wide = s.select(part="flat", series="wide", measure="latency")
    switches = wide[0]["switches"] if wide else 5
    variants = ((f"groups-{GROUPS[-1]}", f"{GROUPS[-1]:,} groups"),
                (f"qps-{QPS[-1]}", f"{QPS[-1]:,} QPs on the fabric"),
                (f"cq-{CQ_QPS[-1]}", f"{CQ_QPS[-1]:,} QPs on the CQ"),
                ("wide", f"{switches} switches on the path"),
                ("busy", f"daemon busy, {JOINS:,} joins/s"))
    for series, what in variants:
        for measure, form in (("latency", ns), ("rate", to_rate)):
            ratio = flat_compare(s, series, measure)
            value = flat_compare(s, series, measure, lambda a, b: a["ns"])
            base = flat_compare(s, series, measure, lambda a, b: b["ns"])
            low = measure == "latency"
            goal = "at most 1.1" if low else "at least 0.9"
            if not ratio:
                yield Row(f"{measure}, {what}", None, form, goal=goal)
                continue
            met = ratio.median <= 1.1 if low else ratio.median >= 0.9
            if series == "wide" and switches < 5:
                met = False
            yield Row(f"{measure}, {what}", value, form, f"without {form(base.median)}",
                      ratio.median, goal, met)
    for link, what in (("rc-send", "SEND"), ("rc-write", "RDMA WRITE")):
        mine = dict(part="flat", measure="latency", link=link)
        yield compared(f"RC {what}, {CONNECTIONS:,} connected QPs on the fabric", s, "ns",
                       dict(mine, series="connections"), dict(mine, series="base"), "without", 1.1)


def blocking(s):
    event = dict(part="blocking", measure="latency", link="umbel-event")
    bare = dict(part="blocking", measure="latency", link="eventfd")
    yield compared("completion channel, one way", s, "ns", event, bare, "eventfd", 1.3)
    loud = s.figure("loud", measure="quiet")
    yield Row("posts with a system call, nobody asleep", loud, lambda x: f"{x:.0f} of 1,000",
              goal="0", met=loud and loud.high == 0)


def connects(s, at_once):
    figure = s.figure("ns", measure="rdma_cm", at_once=at_once)
    what = "connections by rdma_cm made and ended, " + (
        f"{at_once} at once" if at_once > 1 else "one by one")
    if at_once == 1:
        return Row(what, figure, each_second)
    return Row(what, figure, each_second, goal=f"at least {per_second(CONNECTION_RATE)}",
               met=figure and 1e9 / figure.median >= CONNECTION_RATE)


def each_second(x):
    return per_second(1e9 / x)


def control(s):
    request = s.figure("us", measure="request")
    start = s.figure("ms", measure="exec")

    def us(x):
        return f"{x:,.1f} us"

    floor_us = f"a packet there and back {us(request.median)}" if request else ""
    floor_ms = f"an empty process {ms(start.median)}" if start else ""
    yield at_most("AH made and destroyed", s.figure("ns", measure="ah"), ns, 150)
    for series, where in ((None, ""), ("groups-8192", ", 8,192 groups")):
        for field, what in (("attach_us", "attach"), ("detach_us", "detach")):
            yield at_most(what + where, s.figure(field, measure="attach", series=series), us,
                          15, floor_us)
    for at_once in CONNECTS:
        yield connects(s, at_once)
    yield at_most("process start to first message", s.figure("ms", measure="first"), ms, 10,
                  floor_ms)
    yield at_most("umbel run -- true", s.figure("ms", measure="up"), ms, 100, floor_ms)


def memory_of_connections(s):
    def us(x):
        return f"{x:,.1f} us"

    queues = s.figure("queues", measure="connected", part="memory")
    yield at_most("an idle connected QP, beside its queues",
                  s.figure("bytes", measure="connected", part="memory"), size, 4096,
                  f"queues {size(queues.median)}" if queues else "")
    arrived = s.figure("arrived", measure="connections")
    yield Row(f"messages by {CONNECTIONS:,} connected QPs", arrived, lambda x: f"{x:,.0f} arrived",
              goal=f"{CONNECTIONS:,}", met=arrived and arrived.low == CONNECTIONS)
    alone = s.figure("alone_us", measure="connections")
    yield Row(f"a region made and given back, {CONNECTIONS:,} connected QPs",
              s.figure("region_us", measure="connections"), us,
              f"two {us(alone.median)}" if alone else "")


def memory(s):
    queues = s.figure("queues", measure="qp")
    yield at_most("daemon of 4 hosts, idle, resident", s.figure("bytes", measure="idle"), size,
                  8 << 20)
    yield at_most("an idle QP, beside its queues", s.figure("bytes", measure="qp"), size, 4096,
                  f"queues {size(queues.median)}" if queues else "")
    arrived = s.figure("arrived", measure="qps")
    yield Row("messages to 10,000 QPs of a fabric", arrived, lambda x: f"{x:,.0f} arrived",
              goal="10,000", met=arrived and arrived.low == 10000)
    yield from memory_of_connections(s)


def perftest(s):
    lat = s.figure("ns", measure="ib_send_lat")
    yield Row("ib_send_lat -c UD, 64 B, typical", lat, ns)
    yield Row("ib_send_lat -c UD, 64 B, p99", s.figure("p99", measure="ib_send_lat"), ns)
    yield Row("ib_send_bw -c UD, 64 B", s.figure("M", measure="ib_send_bw", bytes=64), rate)
    yield Row("ib_send_bw -c UD, 4 KiB", s.figure("MB", measure="ib_send_bw", bytes=4096),
              lambda x: f"{x * 2**20 / 1e9:,.1f} GB/s")


def microseconds(x):
    return f"{x:,.1f} us"


def ms(x):
    return f"{x:,.0f} ms" if x >= 100 else f"{x:,.1f} ms" if x >= 1 else f"{x * 1000:,.0f} us"


def per_second(x):
    return f"{x:,.0f} /s"


def one_by_one(x):
    return per_second(1000 / x)


def beside_opensm(s, what, field, form, limit, more_is_better=False, **which):
    """A row whose goal is how many times as good as OpenSM's ours is."""
    mine = s.select(part="subnet", sm="embedded", **which)
    other = s.select(part="subnet", sm="opensm", **which)

    def times(a, b):
        return a[field] / b[field] if more_is_better else b[field] / a[field]

    goal = f"at least {limit:g}"
    ratio = s.compare(mine, other, times)
    if not ratio:
        return Row(what, None, form, goal=goal)
    return Row(what, s.compare(mine, other, lambda a, b: a[field]), form,
               f"OpenSM {form(s.compare(mine, other, lambda a, b: b[field]).median)}",
               ratio.median, goal, ratio.median >= limit)


def growth_of_hosts(s):
    """What the larger fabric takes, by what the smaller takes: at most as the ports times the
    hops between them."""
    small, large = list(SUBNETS)[-2:]
    what = f"{large:,} hosts, daemon's processor time, by that for {small:,}"

    def times(x):
        return f"{x:,.1f} times"

    def compare(how):
        return s.compare(*(s.select(part="subnet", measure="start", sm="embedded", hosts=hosts)
                           for hosts in (large, small)), how)

    figure = compare(lambda a, b: a["cpu_ms"] / b["cpu_ms"])
    if not figure:
        return Row(what, None, times)
    limit = compare(lambda a, b: a["ports"] * a["hops"] / (b["ports"] * b["hops"])).median
    return Row(what, figure, times, f"ports times hops {times(limit)}", None,
               f"at most {times(limit)}", figure.median <= limit)


def beside_sockets(s, what, limit, **which):
    """A row of RoCEv2 beside UDP sockets: latency, or the rate."""
    slow = which["measure"] == "latency"
    mine, other = (dict(part="roce", link=link, **which) for link in ("roce", "udp"))
    return compared(what, s, "ns", mine, other, "UDP", limit, form=ns if slow else to_rate,
                    invert=not slow)


def wire_connected(s):
    """Rows of RC between two hosts on RoCEv2."""
    def links(link, measure, bytes):
        which = dict(part="roce", series="connected", measure=measure, bytes=bytes)
        return dict(which, link=link), dict(which, link="udp"), dict(which, link="tcp")

    for link, operation in (("rc-send", "SEND"), ("rc-write", "WRITE")):
        mine, udp, _ = links(link, "latency", 64)
        yield compared(f"64 B, RC {operation}, one way", s, "ns", mine, udp, "UDP", 1.2)
    for link, operation in (("rc-send", "SEND"), ("rc-write", "WRITE")):
        for bytes in WIRE_CONNECTED:
            mine, _, tcp = links(link, "rate", bytes)
            what = f"{size(bytes)}, RC {operation} in lists of 32"
            if bytes == 64:
                done = s.figure("ns", **mine)
                yield Row(what, done, to_rate, goal="at least 2 M/s",
                          met=done and done.median <= 500)
            else:
                yield compared(what, s, "ns", mine, tcp, "TCP", 1.2, form=bandwidth(bytes),
                               invert=True)


def wires(s):
    """Rows of many connections between two hosts on RoCEv2, beside one of them."""
    for what, words in (("exchange", "64 B, RC SEND, one way"),
                        ("lists", "64 B, RC WRITE in lists of 32, each")):
        many, one = (dict(part="roce", measure="wires", what=what, connections=n)
                     for n in (WIRES, 1))
        yield compared(f"{words}, {WIRES:,} connections in turns", s, "ns", many, one,
                       "one of them", 1.1)
    yield Row(f"memory of the program, a connection of {WIRES:,}",
              s.figure("kb", part="roce", measure="wires", what="memory"),
              lambda kb: f"{kb:,.1f} KB")


def goodput(s):
    """Rows of large messages between two hosts on RoCEv2 whose programs sleep, beside TCP; and of
    what bare UDP sockets do with as many bytes."""
    def per_second(x):
        return f"{1 / x:,.2f} GB"

    def beside_tcp(what, bytes, words):
        mine, tcp = (dict(part="roce", measure="goodput", bytes=bytes, what=w)
                     for w in (what, "tcp"))
        value, other = s.figure("cpu", **mine), s.figure("cpu", **tcp)
        ratio = s.compare(s.select(**mine), s.select(**tcp), lambda a, b: b["cpu"] / a["cpu"])
        return Row(f"{size(bytes)}, {words}, a processor second", value, per_second,
                   f"TCP {per_second(other.median)}" if other else "", ratio and ratio.median)

    for operation in ("write", "read", "send"):
        for bytes in WIRE_GOODPUT:
            row = beside_tcp(operation, bytes, f"RC {operation.upper()}")
            row.goal, row.met = "at least 1.2", row.ratio and row.ratio >= 1.2
            yield row
    for what, words in (("udp", "UDP with offload"),
                        ("udp-crc", "UDP with offload, CRCs and copies")):
        for bytes in WIRE_GOODPUT:
            yield beside_tcp(what, bytes, words)


def roce(s):
    for size in WIRE_SIZES:
        yield beside_sockets(s, f"{size:,} B, one way", 1.3, measure="latency", bytes=size)
    for cut, where in ((False, ""), (True, ", cut before the device")):
        for size in WIRE_SIZES:
            yield beside_sockets(s, f"{size:,} B in lists of 32{where}", 0.9, measure="rate",
                                 bytes=size, cut=cut)
    for number in PROCESSES:
        which = dict(part="roce", measure="receivers", processes=number)
        processes = f"{number} process{'es' if number > 1 else ''}"
        yield beside_sockets(s, f"64 B, {processes}, each", 0.9, measure="receivers",
                             processes=number)
        mine, other = (s.figure("datagrams", link=link, **which) for link in ("roce", "udp"))
        yield Row(f"64 B, {processes}, datagrams received a message", mine,
                  lambda x: f"{x:.2f}", f"UDP {other.median:.2f}" if other else "", None,
                  "at most 1", mine and mine.high <= 1)
    yield from wire_connected(s)
    yield from wires(s)
    yield from goodput(s)


def ipoib(s):
    """TCP by IPoIB, beside a veth pair between the same hosts."""
    for mode, goal in (("datagram", 0.5), ("connected", 0.6)):
        def series(measure, link):
            return dict(part="ipoib", mode=mode, measure=measure, link=link)

        yield compared(f"{mode} mode, TCP, one connection", s, "ns", series("rate", "ipoib"),
                       series("rate", "veth"), "veth", goal, form=lambda x: f"{1 / x:,.2f} GB/s",
                       invert=True)
        mine, other = series("latency", "ipoib"), series("latency", "veth")
        yield compared(f"{mode} mode, TCP, 64 B, one way", s, "ns", mine, other, "veth", 1.4)
        veth = s.figure("p99", **other)
        ratio = s.compare(s.select(**mine), s.select(**other), lambda a, b: a["p99"] / b["p99"])
        yield Row(f"{mode} mode, TCP, 64 B, one way, p99", s.figure("p99", **mine), ns,
                  f"veth {ns(veth.median)}" if veth else "", ratio and ratio.median)


def subnet(s):
    for hosts in SUBNETS:
        yield beside_opensm(s, f"{hosts:,} hosts, start to all ports ACTIVE", "ms", ms, 10,
                            measure="start", hosts=hosts)
    yield growth_of_hosts(s)
    for groups in JOIN_GROUPS:
        which = dict(measure="joins", groups=groups)
        names = f"{groups:,} group{'s' if groups > 1 else ''}"
        yield beside_opensm(s, f"{names}, joins, each until its switch forwards", "ms", one_by_one,
                            10, **which)
        yield beside_opensm(s, f"{names}, joins answered, 64 at a time", "rate", per_second, 5,
                            more_is_better=True, **which)
    for hosts in SUBNETS:
        yield beside_opensm(s, f"{hosts:,} hosts, resident", "bytes", size, 1,
                            measure="resident", hosts=hosts)


def growth(s):
    """Rows of many groups with many members: what grows with them, and what must not."""
    groups, hosts = GROWTH
    first, last = (s.figure(field, part="growth", measure="join")
                   for field in ("first_us", "last_us"))
    ratio = first and last and last.median / first.median
    yield Row(f"a join, the last tenth of {groups:,} groups of {hosts}", last, microseconds,
              f"the first {microseconds(first.median)}" if first else "", ratio,
              "at most 1.5", ratio and ratio <= 1.5)
    for event in (*(e[0] for e in GROWTH_EVENTS), GROWTH_END):
        yield at_most(f"{event}, the daemon is held up",
                      s.figure("ms", part="growth", measure="ask", event=event), ms, 10)


ROWS = {"latency": latency, "rate": rates, "connected": connected,
        "checked": checked, "mpi": mpi,
        "programs": programs, "broadcast": broadcast, "fanout": fanout, "flat": flat,
        "blocking": blocking, "control": control, "memory": memory, "perftest": perftest,
        "roce": roce, "ipoib": ipoib, "subnet": subnet, "growth": growth}


def table(samples, parts):
    """[(part, [Row])] of the parts that were measured."""
    return [(name, list(ROWS[name](samples))) for name in parts]
