//! The pages beside the main page, and the language of all:
//!
//! - `pages FOLDER` writes every page beside the main page, and what they load, into FOLDER.
//! - `pages speak FOLDER` puts every page in FOLDER into the language of the build.
//! - `pages words` prints what is there to translate, as lines of `SAYINGS`.
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

use pages::language::{self, LANGUAGE, SAYINGS};
use pages::{assets, framed, pages};

const USAGE: &str = "usage: pages FOLDER | pages speak FOLDER | pages words";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["words"] => list(),
        ["speak", folder] => speak(Path::new(folder)),
        [folder] => write(Path::new(folder)),
        _ => Err(io::Error::other(USAGE)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for page in pages() {
        fs::write(folder.join(page.file), framed(&page))?;
    }
    for (name, content) in assets() {
        fs::write(folder.join(name), content)?;
    }
    Ok(())
}

fn speak(folder: &Path) -> io::Result<()> {
    if SAYINGS.is_empty() && LANGUAGE == "en" {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "html") {
            let page = fs::read_to_string(&path)?;
            fs::write(&path, language::speak(&page, LANGUAGE, SAYINGS))?;
        }
    }
    Ok(())
}

/// One line a sentence, its place before those of one place.
fn list() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let index = fs::read_to_string(root.join("index.html"))?;
    let mut sentences = language::engine(&root.join("crates"))?;
    sentences.extend(language::of_pages(&index));
    let mut place = String::new();
    for sentence in &sentences {
        let file = sentence.place.split(':').next().unwrap_or_default();
        if file != place {
            println!("// {file}");
            file.clone_into(&mut place);
        }
        println!("({:?}, \"\"),", sentence.text);
    }
    Ok(())
}
