//! Conditions of a program on a settings file that it loads itself and that is not among the texts.

/// Calls whose result is the contents of such a file.
const LOADS: [&str; 8] = [
    "yaml.safe_load(",
    "yaml.load(",
    "yaml.full_load(",
    "json.load(",
    "json.loads(",
    "toml.load(",
    "tomllib.load(",
    "OmegaConf.load(",
];

/// Whether an `if` around the statement at `at` asks such a file (`if cfg.get("use_qlora", False):`).
pub(super) fn decides(text: &str, at: usize) -> bool {
    /// Lines above the statement that are examined.
    const LINES: usize = 400;
    let before = text.get(..at).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let width = |line: &str| line.len() - line.trim_start().len();
    let mut depth = width(text.get(start..).unwrap_or_default().lines().next().unwrap_or_default());
    for line in before.get(..start).unwrap_or_default().lines().rev().take(LINES) {
        if line.trim().is_empty() || width(line) >= depth {
            continue;
        }
        depth = width(line);
        let words = line.trim_start();
        let condition = words.strip_prefix("if ").or_else(|| words.strip_prefix("elif "));
        if condition.is_some_and(|condition| asks(condition, before)) {
            return true;
        }
        if words.starts_with("def ") || depth == 0 {
            return false;
        }
    }
    false
}

/// Whether a condition looks up a variable that holds a settings file.
fn asks(condition: &str, before: &str) -> bool {
    before.lines().filter(|line| LOADS.iter().any(|call| line.contains(call))).any(|line| {
        let Some((name, _)) = line.split_once('=') else { return false };
        let name = name.trim();
        !name.is_empty()
            && condition.match_indices(name).any(|(at, _)| {
                let word = |sign: char| sign.is_alphanumeric() || sign == '_' || sign == '.';
                !condition.get(..at).is_some_and(|before| before.ends_with(word))
                    && condition.get(at + name.len()..).is_some_and(|rest| rest.starts_with(['[', '.']))
            })
    })
}

#[cfg(test)]
mod tests {
    use super::decides;

    #[test]
    fn a_condition_on_a_loaded_file_is_told_from_others() {
        let of = |load: &str, condition: &str| {
            let text = format!("{load}\nmodel = None\nif {condition}:\n    x = 1\n    q = Config()\n");
            decides(&text, text.find("Config").unwrap_or_default())
        };
        let load = "cfg = yaml.safe_load(open(path))";
        for condition in ["cfg.get('use_qlora', False)", "cfg['load_in_4bit']", "a and cfg.b"] {
            assert!(of(load, condition), "{condition}");
        }
        for condition in ["torch.cuda.is_available()", "my_cfg['a']", "self.cfg['a']", "cfg"] {
            assert!(!of(load, condition), "{condition}");
        }
        assert!(!of("cfg = {'use_qlora': True}", "cfg['use_qlora']"));
        assert!(!decides("cfg = json.load(f)\nif cfg['a']:\n    b = 1\nq = Config()\n", 46));
    }
}
