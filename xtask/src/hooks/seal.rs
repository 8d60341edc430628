//! Allows a built page's inline scripts, and no others, in its content security policy.
use anyhow::{Result, bail};
use regex::Regex;

use super::digest::sha256;

/// The placeholder for the digests in the policy of a page that is not built yet.
const PLACEHOLDER: &str = "INLINE-SCRIPTS";

/// The page with the digest of each of its inline scripts in place of the placeholder.
pub(super) fn sealed(page: &str) -> Result<String> {
    let sources: Vec<String> =
        inline_scripts(page)?.iter().map(|script| format!("'{}'", sha256(script.as_bytes()))).collect();
    replaced(page, &sources.join(" "))
}

/// The page with any inline script allowed, for a page that will still be changed.
pub(super) fn unsealed(page: &str) -> Result<String> {
    replaced(page, "'unsafe-inline'")
}

fn replaced(page: &str, sources: &str) -> Result<String> {
    if !page.contains(PLACEHOLDER) {
        bail!("there is no {PLACEHOLDER} in it");
    }
    Ok(page.replace(PLACEHOLDER, sources))
}

/// The content of each script without `src`, byte for byte, as a browser hashes it.
fn inline_scripts(page: &str) -> Result<Vec<&str>> {
    // A script ends at the first `</script`, even inside a string, as in the HTML parser.
    let script = Regex::new(r"(?is)<script\b([^>]*)>(.*?)</script\s*>")?;
    // `data-src` loads nothing.
    let src = Regex::new(r"(?i)(^|\s)src\s*=")?;
    let found = script.captures_iter(page).map(|found| found.extract().1);
    Ok(found.filter(|[attributes, _]| !src.is_match(attributes)).map(|[_, content]| content).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_scripts_are_found_to_the_byte_and_others_left_out() {
        let page = "<script>one\n</script><script type=module src=\"x.js\"></script>\
                    <SCRIPT type=\"module\">\n two </SCRIPT><script data-src=\"y\">three</script>";
        assert_eq!(inline_scripts(page).unwrap(), ["one\n", "\n two ", "three"]);
    }

    #[test]
    fn no_script_of_the_page_declares_two_functions() {
        // Trunk's minifier moves declared functions to the front, in an order that differs from build to build.
        let page = std::fs::read_to_string(crate::process::root().join("index.html")).unwrap();
        let declared = Regex::new(r"(?m)^\s*function\s+\w+").unwrap();
        let scripts = inline_scripts(&page).unwrap();
        assert!(!scripts.is_empty());
        for script in scripts {
            let names: Vec<&str> = declared.find_iter(script).map(|found| found.as_str()).collect();
            assert!(names.len() < 2, "{names:?}");
        }
    }

    #[test]
    fn the_placeholder_becomes_the_digests_and_must_be_there() {
        let page = "<meta content=\"script-src 'self' INLINE-SCRIPTS\"><script>abc</script>";
        let sealed = sealed(page).unwrap();
        assert!(
            sealed.contains("script-src 'self' 'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='\""),
            "{sealed}"
        );
        assert!(unsealed(page).unwrap().contains("'self' 'unsafe-inline'\""));
        assert!(super::sealed("<script>abc</script>").is_err());
    }
}
