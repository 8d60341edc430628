//! Links: a configuration in the fragment of an address, versioned, read for ever.
//!
//! Two kinds. `/1?gbs=512&tp=2&…` carries settings by name, short enough to type by hand. `z1:…` carries the
//! pasted text itself: base64url of raw deflate of JSON, so that any language's standard library writes it.
//! A fragment never reaches a server. A link is untrusted: every size is bounded, nothing panics.

mod pasted;
mod settings;

pub use pasted::{Pasted, PastedText};

/// What a link carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shared {
    /// Settings by Megatron's names, as typed or as resolved.
    Settings(Vec<(String, String)>),
    /// The pasted texts with everything the user answered and changed.
    Pasted(Pasted),
}

/// Longest fragment that is read. Unit: byte. Browsers take more; chat tools cut far below.
pub const MAX_LINK: usize = 256 * 1024;
/// Most text that a link may unfold to. Unit: byte.
pub const MAX_TEXT: usize = 1024 * 1024;
/// Most settings in a link.
pub const MAX_SETTINGS: usize = 512;

/// Why a link cannot be read; a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError(pub String);

/// The fragment (without `#`) that carries `shared`. Equal contents give equal fragments.
#[must_use]
pub fn encode(shared: &Shared) -> String {
    match shared {
        Shared::Settings(settings) => settings::encode(settings),
        Shared::Pasted(pasted) => pasted::encode(pasted),
    }
}

/// What `fragment` (with or without `#`) carries; nothing when it is empty or a mere anchor.
///
/// # Errors
/// A sentence that says what is wrong with the link.
pub fn decode(fragment: &str) -> Result<Option<Shared>, LinkError> {
    let fragment = fragment.strip_prefix('#').unwrap_or(fragment);
    if fragment.len() > MAX_LINK {
        return Err(LinkError(format!("the link is {} bytes long; {MAX_LINK} are read", fragment.len())));
    }
    if let Some(query) = fragment.strip_prefix("/1?") {
        return settings::decode(query).map(|settings| Some(Shared::Settings(settings)));
    }
    if let Some(data) = fragment.strip_prefix("z1:") {
        return pasted::decode(data).map(|pasted| Some(Shared::Pasted(pasted)));
    }
    if fragment.starts_with('/') || fragment.starts_with('z') && fragment.contains(':') {
        return Err(LinkError(
            "the link was written by a newer version of this page: reload it and try again".into(),
        ));
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
    fn old_links_open_for_ever() {
        // Written once; never edit a line, only add.
        let golden = include_str!("../../tests/data/links/golden.txt");
        let mut seen = 0;
        for line in golden.lines().filter(|line| !line.starts_with("//")) {
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
        assert_eq!(decode(""), Ok(None));
        assert_eq!(decode("#memory"), Ok(None));
    }
}
