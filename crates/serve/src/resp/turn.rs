//! How a connection's turn ends.

/// Why no further command is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// There is none.
    Hungry,
    /// The client takes no replies.
    Full,
    /// One waits for an object.
    Waiting,
    /// It was the last one.
    Leaving,
}

/// What a connection does after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It waits until something happens.
    Idle,
    /// It has more to do.
    Again,
    /// It is gone.
    Over,
}
