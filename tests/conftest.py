"""For all tests: what a shell begins in the background ignores Ctrl-C, and so would the programs that tests interrupt."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
