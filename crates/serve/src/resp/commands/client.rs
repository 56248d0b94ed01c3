//! Commands about the connection itself.

use std::hint::black_box;

use super::{COMPATIBLE, Call, Outcome, Refusal, Reply, error, not_a_number, number, syntax};
use super::{unknown_part, wrong_count};
use crate::resp::reply::Protocol;
use crate::resp::session::Access;
use crate::resp::settings::Settings;

/// Who a client is that only says a password.
const ANYBODY: &str = "default";
const NAMES: &str = "Client names cannot contain spaces, newlines or special characters.";

/// `AUTH [user] password`.
pub(super) fn auth(call: &mut Call<'_>) -> Outcome {
    let (user, password) = match call.args.len() {
        2 => (ANYBODY.as_bytes(), call.args.bytes(1)),
        3 => (call.args.bytes(1), call.args.bytes(2)),
        _ => return Err(syntax()),
    };
    if call.args.len() == 2 && call.desk.shared.settings.password.is_none() {
        return Err(error(
            "AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        ));
    }
    admit(call, user, password)?;
    call.ok()
}

fn admit(call: &mut Call<'_>, user: &[u8], password: &[u8]) -> Outcome {
    if !is_right(&call.desk.shared.settings, user, password) {
        return Err(("WRONGPASS", "invalid username-password pair or user is disabled.".into()));
    }
    call.session.access = Access::Granted;
    Ok(())
}

fn is_right(settings: &Settings, user: &[u8], password: &[u8]) -> bool {
    let expected = settings.user.as_deref().unwrap_or(ANYBODY);
    let is_user = is_same(user, expected.as_bytes());
    let is_password = settings.password.as_ref().is_none_or(|it| it.is(password));
    is_user & is_password
}

/// Whether they are the same, in a time that does not tell where they differ.
fn is_same(said: &[u8], expected: &[u8]) -> bool {
    let mut differs = u8::from(said.len() != expected.len());
    for (index, byte) in said.iter().enumerate() {
        let other = expected.get(index % expected.len().max(1)).copied().unwrap_or_default();
        differs |= black_box(byte ^ other);
    }
    black_box(differs) == 0
}

/// `HELLO [version [AUTH user password] [SETNAME name]]`.
pub(super) fn hello(call: &mut Call<'_>) -> Outcome {
    let protocol = protocol(call)?;
    let (mut at, mut who, mut name) = (2, None, None);
    while at < call.args.len() {
        if call.args.is(at, "AUTH") && at + 2 < call.args.len() {
            who = Some((call.args.bytes(at + 1), call.args.bytes(at + 2)));
            at += 3;
        } else if call.args.is(at, "SETNAME") && at + 1 < call.args.len() {
            name = Some(call.args.bytes(at + 1));
            at += 2;
        } else {
            let word = String::from_utf8_lossy(call.args.bytes(at));
            return Err(error(format!("Syntax error in HELLO option '{word}'")));
        }
    }
    if let Some((user, password)) = who {
        admit(call, user, password)?;
    }
    if call.session.access == Access::Unknown {
        return Err((
            "NOAUTH",
            "HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> \
             <pass> option can be used to authenticate the client and select the RESP protocol \
             version at the same time"
                .into(),
        ));
    }
    if let Some(name) = name {
        rename(call, name)?;
    }
    call.out.protocol = protocol;
    greet(call);
    Ok(())
}

fn protocol(call: &Call<'_>) -> Result<Protocol, Refusal> {
    if call.args.len() == 1 {
        return Ok(call.out.protocol);
    }
    match number(call.args.bytes(1)) {
        Some(2) => Ok(Protocol::Resp2),
        Some(3) => Ok(Protocol::Resp3),
        Some(_) => Err(("NOPROTO", "unsupported protocol version".into())),
        None => Err(error("Protocol version is not an integer or out of range")),
    }
}

fn greet(call: &mut Call<'_>) {
    let version = match call.out.protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    };
    let id = call.session.id as i64;
    let pairs = [
        ("server", Reply::Bulk(b"redis")),
        ("version", Reply::Bulk(COMPATIBLE.as_bytes())),
        ("proto", Reply::Integer(version)),
        ("id", Reply::Integer(id)),
        ("mode", Reply::Bulk(b"standalone")),
        ("role", Reply::Bulk(b"master")),
        ("modules", Reply::Array(0)),
    ];
    call.out.reply(&Reply::Map(pairs.len()));
    for (name, value) in pairs {
        call.out.reply(&Reply::Bulk(name.as_bytes()));
        call.out.reply(&value);
    }
}

/// `PING [message]`.
pub(super) fn ping(call: &mut Call<'_>) -> Outcome {
    match call.args.len() {
        1 => call.reply(&Reply::Simple("PONG")),
        2 => echo(call),
        _ => Err(wrong_count("ping")),
    }
}

/// `ECHO message`.
pub(super) fn echo(call: &mut Call<'_>) -> Outcome {
    call.out.reply(&Reply::Bulk(call.args.bytes(1)));
    Ok(())
}

/// `QUIT`.
pub(super) fn quit(call: &mut Call<'_>) -> Outcome {
    call.session.is_leaving = true;
    call.ok()
}

/// `RESET`.
pub(super) fn reset(call: &mut Call<'_>) -> Outcome {
    call.session.name.clear();
    call.session.access = access(&call.desk.shared.settings);
    call.out.protocol = Protocol::Resp2;
    call.reply(&Reply::Simple("RESET"))
}

/// What a client may that has said nothing.
pub(in crate::resp) fn access(settings: &Settings) -> Access {
    if settings.password.is_some() { Access::Unknown } else { Access::Granted }
}

/// `SELECT index`.
pub(super) fn select(call: &mut Call<'_>) -> Outcome {
    match number(call.args.bytes(1)).ok_or_else(not_a_number)? {
        0 => call.ok(),
        _ => Err(error("DB index is out of range")),
    }
}

/// `CLIENT SETNAME name`, and other things about the connection.
pub(super) fn client(call: &mut Call<'_>) -> Outcome {
    /// A part of the command: its name, its arguments with both names, what it does.
    type Part = (&'static str, usize, fn(&mut Call<'_>) -> Outcome);
    const PARTS: [Part; 7] = [
        ("GETNAME", 2, name),
        ("ID", 2, |call| call.integer(call.session.id)),
        ("INFO", 2, describe),
        ("NO-EVICT", 3, agree),
        ("NO-TOUCH", 3, agree),
        ("SETINFO", 4, set_library),
        ("SETNAME", 3, |call| rename(call, call.args.bytes(2)).and_then(|()| call.ok())),
    ];
    let part = PARTS.iter().find(|(name, ..)| call.args.is(1, name));
    let (name, count, run) = part.ok_or_else(|| unknown_part(&call.args))?;
    if call.args.len() != *count {
        return Err(wrong_count(&format!("client|{}", name.to_ascii_lowercase())));
    }
    run(call)
}

