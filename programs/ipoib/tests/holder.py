# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""holder.py SOCKET COMMAND...: runs umbel-ipoib with a control socket, and has whoever connects to the
Unix socket SOCKET told the status."""

import os
import socket
import subprocess
import sys

ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1])
    listener.listen()
    child = subprocess.Popen(sys.argv[2:] + ["--control-fd", str(theirs.fileno())],
                             pass_fds=[theirs.fileno()])
    theirs.close()
    while child.poll() is None:
        client, _ = listener.accept()
        with client:
            ours.send(b"?")
            client.sendall(ours.recv(1 << 22))
sys.exit(child.returncode)
