//! Preview images of the worked examples for links on other sites: PNG of 1200 by 630, drawn by a browser from the
//! SVG that the build wrote, and named in the head of the example's page.
use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use regex::Regex;

use crate::browser::chrome;
use crate::process::{command, output};

/// As stated in the pages. Unit: pixel.
const SIZE: [u32; 2] = [1200, 630];
/// The prefix of an example's files.
const EXAMPLE: &str = "example-";

/// Draws every card of the directory; returns their number.
pub(super) fn draw(site: &Path, address: Option<&str>) -> Result<usize> {
    let mut stems = Vec::new();
    for entry in fs::read_dir(site)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".svg").filter(|stem| stem.starts_with(EXAMPLE)) {
            stems.push(stem.to_owned());
        }
    }
    stems.sort();
    if stems.is_empty() {
        bail!("dist/ has no examples: the page is older than its gallery");
    }
    let chrome = chrome()?;
    let profile = tempfile::tempdir()?;
    for stem in &stems {
        let picture = site.join(format!("{stem}.png"));
        let mut shot = command(&chrome.to_string_lossy());
        shot.args([
            "--headless",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            "--no-first-run",
        ]);
        // Chromium's sandbox does not start as root.
        if env::var_os("CHROME_NO_SANDBOX").is_some()
            || output(command("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
        {
            shot.arg("--no-sandbox");
        }
        shot.arg(format!("--user-data-dir={}", profile.path().display()));
        shot.arg(format!("--window-size={},{}", SIZE[0], SIZE[1]));
        shot.arg(format!("--screenshot={}", picture.display()));
        shot.arg(format!("file://{}", site.join(format!("{stem}.svg")).display()));
        output(&mut shot).with_context(|| format!("{stem}.svg cannot be drawn"))?;
        let found = size(&fs::read(&picture)?).with_context(|| format!("{stem}.png is no PNG"))?;
        if found != SIZE {
            bail!("{stem}.png is {} by {}", found[0], found[1]);
        }
        let page = site.join(format!("{stem}.html"));
        let html = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
        fs::write(&page, named(&html, stem, address)?)?;
    }
    Ok(stems.len())
}

/// Width and height of a PNG, from its first chunk.
fn size(png: &[u8]) -> Option<[u32; 2]> {
    // A PNG begins with 8 bytes of its own, then the header's length and name in 4 each, then width and height.
    let number = |at: usize| Some(u32::from_be_bytes(png.get(at..at + 4)?.try_into().ok()?));
    png.starts_with(b"\x89PNG").then_some(())?;
    Some([number(16)?, number(20)?])
}

/// The page with its own picture in place of the common one.
fn named(html: &str, stem: &str, address: Option<&str>) -> Result<String> {
    let card = Regex::new(r#"content=("[^"]*card\.png"|[^\s">]*card\.png)"#)?;
    if !card.is_match(html) {
        bail!("{stem}.html names no picture");
    }
    let own = format!("content=\"{}{stem}.png\"", address.unwrap_or_default());
    // An address may contain `$`, which must not refer to a group.
    Ok(card.replace(html, regex::NoExpand(&own)).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{named, size};

    #[test]
    fn an_example_s_page_names_its_own_picture() {
        for before in ["content=card.png>", "content=\"card.png\">", "content=\"https://a.org/card.png\">"] {
            let page = format!("<meta property=og:image {before}");
            let own = named(&page, "example-a", Some("https://a.org/")).unwrap();
            assert_eq!(own, "<meta property=og:image content=\"https://a.org/example-a.png\">");
        }
        assert!(named("<p>", "example-a", None).is_err());
    }

    #[test]
    fn a_png_tells_its_size() {
        assert_eq!(size(include_bytes!("../../../assets/card.png")), Some([1200, 630]));
        assert_eq!(size(b"\x89PNG"), None);
    }
}
