#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A host that sends to more groups than its interface keeps, without end: a socket joins one all the same.

. "${0%/*}/lab.sh"

lab_up 2
interfaces 2

cat > "$TMPDIR/flood.py" <<- 'END'
	import itertools, socket, time
	s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"ib0")
	for i in itertools.count():
	    n = i % 6000
	    s.sendto(b"x", ("239.1.%d.%d" % (n // 256, n % 256), 5000))
	    if i % 50 == 0:
	        time.sleep(0.005)
	    if i == 12000:
	        print("all were sent to twice", flush=True)
END
launch_on flood h1 python3 "$TMPDIR/flood.py"
wait_said flood 'all were sent to twice'
launch_on member h1 socat -u UDP4-RECV:7000,ip-add-membership=239.200.2.3:ib0 STDOUT
wait_members ff12:401b:ffff::fc8:203 'h1 full'
# members are attached a moment after the subnet administrator knows them
heard()
{
	on h2 socat -u - UDP4-DATAGRAM:239.200.2.3:7000 <<< 'to the member'
	says member 'to the member$'
}
wait_until 'the member hears' heard
wait_until 'h1 reaches h2 beside' reaches h1 192.0.2.2
