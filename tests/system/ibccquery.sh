#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Congestion control's class: ibccconfig sets and ibccquery reads what nodes keep, with a key; and
# OpenSM configures all of them.

. "${0%/*}/opensm.bash"

umbel up --hosts 2 > /dev/null
cc()
{
	umbel exec h1 -- "ibcc$1" "${@:2}"
}

switch=$(umbel exec h1 -- ibswitches | sed -n '1s/.* lid \([0-9]*\) .*/\1/p')
expect 0 '*ControlTableCap:*.2' cc query CongestionInfo 2
expect 0 '*ControlTableCap:*.0' cc query CongestionInfo "$switch"
expect 0 '*LogType:*.2*' cc query CongestionLog 2
expect 0 '*LogType:*.1*' cc query CongestionLog "$switch"
expect 0 '*Timestamp:*' cc query Timestamp 2

expect 0 '*' cc config SwitchCongestionSetting "$switch" 0x1F 0x1FFF 0x1FFF 0xF 8 0 0:0 1
expect 0 '*Control_Map:*0x0000001f*Threshold:*0x0f*Packet_Size:*.8*Marking_Rate:*.1' \
	cc query SwitchCongestionSetting "$switch"
expect 0 '*' cc config SwitchPortCongestionSetting "$switch" 2 1 0 7 16 5
expect 0 '*Valid:*.1*Packet_Size:*.16*Marking_Rate:*.5*' \
	cc query SwitchPortCongestionSetting "$switch" 2
expect 0 '*' cc config CACongestionSetting 2 0 0x3 150 1 0 0
expect 0 $'*Control_Map:*0x0003\n*SL:*.0\nCCTI_Timer:*.150\n*' cc query CACongestionSetting 2
entries=()
for i in {64..127}; do
	entries+=("0:$i")
done
expect 0 '*' cc config CongestionControlTable 2 127 1 "${entries[@]}"
expect 0 $'*CCTI_Limit:*.127\n*Entry:*.64\n*CCT_Multiplier:*.64\n*CCT_Multiplier:*.65\n*' \
	cc query CongestionControlTable 2
# of the other kind of node
expect 255 '*ca congestion setting query failed*' cc query CACongestionSetting "$switch"

# with a key: everybody reads, who has it sets
expect 0 '*' cc config CongestionKeyInfo 2 0x77 0 0 0
expect 0 '*' cc config -c 0x77 CACongestionSetting 2 0 0x4 200 1 0 0
expect 255 '*' cc config -t 100 CACongestionSetting 2 0 0x8 100 1 0 0
expect 0 '*Control_Map:*0x0004*CCTI_Timer:*.200*' cc query CACongestionSetting 2
expect 0 '*CC_Key:*0x0000000000000000*' cc query CongestionKeyInfo 2
violations()
{
	[ "$(cc query -c 0x77 CongestionKeyInfo 2 | sed -n 's/^CC_KeyViolations:\.*//p')" -gt 0 ]
}
violations || complain 'no violation was counted'
umbel down > /dev/null

# OpenSM sets what its configuration says, at every node
umbel up --hosts 3 --sm none > /dev/null
opensm_conf=('congestion_control TRUE' 'cc_key 0x0' 'cc_sw_cong_setting_control_map 0x1f'
	'cc_sw_cong_setting_packet_size 9' 'cc_ca_cong_setting_control_map 0xffff'
	'cc_ca_cong_setting_ccti_timer 1 321')
opensm cc h1
set_in()
{
	[[ $(cc query "$1" "$2" 2>&1) == *"$3"* ]]
}
switch_lid()
{
	umbel exec h1 -- ibswitches 2> /dev/null | sed -n 's/.* lid \([0-9]*\) .*/\1/p'
}
wait_until 'the SM has swept' all_ports active
wait_until 'the switch is set' set_in SwitchCongestionSetting "$(switch_lid)" 'Packet_Size:.....................9'
for host in h1 h2 h3; do
	lid=$(umbel exec $host -- ibaddr -l | sed 's/.*LID start 0x\([0-9a-f]*\).*/0x\1/')
	wait_until "$host is set" set_in CACongestionSetting "$lid" 'CCTI_Timer:......................321'
done
