//! A Chromium or Chrome, the matching chromedriver, and axe-core.
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::install::programs;
use crate::packages::apt;
use crate::process::{Version, command, find, note, output, timed, tools};

/// Where a browser is searched for, after `$CHROME` and one that was installed here.
const BROWSERS: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
];
/// Where a driver is, after `$CHROMEDRIVER` and one that was installed here.
const DRIVERS: [&str; 4] = [
    "chromedriver",
    "chromium.chromedriver",
    "/usr/lib/chromium-browser/chromedriver",
    "/snap/bin/chromium.chromedriver",
];
/// The version of its driver that is compiled if there is none.
const GECKODRIVER: &str = "0.37.1";
const HELP: &str = "a headless Chromium and its chromedriver are needed, and not both are here.
       Debian:  sudo apt-get install chromium chromium-driver
       Ubuntu:  sudo snap install chromium
       Fedora:  sudo dnf install chromium chromedriver
       macOS:   brew install --cask google-chrome chromedriver
       or set CHROME and CHROMEDRIVER to two that fit. The browser tests are never skipped.";

/// Where Firefox is searched for, after `$FIREFOX`, and its driver, after `$GECKODRIVER`.
const FIREFOXES: [&str; 3] = ["firefox-esr", "firefox", "/Applications/Firefox.app/Contents/MacOS/firefox"];
const FIREFOX_HELP: &str = "a Firefox and geckodriver are needed, and not both are here.
       Debian:  sudo apt-get install firefox-esr
       Fedora:  sudo dnf install firefox
       macOS:   brew install --cask firefox
       and:     cargo install geckodriver
       or set FIREFOX and GECKODRIVER. The browser tests are never skipped.";

/// What the browser tests need of Firefox.
#[derive(Debug, Clone)]
pub struct Firefox {
    /// Firefox itself.
    pub firefox: PathBuf,
    /// Its driver.
    pub geckodriver: PathBuf,
}

/// The Firefox of this machine and its driver; or an error that says how to get them if one is missing.
pub fn locate_firefox() -> Result<Firefox> {
    // GitHub's machines have a variable for their directory.
    let theirs = given("GECKOWEBDRIVER").map(|folder| format!("{folder}/geckodriver"));
    let drivers = theirs.into_iter().chain(["geckodriver".to_owned()]);
    let firefox = first("FIREFOX", "firefox", FIREFOXES.map(str::to_owned)).context(FIREFOX_HELP)?;
    let geckodriver = first("GECKODRIVER", "geckodriver", drivers).context(FIREFOX_HELP)?;
    Ok(Firefox { firefox, geckodriver })
}

/// Installs Firefox and its driver if they are missing.
pub fn install_firefox() -> Result<()> {
    if locate_firefox().is_ok() {
        return Ok(());
    }
    // A failure is only noted: whatever is still missing is reported by `locate_firefox`, along with how to get it.
    if first("FIREFOX", "firefox", FIREFOXES.map(str::to_owned)).is_none()
        && let Err(error) = timed("Firefox (system packages)", || debian(&["firefox-esr"]))
    {
        note(&format!("{error:#}"));
    }
    if first("GECKODRIVER", "geckodriver", ["geckodriver".to_owned()]).is_none()
        && let Err(error) = programs::geckodriver(GECKODRIVER)
    {
        note(&format!("{error:#}"));
    }
    locate_firefox().map(drop)
}

/// Programs and files that the browser tests need.
#[derive(Debug, Clone)]
pub struct Browser {
    /// Chromium or Chrome.
    pub chrome: PathBuf,
    /// The chromedriver of the same major version.
    pub chromedriver: PathBuf,
    /// The file of axe-core's rules.
    pub axe: PathBuf,
}

/// The file of axe-core's rules.
pub fn axe() -> PathBuf {
    tools().join("npm/node_modules/axe-core/axe.min.js")
}

