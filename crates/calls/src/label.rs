//! What an eviction policy is told of a key besides its number: whose it is, and what it is known by once
//! its number means something else.

use wavetank_cache::eviction::Resident;
use wavetank_model::{KeyId, Result};

use crate::grow::grow;
use crate::plan::Plan;

/// Nobody's tenant: a pass makes room for no one.
const NOBODY: u32 = u32::MAX;

/// What a key is to a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// Whose it is; 0 where nobody is named.
    pub tenant: u32,
    /// How it is known again after it left.
    pub fingerprint: u64,
}

/// Labels by key. Where nobody gives any, a key's number says it all, and nothing is kept.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    tenants: Vec<u32>,
    fingerprints: Vec<u64>,
    /// A policy knows keys again.
    remembers: bool,
}

impl Labels {
    /// Empty, as the policies of `plan` need them.
    pub(crate) fn of(plan: &Plan) -> Result<Self> {
        Ok(Self { remembers: plan.remembers()?, ..Self::default() })
    }

    pub(crate) fn give(&mut self, key: KeyId, label: Label) {
        if label.tenant != self.tenant(key) {
            set(&mut self.tenants, key, label.tenant);
        }
        if self.remembers {
            set(&mut self.fingerprints, key, label.fingerprint);
        }
    }

    pub(crate) fn give_tenant(&mut self, key: KeyId, tenant: u32) {
        if tenant != self.tenant(key) {
            set(&mut self.tenants, key, tenant);
        }
    }

    pub(crate) fn tenant(&self, key: KeyId) -> u32 {
        self.tenants.get(key.0 as usize).copied().unwrap_or(0)
    }

    /// An object of `key` that takes so much, as a policy knows it.
    pub(crate) fn resident(&self, key: KeyId, bytes: u64) -> Resident {
        // 0 is nobody, for whom a pass makes room.
        let number = || u64::from(key.0) + 1;
        let given = self.fingerprints.get(key.0 as usize).copied();
        let fingerprint = given.filter(|print| *print != 0).unwrap_or_else(number);
        Resident { fingerprint, bytes, tenant: self.tenant(key) }
    }

    /// For whom a pass makes room.
    pub(crate) fn nobody() -> Resident {
        Resident { fingerprint: 0, bytes: 0, tenant: NOBODY }
    }
}

fn set<T: Clone + Default>(table: &mut Vec<T>, key: KeyId, value: T) {
    let at = key.0 as usize;
    grow(table, at + 1);
    table[at] = value;
}
