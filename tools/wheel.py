#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""wheel.py ARCHIVE FOLDER: a wheel for pip, out of an archive of `./run package --tar`. Prints its path.

Programs become scripts, and what they look for beside them data, so that pip lays both as the archive has them: bin/umbel and
lib/umbel of a virtual environment. The modules of Python lie where Python looks for them."""

import base64
import hashlib
import pathlib
import re
import sys
import tarfile
import zipfile

METADATA = """Metadata-Version: 2.1
Name: umbel
Version: {version}
Summary: Software RDMA fabric in user space
License: GPL-2.0-only OR BSD-2-Clause
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{description}"""
WHEEL = """Wheel-Version: 1.0
Generator: umbel
Root-Is-Purelib: false
Tag: {tag}
"""
PROCESSORS = {'amd64': 'x86_64', 'arm64': 'aarch64'}
RSH = b'#!/bin/sh\nexec "${0%/*}/umbel" rsh "$@"\n'  # a wheel has no links
# what needs packages of its own, and what compilers look for elsewhere
LEFT_OUT = re.compile('bin/umbel-device-plugin|share/man/man8/umbel-device-plugin|lib/pkgconfig|lib/libumbel[.]so$')


def place(path, data, top):
    """Where a file of the archive lies in the wheel; None if nowhere."""
    if LEFT_OUT.match(path):
        return None
    if path.startswith('lib/python3/dist-packages/'):
        return path.rsplit('/', 1)[1]
    if path.startswith('bin/'):
        return f'{top}.data/scripts/{path[4:]}'
    return f'{top}.data/data/{path}'


def contents(archive, top):
    """(path in the wheel, bytes, whether it is executable) of the archive's files."""
    with tarfile.open(archive) as tar:
        for member in tar:
            path = member.name.partition('/')[2]
            if member.isdir() or not path:
                continue
            if path == 'bin/umbel-rsh':
                data, mode = RSH, 0o755
            else:
                data, mode = tar.extractfile(member).read(), member.mode  # of a link to a file, that file
            where = place(path, data, top)
            if where:
                yield where, data, mode & 0o111 != 0


def write(wheel, files, date):
    """The zip file, with its list of all files at the end."""
    record = []
    with zipfile.ZipFile(wheel, 'w', zipfile.ZIP_DEFLATED) as out:
        def add(path, data, executable=False):
            info = zipfile.ZipInfo(path, date)
            info.external_attr = (0o100755 if executable else 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(info, data)

        for path, data, executable in files:
            add(path, data, executable)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
            record.append(f'{path},sha256={digest},{len(data)}')
        where = files[-1][0].rpartition('/')[0] + '/RECORD'
        add(where, ('\n'.join([*record, f'{where},,']) + '\n').encode())


def main():
    archive, folder = map(pathlib.Path, sys.argv[1:])
    match = re.fullmatch(r'umbel-(.+)-linux-(amd64|arm64)\.tar\.gz', archive.name)
    if not match:
        sys.exit(f'wheel: {archive.name} is no archive of ./run package --tar')
    version, processor = match[1], PROCESSORS[match[2]]
    top, tag = f'umbel-{version}', f'py3-none-manylinux_2_31_{processor}'
    with tarfile.open(archive) as tar:
        description = tar.extractfile(f'{archive.name[:-7]}/share/doc/umbel/CHANGELOG.md').read().decode()
    files = list(contents(archive, top))
    files.append((f'{top}.dist-info/METADATA', METADATA.format(version=version, description=description).encode(), False))
    files.append((f'{top}.dist-info/WHEEL', WHEEL.format(tag=tag).encode(), False))
    wheel = folder / f'{top}-{tag}.whl'
    write(wheel, files, (2026, 1, 1, 0, 0, 0))
    print(wheel)


main()
