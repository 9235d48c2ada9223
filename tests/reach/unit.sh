#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# unit.sh BUILD_DIR: the systemd unit of an installation. A real user manager starts and stops a fabric by it,
# with the options of a file; it hears when the daemon serves and starts a killed one again. The manager
# runs in namespaces and in a cgroup of its own, on a machine that need not run systemd. Only root may
# have those: others check the unit's form only.

. "${0%/*}/../system/lib.sh"

prefix=$TMPDIR/opt

# property NAME: of the service
property()
{
	systemctl --user show --property "$1" --value umbel@lab
}

# The manager; its runtime directory is where fabrics are.
start_manager()
{
	mount -t tmpfs tmpfs /run
	mkdir -p /run/systemd/system # as if systemd had booted this
	umount -R /sys/fs/cgroup 2> /dev/null
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	SYSTEMD_LOG_TARGET=console launch manager /lib/systemd/systemd --user --unit=basic.target
	wait_until "the manager listens" test -S "$XDG_RUNTIME_DIR/systemd/private"
}

# in_namespaces COMMAND...: with mounts, processes and cgroups of its own. It sees its own cgroup as the
# root of all, so that no manager can reach the processes of others.
in_namespaces()
{
	local all=$TMPDIR/cgroups before own status=0

	before=$(sed -n 's/^0:://p' /proc/self/cgroup)
	own=$all${before%/}/$(basename "${TMPDIR%/tmp}")
	mkdir "$all"
	mount -t cgroup2 cgroup2 "$all"
	mkdir "$own"
	echo $$ > "$own/cgroup.procs"
	unshare --cgroup --mount --propagation private --pid --fork --kill-child --mount-proc "$@" || status=$?
	echo $$ > "$all$before/cgroup.procs"
	find "$own" -depth -type d -exec rmdir {} + || complain "the manager's cgroup is left"
	umount "$all"
	return $status
}

check_service()
{
	local daemon

	mkdir -p "$XDG_CONFIG_HOME/umbel"
	echo 'UMBEL_OPTIONS=--hosts 3 --set mtu=2048' > "$XDG_CONFIG_HOME/umbel/lab.conf"
	start_manager
	expect 0 '' systemctl --user start umbel@lab # it returns when the daemon serves
	expect 0 '*umbel_h3_0*active_mtu:*2048*' umbel exec --name lab h3 -- ibv_devinfo
	expect 0 'NAME *lab  *3 *' umbel status
	daemon=$(property MainPID)
	[ "$daemon" = "$(field pid lab)" ] || complain "systemd watches $daemon, not the daemon"

	kill -9 "$daemon"
	wait_until "another daemon serves" served_by_another "$daemon"
	expect 0 '' systemctl --user stop umbel@lab
	expect 0 'no fabric is up*' umbel status

	expect 0 '' systemctl --user start umbel@lab
	expect 0 "*is down" umbel down --name lab
	wait_until "the service has ended" is inactive
	[ "$(property Result)" = success ] || complain "umbel down is no success: $(property Result)"
	systemctl --user exit
	wait_ended manager 0
}

# is STATE: the service
is()
{
	[ "$(property ActiveState)" = "$1" ]
}

served_by_another()
{
	is active && [ "$(property MainPID)" != "$1" ]
}

PATH=$prefix/bin:$PATH
unset UMBEL_RUNTIME_DIR
export XDG_RUNTIME_DIR=$TMPDIR/xdg XDG_CONFIG_HOME=$TMPDIR/config SYSTEMD_UNIT_PATH=$prefix/lib/systemd/user:
case $1 in
inside)
	check_service
	;;
outside)
	in_namespaces "$0" inside || failed=1
	;;
*)
	mkdir -m 700 "$XDG_RUNTIME_DIR"
	expect 0 '*' cmake --install "$1" --prefix "$prefix"
	# the manual pages that the unit names are there, too
	MANPATH=$prefix/share/man expect 0 '' systemd-analyze verify --user \
		"$prefix/lib/systemd/user/umbel@lab.service"
	[ $failed -eq 0 ] || exit 1
	[ "$(id -u)" -eq 0 ] || { echo "only root may make cgroups: the rest is skipped"; exit 77; }
	unshare --mount --propagation private "$0" outside || failed=1
	;;
esac
