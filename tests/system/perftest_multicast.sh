#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ib_send_bw and ib_send_lat with -g: perftest joins the group itself, by a MAD to the subnet
# administrator that says nothing of MTU and rate, and sends to the MGID.

. "${0%/*}/perftest.bash"

umbel up --hosts 2 > /dev/null

# ib_send_lat of perftest 25.01 frees the name of the HCA by which it leaves the group at last
# (valgrind shows it). It has measured by then.
version=$(dpkg-query -W -f '${Version}' perftest)

tests=("ib_send_bw -F -r 1024 -s 64" "ib_send_bw -F -r 1024 -s 4096" "ib_send_lat -s 64")
for i in "${!tests[@]}"; do
	# shellcheck disable=SC2086
	serve "$i" h1 ${tests[i]} -c UD -g
done
for i in "${!tests[@]}"; do
	# shellcheck disable=SC2086
	client "$i" h2 ${tests[i]} -c UD -g
	ends=0
	case $version,${tests[i]} in
	25.*,ib_send_lat*) ends=1 ;;
	esac
	for side in client server; do
		wait_ended "$side-$i" "$ends"
		expect_said "$side-$i" ' Connection type : UD' \
			' [a-z]* address: LID 0xc0.* QPN 0xffffff' ' MGID: 255:01:' \
			" ${tests[i]##* }  *1000  *[0-9.]*"
	done
done

# ---- one group for both sides
shared=255:1:0:0:0:2:201:133:0:0:0:0:0:0:0:77
serve bw h1 ib_send_bw -F -r 1024 -s 64 -c UD -g -M $shared
client bw h2 ib_send_bw -F -r 1024 -s 64 -c UD -g -M $shared
for side in client server; do
	wait_ended $side-bw 0
done
# ib_send_lat leaves the group of each side, and here leaves the same one twice. The SA refuses the
# second request (REQ_INVALID, as OpenSM does), and perftest ends with 1 when all is done.
said='received UMAD with an error: 0x200'
[[ $version != 25.* ]] || said='failed to open UMAD port 1' # see above
serve lat h1 ib_send_lat -s 64 -c UD -g -M $shared
client lat h2 ib_send_lat -s 64 -c UD -g -M $shared
for side in client server; do
	wait_ended $side-lat 1
	expect_said $side-lat ' 64  *1000  *[0-9.]*' "$said" \
		"Couldn't Unregister the Mcast group on the SM"
done
