//! The command line of sbatch: which word is the job script, and what the options before it state about the job.
//! Options: `sbatch --help` and sbatch(1) of Slurm 24.11.

/// Short options that take a value.
const SHORT: &str = "AabBcCdDeFGiJLmMnNopqStwx";

/// Long options that take a value, in the next word if there is no `=`.
const LONG: [&str; 83] = [
    "account",
    "acctg-freq",
    "array",
    "batch",
    "bb",
    "bbf",
    "begin",
    "chdir",
    "cluster-constraint",
    "clusters",
    "comment",
    "constraint",
    "container",
    "container-id",
    "core-spec",
    "cores-per-socket",
    "cpu-freq",
    "cpus-per-gpu",
    "cpus-per-task",
    "deadline",
    "delay-boot",
    "dependency",
    "distribution",
    "error",
    "exclude",
    "export",
    "export-file",
    "extra",
    "extra-node-info",
    "gid",
    "gpu-bind",
    "gpu-freq",
    "gpus",
    "gpus-per-node",
    "gpus-per-socket",
    "gpus-per-task",
    "gres",
    "gres-flags",
    "hint",
    "input",
    "job-name",
    "kill-on-invalid-dep",
    "licenses",
    "mail-type",
    "mail-user",
    "mcs-label",
    "mem",
    "mem-bind",
    "mem-per-cpu",
    "mem-per-gpu",
    "mincpus",
    "network",
    "nodefile",
    "nodelist",
    "nodes",
    "ntasks",
    "ntasks-per-core",
    "ntasks-per-gpu",
    "ntasks-per-node",
    "ntasks-per-socket",
    "open-mode",
    "output",
    "partition",
    "power",
    "prefer",
    "priority",
    "profile",
    "qos",
    "reservation",
    "segment",
    "signal",
    "sockets-per-node",
    "switches",
    "thread-spec",
    "threads-per-core",
    "time",
    "time-min",
    "tmp",
    "tres-bind",
    "tres-per-task",
    "uid",
    "wait-all-nodes",
    "wckey",
];

/// Long options without a value, or whose value can only follow `=`.
const ALONE: [&str; 26] = [
    "contiguous",
    "exclusive",
    "external",
    "get-user-env",
    "help",
    "hold",
    "ignore-pbs",
    "nice",
    "no-kill",
    "no-requeue",
    "overcommit",
    "oversubscribe",
    "parsable",
    "propagate",
    "quiet",
    "reboot",
    "requeue",
    "resv-ports",
    "spread-job",
    "stepmgr",
    "test-only",
    "usage",
    "use-min-nodes",
    "verbose",
    "version",
    "wait",
];

/// Short options that affect the job's size, by their long names.
const SIZES: [(char, &str); 3] = [('N', "nodes"), ('n', "ntasks"), ('G', "gpus")];

/// Long options that affect the job's size.
const OF_SIZE: [&str; 8] =
    ["nodes", "ntasks", "gpus", "gpus-per-node", "gres", "ntasks-per-node", "cpus-per-task", "job-name"];

/// Which variables the job gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Export {
    /// All of the caller's.
    pub(super) all: bool,
    /// The caller's variables with these names.
    pub(super) names: Vec<String>,
    /// Variables with explicit values.
    pub(super) values: Vec<(String, String)>,
}

/// A call of sbatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// The job script; `None` if it comes from standard input or `--wrap`.
    pub(super) script: Option<String>,
    /// The words after the script.
    pub(super) arguments: Vec<String>,
    /// The command of `--wrap`.
    pub(super) wrap: Option<String>,
    /// Options that affect the job's size, with their values.
    pub(super) sizes: Vec<(String, String)>,
    /// `--export`.
    pub(super) export: Export,
    /// Whether it asks for help or the version and submits nothing.
    pub(super) only_asks: bool,
}

