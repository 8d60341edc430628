//! The sentences of the engine, from its sources.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use super::html::texts;

/// A sentence, with holes where something is filled in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sentence {
    /// Where it is said first.
    pub place: String,
    /// The sentence.
    pub text: String,
}

/// What the engine below `src` (the folder of the crates) may say, each sentence once, in the order of its files. Those that are put together from
/// pieces in some other way than by `format!` or `concat` stand there as their pieces.
///
/// # Errors
/// A file that cannot be read.
pub fn engine(src: &Path) -> io::Result<Vec<Sentence>> {
    let mut files = Vec::new();
    let mut folders = vec![src.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("tests.rs")
            {
                files.push(path);
            }
        }
    }
    files.sort();
    let (mut seen, mut sentences) = (BTreeSet::new(), Vec::new());
    for file in files {
        let source = fs::read_to_string(&file)?;
        let name = file.strip_prefix(src).unwrap_or(&file).display().to_string();
        for (line, text) in said(&source) {
            if seen.insert(text.clone()) {
                sentences.push(Sentence { place: format!("crates/{name}:{line}"), text });
            }
        }
    }
    Ok(sentences)
}

/// What the pages beside the main page and `index` say, each text once.
#[must_use]
pub fn of_pages(index: &str) -> Vec<Sentence> {
    let (mut seen, mut sentences) = (BTreeSet::new(), Vec::new());
    let mut take = |place: &str, page: &str| {
        for text in texts(page) {
            if seen.insert(text.clone()) {
                sentences.push(Sentence { place: place.to_owned(), text });
            }
        }
    };
    take("index.html", index);
    for page in crate::pages() {
        take(page.file, &crate::framed(&page));
    }
    sentences
}

/// The sentences of one file, each with its line.
fn said(source: &str) -> Vec<(usize, String)> {
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or(source);
    let (code, literals) = taken_out(source);
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for (at, _) in code.match_indices("].concat()") {
        let Some(start) = opening(&code, at) else { continue };
        let (mut text, mut holes, mut line) = (String::new(), 0, None);
        for part in elements(&code[start + 1..at]) {
            match literal(part) {
                Some(index) => {
                    used.insert(index);
                    text.push_str(&literals[index].1);
                    line = line.or(Some(literals[index].0));
                }
                None => {
                    text.push_str(&format!("{{{holes}}}"));
                    holes += 1;
                }
            }
        }
        found.extend(line.map(|line| (line, text)));
    }
    for (index, (line, text)) in literals.iter().enumerate() {
        if !used.contains(&index) {
            found.push((*line, numbered(text)));
        }
    }
    found.retain(|(_, text)| is_sentence(text));
    found.sort();
    found
}

/// What stands for a literal in the code around it.
const MARK: char = '\u{1}';

/// `source` without remarks, with a marked number in the place of each string, and the strings with their lines.
fn taken_out(source: &str) -> (String, Vec<(usize, String)>) {
    let (mut code, mut literals) = (String::new(), Vec::new());
    let mut rest = source;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(inside) = rest.strip_prefix('"') {
            let (text, length) = string(inside);
            code.push_str(&format!("{MARK}{}{MARK}", literals.len()));
            literals.push((line, text));
            1 + length
        } else if let Some(quoted) = ["'\"'", "'\\\"'"].iter().find(|quoted| rest.starts_with(**quoted)) {
            quoted.len()
        } else {
            code.push(first);
            first.len_utf8()
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    (code, literals)
}

/// The text of a string from behind its opening quote, and the bytes up to behind the closing one.
fn string(inside: &str) -> (String, usize) {
    let mut text = String::new();
    let mut letters = inside.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (text, at + 1),
            '\\' => match letters.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, '\n')) => while letters.next_if(|(_, c)| c.is_whitespace()).is_some() {},
                Some((_, other)) => text.push(other),
                None => {}
            },
            other => text.push(other),
        }
    }
    (text, inside.len())
}

/// Where the bracket opens that closes at `end`.
fn opening(code: &str, end: usize) -> Option<usize> {
    let mut depth = 1;
    for (at, byte) in code.as_bytes()[..end].iter().enumerate().rev() {
        match byte {
            b']' => depth += 1,
            b'[' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The elements of an array.
fn elements(inside: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                found.push(inside[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(inside[start..].trim());
    found.retain(|element| !element.is_empty());
    found
}

/// The literal that an element is.
fn literal(element: &str) -> Option<usize> {
    element.strip_prefix(MARK)?.strip_suffix(MARK)?.parse().ok()
}

/// A sentence of `format!` with its holes numbered.
fn numbered(text: &str) -> String {
    let (mut out, mut rest, mut holes) = (String::new(), text, 0);
    while let Some((before, behind)) = rest.split_once('{') {
        out.push_str(before);
        let Some((hole, after)) = behind.split_once('}') else {
            out.push('{');
            rest = behind;
            continue;
        };
        if hole.contains(char::is_whitespace) {
            out.push('{');
            rest = behind;
            continue;
        }
        out.push_str(&format!("{{{holes}}}"));
        holes += 1;
        rest = after;
    }
    out + rest
}

/// Whether it reads as a sentence: two words at least.
fn is_sentence(text: &str) -> bool {
    let word = |word: &&str| {
        let word = word.trim_end_matches([',', ';', ':', '.']);
        word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-')
    };
    text.split(' ').filter(word).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_read_from_sources() {
        let source = r#"
            // "not this one here"
            let quote = '"';
            let a = format!("there are {} of {:.2} left, \
                {name} too", 1, 2.0);
            let b = ["no ", list(&[1, 2]), " is left over ", &c].concat();
            let d = "code_word";
        "#;
        let texts: Vec<String> = said(source).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["there are {0} of {1} left, {2} too", "no {0} is left over {1}"]);
    }

    #[test]
    fn the_engine_says_what_it_is_known_to_say() {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        let all = engine(&src).unwrap();
        assert!(all.len() > 800, "only {}", all.len());
        for known in
            ["there is no setting {0}; it is left out", "full recomputation needs a number of layers"]
        {
            assert!(all.iter().any(|sentence| sentence.text == known), "{known}");
        }
    }
}
