//! Links: a configuration in the fragment of an address, versioned and readable forever.
//!
//! Two kinds. `/1?gbs=512&tp=2&…` carries settings by name, short enough to type by hand. `z1:…` carries the pasted
//! text itself: base64url of raw deflate of JSON, so that any language's standard library can write it. A second one
//! after `!` is a pinned plan to compare the first one with. A fragment never reaches a server. A link is untrusted:
//! every size is bounded, nothing panics.
//!
//! ```
//! use shardscope_link::{Shared, decode, encode};
//!
//! let settings = vec![("tensor_model_parallel_size".to_owned(), "2".to_owned())];
//! let link = encode(&Shared::Settings(settings));
//! assert_eq!(link, "/1?tp=2");
//! assert_eq!(decode("#/1?tp=2").map(|shared| shared.map(|shared| encode(&shared))), Ok(Some(link)));
//! assert!(decode("#/9?tp=2").is_err());
//! ```

mod bounds;
mod pasted;
mod percent;
mod settings;

pub use bounds::{Damage, LinkError, MAX_LINK, MAX_SETTINGS, MAX_TEXT, MAX_TEXTS};
pub use pasted::{Compact, Pasted, PastedText};
pub use settings::long_name;

/// What a link carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shared {
    /// Settings by Megatron's names, as typed or as resolved.
    Settings(Vec<(String, String)>),
    /// The pasted texts with everything the user answered and changed.
    Pasted(Pasted),
}

/// The fragment (without `#`) that carries `shared`. Equal contents give equal fragments.
#[must_use]
pub fn encode(shared: &Shared) -> String {
    match shared {
        Shared::Settings(settings) => settings::encode(settings),
        Shared::Pasted(pasted) => pasted::encode(pasted),
    }
}

/// Separates a plan from the pinned one; occurs in neither kind of link.
const PINNED: char = '!';

/// The fragment that carries `shared` together with `pinned`.
#[must_use]
pub fn encode_pair(shared: &Shared, pinned: &Shared) -> String {
    format!("{}{PINNED}{}", encode(shared), encode(pinned))
}

/// What `fragment` (with or without `#`) carries; `None` if it is empty or just an anchor. A pinned plan is ignored.
///
/// # Errors
/// What is wrong with the link.
pub fn decode(fragment: &str) -> Result<Option<Shared>, LinkError> {
    decode_pair(fragment).map(|(shared, _)| shared)
}

/// What `fragment` carries, and the pinned plan.
///
/// # Errors
/// What is wrong with the link.
pub fn decode_pair(fragment: &str) -> Result<(Option<Shared>, Option<Shared>), LinkError> {
    let fragment = fragment.strip_prefix('#').unwrap_or(fragment);
    // Checked before anything is split or decoded.
    if fragment.len() > MAX_LINK {
        return Err(LinkError::TooLong(fragment.len()));
    }
    match fragment.split_once(PINNED) {
        // Percent-encoding escapes `!`, and base64 has no `!`, so the first one is the separator.
        Some((shared, pinned)) => Ok((decode_one(shared)?, decode_one(pinned)?)),
        None => Ok((decode_one(fragment)?, None)),
    }
}

