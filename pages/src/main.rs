//! `pages FOLDER` writes every page besides the main page, and the files that they load, into FOLDER.
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

use pages::{assets, framed, gallery, pages};

fn main() -> ExitCode {
    let Some(folder) = env::args().nth(1) else {
        eprintln!("usage: pages FOLDER");
        return ExitCode::FAILURE;
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {folder}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let pages = pages();
    for page in &pages {
        fs::write(folder.join(page.file), framed(page))?;
    }
    for (name, content) in gallery::examples(&pages) {
        fs::write(folder.join(name), content)?;
    }
    for (name, content) in assets() {
        fs::write(folder.join(name), content.as_bytes())?;
    }
    Ok(())
}
