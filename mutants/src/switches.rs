//! Puts mutants into sources: each changed expression is placed next to its original, and a switch chooses between them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Arm, BinOp, Block, Expr, ExprRepeat, ExprStruct, ImplItemConst, ImplItemFn, ItemConst, ItemFn,
    ItemStatic, ReturnType, Signature, Stmt, TraitItemConst, Type, TypeArray, parse_quote,
};

use crate::list::{Genre, Mutant, Place};

/// Files with their switches: texts by path, and the numbers of the mutants in them.
pub(crate) struct Switched {
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) placed: BTreeSet<u32>,
}

/// Puts all of `mutants` that are not in `left_out` into the sources that `read` returns. Functions named in `constant` stay
/// `const`, without switches; all others lose `const`.
///
/// # Errors
/// If a source cannot be read or parsed.
pub(crate) fn place(
    mutants: &[Mutant],
    left_out: &BTreeSet<u32>,
    constant: &BTreeSet<String>,
    read: impl Fn(&str) -> anyhow::Result<String>,
) -> anyhow::Result<Switched> {
    let mut by_file: BTreeMap<&str, HashMap<Place, Vec<&Mutant>>> = BTreeMap::new();
    for mutant in mutants {
        // A file whose mutants are all left out is rewritten too.
        let at = by_file.entry(&mutant.file).or_default();
        if !left_out.contains(&mutant.number) {
            at.entry(mutant.start).or_default().push(mutant);
        }
    }
    let mut switched = Switched { files: BTreeMap::new(), placed: BTreeSet::new() };
    for (file, at) in by_file {
        let mut tree = syn::parse_file(&read(file)?)?;
        let mut placer = Placer { at, placed: &mut switched.placed, constant, depth: 0 };
        placer.visit_file_mut(&mut tree);
        switched.files.insert(file.to_owned(), prettyplease::unparse(&tree));
    }
    Ok(switched)
}

struct Placer<'a> {
    /// Those not placed yet, by the start of the code that they replace.
    at: HashMap<Place, Vec<&'a Mutant>>,
    placed: &'a mut BTreeSet<u32>,
    constant: &'a BTreeSet<String>,
    /// How many constants enclose the visitor's position: nothing can be switched there.
    depth: u32,
}

