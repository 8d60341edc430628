//! Elements, built piece by piece. yew's `html!` unfolds into hundreds of bytes of code for every element; a call of
//! these costs a dozen, and the page is weighed.

use std::rc::Rc;

use yew::AttrValue;
use yew::html::Html;
use yew::virtual_dom::{Key, VNode, VTag, VText};

use crate::app::act::{Act, On};
use crate::app::desk::Desk;
use crate::app::words;

/// An element on its way, or several things in a row where it has no name.
pub(crate) struct Tag(Rc<VTag>);

/// An element: its name, then perhaps a dot and its classes, then perhaps `#` and its id: `section.panel map#map`.
#[inline(never)]
pub(crate) fn tag(shape: &'static str) -> Tag {
    let (shape, id) = shape.split_once('#').unwrap_or((shape, ""));
    let (name, class) = shape.split_once('.').unwrap_or((shape, ""));
    let mut tag = Tag(Rc::new(VTag::new(name)));
    if !class.is_empty() {
        tag = tag.set("class", class);
    }
    if !id.is_empty() {
        tag = tag.set("id", id);
    }
    tag
}

/// Nothing, or the start of several things in a row.
pub(crate) fn group() -> Tag {
    tag("")
}

/// A text alone.
pub(crate) fn text(words: String) -> Tag {
    group().say(words)
}

impl Tag {
    #[inline(never)]
    fn attribute(mut self, name: &'static str, mut value: AttrValue) -> Self {
        // English is what the engine speaks: nothing of this is left of the page then.
        if !words::SAYINGS.is_empty() && matches!(name, "aria-label" | "title" | "placeholder" | "alt") {
            value = AttrValue::from(words::spoken(value.to_string()));
        }
        if let Some(tag) = Rc::get_mut(&mut self.0) {
            match name {
                // The text of a field is a property, which the reader changes.
                "value" if matches!(tag.tag(), "input" | "textarea") => tag.set_value(value),
                _ => tag.add_attribute(name, value),
            }
        }
        self
    }

    #[inline(never)]
    fn push(mut self, node: VNode) -> Self {
        if let Some(tag) = Rc::get_mut(&mut self.0) {
            tag.add_child(node);
        }
        self
    }

    /// An attribute that never changes.
    #[inline(never)]
    pub(crate) fn set(self, name: &'static str, value: &'static str) -> Self {
        self.attribute(name, AttrValue::Static(value))
    }

    /// An attribute.
    #[inline(never)]
    pub(crate) fn attr(self, name: &'static str, value: String) -> Self {
        self.attribute(name, AttrValue::from(value))
    }

    /// An attribute with a whole number.
    #[inline(never)]
    pub(crate) fn count(self, name: &'static str, value: u64) -> Self {
        self.attr(name, value.to_string())
    }

    /// Four lengths in CSS pixels or anything else that is whole.
    #[inline(never)]
    pub(crate) fn counts(self, names: &[&'static str], values: &[u32]) -> Self {
        names.iter().zip(values).fold(self, |tag, (name, value)| tag.count(name, (*value).into()))
    }

    /// An attribute that is there or not.
    #[inline(never)]
    pub(crate) fn flag(self, name: &'static str, there: bool) -> Self {
        if there { self.set(name, name) } else { self }
    }

    /// An attribute that says `true` or `false`.
    #[inline(never)]
    pub(crate) fn says(self, name: &'static str, so: bool) -> Self {
        self.set(name, if so { "true" } else { "false" })
    }

    /// Whether a radio button is the chosen one.
    #[inline(never)]
    pub(crate) fn checked(mut self, checked: bool) -> Self {
        if let Some(tag) = Rc::get_mut(&mut self.0) {
            tag.set_checked(checked);
        }
        self
    }

    /// What it is told apart by from the others around it.
    #[inline(never)]
    pub(crate) fn key(mut self, key: String) -> Self {
        if let Some(tag) = Rc::get_mut(&mut self.0) {
            tag.key = Some(Key::from(key));
        }
        self
    }

    /// Words in it.
    #[inline(never)]
    pub(crate) fn text(self, words: &'static str) -> Self {
        if !words::SAYINGS.is_empty() {
            return self.say(words.to_owned());
        }
        self.push(VText::new(words).into())
    }

    /// Words in it that were made.
    #[inline(never)]
    pub(crate) fn say(self, mut words: String) -> Self {
        if !words::SAYINGS.is_empty() {
            words = words::spoken(words);
        }
        self.push(VText::new(words).into())
    }

    /// Something in it.
    #[inline(never)]
    pub(crate) fn child(self, child: Tag) -> Self {
        self.push(child.into())
    }

    /// Something in it or, in its place, nothing: yew tells children apart by their places, so that what stands around
    /// it stays as it is.
    #[inline(never)]
    pub(crate) fn maybe(self, child: Option<Tag>) -> Self {
        self.child(child.unwrap_or_else(group))
    }

    /// One of these for each of `all` in it.
    pub(crate) fn each<T>(self, all: &[T], mut draw: impl FnMut(&T) -> Tag) -> Self {
        let mut list = group();
        for one in all {
            list = list.child(draw(one));
        }
        self.child(list)
    }

    /// An element with words in it.
    #[inline(never)]
    pub(crate) fn with(self, shape: &'static str, words: &'static str) -> Self {
        self.child(tag(shape).text(words))
    }

    /// An element with words in it that were made.
    #[inline(never)]
    pub(crate) fn saying(self, shape: &'static str, words: String) -> Self {
        self.child(tag(shape).say(words))
    }

    /// A component of yew in it.
    pub(crate) fn component(self, node: VNode) -> Self {
        self.push(node)
    }

    /// What happens when it hears `event`, as `click`.
    #[inline(never)]
    pub(crate) fn on(mut self, desk: &Desk, event: &'static str, act: Act) -> Self {
        if let Some(tag) = Rc::get_mut(&mut self.0) {
            tag.add_listener(On::hear(desk, event, act));
        }
        self
    }

    /// What happens when it is pressed.
    #[inline(never)]
    pub(crate) fn press(self, desk: &Desk, act: Act) -> Self {
        self.on(desk, "click", act)
    }

    /// Whether nothing is in it yet.
    pub(crate) fn is_empty(&self) -> bool {
        match self.0.children() {
            Some(VNode::VList(list)) => list.is_empty(),
            _ => false,
        }
    }
}

impl From<Tag> for Html {
    fn from(Tag(tag): Tag) -> Self {
        if tag.tag().is_empty() {
            return Rc::try_unwrap(tag).ok().and_then(VTag::into_children).unwrap_or_default();
        }
        VNode::VTag(tag)
    }
}
