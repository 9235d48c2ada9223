#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# archive.sh [SUITE...]: makes the archive and the wheel (./run package --wheel), shows that their files take nothing from the
# machine but the C library's 2.31, and uses them on Debian 11 to 13 made from nothing, or on these suites. There the archive
# runs before any other package is installed: from any folder, by a user, by a link, beside a copy of another version, beside a
# daemon of another version, with a /tmp from which nothing may be executed, or that may not be written; when it is removed,
# nothing is left. The wheel is installed in a virtual environment, used, and removed. ctest's reach.archive; it takes ten
# minutes, and four if the roots in build/ are there.
#
# archive.sh arm64: makes those for 64-bit ARM, checks the files, and has qemu-user run what needs no shared memory.

if [ ! "${UMBEL_RUNTIME_DIR:-}" ] && [ "${1-}" != inside ]; then
	here=$(cd "$(dirname "$0")" && pwd)
	export UMBEL_TEST_ROOTS=$here/../../build/roots
	exec "$here/../in-sandbox.sh" "$here/../../build/release/bin/umbel" '' "$here/archive.sh" "$@"
fi
. "$(dirname "$0")/../system/lib.sh"

# The C library's, and ours: programs on a fabric find them by LD_LIBRARY_PATH.
libraries='ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1
	libibumad.so.3 libibverbs.so.1 librdmacm.so.1'

