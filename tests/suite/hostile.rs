//! Texts designed to take long or to grow without limit.

fn filled(unit: &str, size: usize) -> String {
    unit.repeat(size / unit.len() + 1)
}

/// Each with its name; the long ones have about `size` bytes.
pub(crate) fn texts(size: usize) -> Vec<(&'static str, String)> {
    let mut texts: Vec<(&'static str, String)> = [
        "(",
        ")",
        "{ ",
        "$(",
        "${",
        "`",
        "\"",
        "'",
        "\"$(",
        "((",
        "$((",
        "[[ ",
        "if ",
        "if true; then\n",
        "for x in ",
        "case x in a) ",
        "<",
        "<<A\n",
        "<<A <<B\n",
        "cat <<A\n",
        "<(",
        "a=(",
        "a[",
        "\\",
        "\\ ",
        "&",
        "|",
        ";",
        "!",
        "#",
        "\n",
        "f() ",
        "x=$x$x ",
        "\u{a0}",
        "a\u{0}b ",
        "$",
        "$\"",
        "$'",
        "{a,b}",
        "{1..9}",
        "it's ",
        "<a>(",
        "word ",
        "$x ",
        "$((1+1)) ",
        "echo $(echo x)\n",
        "x+=y\n",
        "a+=(b c)\n",
        "--option-name value ",
        "if [ $x = y ]; then z=1; fi\n",
        "-",
        "=",
        "\"a\nb\"\n",
        "#SBATCH --nodes=1\n",
        "```\n",
        "((((\n",
        "$(((\n",
        "\"${x:-",
        "eval \"",
        "torchrun --num-layers 1 --hidden-size 2 x.py\n",
        "日本語 ",
        "A='",
    ]
    .into_iter()
    .map(|unit| (unit, filled(unit, size)))
    .collect();
    let doubling = "x=aaaaaaaaaaaaaaaa\n".to_owned() + &"x=$x$x\n".repeat(60) + "echo $x";
    let bomb = format!("torchrun {} x.py", "{a,b}".repeat(60));
    let nested_loops = "for i in {1..1000}; do ".repeat(12) + "x=$((x+1))" + &"; done".repeat(12);
    let eval = "x='eval \"$x\"; eval \"$x\"'; eval \"$x\"";
    let arithmetic = format!("echo $(({}1{}))", "(".repeat(size / 5), ")".repeat(size / 5));
    let sums = format!("x=$((1{}))", "+1".repeat(size / 3));
    let stars = format!(
        "x={}\ncase $x in {}b) ;; esac\necho ${{x//{}b/c}} ${{x%%{}}}",
        "a".repeat(size / 5),
        "*a".repeat(100),
        "*a".repeat(40),
        "*a".repeat(40)
    );
    let regex = format!("x={}\n[[ $x =~ ^(a*)*(a*)*(a*)*b$ ]] && y=1", "a".repeat(size / 10));
    let array = "a=({1..4000})\n".to_owned() + &"a=(\"${a[@]}\" \"${a[@]}\")\n".repeat(30) + "echo ${a[@]}";
    let files = "echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx >> f\n".repeat(size / 40);
    let cats = "echo x > f\n".to_owned() + &"cat f f > g; cat g g > f\n".repeat(200);
    let printf = "printf -v x '%999999999d' 1; printf -v y '%s%s' $x $x\n".repeat(size / 500);
    let branches = (0..size / 50)
        .fold(String::new(), |text, at| text + &format!("if [ $v{at} = a ]; then w{at}=1; fi\n"));
    let arrays =
        format!("{}\ntorchrun x.py ${{a[@]}}", "a+=(--num-layers 1 --hidden-size 2)\n".repeat(size / 40));
    let sed = format!("x={}\ny=$(echo $x | sed 's/a*a*a*b/c/g; s/a/bb/g')\n", "a".repeat(size / 10));
    for (name, text) in [
        ("doubling value", doubling),
        ("brace bomb", bomb),
        ("nested braces", "{".repeat(size / 4) + &",a}".repeat(size / 5)),
        ("long loop", "for ((i=0; i<1000000000; i++)); do x=$((x+i)); done".to_owned()),
        ("brace loop", "for i in {1..1000000000}; do x=$i; done".to_owned()),
        ("seq loop", "for i in $(seq 1 1000000000); do x=$i; done".to_owned()),
        ("endless while", "i=0\nwhile [ $i -lt 1000000000 ]; do i=$((i+1)); done".to_owned()),
        ("while true", "while true; do x=1; done; until false; do x=2; done".to_owned()),
        ("nested loops", nested_loops),
        ("recursion", "f() { f; f; }; f".to_owned()),
        ("recursion with values", "f() { f \"$1$1\" \"$@\"; }; f aaaa".to_owned()),
        ("eval doubling", eval.to_owned()),
        ("bash -c recursion", "export X='bash -c \"$X\"; bash -c \"$X\"'; bash -c \"$X\"".to_owned()),
        ("source of itself", "source x.sh\ncat > x.sh <<'E'\nsource x.sh; source x.sh\nE\nsource x.sh".to_owned()),
        ("deep arithmetic", arithmetic),
        ("long sum", sums),
        ("variables naming each other", "a=b b=a; echo $((a)); c='c+c'; echo $((c))".to_owned()),
        ("star patterns", stars),
        ("regular expression", regex),
        ("doubling array", array),
        ("appended file", files),
        ("doubling file", cats),
        ("wide printf", printf),
        ("many branches", branches),
        ("growing array", arrays),
        ("sed", sed),
        ("huge index", "a[4294967295]=x; a[9999999999999]=y; a[-5]=z; a+=(q); echo ${a[@]: -9999999999:99999999999} ${a:9223372036854775807:9223372036854775807}".to_owned()),
        ("integer edges", "echo $((9223372036854775807+1)) $((-9223372036854775808/-1)) $((1<<999)) $((2**99999999999)) $((5%0)) $((0x)) $((99#1)) $((08)) ${x:0:-9223372036854775808}".to_owned()),
        ("prose", filled("It's a dream (isn't it?) that \"every\" GPU could've been used & paid for; don't you think? ", size)),
        ("lines of prose", filled("It's a dream (isn't it?) that \"every\" GPU could've been used & paid for;\ndon't you think? ", size)),
    ] {
        texts.push((name, text));
    }
    texts
}
