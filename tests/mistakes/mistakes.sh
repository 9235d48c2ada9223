#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# mistakes.sh PROGRAM: what beginners do wrong is found at once. For each mistake that PROGRAM
# (mistakes.c) makes, UMBEL_LOG=warning prints one line that names it; or, if nothing has failed by
# the specification, a counter moves, and `umbel show counters --explain` names it.

. "${0%/*}/../system/lib.sh"

program=$1
log=$TMPDIR/mistakes.log

# make [NAME=VALUE]... MISTAKE: makes it, on the default fabric; $log has what it prints. False: the
# program did not end as it should, or cannot make this mistake here (77).
make()
{
	local status=0

	env UMBEL_LOG=warning "${@:1:$#-1}" umbel exec -- "$program" "${@: -1}" > "$log" 2>&1 || status=$?
	case $status in
		0) return 0 ;;
		77) return 77 ;;
	esac
	complain "${!#}: status $status"$'\n'"$(cat "$log")"
	return 1
}

# logged MISTAKE WORDS: one line has the words, a pattern of [[ ]]; none comes without.
logged()
{
	local lines

	make "$1" || return 0
	# shellcheck disable=SC2254
	lines=$(grep -c ' warning: ' "$log")
	[[ $(cat "$log") == *" warning: "*$2* ]] ||
		complain "$1: no line says '$2'"$'\n'"$(cat "$log")"
	[ "$lines" -le "${3:-1}" ] ||
		complain "$1: $lines lines, not ${3:-1}"$'\n'"$(cat "$log")"
}

# sum COUNTER: of all ports
sum()
{
	umbel show counters --json | awk -v name="\"$1\":" '$1 == name { n += $2 } END { print n + 0 }'
}

# counted MISTAKE COUNTER WORDS: it moves, and the legend explains it with the words.
counted()
{
	local before

	before=$(sum "$2")
	make "$1" || return 0
	[ "$(sum "$2")" -gt "$before" ] || complain "$1: $2 stays at $before"$'\n'"$(umbel show counters)"
	[[ $(umbel show counters --explain | sed -n "s/^$2  *//p") == *$3* ]] ||
		complain "$1: the legend of $2 does not say '$3'"$'\n'"$(umbel show counters --explain)"
}

umbel up --hosts 2 > /dev/null

# ---- calls that fail

while IFS='|' read -r mistake words; do
	logged "$mistake" "$words"
done <<- 'END'
	attach_rc|ibv_attach_mcast() fails with EINVAL: QP 0x??????*RC*groups are for UD
	attach_unicast|ibv_attach_mcast() fails with EINVAL: fe80::* is not a multicast GID
	attach_lid|ibv_attach_mcast() fails with EINVAL: 0x0005 is no multicast LID*0xc000 to 0xfffe
	detach_twice|ibv_detach_mcast() fails with EINVAL: QP 0x?????? is not attached to ff12:401b:ffff::9
	forgotten_detach|ibv_destroy_qp() fails with EBUSY: QP 0x?????? is still attached to 1 *ibv_detach_mcast
	pkey_index|ibv_modify_qp() fails with EINVAL: P_Key index 5: port 1 has no P_Key there
	port_number|ibv_modify_qp() fails with EINVAL: there is no port 2: umbel_h1_0 has 1
	rtr_skipped|ibv_modify_qp() fails with EINVAL: QP 0x?????? cannot go from INIT to RTS
	rtr_mask|ibv_modify_qp() fails with EINVAL: UD queue pairs take no IBV_QP_PORT when they go from INIT to RTR
	rc_mask|ibv_modify_qp() fails with EINVAL: RC queue pairs need IBV_QP_RQ_PSN, IBV_QP_MIN_RNR_TIMER*from INIT to RTR
	send_in_init|ibv_post_send() fails with EINVAL: QP 0x?????? is in INIT, and takes sends from RTS on
	receive_in_reset|ibv_post_recv() fails with EINVAL: QP 0x?????? is in RESET, and takes receives from INIT on
	ud_write|ibv_post_send() fails with EINVAL: UD queue pairs have no operation 'RDMA write'
	null_handle|ibv_post_send() fails with EINVAL: wr.ud.ah is NULL
	inline_too_long|ibv_post_send() fails with EINVAL: 500 bytes of inline data: * max_inline_data
	handle_without_grh|ibv_create_ah() fails with EINVAL: dlid 0xc009 is multicast, which needs is_global
	handle_sgid_index|ibv_create_ah() fails with EINVAL: grh.sgid_index is 9: the port has no GID there
	handle_port|ibv_create_ah() fails with EINVAL: there is no port 3
	handle_lid_0|ibv_create_ah() fails with EINVAL: dlid is 0
	handle_from_wc|ibv_create_ah_from_wc() fails with EINVAL: the message was sent to a group
	receive_queue_full|ibv_post_recv() fails with ENOMEM: the receive queue of QP 0x?????? is full: * 4 requests
	receive_in_two|ibv_post_recv() fails with EINVAL: num_sge is 2: QP 0x?????? has max_recv_sge 1
	cq_of_0|ibv_create_cq() fails with EINVAL: cqe is 0
	qp_too_large|ibv_create_qp() fails with EINVAL: max_send_wr is 100000 *max_qp_wr
	qp_inline_too_large|ibv_create_qp() fails with EINVAL: max_inline_data is 100000: at most 1024
	pd_in_use|ibv_dealloc_pd() fails with EBUSY: regions, address handles, queue pairs
	cq_in_use|ibv_destroy_cq() fails with EBUSY: queue pairs still use it
	region_access|ibv_reg_mr() fails with EINVAL: remote write * IBV_ACCESS_LOCAL_WRITE
	region_nowhere|ibv_reg_mr() fails with EFAULT: 64 bytes at 0x1000 are not all memory of the program
	gid_index|ibv_query_gid() fails with EINVAL: GID index 999
	wrong_address|rdma_bind_addr() fails with EADDRNOTAVAIL: no port of this host has that address
	join_unbound|rdma_join_multicast_ex() fails with EINVAL: the identifier is not bound to a device
	connect_too_early|rdma_connect() fails with EINVAL: the route is not resolved
	rc_for_datagrams|rdma_create_qp_ex() fails with EINVAL: the identifier is of RDMA_PS_UDP, which is for UD queue pairs
	mad_unregistered|umad_send() fails with EIO: agent 3 is not registered
	mad_class_twice|umad_register() fails with EINVAL: another agent at that port gets * class 0x09
