#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Files that are no recording, or not quite one: replay says which line is wrong, and does nothing. And recordings that cannot
# be written.

. "${0%/*}/lib.sh"

umbel up --hosts 2 > /dev/null
file=$TMPDIR/story
head='{"time_ns":1,"event":"fabric","topology":"","settings":{}}'
no_recording="umbel: '$file', line %d: it is no recording of umbel record"

# refuse TEXT LINE...: a file of these lines, which ends with 1 and says that.
refuse()
{
	local text=$1
	shift
	printf '%s\n' "$@" > "$file"
	expect 1 "$text" timeout 60 umbel replay "$file"
}

for first in '{"event":"fabric","settings":5}' '[1]' 'null' '"fabric"' '{"event":"fabric"} and more' '{"event":"fabr'; do
	# shellcheck disable=SC2059
	refuse "$(printf "$no_recording" 1)" "$first"
done
link='{"time_ns":1,"event":"link","node":"sw1","port":1,"what":"down"}'
for next in "$link $link" "$link}" '[1]' '' "${link%?}"; do
	# shellcheck disable=SC2059
	refuse "$(printf "$no_recording" 2)" "$head" "$next"
done
refuse "umbel: '$file', line 2: another recording begins here" "$head" "$head"
for what in '' ',"what":"sideways"' ',"what":5'; do
	refuse "umbel: '$file', line 3: it does not say what happens" "$head" "$link" \
		'{"time_ns":2,"event":"link","node":"sw1","port":2'"$what}"
done
refuse "umbel: '$file', line 2: it does not say what happens" "$head" '{"time_ns":2,"event":"switch","node":"sw1"}'
refuse "umbel: '$file', line 2: an event without a time" "$head" "${link/1/'"x"'}"
for place in '"node":"sw9"' '"port":4294967297' '"port":-1' '"port":0'; do
	refuse "umbel: '$file', line 2: *this fabric has no *" "$head" \
		'{"time_ns":1,"event":"link","node":"sw1","port":1,"what":"down",'"$place}"
done
expect 1 "umbel: '/dev/zero', line 1: it is no recording of umbel record" timeout 60 umbel replay /dev/zero
echo '{"event":"fabric","settings":{}}' > "$file"
expect 1 "umbel: '$file', line 1: it has no topology" umbel replay --topology "$file"
expect 0 $'*\nports with a cable: 4 active\n*' umbel status --name default

# lines of a file that another system has written
printf '%s\r\n' "$head" "$link" > "$file"
expect 0 '*link*sw1:1*down' umbel replay "$file"
expect 0 $'*\nports with a cable: 2 active, 2 down\n*' umbel status --name default

expect 1 "umbel: cannot write '/dev/full': No space left on device" timeout 60 umbel record /dev/full
expect 1 "umbel: cannot write '/nope/x': No such file or directory" timeout 60 umbel record /nope/x
