#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# explain.sh PROGRAM: `umbel explain` names each cause, with what PROGRAM (why.c) does wrong and with
# programs of Debian's: who has not joined, keys, receives, links, routes, peers that have died or stand still.

. "${0%/*}/why.bash"
group=ff12:4001:ffff::f01:101

# cause NAME WORDS [OPTION]...: with what the program does, a line has the words, a pattern; without
# options it is asked about the hosts.
cause()
{
	local name=$1 words=$2
	hold "$name" || return
	[ $# -gt 2 ] || set -- "$@" --from h1 --to h3
	wait_until "$name: '$words'" explains "$words" "${@:3}" || umbel explain "${@:3}" >&2
	kill_hard "$name"
}

# explains WORDS OPTION...: a line that is not "ok" has them. FROM and TO stand for the numbers.
explains()
{
	local options=("${@:2}")
	options=("${options[@]//FROM/$from}")
	# shellcheck disable=SC2053
	[[ $'\n'$(umbel explain "${options[@]}" | grep -v '^ok') == *$'\n'$1* ]]
}

umbel up --hosts 3 > /dev/null
expect 0 '*link *h1*active*link *h3*route *sw1: LID 3 leaves by port 3*mtu *4096*pkey *' umbel explain --from h1 --to h3
expect 1 "FAILS  host  there is no host 'h9': *" umbel explain --from h9 --to h3
expect 1 'FAILS  host  h1 has no port 7*' umbel explain --from h1:7 --to h3
expect 1 "FAILS  qp  there is no queue pair 'h1:5': *" umbel explain --qp h1:5
expect 1 "ok *link *h1*FAILS  group  there is no group $group: *" umbel explain --group $group --from h1
umbel link down h3:1
expect 1 "*FAILS  link *h3: port 1 * is down: umbel link up*FAILS  group  there is no group *" \
	umbel explain --group $group --from h1 --to h3
umbel link up h3:1
expect 2 'umbel: explain: which way? *' umbel explain --from h1
expect 0 'IBV_WC_RETRY_EXC_ERR, 12: nobody has acknowledged *- the peer*- dest_qp_num*' umbel explain wc 12
expect 0 'IBV_WC_SUCCESS, 0: *' umbel explain wc success
expect 0 '{*"number": 13,*"name": "IBV_WC_RNR_RETRY_EXC_ERR",*"means": "*"causes": *' umbel explain --json wc RNR_RETRY_EXC
for status in {0..23}; do
	expect 0 "IBV_WC_*, $status: ?*" umbel explain wc "$status"
done
expect 2 "umbel: explain: '24' is no status of completions, *" umbel explain wc 24
expect 2 "umbel: explain: it takes no 'wc' *" umbel explain wc
expect 2 'umbel: explain: which way? *' umbel explain --qp h1:5 --from h1
expect 2 "umbel: explain: 'h1' is no HOST:QPN; *" umbel explain --qp h1
expect 2 "umbel: explain: 'fe80::1' is no multicast GID, and no IPv4 or IPv6 address of a group; *" umbel explain --group fe80::1 --from h1

# ---- what holds
hold ud
expect 0 '*receive *3 receives*1 message is not polled*' umbel explain --from h1 --to h3
expect 0 '*"holds": true*' umbel explain --from h1 --to h3 --json
kill_hard ud
hold rc
expect 0 '*peer *is in RTS and names *requests *' umbel explain --qp "h1:$from"
expect 0 '*peer *is in RTS and names *requests *' umbel explain --qp "h3:$to"
expect 0 '*peer *is in RTS and names *requests *' umbel explain --from h1 --to h3
kill_hard rc

# ---- connections
cause rc_no_receive 'FAILS  receive *2 requests of h1 * wait, and h3 * has no receive posted: *(RNR)*' --qp h1:FROM
cause rc_no_receive 'FAILS  receive *(RNR)*'
cause rc_mtu 'FAILS  mtu *h1 * has path_mtu 1024, the peer has 4096: *' --qp h1:FROM
cause rc_dead 'FAILS  peer *which does not exist: *FAILS *RETRY_EXC*' --qp h1:FROM
cause rc_init 'FAILS  peer *is in INIT: it has to be in RTR*' --qp h1:FROM
cause rc_other 'FAILS  peer *is connected to QP * not to *' --qp h1:FROM
cause rc_error 'FAILS  peer *is in ERR*' --qp h1:FROM

# ---- datagrams
cause ud_init 'FAILS  state *h3 * is in INIT, and receives nothing: ibv_modify_qp()*lost   no_qp *'
cause ud_unpolled 'FAILS  receive *has used all its receives: 2 messages are not polled: ibv_poll_cq()*'
cause ud_no_receive 'FAILS  receive *has no receive posted: ibv_post_recv()*lost   no_receive *'
cause ud_qkey 'FAILS  qkey *sent Q_Key 0x00001235 to h3 * which has 0x00001234*lost   bad_qkey *'
cause ud_mtu 'lost *xmit_mtu *h1 counts 1: *larger than the MTU*'
hold ud_qkey
expect 1 '*"holds": false*"verdict": "fails",*"about": "qkey"*"do": *' umbel explain --from h1 --to h3 --json
kill_hard ud_qkey
umbel down > /dev/null

# ---- packets that get lost
umbel up --hosts 3 > /dev/null
umbel fault add opcode=RC_ACKNOWLEDGE drop > /dev/null
cause rc_packets 'FAILS  retries *of 7 retries are used up: *umbel fault show*lost   packets *again*' --qp h1:FROM
umbel fault clear

# ---- groups, with mckey
start member h2 mckey -m 239.1.1.1 -b 10.0.0.2 -C 10
wait_until 'it is attached' umbel wait --group $group --attached 1 --timeout 1
expect 0 '*joined *h2 *attached *receive *10 receives*qkey *' umbel explain --group $group --from h1 --to h2
expect 0 '*joined *h2 *' umbel explain --group $group --from h1
expect 1 '*FAILS  joined    h3 has not joined*FAILS  tree *sw1 does not forward * port 3 (h3)*FAILS  attached *h3 *' \
	umbel explain --group $group --from h1 --to h3
expect 1 '*FAILS  joined *nobody but h2 *' umbel explain --group $group --from h2
start other h3 mckey -m 239.1.1.1 -b 10.0.0.3 -C 10
wait_until 'both are attached' umbel wait --group $group --attached 2 --timeout 1
umbel link down h2:1
expect 1 '*FAILS  link *h2: port 1 * is down: umbel link up*' umbel explain --group $group --from h3 --to h2
expect 1 '*FAILS  link *h2: port 1 * is down: *' umbel explain --from h1 --to h2
umbel link up h2:1
kill_hard other
kill "${pid[member]}" 2> /dev/null # it may have ended by itself, as its port was down

# ---- ib_send_bw: its peer stands still, and dies
qpn_of()
{
	umbel show qps | awk -v host="$1" '$1 == host && $4 == "RC" { print $3 }'
}
connected()
{
	[[ $(umbel explain --qp "h1:$(qpn_of h1)") == *'is in RT'[RS]' and names'* ]]
}
new_port
start server h3 ib_send_bw -p "$port" -D 300 -u 22
wait_listening server "$port"
start client h1 ib_send_bw -p "$port" -D 300 -u 22 localhost
wait_until 'they are connected' connected
# It may be in the middle of the client's request, which it goes on with where it posts a receive: then the client waits for
# it, and not for a receive.
stands_without_receive()
{
	local i
	kill -STOP "${pid[server]}"
	for i in {1..40}; do
		explains 'FAILS  receive *h3 * has no receive posted: *' --qp "h1:$(qpn_of h1)" && return
		sleep 0.05
	done
	kill -CONT "${pid[server]}"
	return 1
}
wait_until 'no receive is left' stands_without_receive
kill_hard server
wait_until 'the peer has gone' explains 'FAILS  peer *which does not exist: *ended*' --qp "h1:$(qpn_of h1)"
kill_hard client
umbel down > /dev/null

# ---- switches
umbel up --fat-tree 2 --radix 4 > /dev/null
last=h$(field hosts default)
expect 0 '*route *leaf1: *route *spine?: *route *leaf*mtu *' umbel explain --from h1 --to "$last"
umbel switch kill leaf1
expect 1 '*FAILS  link *h1: port 1 * is down*' umbel explain --from h1 --to "$last"
umbel down > /dev/null
umbel up --hosts 2 --sm none > /dev/null
expect 1 '*FAILS  link *h1: port 1 * is init*: a subnet manager has to bring it up*' umbel explain --from h1 --to h2
umbel down > /dev/null

# ---- partitions: two limited members of one have none in common
umbel up --hosts 3 > /dev/null
echo 'Default=0x7fff,ipoib:ALL=limited,0x02756d0000000101=full;' > "$TMPDIR/partitions"
expect 0 '' umbel sm partitions "$TMPDIR/partitions"
apart()
{
	[[ $(umbel explain --from h2 --to h3) == *'FAILS  pkey '*'h2 and h3 are in no common partition: '* ]]
}
wait_until 'h2 and h3 are apart' apart
expect 0 '*pkey *h1 and h3 are in the partition of P_Key 0xffff*' umbel explain --from h1 --to h3
umbel down > /dev/null

# ---- Ethernet: the network has no tables, and groups have IPv4 addresses
umbel up --roce-hosts 3 > /dev/null
start heard r2 mckey -m 239.1.1.1 -b 172.16.0.2 -C 10
wait_until 'it is attached' umbel wait --group ::ffff:239.1.1.1 --attached 1 --timeout 1
expect 0 '*link *r1*link *r2*attached *receive *10 receives*' umbel explain --group ::ffff:239.1.1.1 --from r1
expect 1 '*FAILS  attached *no queue pair of r3*' umbel explain --group ::ffff:239.1.1.1 --from r1 --to r3
expect 0 '*route *r1 sends by the network*mtu *' umbel explain --from r1 --to r2
kill_hard heard
umbel down > /dev/null
