//! Whole numbers as text, which is most of what is written of a large trace.

/// `00` to `99`.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut at = 0;
    while at < 100 {
        pairs[at] = [b'0' + (at / 10) as u8, b'0' + (at % 10) as u8];
        at += 1;
    }
    pairs
};

/// The digits of 2^64-1.
const MOST: usize = 20;

/// Appends `number` to `text`.
pub(crate) fn push(text: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; MOST];
    let mut at = MOST;
    while number >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[number as usize]);
    } else {
        at -= 1;
        digits[at] = b'0' + number as u8;
    }
    text.extend_from_slice(&digits[at..]);
}

/// Appends `[1,2]`.
pub(crate) fn push_list(text: &mut Vec<u8>, numbers: &[u64]) {
    text.push(b'[');
    for (at, number) in numbers.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        push(text, *number);
    }
    text.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_they_are() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        let numbers = powers.flat_map(|power| [power - 1, power, power + 1]).chain([u64::MAX, 42, 99, 100]);
        for number in numbers {
            let mut text = Vec::new();
            push(&mut text, number);
            assert_eq!(text, number.to_string().as_bytes());
        }
        let mut text = Vec::new();
        push_list(&mut text, &[]);
        push_list(&mut text, &[7, 0, 123]);
        assert_eq!(text, b"[][7,0,123]");
    }
}
