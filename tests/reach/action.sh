#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# action.sh [SUITE [PACKAGE]]: the action for GitHub's workflows on a Debian made from nothing, by default this one's
# release: it installs the package, as in a container's job, which root runs. Then the jobs of an ordinary
# user, for whom it is installed: plain commands, by verbs and by rdma_cm. 20 jobs, none fails.
#
# ./run package has made the package (test reach.package_build), unless one is named; $UMBEL_TEST_ROOTS keeps
# fresh roots.

. "$(dirname "$0")/../system/lib.sh"

cd "$(dirname "$0")/../.." || exit 1

workflow()
{
	tests/system/github.py "$@"
}

as_user()
{
	setpriv --reuid tester --regid tester --init-groups env -i HOME=/home/tester LANG=C.UTF-8 \
		PATH=/usr/local/bin:/usr/bin:/bin "$@"
}

# servers and clients as plain commands, on one device
job='
ibv_devinfo -d mlx5_0 | grep "ACTIVE (4)"
ib_write_bw -F -d mlx5_0 -p PORT -n 100 > /tmp/PORT.server & server=$!
until grep -qi ":$(printf %x PORT) " /proc/net/tcp /proc/net/tcp6 || ! kill -0 $server; do sleep 0.05; done
ib_write_bw -F -d mlx5_0 -p PORT -n 100 127.0.0.1 | grep "65536 "
wait $server
stdbuf -oL mckey -b 10.0.0.1 -m 239.1.1.1 -c 1 -C 3 > /tmp/PORT.receiver & receiver=$!
until grep -q "joined dgid" /tmp/PORT.receiver || ! kill -0 $receiver; do sleep 0.05; done
mckey -b 10.0.0.1 -m 239.1.1.1 -c 1 -C 3 -s > /dev/null
wait $receiver
grep "return status 0" /tmp/PORT.receiver
rping -s -a 10.0.0.1 -C 3 -V & server=$!
until umbel status --json | grep -q "\"listeners\": 1" || ! kill -0 $server; do sleep 0.05; done
rping -c -a 10.0.0.1 -C 3 -V -v | grep -c "ping data: rdma-ping"
wait $server'

inside()
{
	local package=(./umbel_*.deb) i url from

	apt-get -qq update || exit 1
	expect 0 '*' apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends \
		python3-yaml ibverbs-utils perftest rdmacm-utils infiniband-diags
	useradd --create-home tester
	# root, as in a container's job: the package comes with the action, as a file or from a server
	launch server python3 -u -m http.server 0 --bind 127.0.0.1
	wait_until 'there is a server' grep -q ' port ' "$TMPDIR/server.out"
	url=http://127.0.0.1:$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$TMPDIR/server.out")
	export no_proxy=127.0.0.1
	for from in "${package[0]}" "$url/${package[0]#./}"; do
		expect 0 $'*\nmlx5_0' workflow package="$from" names=mlx5_%d 'ls /sys/class/infiniband'
		expect 0 /usr/bin/umbel bash -c 'command -v umbel'
		expect 0 '*' umbel down
		[ "$from" != "${package[0]}" ] || expect 0 '*' dpkg --purge umbel
	done
	expect 1 '*cannot download http*' workflow package="$url/none.deb" true
	# an ordinary user, as on a runner where it is installed
	expect 0 $'*\nmlx5_0\nmlx5_1\n*hca_id:\tmlx5_1\n*' as_user tests/system/github.py hosts=2 hcas=2 names=mlx5_%d \
		'ls /sys/class/infiniband' 'ibv_devinfo -d mlx5_1'
	expect 0 '*umbel_h1_0*' as_user sh -c 'umbel down > /dev/null; eval "$(packaging/ci-start.sh)"; ls /sys/class/infiniband'
	as_user umbel down > /dev/null
	for ((i = 0; i < ${UMBEL_TEST_JOBS:-20}; i++)); do
		expect 0 $'*ACTIVE*65536 *return status 0*\n3*' as_user tests/system/github.py names=mlx5_%d "${job//PORT/$((19000 + i))}"
		as_user umbel down > /dev/null
	done
	[ $failed -ne 0 ] || echo "the action installs, and $i jobs passed"
}

if [ "${1-}" = inside ]; then
	TMPDIR=/tmp
	inside
	exit
fi
package=${2:-$(echo build/package/umbel_*.deb)}
[ -e "$package" ] || { complain "no package in build/package: ./run package"; exit; }
status=0
# shellcheck disable=SC1091
suite=${1:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
tools/debian-root.sh --suite "$suite" --copy "$UMBEL_TEST_ROOTS/$suite" --give "$package" tests/reach/action.sh inside || status=$?
trap - EXIT
exit $status
