#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# umbel litmus: on a strong fabric no test shows what only a weak one does, on a weak one each shows all that is allowed,
# and none shows what is not. The same seed makes the same choices. The page has the table.

. "${0%/*}/../system/lib.sh"

page=$(cd "${0%/*}/../.." && pwd)/docs/weak.md
cd "$TMPDIR" || exit 1

umbel litmus --rounds 1500 > said 2>&1 || complain "umbel litmus: $(grep -A 8 -e WRONG -e umbel: said)"
n=$(umbel litmus --list | wc -l)
[ "$n" -ge 60 ] && [ "$(grep -c "^$n tests, 0 wrong\$" said)" = 2 ] || complain "not all tests ran on both fabrics: $(tail -3 said)"
umbel litmus no-such-test > said 2>&1
[ $? -eq 2 ] || complain "a test that is not there: $(cat said)"

# A test of one thread, whose rounds depend on nothing but choices.
for i in 1 2; do
	umbel run --weak=7 --hosts 3 -- umbel-litmus -n 300 write-source-reused > "said.$i" 2>&1 || complain "$(cat "said.$i")"
done
cmp said.1 said.2 || complain "seed 7 makes other choices the second time: $(cat said.1 said.2)"
umbel run --weak=8 --hosts 3 -- umbel-litmus -n 300 write-source-reused > said.2 2>&1
! cmp -s said.1 said.2 || complain "seeds 7 and 8 make the same choices: $(cat said.1)"
# not weak by reading late: then it is strong in this
umbel run --weak=7,place,complete --hosts 3 -- umbel-litmus --strong -n 300 write-source-reused > said 2>&1 ||
	complain "--weak=7,place,complete reads late: $(cat said)"

diff <(umbel litmus --table) <(grep '^|.*|$' "$page" | grep -A 1000 '^| Test |') > said ||
	complain "docs/weak.md has another table than 'umbel litmus --table': $(cat said)"
