//! Releases of Python packages that a text installs (`pip install trl==0.15.2`).

/// The first two numbers of a release.
#[must_use]
pub(crate) fn numbers(text: &str) -> Option<[u64; 2]> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next().flatten().unwrap_or(0)])
}

/// The first two numbers of the release of a package that a text installs, if it names one or an exclusive upper bound
/// (`trl==0.15.2`, `trl<0.9.0`), or else of the one that it says it was tested with. `before_one` is the last minor release below 1.
#[must_use]
pub fn installed(text: &str, package: &str, before_one: u64) -> Option<[u64; 2]> {
    signed(text, package, before_one).or_else(|| tested(text, package))
}

/// The releases of the packages whose defaults the trainers of transformers models follow, as far as texts install them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// TRL's.
    pub trl: Option<[u64; 2]>,
    /// That of transformers.
    pub transformers: Option<[u64; 2]>,
}

impl Installed {
    /// The last minor release of TRL below 1, and more than transformers has of any major one.
    const BEFORE_ONE: u64 = 29;
    const MANY: u64 = 99;

    /// What a text installs: a line of pip or conda, requirements, a notebook's first cell.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self {
            trl: installed(text, "trl", Self::BEFORE_ONE),
            transformers: installed(text, "transformers", Self::MANY),
        }
    }

    /// The same, and where this text says nothing, what the texts beside it install.
    #[must_use]
    pub fn or(self, beside: Self) -> Self {
        Self { trl: self.trl.or(beside.trl), transformers: self.transformers.or(beside.transformers) }
    }
}

/// The first release behind a sign, anywhere in a text: prose before it may name any other.
fn signed(text: &str, package: &str, before_one: u64) -> Option<[u64; 2]> {
    /// Bytes after a name within which its extras end (`trl[vllm,peft]`).
    const EXTRAS: usize = 64;
    for (at, _) in text.match_indices(package) {
        let before = text.get(..at).unwrap_or_default();
        if before.ends_with(|letter: char| letter.is_alphanumeric() || "_-.".contains(letter)) {
            continue;
        }
        let rest = text.get(at + package.len()..).unwrap_or_default().trim_start_matches([' ', '\t']);
        let rest = match rest.strip_prefix('[') {
            Some(extras) => {
                let end = extras.bytes().take(EXTRAS).position(|byte| byte == b']');
                end.and_then(|end| extras.get(end + 1..)).unwrap_or_default()
            }
            None => rest,
        };
        if let Some(found) = tagged(rest).or_else(|| bounded(rest, before_one)) {
            return Some(found);
        }
    }
    None
}

/// The release of a repository's tag: `trl.git@v0.15.2`, `trl@v0.15.2`, `trl @ git+https://…/trl.git@v0.15.2`, whose last part is
/// found at its own name.
fn tagged(rest: &str) -> Option<[u64; 2]> {
    let rest = rest.strip_prefix(".git").unwrap_or(rest);
    leading(rest.strip_prefix("@v")?)
}

/// The release that bounds set, those of poetry and conda too: the exact one, or the highest that they admit (`>=0.14,<0.16`,
/// `^0.15`, `=0.15.2`, `= "0.15.2"`).
fn bounded(rest: &str, before_one: u64) -> Option<[u64; 2]> {
    /// Most bounds of one package.
    const BOUNDS: usize = 4;
    let mut rest = rest;
    for _ in 0..BOUNDS {
        let sign_end = rest.find(|letter: char| !"=<>~!^".contains(letter)).unwrap_or(rest.len());
        let (sign, behind) = rest.split_at(sign_end);
        // `trl = "^0.15"` of poetry.
        let quoted = behind.trim_start_matches([' ', '\t']);
        let (sign, behind) = match quoted.strip_prefix(['"', '\'']).filter(|_| sign == "=") {
            Some(inner) => {
                let end = inner.find(|letter: char| !"=<>~!^".contains(letter)).unwrap_or(inner.len());
                let (own, inner) = inner.split_at(end);
                (if own.is_empty() { "==" } else { own }, inner)
            }
            None => (sign, quoted),
        };
        let found = leading(behind);
        let dotted = behind.find('.').is_some_and(|at| at < 3);
        match (sign, found?) {
            ("==" | "===" | "<=" | "~=" | "^", found) => return Some(found),
            // Conda's, which an assignment to a variable is not.
            ("=", found) if dotted && rest.starts_with('=') && !rest.starts_with("= ") => return Some(found),
            // `<` a release means the release before it.
            ("<", [major, 0]) => {
                return Some([major.saturating_sub(1), if major > 1 { 99 } else { before_one }]);
            }
            ("<", [major, minor]) => return Some([major, minor - 1]),
            (">=" | ">" | "!=", _) => {}
            _ => return None,
        }
        let end = behind.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '.'))?;
        rest = behind.get(end..)?.trim_start().strip_prefix(',')?.trim_start();
    }
    None
}

