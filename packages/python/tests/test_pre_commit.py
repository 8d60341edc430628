"""The hook as pre-commit itself runs it, from a repository with this one's manifest. Run with the Python the package is installed into."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import shardscope

from test_shardscope import SCRIPT

MANIFEST = pathlib.Path(__file__).parents[3] / ".pre-commit-hooks.yaml"
HAS_PRE_COMMIT = importlib.util.find_spec("pre_commit") is not None
if not HAS_PRE_COMMIT:  # said, and not passed over in silence
    print("NOT CHECKED: the package pre-commit is not installed")


@unittest.skipUnless(HAS_PRE_COMMIT, "the package pre-commit is not installed")
class Hook(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        program = pathlib.Path(shardscope.program())
        self.environment = {
            **os.environ,
            # `shardscope-system` takes the program of the PATH.
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "PRE_COMMIT_HOME": str(self.folder / "cache"),
            # Nothing of whoever runs the tests decides how the two repositories are committed to.
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def git(self, repository, *words):
        names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        done = subprocess.run(
            ["git", *names, *words], cwd=repository, env=self.environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def repository(self, name, **files):
        repository = self.folder / name
        repository.mkdir()
        self.git(repository, "init", "--quiet")
        for file, text in files.items():
            (repository / file).write_text(text)
        self.git(repository, "add", "--all")
        self.git(repository, "commit", "--quiet", "--no-verify", "--message", "first")
        return repository

    def test_a_commit_of_a_run_that_does_not_fit_is_refused(self):
        hooks = self.repository("hooks", **{".pre-commit-hooks.yaml": MANIFEST.read_text()})
        revision = self.git(hooks, "rev-parse", "HEAD")
        config = f"repos:\n- repo: {hooks}\n  rev: {revision}\n  hooks:\n  - id: shardscope-system\n"
        ours = self.repository("ours", **{".pre-commit-config.yaml": config, "train.sh": SCRIPT, "copy.sh": "cp a b\n"})
        run = [sys.executable, "-m", "pre_commit", "run", "--all-files"]

        def verdict():
            self.git(ours, "add", "--all")
            return subprocess.run(run, cwd=ours, env=self.environment, capture_output=True, text=True)

        fits = verdict()
        self.assertEqual(fits.returncode, 0, fits.stdout + fits.stderr)
        self.assertIn("training runs fit", fits.stdout)
        self.assertIn("Passed", fits.stdout)
        large = SCRIPT.replace("--hidden-size 4096", "--hidden-size 32768")
        self.assertNotEqual(large, SCRIPT)
        (ours / "train.sh").write_text(large)
        refused = verdict()
        self.assertEqual(refused.returncode, 1, refused.stdout + refused.stderr)
        self.assertIn("does not fit", refused.stdout)


if __name__ == "__main__":
    unittest.main()
