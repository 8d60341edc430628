//! Releases of Python packages that a text installs (`pip install trl==0.15.2`).

use crate::{Effect, NotModelled, Reading};
use shardscope_plan::Field;
use shardscope_source::Source;

/// The first two numbers of a release.
#[must_use]
pub(crate) fn numbers(text: &str) -> Option<[u64; 2]> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next().flatten().unwrap_or(0)])
}

/// The first two numbers of the release of a package that a text installs, if it names one or an upper bound
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
    /// Those of trainers whose defaults are modelled from a release on.
    pub(crate) llamafactory: Option<[u64; 2]>,
    pub(crate) axolotl: Option<[u64; 2]>,
    pub(crate) verl: Option<[u64; 2]>,
    /// That of accelerate.
    pub(crate) accelerate: Option<[u64; 2]>,
    /// That of Lightning.
    pub(crate) lightning: Option<[u64; 2]>,
}

impl Installed {
    /// The last minor release of TRL below 1, and more than transformers has of any major one.
    const BEFORE_ONE: u64 = 29;
    const MANY: u64 = 99;

    /// What the texts of a source install; if several name a release, the text at `first` counts, then the order of the texts.
    #[must_use]
    pub fn in_texts(source: &Source, first: usize) -> Self {
        let others = (0..source.parts().len()).filter(|index| *index != first);
        let order = std::iter::once(first).chain(others);
        order.fold(Self::default(), |known, index| known.or(Self::of(source.part_text(index))))
    }

    /// What the beginning of a text installs: a line of pip or conda, requirements, a notebook's first cell.
    #[must_use]
    pub fn of(text: &str) -> Self {
        /// Bytes of a text that are searched; notebooks are megabytes long, mostly of output.
        const SEARCHED: usize = 1 << 18;
        let mut end = text.len().min(SEARCHED);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = text.get(..end).unwrap_or_default();
        Self {
            trl: installed(text, "trl", Self::BEFORE_ONE),
            transformers: installed(text, "transformers", Self::MANY),
            llamafactory: installed(text, "llamafactory", Self::MANY),
            axolotl: installed(text, "axolotl", Self::MANY),
            verl: installed(text, "verl", Self::MANY),
            accelerate: installed(text, "accelerate", Self::MANY),
            lightning: lightning(text),
        }
    }

    /// The same, and where this text says nothing, what the texts beside it install.
    #[must_use]
    pub fn or(self, beside: Self) -> Self {
        Self {
            trl: self.trl.or(beside.trl),
            transformers: self.transformers.or(beside.transformers),
            llamafactory: self.llamafactory.or(beside.llamafactory),
            axolotl: self.axolotl.or(beside.axolotl),
            verl: self.verl.or(beside.verl),
            accelerate: self.accelerate.or(beside.accelerate),
            lightning: self.lightning.or(beside.lightning),
        }
    }
}

/// Lightning's release. What changed in 2.6.2 makes its 2.6.0 and 2.6.1 a 2.5, where they are pinned.
fn lightning(text: &str) -> Option<[u64; 2]> {
    let release = installed(text, "lightning", Installed::MANY)?;
    let early = ["lightning==2.6.0", "lightning==2.6.1"].iter().any(|pin| text.contains(pin));
    Some(if early && release == [2, 6] { [2, 5] } else { release })
}

/// FSDP's weights in 16 bits are lifted to fp32 under mixed precision since accelerate 0.30 (`accelerator.py:prepare_model`, #2674);
/// before, the optimizer steps them as they are loaded.
pub(crate) fn tell_unlifted(reading: &mut Reading, installed: Installed) {
    const FIRST: [u64; 2] = [0, 30];
    let Some(release) = installed.accelerate.filter(|release| *release < FIRST) else { return };
    let mixed = [Field::Bf16, Field::Fp16].iter().any(|field| reading.value(*field) == Some("true"));
    if mixed && reading.value(Field::DataParallelEngine) == Some("fsdp1") {
        let value = format!("{}.{}", release[0], release[1]);
        let what = "FSDP's weights in the format in which they are loaded, under accelerate before 0.30, which does not lift them to fp32";
        let item = NotModelled::new("accelerate", &value, Effect::Memory, what);
        // Weights that are loaded in fp32 need no lift.
        reading.not_modelled.push(item.unless_at(Field::ParamsDtype, "fp32"));
    }
}