fn name(call: &mut Call<'_>) -> Outcome {
    match call.session.name.is_empty() {
        true => call.out.reply(&Reply::Nil),
        false => call.out.reply(&Reply::Bulk(&call.session.name)),
    }
    Ok(())
}

fn rename(call: &mut Call<'_>, name: &[u8]) -> Outcome {
    if !is_printable(name) {
        return Err(error(NAMES));
    }
    call.session.name = name.to_vec();
    Ok(())
}

fn is_printable(name: &[u8]) -> bool {
    name.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

/// Nothing leaves or is touched for the sake of a connection: what it asks for is so.
fn agree(call: &mut Call<'_>) -> Outcome {
    if !call.args.is(2, "ON") && !call.args.is(2, "OFF") {
        return Err(syntax());
    }
    call.ok()
}

fn set_library(call: &mut Call<'_>) -> Outcome {
    let place = ["LIB-NAME", "LIB-VER"].iter().position(|word| call.args.is(2, word));
    let Some(place) = place else {
        let word = String::from_utf8_lossy(call.args.bytes(2));
        return Err(error(format!("Unrecognized option '{word}'")));
    };
    if !is_printable(call.args.bytes(3)) {
        let word = ["lib-name", "lib-ver"][place];
        let rest = "cannot contain spaces, newlines or special characters.";
        return Err(error(format!("{word} {rest}")));
    }
    call.session.library[place] = call.args.bytes(3).to_vec();
    call.ok()
}

fn describe(call: &mut Call<'_>) -> Outcome {
    let session = &*call.session;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let protocol = if call.out.protocol == Protocol::Resp3 { 3 } else { 2 };
    let line = format!(
        "id={} addr={} name={} age={} db=0 resp={protocol} cmd=client|info user={} lib-name={} lib-ver={}\n",
        session.id,
        session.peer,
        text(&session.name),
        session.opened.elapsed().as_secs(),
        call.desk.shared.settings.user.as_deref().unwrap_or(ANYBODY),
        text(&session.library[0]),
        text(&session.library[1]),
    );
    call.out.text(b"txt", &line);
    Ok(())
}

#[cfg(test)]
mod tests {
    use wavetank_http::Secret;

    use super::*;

    /// Broken by: comparing only as far as the shorter goes, an empty password that fits, or settings that
    /// show it.
    #[test]
    fn only_the_whole_password_fits() {
        let settings = Settings { password: Some(Secret::of("secret")), ..Settings::default() };
        assert!(!format!("{settings:?}").contains("secret\""), "{settings:?}");
        assert!(is_right(&settings, b"default", b"secret"));
        for wrong in [&b""[..], b"s", b"secre", b"secretsecret", b"secret\0", b"Secret"] {
            assert!(!is_right(&settings, b"default", wrong), "{wrong:?}");
        }
        assert!(!is_right(&settings, b"other", b"secret"));
        let named = Settings { user: Some("u".to_owned()), ..settings };
        assert!(is_right(&named, b"u", b"secret") && !is_right(&named, b"default", b"secret"));
        assert!(is_right(&Settings::default(), b"default", b"anything"));
    }
}
