#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `rdma` of iproute2 sees HCAs, ports, queue pairs and counters as sysfs and `umbel show` have them, and
# changes nothing. Other requests to RDMA netlink are in rdma_netlink.py.

. "${0%/*}/lib.sh"

# of JSON, on standard input
value()
{
	python3 -c "import json, sys; d = json.load(sys.stdin); print($1)"
}

umbel up --hosts 3 > /dev/null

expect 0 '*0: umbel_h1_0: node_type ca *fw * node_guid 0275:6d00:0000:0100 sys_image_guid 0275:6d00:0000:0100 *2: umbel_h3_0: *' \
	umbel exec -- rdma dev
expect 0 'link umbel_h2_0/1 subnet_prefix fe80:0000:0000:0000 lid 2 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP ' \
	umbel exec h2 -- rdma link show
expect 0 '*state ACTIVE physical_state LINK_UP *caps: <*TRAP*>*' umbel exec h2 -- rdma -d link show umbel_h2_0/1
# capabilities are those of ibv_devinfo, of which each knows names for some
python3 - "$(umbel exec h2 -- rdma -d -j dev)" "$(umbel exec h2 -- ibv_devinfo -v)" <<- 'END' || complain "capabilities differ"
	import json, re, sys
	caps = json.loads(sys.argv[1])[0]['caps']
	flags, names = re.search(r'device_cap_flags:\s*(\S+)((?:\n\s+[A-Z_0-9]+)*)', sys.argv[2]).groups()
	names = [n for n in names.split() if not n.startswith('UNKNOWN')]
	every = int(re.search(r'device_cap_flags_ex:\s*(\S+)', sys.argv[2]).group(1), 16)
	assert int(flags, 16) == every & 0xffffffff and len(caps) == bin(every).count('1'), (caps, every)
	caps = [c.replace('ENFORCE_PORT_ENFORCE', 'ENFORCE') for c in caps]
	assert len(names) > 5 and set(names) <= set(caps), (caps, names)
END
umbel link down h2:1 > /dev/null
expect 0 'link umbel_h2_0/1 * state DOWN physical_state POLLING ' umbel exec h2 -- rdma link
umbel link up h2:1 > /dev/null
expect 0 'netns shared *copy-on-fork on' umbel exec -- rdma system
expect 1 'Wrong device name*' umbel exec h2 -- rdma link show umbel_h1_0/1
expect 1 'error: Operation not supported' umbel exec h2 -- rdma dev set umbel_h2_0 name other

# objects of programs
new_port
start server h3 ibv_rc_pingpong -p "$port"
wait_said server '  local address:'
expect 0 "link umbel_h3_0/1 lqpn * rqpn 0 type RC state INIT rq-psn 0 sq-psn 0 path-mig-state MIGRATED *pdn * pid * comm ibv_rc_pingpong " \
	umbel exec h3 -- rdma resource show qp
expect 0 'dev umbel_h3_0 cqn * cqe * users 1 *ctxn * pid * comm ibv_rc_pingpong ' umbel exec h3 -- rdma resource show cq
expect 0 '2: umbel_h3_0: pd 1 cq 1 qp 1 cm_id 0 mr 1 ctx 1 srq 0 ' umbel exec h3 -- rdma resource
expect 0 '' umbel exec h1 -- rdma resource show qp
[ "$(umbel show qps --json | value "d[0]['qpn'] + ' %d' % d[0]['pid']")" = \
	"$(umbel exec -- rdma -j resource show qp | value "'0x%06x %d' % (d[0]['lqpn'], d[0]['pid'])")" ] ||
	complain "rdma shows another queue pair than umbel"
new_port
start shared h2 ibv_srq_pingpong -q 4 -p "$port"
wait_said shared '  local address:' 4
expect 0 '1: umbel_h2_0: pd 1 cq 1 qp 4 cm_id 0 mr 1 ctx 1 srq 1 ' umbel exec h2 -- rdma resource
expect 0 'dev umbel_h2_0 srqn * type BASIC lqpn 3-6 *pdn * pid * comm *' umbel exec h2 -- rdma resource show srq

expect 0 '' umbel exec h1 -- /usr/bin/python3 "${0%/*}/rdma_netlink.py" 3000

# one without connected queue pairs; identifiers that listen at an address and at all, and a connection
new_port
start ud h1 ibv_ud_pingpong -p "$port"
wait_said ud '  local address:'
new_port
start listener h2 rping -s -a 10.0.0.2 -p "$port" -C 100000000
start everywhere all rping -s -p $((port + 1))
there_are()
{
	[ "$(umbel show connections --json | value "sum(c['by'] == 'rdma_cm' for c in d)")" -eq "$1" ]
}
wait_until "both listen" there_are 2
start client h1 rping -c -a 10.0.0.2 -p "$port" -C 100000000
wait_until "they are connected" there_are 4
kill -STOP "${pid[client]}"
expect 0 'dev umbel_h2_0 mrn * mrlen 16 *pdn * pid * comm rping *' umbel exec h2 -- rdma resource show mr pid "${pid[listener]}"
expect 0 'dev umbel_h1_0 pdn * users 1 *ctxn * pid * comm ibv_ud_pingpong *' umbel exec h1 -- rdma resource show pd pid "${pid[ud]}"
expect 0 'dev umbel_h3_0 ctxn * pid * comm ibv_rc_pingpong *' umbel exec h3 -- rdma resource show ctx pid "${pid[server]}"
expect 0 'link umbel_h2_0/- cm-idn * state LISTEN ps TCP pid * comm rping src-addr 0.0.0.0:* dst-addr 0.0.0.0:0 *' \
	umbel exec h2 -- rdma resource show cm_id state LISTEN
expect 0 'link umbel_h1_0/1 cm-idn * lqpn * qp-type RC state CONNECT ps TCP pid * comm rping src-addr 10.0.0.1:* dst-addr 10.0.0.2:* ' \
	umbel exec h1 -- rdma resource show cm_id dst-addr "10.0.0.2" state CONNECT
expect 0 '' python3 "${0%/*}/rdma_resources.py" $((port + 1))

umbel down > /dev/null
umbel up --roce-hosts 2 > /dev/null
expect 0 'link umbel_r1_0/1 state ACTIVE physical_state LINK_UP netdev * ' umbel exec r1 -- rdma link
expect 0 '0: umbel_r1_0: pd 0 cq 0 qp 0 cm_id 0 mr 0 ctx 0 srq 0 ' umbel exec r1 -- rdma resource
expect 0 'link umbel_r1_0/1 * rcvd_pkts * rx_icrc_encapsulated 0 ' umbel exec r1 -- rdma statistic
