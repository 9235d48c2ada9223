#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Rules about management datagrams: rdma_cm, the subnet administrator's clients and infiniband-diags go
# on where one gets lost, late or comes twice, and give up where all do.

. "${0%/*}/rdmacm.bash"

# rule WORD...: there is no other one from now on.
rule()
{
	umbel fault clear
	expect 0 '[0-9]*' umbel fault add "$@"
}

# fired LEAST: the rule has, so often at least.
fired()
{
	local n
	n=$(umbel fault show | awk 'NR == 2 { print $2 }')
	[ "${n:-0}" -ge "$1" ] || complain "not $1 times: $(umbel fault show)"
}

# Whether something fits the rule by now.
fired_now()
{
	umbel fault show | awk 'NR == 2 { exit !$2 }'
}

ping()
{
	run_pair "$1" rping -s -a 10.0.0.1 -v -C 3 -- rping -c -a 10.0.0.1 -v -C 3
}

umbel up --hosts 3 > /dev/null

# ---- connections: each message is sent again, or told twice, and nobody notices
for lost in 'REQ host=h2' 'REP host=h1 to=h2:*' 'RTU' 'SIDR_REQ'; do
	# shellcheck disable=SC2086
	rule mad=${lost} nth=1 drop
	case $lost in
	SIDR*) run_pair "sidr" udaddy -c 1 -C 3 -- udaddy -s 10.0.0.1 -c 1 -C 3 ;;
	*) ping "ping-${lost%% *}" ;;
	esac
	fired 1
done
rule mad=ComMgt duplicate
run_pair mates ucmatose -c 10 -C 3 -- ucmatose -s 10.0.0.1 -c 10 -C 3
fired 50
rule mad=ComMgt delay=50ms
run_pair late ucmatose -c 3 -C 3 -- ucmatose -s 10.0.0.1 -c 3 -C 3
fired 15

# ---- the subnet administrator: a join and a path are asked for again; a tool is told after its tries
rule 'mad=SubnAdmSet(MCMemberRecord)' host=h2 nth=1 drop
start joins h2 mckey -m 239.1.1.1 -b 10.0.0.2 -C 1
wait_said joins 'mckey: joined dgid: '
fired 1
umbel fault clear
start sends h1 mckey -s -m 239.1.1.1 -b 10.0.0.1 -C 1
wait_ended joins 0
wait_ended sends 0
rule 'mad=SubnAdmGetResp(PathRecord)' to=h2:* delay=300ms
ping path
fired 1
rule mad=SubnAdm drop
umbel exec h3 -- saquery -t 200 NR > /dev/null 2>&1 && complain 'saquery has an answer'
fired 1
expect 0 '*mad_faulty *MADs lost by a rule*' umbel show drops

# ---- agents: who asks all nodes asks one of them again; perfquery asks once
rule 'mad=SubnGet(NodeInfo)' nth=3 drop
expect 0 '*umbel_h3*' umbel exec h1 -- ibnetdiscover
fired 1
rule mad=PerformanceGetResp to=h1:* drop
[ "$(umbel exec h1 -- perfquery -t 50 2>&1 | grep -c 'failed\|timed\|timeout\|can.t')" -gt 0 ] ||
	complain 'perfquery has an answer'
fired 1

# ---- what is wrong with a rule
expect 2 "*'mad=REQQ': not the name of a MAD*" umbel fault add mad=REQQ drop
expect 2 "*what happens to a MAD is*" umbel fault add mad=REQ nak=rnr
expect 2 "*of MADs a rule chooses by*" umbel fault add mad=REQ link=h1:1 drop
expect 2 "*of MADs a rule chooses by*" umbel fault add mad=REQ 'qp=h1:#1' drop

# ---- what is held when the fabric ends is nobody's
rule 'mad=*' delay=10s
start held h1 smpquery nodeinfo 1
wait_until 'something is held' fired_now
umbel down
