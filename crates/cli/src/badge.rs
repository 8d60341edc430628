//! `shardscope badge`: a picture of one line that says whether a run fits, made without any server.

use std::process::ExitCode;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use shardscope::estimate::Verdict;
use shardscope::units::percent;

use crate::gate::{Figures, words};
use crate::input::Input;
use crate::output::{NO_PLAN, print, refuse, tell};

/// Height of the badge. Unit: pixel.
const HEIGHT: usize = 20;
/// Room on both sides of a text. Unit: pixel.
const PADDING: usize = 6;
/// Size of the letters. Unit: pixel.
const LETTERS: usize = 11;

/// `badge`.
#[derive(Args)]
pub(crate) struct BadgeArguments {
    #[command(flatten)]
    input: Input,
    /// What the left side says.
    #[arg(long, value_name = "TEXT", default_value = "shardscope")]
    label: String,
    /// How the badge is written.
    #[arg(long, value_enum, default_value_t = Format::Svg)]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// The picture.
    Svg,
    /// The picture as a data address, for the `src` of an image.
    Data,
}

/// Prints the badge; exits with 2 if there is no plan.
pub(crate) fn run(arguments: &BadgeArguments) -> ExitCode {
    let mut answer = match arguments.input.answer() {
        Ok(answer) => answer,
        Err(problem) => return refuse(&problem),
    };
    let Some((plan, found)) = answer.estimated() else {
        tell(&answer.obstacles_to_caller());
        return ExitCode::from(NO_PLAN);
    };
    let figures = Figures::new(&plan, &found);
    let svg = drawn(&arguments.label, &said(&figures), colour(figures.verdict));
    match arguments.format {
        Format::Svg => print(&svg),
        Format::Data => print(&format!("data:image/svg+xml;base64,{}\n", STANDARD.encode(svg))),
    }
    ExitCode::SUCCESS
}

/// The text on the right side: `fits 64 × H100-SXM · 41.0% MFU`, together with what the figures leave out.
fn said(figures: &Figures) -> String {
    let Figures { gpus, accelerator, .. } = figures;
    let verdict = words(figures.verdict);
    let line = format!("{verdict} {gpus} × {accelerator}{}", figures.marked);
    // A step that cannot run has no speed, and one on an accelerator without published runs has none that two words
    // could qualify.
    if figures.verdict == Verdict::OutOfMemory || !figures.calibrated {
        line
    } else {
        format!("{line} · {} MFU", percent(figures.mfu))
    }
}

/// The background of white letters, with a contrast of at least 4.5 to 1 (WCAG 2.1, 1.4.3).
const fn colour(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "#2e7d32",
        Verdict::Tight => "#9a5b00",
        Verdict::OutOfMemory => "#c62828",
    }
}

fn drawn(label: &str, value: &str, colour: &str) -> String {
    let (left, right) = (width(label), width(value));
    let (label, value) = (escaped(label), escaped(value));
    let whole = left + right;
    let text = |middle: usize, long: usize, text: &str| {
        // Between the paddings on both sides.
        let length = long - 2 * PADDING;
        format!(
            "<text x=\"{middle}\" y=\"14\" textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\">{text}</text>"
        )
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{whole}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{label}: {value}\">\n\
         <title>{label}: {value}</title>\n\
         <clipPath id=\"r\"><rect width=\"{whole}\" height=\"{HEIGHT}\" rx=\"3\"/></clipPath>\n\
         <g clip-path=\"url(#r)\"><rect width=\"{left}\" height=\"{HEIGHT}\" fill=\"#444\"/>\
         <rect x=\"{left}\" width=\"{right}\" height=\"{HEIGHT}\" fill=\"{colour}\"/></g>\n\
         <g fill=\"#fff\" text-anchor=\"middle\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"{LETTERS}\">{}{}</g>\n\
         </svg>\n",
        text(left / 2, left, &label),
        text(left + right / 2, right, &value),
    )
}

/// Width of a text with its padding. Unit: pixel. `textLength` forces every font to this width.
fn width(text: &str) -> usize {
    // Tenths of a pixel that Verdana's letters take at 11 pixels, by kind.
    let tenths = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ' ' | '·' | '(' | ')' | '\'' | '|' => 40,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 105,
        'A'..='Z' => 76,
        _ => 68,
    };
    text.chars().map(tenths).sum::<usize>().div_ceil(10) + 2 * PADDING
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // XML 1.0 has no control characters, not even escaped ones.
    for c in text.chars().filter(|c| !c.is_control()) {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c => out.push(c),
        }
    }
    out
}
