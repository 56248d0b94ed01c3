//! A small run, told event by event.
