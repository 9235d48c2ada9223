#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Where a container denies a system call, umbel does without it, or says in one line which it is and
# what helps. The calls are denied by a seccomp filter, as containers do.

. "${0%/*}/../system/lib.sh"

deny=${UMBEL%/bin/*}/tests/programs/adversary.deny

for error in EPERM ENOSYS; do
	# nothing that needs these
	for call in pidfd_open setsid; do
		expect 0 '*umbel_h1_0*' "$deny" $error $call -- umbel run --hosts 1 -- ibv_devices
		expect 7 '' "$deny" $error $call -- umbel run --hosts 1 -- sh -c 'exit 7'
		expect 0 '*is up*' "$deny" $error $call -- umbel up --hosts 1
		expect 0 '*umbel_h1_0*' "$deny" $error $call -- umbel exec -- ibv_devices
		expect 0 "*is down" "$deny" $error $call -- umbel down
	done
	# a program does not need what the daemon needs
	for call in pidfd_open memfd_create eventfd2 epoll_create1 ftruncate; do
		expect 0 '*umbel_h1_0*' umbel run --hosts 1 -- "$deny" $error $call -- ibv_devices
		expect 0 '4: ACTIVE' umbel run --hosts 1 -- "$deny" $error $call -- \
			cat /sys/class/infiniband/umbel_h1_0/ports/1/state
	done
done
# regions are registered without it, and those that cannot be are refused all the same
programs=${UMBEL%/bin/*}/tests/programs
for error in EPERM EACCES ENOSYS; do
	expect 0 '*  PASSED  *' umbel run --hosts 4 -- "$deny" $error madvise -- "$programs/verbs.mr"
done
expect 125 "umbel: signalfd4() fails: Operation not permitted; a container may have to allow it (seccomp)" \
	"$deny" EPERM signalfd4 -- umbel run -- true
for call in memfd_create ftruncate set_robust_list epoll_create1 flock; do
	said="umbel: cannot start fabric *: $call() fails: Operation not permitted; a container may have to allow it (seccomp)"
	expect 125 "$said" "$deny" EPERM $call -- umbel run -- true
	expect 1 "$said" "$deny" EPERM $call -- umbel up
	said=${said/Operation not permitted/Function not implemented}
	expect 1 "$said" "$deny" ENOSYS $call -- umbel up
done
