//! One style sheet per view and part in `styles/`, one file on the wire.
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::process::root;

/// Joins the sheets of `styles/` that `list` imports, in order, into `file`.
pub(super) fn join(list: &str, file: &Path) -> Result<()> {
    let folder = root().join("styles");
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))
    };
    let sheets = imports(&read(list)?);
    if sheets.is_empty() {
        bail!("styles/{list} imports nothing");
    }
    let joined = sheets.iter().map(|sheet| read(sheet)).collect::<Result<String>>()?;
    // Trunk watches modification times: leave an unchanged file alone
    if fs::read_to_string(file).is_ok_and(|before| before == joined) {
        return Ok(());
    }
    fs::write(file, joined).with_context(|| format!("{} cannot be written", file.display()))
}

fn imports(list: &str) -> Vec<String> {
    let import = |line: &str| line.strip_prefix("@import \"")?.strip_suffix("\";").map(str::to_owned);
    list.lines().filter_map(import).collect()
}

#[cfg(test)]
mod tests {
    use super::imports;

    #[test]
    fn imports_are_taken_in_their_order_and_remarks_are_not() {
        let list = "/* The sheets. */\n@import \"tokens.css\";\n\n@import \"base.css\";\n";
        assert_eq!(imports(list), ["tokens.css", "base.css"]);
    }
}
