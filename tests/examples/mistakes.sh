#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The mistakes of docs/first-multicast.md: each is made, most by a change of the program, and the command that the page
# names says the words that stand there.

. "${0%/*}/lib.sh"

page=$source/docs/first-multicast.md
program=$examples/first_multicast
group=ff12:4001:ffff::f01:101
log=$TMPDIR/log

# The page has the words.
on_page()
{
	grep -qF -- "$1" "$page" || complain "docs/first-multicast.md does not say '$1'"
}

# change NAME SED: builds the program with that mistake, as $examples/NAME.
change()
{
	sed -E "$2" "$source/examples/first_multicast.c" > "$examples/$1.c"
	! cmp -s "$examples/$1.c" "$source/examples/first_multicast.c" ||
		complain "$1: nothing to change; does '$2' still fit?"
	make -s -C "$examples" "$1" > "$TMPDIR/make.out" 2>&1 ||
		complain "$1 is not built: $(cat "$TMPDIR/make.out")"
}

# run_on HOST PROGRAM [ARGUMENT]...: in the background, under the host's name; its log goes to $log.
run_on()
{
	start "$1" "$1" env UMBEL_LOG=warning "$examples/$2" "$(address "$1")" "${@:3}"
}

# Asks as the page says; what the programs print and log is asked, too.
ask()
{
	case $1 in
		explain) umbel explain --group $group --from h1 --to h3 ;;
		path) umbel explain --from h1 --to h3 ;;
		log) cat "$TMPDIR"/h?.out ;;
		*) umbel show "$1" ;;
	esac
}

says_words()
{
	ask "$1" > "$log" 2>&1
	grep -v '^ok' "$log" | grep -qF -- "$2"
}

# named NAME COMMAND WORDS
named()
{
	wait_until "$1: $2 says '$3'" says_words "$2" "$3" || cat "$log" >&2
	on_page "$3"
}

# Whatever still runs is killed, and so is the fabric.
end_all()
{
	local host

	for host in h1 h3; do
		[ -z "${pid[$host]-}" ] || kill -9 "${pid[$host]}" 2> /dev/null
		[ -z "${pid[$host]-}" ] || wait "${pid[$host]}" 2> /dev/null
		ended[$host]=killed
	done
	umbel down --all --yes --force > /dev/null
}

# What it takes to be ready to hear: it waits for messages, or it has failed, or joined nothing that can be seen.
ready()
{
	umbel show groups | grep -q 'members  *h3' || gone "${pid[h3]}"
}

# What the rows say is wrong is so with the receiver or the sender.
make_mistake()
{
	local name=$1 who=$2 receiver=first_multicast sender=first_multicast

	change "$name" "$3"
	[ "$who" = sender ] && sender=$name || receiver=$name
	umbel up --hosts 3 > /dev/null
	run_on h3 "$receiver" 239.1.1.1
	wait_until "$name: h3 is ready" ready
	run_on h1 "$sender" 239.1.1.1 100
	named "$name" "$4" "$5"
	end_all
}

build_examples first_multicast
while IFS='|' read -r name who change command words; do
	make_mistake "$name" "$who" "$change" "$command" "$words"