/// The release of the last requirement in a text: on a line that installs packages, at the start of a line as in a list of
/// requirements, or as a string by itself. Prose, comments and the output of pip name any release.
fn signed(text: &str, package: &str, before_one: u64) -> Option<[u64; 2]> {
    /// Bytes after a name within which its extras end (`trl[vllm,peft]`).
    const EXTRAS: usize = 64;
    let mut last = None;
    for (at, _) in text.match_indices(package) {
        let before = text.get(..at).unwrap_or_default();
        if before.ends_with(|letter: char| letter.is_alphanumeric() || "_-.".contains(letter)) {
            continue;
        }
        let all = text.get(at + package.len()..).unwrap_or_default();
        let rest = all.trim_start_matches([' ', '\t']);
        let rest = match rest.strip_prefix('[') {
            Some(extras) => {
                let end = extras.bytes().take(EXTRAS).position(|byte| byte == b']');
                end.and_then(|end| extras.get(end + 1..)).unwrap_or_default()
            }
            None => rest,
        };
        let found = tagged(rest).or_else(|| bounded(rest, before_one));
        if found.is_some() && is_required(before, all) {
            last = found;
        }
    }
    last
}

/// Words that install what follows them on their line: pip's, conda's, uv's and poetry's, and Modal's images.
const INSTALLS: [&str; 6] =
    ["pip install", "pip3 install", "pip_install", "conda install", " add ", "--with "];
/// Bytes before a name within which they stand.
const NEAR: usize = 400;

/// Whether a name stands where a requirement does, by the text before and after it.
fn is_required(before: &str, behind: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let mut start = line.len().saturating_sub(NEAR);
    while !line.is_char_boundary(start) {
        start += 1;
    }
    // Lines of a notebook may end within the text, as two letters.
    let line = line.get(start..).unwrap_or_default().rsplit("\\n").next().unwrap_or_default();
    let rest = behind.lines().next().unwrap_or_default();
    // For other versions of Python than a training of today has (`; python_version < "3.8"`).
    if rest
        .split_once(';')
        .is_some_and(|(_, marker)| marker.contains("python_version") && marker.contains('<'))
    {
        return false;
    }
    let is_string = line.ends_with(['"', '\'']);
    let begins = line.trim_start().trim_start_matches(['-', ' ']).is_empty();
    let satisfied = line.contains("already satisfied");
    !satisfied && (begins || is_string || INSTALLS.iter().any(|word| line.contains(word)))
}

/// The release of a repository's tag: `trl.git@v0.15.2`, `trl@v0.15.2`, `trl @ git+https://…/trl.git@v0.15.2`, whose last part is
/// found at its own name.
fn tagged(rest: &str) -> Option<[u64; 2]> {
    let rest = rest.strip_prefix(".git").unwrap_or(rest);
    leading(rest.strip_prefix("@v")?)
}