END

# four messages find no receive
logged send_queue_full \
	'ibv_post_send() fails with ENOMEM: the send queue of QP 0x?????? is full: * 4 requests' 5

# ---- requests, connections and MADs that fail

while IFS='|' read -r mistake words; do
	logged "$mistake" "$words"
done <<- 'END'
	wrong_lkey|QP 0x??????, wr_id 7: send completes with IBV_WC_LOC_PROT_ERR: lkey 0x0000dead is none of a memory region
	beyond_region|send completes with IBV_WC_LOC_PROT_ERR: 64 bytes at 0x* are not all in the memory region
	other_pd|send completes with IBV_WC_LOC_QP_OP_ERR: the address handle is in another protection domain
	no_room_for_grh|QP 0x??????, wr_id 5: receive completes with IBV_WC_LOC_LEN_ERR: receive has 64 bytes, message needs 64 and 40 of GRH
	receive_not_writable|receive completes with IBV_WC_LOC_PROT_ERR: lkey 0x* without IBV_ACCESS_LOCAL_WRITE
	receive_beyond_region|receive completes with IBV_WC_LOC_PROT_ERR: 104 bytes at 0x* are not all in the memory region of lkey 0x*: 103 bytes
	flushed|receive completes with IBV_WC_WR_FLUSH_ERR: the queue pair is in an error state
	rc_to_nobody|send completes with IBV_WC_RETRY_EXC_ERR: dest_qp_num 0x004321: there is no such queue pair
	rc_too_early|send completes with IBV_WC_RETRY_EXC_ERR: QP 0x??????, the destination, is not in RTR
	nobody_listens|event RDMA_CM_EVENT_REJECTED, status 8: nobody listens there
	mad_to_nobody|MAD of class 0x04, method 0x01, attribute 0x0001 to LID 1911 comes back with ETIMEDOUT: nobody responded
END
logged overrun 'ibv_poll_cq() fails with EIO: completion queue * has overrun: it has room for 1 ' 2

# ---- what is no failure, and gets lost

while IFS='|' read -r mistake counter words; do
	counted "$mistake" "$counter" "$words"
done <<- 'END'
	lost_qkey|bad_qkey|wr.ud.remote_qkey
	lost_no_receive|no_receive|no receive was posted
	lost_mtu|xmit_mtu|larger than the MTU
	lost_no_qp|no_qp|no such queue pair
	lost_not_ready|no_qp|not in RTR
	lost_lid|relay_errors|nobody has the destination LID
	lost_mlid|relay_errors|nobody has joined the group
	lost_mcast_qpn|not_mcast_qpn|0xffffff
	lost_send_only|mcast_unheard|full member
	lost_alone|mcast_unheard|other fabrics
	lost_unattached|mcast_unattached|ibv_attach_mcast
	mad_to_nobody|mad_no_route|nobody has the LID
END

# a port that is down
umbel link down h1:1
counted lost_no_receive xmit_discards 'the port was not active'
umbel link up h1:1

# ---- the legend

[ "$(umbel show counters --explain --json | grep -c '"of": "group"')" -ge 1 ] ||
	complain "the JSON has no legend"
expect 2 '*--explain goes with counters, not with hosts*' umbel show --explain hosts

# ---- fabrics

umbel down > /dev/null
umbel up --hosts 2 --sm none > /dev/null
logged join_without_sm 'rdma_join_multicast_ex() fails with EADDRNOTAVAIL: port 1 of umbel_h1_0 * subnet manager'
umbel down > /dev/null

env UMBEL_FABRIC=gone LD_LIBRARY_PATH="$UMBEL_LIBDIR" "$program" attach_rc > "$log" 2>&1 &&
	complain "there is no fabric, and it ran"
[[ $(cat "$log") == "umbel: fabric 'gone' cannot be reached: "*'; is it up?' ]] ||
	complain "without a fabric: $(cat "$log")"
umbel up --hosts 2 > /dev/null
expect 1 "*no host 'h9'*" umbel exec h9 -- "$program" attach_rc
umbel down > /dev/null
