//! A shared value that never changes, compared by identity.

use std::rc::Rc;

/// Shared ownership of a value that never changes; two are equal only if they are the same allocation.
#[derive(Debug)]
pub struct PtrEq<T>(Rc<T>);

impl<T> PtrEq<T> {
    /// `value`, shared.
    pub fn new(value: T) -> Self {
        Self(Rc::new(value))
    }
}

// Implemented by hand, since a derive would require `T: Clone`, and cloning only shares.
impl<T> Clone for PtrEq<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> PartialEq for PtrEq<T> {
    fn eq(&self, other: &Self) -> bool {
        // Components are redrawn when their properties differ: comparing full reports at every keystroke would take
        // longer than drawing them.
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> std::ops::Deref for PtrEq<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
