//! What every component may use: the state, and the way to change it.

use yew::prelude::*;

use super::action::Action;
use super::state::AppState;

/// The state as it is now. A component that uses it is redrawn at every change; panels take what they need as
/// properties instead, which are compared first.
pub(crate) type AppContext = UseReducerHandle<AppState>;

/// Passes an action to the reducer. The same for the lifetime of the page.
pub(crate) type Dispatch = Callback<Action>;

/// The way to change the state.
#[hook]
pub(crate) fn use_dispatch() -> Dispatch {
    // Outside of the page (a component drawn alone) actions go nowhere.
    use_context::<Dispatch>().unwrap_or_else(Callback::noop)
}

/// A callback that dispatches the result of `action`, ignoring its argument.
pub(crate) fn send<E>(dispatch: &Dispatch, action: impl Fn() -> Action + 'static) -> Callback<E> {
    let dispatch = dispatch.clone();
    Callback::from(move |_: E| dispatch.emit(action()))
}
