#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A peer's memory is reached by whichever way there is: if it cannot be adopted, by process_vm_readv(2) and
# process_vm_writev(2), and where these are forbidden, by a descriptor of it; from another PID namespace too.

. "${0%/*}/../system/rdmacm.bash"

programs=${UMBEL%/bin/*}/tests/programs
deny=$programs/adversary.deny

for denied in memfd_create 'memfd_create process_vm_readv process_vm_writev'; do
	for program in rc_rdma rc_send rc_null rc_few_descriptors uc; do
		# shellcheck disable=SC2086
		expect 0 '*PASSED*' umbel run --hosts 4 -- "$deny" EPERM $denied -- "$programs/verbs.$program"
	done
done

# Beside other threads: with the right to hold what these write, by one way or the other, and without it.
program=$programs/verbs.rc_adopted_threads
expect 0 '*PASSED*' umbel run --hosts 4 -- "$deny" EPERM userfaultfd -- "$program"
expect 0 '*PASSED*' umbel run --hosts 4 -- "$deny" EPERM userfaultfd ioctl -- "$program"

# In another PID namespace. The bytes read and written are compared.
umbel up --hosts 2 > /dev/null
serve_cm apart h1 unshare --user --map-root-user --pid --fork rping -s -a 10.0.0.1 -C 20 -S 60000 -V
start client h2 rping -c -a 10.0.0.1 -C 20 -S 60000 -V
wait_ended client 0
wait_ended server-apart 0
