//! Integer identities. They index arenas; names from a trace travel separately as [`crate::Labels`].

use serde::{Deserialize, Serialize};

/// A request, numbered from 0 in the order of arrival at the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u32);

/// A session, numbered from 0 in the order of its first row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub u32);

/// A simulated worker, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(pub u32);

macro_rules! index {
    ($($id:ident),*) => {$(
        impl $id {
            /// The position in a table that is indexed by this id.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

index!(RequestId, SessionId, WorkerId);
