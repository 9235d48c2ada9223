#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Limits on resources: umbel and the libraries say in one line which limit is too low.

. "${0%/*}/../system/lib.sh"

# what the shell that runs the tests has open would count
for fd in /proc/$$/fd/*; do
	fd=${fd##*/}
	[ "$fd" -le 2 ] || [ "$fd" -eq 255 ] || eval "exec $fd>&-"
done

# AddressSanitizer needs terabytes of address space for itself.
address_space=limited
! grep -q __asan_init "$UMBEL" || address_space=

# limited OPTIONS-OF-ULIMIT COMMAND...
limited()
{
	local limits=$1
	shift
	# shellcheck disable=SC2016
	bash -c 'ulimit '"$limits"' && exec "$@"' - "$@"
}

# ---- the daemon
for command in "run -- true" "up"; do
	status=1
	[ "$command" = up ] || status=125
	# shellcheck disable=SC2086
	{
		expect $status "umbel: the shared memory is larger than files may be; raise the limit (ulimit -f)" \
			limited "-f 1000" umbel $command
		[ ! "$address_space" ] ||
			expect $status "umbel: no memory for fabric '*'; if the address space is limited, raise the limit (ulimit -v)" \
				limited "-v 300000" umbel $command
	}
done
[ -z "$(ls -A "$UMBEL_RUNTIME_DIR")" ] || complain "something was left"

# ---- a program
# how much a program needs without the fabric depends on its libraries: somewhere above that is too little for both
little='' said=''
for kb in $([ ! "$address_space" ] || seq 3000 500 12000); do
	said=$(umbel run --hosts 1 -- bash -c "ulimit -v $kb; ibv_devices" 2>&1)
	[[ $said != *"umbel: fabric '"*"' cannot be used: its shared memory does not fit into this program's address space; raise the limit (ulimit -v)"* ]] ||
		little=$kb
	[[ $said != *umbel_h1_0* ]] || break
done
[ ! "$address_space" ] || [ "$little" ] || complain "no limit of address space is refused with words: $said"
expect 0 "umbel: fabric '*' cannot be used: too many open files; raise the limit (ulimit -n)
*" umbel run --hosts 1 -- bash -c 'ulimit -n 5; ibv_devices'
expect 0 "*umbel_h1_0*" umbel run --hosts 1 -- bash -c 'ulimit -f 1; ibv_devices'

# ---- places
long=$UMBEL_RUNTIME_DIR/$(printf 'a%.0s' {1..120})
expect 125 "umbel: the path of the runtime directory is too long for a socket; set UMBEL_RUNTIME_DIR to a shorter one" \
	env UMBEL_RUNTIME_DIR="$long" umbel run -- true
mkdir -m 755 "$TMPDIR/open"
expect 1 "umbel: no private directory for fabric 'default': '$TMPDIR/open' can be entered by other users; it must have mode 0700; *" \
	env UMBEL_RUNTIME_DIR="$TMPDIR/open" umbel up
expect 125 "umbel: no private directory for fabrics: '$TMPDIR/file' is no directory; *" \
	env UMBEL_RUNTIME_DIR="$(touch "$TMPDIR/file"; echo "$TMPDIR/file")" umbel run -- true
