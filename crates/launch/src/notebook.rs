//! Notebooks: the program in their cells, the accelerator that Colab runs them on, and the libraries that they install.

use super::{Effect, Found, NotModelled, Origin, Reading, printed};
use shardscope_bash::base_name;
use shardscope_catalog as catalog;
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::{Field, Software};
use shardscope_source::Span;

/// The program in the cells of a notebook.
pub(super) fn program(tree: &Tree) -> Option<String> {
    let cells = tree.documents.first()?.get("cells")?.items();
    let mut program = String::new();
    for cell in cells {
        let text = code(cell);
        // A settings file is not part of the program.
        if !text.is_empty() && file(&text).is_none() {
            program.push_str(&text);
            program.push('\n');
        }
    }
    (!cells.is_empty()).then_some(program)
}

/// The contents of a notebook's code cells, in order.
pub(super) fn cells(tree: &Tree) -> Vec<String> {
    let cells = tree.documents.first().and_then(|root| root.get("cells"));
    cells.map_or(&[][..], Node::items).iter().map(code).collect()
}

/// The contents of a code cell.
fn code(cell: &Node) -> String {
    let mut text = String::new();
    if cell.get("cell_type").and_then(Node::word) == Some("code")
        && let Some(source) = cell.get("source")
    {
        for line in if source.items().is_empty() { std::slice::from_ref(source) } else { source.items() } {
            text.push_str(line.text().unwrap_or(""));
        }
    }
    text
}

/// Whether a file of that name holds settings.
pub(super) fn is_settings(name: &str) -> bool {
    [".yaml", ".yml", ".json", ".toml"].iter().any(|end| name.ends_with(end))
}

/// IPython's magic for a cell that is written to a file.
pub(super) const WRITES: &str = "%%writefile";

/// The settings file that a cell writes: its name without folders, and its contents.
pub(super) fn file(cell: &str) -> Option<(&str, &str)> {
    let (first, rest) = cell.trim_start().split_once('\n')?;
    let path = first.strip_prefix(WRITES)?.split_ascii_whitespace().next_back()?;
    let name = base_name(path.trim_matches(['"', '\'']));
    is_settings(name).then_some((name, rest))
}

/// Takes the accelerator of the notebook `text`, which begins at `base` of its source: the one that its outputs print,
/// or else that of the runtime that Colab starts for it (`metadata.colab.gpuType`), which a notebook run elsewhere
/// keeps from its template. Its A100 has 40 GB, or 80 GB if the runtime has more host memory (`machine_shape`): of
/// 31 notebooks of unslothai/notebooks@bdda2efc7ad5 with that type, 21 print the same for the A100 that they ran on,
/// and 2 another.
pub(super) fn runtime(reading: &mut Reading, text: &str, base: u32) {
    if reading.found.is_empty() {
        return;
    }
    one_gpu(reading, text);
    if reading.value(Field::Accelerator).is_some() {
        return;
    }
    if let Some(name) = printed::device(text) {
        return printed::take(reading, name);
    }
    // Copies of Colab's notebooks for AMD's cloud keep Colab's metadata.
    if installs_for_amd(text) {
        let found = Found::new(Field::Accelerator, "MI300X", Origin::Default);
        reading.take(found.note("the notebook installs ROCm's packages, and AMD's cloud is assumed"));
        return;
    }
    let Some((name, at)) = key(text, "gpuType").filter(|(name, _)| !name.is_empty()) else {
        return in_words(reading, text);
    };
    let span = base.checked_add(at).and_then(|start| {
        let end = start.checked_add(u32::try_from(name.len()).ok()?)?;
        Some(Span::new(start, end))
    });
    let large = key(text, "machine_shape").is_some_and(|(shape, _)| shape == "hm");
    let known = match name {
        "A100" if large => Some("A100-SXM-80GB"),
        "A100" => Some("A100-SXM-40GB"),
        _ => catalog::accelerator_in(name).map(|_| name),
    };
    let Some(known) = known.and_then(catalog::accelerator) else {
        let what = "a Colab runtime whose accelerator is not in the catalog";
        reading.not_modelled.push(NotModelled::new("gpuType", name, Effect::Memory, what).at_some(span));
        return;
    };
    let found = Found::new(Field::Accelerator, known.name, Origin::Script).by("gpuType", span);
    reading.take(found.note("the Colab runtime that the notebook asks for"));
}

