"""The installed package, as a user calls it. Run with the Python it is installed into: `python -m unittest`."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import shardscope

SCRIPT = """torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 4096 \\
--num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 \\
--global-batch-size 512 --vocab-size 50257 --bf16 --tensor-model-parallel-size 2 \\
--pipeline-model-parallel-size 2 --use-distributed-optimizer
"""


class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "train.sh")
        self.file.write_text(SCRIPT)

    def test_a_file_and_its_text_give_one_document(self):
        of_file = shardscope.estimate(self.file, accelerator="H100-SXM")
        of_text = shardscope.estimate(text=SCRIPT, accelerator="H100-SXM")
        self.assertEqual(of_file["report"], of_text["report"])
        self.assertEqual(of_file["report"]["topology"]["world_size"], 16)
        self.assertEqual(of_file["report"]["parameters"]["total"], 5_048_082_432)
        self.assertEqual(of_file["settings"]["accelerator"]["origin"], "user")

    def test_settings_of_every_type_are_taken(self):
        changes = {"micro_batch_size": 2, "sequence_parallel": True, "memory_headroom": 0.1}
        settings = shardscope.estimate(self.file, settings=changes)["settings"]
        for name, value in changes.items():
            self.assertEqual(settings[name]["value"], value, name)
        script = SCRIPT.replace("--num-layers 24", "--num-layers $LAYERS").replace("4096", "$1")
        document = shardscope.estimate(text=script, environment={"LAYERS": "12"}, arguments="2048 -x")
        self.assertEqual(document["settings"]["num_layers"]["value"], 12)
        self.assertEqual(document["settings"]["hidden_size"]["value"], 2048)

    def test_what_makes_no_plan_has_no_report(self):
        document = shardscope.estimate(text="echo nothing\n")
        self.assertIsNone(document["report"])
        self.assertTrue(document["diagnostics"])
        with self.assertRaisesRegex(shardscope.ShardscopeError, "no-such-file"):
            shardscope.estimate("no-such-file.sh")
        with self.assertRaises(TypeError):
            shardscope.estimate()

    def test_checks_and_comparisons(self):
        self.assertTrue(shardscope.check(self.file)["passes"])
        large = shardscope.check(self.file, accelerator="V100-SXM2-32GB", settings={"micro_batch_size": 32})
        self.assertEqual((large["passes"], large["verdict"]), (False, "out_of_memory"))
        self.assertTrue(shardscope.check(self.file, accelerator="V100-SXM2-16GB", fail_on="none")["passes"])
        slower = shardscope.check(self.file, fail_on="tight,slower:1%", against=self.file)
        self.assertEqual((slower["passes"], slower["slower_by"]), (True, 0))
        with self.assertRaisesRegex(shardscope.ShardscopeError, "--against"):
            shardscope.check(self.file, fail_on="slower:1%")
        differences = shardscope.compare(self.file, change={"tensor_model_parallel_size": 4})
        self.assertEqual(differences["settings"][0]["name"], "tensor_model_parallel_size")
        self.assertLess(differences["after"]["peak_reserved"], differences["before"]["peak_reserved"])

    def test_checks_and_comparisons_take_what_estimates_take(self):
        self.file.write_text(SCRIPT.replace("--num-layers 24", "--num-layers $LAYERS").replace("4096", "$1"))
        call = {"environment": {"LAYERS": "12"}, "arguments": "2048 -x", "accelerator": "B200"}
        self.assertFalse(shardscope.check(self.file)["passes"])
        checked = shardscope.check(self.file, **call)
        self.assertTrue(checked["passes"])
        worst = shardscope.estimate(self.file, **call)["report"]["memory"]["worst"]
        self.assertEqual(checked["peak_reserved"], worst["peak_reserved"])
        differences = shardscope.compare(self.file, change={"micro_batch_size": 2}, settings={"bf16": True}, **call)
        self.assertEqual(differences["before"]["peak_reserved"], worst["peak_reserved"])
        with self.assertRaisesRegex(shardscope.ShardscopeError, "LAYERS"):
            shardscope.compare(self.file, change={"micro_batch_size": 2})

    def test_a_link_opens_as_the_same_run(self):
        link = shardscope.link(self.file, page="https://example.org/")
        self.assertTrue(link.startswith("https://example.org/#z1:"), link)
        self.assertEqual(shardscope.estimate(link)["report"], shardscope.estimate(self.file)["report"])

    def test_a_document_is_a_row(self):
        row = shardscope.flat(shardscope.estimate(self.file))
        self.assertGreater(row["report.time.mfu"], 0)
        self.assertFalse([value for value in row.values() if isinstance(value, (dict, list))])

    def test_the_module_is_the_program(self):
        done = subprocess.run(
            [sys.executable, "-m", "shardscope", "check", str(self.file)], capture_output=True, encoding="utf-8"
        )
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.startswith("fits: "), done.stdout)


if __name__ == "__main__":
    unittest.main()
