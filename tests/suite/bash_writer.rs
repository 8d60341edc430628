//! Scripts that a seed writes, for bash and for our evaluator.

use super::random::Random;
use std::fmt::Write;

/// A writer of small scripts that bash runs without an error.
pub(super) struct Writer {
    random: Random,
    out: String,
    indent: usize,
    depth: u32,
    in_function: bool,
    loops: u32,
}

const WORDS: [&str; 12] =
    ["8", "16", "24", "7B", "13B", "true", "a/b.c", "--lr", "x-y_z", "1e-5", "bf16", "aXbXc"];

const SCALARS: [&str; 5] = ["A", "B", "C", "D", "E"];

const ARRAYS: [&str; 2] = ["X", "Y"];

const NUMBERS: [&str; 3] = ["N", "M", "K"];

impl Writer {
    pub(super) fn script(seed: u64) -> String {
        let mut writer = Writer {
            random: Random::new(seed),
            out: String::new(),
            indent: 0,
            depth: 0,
            in_function: false,
            loops: 0,
        };
        writer.line("ARGS=(start) x=X9");
        for name in SCALARS {
            let word = writer.simple_word();
            writer.line(&format!("{name}={word}"));
        }
        for name in NUMBERS {
            let number = writer.random.below(9) + 1;
            writer.line(&format!("{name}={number}"));
        }
        writer.line("X=(one 'two three' 4)");
        writer.line("Y=()");
        for _ in 0..writer.random.below(9) + 5 {
            writer.statement();
        }
        writer.line("ARGS+=(\"$A\" \"$B\" \"$C\" \"$D\" \"$E\" $N $M $K \"${X[@]}\" \"${Y[@]}\")");
        writer.out
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.random.below(choices.len() as u64) as usize]
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{}{text}", " ".repeat(self.indent));
    }

    fn block(&mut self, count: u64) {
        self.indent += 2;
        self.depth += 1;
        for _ in 0..=self.random.below(count) {
            self.statement();
        }
        self.depth -= 1;
        self.indent -= 2;
    }

    fn simple_word(&mut self) -> String {
        let word = self.pick(&WORDS);
        match self.random.below(4) {
            0 => format!("'{word} q'"),
            1 => format!("\"{word}\""),
            2 => format!("\"{word} \\\"{word}\\\" \\$x\""),
            _ => word.to_owned(),
        }
    }

    fn number(&mut self, depth: u32) -> String {
        let name = self.pick(&NUMBERS);
        if depth == 0 {
            return match self.random.below(4) {
                0 => format!("${name}"),
                1 => format!("${{{name}}}"),
                2 => name.to_owned(),
                _ => (self.random.below(20) + 1).to_string(),
            };
        }
        let (left, right) = (self.number(depth - 1), self.number(depth - 1));
        match self.random.below(8) {
            0 => format!("{left} * {right}"),
            1 => format!("({left} - {right})"),
            2 => format!("{left}%7"),
            3 => format!("{left} / 3"),
            4 => format!("{left} > {right} ? {left} : {right}"),
            5 => format!("({left} << 2) | {right}"),
            6 => format!("-{left} + (1 == 1 && {right} >= 3)"),
            _ => format!("{left} + {right}"),
        }
    }

    fn operation(&mut self, name: &str) -> String {
        let word = self.pick(&WORDS);
        match self.random.below(18) {
            0 => format!("${{{name}:-{word}}}"),
            1 => format!("${{{name}:+{word}}}"),
            2 => format!("${{{name}#*X}}"),
            3 => format!("${{{name}##*/}}"),
            4 => format!("${{{name}%.*}}"),
            5 => format!("${{{name}%%[0-9]*}}"),
            6 => format!("${{{name}/X/-}}"),
            7 => format!("${{{name}//[ab]/_}}"),
            8 => format!("${{{name}:1:3}}"),
            9 => format!("${{{name}: -2}}"),
            10 => format!("${{#{name}}}"),
            11 => format!("${{{name}^^}}"),
            12 => format!("${{{name},,}}"),
            13 => format!("${{UNSET_{name}:-$B}}"),
            14 => format!("${{UNSET_{name}-\"{word} z\"}}"),
            15 => format!("${{{name}/%c/end}}"),
            16 => format!("${{{name}/#a/start}}"),
            _ => format!("${{{name}}}"),
        }
    }

    fn array(&mut self) -> String {
        let name = self.pick(&ARRAYS);
        match self.random.below(8) {
            0 => format!("\"${{{name}[@]}}\""),
            1 => format!("${{{name}[@]}}"),
            2 => format!("\"${{{name}[*]}}\""),
            3 => format!("${{#{name}[@]}}"),
            4 => "\"${X[1]}\"".to_owned(),
            5 => format!("\"${{{name}[@]:1:2}}\""),
            6 => format!("\"pre${{{name}[@]}}post\""),
            _ => format!("${{{name}[*]}}"),
        }
    }

    fn command(&mut self) -> String {
        let word = self.word();
        match self.random.below(12) {
            0 => format!("$(echo {word})"),
            1 => format!("`echo {word}`"),
            2 => "$(seq 1 3)".to_owned(),
            3 => "$(basename \"/x/$A\" .c)".to_owned(),
            4 => format!("$(printf '%s-' {word})"),
            5 => format!("$(printf '%03d' $(( {} )))", self.number(1)),
            6 => "$(expr $N + $M)".to_owned(),
            7 => "$(echo \"$C\" | cut -d= -f2)".to_owned(),
            8 => "$(echo \"$D\" | tr a-z A-Z)".to_owned(),
            9 => "$(echo \"$A $B\" | wc -w)".to_owned(),
            10 => "$(echo \"$A $B\" | awk '{print $2}')".to_owned(),
            _ => "$(echo \"$E\" | sed 's/X/_/g')".to_owned(),
        }
    }

    fn word(&mut self) -> String {
        let scalar = self.pick(&SCALARS);
        if self.depth > 4 {
            return format!("\"${scalar}\"");
        }
        self.depth += 1;
        let word = match self.random.below(12) {
            0 => self.simple_word(),
            1 => format!("${scalar}"),
            2 => format!("\"${scalar}\""),
            3 => self.operation(scalar),
            4 => format!("\"{}\"", self.operation(scalar)),
            5 => self.array(),
            6 => format!("$(({}))", self.number(2)),
            7 => self.command(),
            8 => format!("\"{} {scalar}\"", self.command()),
            9 => format!("{{a,b{{1..3}}}}{}", self.pick(&["", "z"])),
            10 => format!("pre\"${scalar} mid\"'%end'"),
            _ => format!("--k=${scalar}"),
        };
        self.depth -= 1;
        word
    }

    fn condition(&mut self) -> String {
        let (a, b) = (self.pick(&SCALARS), self.pick(&SCALARS));
        let word = self.pick(&WORDS);
        let (n, m) = (self.number(0), self.number(1));
        match self.random.below(16) {
            0 => format!("[ \"${a}\" = \"{word}\" ]"),
            1 => format!("[[ ${a} == {word} ]]"),
            2 => format!("[[ ${a} == *[0-9]* ]]"),
            3 => "[ $N -gt $M ]".to_owned(),
            4 => format!("(( {n} < {m} ))"),
            5 => format!("[ -z \"${a}\" ]"),
            6 => format!("[[ -n ${a} && $K -le 5 ]]"),
            7 => format!("[ \"${a}\" != \"${b}\" -a $N -ne 3 ]"),
            8 => format!("[[ ! ${a} == ${b} || $M -eq 2 ]]"),
            9 => format!("[[ ${a} =~ ^[0-9]+B?$ ]]"),
            10 => format!("! [ \"${a}\" = \"${b}\" ]"),
            11 => format!("[[ \"${a}\" < \"${b}\" ]]"),
            12 => "[ ${#Y[@]} -eq 0 ] && [ $K -ge 2 ]".to_owned(),
            13 => format!("echo \"${a}\" | grep -q X"),
            14 => "[ ! -z \"$E\" ]".to_owned(),
            _ => format!("[[ ( ${a} == a* || $N -eq 1 ) && $M -lt 9 ]]"),
        }
    }

    fn statement(&mut self) {
        let simple = self.depth > 3 || self.out.len() > 3000;
        match self.random.below(if simple { 14 } else { 24 }) {
            0 | 1 => {
                let (name, word) = (self.pick(&SCALARS), self.word());
                // A brace expansion does not expand in an assignment, and so stays a plain word.
                self.line(&format!("{name}={word}"));
            }
            2 => {
                let (name, number) = (self.pick(&NUMBERS), self.number(2));
                self.line(&format!("{name}=$(( ({number}) % 50 ))"));
            }
            3 => {
                let (name, word) = (self.pick(&SCALARS), self.simple_word());
                self.line(&format!("{name}+={word}"));
            }
            4 | 5 => {
                let (one, two) = (self.word(), self.word());
                self.line(&format!("ARGS+=({one} {two})"));
            }
            6 => {
                let (name, one, two) = (self.pick(&ARRAYS), self.word(), self.simple_word());
                self.line(&format!("{name}=(\n  {one} # comment\n  {two}\n)"));
            }
            7 => {
                let (name, word) = (self.pick(&ARRAYS), self.word());
                self.line(&format!("{name}+=({word})"));
            }
            8 => {
                let (name, index, word) = (self.pick(&ARRAYS), self.random.below(4), self.simple_word());
                self.line(&format!("{name}[{index}]={word}"));
            }
            9 => {
                let name = self.pick(&NUMBERS);
                let text =
                    self.pick(&["((NAME++)) || true", "((NAME += 2)) || true", "let NAME=NAME*2%13 || true"]);
                self.line(&text.replace("NAME", name));
            }
            10 => {
                let (one, two) = (self.simple_word(), self.simple_word());
                self.line(&format!("read -r A B <<< \"$D {}\"", one.replace(['"', '\\', '\'', '$'], "")));
                self.line(&format!("printf -v C '%s|%s' {one} {two}"));
            }
            11 => {
                let word = self.word();
                self.line(&format!("export D=\"{}\"", word.replace('"', "")));
            }
            12 => {
                let (condition, word) = (self.condition(), self.simple_word());
                self.line(&format!("{condition} && A={word} || B={word}"));
            }
            13 => {
                let word = self.word();
                self.line(&format!("E=\"\n  --one {} \\\n  --two $A\n\"", word.replace('"', "")));
                self.line("ARGS+=($E)");
            }
            14 | 15 => {
                let condition = self.condition();
                self.line(&format!("if {condition}; then"));
                self.block(2);
                if self.random.below(2) == 0 {
                    let condition = self.condition();
                    self.line(&format!("elif {condition}; then"));
                    self.block(2);
                }
                if self.random.below(2) == 0 {
                    self.line("else");
                    self.block(2);
                }
                self.line("fi");
            }
            16 => {
                let word = self.pick(&SCALARS);
                self.line(&format!("case \"${word}\" in"));
                self.line("  7B|13B)");
                self.block(1);
                self.line("  ;;");
                self.line("  *X*) ");
                self.block(1);
                self.line("  ;;");
                self.line("  *)");
                self.block(1);
                self.line("esac");
            }
            17 | 18 => {
                let words = [self.word(), self.word()].join(" ");
                self.line(&format!("for w in {words}; do"));
                self.line("  ARGS+=(\"<$w>\")");
                if self.random.below(3) == 0 {
                    self.line("  [ \"$w\" = 8 ] && continue");
                    self.line("  [ ${#ARGS[@]} -gt 40 ] && break");
                }
                self.loops += 1;
                if self.loops < 4 {
                    self.block(1);
                }
                self.line("done");
            }
            19 => {
                let bound = self.random.below(4) + 1;
                let name = format!("i{}", self.depth);
                self.line(&format!("for (({name}=0; {name}<{bound}; {name}++)); do"));
                self.line(&format!("  ARGS+=($(({name}*2)))"));
                self.line("done");
            }
            20 => {
                let name = format!("c{}", self.depth);
                self.line(&format!("{name}={}", self.depth));
                self.line(&format!(
                    "while [ ${name} -lt 6 ]; do {name}=$(({name}+2)); ARGS+=(w${name}); done"
                ));
            }
            21 if !self.in_function => {
                let word = self.word();
                self.in_function = true;
                self.line("f() {");
                self.line("  local A=inner L=\"$1\"");
                self.line("  ARGS+=(\"f:$#\" \"$@\" ${2:-none} $L)");
                self.block(1);
                self.line("  shift");
                self.line("  ARGS+=(\"$*\")");
                self.line("}");
                self.in_function = false;
                self.line(&format!("f {word} \"$B\" last"));
            }
            22 => {
                let word = self.word();
                self.line(&format!("( A=sub; ARGS+=({word}) )"));
                self.line("eval \"ARGS+=(\\$N '$M' x)\"");
            }
            23 => {
                self.line("D=$(cat <<EOF\n$A and $((N+1)) \\$B\nEOF\n)");
                self.line("C=$(cat <<'EOF'\n$A\nEOF\n)");
            }
            _ => {
                let words = [self.word(), self.word()].join(" ");
                self.line(&format!("set -- {words}"));
                self.line("ARGS+=($# \"$1\" \"${@:2}\")");
            }
        }
    }
}
