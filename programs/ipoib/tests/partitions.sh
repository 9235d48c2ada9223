#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Interfaces of partitions, beside that of the default one: they have the partition's broadcast group,
# and reach who is in the partition. Hosts that are not, or ports that are not there, have none.

. "${0%/*}/lab.sh"

cat > "$TMPDIR/conf" <<-'END'
	Default=0x7fff,ipoib:ALL=full;
	Red=0x10,ipoib,mtu=4:			# h1 to h3; 2048 bytes
		0x02756d0000000101=full, 0x02756d0000000201=full, 0x02756d0000000301=limited;
	Blue=0x20 : 0x02756d0000000101=full, 0x02756d0000000201=full;	# without a broadcast group
END
lab_up 4 --hosts 4 --partitions "$TMPDIR/conf"
interfaces 4

# child HOST PARTITION NETWORK: ib0.PARTITION with 10.NETWORK.0.K
child()
{
	local host=$1 pkey=$2 network=$3

	launch "$host-$pkey" ip netns exec "$host" umbel exec "$host" -- umbel-ipoib \
		--interface "ib0.$pkey" --pkey "0x$pkey" \
		--address "10.$network.0.${host#h}/24" --status-fd 1 --mode $mode
}

for host in h1 h2 h3; do
	child $host 8010 16
done
for host in h1 h2; do
	child $host 8020 32
done
for name in h1-8010 h2-8010 h3-8010 h1-8020 h2-8020; do
	wait_said $name R
done

expect 0 "*IPoIB in $mode mode, port 1 of umbel_h1_0, P_Key 0x8010, QPN *" on h1 ip link show ib0.8010
expect 0 $'0xffff\n0x8010\n0x8020' on h1 umbel exec h1 -- sh -c \
	'cd /sys/class/net; cat ib0/pkey ib0.8010/pkey ib0.8020/pkey'

wait_members ff12:401b:8010::ffff:ffff 'h1 full, h2 full, h3 full'
mtu=2044
[ $mode = datagram ] || mtu=65520
expect 0 "*mtu $mtu *" on h1 ip link show ib0.8010
pings 3 h1 -i 0.01 10.16.0.2
pings 3 h1 -i 0.01 -s 5000 10.16.0.3
pings 3 h1 -i 0.01 192.0.2.4
# two limited members would not hear each other; a full one hears both
pings 3 h3 -i 0.01 10.16.0.2

# Blue's broadcast group was made by the first who came
wait_members ff12:401b:8020::ffff:ffff 'h1 full, h2 full'
pings 3 h2 -i 0.01 10.32.0.1
[[ $(umbel show groups) == *"ff12:401b:8020::ffff:ffff"$'\n'*"Q_Key 0x00000b1b  P_Key 0x8020"* ]] ||
	complain "$(umbel show groups)"

# ---- who is not in the partition, and ports that are not there
expect 1 'umbel-ipoib: ib1: the port is not in this partition: *' \
	on h4 umbel exec h4 -- umbel-ipoib --interface ib1 --pkey 0x8010
expect 1 'umbel-ipoib: ib1: no such InfiniBand port: *' \
	on h4 umbel exec h4 -- umbel-ipoib --interface ib1 --port 2
expect 1 'umbel-ipoib: ib0: the interface: Device or resource busy' \
	on h4 umbel exec h4 -- umbel-ipoib --interface ib0
expect 2 'umbel-ipoib: which --interface[?]*' on h4 umbel exec h4 -- umbel-ipoib
expect 1 'umbel-ipoib: ib1: no such InfiniBand port: *' umbel-ipoib --interface ib1

# ---- partitions change: a P_Key has another place in the table; a host is in no longer
cat > "$TMPDIR/other" <<-'END'
	Default=0x7fff,ipoib:ALL=full;
	Green=0x8,ipoib: ALL=full;
	Red=0x10,ipoib,mtu=4: 0x02756d0000000101=full, 0x02756d0000000201=full;
END
umbel sm partitions "$TMPDIR/other"
carrier()
{
	[ "$(on "$1" cat "/sys/class/net/$2/carrier")" = "$3" ]
}
wait_until "h3 has lost its carrier" carrier h3 ib0.8010 0
wait_until "h1 reaches h2 as before" reaches h1 10.16.0.2
umbel sm partitions "$TMPDIR/conf"
wait_until "h3 has its carrier again" carrier h3 ib0.8010 1
wait_until "h1 reaches h3 again" reaches h1 10.16.0.3
