//! Files of every supported kind, designed to take long: deep, wide, on one line, referring to each other.

/// A name for the case, the file's name, and its text.
pub(crate) type HostileFile = (String, &'static str, String);

/// Beginnings that make a text a program of the field, so that its reader processes the rest.
const HEADS: [(&str, &str); 6] = [
    (
        "trainer",
        "from transformers import AutoModelForCausalLM, TrainingArguments, Trainer\nfrom peft import LoraConfig\n\
         model = AutoModelForCausalLM.from_pretrained('meta-llama/Llama-3.1-8B')\n\
         args = TrainingArguments(per_device_train_batch_size=2, bf16=True)\n\
         trainer = Trainer(model, args=args)\ntrainer.train()\n",
    ),
    (
        "unsloth",
        "from unsloth import FastLanguageModel\nfrom trl import SFTTrainer\n\
         model, t = FastLanguageModel.from_pretrained('unsloth/llama-3-8b-bnb-4bit', max_seq_length=2048)\n\
         trainer = SFTTrainer(model, args=TrainingArguments(per_device_train_batch_size=2))\ntrainer.train()\n",
    ),
    (
        "bridge",
        "from megatron.bridge.recipes.llama import llama3_8b_pretrain_config\n\
         def pretrain_config():\n    cfg = ConfigContainer(model=x)\n    return cfg\n",
    ),
    ("nemo", "from nemo.collections import llm\nimport nemo_run as run\n"),
    (
        "olmo-core",
        "from olmo_core.nn.transformer import TransformerConfig\nfrom olmo_core.train import TrainerConfig\n",
    ),
    (
        "xtuner",
        "from xtuner.engine import x\nfrom mmengine.config import read_base\n\
         model = dict(type=SupervisedFinetune)\npretrained_model_name_or_path = 'a/b'\n",
    ),
];

/// Repeated until the text is long enough.
const PYTHON: [&str; 94] = [
    "SFTTrainer(",
    "SFTTrainer([",
    "from_pretrained(",
    "TrainingArguments(a=",
    "(",
    "[",
    "{",
    "'",
    "\"\"\"",
    "'''\n",
    "f'{",
    "x = f'{a}{b}{c!r:>{d}}'\n",
    "f(",
    "f(a=",
    "f(g(h(",
    "\\",
    "x = \\\n",
    "#",
    "\n",
    " ",
    "    x\n",
    "if a:\n",
    "if args.x:\n    y = 1\n",
    "elif a == 1:\n    y = 2\n",
    "def f(a, b=1):\n    return a\n",
    "class A(B):\n    x: int = 1\n",
    "@dataclass\nclass A:\n    a: int = field(default=1)\n",
    "x = 1\n",
    "x = y = z = 1\n",
    "a, b, c = 1, 2, 3\n",
    "a.b.c.d.e.f.g\n",
    "a.",
    "model_name = 'a/b'\n",
    "m = AutoModelForCausalLM.from_pretrained('a/b')\n",
    "a = TrainingArguments(per_device_train_batch_size=1)\n",
    "l = LoraConfig(r=8, target_modules=['q_proj'])\n",
    "b = BitsAndBytesConfig(load_in_4bit=True)\n",
    "t = Trainer(model, args=a)\ntrainer.train()\n",
    "from transformers import Trainer\n",
    "import a.b.c as d\n",
    "from a import (\n",
    "os.environ['A'] = '1'\n",
    "parser.add_argument('--x', type=int, default=1)\n",
    "args = parser.parse_args()\n",
    "parser = HfArgumentParser((A, B))\n",
    "model = FastLanguageModel.get_peft_model(model, r=16)\n",
    "for i in range(10):\n    x = f(i)\n",
    "for p in model.parameters(): p.requires_grad = False\n",
    "x = lambda a: a\n",
    "d = {'a': 1, 'b': {'c': 2}}\n",
    "{'a': ",
    "f(**d)\n",
    "[x for x in y]\n",
    "!pip install x\n",
    "!torchrun --nproc_per_node 8 x.py --num-layers 2\n",
    "%%bash\n",
    "x = '日本語'\n",
    "subprocess.run(['torchrun', 'x.py'])\n",
    "os.system('torchrun x.py')\n",
    "x = 1; ",
    "if (n := f()) > 1: pass\n",
    "return self.f(a)\n",
    "@a\n",
    "x = 'a' + 'b' + f'{c}'\n",
    "'a' ",
    "x = f(a=1, b=2)\n",
    "cfg.model.num_layers = 2\n",
    "x = 1 + 2 * 3 - 4 // 5\n",
    "1+",
    "def f(a=1):\n    return f(a)\n",
    "if a == 1:\n    b = 2\nelse:\n    b = 3\n",
    "x = [1, 2, 3] * 2\n",
    "x = x * 2\n",
    "x = [1] * 1000000\n",
    "x = x + x\n",
    "model = dict(type=A, a=dict(b=1))\n",
    "x = not not not a\n",
    "not ",
    "x = - - - 1\n",
    "-",
    "x = 2 ** 99 ** 9\n",
    "x = a[0][1][2]\n",
    "a[",
    "from .a import b\n",
    "x = run.Partial(f, a=1)\n",
    "lambda: ",
    "a if b else ",
    "x = ",
    "a = b = ",
    "x if ",
    "*",
    "**",
    ":",
    "with a as b:\n",
];

/// Repeated after a beginning that makes a text a file of its kind.
const SETTINGS: [(&str, &str, &str); 34] = [
    ("a.yaml", "a: ", "["),
    ("a.yaml", "a: ", "{a: "),
    ("a.yaml", "", "- "),
    ("a.yaml", "", "? "),
    ("a.yaml", "a: \"", "\\\""),
    ("a.yaml", "", "---\na: 1\n"),
    ("a.yaml", "", "model: a\n"),
    ("a.yaml", "", "a:\t\t\t1\n"),
    ("a.yaml", "a: |\n", "  text of a line\n"),
    ("a.yaml", "a: ", "${"),
    ("a.yaml", "", "a: ${b.${c.${d}}}\n"),
    ("a.yaml", "", "{{ .Values.a }} a.sh\n"),
    (
        "a.yaml",
        "apiVersion: batch/v1\nkind: Job\nspec: {}\n",
        "---\napiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n      containers:\n        - command: [torchrun, x.py]\n",
    ),
    (
        "a.yaml",
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n    Worker:\n      replicas: 2\n      template:\n        spec:\n          containers:\n",
        "            - name: a\n              command: [torchrun, x.py]\n",
    ),
    (
        "a.yaml",
        "base_model: meta-llama/Llama-3.1-8B\nadapter: lora\nmicro_batch_size: 1\ndatasets:\n",
        "  - path: d\n    type: alpaca\n",
    ),
    (
        "a.yaml",
        "base_model: meta-llama/Llama-3.1-8B\nadapter: lora\nmicro_batch_size: 1\nlora_target_modules:\n",
        "  - q_proj\n",
    ),
    (
        "a.yaml",
        "model_name_or_path: meta-llama/Llama-3.1-8B\nstage: sft\nfinetuning_type: lora\nper_device_train_batch_size: 1\nlora_target: ",
        "q_proj,",
    ),
    (
        "a.yaml",
        "model_name_or_path: meta-llama/Llama-3.1-8B\nstage: sft\nfinetuning_type: lora\nper_device_train_batch_size: ",
        "1",
    ),
    ("a.yaml", "model: ", "a/"),
    ("a.toml", "a = ", "["),
    ("a.toml", "a = ", "{a = "),
    ("a.toml", "a", ".a"),
    ("a.toml", "", "[[a]]\n"),
    ("a.toml", "a = \"\"\"", "\"\" "),
    ("a.json", "", "["),
    ("a.json", "", "{\"a\":"),
    ("a.json", "{\"model_type\":\"llama\",\"hidden_size\":", "9"),
    (
        "a.json",
        "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2,\"layer_types\":[",
        "\"full_attention\",",
    ),
    (
        "a.json",
        "{\"model_type\":\"llama\",\"hidden_size\":4096,\"num_attention_heads\":32,\"num_hidden_layers\":32,\"vocab_size\":1000,\"intermediate_size\":1000,\"quantization_config\":{\"load_in_4bit\":true,\"llm_int8_skip_modules\":[",
        "\"model.layers.1.mlp\",",
    ),
    ("a.ipynb", "{\"cells\":[", "{\"cell_type\":\"code\",\"source\":[\"x = 1\\n\"]},"),
    ("a.ipynb", "{\"cells\":[{\"cell_type\":\"code\",\"source\":[", "\"!torchrun x.py --a 1\\n\","),
    ("a.ipynb", "{\"cells\":[", "{\"cell_type\":\"code\",\"source\":[\"%%bash\\n\",\"torchrun x.py\\n\"]},"),
    ("a.sh", "", "cat > a.yaml <<E\nmodel: a\nE\n"),
    (
        "a.txt",
        "",
        " [2024-01-01] iteration 1/ 100 | consumed samples: 8 | elapsed time per iteration (ms): 1.0 | lm loss: 1.0\n",
    ),
];

/// Commands with an unlimited number of words of one kind: `#` is a number.
const WORDS: [(&str, &str); 9] = [
    ("torchrun --nproc_per_node 8 train.py ", "model.x#=1 "),
    ("torchrun --nproc_per_node 8 -m verl.trainer.main_ppo ", "a.b#=1 "),
    ("torchrun --nproc_per_node 8 -m openrlhf.cli.train_ppo_ray ", "--x# 1 "),
    ("llamafactory-cli train ", "--x# 1 "),
    ("accelerate launch --num_processes 8 sft.py ", "--x# a "),
    ("tune run --nproc_per_node 8 full_finetune_distributed --config llama3/8B_full ", "a#=1 "),
    ("deepspeed --num_gpus 8 train.py --deepspeed ds.json ", "--x# a "),
    ("python pretrain_gpt.py ", "--x-# a "),
    ("swift sft ", "--x# a "),
];

/// Lines that refer to the previous one (`#-`), to each other, or to nothing known: `#` is their number.
const NUMBERED: [(&str, &str, &str); 25] = [
    ("a.py", "trainer", "v# = v#-\n"),
    ("a.py", "trainer", "v# = v#- + v#-\n"),
    ("a.py", "trainer", "v# = #\nTrainingArguments(per_device_train_batch_size=v#)\n"),
    ("a.py", "trainer", "parser.add_argument('--x#', type=int, default=#)\n"),
    ("a.py", "trainer", "class A#(A#-):\n    x = 1\n"),
    ("a.py", "trainer", "def f#(a):\n    return f#-(f#-(a))\n"),
    ("a.py", "trainer", "model# = AutoModelForCausalLM.from_pretrained(n#)\n"),
    ("a.py", "bridge", "def f#(a):\n    return f#-(f#-(a))\n"),
    ("a.py", "nemo", "v# = v#- + v#-\n"),
    ("a.py", "olmo-core", "def f#(a):\n    return f#-(f#-(a))\n"),
    ("a.py", "olmo-core", "v# = v#- + v#-\n"),
    ("a.py", "xtuner", "v# = dict(a=v#-, b=v#-)\n"),
    ("a.yaml", "", "key_#: 1\n"),
    ("a.yaml", "model_name_or_path: a/b\nmax_length: 10\n", "key_#: {a: [1, 2]}\n"),
    (
        "a.yaml",
        "model_name_or_path: meta-llama/Llama-3.1-8B\nstage: sft\nfinetuning_type: lora\n",
        "key_#: v#\n",
    ),
    ("a.yaml", "trainer:\n  num_nodes: 1\n  devices: 8\nmodel:\n", "  key_#: 1\n"),
    ("a.yaml", "a0: &a0 [x]\n", "a#: &a# [*a#-, *a#-, *a#-]\n"),
    ("a.yaml", "a0: x\n", "a#: ${a#-}${a#-}\n"),
    ("a.yaml", "actor_rollout_ref: {model: {path: x}}\ndata: {train_batch_size: 8}\n", "k#: ${k#-}${k#-}\n"),
    (
        "a.yaml",
        "resources:\n  accelerators: H100:8\nnum_nodes: 2\nrun: |\n  torchrun x.py\nenvs:\n",
        "  E#: ${E#-}\n",
    ),
    ("a.toml", "[model]\nname = \"llama3\"\n[training]\n", "key_# = 1\n"),
    ("a.toml", "", "[t#.u]\nx = 1\n"),
    ("a.json", "{\"zero_optimization\":{\"stage\":3}", ",\"k#\":1"),
    ("a.json", "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2", ",\"k#\":1"),
    ("a.sh", "", "cat > a#.json <<E\n{\"zero_optimization\":{\"stage\":3}}\nE\n"),
];

fn filled(start: &str, size: usize, mut unit: impl FnMut(usize) -> String) -> String {
    let mut text = start.to_owned();
    for index in 1.. {
        text += &unit(index);
        if text.len() >= size {
            break;
        }
    }
    text
}

fn numbered(unit: &str, index: usize) -> String {
    unit.replace("#-", &(index - 1).to_string()).replace('#', &index.to_string())
}

fn head(name: &str) -> &str {
    HEADS.iter().find(|(known, _)| *known == name).map_or(name, |(_, head)| head)
}

/// Files of about `size` bytes each.
pub(crate) fn files(size: usize) -> Vec<HostileFile> {
    let mut files = Vec::new();
    for (kind, head) in HEADS {
        for unit in PYTHON {
            files.push((format!("{kind} {unit:?}"), "a.py", filled(head, size, |_| unit.to_owned())));
        }
    }
    for unit in PYTHON {
        let first = filled("", size, |_| unit.to_owned()) + "\n" + HEADS[0].1;
        files.push((format!("{unit:?} before a trainer"), "a.py", first));
    }
    for (name, start, unit) in SETTINGS {
        files.push((format!("{name} {start:?} {unit:?}"), name, filled(start, size, |_| unit.to_owned())));
    }
    for (start, unit) in WORDS {
        files.push((format!("{start}{unit}"), "a.sh", filled(start, size, |index| numbered(unit, index))));
    }
    for (name, start, unit) in NUMBERED {
        let text = filled(head(start), size, |index| numbered(unit, index));
        files.push((format!("{name} {start:?} {unit:?}"), name, text));
    }
    let third = size / 3;
    let long = [
        ("one long name", "a".repeat(size) + " = 1\n"),
        (
            "a call of many arguments",
            format!("TrainingArguments({})\n", filled("", size, |at| format!("k{at}=1, "))),
        ),
        (
            "a call of many computed arguments",
            format!("TrainingArguments({})\n", filled("", size, |at| format!("k{at}=args.k{at}, "))),
        ),
        ("a call in a call in a call", format!("x = {}{}\n", "f(".repeat(third), ")".repeat(third))),
        ("parentheses", format!("x = {}{}\n", "(".repeat(size / 2), ")".repeat(size / 2))),
        ("a long list", format!("LoraConfig(target_modules=[{}])\n", "'q', ".repeat(size / 5))),
        ("a long sum", format!("x = {}'b'\n", "'a' + ".repeat(size / 6))),
        (
            "fields of a class",
            filled("@dataclass\nclass A(TrainingArguments):\n", size, |at| {
                format!("    x{at}: int = field(default={at})\n")
            }) + "parser = HfArgumentParser((A,))\na = parser.parse_args_into_dataclasses()\n",
        ),
        ("indents", filled("", size, |at| format!("{}if a:\n", " ".repeat(at)))),
    ];
    for (kind, head) in HEADS {
        for (what, text) in &long {
            files.push((format!("{kind}, {what}"), "a.py", format!("{head}{text}")));
        }
    }
    files.push((
        "deep blocks".to_owned(),
        "a.yaml",
        filled("", size, |at| format!("{}a:\n", " ".repeat(at))),
    ));
    files
}
