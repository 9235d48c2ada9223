# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# wire_death.c on h1, the peer, and h2, the victims: what the scripts share that run it. Sourced after lab.sh.

traffics=0

# begin_both ARGUMENT...: both, as $peer and $victims.
begin_both()
{
	local path=$TMPDIR/path-$((++traffics)) command=("$programs_dir/roce.wire_death")

	peer=peer-$traffics victims=victims-$traffics
	start_on $peer h1 "${command[@]}" peer path="$path"
	wait_said $peer listens || exit
	start_on $victims h2 "${command[@]}" victims path="$path" "$@"
}

# end_both: they end well.
end_both()
{
	local name

	for name in $victims $peer; do
		wait_ended $name 0
		expect_said $name 'all is well'
	done
}
