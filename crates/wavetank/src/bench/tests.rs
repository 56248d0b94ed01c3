//! What is typed, and the plan that comes of it.
