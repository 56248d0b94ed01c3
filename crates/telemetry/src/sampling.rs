//! Which traces are exported, and the header they come in with.

use wavetank_model::TraceParent;

/// Shares of what is exported, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Of requests that do not say themselves.
    pub requests: f64,
    /// Of connections of Redis clients.
    pub connections: f64,
    /// Of the commands of those connections.
    pub commands: f64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { requests: 1.0, connections: 1.0, commands: 0.01 }
    }
}

/// Bits of a trace id that are random (W3C Trace Context level 2).
const RANDOM_BITS: u32 = 56;

/// Whether a trace is in the share: its random bits decide, so that every process decides alike
/// (OpenTelemetry's consistent probability sampling).
pub(crate) fn is_sampled(trace_id: [u8; 16], share: f64) -> bool {
    let random = u128::from_be_bytes(trace_id) as u64 & ((1 << RANDOM_BITS) - 1);
    random as f64 >= (1.0 - share) * 2f64.powi(RANDOM_BITS as i32)
}

/// Reads the value of a `traceparent` header (W3C Trace Context): `00-<trace>-<span>-<flags>`. What is
/// malformed is none, as the specification asks.
pub fn traceparent(header: &str) -> Option<TraceParent> {
    let mut parts = header.trim().split('-');
    let [version, trace, span, flags] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    let [version] = bytes::<1>(version)?;
    if version == 0xff || (version == 0 && parts.next().is_some()) {
        return None;
    }
    let (trace_id, span_id, [flags]) = (bytes::<16>(trace)?, bytes::<8>(span)?, bytes::<1>(flags)?);
    let is_there = trace_id != [0; 16] && span_id != [0; 8];
    is_there.then_some(TraceParent { trace_id, span_id, sampled: flags & 1 == 1 })
}

/// Lower-case hexadecimal digits, and nothing else.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !digits.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, place) in bytes.iter_mut().zip(0..) {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Ids;

    /// Broken by: a share of something else, or a trace that is in a small share and not in a larger one.
    #[test]
    fn the_trace_id_decides() {
        let mut ids = Ids::seeded(1);
        let traces: Vec<_> = (0..20_000).map(|_| ids.trace()).collect();
        let mut before = vec![false; traces.len()];
        for share in [0.0, 0.01, 0.25, 0.5, 1.0] {
            let now: Vec<bool> = traces.iter().map(|&id| is_sampled(id, share)).collect();
            let count = now.iter().filter(|taken| **taken).count() as f64;
            assert!((count / 20_000.0 - share).abs() < 0.01, "{share}: {count}");
            assert!(before.iter().zip(&now).all(|(before, now)| *now || !before), "{share}");
            before = now;
        }
    }

    #[test]
    fn a_header_is_read_or_ignored() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = traceparent(good).unwrap();
        assert_eq!(parent.trace_id[..2], [0x4b, 0xf9]);
        assert_eq!(parent.span_id, [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
        assert!(parent.sampled);
        assert!(!traceparent(&good.replace("-01", "-00")).unwrap().sampled);
        assert!(traceparent(&good.replace("00-4b", "cc-4b")).is_some(), "a later version");
        assert!(traceparent(&format!("{}-more", good.replace("00-4b", "cc-4b"))).is_some());
        for bad in [
            "",
            "00",
            &good.replace("00-4b", "ff-4b"),
            &format!("{good}-more"),
            &good.to_uppercase(),
            &good.replace("4bf9", "4bf"),
            &good.replace("4bf9", "4bé"),
            &good.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &good.replace("00f067aa0ba902b7", &"0".repeat(16)),
        ] {
            assert_eq!(traceparent(bad), None, "{bad}");
        }
    }
}