# check_file FOLDER FILE
check_file()
{
	local name version function

	while read -r name; do
		[[ " ${libraries//[$'\n\t']/ } " == *" $name "* ]] || [ -e "$1/lib/umbel/private/$name" ] ||
			complain "$2 needs $name, which is not in the archive"
	done < <(readelf -d "$2" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p')
	while read -r version function; do
		[ "$(printf '%s\n' "$version" 2.31 | sort -V | tail -n 1)" = 2.31 ] ||
			complain "$2 takes $function from the C library $version"
	done < <(readelf -W --dyn-syms "$2" | sed -n 's/.* \([^ ]*\)@GLIBC_\([0-9.]*\).*/\2 \1/p')
}

# check_files FOLDER MACHINE: each program and library, and that the archive has the licence of what is not ours
check_files()
{
	local file files=0

	while read -r file; do
		head -c 4 "$file" | grep -q ELF || continue
		readelf -h "$file" | grep -q "Machine: .*$2" || complain "$file is for another machine"
		check_file "$1" "$file"
		((files++))
	done < <(find "$1" -type f)
	[ $files -ge 16 ] || complain "there are $files programs and libraries in $1"
	[ -e "$1/share/doc/umbel/private/libjson-c5" ] || complain "the copyright of json-c is not in the archive"
	expect 1 '' grep -rl "$PWD" "$1"/bin "$1"/lib "$1"/share --include='*.pc' --include='*.service'
}

tools=/home/tester/tools

# as_user COMMAND...: with $variable in its environment besides, if that is set
as_user()
{
	setpriv --reuid tester --regid tester --init-groups env -i HOME=/home/tester LANG=C.UTF-8 PATH=/usr/bin:/bin \
		${variable:+"$variable"} "$@"
}

# Files of the user's, and in /tmp, and of ours in /run. A user's folder of fabrics stays, and is empty. Folders for sockets of X
# come with packages of Debian 14.
left()
{
	find /home/tester /tmp -mindepth 1 ! -path '/home/tester/.cache*' ! -path /tmp/umbel-1000 ! -path '/tmp/.*-unix' | sort
	find /run -name '*umbel*'
}

# A Debian without any library of RDMA, and without Python.
use_bare()
{
	local umbel=$tools/old/bin/umbel

	expect 0 '' as_user mkdir -p $tools/old $tools/links
	expect 0 '' as_user tar -C $tools/old --strip-components 1 -xzf "$archive"
	expect 0 "umbel $version" as_user $umbel --version
	expect 0 '64-byte multicast, h1 to h2*' as_user $umbel run --hosts 2 -- umbel-latency
	expect 0 '*40 sent, 0 lost*' as_user $umbel simulate --fat-tree 2 --hosts 40 permutation
	expect 0 '' ln -s $umbel $tools/links/umbel
	expect 0 '*is up*' as_user env -C / $tools/links/umbel up --hosts 2
	# shellcheck disable=SC2016 # the shell in there replaces it
	expect 0 $'umbel_h1_0\n'"$tools/old/lib/umbel" as_user $umbel exec h1 -- \
		sh -c 'ls /sys/class/infiniband; echo "${LD_LIBRARY_PATH%%:*}"'
	expect 0 '' as_user mv $tools/old $tools/moved # its daemon runs
	expect 0 $'*h1*\n*h2*' as_user $tools/moved/bin/umbel show hosts
	expect 0 '*is down' as_user $tools/moved/bin/umbel down
	expect 0 '' as_user mv $tools/moved $tools/old
}

# Another version beside it: a copy that says so. Each serves its own fabric's programs, and both see both fabrics.
use_two()
{
	local old=$tools/old/bin/umbel new=$tools/new/bin/umbel

	expect 0 '' as_user cp -r $tools/old $tools/new
	expect 0 '' sed -i "s/\\x00$version\\x00/\\x00${version%.*}.9\\x00/g" $new
	expect 0 "umbel ${version%.*}.9" as_user $new --version
	expect 0 '*is up*' as_user $old up --name a --hosts 2
	expect 0 '*is up*' as_user $new up --name b --hosts 3
	expect 0 $'NAME *\na *\nb *' as_user $new status
	expect 0 "*libibverbs.so.1 => $tools/new/lib/umbel/libibverbs.so.1 *" as_user $new run -- ldd $new-latency
	expect 0 "*libibverbs.so.1 => $tools/old/lib/umbel/libibverbs.so.1 *" as_user $old exec --name b h1 -- ldd $old-latency
	expect 0 '64-byte multicast, h1 to h2*' as_user $old exec --name b -- umbel-latency
	expect 0 '' rm -r $tools/old # the daemon of a goes on
	expect 0 $'*h1*\n*h2*' as_user $new show --name a hosts
	expect 0 '*is down*' as_user $new down --name a
	expect 0 '*is down*' as_user $new down --name b
	expect 0 '' as_user mv $tools/new $tools/old
}

# A daemon of another version, which refuses what we say.
use_beside_other()
{
	local umbel=$tools/old/bin/umbel

	expect 0 '' as_user $umbel run -- true # makes the folder of fabrics
	launch other as_user /usr/bin/python3 -u -c '
import os, socket, struct, threading
def refuse(peer):
    kind, serial = struct.unpack("2I", peer.recv(2048)[:8])
    peer.send(struct.pack("2IiI", kind, serial, -71, 0))
os.mkdir("/tmp/umbel-1000/other", 0o700)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("/tmp/umbel-1000/other/ctl")
listener.listen()
print("listens")
while True:
    threading.Thread(target=refuse, args=(listener.accept()[0],), daemon=True).start()'
	wait_until 'a daemon of another version listens' grep -q listens "$TMPDIR/other.out"
	expect 1 '*is of another version of Umbel*' as_user $umbel exec --name other h1 -- true
	expect 0 '*is up*' as_user $umbel up --name mine --hosts 2
	expect 1 $'*other*another version*\nmine *' as_user $umbel status
	expect 0 'umbel_h2_0' as_user $umbel exec --name mine h2 -- ls /sys/class/infiniband
	expect 0 '*is down*' as_user $umbel down --name mine
	expect 0 '*is down*' as_user $umbel down --name other
	wait_ended other 143
	rm -r /tmp/umbel-1000/other
}

# A /tmp from which nothing may be executed; then one that may not be written.
use_strict_tmp()
{
	local umbel=$tools/old/bin/umbel variable=

	expect 0 '' mount -o remount,noexec /tmp
	expect 0 '64-byte multicast, h1 to h2*' as_user $umbel run --hosts 2 -- umbel-latency
	expect 0 '' rmdir /tmp/umbel-1000
	expect 0 '' mount -o remount,ro /tmp
	expect 125 '*/tmp/umbel-1000*UMBEL_RUNTIME_DIR*' as_user $umbel run -- true
	expect 0 '' as_user mkdir -m 700 /home/tester/run
	variable=UMBEL_RUNTIME_DIR=/home/tester/run
	expect 0 '64-byte multicast, h1 to h2*' as_user $umbel run --hosts 2 -- umbel-latency
	expect 0 '' mount -o remount,rw,exec /tmp
	expect 0 '' rmdir /home/tester/run
}

# Programs of Debian, and the wheel in a virtual environment that has Debian's pytest.
use_programs()
{
	local venv=/home/tester/venv

	expect 0 '*received 10 messages of 100 bytes*h3 *received 10 messages*One-way latency*' \
		as_user tools/demo.sh $tools/old/bin/umbel
	expect 0 '' as_user python3 -m venv --system-site-packages $venv
	(cd $venv && find . -type f ! -name '*.pyc' | sort) > "$TMPDIR/venv"
	expect 0 '*Successfully installed umbel*' as_user $venv/bin/pip install -q -v --no-index ./umbel-*.whl
	expect 0 "umbel $version" as_user $venv/bin/umbel --version
	expect 0 'h2 is cut off' as_user $venv/bin/python tests/libumbel/links.py 'two words'
	variable=PATH=$venv/bin:/usr/bin:/bin
	expect 0 $'umbel_h1_0\numbel_h2_0' as_user umbel run --hosts 2 -- ls /sys/class/infiniband
	expect 0 '*2 passed*' as_user umbel run --hosts 2 -- python -m pytest -q -p no:cacheprovider -p umbel_pytest \
		-k 'fires or cleared' tests/libumbel/test_faults.py
	expect 0 '*2 passed*' as_user python -m pytest -q -p no:cacheprovider -p umbel_pytest --umbel='--hosts 2' \
		-k 'fires or cleared' tests/libumbel/test_faults.py
	expect 0 umbel_h1_0 as_user umbel run --hosts 2 -- umbel-rsh h1 ls /sys/class/infiniband
	variable=
	expect 0 '*uninstalled umbel*' as_user $venv/bin/pip uninstall -y umbel
	(cd $venv && find . -type f ! -name '*.pyc' | sort) | diff "$TMPDIR/venv" - || complain 'pip has left something (>)'
	rm -r $venv
}

inside()
{
	local files=(/umbel/umbel-*.tar.gz) archive variable=

	archive=${files[0]}
	version=${archive#*/umbel-}
	version=${version%-linux-*}
	useradd --create-home tester
	left > "$TMPDIR/before"
	use_bare
	use_two
	use_strict_tmp
	apt-get -qq update || exit 1
	expect 0 '*' apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends rdmacm-utils ibverbs-utils python3-venv \
		python3-pytest
	use_beside_other
	use_programs
	rm -r $tools
	left | diff "$TMPDIR/before" - || complain 'something is left (>)'
	[ $failed -ne 0 ] || echo "the archive and the wheel run and leave"
}

if [ "${1-}" = inside ]; then
	TMPDIR=/root/test
	mkdir $TMPDIR
	inside
	exit
fi
cd "$(dirname "$0")/../.." || exit 1
if [ "${1-}" = arm64 ]; then
	expect 0 '*' ./run package --wheel arm64
	[ $failed -eq 0 ] || exit
	archive=$(echo build/archive/umbel-*-linux-arm64.tar.gz)
	version=${archive#*/umbel-}
	version=${version%-linux-*}
	expect 0 '' tar -C "$TMPDIR" -xzf "$archive"
	check_files "$TMPDIR"/umbel-* AArch64
	expect 0 '*aarch64.whl*' ls build/archive
	# on the root on which it was made, which has ARM's C library; its qemu-user cannot seal shared memory
	expect 0 $'*\numbel '"$version"$'\nIBV_WC_RETRY_EXC_ERR, 12: *' tools/debian-root.sh --suite bullseye --keep build/bullseye-arm64.root --give "$archive" sh -c '
		apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends qemu-user &&
		mkdir -p /opt/archive && tar -C /opt/archive --strip-components 1 -xzf umbel-*-linux-arm64.tar.gz &&
		qemu-aarch64 /opt/archive/bin/umbel --version && qemu-aarch64 /opt/archive/bin/umbel explain wc 12'
	[ $failed -ne 0 ] || echo "the archive for 64-bit ARM is whole"
	exit
fi
[ "$(id -u)" -eq 0 ] || { echo 'only root can make the roots of other Debians: skipped'; trap - EXIT; exit 77; }
expect 0 '*' ./run package --wheel
[ $failed -eq 0 ] || exit
archive=$(echo build/archive/umbel-*-linux-amd64.tar.gz)
expect 0 '' tar -C "$TMPDIR" -xzf "$archive"
check_files "$TMPDIR"/umbel-* X86-64
[ $# -gt 0 ] || set -- bullseye bookworm trixie
for suite; do
	expect 0 '*the archive and the wheel run and leave' tools/debian-root.sh --suite "$suite" --copy "$UMBEL_TEST_ROOTS/$suite" \
		--give "$archive" --give build/archive/umbel-*x86_64.whl tests/reach/archive.sh inside
done