/// The exact release that bounds set, or the highest that they admit, in the spellings of pip, conda and poetry (`>=0.14,<0.16`,
/// `^0.15`, `=0.15.2`, `= "0.15.2"`).
fn bounded(rest: &str, before_one: u64) -> Option<[u64; 2]> {
    /// Most bounds of one package.
    const BOUNDS: usize = 4;
    let before = |major: u64| [major.saturating_sub(1), if major > 1 { 99 } else { before_one }];
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
        let [major, minor] = leading(behind)?;
        let end = behind
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || ".*".contains(letter)))
            .unwrap_or(behind.len());
        let written = behind.get(..end).unwrap_or_default();
        let (parts, any) = (written.split('.').count(), written.ends_with('*'));
        match sign {
            // `==4.*` and `~=4.30` admit every release of 4, `^4.30` too; `~=0.15.2` and `^0.15` those of 0.15 alone.
            "==" | "===" if any && parts == 2 => return Some(before(major + 1)),
            "~=" if parts == 2 => return Some(before(major + 1)),
            "^" if major > 0 => return Some(before(major + 1)),
            "==" | "===" | "<=" | "~=" | "^" => return Some([major, minor]),
            // Conda's, which an assignment to a variable is not.
            "=" if parts > 1 && !rest.starts_with("= ") => return Some([major, minor]),
            // `<` a release means the release before it.
            "<" if minor == 0 => return Some(before(major)),
            "<" => return Some([major, minor - 1]),
            ">=" | ">" | "!=" => {}
            _ => return None,
        }
        rest = behind
            .get(end..)?
            .trim_start_matches([' ', '\t'])
            .strip_prefix(',')?
            .trim_start_matches([' ', '\t']);
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
            ("pip install trl==x trl[a,b]~=0.7", Some([0, 29])),
            ("pip install trl~=0.7.1", Some([0, 7])),
            ("pip install trl^0.7", Some([0, 7])),
            ("pip install trl>=0.9", None),
            ("pip install 'trl >= 0.14, < 0.16'", Some([0, 15])),
            ("trl>=0.14,<0.16\npeft", Some([0, 15])),
            ("trl>=0.14,!=0.15", None),
            ("trl == 0.15.2", Some([0, 15])),
            ("trl ~= 0.15.1", Some([0, 15])),
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
            ("# trl==0.15 broke\ntrl>=1.0", None),
            ("# trl==0.15 broke\ntrl>=1.0,<1.8", Some([1, 7])),
            ("we use `trl<0.15` if you see OOM; we run trl 1.5", None),
            ("# requires trl!=0.15.0,<=0.15.2, but you have trl 1.2.0", None),
            ("Found existing installation: trl==0.9.6", None),
            ("Requirement already satisfied: trl<0.9 (0.8.6)", None),
            ("echo needs trl==0.9", None),
            ("pip install trl==0.15.2\npip install -U trl==1.2.0", Some([1, 2])),
            ("trl==0.9.6; python_version < \"3.8\"\ntrl==0.15.2", Some([0, 15])),
            ("# /// script\n# dependencies = [\n#   \"trl==0.15.2\",\n# ]\n# ///", Some([0, 15])),
            ("image = image.pip_install(\"torch\", \"trl==0.15.2\")", Some([0, 15])),
            ("uv run --with trl==0.15.2 train.py", Some([0, 15])),
            ("{\"source\": [\"!pip install trl==0.15.2\\n\", \"# trl==0.9 broke\\n\"]}", Some([0, 15])),
            ("import trl\nctrl==3.0", None),
            ("pip install trl", None),
            ("pip install trl[", None),
        ] {
            assert_eq!(installed(text, "trl", 29), release, "{text}");
        }
        assert_eq!(installed("!pip install transformers==4.28.1\\n", "transformers", 99), Some([4, 28]));
        for (text, release) in [
            ("transformers = \"^4.30\"", [4, 99]),
            ("transformers~=4.30", [4, 99]),
            ("transformers==4.*", [4, 99]),
            ("transformers==4.40.*", [4, 40]),
            ("transformers>=4.46.1,!=4.52.*,<5", [4, 99]),
            ("# transformers==4.30 is too old\ntransformers==5.2.0", [5, 2]),
        ] {
            assert_eq!(installed(text, "transformers", 99), Some(release), "{text}");
        }
        let prose = "# needs a fix that came with transformers 5.0.0\npip install transformers==4.57.1";
        assert_eq!(installed(prose, "transformers", 99), Some([4, 57]));
        assert_eq!(installed("sentence-transformers==2.2", "transformers", 99), None);
        let both = Installed::of("transformers==4.57.1\ntrl<1");
        assert_eq!(
            both,
            Installed { trl: Some([0, 29]), transformers: Some([4, 57]), ..Installed::default() }
        );
        assert_eq!(Installed::of("trl==0.9").or(both), Installed { trl: Some([0, 9]), ..both });
    }
}
