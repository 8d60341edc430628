use super::{command, script, shell, starts_several};
use shardscope_python::follow::{Outcome, Value, follow, returned};

/// Asserts which script a program with this body starts.
#[track_caller]
fn starts(body: &str, expected: &str) {
    let text = format!("import slime.utils.external_utils.command_utils as U\n{body}");
    assert_eq!(script(&text, &[], &|_| None).expect("a command").trim_end(), expected);
}

/// Launchers of miles (commit 31f1ca9) and slime (624b824), and the options that their own code passes on
/// (`tests/record/launchers.py`).
#[test]
fn what_the_program_alone_knows_is_left_open() {
    let call = "    U.execute_train(train_args=x, megatron_model_type=None)\n";
    let line = |options: &str| format!("ray job submit -- python3 slime/train.py {options}");
    let starts = |body: &str, options: &str| starts(&format!("def run():\n{body}{call}"), &line(options));
    starts("    x = f'--lr {rate()} --seq-length 8'\n", "--lr $(rate) --seq-length 8");
    starts("    x = f'--tp {os.environ[\"TP\"]} '\n", "--tp ${TP}");
    starts("    x = f\"--tp {os.environ.get('TP', 2)} \"\n", "--tp 2");
    // An option under an undecided condition does not swallow the next one.
    starts(
        "    x = '--a 1 '\n    if rate():\n        x += '--b 2 '\n    x += '--c 3'\n",
        "--a 1 $(rate) --c 3",
    );
    starts("    x = '--a 1'\n    for y in rate():\n        x = '--b'\n", "$(a_loop)");
    starts(
        "    match rate():\n        case 1:\n            x = '--a'\n        case _:\n            x = '--b'\n",
        "$(rate)",
    );
    assert!(matches!(
        follow("def run():\n    if rate():\n        execute_train(train_args='')\n", &[]),
        Outcome::Open(_)
    ));
    assert!(matches!(
        follow("def run():\n    if rate():\n        return\n    execute_train(train_args='')\n", &[]),
        Outcome::Open(_)
    ));
    assert!(matches!(
        follow("def run():\n    assert 1 > 2\n    execute_train(train_args='')\n", &[]),
        Outcome::Stops(_)
    ));
    // A function that receives an object may change it.
    let changed =
        "class A:\n    b: int = 1\ndef run(a: A):\n    change(a)\n    execute_train(train_args='')\n";
    assert!(matches!(follow(changed, &[]), Outcome::Open(_)));
}

/// A program whose layouts need more than one node asks for the number of nodes and
/// proposes the first that has a layout.
#[test]
fn a_program_that_starts_nothing_on_one_node_asks_for_more() {
    let text = "import miles.utils.external_utils.command_utils as U\n@dataclass\nclass A(U.ExecuteTrainConfig):\n    pass\n\
        def run(args: A):\n    if args.num_nodes == 12:\n        tp = 8\n    else:\n        raise NotImplementedError(args.num_nodes)\n    \
        U.execute_train(train_args=f'--tensor-model-parallel-size {tp} --actor-num-nodes {args.num_nodes}', megatron_model_type=None)\n";
    let asked = script(text, &[], &|_| None).expect_err("no layout for one node");
    let question = asked.questions.first().expect("a question");
    assert_eq!((question.name(), question.proposal.as_deref()), ("SLURM_JOB_NUM_NODES", Some("12")));
    assert!(
        asked
            .diagnostics
            .iter()
            .any(|said| said.message.contains("`raise NotImplementedError(args.num_nodes)`"))
    );
    let given = [(question.name().to_owned(), "12".to_owned())];
    let started = script(text, &given, &|_| None).expect("a command");
    assert_eq!(
        started,
        "ray job submit -- python3 miles/train.py --tensor-model-parallel-size 8 --actor-num-nodes 12\n"
    );
    let given = [("TP".to_owned(), "4".to_owned())];
    let text = "import slime.utils.external_utils.command_utils as U\ndef run():\n    \
        U.execute_train(train_args='--tp ' + os.environ['TP'] + os.environ.get('X', ' --b'), megatron_model_type=None)\n";
    assert_eq!(
        script(text, &given, &|_| None).expect("a command"),
        "ray job submit -- python3 slime/train.py --tp 4 --b\n"
    );
}

#[test]
fn a_models_options_are_those_of_its_function() {
    // miles `scripts/models/qwen3-30B-A3B.py`, abridged.
    let text = "import os\nK = 2\ndef model_args(nlayers: int | None = None) -> str:\n    \
        nlayers = nlayers if nlayers is not None else int(os.environ.get('N') or 4)\n    \
        return (\n        f'--num-layers {nlayers} '  # all\n        \
        f'--moe-layer-freq {moe_layer_freq(nlayers=nlayers, first_k_dense_replace=K)} '\n    )\n";
    let options = returned(text, "model_args");
    assert_eq!(options, Some(Value::text("--num-layers 4 --moe-layer-freq [0,0,1,1] ")));
    let started = vec![
        ("megatron_model_type".to_owned(), Value::text("a")),
        ("train_args".to_owned(), Value::text("--bf16")),
        (
            "extra_env_vars".to_owned(),
            Value::Map(vec![(Value::text("A"), Value::text("1")), (Value::text("B"), Value::text("it's"))]),
        ),
    ];
    let beside =
        command(&started, "miles/", &|file| (file == "scripts/models/a.py").then(|| text.to_owned()));
    assert_eq!(
        beside,
        "MODEL_ARGS='--num-layers 4 --moe-layer-freq [0,0,1,1]'\nexport A='1'\n\
         ray job submit -- python3 miles/train.py ${MODEL_ARGS[@]} --bf16\n"
    );
    assert!(command(&started, "slime/", &|_| None).starts_with("source 'scripts/models/a.sh'\n"));
    assert_eq!(shell("a\nb"), "a b");
}

#[test]
fn a_program_that_starts_several_trainings_is_reported() {
    assert!(starts_several("U.execute_train(a)\nU.execute_train(b)"));
    assert!(!starts_several("from x import execute_train\nU.execute_train(a)"));
}
