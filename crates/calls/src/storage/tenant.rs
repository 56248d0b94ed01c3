//! Whose objects are: tenants by the salts in names, and what each has in memory.

use crate::object_name::ObjectName;
use crate::plan::Tenants;

/// Tenants with what they have in memory. A tenant without objects is forgotten, unless the plan names it.
#[derive(Default)]
pub(super) struct TenantBytes {
    numbers: Tenants,
    /// Names and bytes of each tenant.
    rows: Vec<(u64, u64)>,
}

impl TenantBytes {
    pub(super) fn new(numbers: Tenants) -> Self {
        Self { numbers, rows: Vec::new() }
    }

    /// The tenant of an object by its name, which gets a number.
    pub(super) fn named(&mut self, name: &[u8]) -> u32 {
        let salt = ObjectName::parse(name).map_or("", |name| name.cache_salt);
        let tenant = if salt.is_empty() { 0 } else { self.numbers.number(salt) };
        self.row(tenant).0 += 1;
        tenant
    }

    /// A name of a tenant has no number any more.
    pub(super) fn forget(&mut self, tenant: u32) {
        let row = self.row(tenant);
        row.0 -= 1;
        if *row == (0, 0) {
            self.numbers.forget(tenant);
        }
    }

    /// An object of a tenant is in memory.
    pub(super) fn enter(&mut self, tenant: u32, bytes: usize) {
        self.row(tenant).1 += bytes as u64;
    }

    /// It is not any more.
    pub(super) fn leave(&mut self, tenant: u32, bytes: usize) {
        self.row(tenant).1 -= bytes as u64;
    }

    /// Bytes in memory of each tenant by its salt, those without first.
    pub(super) fn all(&self) -> Vec<(String, u64)> {
        let bytes = |number: u32| self.rows.get(number as usize).map_or(0, |row| row.1);
        let mut all: Vec<(String, u64)> =
            self.numbers.all().map(|(salt, number)| (salt.to_owned(), bytes(number))).collect();
        all.sort();
        all
    }

    fn row(&mut self, tenant: u32) -> &mut (u64, u64) {
        let place = tenant as usize;
        if self.rows.len() <= place {
            self.rows.resize(place + 1, (0, 0));
        }
        &mut self.rows[place]
    }
}