/// The browser of this machine and what it needs, or an error that says how to get one if there is none.
pub fn locate() -> Result<Browser> {
    // `first` would ignore a variable that names nothing and use another browser.
    for variable in ["CHROME", "CHROMEDRIVER"] {
        if let Some(given) = given(variable)
            && find(&given).is_none()
        {
            bail!("{given}, as {variable} says, is nothing that can be run");
        }
    }
    let chrome = chrome()?;
    // GitHub's machines have a variable for the directory of the driver that matches their Chrome
    let theirs = given("CHROMEWEBDRIVER").map(|folder| format!("{folder}/chromedriver"));
    let drivers = theirs.into_iter().chain(DRIVERS.map(str::to_owned));
    let chromedriver = first("CHROMEDRIVER", "chromedriver", drivers).context(HELP)?;
    // chromedriver does not start a browser of another major version; here the error can say what to do.
    let major = |program: &Path| Version::new(&program.to_string_lossy()).and_then(|v| v.0.first().copied());
    if major(&chrome) != major(&chromedriver) {
        let (chrome, driver) = (chrome.display(), chromedriver.display());
        return Err(anyhow::anyhow!("{chrome} and {driver} are of different versions")).context(HELP);
    }
    Ok(Browser { chrome, chromedriver, axe: axe() })
}

/// Only a browser, for pictures.
///
/// # Errors
/// If there is none.
pub fn chrome() -> Result<PathBuf> {
    first("CHROME", "chrome", BROWSERS.map(str::to_owned)).context(HELP)
}

/// Prints what [`locate`] finds.
pub fn print() -> Result<()> {
    let Browser { chrome, chromedriver, axe } = locate()?;
    println!("CHROME={}\nCHROMEDRIVER={}\nAXE={}", chrome.display(), chromedriver.display(), axe.display());
    let Firefox { firefox, geckodriver } = locate_firefox()?;
    println!("FIREFOX={}\nGECKODRIVER={}", firefox.display(), geckodriver.display());
    Ok(())
}

/// Installs a browser if there is none.
pub fn install() -> Result<()> {
    if locate().is_ok() {
        return Ok(());
    }
    if let Err(error) =
        timed("Chromium and chromedriver (system packages)", || debian(&["chromium", "chromium-driver"]))
    {
        note(&format!("{error:#}"));
    }
    if locate().is_err()
        && let Err(error) =
            timed("Chrome for Testing and its chromedriver (by its npm installer)", chrome_for_testing)
    {
        note(&format!("{error:#}"));
    }
    locate().map(drop)
}

fn given(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|value| !value.is_empty())
}

fn first(variable: &str, own: &str, more: impl IntoIterator<Item = String>) -> Option<PathBuf> {
    // `install` leaves the path of what it fetched in a file named after the program.
    let own =
        fs::read_to_string(tools().join("browser").join(own)).ok().map(|path| path.trim_end().to_owned());
    given(variable).into_iter().chain(own).chain(more).find_map(|program| find(&program))
}

/// Ubuntu's packages of these names only point to snaps.
fn debian(packages: &[&str]) -> Result<()> {
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    if !Path::new("/etc/debian_version").exists() || system.lines().any(|line| line == "ID=ubuntu") {
        bail!("this system is not Debian");
    }
    apt(packages)
}

/// Google's builds for tests, as puppeteer's installer fetches them.
fn chrome_for_testing() -> Result<()> {
    let folder = tools().join("browser");
    fs::create_dir_all(&folder)?;
    for what in ["chrome", "chromedriver"] {
        let mut install = command("npx");
        install.args(["--yes", "@puppeteer/browsers", "install", &format!("{what}@stable"), "--path"]);
        let said = output(install.arg(&folder))?;
        // its last line is the version and the path
        let path = said.trim_end().lines().last().and_then(|line| line.split_once(' ')).map(|(_, path)| path);
        let path = path.filter(|path| Path::new(path).is_file()).context("it says no path")?;
        fs::write(folder.join(what), path)?;
    }
    Ok(())
}