/// The release at the start of a text.
fn leading(text: &str) -> Option<[u64; 2]> {
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    numbers(text.get(..end)?)
}

/// Words after which the releases stand that a program ran with. Other prose names any release: that of a fault, of a
/// feature, of another setup.
const TESTED: [&str; 3] = ["tested with", "tested against", "tested on"];
/// Words before them that say the opposite.
const NOT: [&str; 4] = ["not ", "n't ", "un", "never "];
/// Longest line, in bytes, that is a list of releases; a notebook may be one line of megabytes.
const LONGEST: usize = 200;

/// The release in words that all mentions agree on: after "tested with", or in a list of several packages.
fn tested(text: &str, package: &str) -> Option<[u64; 2]> {
    // Most texts name none, and some are megabytes.
    let named =
        [package.to_owned(), package.to_ascii_uppercase()].iter().any(|name| text.contains(name.as_str()));
    if !named {
        return None;
    }
    let mut found: Vec<[u64; 2]> = Vec::new();
    // Releases of the lines just before, and whether they are announced.
    let (mut listed, mut announced): (Vec<(&str, [u64; 2])>, bool) = (Vec::new(), false);
    let mut close = |listed: &mut Vec<(&str, [u64; 2])>, announced: bool| {
        if announced || listed.len() > 1 {
            let own = listed.iter().filter(|(name, _)| name.eq_ignore_ascii_case(package));
            found.extend(own.map(|(_, release)| *release));
        }
        listed.clear();
    };
    for line in text.lines() {
        let line = if line.len() > LONGEST { "" } else { bare(line) };
        if line.is_empty() && listed.is_empty() && !announced {
            continue;
        }
        if let Some(rest) = behind_tested(line) {
            close(&mut listed, announced);
            announced = true;
            listed.extend(pieces(rest).map_while(item));
        } else if let Some(items) =
            pieces(line).map(|piece| item(piece).filter(|_| words(piece) == 2)).collect::<Option<Vec<_>>>()
        {
            listed.extend(items);
        } else {
            close(&mut listed, announced);
            announced = false;
        }
    }
    close(&mut listed, announced);
    let first = *found.first()?;
    found.iter().all(|release| *release == first).then_some(first)
}

/// A line without the marks of a comment, of a list, or of a string in a notebook.
fn bare(line: &str) -> &str {
    let line = line.trim().trim_end_matches([',', '"']);
    line.strip_suffix("\\n")
        .unwrap_or(line)
        .trim_matches(|mark: char| mark.is_whitespace() || "#\"'*->".contains(mark))
}

/// What follows "tested with" in a line.
fn behind_tested(line: &str) -> Option<&str> {
    let lower = line.to_ascii_lowercase();
    TESTED.iter().find_map(|said| {
        let at = lower.find(said)?;
        let denied = NOT.iter().any(|not| lower.get(..at).unwrap_or_default().ends_with(not));
        line.get(at + said.len()..).filter(|_| !denied).map(|rest| rest.trim_start_matches([':', ' ']))
    })
}

