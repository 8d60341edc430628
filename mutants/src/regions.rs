//! Which mutants a place in a source with switches belongs to: those that the compiler rejects there.

use std::collections::BTreeSet;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, ExprIf, ExprLit, Lit};

use crate::list::Place;

type Range = (Place, Place);

/// The places of switches and replacements in a source.
#[derive(Default)]
pub(crate) struct Regions {
    /// Calls of `on`.
    switches: Vec<(Place, u32)>,
    /// The replacement code that runs if a mutant is on.
    replaced: Vec<(Range, u32)>,
    /// Expressions, arms and statements around them.
    around: Vec<Range>,
}

impl Regions {
    /// Reads a source with switches.
    ///
    /// # Errors
    /// If it cannot be parsed.
    pub(crate) fn of(text: &str) -> syn::Result<Self> {
        let mut regions = Self::default();
        regions.visit_file(&syn::parse_file(text)?);
        Ok(regions)
    }

    /// The mutant whose replacement contains `place`, with `true`; otherwise those of the smallest enclosing expression that has
    /// any: then the switch itself does not compile.
    pub(crate) fn blamed(&self, place: Place) -> (BTreeSet<u32>, bool) {
        let is_in = |range: &Range| range.0 <= place && place <= range.1;
        let own = self.replaced.iter().filter(|(range, _)| is_in(range)).max_by_key(|(range, _)| range.0);
        if let Some((_, number)) = own {
            return (BTreeSet::from([*number]), true);
        }
        let inside = |range: &Range| -> BTreeSet<u32> {
            let here = self.switches.iter().filter(|(at, _)| range.0 <= *at && *at <= range.1);
            here.map(|(_, number)| *number).collect()
        };
        let mut around: Vec<&Range> = self.around.iter().filter(|range| is_in(range)).collect();
        around.sort_by_key(|range| std::cmp::Reverse(range.0));
        let least = around.into_iter().map(inside).find(|numbers| !numbers.is_empty());
        (least.unwrap_or_default(), false)
    }
}

fn range(span: Span) -> Range {
    let (start, end) = (span.start(), span.end());
    ((start.line, start.column + 1), (end.line, end.column + 1))
}

/// The number in `::mutant_switch::on(37u32)`.
fn number(call: &ExprCall) -> Option<u32> {
    let Expr::Path(path) = &*call.func else { return None };
    let Some(Expr::Lit(ExprLit { lit: Lit::Int(number), .. })) = call.args.first() else { return None };
    let first = path.path.segments.first()?;
    (first.ident == "mutant_switch").then(|| number.base10_parse().ok()).flatten()
}

impl<'ast> Visit<'ast> for Regions {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Some(number) = number(call) {
            self.switches.push((range(call.span()).0, number));
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_if(&mut self, of: &'ast ExprIf) {
        if let Expr::Call(call) = &*of.cond
            && let Some(number) = number(call)
        {
            self.replaced.push((range(of.then_branch.span()), number));
        }
        visit::visit_expr_if(self, of);
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        if !matches!(expr, Expr::If(_) | Expr::Block(_)) {
            self.around.push(range(expr.span()));
        }
        visit::visit_expr(self, expr);
    }
    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.around.push(range(arm.span()));
        visit::visit_arm(self, arm);
    }
    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        self.around.push(range(statement.span()));
        visit::visit_stmt(self, statement);
    }
    fn visit_item(&mut self, item: &'ast syn::Item) {
        self.around.push(range(item.span()));
        visit::visit_item(self, item);
    }
    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        self.around.push(range(item.span()));
        visit::visit_impl_item(self, item);
    }
}
