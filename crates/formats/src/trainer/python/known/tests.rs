use super::{Known, Options};
use crate::Argument;

fn known<'a>(text: &'a str, classes: &str, line: &str) -> Known<'a> {
    Known::new(
        text,
        Options::new(text, 0, classes, &super::super::names::Names::new(text), &Argument::split(line)),
    )
}

/// The value of an expression at the end of a program.
fn at_end(text: &str, classes: &str, line: &str, written: &str) -> Option<String> {
    known(text, classes, line).value(written, text.len() - 1)
}

const BRANCHES: &str = "
class A(TrainingArguments):
    bits: int = 16
    mode: str = field(default='lora')
def main():
    args = parse()
    dtype = torch.float16 if args.fp16 else torch.bfloat16
    rank = 8
    if args.mode == 'big':
        rank = 64
    elif args.bits in [4, 8]:
        rank = 32
    else:
        rank *= 2
    other = 1
    if unknown():
        other = 2
    same = 3
    if unknown():
        same = 3
    for each in range(4):
        last = each
    use(rank)
";

#[test]
fn branches_that_run_decide_what_a_variable_is() {
    let value = |line: &str, written: &str| at_end(BRANCHES, "A", line, written);
    assert_eq!(value("--bits 4", "rank").as_deref(), Some("32"));
    assert_eq!(value("--mode big", "rank").as_deref(), Some("64"));
    assert_eq!(value("--bf16 True", "rank").as_deref(), Some("16"));
    assert_eq!(value("--fp16 True", "dtype").as_deref(), Some("torch.float16"));
    assert_eq!(value("--bf16 True", "dtype").as_deref(), Some("torch.bfloat16"));
    // Without the line none of them is known.
    assert_eq!(value("", "rank"), None);
    assert_eq!((value("--bits 4", "other"), value("--bits 4", "last")), (None, None));
    assert_eq!(value("--bits 4", "same").as_deref(), Some("3"));
}

const OBJECTS: &str = "
@dataclass
class Config:
    rank: int = 16
    bias: str = field(default='none')
    names: list = f()
config = Config(bias='all')
lora: Dict[str, int] = {'r': 8, 'names': f()}
changed = {'r': 8}
changed['r'] = 4
perhaps = {'r': 8, 'bias': 'all'}
if unknown():
    perhaps['bias'] = 'none'
    perhaps['new'] = 1
use()
";
const FIRED: &str = "
def train(model: str = '', batch: int = 128, micro: int = 4, names: List[str] = ['q_proj', 'v_proj']):
    steps = batch // micro
    use(steps)

if __name__ == '__main__':
    fire.Fire(train)
";

#[test]
fn dictionaries_objects_and_parameters_are_followed() {
    let value = |written: &str| at_end(OBJECTS, "", "", written);
    assert_eq!(value("config.rank").as_deref(), Some("16"));
    assert_eq!(value("config.bias").as_deref(), Some("all"));
    assert_eq!((value("config.names"), value("config.absent")), (None, None));
    assert_eq!(value("lora['r'] * 2").as_deref(), Some("16"));
    assert_eq!((value("lora['names']"), value("changed['r']").as_deref()), (None, Some("4")));
    // A key that is set under a condition that nothing decides is open; the others are not.
    assert_eq!((value("perhaps['r']").as_deref(), value("perhaps['bias']")), (Some("8"), None));
    assert_eq!(value("perhaps['new']"), None);

    let known = known(FIRED, "", "--batch 64");
    let at = FIRED.find("use(").expect("use");
    assert_eq!(known.value("steps", at).as_deref(), Some("16"));
    assert_eq!(known.value("names", at).as_deref(), Some("[q_proj, v_proj]"));
}

/// artidoro/qlora `qlora.py:find_all_linear_names`.
const LISTS: &str = "
def names_of(args, model):
    cls = bnb.nn.Linear4bit if args.bits == 4 else torch.nn.Linear
    found = set()
    for name, module in model.named_modules():
        if isinstance(module, cls):
            found.add(name.split('.')[-1])
    if 'lm_head' in found:
        found.remove('lm_head')
    return list(found)

modules = names_of(args, model)
use()
";

#[test]
fn names_of_all_linear_layers_are_recognised_by_the_function_that_lists_them() {
    let modules = |text: &str| at_end(text, "", "", "modules");
    assert_eq!(modules(LISTS).as_deref(), Some("all"));
    // With the output layer, with embeddings, and with a function that is not in the text.
    assert_eq!(modules(&LISTS.replace("lm_head", "head")), None);
    assert_eq!(modules(&LISTS.replace("cls)", "(cls, Embedding))")), None);
    assert_eq!(modules("modules = names_of(args, model)\nuse()\n"), None);
}

const CALLS: &str = "
def main():
    if args.path:
        a()
    elif args.lora:
        b()
    else:
        c()
    try:
        d()
    except Error:
        e()
    if args.lora:
        if unknown is not None:
            f()
        else:
            g()
";

#[test]
fn calls_run_where_the_branches_around_them_do() {
    let known = known(CALLS, "", "--lora True --path None");
    let at = |call: &str| CALLS.find(&format!(" {call}()")).expect("call") + 1;
    let all = ["a", "b", "c", "d", "e", "f", "g"].map(|call| known.runs(CALLS, at(call), at(call) + 3));
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(all, [no, yes, no, yes, None, None, None]);
    assert_eq!(known.one_runs(at("f"), at("g")), yes);
    assert_eq!((known.one_runs(at("d"), at("e")), known.one_runs(at("b"), at("f"))), (None, None));
}
