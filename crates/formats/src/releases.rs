//! Releases of Python packages that a text installs (`pip install trl==0.15.2`).

/// The first two numbers of a release.
#[must_use]
pub(crate) fn numbers(text: &str) -> Option<[u64; 2]> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next().flatten().unwrap_or(0)])
}

/// The first two numbers of the release of a package that a text installs, if it names one or an exclusive upper bound
/// (`trl==0.15.2`, `trl<0.9.0`). `before_one` is the last minor release below 1.
#[must_use]
pub fn installed(text: &str, package: &str, before_one: u64) -> Option<[u64; 2]> {
    /// Bytes after a name within which its extras end (`trl[vllm,peft]`).
    const EXTRAS: usize = 64;
    for (at, _) in text.match_indices(package) {
        let before = text.get(..at).unwrap_or_default();
        if before.ends_with(|letter: char| letter.is_alphanumeric() || "_-.".contains(letter)) {
            continue;
        }
        let rest = text.get(at + package.len()..).unwrap_or_default().trim_start();
        let rest = match rest.strip_prefix('[') {
            Some(extras) => {
                let end = extras.bytes().take(EXTRAS).position(|byte| byte == b']');
                end.and_then(|end| extras.get(end + 1..)).unwrap_or_default()
            }
            None => rest,
        };
        let found =
            ["==", "<=", "~=", "<"].into_iter().find_map(|sign| Some((sign, rest.strip_prefix(sign)?)));
        // A release in words names all of its numbers (`tested with trl 0.29.1`).
        let Some((sign, rest)) = found.or_else(|| Some(("==", exact(rest)?))) else { continue };
        let end = rest.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(rest.len());
        let Some([major, minor]) = numbers(rest.get(..end).unwrap_or_default()) else { continue };
        // `<` a release means the release before it.
        return Some(match (sign, minor) {
            ("<", 0) => [major.saturating_sub(1), if major > 1 { 99 } else { before_one }],
            ("<", _) => [major, minor - 1],
            _ => [major, minor],
        });
    }
    None
}

/// A release of three numbers with which `text` begins, and after which a word or a sentence ends.
fn exact(text: &str) -> Option<&str> {
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    let release = text.get(..end)?;
    let three = release.split('.').count() == 3 && release.split('.').all(|part| part.parse::<u64>().is_ok());
    let ends =
        text.get(end..)?.chars().next().is_none_or(|next| next.is_whitespace() || ",;)\"'".contains(next));
    (three && ends).then_some(release)
}

#[cfg(test)]
mod tests {
    use super::installed;

    #[test]
    fn a_release_is_read_where_one_is_installed() {
        for (text, release) in [
            ("!pip install -U trl==0.15.2 peft", Some([0, 15])),
            ("pip install \"trl<0.9.0\"", Some([0, 8])),
            ("pip install trl<1", Some([0, 29])),
            ("pip install trl<2", Some([1, 99])),
            ("%pip install trl[vllm]==1.15.0", Some([1, 15])),
            ("pip install trl==x trl[a,b]~=0.7", Some([0, 7])),
            ("pip install trl>=0.9", None),
            ("Tested against:\n    transformers 5.4.0\n    trl 0.29.1\n    peft 0.18.1", Some([0, 29])),
            ("# trl 0.29.1+, or trl 0.9", None),
            ("import trl\nctrl==3.0", None),
            ("pip install trl", None),
            ("pip install trl[", None),
        ] {
            assert_eq!(installed(text, "trl", 29), release, "{text}");
        }
        assert_eq!(installed("!pip install transformers==4.28.1\\n", "transformers", 99), Some([4, 28]));
        assert_eq!(installed("sentence-transformers==2.2", "transformers", 99), None);
    }
}
