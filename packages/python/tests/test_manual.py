"""What `docs/use` shows of Python and of agents is run as it is written. Run with the Python the package is installed into."""

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

USE = pathlib.Path(__file__).parents[3] / "docs/use"


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
        (servers,) = blocks("agents.md", "json")
        self.assertEqual(json.loads(servers)["mcpServers"]["shardscope"], {"command": "uvx", "args": ["shardscope", "mcp"]})
