//! `COMMAND`: which commands there are.

use super::{ALL, Call, KeyPlaces, Outcome, Reply, Row, find, unknown_part, wrong_count};

/// `COMMAND [COUNT | DOCS [name …] | INFO [name …] | LIST]`.
pub(super) fn command(call: &mut Call<'_>) -> Outcome {
    let rows = || ALL.iter().collect::<Vec<_>>();
    if call.args.len() == 1 {
        tell(call, &rows().into_iter().map(Some).collect::<Vec<_>>());
        return Ok(());
    }
    let named: Vec<Option<&Row>> = call.args.iter(2).map(|name| find(name, 0).map(|row| &ALL[row])).collect();
    if call.args.is(1, "INFO") {
        let all = if named.is_empty() { rows().into_iter().map(Some).collect() } else { named };
        tell(call, &all);
    } else if call.args.is(1, "DOCS") {
        document(call, &if named.is_empty() { rows() } else { named.into_iter().flatten().collect() });
    } else if call.args.is(1, "COUNT") || call.args.is(1, "LIST") {
        if call.args.len() > 2 {
            let part = String::from_utf8_lossy(call.args.bytes(1)).to_ascii_lowercase();
            return Err(wrong_count(&format!("command|{part}")));
        }
        if call.args.is(1, "COUNT") {
            return call.integer(ALL.len() as u64);
        }
        call.out.reply(&Reply::Array(ALL.len()));
        ALL.iter().for_each(|row| call.out.reply(&Reply::Bulk(&lower(row))));
    } else {
        return Err(unknown_part(&call.args));
    }
    Ok(())
}

fn lower(row: &Row) -> Vec<u8> {
    row.name.to_ascii_lowercase().into_bytes()
}

fn tell(call: &mut Call<'_>, rows: &[Option<&Row>]) {
    call.out.reply(&Reply::Array(rows.len()));
    for row in rows {
        let Some(row) = row else {
            call.out.reply(&Reply::Nil);
            continue;
        };
        let KeyPlaces(first, last, step) = row.keys;
        call.out.reply(&Reply::Array(10));
        call.out.reply(&Reply::Bulk(&lower(row)));
        call.out.reply(&Reply::Integer(row.arity.into()));
        words(call, row.flags.split_whitespace());
        [first, last, step].iter().for_each(|place| call.out.reply(&Reply::Integer((*place).into())));
        let kinds = [("write", "@write"), ("readonly", "@read"), ("fast", "@fast")];
        words(call, kinds.iter().filter(|(flag, _)| row.flags.contains(flag)).map(|(_, kind)| *kind));
        // Tips, places of keys in other words, parts.
        (0..3).for_each(|_| call.out.reply(&Reply::Array(0)));
    }
}

fn words<'a>(call: &mut Call<'_>, words: impl Iterator<Item = &'a str>) {
    let words: Vec<&str> = words.collect();
    call.out.reply(&Reply::Set(words.len()));
    words.iter().for_each(|word| call.out.reply(&Reply::Simple(word)));
}

fn document(call: &mut Call<'_>, rows: &[&Row]) {
    call.out.reply(&Reply::Map(rows.len()));
    for row in rows {
        call.out.reply(&Reply::Bulk(&lower(row)));
        call.out.reply(&Reply::Map(1));
        call.out.reply(&Reply::Bulk(b"summary"));
        call.out.reply(&Reply::Bulk(row.about.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_sorted_and_found_by_name() {
        assert!(ALL.is_sorted_by_key(|row| row.name));
        for (index, row) in ALL.iter().enumerate() {
            assert_eq!(find(&lower(row), 0), Some(index));
        }
        assert_eq!(find(b"GE", 0), None);
    }
}
