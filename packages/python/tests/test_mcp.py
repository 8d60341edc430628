"""The program as an agent's server, met by the protocol's own client. Run with the Python the package is installed into."""

import asyncio
import unittest

import shardscope

try:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
except ImportError:  # said, and not passed over in silence
    print("NOT CHECKED: the package mcp is not installed")
    ClientSession = None

from test_shardscope import SCRIPT

TOOLS = {"estimate", "search", "ask", "compare", "explain", "link"}


@unittest.skipIf(ClientSession is None, "the package mcp is not installed")
class Server(unittest.TestCase):
    def talk(self, conversation):
        async def run():
            parameters = StdioServerParameters(command=shardscope.program(), args=["mcp"])
            async with stdio_client(parameters) as (read, write):
                async with ClientSession(read, write) as session:
                    started = await session.initialize()
                    return await conversation(session, started)

        return asyncio.run(asyncio.wait_for(run(), 120))

    def call(self, *calls):
        async def conversation(session, _started):
            return [await session.call_tool(name, arguments) for name, arguments in calls]

        return self.talk(conversation)

    def test_the_tools_are_described_with_their_units(self):
        async def conversation(session, started):
            return started, await session.list_tools()

        started, listed = self.talk(conversation)
        self.assertEqual(started.server_info.name, "shardscope")
        self.assertIn("estimate first", started.instructions)
        tools = {tool.name: tool for tool in listed.tools}
        self.assertEqual(set(tools), TOOLS)
        for tool in tools.values():
            self.assertTrue(tool.description and tool.output_schema and tool.annotations.read_only_hint, tool.name)
        stage = tools["estimate"].output_schema["$defs"]["Stage"]["properties"]
        for name, schema in stage.items():
            if name != "pipeline_rank":
                self.assertRegex(schema["description"], r"byte|nvidia-smi", name)
        for name, schema in tools["estimate"].input_schema["properties"].items():
            self.assertTrue(schema.get("description"), name)

    def test_an_estimate_is_the_programs_own(self):
        (answer,) = self.call(("estimate", {"text": SCRIPT, "accelerator": "H100-SXM", "sections": ["time"]}))
        self.assertFalse(answer.is_error)
        said = answer.structured_content
        document = shardscope.estimate(text=SCRIPT, accelerator="H100-SXM")
        report = document["report"]
        self.assertTrue(said["plan"])
        self.assertEqual(said["to_do"], [])
        self.assertEqual(said["figures"]["peak_reserved"], report["memory"]["worst"]["peak_reserved"])
        self.assertEqual(said["step"]["seconds"], report["time"]["step_seconds"])
        self.assertEqual(said["sections"], {"time": report["time"]})
        ranks = report["memory"]["ranks"]
        self.assertEqual([s["activations"] for s in said["stages"]], [r["activations"] for r in ranks])
        self.assertNotIn("accelerator", said["assumed"])

    def test_what_is_open_is_asked_and_answered(self):
        script = SCRIPT.replace("--num-layers 24", "")
        before, after, other = self.call(
            ("estimate", {"text": script}),
            ("estimate", {"text": script, "settings": {"num_layers": 24}}),
            ("compare", {"before": {"text": script}, "changes": {"micro_batch_size": 2}}),
        )
        said = before.structured_content
        self.assertFalse(said["plan"])
        self.assertIsNone(said["figures"])
        self.assertTrue([line for line in said["to_do"] if "num_layers" in line], said["to_do"])
        self.assertTrue(after.structured_content["plan"])
        self.assertTrue(other.is_error)
        self.assertIn("before: the run makes no plan", other.content[0].text)
        self.assertIn("num_layers", other.content[0].text)

    def test_each_question_names_the_argument_that_answers_it(self):
        program = "\n".join((
            "from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments",
            "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()",
            'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")',
            "Trainer(model=model, args=args, train_dataset=data).train()",
        ))
        line = "torchrun --nproc_per_node 8 train.py --per_device_train_batch_size 1 --bf16 True --output_dir out"
        open_script = SCRIPT.replace("--num-layers 24", "--num-layers $LAYERS").replace("--seq-length 2048", "--seq-length $1")
        before, after, open_variable, answered = self.call(
            ("estimate", {"text": program}),
            ("estimate", {"text": program, "environment": {"command_line": line}}),
            ("estimate", {"text": open_script}),
            ("estimate", {"text": open_script, "environment": {"LAYERS": "24"}, "arguments": "2048"}),
        )
        def to_do(answer):
            return [line for line in answer.structured_content["to_do"] if "Answer with" in line]

        self.assertEqual(before.structured_content["assumed"], {})
        (ask,) = to_do(before)
        self.assertIn('pasted with it. Answer with environment: {"command_line": …}', ask)
        self.assertNotIn("no-command-line", str(after.structured_content["to_do"]))
        asks = to_do(open_variable)
        self.assertTrue([ask for ask in asks if 'Answer with environment: {"LAYERS": …}' in ask], asks)
        self.assertTrue([ask for ask in asks if "Answer with arguments: the words after the script" in ask], asks)
        self.assertTrue(answered.structured_content["plan"], answered.structured_content["to_do"])

    def test_two_runs_are_compared_and_a_figure_is_explained(self):
        compared, explained, none = self.call(
            ("compare", {"before": {"text": SCRIPT}, "changes": {"tensor_model_parallel_size": 4}}),
            ("explain", {"text": SCRIPT, "of": "ranks/0 optimizer main"}),
            ("explain", {"text": SCRIPT, "of": "nonsense"}),
        )
        said = compared.structured_content
        self.assertEqual(said["settings"][0]["name"], "tensor_model_parallel_size")
        self.assertLess(said["after"]["peak_reserved"], said["before"]["peak_reserved"])
        (figure,) = explained.structured_content["figures"]
        self.assertEqual(figure["formula"], "P·w/D")
        symbols = figure["symbols"]
        self.assertEqual(figure["value"], symbols["P"] * symbols["w"] / symbols["D"])
        self.assertTrue(none.is_error)
        self.assertIn("there are, for example", none.content[0].text)

    def test_layouts_are_searched(self):
        (answer,) = self.call(("search", {"text": SCRIPT, "limit": 3}))
        self.assertFalse(answer.is_error, answer.content)
        best = answer.structured_content["best"]
        self.assertTrue(0 < len(best) <= 3)
        change = best[0]["change"]
        again = shardscope.estimate(text=SCRIPT, settings=change)["report"]
        self.assertEqual(again["memory"]["worst"]["peak_reserved"], best[0]["peak_reserved"])
        self.assertAlmostEqual(again["time"]["step_seconds"], best[0]["step_seconds"], places=9)

    def test_questions_before_launching_have_answers_that_are_plans(self):
        small = SCRIPT.replace("--nnodes 2 --nproc_per_node 8", "--nnodes 1 --nproc_per_node 8")
        run = {"text": small, "accelerator": "H100-SXM"}
        fewest, batch, cheapest, tokens, price, unknown, misplaced = self.call(
            ("ask", {**run, "question": "fewest-gpus"}),
            ("ask", {**run, "question": "largest-micro-batch", "limit": 3}),
            ("ask", {**run, "question": "cheapest", "tokens": 1e9, "price": 2, "most_nodes": 2}),
            ("ask", {**run, "question": "cheapest"}),
            ("ask", {**run, "question": "cheapest", "tokens": -1}),
            ("ask", {**run, "question": "fewest-gpus", "tokns": 1}),
            ("ask", {**run, "question": "fewest-gpus", "price": 2}),
        )
        for answer in (fewest, batch, cheapest):
            self.assertFalse(answer.is_error, answer.content)
            said = answer.structured_content
            self.assertTrue(said["answered"] and said["answer"], said)
            (chosen,) = [line for line in said["lines"] if line["chosen"]]
            again = shardscope.estimate(text=small, settings={"accelerator": "H100-SXM", **chosen["layout"]["change"]})["report"]
            self.assertEqual(again["topology"]["world_size"], chosen["gpus"])
            self.assertEqual(again["memory"]["worst"]["peak_reserved"], chosen["layout"]["peak_reserved"])
            self.assertAlmostEqual(again["time"]["step_seconds"], chosen["layout"]["step_seconds"], places=9)
        self.assertLessEqual(len(batch.structured_content["lines"]), 3)
        (chosen,) = [line for line in cheapest.structured_content["lines"] if line["chosen"]]
        steps = -(-10**9 // (512 * 2048))  # whole ones
        hours = steps * chosen["layout"]["step_seconds"] / 3600
        self.assertAlmostEqual(chosen["cost"], hours * chosen["gpus"] * 2, places=6)
        expected = ["How many tokens", "tokens is not a positive number", "there is no argument tokns", "takes no price; leave it out"]
        for answer, words in zip((tokens, price, unknown, misplaced), expected):
            self.assertTrue(answer.is_error, words)
            self.assertIn(words, answer.content[0].text)

    def test_links_carry_the_run(self):
        whole, settings = self.call(
            ("link", {"text": SCRIPT, "page": "https://example.org/"}),
            ("link", {"text": SCRIPT, "settings_only": True}),
        )
        link = whole.structured_content["link"]
        self.assertTrue(link.startswith("https://example.org/#z1:"), link)
        self.assertEqual(shardscope.estimate(link)["report"], shardscope.estimate(text=SCRIPT)["report"])
        self.assertTrue(settings.structured_content["link"].startswith("#/1?"))

    def test_a_call_that_is_not_understood_says_what_to_change(self):
        answers = self.call(
            ("estimate", {"text": SCRIPT, "setings": {"micro_batch_size": 1}}),
            ("estimate", {}),
            ("estimate", {"text": SCRIPT, "sections": ["memry"]}),
            ("compare", {"before": {"text": SCRIPT}}),
            ("link", {"link": "#z1:AAAA"}),
        )
        expected = ["did you mean settings?", "pass the launch script", "there is no section memry", "changes", "link"]
        for answer, words in zip(answers, expected):
            self.assertTrue(answer.is_error, words)
            self.assertIn(words, answer.content[0].text)


if __name__ == "__main__":
    unittest.main()
