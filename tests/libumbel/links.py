# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program that starts its own fabric, and takes a link of it down."""

import sys

import umbel

umbel.enter("--hosts", "2")
assert sys.argv[1:] == ["two words"], sys.argv

umbel.link("h2:1", False)
try:
    umbel.link("h2:1", False)
    sys.exit("it is down twice")
except umbel.Error as error:
    assert "down already" in str(error), error
try:
    umbel.link("--help", False)
    sys.exit("an option is a port")
except umbel.Error as error:
    assert "begins with" in str(error), error
umbel.switch("sw1", False)
umbel.switch("sw1", True)
assert umbel.counter("h2:1", "no_receive") == 0
try:
    umbel.counter("h2:1", "nonsense")
    sys.exit("there is a counter called nonsense")
except umbel.Error as error:
    assert "nonsense" in str(error), error
print("h2 is cut off")
