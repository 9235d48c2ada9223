#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Bad arguments of each command: one line that names what is wrong, and status 2.

. "${0%/*}/lib.sh"

expect 2 'umbel: which command? see umbel --help' umbel
expect 2 "umbel: no command 'nope'; see umbel --help" umbel nope
expect 0 'umbel [0-9]*' umbel --version
expect 0 '*Usage: umbel COMMAND*' umbel --help
expect 0 '*Usage: umbel COMMAND*' umbel help
expect 2 "umbel: no command 'nope'; see umbel --help" umbel help nope

commands=$(umbel --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p')
[ "$(wc -w <<< "$commands")" -ge 10 ] || complain "the help lists few commands: $commands"
# every program that is installed; umbel-rsh has ssh's options, which the rest of its words are
for program in "${UMBEL%/*}"/*; do
	name=${program##*/}
	expect 0 '*Usage: umbel *' timeout 60 "$name" --help
	expect 0 '*Usage: umbel *' timeout 60 "$name" -h
	[ "$name" = umbel-rsh ] || expect 0 "$name [0-9]*.[0-9]*" timeout 60 "$name" --version
	[ "$name" = umbel-rsh ] || expect 2 "*--bogus*$name*--help" timeout 60 "$name" --bogus
done

# fits COMMAND...: a terminal of 80 columns shows the lines of its help whole
fits()
{
	"$@" --help 2>&1 < /dev/null |
		awk -v name="$*" 'length > 80 { print name " --help: " length " columns: " $0; wide = 1 } END { exit wide }' >&2 ||
		complain "the help of $* is too wide"
}
fits umbel
for program in "${UMBEL%/*}"/*; do
	fits "$program"
done
for command in $commands; do
	fits umbel "$command"
	expect 0 "Usage: umbel $command *" umbel "$command" --help
	expect 0 "Usage: umbel $command *" umbel help "$command"
	expect 0 "Usage: umbel $command *" umbel "$command" -h
	# the options of mpirun, and of ssh
	[ "$command" != mpirun ] || continue
	expect 2 "umbel: $command: no option '--bogus'; see *" umbel "$command" --bogus
	[ "$command" = rsh ] || expect 2 "umbel: $command: no option '-x'; see *" umbel "$command" -x
done
for command in $commands; do
	# they are of no fabric that is up, or of two
	[[ $command != run && $command != litmus && $command != simulate && $command != ladder && $command != router ]] || continue
	expect 2 "umbel: $command: option '--name' needs a value; see *" umbel "$command" --name
done

expect 2 "umbel: router: which two fabrics?; *" umbel router a
expect 2 "umbel: router: which router? write FABRIC:HOST; *" umbel router --end a
expect 2 "umbel: *'a b'*" umbel router 'a b' c
expect 1 "umbel: no fabric 'a' is up in *" umbel router a b
expect 2 "umbel: up: '0xff00000000000000' is no prefix, *" umbel up --prefix 0xff00000000000000
expect 1 "umbel: no router 'h9': there is no such host" umbel up --name nine --router h1,h9
expect 2 "umbel: up: '0' hosts: a fabric has 1 to *" umbel up --hosts 0
expect 2 "umbel: up: 'two' hosts: a fabric has 1 to *" umbel up --hosts two
expect 2 "umbel: up: '99999999999999999999' hosts: *" umbel up --hosts 99999999999999999999
expect 2 "umbel: up: 'mtu' is no setting: write key=value; *" umbel up --set mtu
expect 2 "umbel: up: '=1' is no setting: write key=value; *" umbel up --set =1
expect 2 "umbel: up: it takes no 'more'; *" umbel up more
expect 1 "umbel: setting 'bogus=1': *" umbel up --set bogus=1
expect 1 "umbel: setting 'mtu=77': *" umbel up --set mtu=77
for name in a/b ../x .x -x '' "$(printf '%033d' 0)"; do
	expect 2 "umbel: '$name' is no name for a fabric: *" umbel up --name "$name"
	expect 2 "umbel: '$name' is no name for a fabric: *" umbel show --name "$name" hosts
	expect 2 "umbel: '$name' is no name for a fabric: *" umbel down --name "$name"
done

expect 2 "umbel: down: it takes no 'more'; *" umbel down more
expect 2 'umbel: down: either --all or --name; *' umbel down --all --name x
expect 2 "umbel: run: put '--' before 'true'; *" umbel run true
expect 2 "umbel: run: '--' and a command are missing; *" umbel run --hosts 2
expect 2 "umbel: run: '--' and a command are missing; *" umbel run --
expect 2 "umbel: run: '-1' hosts: *" umbel run --hosts -1 -- true
expect 125 "umbel: setting 'bogus=1': *" umbel run --set bogus=1 -- true
expect 2 "umbel: exec: '--' and a command are missing; *" umbel exec h1
expect 2 "umbel: exec: one host, then '--' and the command; *" umbel exec h1 true -- true
views=$(umbel show --help | sed -n '/^As pictures/q; s/^  \([a-z]*\)  .*/\1,/p' | xargs | sed 's/,$//; s/,\( [a-z]*\)$/ or\1/')
[[ $views == topology,*' or '* ]] || complain "the help lists no views: $views"
expect 2 "umbel: show: what? $views; *" umbel show
expect 2 "umbel: show: no 'weather': it shows *" umbel show weather
expect 2 "umbel: show: one thing at a time, not 'hosts' too; *" umbel show groups hosts
expect 2 "umbel: show: option '--json' takes no value; *" umbel show --json=1 hosts
expect 2 "umbel: top: no view 'weather': ports, groups, *" umbel top weather
expect 2 "umbel: top: one view at first, not 'qps' too; *" umbel top ports qps
expect 2 "umbel: top: '0' is no number *" umbel top --interval 0
expect 2 'umbel: top: it needs a terminal; *' umbel top
expect 2 'umbel: set: which setting? write key=value; *' umbel set
expect 2 "umbel: set: 'mtu' is no setting: write key=value; *" umbel set mtu
expect 2 "umbel: status: it takes no 'x'; *" umbel status x
expect 2 'umbel: sysfs: which directory?; *' umbel sysfs --every 5
expect 2 'umbel: sysfs: one directory; *' umbel sysfs x y
expect 2 "umbel: sysfs: '0' is no number *" umbel sysfs --every 0 x

