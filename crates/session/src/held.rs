//! Something shared that never changes.

use std::rc::Rc;

/// A shared value; two are the same when they are one and the same, so that comparing them costs nothing.
#[derive(Debug)]
pub struct Held<T>(Rc<T>);

impl<T> Held<T> {
    /// `value`, held.
    pub fn new(value: T) -> Self {
        Self(Rc::new(value))
    }
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> std::ops::Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
