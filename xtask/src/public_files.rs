//! The public launch files of the tables in `crates/launch/tests/data`: fetches them and checks the result for each.
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{cargo, command, note, output, root, run, target_folder};

/// The tables, whose columns 2 to 4 name repository, path and commit of a file.
const TABLES: [&str; 2] = ["public_files.tsv", "drawn_files.tsv"];

/// A file of a public repository at a commit.
#[derive(Debug, PartialEq, Eq)]
struct PublicFile {
    repository: String,
    path: String,
    commit: String,
}

impl PublicFile {
    fn read(line: &str) -> Result<Self> {
        let columns: Vec<&str> = line.split('\t').collect();
        let [_, repository, path, commit, ..] = columns[..] else {
            bail!("four columns were expected: {line:?}")
        };
        // The path becomes one below the directory, so no component may lead out of it.
        if path.split('/').any(|step| step.is_empty() || step == "..") {
            bail!("not a path inside a repository: {path}");
        }
        Ok(Self { repository: repository.to_owned(), path: path.to_owned(), commit: commit.to_owned() })
    }

    fn address(&self) -> String {
        let path = self.path.replace('%', "%25").replace(' ', "%20").replace('#', "%23").replace('?', "%3F");
        format!("https://raw.githubusercontent.com/{}/{}/{path}", self.repository, self.commit)
    }

    fn place(&self, folder: &Path) -> PathBuf {
        folder.join(self.repository.replace('/', "+")).join(&self.path)
    }
}

/// Fetches what `folder` lacks and checks every row; with `update`, rewrites the tables and the guide's instead.
pub fn check(folder: Option<PathBuf>, update: bool) -> Result<()> {
    let folder = folder.unwrap_or_else(|| target_folder().join("public-files"));
    fs::create_dir_all(&folder)?;
    // The programs below run in the checkout, wherever this was called.
    let folder = folder.canonicalize()?;
    for table in TABLES {
        let text = fs::read_to_string(root().join("crates/launch/tests/data").join(table))?;
        for line in text.lines() {
            fetch(&PublicFile::read(line).context(table)?, &folder)?;
        }
    }
    if update {
        let outcomes = ["run", "--quiet", "--package", "shardscope-launch", "--example", "outcomes"];
        return run(cargo(outcomes).args(["--", "--update"]).arg(folder));
    }
    let tests = ["test", "--quiet", "--package", "shardscope-launch", "--test", "public_files"];
    run(cargo(tests).env("SHARDSCOPE_PUBLIC_FILES", folder))
}

/// Fetches a file unless it is there. One that its repository no longer has is named, and the check of its row says
/// more.
fn fetch(file: &PublicFile, folder: &Path) -> Result<()> {
    let place = file.place(folder);
    // Even if it is empty: there are some in the tables.
    if place.is_file() {
        return Ok(());
    }
    fs::create_dir_all(place.parent().unwrap_or(folder))?;
    let mut curl = command("curl");
    curl.args([
        "--fail",
        "--silent",
        "--show-error",
        "--location",
        "--retry",
        "3",
        "--proto",
        "=https",
        "--output",
    ]);
    if let Err(error) = output(curl.arg(&place).arg(file.address())) {
        // Remove a partial file.
        drop(fs::remove_file(&place));
        note(&format!("not there any more: {} at {}: {error}", file.path, file.commit));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_a_file_its_address_and_its_place() {
        let file = PublicFile::read("TRL\torg/name\ta b/#1.sh\tc0ffee\tasked\tfirst").unwrap();
        assert_eq!(file.address(), "https://raw.githubusercontent.com/org/name/c0ffee/a%20b/%231.sh");
        assert_eq!(file.place(Path::new("here")), Path::new("here/org+name/a b/#1.sh"));
    }

    #[test]
    fn no_path_leads_out_of_the_folder() {
        for path in ["../x.sh", "a/../../x.sh", "/etc/x.sh", "a//b"] {
            assert!(PublicFile::read(&format!("TRL\torg/name\t{path}\tc0ffee")).is_err(), "{path}");
        }
        assert!(PublicFile::read("TRL\torg/name").is_err());
    }
}