done <<- 'END'
	no_sge|receiver|s/DEPTH, DEPTH, 1, 1/DEPTH, DEPTH/|log|has max_recv_sge 0
	few_wr|receiver|s/DEPTH, DEPTH, 1, 1/1, 1, 1, 1/|log|it has room for 1 requests (max_recv_wr)
	no_grh|sender|s/(.*)ibv_create_ah.*/to.ah_attr.is_global = 0;\n&/|log|dlid 0xc001 is multicast, which needs is_global and grh.dgid
	stack|sender|s/\(uintptr_t\)buffers.0..text/(uintptr_t)\&(char[64]){ 0 }/|log|are not all in the memory region of lkey
	no_lkey|sender|s/, .lkey = mr->lkey//|log|lkey 0x00000000 is none of a memory region
	unsignaled|sender|s/= IBV_SEND_SIGNALED/= 0/|log|asked for no completion: set IBV_SEND_SIGNALED, or sq_sig_all
	unpolled|sender|s/must\(rdma_get_send_comp.*/wc.status = 0;/|log|it has room for 64 requests (max_send_wr), which leave it when a completion
	port_space|receiver|s/RDMA_PS_UDP/RDMA_PS_IPOIB/|groups|ff12:401b:ffff::f01:101
	send_only|receiver|s/FLAG_FULLMEMBER/FLAG_SENDONLY_FULLMEMBER/|explain|h3 has joined as send-only member, and receives nothing: join as full member to receive
	unattached|receiver|/must\(!rdma_create_qp/d;/^\tjoin\(/d;s/^(.*)for \(b = buffers.*/\tjoin(id, group, 1);\n\tmust(!rdma_create_qp(id, NULL, \&(struct ibv_qp_init_attr){ .qp_type = IBV_QPT_UD, .cap = { DEPTH, DEPTH, 1, 1 } }), "qp");\n&/;s/, 1\);$/, RDMA_MC_JOIN_FLAG_FULLMEMBER);/|explain|no queue pair of h3 is attached to the group: ibv_attach_mcast() with the MGID and MLID of the join
	qkey|sender|s/= to.qkey/= 0x11111111/|explain|sent Q_Key 0x11111111 to h3
	qpn|sender|s/= to.qp_num/= id->qp->qp_num/|explain|packets to a group that were not sent to QP number 0xffffff (wr.ud.remote_qpn)
	mtu|sender|s/text.64./text[8192]/;s/\(uint32_t\)sprintf\(.*/5000;/|drops|messages of xmit_discards that were larger than the MTU of their path: a datagram is one packet
	no_receive|receiver|s/^(.*)for \(b = buffers.*/\tb = buffers;\n\tif (0)/|explain|has no receive posted: ibv_post_recv(), before the peer sends
	once|receiver|/b = \(struct buffer/,$s/must\(!rdma_post_recv.*//|drops|packets lost as no receive was posted: post more of them, and before the peer sends
	unheard|receiver|s/must\(rdma_get_recv_comp.*/pause();/;s/^#include <stdlib.*/&\n#include <unistd.h>/|explain|has used all its receives: 64 messages are not polled
	no_room|receiver|s/sizeof\(\*b\), mr/16, mr/|log|message needs 9 and 40 of GRH
	read_only|receiver|s/IBV_ACCESS_LOCAL_WRITE/0/|log|is of a memory region without IBV_ACCESS_LOCAL_WRITE, which is written to
	hears_itself|sender|s/FLAG_SENDONLY_FULLMEMBER/FLAG_FULLMEMBER/|drops|umbel_h1_0     1  no_receive
END

# ---- with the program as it is

expect 1 '*: rdma_create_id: No such device' env -u LD_LIBRARY_PATH "$program" 10.0.0.1 239.1.1.1
on_page 'rdma_create_id: No such device'

umbel up --hosts 3 > /dev/null
start h1 h1 env UMBEL_LOG=warning "$program" 10.0.0.3 239.1.1.1
named address log "no port of this host has that address; 'umbel show hosts' lists those there are"
end_all

umbel up --hosts 3 --sm none > /dev/null
run_on h1 first_multicast 239.1.1.1
named no_sm log 'by which groups are made: is a subnet manager there, and the port active?'
named no_sm path 'is init: a subnet manager has to bring it up'
end_all

umbel up --hosts 3 > /dev/null
run_on h3 first_multicast 239.1.1.10
wait_until 'other_group: h3 is ready' ready
run_on h1 first_multicast 239.1.1.1 3
named other_group explain "there is no group $group: nobody has joined it"
end_all

umbel up --hosts 3 > /dev/null
run_on h1 first_multicast 239.1.1.1 3
wait_ended h1 0
run_on h3 first_multicast 239.1.1.1
wait_until 'early: h3 is ready' ready
named early explain 'packets sent to a group that reached no other port: nobody else of this fabric has joined it'
end_all

umbel up --hosts 3 > /dev/null
umbel up --name other --hosts 3 > /dev/null
launch h3 umbel exec -n other h3 -- "$program" 10.0.0.3 239.1.1.1
wait_until 'fabrics: h3 is ready' umbel wait -n other --group $group --timeout 1
run_on h1 first_multicast 239.1.1.1 3
named fabrics drops "'umbel status' for other fabrics"
end_all

umbel up --hosts 3 > /dev/null
run_on h3 first_multicast 239.1.1.1
wait_until 'cable: h3 is ready' ready
umbel link down h3:1
run_on h1 first_multicast 239.1.1.1 3
named cable path 'is down: umbel link up'
end_all

umbel up --hosts 3 > /dev/null
umbel fault add group=$group nth=2 drop > /dev/null
on_page "group=$group nth=2 drop"
run_on h3 first_multicast 239.1.1.1
wait_until 'loss: h3 is ready' ready
run_on h1 first_multicast 239.1.1.1 3
wait_said h3 'message 3$'
not says h3 'message 2$' || complain 'the second message did not get lost'
named loss drops "group=$group nth=2 drop"
end_all