expect 2 'umbel: check: --lfts needs --topology; *' umbel check --lfts x
expect 2 'umbel: check: --topology needs --lfts; *' umbel check --topology x
expect 2 'umbel: check: --name does not go with --topology; *' umbel check --name x --topology x --lfts x
expect 2 "umbel: check: 'luck' is nothing that is checked; *" umbel check --except luck
expect 2 "umbel: check: it takes no 'now'; *" umbel check now
expect 2 "umbel: check: '16' is no number *" umbel check --sl 16
expect 1 "umbel: cannot read '/nope': *" umbel check --topology /nope --lfts /nope
expect 2 'umbel: simulate: which pattern? all-to-all, *' umbel simulate
expect 2 "umbel: simulate: no pattern 'none': *" umbel simulate none
expect 2 "umbel: simulate: 'groups' takes two numbers: *" umbel simulate groups 3
expect 2 "umbel: simulate: 'all-to-all' takes no more words; *" umbel simulate all-to-all h1
expect 2 "umbel: simulate: '-1' is no number *" umbel simulate shift -1
# options that stand behind a word
expect 2 "umbel: simulate: option '--hosts' goes before 'shift'; *" umbel simulate shift 1 --hosts 8
expect 2 "umbel: set: option '--name' goes before 'mtu=1024'; *" umbel set mtu=1024 --name x
expect 2 "umbel: link: option '-n' goes before 'down'; *" umbel link down h1:1 -n x
expect 2 "umbel: sysfs: option '--every' goes before 'to'; *" umbel sysfs to --every 1
expect 2 "umbel: down: option '--help' goes before 'now'; *" umbel down now --help
expect 2 "umbel: env: option '-h' goes before 'h1'; *" umbel env h1 -h
expect 2 "umbel: sysfs: one directory; *" umbel sysfs -- to --name
expect 1 "umbel: no fabric *" umbel rsh h1 ls --name
# words behind "--", of commands that take words among their options
expect 1 "umbel: cannot read '--help': *" umbel ladder -- --help
expect 2 "umbel: ladder: 'x' is no queue pair's number; *" umbel ladder -o /dev/null /none -- 3 x
expect 2 "umbel: show: no '--json': it shows *" umbel show -- --json
expect 2 "umbel: show: one thing at a time, not 'groups' too; *" umbel show hosts -- groups
expect 2 "umbel: top: one view at first, not 'qps' too; *" umbel top -- ports qps
expect 2 "umbel: capture: one node at a time, not 'h2' too; *" umbel capture -- h1 h2
expect 2 "umbel: fault: 'add', 'show' or 'clear', not '--json'; *" umbel fault -- --json
expect 2 "umbel: explain: it takes no '--name' *" umbel explain -- --name
expect 2 "umbel: simulate: '1.5' is no number *" umbel simulate --size 1.5 all-to-all
expect 2 "umbel: simulate: '49152' hosts: *" umbel simulate --hosts 49152 all-to-all
expect 1 "umbel: 49000 hosts and their switches need more than the 49151 LIDs of a fabric" \
	umbel simulate --hosts 49000 all-to-all
expect 1 "umbel: with lmc=7 this fabric needs * LIDs; there are 49151" \
	umbel simulate --hosts 400 --set lmc=7 all-to-all
expect 1 "umbel: setting 'routing=best': *" umbel simulate --set routing=best all-to-all
expect 1 'umbel: a group of 5: there are 4 hosts' umbel simulate groups 1 5
expect 1 'umbel: a message to a group is a datagram: --size is 4097, the MTU 4096' \
	umbel simulate --size 4097 groups 1 3
expect 1 'umbel: the switches have no room for so many groups' \
	umbel simulate --set mft_capacity=3 groups 3 2
expect 1 'umbel: --fail sw9: there is no such node' umbel simulate --fail sw9 all-to-all
expect 1 'umbel: --fail h1: it is no switch: *' umbel simulate --fail h1 all-to-all
expect 1 'umbel: --fail sw1:99: there is no such port' umbel simulate --fail sw1:99 all-to-all
expect 1 'umbel: --fail sw1:0: there is no such port' umbel simulate --fail sw1:0 all-to-all
expect 1 'umbel: --fail sw1:1: it has failed already' \
	umbel simulate --fail h1:1 --fail sw1:1 all-to-all
expect 1 'umbel: there is less that could fail' umbel simulate --fail-links 1 all-to-all
expect 1 "umbel: cannot read '/nope': *" umbel simulate file /nope
expect 1 "umbel: /dev/stdin:1: no host 'h9'" umbel simulate file /dev/stdin <<< 'unicast h1 h9'
expect 1 '*: expected *' umbel simulate --topology /bin/true all-to-all

[ -z "$(umbel status --json | tr -d '[] \n')" ] || complain "a fabric came up"
[ -z "$(find "$UMBEL_RUNTIME_DIR" -mindepth 1)" ] || complain "something was left"
