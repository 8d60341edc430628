//! The accelerator that a job asks of its scheduler.

use super::{Effect, Found, NotModelled, Origin, Reading};
use shardscope_bash as shell;
use shardscope_catalog as catalog;
use shardscope_plan::Field;

/// Keys of directives that may name an accelerator.
const KEYS: &[&str] =
    &["--constraint", "-C", "--gres", "--gpus", "--gpus-per-node", "--partition", "-p", "--gpus-per-task"];

/// Whether an item is about what a job asks for.
pub(super) fn is_of_a_job(item: &NotModelled) -> bool {
    KEYS.contains(&item.name.as_str())
}

/// The accelerator that a scheduler directive asks for.
pub(super) fn accelerator(reading: &mut Reading, script: &shell::Script) {
    let asks = |line: &&shell::Directive| KEYS.contains(&line.key.as_str());
    if let Some(line) =
        script.directives.iter().filter(asks).find(|line| catalog::is_slice(line.value.text()))
    {
        let what = "a MIG slice, which has a fraction of the GPU's memory and SMs";
        let item = NotModelled::new(&line.key, line.value.text(), Effect::Memory, what);
        reading.not_modelled.push(item.at_some(Some(line.span)));
        return;
    }
    // Behind the project's name, an account of IDRIS names the partition of its accelerators (`six@v100`).
    let accounted = |line: &shell::Directive| {
        let account =
            matches!(line.key.as_str(), "--account" | "-A").then(|| line.value.text().split_once('@'));
        account.flatten().and_then(|(_, kind)| catalog::accelerator_in(kind))
    };
    let named =
        |line: &shell::Directive| asks(&line).then(|| catalog::accelerator_in(line.value.text())).flatten();
    let name = |line| Some(named(line)?.name);
    let account = |line| Some(accounted(line)?.name);
    // What is asked for tells one of a partition's kinds from another.
    let requested = script
        .directives
        .iter()
        .find_map(|line| Some((name(line)?, line)))
        .or_else(|| script.directives.iter().find_map(|line| Some((account(line)?, line))));
    if let Some((name, line)) = requested {
        let found = Found::new(Field::Accelerator, name, Origin::Script);
        reading.take(found.by(format!("#{} {}", line.scheduler, line.key), Some(line.span)));
        return;
    }
    // As of a cloud: the verdict would be one for a different accelerator.
    if let Some(line) = script.directives.iter().filter(asks).find(|line| is_another(line.value.text())) {
        let item = NotModelled::new(&line.key, line.value.text(), Effect::Memory, "an unknown accelerator");
        reading.not_modelled.push(item.at_some(Some(line.span)));
    }
}

/// Whether a scheduler's words name an accelerator that is not in the catalog: `gpu:a10g:4`, `rtx_a6000:2`.
fn is_another(words: &str) -> bool {
    /// Names in full, and beginnings of names.
    const NAMES: [&str; 17] = [
        "a2", "a10", "a10g", "a16", "a30", "a40", "a4000", "a5000", "a6000", "p40", "p100", "k80", "m60",
        "mi100", "mi210", "2080ti", "3090",
    ];
    const BEGIN: [&str; 6] = ["rtx", "gtx", "titan", "quadro", "gaudi", "geforce"];
    let words = words.to_ascii_lowercase();
    words
        .split([':', ',', '_', '-', '='])
        .any(|word| NAMES.contains(&word) || BEGIN.iter().any(|begin| word.starts_with(begin)))
}

#[cfg(test)]
mod tests {
    use super::is_another;

    #[test]
    fn names_of_other_accelerators_are_told_from_partitions() {
        for words in ["gpu:a10g:4", "rtx_a6000:2", "gpu:rtx8000:1", "gpu:a40", "nvidia_geforce_rtx_3090:1"] {
            assert!(is_another(words), "{words}");
        }
        for words in ["gpu:4", "gpu:hgx:8", "a100", "short", "gpu:1g.5gb:1", "a3", "gpu-a"] {
            assert!(!is_another(words), "{words}");
        }
    }
}
