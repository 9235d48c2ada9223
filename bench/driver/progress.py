# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a long run is at."""

import sys


class Progress:
    """One line on the terminal that is written anew; nothing elsewhere."""

    def __init__(self):
        self.shown = sys.stderr.isatty()

    def say(self, text):
        if self.shown:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def end(self):
        self.say("")
