use super::super::tree::{Arm, CaseArm, CaseEnding, CommandForm, List, Part, TestToken, Word};
use super::cursor::Parser;
use super::word::Mode;
use shardscope_source::Code;

impl Parser<'_> {
    /// A compound command, if one starts here.
    pub(crate) fn compound(&mut self) -> Option<CommandForm> {
        let start = self.at;
        if self.peek() == Some(b'(') {
            // `((a))` is arithmetic and `((a); b)` two subshells.
            if self.peek_at(1) == Some(b'(') && self.closes_arithmetic(self.at) {
                self.at += 2;
                return Some(CommandForm::Arithmetic(self.arithmetic()));
            }
            self.at += 1;
            let body = self.nested_list();
            if !self.eat(")") {
                self.fail(Code::UnclosedGroup, "this parenthesis is never closed", start);
            }
            return Some(CommandForm::Subshell(body));
        }
        let word = self.keyword();
        if !matches!(word, "if" | "case" | "for" | "select" | "while" | "until" | "function" | "{" | "[[") {
            return None;
        }
        self.at += word.len();
        let kind = match word {
            "if" => self.conditional(start),
            "case" => self.case(start),
            "for" | "select" => self.for_loop(start),
            "while" => self.while_loop(start, false),
            "until" => self.while_loop(start, true),
            "function" => self.function(start),
            "[[" => CommandForm::Test(self.test_tokens(start)),
            _ => {
                let body = self.nested_list();
                self.expect("}", start, "this { is never closed by }");
                CommandForm::Group(body)
            }
        };
        Some(kind)
    }

    /// Consumes a reserved word, or reports what lacks it; at the end of the text its presence is assumed.
    fn expect(&mut self, word: &'static str, start: usize, message: &'static str) {
        self.skip_lines();
        if self.failed() || self.eat_keyword(word) {
            return;
        }
        let (end, ended) = (self.end, self.at_end());
        self.fail(Code::UnclosedCommand, message, start);
        if ended
            && self.strict == 0
            // A truncated script is read as far as it goes, with the diagnostic kept.
            && let Some(failure) = self.go_on(end)
        {
            self.report(failure);
        }
    }

    fn conditional(&mut self, start: usize) -> CommandForm {
        let mut arms = Vec::new();
        loop {
            self.skip_lines();
            let from = self.at;
            let condition = self.nested_list();
            let span = self.condition_span(from);
            self.expect("then", start, "this if has no then");
            let body = self.nested_list();
            arms.push(Arm { condition, span, body });
            if !self.eat_keyword("elif") {
                break;
            }
        }
        let otherwise = if self.eat_keyword("else") { Some(self.nested_list()) } else { None };
        self.expect("fi", start, "this if is never closed by fi");
        CommandForm::If { arms, otherwise }
    }

    /// The span from a byte up to here, without trailing separators.
    fn condition_span(&self, from: usize) -> shardscope_source::Span {
        let text = self.text.get(from..self.at).unwrap_or("");
        let length = text.trim_end_matches([' ', '\t', '\n', '\r', ';']).len();
        self.span(from, from + length)
    }

    fn case(&mut self, start: usize) -> CommandForm {
        self.skip_lines();
        let subject = self.word();
        self.expect("in", start, "this case has no in");
        let mut arms = Vec::new();
        loop {
            self.skip_lines();
            if self.eat_keyword("esac") {
                break;
            }
            if self.at_end() {
                // Also after a failure, when the text appears to end here: the loop must end too.
                self.expect("esac", start, "this case is never closed by esac");
                break;
            }
            arms.push(self.case_arm(start));
        }
        CommandForm::Case { subject, arms }
    }

    fn case_arm(&mut self, start: usize) -> CaseArm {
        // Bash allows `(pattern)` too.
        self.eat("(");
        let mut patterns = Vec::new();
        loop {
            self.skip_blanks();
            let mode = if self.opens_group() { Mode::Group } else { Mode::Plain };
            patterns.push(self.word_in(mode));
            self.skip_blanks();
            if self.eat(")") {
                break;
            }
            if !self.eat("|") {
                self.fail(Code::UnreadableCase, "a pattern and ) are expected in this case", start);
                break;
            }
        }
        let body = self.nested_list();
        let ending = if self.eat(";;&") {
            CaseEnding::Test
        } else if self.eat(";&") {
            CaseEnding::Fall
        } else {
            self.eat(";;");
            CaseEnding::Stop
        };
        CaseArm { patterns, body, ending }
    }

    fn for_loop(&mut self, start: usize) -> CommandForm {
        self.skip_blanks();
        if self.eat("((") {
            return self.for_arithmetic(start);
        }
        let from = self.at;
        self.at += self.identifier_length();
        let name = self.text.get(from..self.at).unwrap_or("").to_owned();
        if name.is_empty() {
            self.fail(Code::UnreadableLoop, "a variable is expected after for", start);
        }
        self.skip_lines();
        let mut words = None;
        if self.eat_keyword("in") {
            words = Some(self.words_to_line_end());
        }
        let body = self.loop_body(start);
        CommandForm::For { name, words, body }
    }

    fn words_to_line_end(&mut self) -> Vec<Word> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            let before = self.at;
            let word = self.word();
            if word.parts.is_empty() && self.at == before {
                return words;
            }
            words.push(word);
        }
    }

    fn for_arithmetic(&mut self, start: usize) -> CommandForm {
        let mut header: [Vec<Part>; 3] = Default::default();
        for (index, part) in header.iter_mut().enumerate() {
            *part = self.nested_parts(Mode::Arithmetic);
            // `for ((;;))`: all three parts may be empty, but not the separators between them.
            if index < 2 && !self.eat(";") {
                self.fail(Code::UnreadableLoop, "for (( needs three expressions separated by ;", start);
            }
        }
        if !self.eat("))") {
            self.fail(Code::UnreadableLoop, "for (( is never closed by ))", start);
        }
        let body = self.loop_body(start);
        CommandForm::ForArithmetic { header, body }
    }

    fn while_loop(&mut self, start: usize, until: bool) -> CommandForm {
        self.skip_lines();
        let from = self.at;
        let condition = self.nested_list();
        let span = self.condition_span(from);
        let body = self.loop_body(start);
        CommandForm::While { condition, span, until, body }
    }

    /// `do ... done`, or a group in braces.
    fn loop_body(&mut self, start: usize) -> List {
        self.skip_lines();
        self.eat(";");
        self.skip_lines();
        // `for ...; { ...; }`, which bash accepts although it is undocumented.
        if self.eat_keyword("{") {
            let body = self.nested_list();
            self.expect("}", start, "this loop is never closed by }");
            return body;
        }
        self.expect("do", start, "this loop has no do");
        let body = self.nested_list();
        self.expect("done", start, "this loop is never closed by done");
        body
    }

    fn function(&mut self, start: usize) -> CommandForm {
        self.skip_blanks();
        let word = self.word();
        let name = super::list::literal(&word.parts);
        if name.is_none() {
            self.fail(Code::UnreadableFunction, "a name is expected after function", start);
        }
        self.skip_blanks();
        if self.eat("(") {
            self.skip_blanks();
            if !self.eat(")") {
                self.fail(Code::UnreadableFunction, "() is expected after the name of a function", start);
            }
        }
        self.function_body(name.unwrap_or("").to_owned())
    }

    /// After `[[`: the tokens up to `]]`.
    fn test_tokens(&mut self, start: usize) -> Vec<TestToken> {
        let mut tokens = Vec::new();
        let mut regex = false;
        let mut pattern = false;
        loop {
            self.skip_lines();
            if self.eat_keyword("]]") {
                return tokens;
            }
            self.node();
            regex |= std::mem::take(&mut pattern) && self.opens_group();
            if regex {
                tokens.push(TestToken::Word(self.word_in(Mode::Regex)));
                regex = false;
                continue;
            }
            let token = match self.peek() {
                None => {
                    self.fail(Code::UnclosedCommand, "this [[ is never closed by ]]", start);
                    return tokens;
                }
                Some(b'&') if self.eat("&&") => TestToken::And,
                Some(b'|') if self.eat("||") => TestToken::Or,
                Some(b'(') => self.sign(TestToken::Open),
                Some(b')') => self.sign(TestToken::Close),
                Some(b'<') if !self.opens_angle() => self.sign(TestToken::Less),
                Some(b'>') => self.sign(TestToken::Greater),
                Some(b'!') if self.keyword() == "!" => self.sign(TestToken::Not),
                Some(_) => {
                    let before = self.at;
                    let word = self.word();
                    if self.at == before {
                        self.fail(Code::UnreadableTest, "this is not expected between [[ and ]]", before);
                    }
                    // Its right side may contain parentheses and bars that are not operators of the test.
                    let sign = super::list::literal(&word.parts);
                    regex = sign == Some("=~");
                    pattern = matches!(sign, Some("=" | "==" | "!="));
                    TestToken::Word(word)
                }
            };
            tokens.push(token);
        }
    }

    /// Whether the word here has a group such as `@(a|b)`, whose characters are not operators of the test.
    fn opens_group(&self) -> bool {
        let rest = self.bytes.get(self.at..self.end).unwrap_or(&[]);
        let word = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        let word = rest.get(..word).unwrap_or(&[]);
        // A closing parenthesis before an opening one ends the pattern of a `case`.
        let word = word.split(|byte| *byte == b')').next().unwrap_or(&[]);
        word.windows(2).any(|pair| pair[1] == b'(' && b"?*+@!".contains(&pair[0]))
    }

    fn sign(&mut self, token: TestToken) -> TestToken {
        self.at += 1;
        token
    }
}