impl Call {
    /// Reads the words of a call.
    pub(super) fn read(words: &[String]) -> Self {
        let mut call = Self {
            script: None,
            arguments: Vec::new(),
            wrap: None,
            sizes: Vec::new(),
            // sbatch(1): without `--export` a job gets all variables of its caller.
            export: Export { all: true, names: Vec::new(), values: Vec::new() },
            only_asks: false,
        };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            // Ends the options: the next word is the script, whatever it begins with.
            if word == "--" {
                call.script = rest.next().cloned();
            } else if let Some(long) = word.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (long, None),
                };
                let name = full(name);
                let value = value.or_else(|| takes_value(name).then(|| rest.next().cloned()).flatten());
                call.take(name, value);
                continue;
            } else if word.len() > 1 && word.starts_with('-') {
                // Letters in one word (`-vQN4`): the first that takes a value takes the rest of the word, else the
                // next word.
                for (at, letter) in word.char_indices().skip(1) {
                    if !SHORT.contains(letter) {
                        call.only_asks |= matches!(letter, 'h' | 'V');
                        continue;
                    }
                    let glued = word.get(at + letter.len_utf8()..).filter(|value| !value.is_empty());
                    let value = glued.map(str::to_owned).or_else(|| rest.next().cloned());
                    if let Some((_, name)) = SIZES.iter().find(|(short, _)| *short == letter) {
                        call.take(name, value);
                    }
                    break;
                }
                continue;
            } else {
                call.script = Some(word.clone());
            }
            // What follows the script is the job's, options too.
            call.arguments = rest.by_ref().cloned().collect();
        }
        call
    }

    /// Whether sbatch takes the script from its standard input.
    pub(super) fn reads_standard_input(&self) -> bool {
        !self.only_asks && self.wrap.is_none() && self.script.is_none()
    }

    fn take(&mut self, name: &str, value: Option<String>) {
        match (name, value) {
            ("help" | "usage" | "version", _) => self.only_asks = true,
            ("wrap", value) => self.wrap = value,
            ("export", Some(value)) => self.export = exported(&value),
            // A value with a line break would inject lines into the script of `directives`.
            (name, Some(value)) if OF_SIZE.contains(&name) && !value.contains(['\n', '\r']) => {
                self.sizes.push((name.to_owned(), value));
            }
            _ => {}
        }
    }

    /// The options that affect the job's size, as lines of a job script.
    pub(super) fn directives(&self) -> String {
        self.sizes.iter().map(|(name, value)| format!("#SBATCH --{name}={value}\n")).collect()
    }
}

/// `ALL`, `NIL`, `NONE`, or names with and without values (sbatch(1), `--export`).
fn exported(list: &str) -> Export {
    let mut export = Export { all: false, names: Vec::new(), values: Vec::new() };
    for item in list.split(',').filter(|item| !item.is_empty()) {
        match (item, item.split_once('=')) {
            ("ALL", _) => export.all = true,
            ("NONE" | "NIL", _) => {}
            (_, Some((name, value))) => export.values.push((name.to_owned(), value.to_owned())),
            (name, None) => export.names.push(name.to_owned()),
        }
    }
    export
}

fn takes_value(name: &str) -> bool {
    name == "wrap" || LONG.contains(&name)
}

/// A long option by its unique prefix, as in getopt.
fn full(name: &str) -> &str {
    // An exact name takes precedence over longer ones that begin with it (`gpus`, `time`).
    if takes_value(name) || ALONE.contains(&name) {
        return name;
    }
    let mut begin = LONG.iter().chain(&ALONE).filter(|long| long.starts_with(name));
    match (begin.next(), begin.next()) {
        (Some(only), None) => only,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::Call;

    fn read(line: &str) -> Call {
        Call::read(&line.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_script_is_the_first_word_that_is_no_options() {
        for line in [
            "train.sh 7 --lr 1",
            "-N 4 train.sh 7 --lr 1",
            "-N4 -vQ train.sh 7 --lr 1",
            "-vN 4 --wait train.sh 7 --lr 1",
            "--nodes 4 --exclusive --partition=gpu train.sh 7 --lr 1",
            "--ntasks-per-n 4 --requeue -p gpu --nice train.sh 7 --lr 1",
            "-- train.sh 7 --lr 1",
        ] {
            let call = read(line);
            assert_eq!(call.script.as_deref(), Some("train.sh"), "{line}");
            assert_eq!(call.arguments, ["7", "--lr", "1"], "{line}");
        }
        assert_eq!(read("-N 4").script, None);
        assert!(read("-N 4").reads_standard_input());
        for line in ["train.sh", "--wrap=x", "--version"] {
            assert!(!read(line).reads_standard_input(), "{line}");
        }
        assert!(read("--vers").only_asks, "by its beginning");
        assert!(read("--help").only_asks && read("-V").only_asks && !read("train.sh --help").only_asks);
    }

    #[test]
    fn options_say_the_size() {
        let call = read("-N4 --gpus-per-node 8 --gres=gpu:h100:8 --ntasks-per-node=8 --time 1:00 train.sh");
        assert_eq!(
            call.directives(),
            "#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\n#SBATCH --gres=gpu:h100:8\n#SBATCH --ntasks-per-node=8\n"
        );
        let call = read("--export=ALL,TP=4,HOME train.sh");
        assert!(call.export.all);
        assert_eq!(call.export.values, [("TP".to_owned(), "4".to_owned())]);
        assert_eq!(call.export.names, ["HOME"]);
        assert!(!read("--export NONE train.sh").export.all);
        assert!(read("train.sh").export.all);
    }
}
