#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""umbel-device-plugin and a kubelet (kubelet.py): plugin.py PLUGIN [CASE]..., in the sandbox of tests.

Each function below whose name begins with test_ is a case, in a directory of its own. It fails by an exception, and then what the
plugin said is shown.
"""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

import grpc

sys.dont_write_bytecode = True  # not into the sources

import kubelet  # noqa: E402
from kubelet import Kubelet, wait_until  # noqa: E402

PROGRAM = os.path.realpath(sys.argv[1])
place = None  # the case's directory
log = None  # what its plugins say


def said(words):
    return words in log.read_text()


def wait_said(words):
    wait_until("it says '%s'" % words, lambda: said(words))


def start(*arguments, directory='plugins'):
    with open(log, 'a') as output:
        return subprocess.Popen([PROGRAM, '--kubelet', place / directory, '--libraries', place / 'lib', *arguments],
                                stdin=subprocess.DEVNULL, stdout=output, stderr=output)


@contextlib.contextmanager
def plugin(*arguments, status=0):
    """A plugin for the time of a block, which ends it, unless it ends itself with another status."""
    process = start(*arguments)
    try:
        yield process
        if not status:
            assert process.poll() is None, 'it has ended with status %d' % process.returncode
            process.terminate()
        assert process.wait(kubelet.DEADLINE) == status, 'its status is %d' % process.returncode
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def fabric(hosts):
    umbel('up', '--hosts', str(hosts))
    try:
        yield
    except Exception:
        print('---- the fabric:')
        sys.stdout.flush()
        subprocess.run('umbel status; ls -lR "$UMBEL_RUNTIME_DIR"; cat "$UMBEL_RUNTIME_DIR/default/log"', shell=True,
                       stderr=sys.stdout)
        raise
    finally:
        subprocess.run(['umbel', 'down'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def umbel(*arguments):
    return subprocess.run(['umbel', *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def fails(code, words, call, *arguments):
    """A call of gRPC's does, with that status and these words."""
    try:
        call(*arguments)
    except grpc.RpcError as error:
        assert error.code() == code and words in error.details(), '%s: %s' % (error.code(), error.details())
    else:
        raise AssertionError("it does not fail: '%s'" % words)


def test_devices_are_hosts():
    with fabric(2), plugin():
        daemon = Kubelet(place / 'plugins')
        devices = daemon.plugin()
        assert daemon.registrations == [{'version': 'v1beta1', 'endpoint': 'umbel-hca.sock', 'resource': 'umbel/hca'}]
        wait_until('it lists the hosts', lambda: devices.has(h1='Healthy', h2='Healthy'))
        for method in 'GetDevicePluginOptions', 'PreStartContainer', 'GetPreferredAllocation':
            assert devices.call(method) == b'', method  # nothing is preferred, or to be called before a start
        first, second = devices.allocate(['h1'], ['h2'])
        assert first.variables['UMBEL_HOST'] == 'h1' and second.variables['UMBEL_HOST'] == 'h2'
        fabrics = os.environ['UMBEL_RUNTIME_DIR']
        assert first.variables['UMBEL_RUNTIME_DIR'] == fabrics and first.mounts[fabrics] == (fabrics, False)
        libraries = first.variables['LD_LIBRARY_PATH'].split(':')[0]
        assert first.mounts[libraries] == (str(place / 'lib'), True)
        assert len(first.mounts) == 2 and first.mounts == second.mounts
        assert (place / 'lib' / 'libibverbs.so.1').stat().st_size > 0
        devices.close()


def test_wrong_devices_are_refused():
    with fabric(2), plugin('--host', 'h1', '--host', 'h7'):
        devices = Kubelet(place / 'plugins').plugin()
        wait_until('it lists those that it was given', lambda: devices.has(h1='Healthy', h7='Unhealthy'))
        wait_said("fabric 'default' has no host 'h7'")
        for _ in range(2):  # as for a container that is started again: kubelet alone knows who has what
            assert devices.allocate(['h1'])[0].variables['UMBEL_HOST'] == 'h1'
        fails(grpc.StatusCode.NOT_FOUND, "there is no device 'h2' of umbel/hca", devices.allocate, ['h2'])
        fails(grpc.StatusCode.UNAVAILABLE, "fabric 'default' has no host 'h7'", devices.allocate, ['h7'])
        fails(grpc.StatusCode.INVALID_ARGUMENT, 'it can have umbel/hca: 1, not 2', devices.allocate, ['h1', 'h7'])
        fails(grpc.StatusCode.INVALID_ARGUMENT, 'it can have umbel/hca: 1, not 0', devices.allocate, [])
        fails(grpc.StatusCode.NOT_FOUND, 'h2', devices.allocate, ['h1'], ['h2'])
        assert devices.allocate() == []
        devices.close()


