#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The checks of the sources: style, the order of the folders, lengths, headers that stand alone,
# white space, licences, loops that yield, commit messages, models whose functions have changed, cppcheck. Called by
# .ci/run. Each check prints what it finds, and all are made, whatever the others found.

set -u -o pipefail

cd "$(dirname "$(readlink -f "$0")")/.." || exit 1

failed=()

# check WORDS COMMAND...
check()
{
	local what=$1
	shift
	echo "checking $what"
	"$@" || failed+=("$what")
}

sources()
{
	find src programs tests bench examples -name '*.[ch]' -print | sort
}

headers()
{
	find src programs -name '*.h' ! -path '*/tests/*' -print | sort
}

# each LIST COMMAND: the command in bash for each file of the list, $1, as many at a time as there are processors.
each()
{
	"$1" | xargs -d '\n' -n 1 -P "$(nproc)" bash -c "$2" each
}

check_format()
{
	local found

	found=$(sources | xargs -d '\n' -n 32 -P "$(nproc)" clang-format --dry-run 2>&1 |
		sed -n 's/^\([^ :]*\):.*\[-Wclang-format-violations\]$/\1/p' | sort -u)
	[ -z "$found" ] || {
		sed 's/.*/&: not in our style; clang-format -i &/' <<< "$found"
		return 1
	}
}

# cppcheck_as PROCESSOR: those files that are read, as they are for that one.
cppcheck_as()
{
	local queue

	# It gets one of the system's headers, whose macros it cannot do without.
	queue=$(gcc -E - <<< '#include <sys/queue.h>' | sed -n 's/^# 1 "\(.*queue\.h\)".*/\1/p')
	grep '\.c$' | grep -v '_test\.c$' | grep -v '^tests/\|/tests/' |
		cppcheck --quiet --error-exitcode=1 --std=c11 --language=c -j "$(nproc)" \
			--enable=warning,portability --inline-suppr -I src/shared -I src/client -I src/server -I src/command -I programs -I bench --include="$queue" "-D__$1__=1" \
			--suppress=missingInclude --suppress=missingIncludeSystem \
			--suppress=checkersReport --suppress=normalCheckLevelMaxBranches \
			--file-list=-
}

# Files that differ on another processor are read twice. Without a macro cppcheck would try all that it meets.
check_cppcheck()
{
	sources | cppcheck_as x86_64 &&
		sources | xargs -d '\n' grep -l '__x86_64__\|__aarch64__' | cppcheck_as aarch64
}

check_headers()
{
	each headers 'gcc -std=gnu11 -fsyntax-only -Wall -Wextra -Werror \
		-I src/shared -I src/client -I src/server -I src/command -I programs -x c - \
		<<< "#include \"$(sed -E "s,^(src/[^/]*|programs)/,," <<< "$1")\""'
}

check_white_space()
{
	local found

	found=$(find . \( -path ./build -o -path ./.git \) -prune -o -type f -print0 |
		xargs -0 -r grep -nIE '[[:blank:]]+$' --)
	[ -z "$found" ] || {
		echo "$found"
		return 1
	}
}

# No loop waits by giving the processor away (src/shared/base/pause.h says why), nor by sleeping for no time, nor by nothing
# but looks at a descriptor. Comments may name the calls.
check_yields()
{
	local found

	found=$(find src programs tests bench examples -name '*.[ch]' -o -name '*.cc' -o -name '*.cpp' -o -name '*.py' | sort |
		xargs -d '\n' awk '
			FNR == 1 { loop = looks = 0 }
			/^[[:blank:]]*(\/?\*|\/\/|#)/ { next }
			/(sched_yield|pthread_yield|thrd_yield|this_thread::yield) *\(/ ||
			/(usleep|[^a-z_]sleep|time\.sleep) *\( *0 *\)/ ||
			(loop || /(^|[^a-z_])(while|for) *\(/) && /[^a-z_]poll *\( *(NULL|0) *, *0 *, *0 *\)/ ||
			looks && /^[[:blank:]]*;/ || /while *\((.*[^a-z_])?poll *\([^;]*, *0 *\).*\) *;/ {
				print FILENAME ":" FNR ":" $0
			}
			{
				loop = /^[[:blank:]]*((while|for) *\(|do$|do \{)/
				looks = loop && /[^a-z_]poll *\([^;]*, *0 *\)/
			}')
	[ -z "$found" ] || {
		sed 's/$/: no loop yields; base_pause() of src\/base\/pause.h/' <<< "$found"
		return 1
	}
}

check_spdx()
{
	local file status=0

	while read -r file; do
		head -n 2 "$file" | grep -q 'SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause' || {
			echo "$file: no SPDX line"
			status=1
		}
	done < <(
		sources
		find . -path ./build -prune -o -path ./.git -prune -o \
			\( -name '*.sh' -o -name '*.def' -o -name CMakeLists.txt -o -name run \) -type f -print
	)
	return $status
}

# LICENSES/ has the text of each licence that an SPDX line names, and of no other.
check_licence_texts()
{
	local named

	named=$(grep -rhoE --include='*.[ch]' --include='*.sh' --include=CMakeLists.txt \
		'SPDX-License-Identifier: [A-Za-z0-9. -]+' CMakeLists.txt src programs tests bench examples tools |
		sed 's/^[^:]*: *//; s/ \(OR\|AND\|WITH\) /\n/g' | sed 's/ *$//' | sort -u)
	diff -u <(sed 's/$/.txt/' <<< "$named") <(ls LICENSES) || {
		echo "LICENSES/ and the licences in use (-) differ"
		return 1
	}
	grep -oE 'LICENSES/[A-Za-z0-9.-]+' LICENSE | sort | diff -u - <(printf '%s\n' LICENSES/*) || {
		echo "LICENSE does not name the texts in LICENSES/"
		return 1
	}
}

check "the style" check_format
check "the order of the folders" tools/check-layers.sh
check "for circles of modules" tools/check-circles.sh
check "the length of functions and files" tools/check-shape.py
check "that headers stand alone" check_headers
check "for white space at the end of lines" check_white_space
check "for loops that yield" check_yields
check "for licence lines" check_spdx
check "for licence texts" check_licence_texts
check "the messages of commits" tools/check-commits.sh
check "that models follow their functions" tools/check-models.py
check "with cppcheck" check_cppcheck

if [ ${#failed[@]} -gt 0 ]; then
	printf 'failed: %s\n' "${failed[@]}"
	exit 1
fi
echo "passed"
