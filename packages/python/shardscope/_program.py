"""The program of this package, found and called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from typing import Sequence


class ShardscopeError(RuntimeError):
    """What the program says where it cannot answer."""


def program() -> str:
    """The path of the program that came with this package.

    Raises ShardscopeError where there is none.
    """
    name = "shardscope" + (sysconfig.get_config_var("EXE") or "")
    schemes = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", scheme=_user_scheme())]
    # `pip install --target FOLDER` puts programs into FOLDER/bin.
    schemes.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))
    for folder in schemes:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    found = shutil.which(name)
    if found is None:
        raise ShardscopeError(f"the program {name} is in none of {', '.join(schemes)} and not on the PATH")
    return found


def _user_scheme() -> str:
    if sys.version_info >= (3, 10):
        return sysconfig.get_preferred_scheme("user")
    return "nt_user" if os.name == "nt" else "posix_user"


def call(arguments: Sequence[str], text: str | None, fails: Sequence[int] = ()) -> str:
    """What the program prints; `fails` are exit codes that are answers too."""
    done = subprocess.run(
        [program(), *arguments],
        input=text or "",
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "NO_COLOR": "1"},
    )
    # An answer is printed; a call that is refused prints nothing and says why.
    if done.returncode != 0 and (done.returncode not in fails or not done.stdout):
        raise ShardscopeError(done.stderr.strip() or f"the program ended with {done.returncode}")
    return done.stdout
