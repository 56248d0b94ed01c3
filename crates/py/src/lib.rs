//! The native half of the Python package: the facade's functions with Python's values, errors and signals.
//!
//! No decision is made here. Arguments come as dictionaries of flags by name, results go as dictionaries,
//! tables as Arrow streams; `python/wavetank` gives them signatures and manners.
#![deny(unsafe_code)]

mod bench;
mod columns;
mod command;
mod compare;
mod executor;
mod failure;
mod pictures;
mod points;
mod replay;
mod requests;
mod sweep;
mod trace;
mod validate;
mod value;
mod waiting;

/// What `wavetank` is made of.
#[pyo3::pymodule]
mod _wavetank {
    #[pymodule_export]
    use super::bench::bench;
    #[pymodule_export]
    use super::command::main;
    #[pymodule_export]
    use super::compare::compare;
    #[pymodule_export]
    use super::failure::as_arguments;
    #[pymodule_export]
    use super::pictures::{page, plot, plot_names, plot_png, to_json};
    #[pymodule_export]
    use super::points::Points;
    #[pymodule_export]
    use super::replay::{replay, replay_flags};
    #[pymodule_export]
    use super::requests::Requests;
    #[pymodule_export]
    use super::sweep::{run_point, sweep, sweep_json};
    #[pymodule_export]
    use super::trace::Trace;
    #[pymodule_export]
    use super::validate::validate;

    /// The version of the core.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python calls it so")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
