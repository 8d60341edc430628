"""What `docs/use` shows of Python and of agents is run as it is written. Run with the Python the package is installed into."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import tempfile
import unittest

from test_mcp import TOOLS
from test_shardscope import SCRIPT

try:
    from shardscope import widget
except ImportError as error:  # said, and not passed over in silence
    print(f"NOT CHECKED: {error}")
    widget = None

HAS_PANDAS = importlib.util.find_spec("pandas") is not None
if not HAS_PANDAS:  # said, and not passed over in silence
    print("NOT CHECKED: the package pandas is not installed")

ROOT = pathlib.Path(__file__).parents[3]
USE = ROOT / "docs/use"


def blocks(name, language):
    return re.findall(rf"```{language}\n(.*?)```", (USE / name).read_text(), re.DOTALL)


class Manual(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        pathlib.Path(folder.name, "train.sh").write_text(SCRIPT)
        # the last cleanup runs first
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def run_block(self, block):
        """Runs it line by line; the value of each line that is an expression."""
        names, values = {}, {}
        for line in filter(None, (line.split("  #")[0].rstrip() for line in block.splitlines())):
            try:
                values[line] = eval(compile(line, "python.md", "eval"), names)
            except SyntaxError:
                exec(compile(line, "python.md", "exec"), names)
        return names, values

    def test_the_packages_calls(self):
        names, values = self.run_block(blocks("python.md", "python")[0])
        (peak,) = values.values()
        self.assertEqual(names["document"]["settings"]["micro_batch_size"]["value"], 2)
        self.assertGreater(peak, 1 << 30)

    def test_the_readmes_calls(self):
        readme = (ROOT / "packages/python/README.md").read_text()
        first, rows = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.run_block(first)
        self.assertRegex(said.getvalue(), r"^fits \d+\.\d+\n$")
        if not HAS_PANDAS:
            self.skipTest("the package pandas is not installed")
        names, values = self.run_block("import shardscope\n" + rows)
        (table,) = values.values()
        self.assertEqual(table.shape, (3, 3))
        peaks = [document["report.memory.worst.peak_reserved"] for document in names["rows"]]
        self.assertEqual(list(table["report.memory.worst.peak_reserved"]), peaks)
        self.assertTrue(all(kind.kind in "if" for kind in table.dtypes), table.dtypes)

    @unittest.skipIf(widget is None, "anywidget is not installed")
    def test_the_notebooks_calls(self):
        names, values = self.run_block(blocks("python.md", "python")[1])
        self.assertEqual(len(values), 3, "the run, what was changed, its report")
        self.assertEqual(names["run"].changes, {"tensor_model_parallel_size": "4"})
        after = names["run"].document["settings"]["tensor_model_parallel_size"]
        self.assertEqual(after["value"], 4)

    def test_the_agents_tools(self):
        table = (USE / "agents.md").read_text().split("| tool | answer |")[1]
        self.assertEqual(set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)), TOOLS)
        # What teaches when to use which names each of them, and no other.
        rows = (ROOT / "skills/shardscope/SKILL.md").read_text().split("| the question | tool | program |")[1].split("\n\n")[0]
        named = [name for row in rows.splitlines() if row.count("|") == 4 for name in re.findall(r"`(\w+)`", row.split("|")[2])]
        self.assertEqual(set(named) - {"advice", "changes"}, TOOLS)
        (servers,) = blocks("agents.md", "json")
        self.assertEqual(json.loads(servers)["mcpServers"]["shardscope"], {"command": "uvx", "args": ["shardscope", "mcp"]})
