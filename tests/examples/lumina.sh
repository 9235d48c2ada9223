#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Events of Lumina's configurations, by examples/lumina.py: perftest sends the traffic, each event happens
# at the packet that it names and at no other one, and what is lost comes again as the specification
# says (lumina_check.py). Go-back-N of WRITE, SEND and READ, retransmissions that get lost, the last packet
# of a message, damaged ones, and packets that are marked.

. "${0%/*}/../system/perftest.bash"

lumina=${0%/*}/../../examples/lumina.py
check=${0%/*}/lumina_check.py

# config NAME: its traffic, and its events, come from standard input; what is about Lumina's machines is there, too
config()
{
	cat - > "$TMPDIR/$1.yml" << END
local-workspace: /lumina/
num-repeats: 1
switch:
  control-ip: 192.0.2.11
  listen-port: 12345
requester:
  control-ip: 192.0.2.12
  nic: {type: CX6, if-name: ens1, pci-addr: "03:00.0", ip-list: [10.0.0.1/24, 10.0.0.11/24]}
  roce-parameters: {dcqcn-rp-enable: False, adaptive-retrans: False, min-time-between-cnps: 0}
responder:
  control-ip: 192.0.2.13
traffic:
  listen-port: 13579
  multi-gid: true
  barrier-sync: false
  min-retransmit-timeout: 18
  max-retransmit-retry: 7
$(sed 's/^/  /')
END
}

# commands NAME HOST: what that host runs, one a line
commands()
{
	sed -nE "s/^#     umbel exec $2 -- //p" "$TMPDIR/$1.faults"
}

ended_both()
{
	gone "${pid[client-$1]}" && gone "${pid[server-$1]}"
}

# traffic NAME: its programs, one after the other. perftest may make no sense of a busy machine's clock, and say
# so by its status; it has sent all then.
traffic()
{
	local i=0 program

	while read -r program; do
		i=$((i + 1))
		# shellcheck disable=SC2086
		serve "$1-$i" h2 $program
		# shellcheck disable=SC2086
		client "$1-$i" h1 $program
		wait_until "'$program' has ended" ended_both "$1-$i" || return
		cat "$TMPDIR/client-$1-$i.out" >> "$TMPDIR/$1.client"
	done < <(commands "$1" h2)
	[ $i -gt 0 ] || complain "$1: no program sends"
}

# play NAME: the test of that configuration
play()
{
	local rule fields='frame.number infiniband.bth.opcode infiniband.bth.destqp infiniband.bth.psn'

	"$lumina" "$TMPDIR/$1.yml" > "$TMPDIR/$1.faults" || { complain "$1 is not read"; return; }
	launch "capture-$1" umbel capture --data --output "$TMPDIR/$1.pcapng"
	wait_until 'the capture runs' test -s "$TMPDIR/$1.pcapng"
	while read -r rule; do
		umbel fault add "$rule" > /dev/null || complain "$1: no rule: $rule"
	done < <(grep -v '^#' "$TMPDIR/$1.faults")
	traffic "$1"
	! umbel fault show --json | grep -q '"fired": 0' || complain "$1: $(umbel fault show)"
	umbel fault clear
	kill "${pid[capture-$1]}"
	wait_ended "capture-$1" 0
	expect_said "capture-$1" 'umbel: [0-9]* packets captured, 0 lost'
	# shellcheck disable=SC2086
	tshark -r "$TMPDIR/$1.pcapng" -T fields $(printf -- '-e %s ' $fields infiniband.aeth.syndrome frame.comment) \
		> "$TMPDIR/$1.packets" 2> /dev/null
	python3 "$check" "$TMPDIR/$1.yml" "$TMPDIR/$1.client" "$TMPDIR/$1.packets" || complain "$1: not as it says"
}

config mixed << 'END'
num-qps: 4
rdma-verb: write
num-msgs-per-qp: 1
mtu: 1024
message-size: 102400
tx-depth: 1
data-pkt-events:
  - {qpn: 0, psn: 4, type: ecn, iter: 1}
  - {qpn: 1, psn: 4, type: ecn, iter: 1}
  - {qpn: 2, psn: 3, type: drop, iter: 1}
  - {qpn: 3, psn: 5, type: drop, iter: 1}
END

config go-back-n << 'END'
num-qps: 3
rdma-verb: write
num-msgs-per-qp: 6
mtu: 1024
message-size: 20000
tx-depth: 1
data-pkt-events:
  - {qpn: 0, psn: 4, type: drop, iter: 1}
  - {qpn: 1, psn: 0, type: drop, iter: 1}
  - {qpn: 1, psn: 7, type: bit-error, iter: 2}
  - {qpn: 1, psn: 9, type: drop, iter: 3}
END

# nobody tells of the last packet's loss, nor again of one that is lost again: the sender's time has to pass
config timeouts << 'END'
num-qps: 2
rdma-verb: send
num-msgs-per-qp: 1
mtu: 2048
message-size: 20480
tx-depth: 1
data-pkt-events:
  - {qpn: 0, psn: 9, type: drop, iter: 1}
  - {qpn: 1, psn: 5, type: drop, iter: 1}
  - {qpn: 1, psn: 5, type: drop, iter: 2}
END

config read << 'END'
num-qps: 4
rdma-verb: read
num-msgs-per-qp: 2
mtu: 1024
message-size: 102400
tx-depth: 1
data-pkt-events:
  - {qpn: 0, psn: 6, type: drop, iter: 1}
  - {qpn: 0, psn: 80, type: drop, iter: 2}
  - {qpn: 1, psn: 0, type: bit-error, iter: 1}
  - {qpn: 2, psn: 10, type: drop, iter: 1}
  - {qpn: 2, psn: 12, type: drop, iter: 2}
  - {qpn: 3, psn: 2, type: ecn, iter: 1}
END

config cnp << 'END'
num-qps: 2
rdma-verb: write
num-msgs-per-qp: 5
mtu: 1024
message-size: 10240
tx-depth: 2
data-pkt-events:
  - {qpn: 1, psn: all, type: ecn, iter: 1}
END

config both << 'END'
num-qps: 1, 2
rdma-verb: send_read
num-msgs-per-qp: 5
mtu: 4096
message-size: 40960
tx-depth: 1
data-pkt-events:
  - {qpn: 0, psn: 1, type: drop, iter: 1}
  - {qpn: 2, psn: 1, type: drop, iter: 1}
END

# what is sent again must wait for a NAK or the timeout, as adaptive-retrans says
umbel up --hosts 2 --set roce_adp_retrans=0 --set roce_selective_repeat=0 > /dev/null
for name in mixed go-back-n timeouts read cnp both; do
	play $name
done
umbel down > /dev/null

# ---- the rules are a file of faults, and hosts may have other names
expect 125 "*'qp=h1:#1 psn=+4/100 round=1 count=1 ecn' has not fired*" \
	umbel run --hosts 2 --faults "$TMPDIR/mixed.faults" -- true
expect 0 '# on umbel run --hosts 2 --set roce_selective_repeat=0 --set roce_adp_retrans=0 --faults FILE
*exec b -- ib_read_bw*exec a -- ib_read_bw*localhost
qp=b:#1 psn=*' "$lumina" --requester a --responder b "$TMPDIR/read.yml"

sed 's/adaptive-retrans: False/adaptive-retrans: True/' "$TMPDIR/read.yml" > "$TMPDIR/adaptive.yml"
expect 0 '# on umbel run --hosts 2 --set roce_selective_repeat=0 --faults FILE
*' "$lumina" "$TMPDIR/adaptive.yml"

# ---- what is wrong
# wrong WHY SED: the configuration, edited so, is refused
wrong()
{
	sed "$2" "$TMPDIR/mixed.yml" > "$TMPDIR/wrong.yml"
	expect 1 "lumina.py: */wrong.yml: $1" "$lumina" "$TMPDIR/wrong.yml"
}

