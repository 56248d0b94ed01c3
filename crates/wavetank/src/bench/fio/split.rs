//! Sizes of requests as fio's `bssplit`: whole percents that add up to 100, at most 64 of them.

use std::fmt;

/// Sizes that fewer requests have are put together with their neighbours.
const LEAST_PERCENT: f64 = 3.0;
const BLOCK: u64 = 4096;

/// Bytes and percent of requests, by size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Split(pub(super) Vec<(u64, u64)>);

/// Neighbouring sizes.
#[derive(Clone, Copy, Default)]
struct Group {
    bytes: f64,
    count: f64,
}

impl Split {
    /// Of sizes in ascending order and how often each was there.
    ///
    /// Rare sizes become one of their mean. Percents are rounded by their running sum, so that the mean size
    /// is off by half a percent of the range of sizes at most.
    pub(super) fn of(sizes: impl Iterator<Item = (u64, u64)>) -> Self {
        let sizes: Vec<(u64, u64)> = sizes.collect();
        let all = sizes.iter().map(|(_, count)| *count).sum::<u64>() as f64;
        let least = all * LEAST_PERCENT / 100.0;
        let mut groups: Vec<Group> = Vec::new();
        let mut open = Group::default();
        for (size, count) in sizes {
            let count = count as f64;
            // A size that many have stands for itself.
            if count >= least && open.count > 0.0 {
                groups.push(std::mem::take(&mut open));
            }
            open.bytes += size as f64 * count;
            open.count += count;
            if open.count >= least {
                groups.push(std::mem::take(&mut open));
            }
        }
        groups.extend(Some(open).filter(|open| open.count > 0.0));
        Self(percents(&groups, all))
    }
}

fn percents(groups: &[Group], all: f64) -> Vec<(u64, u64)> {
    let mut split: Vec<(u64, u64)> = Vec::new();
    let (mut sum, mut given) = (0.0, 0);
    for group in groups {
        sum += group.count;
        let until = (100.0 * sum / all).round() as u64;
        let size = ((group.bytes / group.count / BLOCK as f64).round() as u64).max(1) * BLOCK;
        match split.last_mut() {
            Some((last, percent)) if *last == size => *percent += until - given,
            _ if until > given => split.push((size, until - given)),
            _ => {}
        }
        given = until;
    }
    split
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.0.iter().map(|(bytes, percent)| format!("{}k/{percent}", bytes / 1024));
        f.write_str(&rows.collect::<Vec<_>>().join(":"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(sizes: &[(u64, u64)]) -> String {
        Split::of(sizes.iter().map(|(kib, count)| (kib * 1024, *count))).to_string()
    }

    #[test]
    fn sizes_become_percents() {
        assert_eq!(split(&[(1024, 7)]), "1024k/100");
        assert_eq!(split(&[(4, 1), (64, 1), (1024, 2)]), "4k/25:64k/25:1024k/50");
        assert_eq!(split(&[(4, 1), (1024, 2)]), "4k/33:1024k/67");
        // Two rare sizes are one of their mean; a few in ten thousand are none.
        assert_eq!(split(&[(4, 10), (8, 10), (1024, 980)]), "8k/2:1024k/98");
        assert_eq!(split(&[(4, 1), (1024, 9999)]), "1024k/100");
    }

    proptest::proptest! {
        /// Broken by: rounding every percent on its own, or a group that keeps its first size.
        #[test]
        fn percents_add_up_and_bytes_are_kept(
            counts in proptest::collection::vec(0u64..5000, 1..261),
            full in 0u64..1_000_000,
        ) {
            let mut sizes: Vec<(u64, u64)> =
                counts.iter().enumerate().map(|(at, count)| ((at as u64 + 1) * BLOCK, *count)).collect();
            sizes.push((300 * BLOCK, full));
            sizes.retain(|(_, count)| *count > 0);
            proptest::prop_assume!(!sizes.is_empty());
            let Split(split) = Split::of(sizes.iter().copied());
            proptest::prop_assert_eq!(split.iter().map(|(_, percent)| percent).sum::<u64>(), 100);
            proptest::prop_assert!(split.len() <= 64, "{}", split.len());
            proptest::prop_assert!(split.is_sorted_by(|a, b| a.0 < b.0) && split.iter().all(|row| row.1 > 0));
            let all: u64 = sizes.iter().map(|(_, count)| count).sum();
            let mean = sizes.iter().map(|(size, count)| (size * count) as f64).sum::<f64>() / all as f64;
            let told = split.iter().map(|(size, percent)| (size * percent) as f64).sum::<f64>() / 100.0;
            let range = (sizes[sizes.len() - 1].0 - sizes[0].0) as f64;
            proptest::prop_assert!((told - mean).abs() <= 0.005 * range + BLOCK as f64, "{told} {mean}");
        }
    }
}