impl<'a> Placer<'a> {
    fn take(&mut self, span: Span, genre: Genre) -> Vec<&'a Mutant> {
        let start = span.start();
        match self.at.get_mut(&(start.line, start.column + 1)) {
            Some(here) if self.depth == 0 => here.extract_if(.., |mutant| mutant.genre == genre).collect(),
            _ => Vec::new(),
        }
    }

    fn on(&mut self, mutant: &Mutant) -> Expr {
        self.placed.insert(mutant.number);
        let number = mutant.number;
        parse_quote!(::mutant_switch::on(#number))
    }

    fn inside_a_constant(&mut self, visit: impl FnOnce(&mut Self)) {
        self.depth += 1;
        visit(self);
        self.depth -= 1;
    }

    /// Makes the function return another value at once.
    fn function(
        &mut self,
        signature: &mut Signature,
        block: &mut Block,
        visit: impl FnOnce(&mut Self, &mut Block),
    ) {
        if signature.constness.is_some() {
            if self.constant.contains(&signature.ident.to_string()) {
                return;
            }
            signature.constness = None;
        }
        let found =
            block.stmts.first().map(|first| self.take(first.span(), Genre::FnValue)).unwrap_or_default();
        visit(self, block);
        for mutant in found.into_iter().rev() {
            if self.iterator(&signature.output, mutant, block) {
                continue;
            }
            let Ok(value) = syn::parse_str::<Expr>(&mutant.replacement) else { continue };
            let on = self.on(mutant);
            let early: Stmt = parse_quote!( if #on { return #value; } );
            block.stmts.insert(0, early);
        }
    }

    /// A function that returns `impl Iterator` cannot return an iterator of another type, but it can end its own at once and
    /// chain another.
    fn iterator(&mut self, output: &ReturnType, mutant: &Mutant, block: &mut Block) -> bool {
        let is_iterator = matches!(output, ReturnType::Type(_, of) if matches!(**of, Type::ImplTrait(_)));
        let Some(Stmt::Expr(last, None)) = block.stmts.last_mut().filter(|_| is_iterator) else {
            return false;
        };
        let others: Expr = match mutant.replacement.strip_prefix("::std::iter::once(") {
            Some(value) => {
                let Ok(value) = syn::parse_str::<Expr>(&format!("({value}")) else { return false };
                parse_quote!( Some(#value) )
            }
            None if mutant.replacement == "::std::iter::empty()" => parse_quote!(None),
            None => return false,
        };
        let on = self.on(mutant);
        *last = parse_quote!({
            let __on = #on;
            (#last).take(if __on { 0 } else { usize::MAX }).chain(if __on { #others } else { None })
        });
        true
    }

    /// `a + b` as `match (a, b) { (l, r) => if on(1) { l - r } else { l + r } }`: both sides are evaluated once.
    fn binary(&mut self, expr: &mut Expr, found: &[&Mutant]) {
        let Expr::Binary(binary) = &*expr else { return };
        let (left, right, op) = (&binary.left, &binary.right, &binary.op);
        if has_let(left) || has_let(right) {
            return;
        }
        if let BinOp::And(_) | BinOp::Or(_) = op {
            let [mutant] = found else { return };
            let on = self.on(mutant);
            // The left side decides whether the right one is evaluated: `&&` evaluates it if the left holds, `||` if it does not.
            *expr = if matches!(op, BinOp::And(_)) {
                parse_quote!( ({ let __l: bool = #left; if __l == #on { __l } else { #right } }) )
            } else {
                parse_quote!( ({ let __l: bool = #left; if __l != #on { __l } else { #right } }) )
            };
            return;
        }
        let compares = matches!(
            op,
            BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_)
        );
        let assigns = assigns(op);
        let mut chain: Expr =
            if assigns { parse_quote!( { #left #op __r } ) } else { parse_quote!( { __l #op __r } ) };
        for mutant in found {
            let Ok(Expr::Binary(parsed)) = syn::parse_str::<Expr>(&format!("a {} b", mutant.replacement))
            else {
                continue;
            };
            let other = parsed.op;
            let on = self.on(mutant);
            chain = if assigns {
                parse_quote!( { if #on { #left #other __r } else #chain } )
            } else {
                parse_quote!( { if #on { __l #other __r } else #chain } )
            };
        }
        *expr = if compares {
            parse_quote!( (match (&(#left), &(#right)) { (__l, __r) => #chain }) )
        } else if assigns {
            parse_quote!( match (#right) { __r => #chain } )
        } else {
            parse_quote!( (match ((#left), (#right)) { (__l, __r) => #chain }) )
        };
    }
}

fn assigns(op: &BinOp) -> bool {
    use BinOp::{
        AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, DivAssign, MulAssign, RemAssign, ShlAssign,
        ShrAssign, SubAssign,
    };
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitXorAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(inner) => has_let(&inner.expr),
        _ => false,
    }
}

impl VisitMut for Placer<'_> {
    fn visit_item_const_mut(&mut self, item: &mut ItemConst) {
        self.inside_a_constant(|inner| visit_mut::visit_item_const_mut(inner, item));
    }
    fn visit_impl_item_const_mut(&mut self, item: &mut ImplItemConst) {
        self.inside_a_constant(|inner| visit_mut::visit_impl_item_const_mut(inner, item));
    }
    fn visit_trait_item_const_mut(&mut self, item: &mut TraitItemConst) {
        self.inside_a_constant(|inner| visit_mut::visit_trait_item_const_mut(inner, item));
    }
    fn visit_item_static_mut(&mut self, item: &mut ItemStatic) {
        self.inside_a_constant(|inner| visit_mut::visit_item_static_mut(inner, item));
    }
    fn visit_type_array_mut(&mut self, array: &mut TypeArray) {
        self.inside_a_constant(|inner| visit_mut::visit_type_array_mut(inner, array));
    }
    fn visit_expr_repeat_mut(&mut self, repeat: &mut ExprRepeat) {
        self.visit_expr_mut(&mut repeat.expr);
        self.inside_a_constant(|inner| inner.visit_expr_mut(&mut repeat.len));
    }

    fn visit_item_fn_mut(&mut self, item: &mut ItemFn) {
        self.function(&mut item.sig, &mut item.block, |inner, block| inner.visit_block_mut(block));
    }
    fn visit_impl_item_fn_mut(&mut self, item: &mut ImplItemFn) {
        self.function(&mut item.sig, &mut item.block, |inner, block| inner.visit_block_mut(block));
    }
    fn visit_trait_item_fn_mut(&mut self, item: &mut syn::TraitItemFn) {
        if let Some(block) = &mut item.default {
            self.function(&mut item.sig, block, |inner, block| inner.visit_block_mut(block));
        }
    }

    fn visit_arm_mut(&mut self, arm: &mut Arm) {
        let deleted = self.take(arm.span(), Genre::MatchArm);
        let guard = arm.guard.as_ref().map(|(_, guard)| guard.span());
        let guards = guard.map(|guard| self.take(guard, Genre::MatchArmGuard)).unwrap_or_default();
        visit_mut::visit_arm_mut(self, arm);
        if let Some((_, guard)) = &mut arm.guard
            && !has_let(guard)
        {
            for mutant in guards {
                let (on, old) = (self.on(mutant), (**guard).clone());
                **guard = if mutant.replacement == "true" {
                    parse_quote!( (#on || (#old)) )
                } else {
                    parse_quote!( (!#on && (#old)) )
                };
            }
        }
        for mutant in deleted {
            let on = self.on(mutant);
            match &mut arm.guard {
                Some((_, guard)) => {
                    let old = (**guard).clone();
                    **guard = parse_quote!( !#on && #old );
                }
                None => arm.guard = Some((Default::default(), Box::new(parse_quote!( !#on )))),
            }
        }
    }

    /// A field takes the value that it has in the base expression after `..`.
    fn visit_expr_struct_mut(&mut self, of: &mut ExprStruct) {
        let spans: Vec<Span> = of.fields.iter().map(|field| field.span()).collect();
        let found: Vec<_> = spans.into_iter().map(|span| self.take(span, Genre::StructField)).collect();
        visit_mut::visit_expr_struct_mut(self, of);
        let Some(rest) = of.rest.clone() else { return };
        let path = of.path.clone();
        for (field, found) in of.fields.iter_mut().zip(found) {
            let (member, old) = (&field.member, &field.expr);
            let Some(mutant) = found.first() else { continue };
            let base: Expr = match &*rest {
                Expr::Call(call) if call.args.is_empty() => {
                    parse_quote!( <#path as ::core::default::Default>::default().#member )
                }
                rest => parse_quote!( (#rest).#member.clone() ),
            };
            let on = self.on(mutant);
            let new = parse_quote!( if #on { #base } else { #old } );
            field.colon_token = Some(Default::default());
            field.expr = new;
        }
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let found = match expr {
            Expr::Binary(binary) => self.take(binary.op.span(), Genre::BinaryOperator),
            Expr::Unary(unary) => self.take(unary.op.span(), Genre::UnaryOperator),
            _ => Vec::new(),
        };
        visit_mut::visit_expr_mut(self, expr);
        match (&*expr, found.as_slice()) {
            (_, []) => {}
            (Expr::Binary(_), found) => self.binary(expr, found),
            (Expr::Unary(unary), [mutant]) => {
                let (inner, op) = (&unary.expr, &unary.op);
                let on = self.on(mutant);
                *expr = parse_quote!( (match (#inner) { __v => if #on { __v } else { #op __v } }) );
            }
            _ => {}
        }
    }
}
