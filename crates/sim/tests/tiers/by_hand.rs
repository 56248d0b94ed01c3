//! Small cases whose times are known.
