# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Both ends of connections in one thread, by TCP sockets that are rsockets (`umbel exec --sockets h1`): as programs make
# socketpair(2) of TCP, Python's asyncio, and curl's multi interface.
import asyncio
import ctypes
import select
import selectors
import signal
import socket
import unittest

HOST = '10.0.0.1'
LATER_S = 20


class Pairs(unittest.TestCase):
    def setUp(self):
        def too_late(*_):
            raise TimeoutError(f'waited {LATER_S} s in {self.id()}')

        signal.signal(signal.SIGALRM, too_late)
        signal.alarm(LATER_S)
        self.listener = socket.create_server((HOST, 0))
        self.addCleanup(self.listener.close)
        self.addCleanup(signal.alarm, 0)

    def accept_from(self, client):
        end, name = self.listener.accept()
        self.assertEqual(name, client.getsockname())
        return end

    def expect_bytes_pass(self, client, server):
        with client, server:
            for a, b in (client, server), (server, client):
                a.sendall(b'x' * 1000)
                self.assertEqual(b.recv(1000, socket.MSG_WAITALL), b'x' * 1000)

    def test_socketpair_of_python(self):
        """Its fallback where the kernel has none."""
        for _ in range(10):
            client = socket.socket()
            client.setblocking(False)
            with self.assertRaises(BlockingIOError):
                client.connect(self.listener.getsockname())
            client.setblocking(True)
            self.expect_bytes_pass(client, self.accept_from(client))

    def test_pipe_of_java(self):
        """That of the JDK where the kernel's is of no use: the listener may hear another one first."""
        for secret in b'first', b'second':
            client = socket.create_connection(self.listener.getsockname())
            client.sendall(secret)
            server = self.accept_from(client)
            self.assertEqual(server.recv(len(secret), socket.MSG_WAITALL), secret)
            self.expect_bytes_pass(client, server)

    def test_the_connecting_end_alone_is_waited_for(self):
        for selector in selectors.EpollSelector, selectors.PollSelector, selectors.SelectSelector:
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(self.listener.getsockname())
            with selector() as s:
                s.register(client, selectors.EVENT_WRITE)
                self.assertEqual(len(s.select(LATER_S)), 1, f'{selector} has not heard of the connection')
            client.setblocking(True)
            self.expect_bytes_pass(client, self.accept_from(client))

    def test_asyncio(self):
        async def echo(reader, writer):
            writer.write(await reader.readexactly(1000))
            writer.write_eof()
            await reader.read()
            writer.close()

        async def ask(port):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(b'y' * 1000)
            self.assertEqual(await reader.read(), b'y' * 1000)
            writer.close()
            await writer.wait_closed()

        async def all_of_them():
            server = await asyncio.start_server(echo, HOST, 0)
            port = server.sockets[0].getsockname()[1]
            await asyncio.gather(*(ask(port) for _ in range(20)))
            server.close()

        asyncio.run(all_of_them())

    def serve(self, ends):
        """What there is by now; @ends has of each connection what it has asked. How many are served."""
        served = 0
        while select.select([self.listener], [], [], 0)[0]:
            ends[self.listener.accept()[0]] = b''
        for end in select.select(list(ends), [], [], 0)[0]:
            ends[end] += end.recv(1000)
            if ends[end].endswith(b'\r\n\r\n'):
                end.sendall(b'HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n' + ends.pop(end)[5:10])
                end.close()
                served += 1
        return served

    def test_multi_interface_of_curl(self):
        curl = ctypes.CDLL('libcurl.so.4')
        curl.curl_multi_init.restype = curl.curl_easy_init.restype = ctypes.c_void_p
        write_type = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
        write_function, url = 20011, 10002
        got, running, served, ends = [], ctypes.c_int(1), 0, {}

        @write_type
        def write(data, size, n, _):
            got.append(ctypes.string_at(data, size * n))
            return size * n

        multi = ctypes.c_void_p(curl.curl_multi_init())
        for i in range(8):
            easy = ctypes.c_void_p(curl.curl_easy_init())
            port = self.listener.getsockname()[1]
            curl.curl_easy_setopt(easy, url, ctypes.c_char_p(b'http://%s:%d/page%d' % (HOST.encode(), port, i)))
            curl.curl_easy_setopt(easy, write_function, write)
            curl.curl_multi_add_handle(multi, easy)
        while running.value:
            self.assertEqual(curl.curl_multi_perform(multi, ctypes.byref(running)), 0)
            curl.curl_multi_wait(multi, None, 0, 10, None)
            served += self.serve(ends)
        self.assertEqual(served, 8)
        self.assertEqual(sorted(got), [b'page%d' % i for i in range(8)])


unittest.main(verbosity=2)