wrong 'there is no traffic' 's/^traffic:/elsewhere:/'
wrong 'mtu is missing' '/ mtu:/d'
wrong "mtu is 'big', not a number from 256 on" 's/mtu: .*/mtu: big/'
wrong "rdma-verb is 'flush', not one of: *" 's/rdma-verb: .*/rdma-verb: flush/'
wrong "num-qps is '1,2', not a number" 's/num-qps: .*/num-qps: "1,2"/'
wrong 'there is no qpn 3' 's/num-qps: .*/num-qps: 3/'
wrong 'a message has 5 packets: there is no psn 5' 's/message-size: .*/message-size: 5120/'
wrong 'iter is 0, not a number from 1 on' 's/psn: 5, type: drop, iter: 1/psn: 5, type: drop, iter: 0/'
wrong "type is 'reorder', not one of: drop, ecn, bit-error" 's/psn: 5, type: drop/psn: 5, type: reorder/'
wrong 'tx-depth is 2: then packets can only be marked (ecn)' 's/tx-depth: .*/tx-depth: 2/'
wrong "'nothing' is no event" 's/- {qpn: 3.*/- nothing/'
wrong '*expected*' 's/^switch:/switch: {/'
expect 1 'lumina.py: /none: *No such file*' "$lumina" /none
exit $failed
