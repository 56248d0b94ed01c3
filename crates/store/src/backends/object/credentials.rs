//! Who asks: from the environment, or a file like `~/.aws/credentials`. Never from a location, never printed.
//!
//! The file: <https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html>.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use wavetank_model::{Error, Result};

use super::super::Site;

/// What in the environment says where credentials come from; the client knows how.
const SOURCES: &[AmazonS3ConfigKey] = &[
    AmazonS3ConfigKey::AccessKeyId,
    AmazonS3ConfigKey::SkipSignature,
    AmazonS3ConfigKey::WebIdentityTokenFile,
    AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
    AmazonS3ConfigKey::ContainerCredentialsFullUri,
];

/// Gives `builder`, which knows the environment, its credentials.
pub(super) fn with(builder: AmazonS3Builder, site: &Site) -> Result<AmazonS3Builder> {
    let profile = std::env::var("AWS_PROFILE").unwrap_or_else(|_| "default".to_owned());
    if let Some(path) = site.options.get("credentials_file") {
        return from_file(builder, path.as_ref(), &profile);
    }
    let is_set = |key: &AmazonS3ConfigKey| {
        builder.get_config_value(key).is_some_and(|value| !value.is_empty() && value != "false")
    };
    if SOURCES.iter().any(is_set) {
        return Ok(builder);
    }
    match shared_file().filter(|path| path.exists()) {
        Some(path) => from_file(builder, &path, &profile),
        // On a machine of AWS the client asks that machine; elsewhere it would wait for nobody.
        None if site.options.get("endpoint").is_none() => Ok(builder),
        None => Err(Error::usage("object: no credentials")
            .hint("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give credentials_file")),
    }
}

fn shared_file() -> Option<PathBuf> {
    let named = std::env::var_os("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from);
    named.or_else(|| Some(std::env::home_dir()?.join(".aws/credentials")))
}

fn from_file(builder: AmazonS3Builder, path: &Path, profile: &str) -> Result<AmazonS3Builder> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let values = section(&text, profile);
    let value = |name: &str| {
        let missing = || Error::input(format!("no {name} in [{profile}]")).at(path.display().to_string());
        values.get(name).copied().ok_or_else(missing)
    };
    let builder = builder
        .with_access_key_id(value("aws_access_key_id")?)
        .with_secret_access_key(value("aws_secret_access_key")?);
    Ok(match values.get("aws_session_token") {
        Some(token) => builder.with_token(*token),
        None => builder,
    })
}

/// The names and values of a section.
fn section<'a>(text: &'a str, name: &str) -> BTreeMap<&'a str, &'a str> {
    let mut values = BTreeMap::new();
    let mut inside = false;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(title) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            inside = title.trim() == name;
        } else if let Some((key, value)) = line.split_once('=').filter(|_| inside) {
            values.insert(key.trim(), value.trim());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_section_of_a_file_is_read() {
        let text = "[a]\naws_access_key_id=1\n# x = 2\n[ b ]\r\naws_access_key_id = 3=4\n[c]\ny = 5\n";
        assert_eq!(section(text, "b").into_iter().collect::<Vec<_>>(), [("aws_access_key_id", "3=4")]);
        assert_eq!(section(text, "d").len(), 0);
    }

    #[test]
    fn what_is_missing_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[default]\naws_access_key_id = hunter2\n").unwrap();
        let told = from_file(AmazonS3Builder::new(), file.path(), "default").unwrap_err().to_string();
        assert!(
            told.ends_with("no aws_secret_access_key in [default]") && !told.contains("hunter2"),
            "{told}"
        );
    }
}