/// What installs PyTorch or unsloth for AMD's accelerators, which Colab has none of.
const AMD: [&str; 3] = ["download.pytorch.org/whl/rocm", "unsloth[amd]", "unsloth_zoo[amd]"];

/// Whether a cell of code installs one of them; sentences of other cells name them too. Notebooks write the kind of a cell before its
/// lines.
fn installs_for_amd(text: &str) -> bool {
    /// Places that are examined, and bytes before one in which its command begins.
    const MOST: usize = 16;
    const COMMAND: usize = 400;
    let places = AMD.iter().flat_map(|package| text.match_indices(package).take(MOST));
    places.into_iter().any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let cell = before.rfind("\"cell_type\"").and_then(|cell| before.get(cell..)).unwrap_or_default();
        let of_code = cell.split(['"']).nth(3) == Some("code");
        let mut start = at.saturating_sub(COMMAND);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        of_code
            && text
                .get(start..at)
                .is_some_and(|words| words.contains("install") || words.contains("INDEX_URL"))
    })
}

/// A Colab runtime with an accelerator has exactly one: `metadata.accelerator` next to `metadata.colab`. unsloth always
/// trains on one GPU.
fn one_gpu(reading: &mut Reading, text: &str) {
    let fast = matches!(reading.software, Some((Software::Unsloth, _)));
    let counts = [Field::NumNodes, Field::GpusPerNode, Field::WorldSize];
    if fast || reading.found.iter().any(|found| counts.contains(&found.field)) {
        return;
    }
    let known = key(text, "accelerator").is_some_and(|(kind, _)| kind == "GPU");
    if known && text.contains("\"colab\"") {
        for field in [Field::NumNodes, Field::GpusPerNode] {
            let found = Found::new(field, "1", Origin::Script).by("accelerator", None);
            reading.take(found.note("a Colab runtime has one GPU"));
        }
    }
}

/// Takes the accelerator named in a sentence that says where to run a notebook, as at the start of unsloth's: "To run
/// this, press Runtime and press Run all on a free Tesla T4 Google Colab instance!"
fn in_words(reading: &mut Reading, text: &str) {
    /// Maximum number of lines examined, and of characters in each.
    const LINES: usize = 200;
    const LONGEST: usize = 400;
    let tells =
        |line: &&str| line.len() <= LONGEST && line.contains("Google Colab") && line.contains("instance");
    let line = text.lines().take(LINES).find(tells);
    let known = line.and_then(catalog::accelerator_in);
    let small = |known: shardscope_plan::Accelerator| {
        if known.name.starts_with("A100") { "A100-SXM-40GB".to_owned() } else { known.name }
    };
    if let Some(name) = known.map(small) {
        let found = Found::new(Field::Accelerator, name, Origin::Script);
        reading.take(found.note("the Colab instance that the notebook says it runs on"));
    }
}

/// The value of a key of a notebook's metadata, and its position. Inside a cell the quotes would be escaped.
fn key<'t>(text: &'t str, name: &str) -> Option<(&'t str, u32)> {
    let quoted = format!("\"{name}\"");
    let at = text.match_indices(&quoted).map(|(at, _)| at).find(|at| {
        let before = text.get(..*at).unwrap_or_default();
        !before.ends_with('\\')
            && text.get(at + quoted.len()..).is_some_and(|rest| rest.trim_start().starts_with(':'))
    })?;
    let rest = text.get(at + quoted.len()..)?;
    let value = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let value = value.get(..value.find(['"', '\n'])?)?;
    let start = value.as_ptr() as usize - text.as_ptr() as usize;
    Some((value, u32::try_from(start).ok()?))
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn a_key_of_the_metadata_is_none_of_a_cell() {
        let text = "{\"source\": [\"x = {\\\"gpuType\\\": \\\"L4\\\"}\"], \"colab\": {\"gpuType\" : \"T4\"}}";
        assert_eq!(key(text, "gpuType").map(|(value, _)| value), Some("T4"));
        let at = key(text, "gpuType").map_or(0, |(_, at)| at as usize);
        assert_eq!(text.get(at..at + 2), Some("T4"));
        assert_eq!(key(text, "machine_shape"), None);
        assert_eq!(key("{\"gpuType\": 4}", "gpuType"), None);
        assert_eq!(key("{\"gpuType\"", "gpuType"), None);
    }
}