fn pieces(line: &str) -> impl Iterator<Item = &str> {
    line.split([',', ';']).flat_map(|piece| piece.split(" and ")).map(str::trim)
}

fn words(piece: &str) -> usize {
    piece.split_whitespace().count()
}

/// A name and its release of three numbers, with which a piece begins.
fn item(piece: &str) -> Option<(&str, [u64; 2])> {
    let mut words = piece.split_whitespace();
    let (name, release) = (words.next()?, words.next()?.trim_end_matches(['.', ')']));
    let three = release.split('.').count() == 3 && release.split('.').all(|part| part.parse::<u64>().is_ok());
    Some((name, numbers(release).filter(|_| three)?))
}

#[cfg(test)]
mod tests {
    use super::{Installed, installed};

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
            ("pip install 'trl >= 0.14, < 0.16'", Some([0, 15])),
            ("trl>=0.14,<0.16\npeft", Some([0, 15])),
            ("trl>=0.14,!=0.15", None),
            ("trl == 0.15.2", Some([0, 15])),
            ("trl ~= 0.15", Some([0, 15])),
            ("trl===0.15.2", Some([0, 15])),
            ("conda install trl=0.15.2", Some([0, 15])),
            ("  - trl=0.15.2=pyhd8ed1ab_0", Some([0, 15])),
            ("trl = \"^0.15.2\"", Some([0, 15])),
            ("trl = \"0.15.2\"", Some([0, 15])),
            ("trl = 0.15", None),
            ("trl=3", None),
            ("pip install git+https://github.com/huggingface/trl.git@v0.15.2", Some([0, 15])),
            ("pip install trl@git+https://github.com/huggingface/trl@v0.15.2", Some([0, 15])),
            ("pip install git+https://github.com/huggingface/trl.git@main", None),
            ("Tested against:\n    transformers 5.4.0\n    trl 0.29.1\n    peft 0.18.1", Some([0, 29])),
            ("# trl 0.29.1+, or trl 0.9", None),
            ("# Tested with transformers 5.4.0, TRL 0.29.1 and peft 0.18.1 on one H100.", Some([0, 29])),
            ("# Tested with:\n#   trl 0.29.1\n", Some([0, 29])),
            ("    \"# transformers 5.4.0\\n\",\n    \"# trl 0.29.1\\n\",", Some([0, 29])),
            ("# transformers 5.4.0, trl 0.29.1", Some([0, 29])),
            ("# trl 0.29.1", None),
            ("# reported against trl 0.29.1\n# bug in trl 0.9.6", None),
            ("# needs what came with\n# trl 0.26.0\n# since trl 0.26.0, and trl 0.27.0", None),
            ("# not tested with trl 0.29.1", None),
            ("# untested with trl 0.29.1", None),
            ("# tested with trl 0.29.1\n# tested on trl 0.28.0", None),
            ("# tested with trl 0.29.1\npip install trl==0.17.0", Some([0, 17])),
            ("# since trl 0.26.0\n# pip install trl==0.17.0", Some([0, 17])),
            ("import trl\nctrl==3.0", None),
            ("pip install trl", None),
            ("pip install trl[", None),
        ] {
            assert_eq!(installed(text, "trl", 29), release, "{text}");
        }
        assert_eq!(installed("!pip install transformers==4.28.1\\n", "transformers", 99), Some([4, 28]));
        let prose = "# needs a fix that came with transformers 5.0.0\npip install transformers==4.57.1";
        assert_eq!(installed(prose, "transformers", 99), Some([4, 57]));
        assert_eq!(installed("sentence-transformers==2.2", "transformers", 99), None);
        let both = Installed::of("transformers==4.57.1\ntrl<1");
        assert_eq!(both, Installed { trl: Some([0, 29]), transformers: Some([4, 57]) });
        assert_eq!(Installed::of("trl==0.9").or(both), Installed { trl: Some([0, 9]), ..both });
    }
}
