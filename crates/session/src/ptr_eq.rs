//! A shared value that never changes, compared by identity.

use std::rc::Rc;

/// A shared value; two are equal when they are one and the same, so that comparing them costs nothing.
#[derive(Debug)]
pub struct PtrEq<T>(Rc<T>);

impl<T> PtrEq<T> {
    /// `value`, shared.
    pub fn new(value: T) -> Self {
        Self(Rc::new(value))
    }
}

impl<T> Clone for PtrEq<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> PartialEq for PtrEq<T> {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> std::ops::Deref for PtrEq<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