def test_a_host_is_shared():
    with fabric(2), plugin('--share', '2', '--resource', 'example.org/HCA_2', '--host', 'h2'):
        daemon = Kubelet(place / 'plugins')
        devices = daemon.plugin()
        assert daemon.registrations[0]['resource'] == 'example.org/HCA_2'
        wait_until('it lists the host twice', lambda: devices.has(**{'h2.0': 'Healthy', 'h2.1': 'Healthy'}))
        assert devices.allocate(['h2.1'])[0].variables['UMBEL_HOST'] == 'h2'
        devices.close()


def test_health_follows_the_daemon():
    with plugin() as process:
        devices = Kubelet(place / 'plugins').plugin()
        wait_until('it lists none', lambda: devices.lists == 1 and devices.devices == {})
        for hosts, healthy in (2, {'h1': 'Healthy', 'h2': 'Healthy'}), (1, {'h1': 'Healthy', 'h2': 'Unhealthy'}):
            with fabric(hosts):
                wait_until('they are healthy', lambda: devices.devices == healthy)
                assert devices.allocate(['h1'])[0].variables['UMBEL_HOST'] == 'h1'
                os.kill(daemon_pid(), signal.SIGKILL)
                wait_until('they are not', lambda: devices.has(h1='Unhealthy', h2='Unhealthy'))
                fails(grpc.StatusCode.UNAVAILABLE, "device 'h1': umbel: ", devices.allocate, ['h1'])
        with fabric(2):
            wait_until('they are healthy again', lambda: devices.has(h1='Healthy', h2='Healthy'))
            lists = devices.lists
        wait_until('they are not', lambda: devices.has(h1='Unhealthy', h2='Unhealthy'))
        assert devices.lists == lists + 1 and process.poll() is None
        devices.close()


def daemon_pid():
    return next(int(line.split()[1].rstrip(',')) for line in umbel('status', '--name', 'default', '--json').splitlines()
                if line.strip().startswith('"pid"'))


def test_a_daemon_that_stands_still():
    with fabric(1), plugin():
        devices = Kubelet(place / 'plugins').plugin()
        wait_until('it is healthy', lambda: devices.has(h1='Healthy'))
        daemon = daemon_pid()
        os.kill(daemon, signal.SIGSTOP)
        try:
            wait_until('it is not', lambda: devices.has(h1='Unhealthy'))
            devices.close()
        finally:
            os.kill(daemon, signal.SIGCONT)


def terminate(process):
    """How long it takes to end."""
    begin = time.monotonic()
    process.terminate()
    assert process.wait(kubelet.DEADLINE) == 0
    return time.monotonic() - begin


def test_it_waits_for_kubelet():
    with fabric(1), plugin():
        wait_said('waits for kubelet: nobody answers at %s/plugins/kubelet.sock' % place)
        devices = Kubelet(place / 'plugins').plugin()
        wait_until('it is healthy', lambda: devices.has(h1='Healthy'))
        devices.close()


def test_kubelet_starts_again():
    with fabric(1), plugin():
        for _ in range(3):
            daemon = Kubelet(place / 'plugins')
            devices = daemon.plugin()
            wait_until('it is healthy', lambda: devices.has(h1='Healthy'))
            daemon.stop()  # its socket goes; the plugin goes on
            assert devices.allocate(['h1'])[0].variables['UMBEL_HOST'] == 'h1'
            before = devices
        daemon = Kubelet(place / 'plugins')
        devices = daemon.plugin()
        wait_until('it is healthy', lambda: devices.has(h1='Healthy'))
        wait_until('the stream of before has ended', before.ended.is_set)
        assert len(daemon.registrations) == 1
        assert sorted(path.name for path in (place / 'plugins').iterdir()) == ['kubelet.sock', 'umbel-hca.sock']
        devices.close()


def test_kubelet_refuses():
    with fabric(1), plugin(status=1):
        Kubelet(place / 'plugins', refuse='the version is not supported')
    assert said("kubelet refuses 'umbel/hca': the version is not supported")
    assert [path.name for path in (place / 'plugins').iterdir()] == ['kubelet.sock']


def test_two_plugins():
    with fabric(1), plugin():
        daemon = Kubelet(place / 'plugins')
        devices = daemon.plugin()
        with plugin(status=1):
            wait_said("another plugin serves 'umbel/hca': it answers at %s/plugins/umbel-hca.sock" % place)
        with plugin('--resource', 'umbel/other'):
            others = daemon.plugin(2)
            wait_until('the other is healthy', lambda: others.has(h1='Healthy'))
            assert devices.allocate(['h1']) and not devices.ended.is_set()
        wait_until('the other has ended', others.ended.is_set)
        assert len(daemon.registrations) == 2 and devices.allocate(['h1'])
        devices.close()


