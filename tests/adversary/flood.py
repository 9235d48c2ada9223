# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# flood.py CONNECTIONS VERSION: connects so often to the fabric's daemon, and says no word to it. Prints why it is
# turned away in the end. At SIGUSR1 it gives all back, connects again at once, as it does with 0 connections, and
# says hello in that version of the protocol. It reads no file: users run it who may not read this folder.

import errno, os, resource, signal, socket, struct, sys

FILE = os.environ["UMBEL_RUNTIME_DIR"] + "/default/ctl"
HEADER = struct.Struct("IIiI")  # struct control_header
HELLO = HEADER.pack(1, 1, 0, 40) + struct.pack("II32s", int(sys.argv[2]), 0, b"")


def say(line):
    os.write(1, (line + "\n").encode())


def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(FILE)
    return s


def answer(s):
    """The status that comes, and the words behind it."""
    packet = s.recv(2048)
    status = HEADER.unpack_from(packet)[2]
    return "in" if not status else errno.errorcode[-status] + ": " + packet[HEADER.size :].decode()


signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = [connect() for _ in range(int(sys.argv[1]))]
if held:
    say("turned away: " + answer(held[-1]))
    signal.sigwait([signal.SIGUSR1])
for s in held:
    s.close()
again = []
for _ in range(20):
    again.append(connect())
    again[-1].send(HELLO)
say("asks again")
for s in again:
    say("again: " + answer(s))
signal.sigwait([signal.SIGUSR1])
