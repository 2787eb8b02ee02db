"""What agents and git run. Appends one line to the spool and is gone; whatever is broken, it
says nothing and exits 0.

    PY -I -S hook.py --agent AGENT [--annotate] [--remember] [--recall] [--rules] [--ask PORT]
    [--snapshot PHASE] EVENT [ARG ...] [--sha SHA] [--chain "PID:START:NAME ..."] [--rebasing]

The work is in announce.py beside it: Python keeps a module compiled, the file it is started with
never, and compiling takes longer than all the rest. Whyfor's home is the folder above the one
they lie in.
"""

import posix
import sys

try:
    posix.umask(0o077)
    sys.path.insert(0, sys.argv[0].rpartition("/")[0] or ".")
    import announce  # type: ignore[import-not-found]

    announce.main(
        [word.encode(sys.getfilesystemencoding(), "surrogateescape") for word in sys.argv]
    )
except BaseException:  # noqa: BLE001 - never in the way
    pass
posix._exit(0)  # without tidying up: that takes a tenth of the whole
