//! Rows of evidence that pull requests add: each is complete, as `contribute --check` says.

use std::path::Path;

use crate::printed;

#[test]
fn contributed_rows_are_complete() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/contributed");
    let guide = std::fs::read_to_string(folder.join("README.md")).expect("the guide of the folder");
    let sample = guide.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(printed(&["contribute", "--check", "-"], sample.expect("the row of the guide"), 0), "");
    for entry in std::fs::read_dir(&folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        // Anything else would be read by nobody.
        assert!(matches!(extension, Some("jsonl" | "md")), "{} is no file of rows", path.display());
        if extension == Some("jsonl") {
            printed(&["contribute", "--check", &path.display().to_string()], "", 0);
        }
    }
}
