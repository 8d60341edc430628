"""Records what launchers of slime and miles hand to `execute_train`: their own code, run with the values it has by itself.

    pip install typer
    git clone https://github.com/radixark/miles && git -C miles checkout 31f1ca961a
    git clone https://github.com/THUDM/slime && git -C slime checkout 624b824a89
    python launchers.py miles miles scripts/run_qwen3_4b.py ... > recorded.tsv

Nothing is started: `execute_train` notes its arguments, what runs a command does nothing, and modules that need a GPU are stand-ins.
A line has the file, the model's options by name, the variables, and the options with single blanks.
"""

import dataclasses
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import os
import sys
from unittest.mock import MagicMock

root, framework, *files = sys.argv[1:]
OWN = (f"{framework}.utils.external_utils", f"{framework}.true_on_policy")
REAL = {"tests", "scripts", "examples", "typer", "click", "rich", "shellingham", "typing_extensions"}


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        top = name.split(".")[0]
        if top == framework:
            real = name in (framework, f"{framework}.utils") or name.startswith(OWN)
        else:
            real = top in REAL or top in sys.stdlib_module_names
        return None if real else importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = MagicMock()
        module.__name__, module.__path__, module.__spec__ = spec.name, [], spec
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, StandIn())
os.chdir(root)
sys.path.insert(0, os.getcwd())
for variable in ("SLURM_JOB_NUM_NODES", "WANDB_API_KEY"):
    os.environ.pop(variable, None)
utilities = importlib.import_module(f"{framework}.utils.external_utils.command_utils")
record = []
utilities.execute_train = lambda **given: record.append(given)
utilities.create_run_id = lambda: "RUN_ID"
utilities.get_default_wandb_args = lambda *_, **__: ""
for name in ("exec_command", "exec_command_cpu", "exec_command_gpu", "exec_command_multi_node", "convert_checkpoint"):
    setattr(utilities, name, lambda *_, **__: None)
for at, file in enumerate(files):
    spec = importlib.util.spec_from_file_location(f"launcher{at}", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    own = [one for one in vars(module).values() if inspect.isfunction(one) and one.__module__ == spec.name]
    starts = inspect.unwrap(next(one for one in own if "execute_train(" in inspect.getsource(one)))
    given = {}
    for parameter in inspect.signature(starts).parameters.values():
        if parameter.default is inspect.Parameter.empty:
            assert dataclasses.is_dataclass(parameter.annotation), parameter
            given[parameter.name] = parameter.annotation()
    record.clear()
    starts(**given)
    (call,) = record
    variables = json.dumps(call.get("extra_env_vars") or {}, sort_keys=True)
    options = " ".join(call["train_args"].split())
    print(f"{framework}_{os.path.basename(file)}", call["megatron_model_type"], variables, options, sep="\t")
