//! Writes what each target starts from into `corpus/TARGET/`, where `cargo fuzz run` looks.

use std::fs;
use std::path::Path;

use shardscope_fuzz::bodies::BODIES;
use shardscope_fuzz::seeds::seeds;

fn main() -> std::io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().unwrap_or(here);
    for (target, _) in BODIES {
        let folder = here.join("corpus").join(target);
        fs::create_dir_all(&folder)?;
        let inputs = seeds(root, target);
        for (index, input) in inputs.iter().enumerate() {
            fs::write(folder.join(format!("seed-{index:03}")), input)?;
        }
        println!("{target}: {} inputs", inputs.len());
    }
    Ok(())
}
