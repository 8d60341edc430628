//! A layout as people write it: `TP 8 PP 4 VPP 5 MBS 1, recompute full`.

use super::edits::{with_pipeline, with_tensor};
use super::splits;
use crate::dimension::Choices;
use shardscope_plan::{Plan, Recompute, RecomputeModule, Variant};

/// The layout that `text` describes around `plan`: whatever it does not name stays, or follows from what it names.
/// The software may refuse the result ([`Variant::checked`]).
///
/// # Errors
/// The first word that is not understood.
pub fn typed(plan: &Plan, text: &str) -> Result<Variant, String> {
    let words = words(text);
    let mut sizes: Vec<(&str, u64)> = Vec::new();
    let (mut recompute, mut sequence_parallel) = (None, None);
    let mut rest = words.iter().map(String::as_str);
    while let Some(word) = rest.next() {
        let value = rest.next().unwrap_or_default();
        match word {
            "recompute" => recompute = Some(recomputed(value).ok_or_else(|| format!("{word} {value}"))?),
            "sp" if matches!(value, "on" | "off") => sequence_parallel = Some(value == "on"),
            "tp" | "pp" | "vpp" | "vp" | "cp" | "ep" | "etp" | "mbs" => {
                let size = value.parse().ok().filter(|size| *size > 0);
                sizes.push((word, size.ok_or_else(|| format!("{word} {value}"))?));
            }
            other => return Err(other.to_owned()),
        }
    }
    let size = |names: &[&str]| sizes.iter().find(|(name, _)| names.contains(name)).map(|(_, size)| *size);
    let own = Variant::from_plan(plan);
    let choices = Choices::default();
    let mut layout = size(&["tp"]).map_or_else(|| own.clone(), |tensor| with_tensor(&own, tensor));
    if let Some(pipeline) = size(&["pp"]) {
        layout = with_pipeline(plan, &layout, &choices, pipeline);
    }
    if let Some(chunks) = size(&["vpp", "vp"]) {
        let own = layout.schedule.own_chunks().filter(|_| layout.pipeline > 1);
        let ways = splits::ways(plan, &layout, &choices, layout.pipeline, own);
        // The split as now if it allows this many chunks, else the first that does.
        let mut fitting = ways.into_iter().filter(|(_, of)| *of == chunks).map(|(split, _)| split);
        let split = fitting.clone().find(|split| *split == layout.split).or_else(|| fitting.next());
        layout.split = split.unwrap_or(layout.split);
        layout.virtual_pipeline = chunks;
        layout.group = None;
    }
    layout.context = size(&["cp"]).unwrap_or(layout.context);
    layout.expert = size(&["ep"]).unwrap_or(layout.expert);
    layout.expert_tensor = size(&["etp"]).unwrap_or(layout.expert_tensor);
    layout.micro_batch_size = size(&["mbs"]).unwrap_or(layout.micro_batch_size);
    layout.sequence_parallel = sequence_parallel.unwrap_or(layout.sequence_parallel);
    layout.recompute = recompute.unwrap_or(layout.recompute);
    Ok(layout)
}

/// Runs of letters and of digits, in lower case; anything else separates them.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = None;
    for letter in text.chars() {
        let kind = (letter.is_alphanumeric() || letter == '_').then(|| letter.is_ascii_digit());
        match words.last_mut() {
            Some(word) if kind.is_some() && kind == last => word.extend(letter.to_lowercase()),
            _ if kind.is_some() => words.push(letter.to_lowercase().collect()),
            _ => {}
        }
        last = kind;
    }
    words
}

fn recomputed(word: &str) -> Option<Recompute> {
    Some(match word {
        "none" | "off" | "no" => Recompute::None,
        // What Megatron recomputes if no module is named.
        "selective" => Recompute::Selective(vec![RecomputeModule::CoreAttention]),
        "full" => Recompute::Uniform { num_layers: 1, distribute: false },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::plan;

    #[test]
    fn a_layout_is_read_as_people_write_it() {
        let plan = plan("llama-3 70b, 128 H100");
        let own = Variant::from_plan(&plan);
        let read = |text: &str| typed(&plan, text).unwrap_or_else(|word| panic!("{text}: {word}"));
        assert_eq!(read(""), own);
        let four = read("TP 4 PP 8 VPP 5 MBS 2");
        assert_eq!((four.tensor, four.pipeline, four.virtual_pipeline), (4, 8, 2 + 3));
        assert_eq!((four.micro_batch_size, four.context, four.expert_tensor), (2, 1, 4));
        for same in ["tp4, pp8, vp5, mbs2", "TP=4 × PP=8 · VPP=5 · MBS=2", "tp:4/pp:8/vpp:5/mbs:2"] {
            assert_eq!(read(same), four, "{same}");
        }
        assert_eq!(read("recompute full").recompute, Recompute::Uniform { num_layers: 1, distribute: false });
        // Dependent settings follow here too: without TP there is nothing for sequence parallelism to shard.
        assert!(own.sequence_parallel && !read("TP 1").sequence_parallel);
        assert!(!read("SP off").sequence_parallel);
        for (text, word) in [
            ("TP", "tp "),
            ("TP x", "tp x"),
            ("TP 0", "tp 0"),
            ("DP 4", "dp"),
            ("TP 8 foo 3", "foo"),
            ("recompute all", "recompute all"),
            ("TP 99999999999999999999", "tp 99999999999999999999"),
        ] {
            assert_eq!(typed(&plan, text), Err(word.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_typed_may_be_refused_with_the_reason() {
        let plan = plan("llama-3 70b, 128 H100");
        let refused = |text: &str| {
            let checked = typed(&plan, text).expect("understood").checked(&plan);
            checked
                .err()
                .map(|why| why.into_iter().map(|one| one.message).collect::<String>())
                .unwrap_or_default()
        };
        assert!(refused("TP 3").contains("TP 3 x PP 4"), "{}", refused("TP 3"));
        assert!(refused("PP 4 VPP 64").contains("64 equal chunks"), "{}", refused("PP 4 VPP 64"));
        assert_eq!(refused("TP 8 PP 8 VPP 10"), "");
    }
}
