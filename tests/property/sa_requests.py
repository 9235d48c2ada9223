#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The embedded subnet administrator beside OpenSM's: the same requests, drawn by chance from a seed over attributes,
component masks and modifiers, on the same fabric with the same LIDs. Each response has the same status, and records
that say the same, or is named in DIFFERENCES, with the reason. Then a lease of a service ends, and a packet of another
partition is reported (trap 257).

    sa_requests.py [--seed N] [--requests N] [--verbose]

What a subnet manager chooses (routes, MLIDs, timeouts) is not compared: CHOSEN. A request is made of a record that
there is, of which some fields are changed; the fields that the mask has are drawn by chance.
"""

import argparse
import collections
import ctypes
import json
import os
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
WIRE = os.path.join(HERE, "../../src/shared/wire")
CONSTANTS = {"MAD_BYTES": 256, "NODE_DESCRIPTION_BYTES": 64, "GUID_BLOCK": 8, "PKEY_BLOCK": 32, "LFT_BLOCK": 64,
             "MFT_BLOCK": 32, "VL_ARB_PART": 32, "SA_DATA_BYTES": 200, "NOTICE_DETAILS_BYTES": 54}
PATIENCE = 20  # seconds, for each thing that is waited for
RADIX = 6  # of the fabric's switches
UNANSWERED = "no answer"
GET, SET, DELETE, TABLE, MULTI, UNKNOWN = 1, 2, 0x15, 0x12, 0x14, 0x0F
METHODS = {GET: "Get", SET: "Set", DELETE: "Delete", TABLE: "GetTable", MULTI: "GetMulti", UNKNOWN: "unknown method"}
CLASS_PORT_INFO = 1
SMP_P_KEYS, STRANGE_P_KEY, TRAP_P_KEY, REPORT = 0x16, 0x8005, 257, 6

# attribute: the record
RECORDS = {0x11: "node_record", 0x12: "port_info_record", 0x13: "sl_to_vl_record", 0x14: "switch_info_record",
           0x15: "linear_ft_record", 0x17: "multicast_ft_record", 0x18: "sm_info_record", 0x20: "link_record",
           0x30: "guid_info_record", 0x31: "service_record", 0x33: "pkey_table_record", 0x35: "path_record",
           0x36: "vl_arb_record", 0x38: "mcmember", 0xF3: "inform_info_record"}
PATH, MULTIPATH, MEMBER, SERVICE, INFORM, GUIDS = 0x35, 0x3A, 0x38, 0x31, 0x03, 0x30
# Fields that are a subnet manager's own choice: not compared, nor in a mask.
CHOSEN = {
    "port_info_record": "info.(?!lid$|capability_mask|link_|lmc|neighbor_mtu|mtu_cap|vl_cap|guid_cap|port_)",
    "switch_info_record": "info.(linear_fdb_top|default|life|port_state_change|multicast_fdb_top)",
    "linear_ft_record": "table", "multicast_ft_record": "table", "vl_arb_record": "table", "sl_to_vl_record": "table",
    "sm_info_record": "info.(act_count|priority|sm_key)",
    "path_record": "life|preference|numb_path|service_id|qos_class|flow_label|tclass",
    "mcmember": "mlid|life", "inform_info_record": "enumerator|info.resp_time", "multipath_record": "life",
    "service_record": "lease",
}
# Ports that requests name only if the switches have them: OpenSM 3.3.23 looks for the SL to VL map of another one behind
# the end of its table of ports. It answers with what lies there, or it dies. sa_server_test.c asks ours.
PORTS_THERE_ARE = ("in_port", "out_port")


class Difference(collections.namedtuple("Difference", "name why holds")):
    """holds(request, ours, theirs): whether it is this one. Statuses are numbers, or UNANSWERED."""


def ok(a, b):
    return a["status"] == 0 and b["status"] == 0


def has(q, *names):
    return any(re.match(name, said) for name in names for said in q["fields"])


# attribute: fields that OpenSM does not compare, though they are components
NOT_COMPARED = {0x12: ("info.link_round_trip_latency", "info.capability_mask2", "options"), 0x14: ("info",),
                0x33: ("table", "block"), MEMBER: ("proxy_join",)}
BAD_VERSION, BAD_ATTRIBUTE, NO_RECORDS, INVALID = 4, 0xC, 0x300, 0x200

# In their order: the first that holds has the difference.
DIFFERENCES = (
    Difference("unanswered", "OpenSM drops the request; 13.4.7 wants a status",
               lambda q, a, b: b["status"] == UNANSWERED and a["status"] not in (0, UNANSWERED)),
    Difference("which error", "several things are wrong, or OpenSM says REQ_INVALID of what it does not serve; 13.4.7",
               lambda q, a, b: (q["attribute"] not in RECORDS and q["attribute"] != MULTIPATH or q.get("version", 2) != 2)
               and a["status"] in (BAD_VERSION, BAD_ATTRIBUTE) and b["status"] in (BAD_ATTRIBUTE, INVALID)),
    Difference("LID of PortInfo", "OpenSM finds no port by PortInfoRecord:PortInfo.LID; 15.2.5.3 has it as a component",
               lambda q, a, b: q["attribute"] == 0x12 and "info.lid" in q["fields"]),
    Difference("trees", "which switches have multicast tables is a matter of the trees, which subnet managers choose",
               lambda q, a, b: q["attribute"] == 0x17),
    Difference("not compared", "OpenSM compares LIDs, ports and older fields only; the rest are components, too (15.2.5)",
               lambda q, a, b: has(q, *NOT_COMPARED.get(q["attribute"], ())) and not a["records"]),
    Difference("behind the text", "OpenSM compares a node's description up to its first NUL, ours all 64 bytes",
               lambda q, a, b: q["attribute"] == 0x11 and has(q, "description") and not a["records"]),
    Difference("half a selector", "OpenSM takes the value that the mask does not have for 0; without a value nothing is "
               "selected (15.2.5.17)",
               lambda q, a, b: q["attribute"] in (MEMBER, PATH) and any(
                   s + "_selector" in q["fields"] and s not in q["fields"] for s in ("mtu", "rate"))),
    Difference("broadcast group", "MTU and rate of the partition's own group are the subnet manager's choice",
               lambda q, a, b: q["attribute"] == MEMBER and q["method"] in (TABLE, GET)
               and (has(q, "mtu", "rate") or ok(a, b) and only(a, b, "mtu", "rate", "scope"))),
    Difference("rate to a switch", "OpenSM reads the speed of port 0, which has no link, and says 2.5 Gb/s",
               lambda q, a, b: q["attribute"] in (PATH, MULTIPATH) and
               (ok(a, b) and only(a, b, "rate") or "rate" in q["fields"] and to_switch(q))),
    Difference("lower rate", "ours gives a path of a lower rate or MTU than the links have, if the request wants that "
               "(docs/subnet.md)",
               lambda q, a, b: q["attribute"] == PATH and a["status"] == 0 and has(q, "rate_selector", "mtu_selector")
               and len(a["records"]) > len(b["records"])),
    Difference("membership bit", "OpenSM returns the P_Key of the request; ours that of the ports, which are full members",
               lambda q, a, b: q["attribute"] in (PATH, MULTIPATH) and ok(a, b) and only(a, b, "pkey", "rate")),
    Difference("one of many", "of more records than are wanted either is right (15.4.4)",
               lambda q, a, b: ok(a, b) and len(a["records"]) == len(b["records"])
               and (q["attribute"] == PATH and not ("sgid" in q["fields"] and "dgid" in q["fields"])
                    or q["attribute"] == MULTIPATH and "numb_path" in q["fields"])),
    Difference("raw traffic", "OpenSM does not look at RawTraffic: there are no raw packets here, so no path",
               lambda q, a, b: q["attribute"] == PATH and "raw_traffic" in q["fields"]),
    Difference("no such ends", "a GID that there is not, or a LID and a GID of two ports: an error, or no records",
               lambda q, a, b: q["attribute"] == PATH and not a["records"] and not b["records"]),
    Difference("JoinState of a group", "OpenSM compares that by which the group was made; ours says a group has full members",
               lambda q, a, b: q["attribute"] == MEMBER and q["method"] in (TABLE, GET) and not q["key"]
               and "join_state" in q["fields"] and "port_gid" not in q["fields"]),
    Difference("lower than a rate", "of the rates below 40 Gb/s OpenSM takes 28 Gb/s for a new group, ours the greatest, 30",
               lambda q, a, b: q["attribute"] == MEMBER and ok(a, b) and only(a, b, "rate", "scope")
               and all(dict(r)["rate"] == 0x13 for r in b["normal"])),
    Difference("scope", "OpenSM says scope 0 of a group that was joined without one; 15.2.5.17: it is that of the MGID",
               lambda q, a, b: q["attribute"] == MEMBER and (ok(a, b) and only(a, b, "scope") or has(q, "scope"))),
    Difference("last leave", "OpenSM returns the request when the group ends, ours what the member was",
               lambda q, a, b: q["attribute"] == MEMBER and q["method"] == DELETE and ok(a, b)),
    Difference("GUIDs of GUIDInfo", "OpenSM takes all GUIDs but the first of each table for 0 when it compares",
               lambda q, a, b: q["attribute"] == GUIDS and q["method"] in (GET, TABLE) and has(q, "table.guid")),
    Difference("no such block", "OpenSM deletes from a block that the port does not have; ours has no such record",
               lambda q, a, b: q["attribute"] == GUIDS and q["method"] == DELETE and a["status"] == NO_RECORDS),
    Difference("first GUID", "of block 0 is the port's own: OpenSM passes over its deletion, ours refuses (15.2.5.18)",
               lambda q, a, b: q["attribute"] == GUIDS and q["method"] == DELETE and "table.guid[0]" in q["fields"]
               and q["fields"].get("block") == 0 and a["status"] == INVALID),
    Difference("LID 0", "OpenSM takes the ports of a switch for ports without a LID", lambda q, a, b: q["attribute"] == GUIDS
               and q["fields"].get("lid") == 0 and not a["records"]),
    Difference("deleted GUIDs", "OpenSM returns the request where the port has no alias, ours the table as it is then",
               lambda q, a, b: q["attribute"] == GUIDS and q["method"] == DELETE and ok(a, b)),
    Difference("paths of aliases", "OpenSM lists the paths of a port once more for each of its alias GUIDs",
               lambda q, a, b: q["attribute"] == PATH and ok(a, b) and len(b["records"]) > len(a["records"])
               and len(b["distinct"]) == len(a["distinct"])),
)


def to_switch(q):
    """Whether an end of the path is a switch, or may be: their port GUIDs end with 00."""
    ends = [q["fields"].get(end) for end in ("sgid", "dgid")]
    return any(end is None or bytes(end)[-1:] == b"\0" if not isinstance(end, int) else end & 0xff == 0 for end in ends)


def only(a, b, *names):
    """Whether the records differ in these fields alone."""
    return (len(a["normal"]) == len(b["normal"])
            and sorted(tuple(f for f in r if f[0] not in names) for r in a["normal"])
            == sorted(tuple(f for f in r if f[0] not in names) for r in b["normal"]))


# ---- layouts, out of src/shared/wire ----

def layouts():
    """By name: [(field, bit offset, bits, first component)], and how many components it has."""
    found = {}
    for name in ("mad", "sm_attr", "notice", "sa", "sa_records"):
        with open(os.path.join(WIRE, name + ".def"), encoding="ascii") as f:
            text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
        for body in re.findall(r"#define THIS wire_(\w+)\s+LAYOUT\(\w+\)(.*?)\bEND", text, re.S):
            found[body[0]] = layout(body[1], found)
    return found


def layout(body, known):
    fields, at, component = [], 0, 0
    for word, arguments in re.findall(r"^\s*(\w+)\(([^)]*)\)", body, re.M):
        args = [CONSTANTS.get(a, a) for a in re.split(r",\s*", arguments)]
        if word in ("NESTED", "NESTED_ARRAY"):
            inner, bits, comps = known[args[0].replace("wire_", "")]
            if word == "NESTED":
                fields += [(f"{args[1]}.{n}", at + o, b, component + c) for n, o, b, c in inner]
            else:
                bits, comps = bits * int(args[1]), 1
                fields.append((args[2], at, bits, component))
        else:
            n = {"ARRAY": 2, "ARRAY_EACH": 2, "INT_COMPONENTS": 1, "INT": 1, "RESERVED": 1}.get(word)
            bits = {"GID": 128}.get(word) or (int(args[0]) * int(args[1]) if n == 2 else
                                              int(args[0]) if n else int(args[0]) * 8)
            comps = int(args[1]) if word in ("ARRAY_EACH", "INT_COMPONENTS") else 1
            if word == "ARRAY_EACH":
                each = int(args[0])
                fields += [(f"{args[2]}[{i}]", at + i * each, each, component + i) for i in range(comps)]
            elif word != "RESERVED":
                fields.append((args[-1], at, bits, component))
        at, component = at + bits, component + comps
    return fields, at, component


def get(data, offset, bits):
    whole = int.from_bytes(data, "big")
    return whole >> (len(data) * 8 - offset - bits) & ((1 << bits) - 1)


def put(data, offset, bits, value):
    shift = len(data) * 8 - offset - bits
    whole = int.from_bytes(data, "big") & ~(((1 << bits) - 1) << shift)
    return (whole | (value & ((1 << bits) - 1)) << shift).to_bytes(len(data), "big")


# ---- asking: in a process on a host ----

class Asker:
    def __init__(self):
        self.umad = ctypes.CDLL("libibumad.so.3")
        self.umad.umad_get_mad.restype = ctypes.c_void_p
        self.umad.umad_get_mad.argtypes = [ctypes.c_void_p]
        self.umad.umad_init()
        self.head = self.umad.umad_size()
        self.fd = self.umad.umad_open_port(None, 1)
        self.agent = self.umad.umad_register(self.fd, 3, 2, 1, (ctypes.c_long * 2)(1 << REPORT))
        self.tid = 0
        self.buffer = ctypes.create_string_buffer(self.head + (1 << 20))

    def send(self, q):
        """Its number."""
        self.tid += 1
        data = bytes.fromhex(q["data"])
        rmpp = q["method"] == MULTI
        mad = struct.pack(">BBBBHHQHHI", 1, 3, q.get("version", 2), q["method"], 0, 0, self.tid, q["attribute"], 0,
                          q["modifier"])
        mad += struct.pack(">BBBBII", rmpp, rmpp, rmpp, 0, 0, 0) + struct.pack(">QHHQ", q["key"], 0, 0, q["mask"])
        mad += data + bytes(200 - len(data))
        self.put(mad, q["sm"], 1, 0)
        length = 56 + len(data) if rmpp else 256
        if self.umad.umad_send(self.fd, self.agent, self.buffer, length, (PATIENCE - 5) * 1000, 0) < 0:
            sys.exit("a request could not be sent")
        return self.tid

    def receive(self, *numbers):
        """The answer to one of these requests, or None if there is none in time."""
        while True:
            length = ctypes.c_int(1 << 20)
            if self.umad.umad_recv(self.fd, self.buffer, ctypes.byref(length), PATIENCE * 1000) < 0:
                return None
            got = ctypes.string_at(self.umad.umad_get_mad(self.buffer), length.value)
            if self.number_of(got) in numbers:
                return None if self.umad.umad_status(self.buffer) else got

    @staticmethod
    def number_of(mad):
        return struct.unpack(">Q", mad[8:16])[0] & 0xffffffff

    def ask(self, q):
        """Status and records, or None if the administrator answers nothing. It is sent once: the second time it might mean
        something else. Where it may be dropped, another one follows it. An administrator answers in turn: the answer to
        the second says that the first has none."""
        number = self.send(q)
        second = self.send({**q, "method": GET, "attribute": CLASS_PORT_INFO, "mask": 0, "data": "", "modifier": 0,
                            "version": 2}) if q["may_drop"] else number
        got = self.receive(number, second)
        if not got:
            return None
        if self.number_of(got) != number:
            return {"status": UNANSWERED, "records": []}
        if second != number and not self.receive(second):
            return None
        status, size = struct.unpack(">H", got[4:6])[0], struct.unpack(">H", got[44:46])[0] * 8
        if status:
            return {"status": status, "records": []}
        if q["method"] not in (TABLE, MULTI):
            return {"status": 0, "records": [got[56:256].hex()]}
        records = got[56:]
        return {"status": 0, "records": [records[i:i + size].hex() for i in range(0, len(records) - size + 1, size)]
                if size else []}


    def stray(self, q):
        """Takes another partition into the own P_Key table, and sends a MAD with its P_Key."""
        agent = self.umad.umad_register(self.fd, 0x81, 1, 0, None)
        self.tid += 1
        smp = struct.pack(">BBBBHBBQHHIQHH", 1, 0x81, 1, SET, 0, 0, 0, self.tid, SMP_P_KEYS, 0, 0, 0, 0xffff, 0xffff)
        smp += bytes(28) + struct.pack(">HH", 0xffff, STRANGE_P_KEY)
        self.put(smp, 0xffff, 0, 0)
        if self.umad.umad_send(self.fd, agent, self.buffer, 256, (PATIENCE - 5) * 1000, 0) < 0 or not self.receive(self.tid):
            return None
        self.put(struct.pack(">BBBBHHQHHI", 1, 4, 1, GET, 0, 0, self.tid + 1, CLASS_PORT_INFO, 0, 0), q["lid"], 1, 1)
        agent = self.umad.umad_register(self.fd, 4, 1, 0, None)
        return {} if self.umad.umad_send(self.fd, agent, self.buffer, 256, 0, 0) == 0 else None

    def put(self, mad, lid, qpn, pkey_index):
        ctypes.memset(self.buffer, 0, 1024)
        self.umad.umad_set_addr(self.buffer, lid, qpn, 0, ctypes.c_int(-0x7fff0000 if qpn else 0))
        self.umad.umad_set_pkey(self.buffer, pkey_index)
        ctypes.memmove(self.umad.umad_get_mad(self.buffer), mad, len(mad))

    def report(self, _):
        """The next Report's notice: the trap's number, and its details."""
        length = ctypes.c_int(1 << 20)
        while self.umad.umad_recv(self.fd, self.buffer, ctypes.byref(length), (PATIENCE - 5) * 1000) >= 0:
            got = ctypes.string_at(self.umad.umad_get_mad(self.buffer), 256)
            if got[3] == REPORT:
                return {"trap": struct.unpack(">H", got[60:62])[0], "details": got[66:120].hex()}
        return None


def serve():
    asker = Asker()
    for line in sys.stdin:
        q = json.loads(line)
        print(json.dumps(getattr(asker, q.get("do", "ask"))(q)), flush=True)


# ---- a fabric ----

def umbel(*arguments):
    done = subprocess.run([os.environ.get("UMBEL", "umbel"), *arguments], capture_output=True, text=True, check=False,
                          timeout=PATIENCE)
    if done.returncode:
        sys.exit(f"umbel {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


class Fabric:
    """18 hosts; h2 asks. The LIDs are those that the embedded subnet manager gives, of OpenSM, too."""

    def __init__(self, opensm, directory):
        umbel("up", "--fat-tree", "2", "--radix", str(RADIX))
        self.opensm = self.asker = self.other = None
        self.members = []
        try:
            self.begin(opensm, directory)
        except BaseException:
            self.end()
            raise

    def begin(self, opensm, directory):
        if opensm:
            self.start_opensm(directory)
        self.members = [self.start("h" + host, "mckey", "-m", "239.1.1." + group, "-b", "10.0.0." + host)
                        for host, group in (("3", "1"), ("7", "1"), ("7", "2"))]
        self.asker, self.other = (
            subprocess.Popen(["umbel", "exec", host, "--", sys.executable, __file__, "--serve"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True) for host in ("h2", "h5"))
        self.lid = {h["name"]: p["lid"] for h in json.loads(umbel("show", "hosts", "--json"))
                    for c in h["hcas"] for p in c["ports"]}
        self.wait("three members", lambda: len(self.ask(MEMBER, TABLE, key=1)["records"]) >= len(self.members))

    def wait(self, what, holds):
        end = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > end:
                sys.exit(f"in vain for {PATIENCE} s: wait until there are {what}{self.how_opensm_ended()}")
            time.sleep(0.05)

    def how_opensm_ended(self):
        status = self.opensm.poll() if self.opensm else None
        return "" if status is None else f"; OpenSM ended: {signal.Signals(-status).name if status < 0 else status}"

    def start(self, host, *command, **environment):
        return subprocess.Popen(["umbel", "exec", host, "--", *command], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin", **environment})

    def start_opensm(self, directory):
        umbel("sm", "stop")
        log, conf = os.path.join(directory, "log"), os.path.join(directory, "conf")
        with open(conf, "w", encoding="ascii") as f:
            # one thread: it answers in turn; packets of other partitions reach the hosts, as without a file of partitions
            f.write("force_log_flush TRUE\nsingle_thread TRUE\npart_enforce off\n")
        self.opensm = self.start("h1", "opensm", "-F", conf, "-f", log, OSM_CACHE_DIR=directory, OSM_TMP_DIR=directory,
                                 ASAN_OPTIONS="detect_leaks=0:intercept_send=0")

        def swept():
            if not os.path.exists(log):
                return False
            with open(log, encoding="utf-8", errors="replace") as f:
                return "SUBNET UP" in f.read()
        self.wait("routes of OpenSM", swept)

    def ask(self, attribute, method, mask=0, data=b"", **more):
        q = {"attribute": attribute, "method": method, "mask": mask, "data": data.hex(), "modifier": 0, "key": 0,
             "sm": self.lid["h1"], "may_drop": method == UNKNOWN, **more}
        return self.tell(self.asker, q)

    def tell(self, program, q):
        program.stdin.write(json.dumps(q) + "\n")
        program.stdin.flush()
        line = select.select([program.stdout], [], [], 2 * PATIENCE)[0] and program.stdout.readline()
        answer = json.loads(line or "null")
        if answer is None:
            manager = "OpenSM" if self.opensm else "the embedded administrator"
            sys.exit(f"in vain: wait until {manager} answers to {json.dumps(q)}{self.how_opensm_ended()}")
        return answer

    def end_lease(self, drawer):
        """A service with a lease of a second is there, and then no longer."""
        data, mask, _ = drawer.write("service_record", id=0x70, gid=drawer.own, pkey=0xffff, lease=1,
                                     name=b"short".ljust(64, b"\0"))
        wanted, only_id, _ = drawer.write("service_record", id=0x70)
        if self.ask(SERVICE, SET, mask, data)["status"] or not self.ask(SERVICE, TABLE, only_id, wanted)["records"]:
            sys.exit("a service with a lease of a second is not there")
        self.wait("no service whose lease has ended", lambda: not self.ask(SERVICE, TABLE, only_id, wanted)["records"])

    def bad_p_key(self, drawer):
        """What is reported of a packet of another partition, from h5 to h2."""
        data, _, _ = drawer.write("inform_info", lid_range_begin=0xffff, is_generic=1, subscribe=1, type=0xffff,
                                  trap_number=TRAP_P_KEY, qpn=1, resp_time_value=18, producer_type=0xffffff)
        if self.ask(INFORM, SET, 0, data, key=1)["status"]:
            sys.exit("subscribing to trap 257 is refused")
        self.tell(self.other, {"do": "stray", "lid": self.lid["h2"]})
        return self.tell(self.asker, {"do": "report"})

    def end(self):
        for program in [*self.members, self.asker, self.other, self.opensm]:
            if program:
                program.kill()
                program.wait(PATIENCE)
        umbel("down")


# ---- requests ----

class Drawer:
    """Draws requests; what they are made of are the records of the embedded administrator."""

    def __init__(self, fabric, seed):
        self.chance = random.Random(seed)
        self.layouts = layouts()
        self.known = {a: [bytes.fromhex(r) for r in fabric.ask(a, TABLE, key=1)["records"]] for a in RECORDS}
        self.gids = sorted({r[8:24] for r in self.known[PATH]} | {r[24:40] for r in self.known[PATH]})
        self.own = next(r[24:40] for r in self.known[PATH] if b"\x02\x01" == r[38:40])

    def compared(self, name):
        """Its fields that are no subnet manager's choice."""
        chosen = CHOSEN.get(name)
        return [f for f in self.layouts[name][0] if not chosen or not re.match(chosen, f[0])]

    def fill(self, name, record, most):
        """Some fields of the record: bytes, the mask, the fields by name."""
        size = (self.layouts[name][1] + 7) // 8
        data, mask, said = bytes(size), 0, {}
        fields = self.compared(name)
        for _ in range(self.chance.randint(0, most)):
            what, offset, bits, component = self.chance.choice(fields)
            value = get(record[:size].ljust(size, b"\0"), offset, bits)
            if self.chance.random() < 0.15:
                other = value ^ 1 << self.chance.randrange(min(bits, 8))
                value = value if what in PORTS_THERE_ARE and other > RADIX else other
            data, mask, said[what] = put(data, offset, bits, value), mask | 1 << component, value
        return data, mask, said

    def write(self, name, /, **values):
        """Bytes and mask of these fields."""
        fields = {f[0]: f for f in self.layouts[name][0]}
        data, mask = bytes((self.layouts[name][1] + 7) // 8), 0
        for what, value in values.items():
            _, offset, bits, component = fields[what]
            if isinstance(value, bytes):
                value = int.from_bytes(value, "big")
            data, mask = put(data, offset, bits, value), mask | 1 << component
        return data, mask, values

    def query(self):
        attribute = self.chance.choice([a for a in RECORDS if self.known[a]])
        name = RECORDS[attribute]
        record = self.chance.choice(self.known[attribute])
        data, mask, said = self.fill(name, record, 4)
        modifier = self.chance.choice((0, 0, 0, 0, 0x80000000)) if attribute == 0x12 else 0
        return {"attribute": attribute, "method": self.chance.choice((GET, TABLE, TABLE, TABLE)), "mask": mask,
                "data": data, "modifier": modifier, "key": self.chance.choice((0, 1)), "fields": said}

    def path(self):
        values = {}
        for name, value in (("sgid", self.chance.choice(self.gids)), ("dgid", self.chance.choice(self.gids))):
            if self.chance.random() < 0.8:
                values[name] = value
        for name, choices in (("numb_path", (1, 3, 127)), ("reversible", (0, 1)), ("pkey", (0xffff, 0x7fff, 0x8001)),
                              ("sl", (0, 1, 9)), ("tclass", (0,)), ("hop_limit", (0, 1)), ("raw_traffic", (0, 1))):
            if self.chance.random() < 0.2:
                values[name] = self.chance.choice(choices)
        for name, choices in (("mtu", (1, 3, 4, 5)), ("rate", (2, 3, 7, 16, 18))):
            if self.chance.random() < 0.3:
                values[name] = self.chance.choice(choices)
                values[name + "_selector"] = self.chance.randrange(4)
        data, mask, said = self.write("path_record", **values)
        return {"attribute": PATH, "method": self.chance.choice((GET, TABLE)), "mask": mask, "data": data,
                "fields": said}

    def multipath(self):
        source, dest = (self.chance.sample(self.gids, self.chance.randint(1, 3)) for _ in range(2))
        values = {"sgid_count": len(source), "dgid_count": len(dest)}
        if self.chance.random() < 0.7:
            values["numb_path"] = self.chance.choice((1, 2, 6, 127))
        if self.chance.random() < 0.3:
            values["pkey"] = self.chance.choice((0xffff, 0x8001))
        data, mask, said = self.write("multipath_record", **values)
        if len(source) + len(dest) > 6:
            dest = dest[:1]
        return {"attribute": MULTIPATH, "method": MULTI, "mask": mask, "data": data + b"".join(source + dest),
                "fields": said}

    def service(self):
        values = {"id": self.chance.choice((0x77, 0x78, 0x79)), "gid": self.chance.choice((self.own, self.own, self.gids[0])),
                  "pkey": self.chance.choice((0xffff, 0xffff, 0x8001))}
        method = self.chance.choice((SET, SET, DELETE, TABLE, GET))
        for name, choices in (("lease", (100, 0xffffffff)), ("name", (b"one".ljust(64, b"\0"), b"two".ljust(64, b"\0"))),
                              ("data8[3]", (1, 2)), ("data64[1]", (5,)), ("key", (bytes(16), b"k" * 16))):
            if self.chance.random() < 0.5 and (name != "lease" or method == SET):
                values[name] = self.chance.choice(choices)
        data, mask, said = self.write("service_record", **values)
        return {"attribute": SERVICE, "method": method, "mask": mask, "data": data, "fields": said}

    def member(self):
        mgid = socket.inet_pton(socket.AF_INET6, "ff12:b00b::" + self.chance.choice("123"))
        values = {"mgid": mgid, "port_gid": self.own, "join_state": self.chance.choice((1, 1, 1, 2, 4, 0, 5))}
        full = {"qkey": self.chance.choice((1, 0x0b1b)), "pkey": self.chance.choice((0xffff, 0xffff, 0x8001)), "sl": 0,
                "tclass": 0, "flow_label": 0}
        if self.chance.random() < 0.7:
            values.update(full)
        for name, choices in (("mtu", (3, 4, 5)), ("rate", (2, 3, 7))):
            if self.chance.random() < 0.3:
                values[name] = self.chance.choice(choices)
                values[name + "_selector"] = self.chance.randrange(4)
        if self.chance.random() < 0.1:
            gone = self.chance.choice(sorted(values))
            values.pop(gone)
            values.pop(gone + "_selector", None)  # a half is refused by one of them: then their groups differ
        data, mask, said = self.write("mcmember", **values)
        return {"attribute": MEMBER, "method": self.chance.choice((SET, SET, DELETE, GET, TABLE)), "mask": mask,
                "data": data, "fields": said}

    def inform(self):
        values = {"lid_range_begin": self.chance.choice((0xffff, 0xffff, 1)), "is_generic": self.chance.choice((1, 1, 0)),
                  "subscribe": self.chance.choice((1, 1, 0)), "type": self.chance.choice((0xffff, 0xffff, 3)),
                  "trap_number": self.chance.choice((64, 65, 66, 0xffff)), "qpn": 1, "resp_time_value": 18,
                  "producer_type": self.chance.choice((4, 0xffffff))}
        data, _, said = self.write("inform_info", **values)
        return {"attribute": INFORM, "method": self.chance.choice((SET, SET, SET, GET)), "mask": 0, "data": data,
                "fields": said}

    def guids(self):
        record = next(r for r in self.known[GUIDS] if r[8:16] == self.own[8:16])
        values = {"lid": get(record, 0, 16), "block": self.chance.choice((0, 0, 1, 200))}
        for i in self.chance.sample(range(8), self.chance.randint(0, 3)):
            values[f"table.guid[{i}]"] = self.chance.choice((0x1122334400000000 + i, 0x1122334400000077 + i))
        if self.chance.random() < 0.1:
            values.pop("block")
        data, mask, said = self.write("guid_info_record", **values)
        return {"attribute": GUIDS, "method": self.chance.choice((SET, SET, DELETE, GET, TABLE)), "mask": mask,
                "data": data, "fields": said}

    def strange(self):
        return {"attribute": self.chance.choice((0x01, 0x02, 0x16, 0x39, 0x3B, 0x55, 0xFFFF, 0x11)),
                "method": self.chance.choice((GET, SET, TABLE, UNKNOWN)), "mask": self.chance.choice((0, 1)), "data": b"",
                "version": self.chance.choice((2, 2, 1)), "modifier": self.chance.choice((0, 7)), "fields": {}}

    def draw(self):
        kind = self.chance.choices((self.query, self.path, self.multipath, self.service, self.member, self.inform,
                                    self.guids, self.strange), (40, 25, 10, 12, 14, 10, 10, 5))[0]
        return {"modifier": 0, "key": 0, **kind()}


def say(q):
    name = RECORDS.get(q["attribute"], f"attribute 0x{q['attribute']:02x}")
    fields = {k: v.hex() if isinstance(v, bytes) else v for k, v in q["fields"].items()}
    return f"{METHODS.get(q['method'], q['method'])} {name} {fields} mod {q['modifier']:#x} key {q['key']}"


def normal(drawer, q, answer):
    """The records without what a subnet manager chooses, in an order of their own."""
    if q["attribute"] == INFORM:
        name = "inform_info"
    else:
        name = "path_record" if q["attribute"] == MULTIPATH else RECORDS.get(q["attribute"])
    if not name:
        return []
    size = (drawer.layouts[name][1] + 7) // 8
    out = []
    for record in answer["records"]:
        data = bytes.fromhex(record)[:size].ljust(size, b"\0")
        out.append(tuple((what, get(data, offset, bits)) for what, offset, bits, _ in drawer.compared(name)))
    return sorted(out)


def compare(drawer, q, ours, theirs):
    """None: the same; a Difference; or words."""
    a, b = ours["normal"], theirs["normal"] = normal(drawer, q, ours), normal(drawer, q, theirs)
    for answer in (ours, theirs):
        answer["distinct"] = {tuple(f for f in r if f[0] in ("dlid", "slid", "pkey")) for r in answer["normal"]}
    if ours["status"] == theirs["status"] and a == b:
        return None
    for d in DIFFERENCES:
        if d.holds(q, ours, theirs):
            return d
    if ours["status"] != theirs["status"]:
        return f"status {ours['status']}, OpenSM {theirs['status']}"
    if len(a) != len(b):
        return f"{len(a)} records, OpenSM {len(b)}"
    first = next((x, y) for x, y in zip(a, b) if x != y)
    return ", ".join(f"{n}: {v:#x}, OpenSM {w:#x}" for (n, v), (_, w) in zip(*first) if v != w)


def answers(options, requests, drawer=None, ours=()):
    """Of one administrator, in turn, and what it reports; the embedded one's records make the requests."""
    opensm = drawer is not None
    with tempfile.TemporaryDirectory() as directory:
        fabric = Fabric(opensm, directory)
        try:
            if not opensm:
                drawer = Drawer(fabric, options.seed)
                requests += [drawer.draw() for _ in range(options.requests)]
            else:
                for q, answer in zip(requests, ours):
                    q["may_drop"] = answer["status"] not in (0, NO_RECORDS) or (
                        answer["status"] == NO_RECORDS and q["method"] not in (TABLE, MULTI))
            told = [fabric.ask(**{k: v for k, v in q.items() if k != "fields"}) for q in requests]
            fabric.end_lease(drawer)
            return drawer, told, fabric.bad_p_key(drawer)
        finally:
            fabric.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=63)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--verbose", action="store_true", help="each difference that has a name, too")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    requests, named, failed = [], collections.Counter(), 0
    drawer, ours, report = answers(options, requests)
    _, theirs, their_report = answers(options, requests, drawer, ours)
    if report["trap"] != TRAP_P_KEY or report != their_report:
        failed += 1
        print(f"FAIL: a packet of another partition is reported as {report}, by OpenSM as {their_report}", file=sys.stderr)
    for q, a, b in zip(requests, ours, theirs):
        found = compare(drawer, q, a, b)
        if isinstance(found, Difference):
            named[found.name] += 1
            if options.verbose:
                print(f"{found.name}: {say(q)}: {a['status']}, OpenSM {b['status']}")
        elif found:
            failed += 1
            print(f"FAIL: {say(q)}: {found}", file=sys.stderr)
    good = sum(a["status"] == 0 for a in ours)
    print(f"{len(requests)} requests, {good} of them with records; {failed} differ; with a name: "
          + ", ".join(f"{name} {n}" for name, n in named.items()))
    if good < len(requests) // 3:
        print("FAIL: most requests are refused: they show little", file=sys.stderr)
        failed = 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
