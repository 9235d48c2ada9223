#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel record` and `umbel replay`: what mckey and umbel's commands do to a fabric is done again to one that is made of
# the recording, while that is recorded, too; both recordings have the same actions in the same order.
# With OpenSM the groups are the same. Files that are no recordings, or are of another fabric.

. "${0%/*}/opensm.bash"

group=ff12:4001:ffff::f01:101	# 239.1.1.1

# record NAME: to $TMPDIR/NAME.json, from now on
record()
{
	launch "record-$1" umbel record "$TMPDIR/$1.json"
	wait_until "record-$1 begins" records "$1"
}

# records NAME: whether it gets events
records()
{
	umbel set sm_poll_ms=1000
	grep -q '"event":"set"' "$TMPDIR/$1.json"
}

# recorded NAME: ends it
recorded()
{
	kill -TERM "${pid[record-$1]}"
	wait_ended "record-$1" 0
}

# actions NAME: what was done, a line each; not when, and not to see that it records
actions()
{
	python3 - "$TMPDIR/$1.json" << 'END'
import json, sys
for line in open(sys.argv[1]):
    e = json.loads(line)
    what = e.get("what", "")
    if e["event"] in ("join", "leave", "link", "switch", "sm", "fault", "set") and \
            what not in ("fired", "its port is down", "master", "resigned") and e.get("key") != "sm_poll_ms":
        print(e["event"], *[e.get(k, "") for k in ("what", "node", "port", "peer", "peer_port", "mgid", "join_state",
              "qkey", "pkey", "mtu", "rate", "sl", "key", "value", "number", "rule")])
END
}

# ---- a fabric with hosts of two HCAs and of two ports, and something done to it already
cat > "$TMPDIR/topology" << 'END'
Switch	8 "S-0002c90000000010"	# "leaf"
[1]	"H-0002c90000000020"[1]	# 4xQDR
[2]	"H-0002c90000000030"[1]	# 4xQDR
[3]	"H-0002c90000000040"[2]	# 4xHDR
[7]	"S-0002c90000000011"[7]	# 4xHDR
[8]	"S-0002c90000000011"[8]	# 4xHDR
Switch	8 "S-0002c90000000011"	# "spine"
Ca	1 "H-0002c90000000020"	# "node1 HCA-1"
[1](2c90000000021)	"S-0002c90000000010"[1]
Ca	1 "H-0002c90000000030"	# "node1 HCA-2"
[1](2c90000000031)	"S-0002c90000000010"[2]
Ca	2 "H-0002c90000000040"	# "node2 mlx5_0"
[2](2c90000000042)	"S-0002c90000000010"[3]
END
umbel up --topology "$TMPDIR/topology" > /dev/null
umbel show topology > "$TMPDIR/first"
umbel fault add host=node2 register=ENOMEM nth=100 > /dev/null
umbel link down leaf:8
start early node2 mckey -m 239.1.1.2
wait_said early 'mckey: joined dgid'
record first
start member node1 mckey -m 239.1.1.1
wait_said member 'mckey: joined dgid'
start sender node2 mckey -s -m 239.1.1.1 -C 1
wait_said sender 'mckey: joined dgid'
umbel link up leaf:8
umbel link down node2:2
umbel link up node2:2
umbel fault add link=spine:8 loss=50% seed=3 > /dev/null
umbel fault clear 1
umbel set mft_delay_ms=1
umbel switch kill spine
umbel switch revive spine
umbel sm event lid-change node2:2
kill "${pid[member]}"
wait_ended member 143
has_left()
{
	grep -q '"event":"leave","host":"node1"' "$TMPDIR/first.json"
}
wait_until 'the member has left' has_left
umbel fault clear
umbel set mft_delay_ms=0
wait_until 'all is recorded' grep -q '"mft_delay_ms","value":"0"' "$TMPDIR/first.json"
recorded first
kill -9 "${pid[early]}" "${pid[sender]}"
ended[early]=0 ended[sender]=0
umbel down > /dev/null
actions first > "$TMPDIR/first.actions"
for action in 'fault added * register=ENOMEM nth=100' "join * ff12:4001:ffff::f01:102 full *" \
	'link down leaf 8 spine 8*' "join * $group full 0x*" 'link up leaf 8 spine 8*' "leave * $group full *" \
	'switch killed spine*' 'sm lid-change *' 'fault all cleared*' 'set * mft_delay_ms 0 *'; do
	# shellcheck disable=SC2053
	[[ $(< "$TMPDIR/first.actions") == *$action* ]] || complain "no '$action' in $(cat "$TMPDIR/first.actions")"
done

# ---- the same on a fabric that is made of it
umbel up --topology <(umbel replay --topology "$TMPDIR/first.json") > /dev/null
diff <(awk '{ print $1, $2, $3, $4, $7, $9, $10 }' "$TMPDIR/first") \
	<(umbel show topology | awk '{ print $1, $2, $3, $4, $7, $9, $10 }') || complain 'it is another fabric'
