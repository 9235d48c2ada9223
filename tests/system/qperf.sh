#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# qperf measures for a second and ends by SIGALRM, which has to interrupt ibv_get_cq_event(): its
# programs sleep there, unless -cp 1 lets them poll.

. "${0%/*}/lib.sh"

umbel up --hosts 2 > /dev/null
new_port
start server h2 qperf -lp "$port"
wait_listening server "$port" || exit
for polls in 0 1; do
	for measure in ud_lat ud_bw ud_bi_bw; do
		name=$measure-$polls
		start $name h1 qperf -lp "$port" -t 1 -cp $polls 127.0.0.1 $measure
		wait_ended $name 0
		expect_said $name "$measure:" ' *[a-z_]*  =  *[0-9.]* [a-zA-Z/]*'
	done
done
