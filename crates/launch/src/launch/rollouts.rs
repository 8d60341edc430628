//! Programs that train with rollouts: those of a framework itself, and those of others that are built on it.

/// Programs of verl that train as its configuration says, whatever they change about samples and the order of steps;
/// Search-R1's second one gives other rewards (`verl/trainer/main_ppo_format.py`);
/// SPIN's and SPPO's are none of them, as they have no critic and losses of their own (`recipe/spin/dp_actor.py`:
/// whole pairs in a mini-batch of all of them); and programs of forks for which a reader knows what they do (EasyR1's `verl.trainer.main`).
const VERLS: [&str; 12] = [
    "verl.trainer.main_ppo",
    "verl.trainer.main_ppo_format",
    "verl.trainer.main",
    "verl.trainer.main_ppo_sync",
    "dapo.main_dapo",
    "dapo.src.main_dapo",
    "prime.main_prime",
    "entropy.main_entropy",
    "partial_rollout.main_ppo",
    "one_step_off_policy.main_ppo",
    "fully_async_policy.fully_async_main",
    // Its agents make the samples; workers and steps are verl's own (`verl_tool/trainer/ppo/ray_trainer.py`).
    "verl_tool.trainer.main_ppo",
];

/// Whether a program, a path or a module, is one of verl's. A launcher that is not a Python program may start any of
/// them.
fn is_verls(program: &str) -> bool {
    let module = program.strip_suffix(".py").unwrap_or(program).replace('/', ".");
    let is_python = program.ends_with(".py") || program.contains('.') && !program.contains('/');
    let ends = |known: &&str| {
        module.strip_suffix(*known).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    // Names of many modules end in `main_ppo` (`mirorl.recipe.mcp.main_ppo`).
    let own = module == "main_ppo" || VERLS.iter().any(ends);
    !is_python || own
}

/// Programs of OpenRLHF that make rollouts (`openrlhf/cli`).
const OPENRLHFS: [&str; 3] = ["train_ppo_ray", "train_ppo", "train_reinforce"];

/// Whether a program is one of OpenRLHF's. Programs derived from it also accept its options
/// (`openrlhf.cli.train_pure_ray`).
fn is_openrlhfs(program: &str) -> bool {
    let module = program.strip_suffix(".py").unwrap_or(program);
    let name = module.rsplit(['/', '.']).next().unwrap_or(module);
    !name.starts_with("train_") || OPENRLHFS.contains(&name)
}

/// What a program that hands its words to `framework` trains besides, which no figure knows.
pub(super) fn lacking(framework: &str, program: &str) -> Option<&'static str> {
    match framework {
        "verl" | "verl_2025" if !is_verls(program) => {
            Some("a custom trainer built on verl, with its own samples, losses and models")
        }
        "openrlhf" if !is_openrlhfs(program) => {
            Some("a custom trainer built on OpenRLHF, with its own samples, losses and models")
        }
        // Its environment file names the format (`examples/flash_rl/.env.int8`), its engine is a vLLM of its own.
        "skyrl" if program.contains("flash_rl") => {
            Some("rollouts of FlashRL, whose engine holds its weights in 8 bits")
        }
        _ => None,
    }
}