record second
expect 0 '*link     leaf:8 - spine:8 down*' umbel replay --speed 4 "$TMPDIR/first.json"
wait_until 'all is recorded' grep -q '"mft_delay_ms","value":"0"' "$TMPDIR/second.json"
recorded second
actions second > "$TMPDIR/second.actions"
diff "$TMPDIR/first.actions" "$TMPDIR/second.actions" || complain 'the replay does something else'
# what has joined by it stays, but where the port was down
[[ $(umbel show groups) != *"$group"* ]] || complain "group $group has not ended: $(umbel show groups)"

# ---- what is of another fabric is refused before anything is done
umbel down > /dev/null
umbel up --hosts 3 > /dev/null
expect 1 "umbel: '*first.json', line 3: this fabric has no 'leaf'" umbel replay "$TMPDIR/first.json"
expect 0 'RULE  FIRED  FITTED  TEXT' umbel fault show

# ---- OpenSM has the groups, too
record third
start member h2 mckey -m 239.1.1.1
wait_said member 'mckey: joined dgid'
recorded third
kill -9 "${pid[member]}"
ended[member]=0
umbel down > /dev/null
umbel up --hosts 3 --sm none > /dev/null
opensm master h1
served()
{
	umbel exec h2 -- saquery --smkey 1 MCMR > "$TMPDIR/members" 2>&1
}
wait_until 'OpenSM is the master' master_is "$(guid 1)"
wait_until 'its SA responds' served
expect 0 "*umbel_h2_0:1 joins $group, full" umbel replay "$TMPDIR/third.json"
has_joined()
{
	served && grep -A1 "$group" "$TMPDIR/members" | grep -q 'PortGid.*fe80::275:6d00:0:201'
}
wait_until 'OpenSM has the member' has_joined
umbel down > /dev/null

# ---- what is wrong with a file
umbel up --hosts 2 > /dev/null
head='{"time_ns":1,"event":"fabric","topology":""}'
# refused LINE-OF-MESSAGE TEXT
refused()
{
	printf '%b' "$2" > "$TMPDIR/wrong"
	expect 1 "umbel: '$TMPDIR/wrong', line $1" timeout 20 umbel replay "$TMPDIR/wrong"
}
refused '1: it is no recording of umbel record' ''
refused '1: it is no recording of umbel record' 'Switch 8 "S-1"\n'
refused '1: it is no recording of umbel record' '[]\n'
refused '1: it is no recording of umbel record' '{"time_ns":1,"event":"link"}\n'
refused '2: it is no recording of umbel record' "$head\n{\"time_ns\":2,\"event\":\"li"
refused '2: an event without a time' "$head\n{\"event\":\"link\"}\n"
refused '2: events are missing here' "$head\n{\"time_ns\":2,\"event\":\"lost\",\"count\":3}\n"
refused '2: partitions were changed: their file is not recorded' \
	"$head\n{\"time_ns\":2,\"event\":\"sm\",\"what\":\"partitions\"}\n"
refused "2: this fabric has no '-'" "$head\n{\"time_ns\":2,\"event\":\"link\"}\n"
refused "2: 'sw1' of this fabric has no port 99" "$head\n{\"time_ns\":2,\"event\":\"link\",\"node\":\"sw1\",\"port\":99}\n"
refused "2: 'sw1' of this fabric has no port 1" \
	"$head\n{\"time_ns\":2,\"event\":\"join\",\"node\":\"sw1\",\"port\":1,\"mgid\":\"ff12::1\"}\n"
refused "2: this fabric has no 'h9'" \
	"$head\n{\"time_ns\":2,\"event\":\"sm\",\"what\":\"lid-change\",\"node\":\"h9\",\"port\":1}\n"
refused '2: a group without a multicast GID' \
	"$head\n{\"time_ns\":2,\"event\":\"join\",\"node\":\"umbel_h1_0\",\"port\":1,\"mgid\":\"fe80::1\"}\n"
printf '%s\n' "$head" '{"time_ns":2,"event":"fault","what":"added","number":1,"rule":"nonsense"}' > "$TMPDIR/wrong"
expect 1 "*nonsense*line 2: it cannot be done again" umbel replay "$TMPDIR/wrong"
printf '%s\n' "$head" '{"time_ns":2,"event":"future","what":"unknown"}' > "$TMPDIR/wrong"
expect 0 '' umbel replay "$TMPDIR/wrong"
expect 1 "umbel: cannot read '/nowhere': *" umbel replay /nowhere
expect 2 'umbel: replay: of which file?; *' umbel replay
expect 2 "umbel: replay: one file, not 'b' too; *" umbel replay a b
expect 2 "umbel: replay: *" umbel replay --speed 0 a
expect 2 'umbel: record: to which file?; *' umbel record
expect 1 "umbel: cannot write '/nowhere/file': *" umbel record /nowhere/file
umbel down > /dev/null
expect 1 '*no fabric*' umbel record "$TMPDIR/wrong"
