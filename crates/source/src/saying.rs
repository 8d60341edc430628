//! What the engine says, in another language.

/// A sentence or name of the engine, with holes `{0}` to `{9}` where it fills something in, and the same in another
/// language, with the holes in whatever order that wants them.
pub type Saying = (&'static str, &'static str);

/// How often what fills a hole may itself be a saying.
const DEPTH: u32 = 2;

/// `text` in the language of `sayings`; none where they do not have it.
///
/// The first saying that fits is taken: a sentence without holes belongs before one that it would fit into. What fills a
/// hole is looked up as well, and a text with a capital also without it.
#[must_use]
pub fn spoken(text: &str, sayings: &[Saying]) -> Option<String> {
    let as_it_is = deeper(text, sayings, DEPTH);
    if as_it_is.is_some() || !text.starts_with(|first: char| first.is_ascii_uppercase()) {
        return as_it_is;
    }
    let mut small = text.to_owned();
    small[..1].make_ascii_lowercase();
    let mut other = deeper(&small, sayings, DEPTH)?;
    if let Some(first) = other.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Some(other)
}

fn deeper(text: &str, sayings: &[Saying], depth: u32) -> Option<String> {
    let (filling, translation) =
        sayings.iter().find_map(|(template, other)| Some((filling(template, text)?, *other)))?;
    let mut out = String::new();
    for piece in pieces(translation) {
        match piece {
            Piece::Words(words) => out.push_str(words),
            Piece::Hole(hole) => {
                let (_, filled) = filling.iter().find(|(number, _)| *number == hole)?;
                let other = if depth == 0 { None } else { deeper(filled, sayings, depth - 1) };
                out.push_str(other.as_deref().unwrap_or(filled));
            }
        }
    }
    Some(out)
}

/// What fills the holes of `template` where `text` is said by it. Each hole takes as little as it can, the last one the
/// rest; none stays empty.
fn filling<'a>(template: &str, text: &'a str) -> Option<Vec<(u8, &'a str)>> {
    let mut filled = Vec::new();
    let (mut rest, mut open) = (text, None);
    for piece in pieces(template) {
        match piece {
            Piece::Hole(_) if open.is_some() => return None,
            Piece::Hole(hole) => open = Some(hole),
            Piece::Words(words) => {
                rest = match open.take() {
                    None => rest.strip_prefix(words)?,
                    Some(hole) => {
                        let (before, behind) = match rest.strip_suffix(words) {
                            Some(before) if template.ends_with(words) => (before, ""),
                            _ => rest.split_once(words)?,
                        };
                        filled.push((hole, before));
                        behind
                    }
                };
            }
        }
    }
    match open {
        Some(hole) => filled.push((hole, rest)),
        None if !rest.is_empty() => return None,
        None => {}
    }
    filled.iter().all(|(_, words)| !words.is_empty()).then_some(filled)
}

/// A part of a sentence.
enum Piece<'a> {
    Words(&'a str),
    Hole(u8),
}

/// The parts of `sentence` in their order.
fn pieces(sentence: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(at) = sentence.get(from..).and_then(|rest| rest.find('{')) {
        let open = from + at;
        from = open + 1;
        if let [b'{', digit @ b'0'..=b'9', b'}', ..] = &sentence.as_bytes()[open..] {
            found.extend(sentence.get(start..open).filter(|words| !words.is_empty()).map(Piece::Words));
            found.push(Piece::Hole(digit - b'0'));
            (start, from) = (open + 3, open + 3);
        }
    }
    found.extend(sentence.get(start..).filter(|words| !words.is_empty()).map(Piece::Words));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const GERMAN: &[Saying] = &[
        ("gradients", "Gradienten"),
        ("there is no setting {0}; it is left out", "eine Einstellung {0} gibt es nicht; sie bleibt weg"),
        ("{0} is nothing to {1}", "{1} hat mit {0} nichts zu tun"),
        ("{0} per GPU", "je GPU {0}"),
        ("at {0}, {1}", "{1} ({0})"),
        ("a {b} of {0}", "ein {b} von {0}"),
    ];

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(spoken(text, GERMAN).as_deref(), expected, "{text}");
    }

    #[test]
    fn sentences_are_told_by_what_stands_between_their_holes() {
        check("gradients", Some("Gradienten"));
        check(
            "there is no setting x; y; it is left out",
            Some("eine Einstellung x; y gibt es nicht; sie bleibt weg"),
        );
        check("this is nothing to that", Some("that hat mit this nichts zu tun"));
        check("at 3, 4, 5", Some("4, 5 (3)"));
        check("a {b} of {0}", Some("ein {b} von {0}"));
        check("what stands in a hole is said as well: gradients", None);
        check("gradients per GPU", Some("je GPU Gradienten"));
        check(
            "There is no setting x; it is left out",
            Some("Eine Einstellung x gibt es nicht; sie bleibt weg"),
        );
    }

    #[test]
    fn what_is_not_in_the_table_stays() {
        for text in ["", " per GPU", "gradient", "gradients ", "there is no setting ; it is left out", "{0}"]
        {
            check(text, None);
        }
        assert_eq!(spoken("anything", &[]), None);
    }
}
