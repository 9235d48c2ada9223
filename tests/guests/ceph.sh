#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ceph.sh: Ceph, whose messenger speaks RDMA: a monitor on h1, an OSD on h2 that keeps objects in memory, and clients on both,
# who write objects on one host and read them on the other. All ends by SIGTERM with 0. By hand, as its packages are large and
# it takes a minute: ctest does not run it.

if [ ! "${UMBEL_RUNTIME_DIR:-}" ]; then
	here=$(cd "$(dirname "$0")" && pwd)
	exec "$here/../in-sandbox.sh" "$here/../../build/release/bin/umbel" '' "$here/ceph.sh"
fi
needs=ceph
. "${0%/*}/lib.sh"

conf=$TMPDIR/ceph.conf
fsid=$(cat /proc/sys/kernel/random/uuid)
mkdir "$TMPDIR/mon" "$TMPDIR/osd" "$TMPDIR/run"
# Buffers: more than the queues of all connections take.
cat > "$conf" << END
[global]
fsid = $fsid
ms_type = async+rdma
ms_bind_msgr2 = false
ms_async_rdma_receive_queue_len = 1024
ms_async_rdma_receive_buffers = 2048
ms_async_rdma_send_buffers = 512
mon_initial_members = a
mon_host = v1:10.0.0.1:6789
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_crush_chooseleaf_type = 0
osd_objectstore = memstore
memstore_device_bytes = 4294967296
osd_failsafe_full_ratio = 1.0
run_dir = $TMPDIR/run
admin_socket = $TMPDIR/run/\$name.\$pid.asok
log_file = $TMPDIR/\$name.log
[mon.a]
mon_data = $TMPDIR/mon
public_addr = 10.0.0.1
[osd.0]
osd_data = $TMPDIR/osd
public_addr = 10.0.0.2
cluster_addr = 10.0.0.2
END

# on HOST COMMAND...: by the host's own HCA, which all of Ceph's programs are told
on()
{
	local host=$1
	shift
	umbel exec "$host" -- timeout 60 "$@" -c "$conf" "--ms_async_rdma_device_name=umbel_${host}_0"
}

# launch_on NAME HOST COMMAND...: the same, until it is ended
launch_on()
{
	launch "$1" umbel exec "$2" -- "${@:3}" -c "$conf" "--ms_async_rdma_device_name=umbel_$2_0"
}

monitor_answers()
{
	on h2 ceph -s 2> /dev/null | grep -q 'mon: 1 daemons'
}

osd_is_up()
{
	on h2 ceph osd tree 2> /dev/null | grep -q 'osd[.]0 .* up '
}

umbel up --hosts 2 --ipoib > /dev/null
expect 0 '*' monmaptool --create --fsid "$fsid" --addv a '[v1:10.0.0.1:6789]' "$TMPDIR/map"
expect 0 '*' on h1 ceph-mon -i a --mkfs --monmap "$TMPDIR/map"
launch_on monitor h1 ceph-mon -f -i a
wait_until 'the monitor answers from another host' monitor_answers
uuid=$(cat /proc/sys/kernel/random/uuid)
expect 0 '*' on h2 ceph osd new "$uuid"
expect 0 '*' on h2 ceph-osd -i 0 --mkfs --osd-uuid "$uuid"
launch_on osd h2 ceph-osd -f -i 0
wait_until 'the OSD is up' osd_is_up
expect 0 '*' on h1 ceph osd pool create pool 4 4
for bytes in 1 70000 3000000; do
	head -c $bytes /dev/urandom > "$TMPDIR/object"
	expect 0 '*' on h1 rados -p pool put "object$bytes" "$TMPDIR/object"
	expect 0 '*' on h2 rados -p pool get "object$bytes" "$TMPDIR/copy"
	expect 0 '' cmp "$TMPDIR/object" "$TMPDIR/copy"
done
expect 0 '*Total writes made*' on h1 rados -p pool bench 4 write -t 4 -b 65536
expect 0 '* RC *' umbel show qps
for name in osd monitor; do
	kill "${pid[$name]}"
	wait_ended $name 0
done
