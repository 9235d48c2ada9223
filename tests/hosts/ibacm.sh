#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibacm on each host resolves the others' IP addresses, which it asks all for by a multicast group; the path
# it asks the SA for. Its file says which address a port has: by itself it takes those of network devices of
# InfiniBand's type, which no TUN device has.

# ibacm writes its port to /run/ibacm.port, where clients read it: the /run of this test is its own
if [ "$(id -u)" -eq 0 ] && [ "${OWN_RUN:-}" != yes ]; then
	# shellcheck disable=SC2016 # the shell in there replaces these
	exec unshare --mount env OWN_RUN=yes sh -c 'mount -t tmpfs tmpfs /run && exec "$0" "$@"' "$0" "$@"
fi

. "${0%/*}/lab.sh"

umbel up --hosts 3 --ipoib > /dev/null || exit 1
for host in h1 h2 h3; do
	cat > "$TMPDIR/$host.opts" <<-END
		log_file $TMPDIR/$host.log
		lock_file $TMPDIR/$host.lock
		server_mode loop
		addr_prot acm
		route_prot sa
		support_ips_in_addr_cfg 1
		timeout 500
		retries 3
	END
	echo "10.0.0.${host#h} umbel_${host}_0 1 default" > "$TMPDIR/$host.addr"
	start $host $host ibacm -P -A "$TMPDIR/$host.addr" -O "$TMPDIR/$host.opts"
	wait_until "ibacm of $host listens" umbel exec $host -- grep -q ':17ED .* 0A ' /proc/net/tcp
done

# resolves NUMBER: whether h1's has a path to that host; its datagrams may get lost, and time may run out
resolves()
{
	output=$(umbel exec h1 -- ib_acme -f i -s 10.0.0.1 -d "10.0.0.$1" -v -S 127.0.0.1 2>&1) &&
		[[ $output == *"dgid: fe80::275:6d00:0:${1}01"*'sgid: fe80::275:6d00:0:101'*"dlid: $1"*'SA verification: success'* ]]
}
for number in 2 3; do
	wait_until "h1 has the path to h$number" resolves $number || complain "$output"
done
expect 255 '*failed*' umbel exec h1 -- ib_acme -f i -s 10.0.0.1 -d 10.0.0.9 -S 127.0.0.1
for host in h1 h2 h3; do
	kill -9 "${pid[$host]}"
	wait_ended $host 137
done
umbel down > /dev/null
