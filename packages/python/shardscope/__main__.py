"""`python -m shardscope`: the program."""

import subprocess
import sys

from ._program import program

sys.exit(subprocess.call([program(), *sys.argv[1:]]))