fn decode_one(fragment: &str) -> Result<Option<Shared>, LinkError> {
    if let Some(query) = fragment.strip_prefix("/1?") {
        return settings::decode(query).map(|settings| Some(Shared::Settings(settings)));
    }
    if let Some(data) = fragment.strip_prefix("z1:") {
        return pasted::decode(data).map(|pasted| Some(Shared::Pasted(pasted)));
    }
    // Every version begins with one of these, so that an old page can tell a newer link from an anchor.
    if fragment.starts_with('/') || fragment.starts_with('z') && fragment.contains(':') {
        return Err(LinkError::Newer);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn round_trip(shared: &Shared) -> String {
        let link = encode(shared);
        assert_eq!(decode(&format!("#{link}")), Ok(Some(shared.clone())));
        link
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn settings_are_sorted_and_short() {
        let settings =
            pairs(&[("tensor_model_parallel_size", "2"), ("accelerator", "H100-SXM"), ("note", "a&b=ü")]);
        let link = encode(&Shared::Settings(settings));
        assert_eq!(link, "/1?accelerator=H100-SXM&note=a%26b%3D%C3%BC&tp=2");
        assert_eq!(
            decode(&link),
            Ok(Some(Shared::Settings(pairs(&[
                ("accelerator", "H100-SXM"),
                ("note", "a&b=ü"),
                ("tensor_model_parallel_size", "2")
            ]))))
        );
    }

    #[test]
    fn pasted_text_comes_back() {
        let link = round_trip(&Shared::Pasted(Pasted {
            texts: vec![PastedText { name: "train.sh".into(), text: "TP=2 # ü\n".repeat(300) }],
            settings: pairs(&[("accelerator", "H100-SXM")]),
            environment: pairs(&[("WORLD_SIZE", "2")]),
            arguments: "dsw 7B".into(),
        }));
        assert!(link.len() < 400, "{}", link.len());
    }

    #[test]
    fn a_plan_is_pinned_beside_another() {
        let settings = |tp: &str| Shared::Settings(pairs(&[("tensor_model_parallel_size", tp), ("x", "!")]));
        let link = encode_pair(&settings("2"), &settings("4"));
        assert_eq!(link, "/1?tp=2&x=%21!/1?tp=4&x=%21");
        assert_eq!(decode_pair(&link), Ok((Some(settings("2")), Some(settings("4")))));
        assert_eq!(decode(&link), Ok(Some(settings("2"))));
        let pasted = Shared::Pasted(Pasted::default());
        assert_eq!(
            decode_pair(&encode_pair(&pasted, &settings("4"))).map(|(_, pinned)| pinned),
            Ok(Some(settings("4")))
        );
        assert!(decode_pair("/1?tp=2!/9?").is_err());
    }

    #[test]
    fn old_links_open_for_ever() {
        // Written once; never edit a line, only add.
        let golden = include_str!("../../../tests/data/links/golden.txt");
        let mut seen = 0;
        for line in golden.lines().filter(|line| !line.starts_with("//")) {
            if let Ok((Some(shared), Some(pinned))) = decode_pair(line) {
                assert_eq!(format!("#{}", encode_pair(&shared, &pinned)), line, "canonical for ever");
                continue;
            }
            let shared = decode(line).expect("an old link opens").expect("an old link carries something");
            assert_eq!(decode(&encode(&shared)), Ok(Some(shared.clone())));
            if let Shared::Settings(_) = shared {
                assert_eq!(format!("#{}", encode(&shared)), line, "canonical for ever");
            }
            seen += 1;
        }
        assert!(seen >= 3);
    }

    #[test]
    fn hostile_links_end_in_a_sentence() {
        for link in ["z1:", "z1:!!!!", "z1:AAAA", "/9?x=1", "z7:abc", "/1?tp=%GG", &"x".repeat(MAX_LINK + 1)]
        {
            let result = decode(link);
            assert!(
                result.is_err() || matches!(result, Ok(Some(Shared::Settings(_)))),
                "{link:.20} {result:?}"
            );
        }
        let bomb = encode(&Shared::Pasted(Pasted {
            texts: vec![PastedText { name: String::new(), text: "0".repeat(MAX_TEXT + 1) }],
            ..Pasted::default()
        }));
        assert!(bomb.len() < 10_000);
        assert!(decode(&bomb).is_err());
        let link = encode(&Shared::Pasted(Pasted {
            texts: vec![PastedText { name: "train.sh".into(), text: "TP=2 # ü\n".repeat(30) }],
            ..Pasted::default()
        }));
        for end in "z1:".len()..link.len() {
            assert!(decode(&link[..end]).is_err(), "cut at {end}");
        }
        // With one wrong character, the result never exceeds the bounds, whatever it inflates to.
        for at in "z1:".len()..link.len() {
            for letter in ["A", "Q", "_", "9"] {
                let damaged = format!("{}{letter}{}", &link[..at], &link[at + 1..]);
                if let Ok(Some(Shared::Pasted(pasted))) = decode(&damaged) {
                    assert!(pasted.texts.len() <= MAX_TEXTS, "{letter} at {at}");
                    assert!(pasted.texts.iter().all(|text| text.text.len() <= MAX_TEXT), "{letter} at {at}");
                }
            }
        }
        assert_eq!(decode(""), Ok(None));
        assert_eq!(decode("#memory"), Ok(None));
    }
}
