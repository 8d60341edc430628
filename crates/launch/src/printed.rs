//! The accelerator that a notebook's outputs print: unsloth's banner (`Num GPUs = 1. Max memory: 39.495 GB.`) and the
//! line of its notebooks on memory (`GPU = NVIDIA A100-SXM4-40GB. Max memory = 39.495 GB.`).

use super::{Effect, Found, NotModelled, Origin, Reading};
use shardscope_catalog as catalog;
use shardscope_plan::Field;

/// Drivers' names of accelerators, by parts that all occur, more specific ones first; an empty name is of none in the
/// catalog.
const NAMES: &[(&[&str], &str)] = &[
    (&["MIG"], ""),
    (&["A100", "40GB", "PCI"], ""),
    (&["A100", "40GB"], "A100-SXM-40GB"),
    (&["A100", "80GB", "PCI"], "A100-PCIe-80GB"),
    (&["A100", "80GB"], "A100-SXM-80GB"),
    (&["H100", "PCI"], "H100-PCIe"),
    (&["H100", "NVL"], "H100-NVL"),
    (&["H100", "80GB"], "H100-SXM"),
    (&["H200"], "H200-SXM"),
    (&["V100-SXM2-16GB"], "V100-SXM2-16GB"),
    (&["V100-SXM2-32GB"], "V100-SXM2-32GB"),
    (&["RTX 4090"], "RTX-4090"),
    (&["RTX 5090"], "RTX-5090"),
    (&["L40S"], "L40S"),
    (&["Tesla T4"], "T4"),
    (&["NVIDIA L4"], "L4"),
];

/// The name that all such lines of the outputs print; `None` if there is none, or several.
pub(super) fn device(text: &str) -> Option<&str> {
    /// Most lines that are compared.
    const LINES: usize = 64;
    let mut names = text
        .match_indices(". Max memory")
        .chain(text.match_indices(". Num GPUs"))
        .take(LINES)
        .filter_map(|(at, _)| name_before(text.get(..at)?));
    let first = names.next()?;
    names.all(|other| other == first).then_some(first)
}

/// The name at the end of a text, behind the banner's frame or the words "GPU:" and "GPU =". An f-string that would
/// print it has none.
fn name_before(text: &str) -> Option<&str> {
    const LONGEST: usize = 80;
    let line = text.rsplit(['\n', '"']).next()?;
    let line = line.rsplit('|').next()?;
    let line = line.rsplit("GPU: ").next()?;
    let line = line.rsplit("GPU = ").next()?.trim();
    let name = line.split(". Num GPUs").next()?;
    let is_name = !name.is_empty() && name.len() <= LONGEST && !name.contains(['{', '}', '=', '%']);
    is_name.then_some(name)
}

/// Takes the accelerator of this name, or reports that it is not in the catalog.
pub(super) fn take(reading: &mut Reading, name: &str) {
    let parts = |parts: &[&str]| parts.iter().all(|part| name.contains(part));
    let known = NAMES.iter().find(|(all, _)| parts(all)).map(|(_, known)| *known);
    let Some(known) = known.and_then(catalog::accelerator) else {
        let what = "an accelerator that the notebook prints and that is not in the catalog";
        reading.not_modelled.push(NotModelled::new("accelerator", name, Effect::Memory, what));
        return;
    };
    let found = Found::new(Field::Accelerator, known.name, Origin::Script);
    reading.take(found.note(format!("the notebook's outputs print {name}")));
}

#[cfg(test)]
mod tests {
    use super::device;

    #[test]
    fn names_are_read_behind_banners_and_not_from_what_would_print_them() {
        const BANNER: &str = "   \\\\   /|    NVIDIA A100-SXM4-40GB. Num GPUs = 1. Max memory: 39.495 GB.";
        const LINE: &str = "GPU = NVIDIA A100-SXM4-40GB. Max memory = 39.495 GB.";
        assert_eq!(device(&format!("\"{BANNER}\\n\", \"{LINE}\"")), Some("NVIDIA A100-SXM4-40GB"));
        assert_eq!(device("\"   /|    GPU: Tesla T4. Max memory: 14.748 GB.\""), Some("Tesla T4"));
        assert_eq!(device("print(f\"GPU = {gpu_stats.name}. Max memory = {max_memory} GB.\")"), None);
        assert_eq!(device(&format!("\"{LINE}\", \"GPU = Tesla T4. Max memory = 14.7 GB.\"")), None);
    }
}