def test_many_start_at_once():
    with fabric(1):
        daemon = Kubelet(place / 'plugins')
        processes = [start() for _ in range(6)]
        try:
            wait_until('one is left', lambda: sum(process.poll() is None for process in processes) == 1)
            devices = daemon.plugin()
            wait_until('it is healthy', lambda: devices.has(h1='Healthy'))
            assert len(daemon.registrations) == 1
            one, = (process for process in processes if process.poll() is None)
            assert sorted(process.returncode for process in processes if process is not one) == [1] * 5
            terminate(one)
            devices.close()
        finally:
            for process in processes:
                process.kill()
                process.wait()


def test_after_one_that_was_killed():
    with fabric(1):
        daemon = Kubelet(place / 'plugins')
        killed = start()
        daemon.plugin().close()
        killed.kill()
        killed.wait()
        assert (place / 'plugins' / 'umbel-hca.sock').exists()
        with plugin():
            devices = daemon.plugin(2)
            wait_until('it is healthy', lambda: devices.has(h1='Healthy'))
            devices.close()
        assert [path.name for path in (place / 'plugins').iterdir()] == ['kubelet.sock']


def test_it_ends_at_once():
    took = []
    with fabric(1):
        for _ in range(3):
            daemon = Kubelet(place / 'plugins')
            process = start()
            streams = [daemon.plugin() for _ in range(4)]
            wait_until('all are told', lambda: all(stream.has(h1='Healthy') for stream in streams))
            took.append(terminate(process))
            for stream in streams:
                wait_until('the stream ends', stream.ended.is_set)
            daemon.stop()
    assert min(took) < 2, took


def test_it_ends_while_kubelet_is_silent():
    took = []
    for _ in range(3):
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(place / 'plugins' / 'kubelet.sock'))
            silent.listen()
            process = start()
            silent.accept()[0].recv(1)  # it connects, and gets no answer
            took.append(terminate(process))
            os.unlink(place / 'plugins' / 'kubelet.sock')
    assert min(took) < 2, took


def test_libraries_are_replaced():
    (place / 'lib').mkdir()
    old = place / 'lib' / 'libibverbs.so.1'
    old.write_text('of an older version')
    with open(old) as held, fabric(1):  # as a program of a container's does
        for _ in range(2):
            with plugin():
                devices = Kubelet(place / 'plugins').plugin()
                wait_until('it is healthy', lambda: devices.has(h1='Healthy'))
                devices.close()
            installed = old.stat()
        assert held.read() == 'of an older version' and old.stat().st_size > 100000
        assert old.stat().st_ino == installed.st_ino, 'what is the same is left as it is'
        assert not list((place / 'lib').glob('.*'))


def test_wrong_arguments():
    for words, arguments in {
            "'hca' is no name of a resource": ['--resource', 'hca'],
            "'Umbel/hca' is no name of a resource": ['--resource', 'Umbel/hca'],
            "'0' is not in 1..1000": ['--share', '0'],
            "'x' is not in 1..1000": ['--share', 'x'],
            '/nowhere, where kubelet has its socket, is no directory': ['--kubelet', '/nowhere'],
            'unrecognized arguments: h1': ['h1'],
    }.items():
        assert start(*arguments).wait(kubelet.DEADLINE) == 2
        assert said(words), words
    environment = {**os.environ, 'PATH': '/usr/bin:/bin'}
    done = subprocess.run([PROGRAM, '--kubelet', place], env=environment, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, 'umbel-device-plugin: there is no program umbel\n') or \
        os.path.exists('/usr/bin/umbel')


def test_help_and_page():
    def options(pattern, text):
        return sorted(set(re.findall(pattern, text, re.M)))

    said = subprocess.run([PROGRAM, '--help'], check=True, stdout=subprocess.PIPE, text=True).stdout
    page = (pathlib.Path(__file__).parents[2] / 'man' / 'umbel-device-plugin.8.in').read_text()
    assert options(r'--([a-z]+)', said) == options(r'^\.It (?:Fl \w , )?Fl -([a-z]+)', page)


def main():
    global place, log
    failed = 0
    cases = sys.argv[2:] or [name for name in globals() if name.startswith('test_')]
    for name in cases:
        with tempfile.TemporaryDirectory(dir=os.environ['TMPDIR']) as directory:
            place = pathlib.Path(directory)
            (place / 'plugins').mkdir()
            log = place / 'log'
            log.touch()
            begin = time.monotonic()
            try:
                globals()[name]()
            except Exception:
                failed = 1
                print('FAIL: %s' % name)
                traceback.print_exc(file=sys.stdout)
                print('---- the plugin said:', log.read_text(), sep='\n')
            print('%s: %.1f s' % (name, time.monotonic() - begin), flush=True)
    sys.stdout.flush()
    os._exit(failed)  # whatever streams are left


if __name__ == '__main__':
    main()
