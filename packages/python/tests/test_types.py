"""The package's types, as a checker of types sees the installed package. Run with the Python the package is installed into."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

HAS_MYPY = importlib.util.find_spec("mypy") is not None
if not HAS_MYPY:  # said, and not passed over in silence
    print("NOT CHECKED: the package mypy is not installed")

USE = """
import pathlib

import shardscope

document: shardscope.Document = shardscope.estimate(pathlib.Path("train.sh"), settings={"micro_batch_size": 2, "bf16": True})
report = document["report"]
step: float = report["time"]["step_seconds"] if report is not None else 0.0
passes: bool = shardscope.check("train.sh", fail_on="tight", headroom=10, without=["x"])["passes"]
before = shardscope.compare("a.sh", "b.sh", environment={"TP": "2"})["before"]
row: dict[str, object] = shardscope.flat(document)
link: str = shardscope.link(text="x", page="https://example.org/") + shardscope.program()
"""

#: Each is a fault, and would not be one if the package had no types.
FAULTS = (
    "shardscope.estimate(1)",
    'shardscope.estimate("a.sh", acelerator="H100-SXM")',
    'shardscope.estimate("a.sh")["reprot"]',
    'shardscope.estimate("a.sh")["report"]["time"]',
    'shardscope.link("a.sh") + 1',
)


@unittest.skipUnless(HAS_MYPY, "the package mypy is not installed")
class Types(unittest.TestCase):
    def test_uses_are_told_from_faults(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "use.py").write_text(USE)
            pathlib.Path(folder, "faults.py").write_text("\n".join(["import shardscope", *FAULTS]) + "\n")

            def told(file):
                mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder + "/cache", file]
                return subprocess.run(mypy, cwd=folder, capture_output=True, text=True).stdout

            self.assertIn("Success", told("use.py"))
            faults = told("faults.py")
            for line, fault in enumerate(FAULTS, start=2):
                self.assertIn(f"faults.py:{line}: error", faults, fault)


if __name__ == "__main__":
    unittest.main()
