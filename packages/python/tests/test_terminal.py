"""What a terminal is given: colours, and lines no wider than it is. Run with the Python the package is installed into."""

import os
import subprocess
import unittest

import shardscope

from test_shardscope import SCRIPT

try:
    import fcntl
    import pty
    import struct
    import termios
except ImportError:  # said, and not passed over in silence
    print("NOT CHECKED: this system has no pseudo-terminals")
    pty = None

GREEN_FITS = "\x1b[32mfits\x1b[0m: "


def environment(**more):
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI")}
    return {**plain, "TERM": "xterm-256color", **more}


@unittest.skipIf(pty is None, "this system has no pseudo-terminals")
class Terminal(unittest.TestCase):
    def on_terminal(self, columns, *words, **more):
        """What the program writes to a terminal of so many columns."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        program = subprocess.Popen(
            [shardscope.program(), *words, "-"], stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.DEVNULL, env=environment(**more)
        )
        os.close(theirs)
        program.stdin.write(SCRIPT.encode())
        program.stdin.close()
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux's word for the end of a terminal
                break
            if not part:
                break
            parts.append(part)
        os.close(ours)
        self.assertEqual(program.wait(), 0)
        return b"".join(parts).decode().replace("\r\n", "\n")

    def test_colours_are_for_terminals_that_want_them(self):
        check = ("check", "--accelerator", "H100-SXM")
        self.assertTrue(self.on_terminal(100, *check).startswith(GREEN_FITS))
        for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertTrue(self.on_terminal(100, *check, **more).startswith("fits: "), more)
        self.assertTrue(self.on_terminal(100, *check, "--color=never").startswith("fits: "))

        def piped(**more):
            done = subprocess.run([shardscope.program(), *check, "-"], input=SCRIPT, capture_output=True, text=True, env=environment(**more))
            return done.stdout

        self.assertTrue(piped().startswith("fits: "))
        self.assertTrue(piped(CLICOLOR_FORCE="1").startswith(GREEN_FITS))

    def test_prose_is_folded_at_the_terminals_width(self):
        wide, narrow = (self.on_terminal(columns, "report", NO_COLOR="1") for columns in (1000, 72))
        advice = [report.split("\nAdvice\n======\n")[1].split("\n\n")[0] for report in (wide, narrow)]
        self.assertGreater(max(map(len, advice[0].splitlines())), 200)
        self.assertLessEqual(max(map(len, advice[1].splitlines())), 72)
        self.assertEqual(advice[0].split(), advice[1].split())


if __name__ == "__main__":
    unittest.main()
