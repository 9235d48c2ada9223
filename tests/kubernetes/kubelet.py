#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A kubelet for tests, as device plugins see it: it takes their registration, watches, and allocates.

What it sends and reads it codes itself, by the numbers that the API gives fields: a plugin with other numbers fails.

As a program, kubelet.py DIRECTORY OUTPUT DEVICE...: it waits for the plugin that registers in that directory until these devices
are healthy, allocates each, and writes what the container is to have, lines NAME=VALUE into OUTPUT/DEVICE.env, lines HOST_PATH
CONTAINER_PATH ro|rw into OUTPUT/DEVICE.mounts. Nothing of the plugin's may have a space.
"""

import os
import pathlib
import sys
import threading
import time
from concurrent import futures

os.environ['GRPC_ENABLE_FORK_SUPPORT'] = '0'
os.environ.setdefault('GRPC_VERBOSITY', 'NONE')

import grpc

DEADLINE = int(os.environ.get('UMBEL_TEST_SECONDS', 600)) // 4  # seconds, for whatever a test waits for


def varint(number):
    out = bytearray()
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def encode(number, value):
    """A field of bytes, or text, or a message that is coded already."""
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def decode(data):
    """The fields of a message: {number: [value, ...]}, a value is bytes or a number."""
    fields, at = {}, 0

    def read():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if not byte & 0x80:
                return value

    while at < len(data):
        key = read()
        value = read()
        if key & 7 == 2:
            assert at + value <= len(data), 'a field is cut'
            value, at = data[at:at + value], at + value
        else:
            assert key & 7 == 0, 'no field of this API has type %d' % (key & 7)
        fields.setdefault(key >> 3, []).append(value)
    return fields


def text(fields, number):
    return fields.get(number, [b''])[0].decode()


def wait_until(what, condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError('in vain: wait until ' + what)
        time.sleep(0.02)


def as_is(message):
    return message


class Container:
    """What a container is to have."""

    def __init__(self, data):
        fields = decode(data)
        assert set(fields) <= {1, 2}, 'a device plugin of ours gives variables and mounts only'
        entries = [decode(entry) for entry in fields.get(1, [])]
        self.variables = {text(entry, 1): text(entry, 2) for entry in entries}
        mounts = [decode(mount) for mount in fields.get(2, [])]
        self.mounts = {text(mount, 1): (text(mount, 2), mount.get(3, [0])[0] == 1) for mount in mounts}


class Plugin:
    """A plugin that has registered: its devices as it last told of them."""

    def __init__(self, path):
        self.devices = {}
        self.lists = 0
        self.channel = grpc.insecure_channel('unix:%s' % path)
        self.stream = self.channel.unary_stream('/v1beta1.DevicePlugin/ListAndWatch', as_is, as_is)(b'')
        self.ended = threading.Event()
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        try:
            for message in self.stream:
                devices = [decode(device) for device in decode(message).get(1, [])]
                self.lists += 1
                self.devices = {text(device, 1): text(device, 2) for device in devices}
        except grpc.RpcError:
            pass
        self.ended.set()

    def call(self, method, request=b''):
        return self.channel.unary_unary('/v1beta1.DevicePlugin/' + method, as_is, as_is)(request, timeout=DEADLINE)

    def allocate(self, *containers):
        """Each with a list of names of devices."""
        request = b''.join(encode(1, b''.join(encode(1, name) for name in names)) for names in containers)
        return [Container(data) for data in decode(self.call('Allocate', request)).get(1, [])]

    def has(self, **devices):
        return self.devices == devices

    def is_healthy(self, *names):
        return all(self.devices.get(name) == 'Healthy' for name in names)

    def close(self):
        self.stream.cancel()
        self.channel.close()


class Kubelet:
    """Its directory is as kubelet leaves it when it starts: without the sockets of others."""

    def __init__(self, directory, refuse=None):
        self.directory = pathlib.Path(directory)
        self.refuse = refuse
        self.registrations = []
        for socket in self.directory.iterdir():
            socket.unlink()
        self.server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[grpc.method_handlers_generic_handler(
            'v1beta1.Registration', {'Register': grpc.unary_unary_rpc_method_handler(self.register)})])
        self.server.add_insecure_port('unix:%s' % (self.directory / 'kubelet.sock'))
        self.server.start()

    def register(self, data, context):
        fields = decode(data)
        self.registrations.append({'version': text(fields, 1), 'endpoint': text(fields, 2), 'resource': text(fields, 3)})
        if self.refuse:
            context.abort(grpc.StatusCode.UNKNOWN, self.refuse)
        return b''

    def plugin(self, number=1):
        """The plugin that has registered as number-th."""
        wait_until('a plugin registers', lambda: len(self.registrations) >= number)
        return Plugin(self.directory / self.registrations[number - 1]['endpoint'])

    def stop(self):
        self.server.stop(0).wait()


def main():
    kubelet, output = Kubelet(sys.argv[1]), pathlib.Path(sys.argv[2])
    names = sys.argv[3:]
    plugin = kubelet.plugin()
    wait_until('%s are healthy' % names, lambda: plugin.is_healthy(*names))
    for name in names:
        container, = plugin.allocate([name])
        (output / (name + '.env')).write_text(''.join('%s=%s\n' % pair for pair in container.variables.items()))
        (output / (name + '.mounts')).write_text(''.join(
            '%s %s %s\n' % (host, path, 'ro' if read_only else 'rw') for path, (host, read_only) in container.mounts.items()))
    plugin.close()
    kubelet.stop()


if __name__ == '__main__':
    main()
