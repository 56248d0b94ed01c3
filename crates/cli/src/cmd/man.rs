//! `wavetank man`: a page for every command, made from the table of flags.

use std::io;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use wavetank::{Error, ErrorKind, Result};

use crate::exit::{self, Exit};
use crate::{output, topics};

#[derive(Args)]
pub(crate) struct Flags {
    /// Write a page for every command into this directory, which is made, as
    /// ~/.local/share/man/man1 [default: the page of wavetank itself, to standard output].
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// A page: the name of its file, and what is in it.
type Page = (String, Vec<u8>);

pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let cannot = |error: io::Error| Error::new(ErrorKind::Io, format!("cannot make a page: {error}"));
    let pages = pages(crate::command()).map_err(cannot)?;
    let Some(directory) = &flags.directory else {
        output::say(&String::from_utf8_lossy(&pages[0].1))?;
        return Ok(Exit::DONE);
    };
    for (name, text) in &pages {
        output::write(&directory.join(name), |out| out.write_all(text))?;
    }
    output::say(&format!("Saved {} pages to: {}\n", pages.len(), directory.display()))?;
    Ok(Exit::DONE)
}

/// The page of `command`, and then those of its commands.
fn pages(mut command: Command) -> io::Result<Vec<Page>> {
    command.build();
    let mut pages = vec![page(&command, &[topics_section, exit_section, environment_section])?];
    add_inner(&command, &mut pages)?;
    Ok(pages)
}

fn add_inner(command: &Command, pages: &mut Vec<Page>) -> io::Result<()> {
    for inner in command.get_subcommands() {
        pages.push(page(inner, &[exit_section, see_also_section])?);
        add_inner(inner, pages)?;
    }
    Ok(())
}

/// One page, with `sections` of ours after what the flags tell.
fn page(command: &Command, sections: &[fn(&mut Roff)]) -> io::Result<Page> {
    let man = Man::new(command.clone()).manual("wavetank");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut ours = Roff::default();
    sections.iter().for_each(|section| section(&mut ours));
    ours.to_writer(&mut text)?;
    man.render_version_section(&mut text)?;
    Ok((man.get_filename(), text))
}

fn topics_section(page: &mut Roff) {
    let rows = topics::ALL.iter().map(|topic| (format!("wavetank help {}", topic.name), topic.about));
    section(page, "TOPICS", rows);
}

fn exit_section(page: &mut Roff) {
    section(page, "EXIT STATUS", exit::ALL.iter().map(|(exit, about)| (exit.code().to_string(), *about)));
}

fn environment_section(page: &mut Roff) {
    let rows = topics::VARIABLES.iter().map(|variable| (variable.names.to_owned(), variable.about));
    section(page, "ENVIRONMENT", rows);
}

fn see_also_section(page: &mut Roff) {
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("wavetank"), roman("(1)")]);
}

fn section(page: &mut Roff, heading: &str, rows: impl Iterator<Item = (String, &'static str)>) {
    page.control("SH", [heading]);
    for (name, about) in rows {
        page.control("TP", []);
        page.text([bold(name)]);
        page.text([roman(about)]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Every command with the words that lead to it, and what is on its page.
    fn commands<'c>(command: &'c Command, name: String, found: &mut Vec<(String, &'c Command)>) {
        for inner in command.get_subcommands() {
            commands(inner, format!("{name}-{}", inner.get_name()), found);
        }
        found.push((name, command));
    }

    /// Broken by: a command without a page, a flag that is not on it, or two pages of one name.
    #[test]
    fn every_command_has_a_page_with_every_flag() {
        let mut root = crate::command();
        root.build();
        let mut all = Vec::new();
        commands(&root, "wavetank".to_owned(), &mut all);
        let pages = pages(crate::command()).unwrap();
        let texts: BTreeMap<String, String> = pages
            .iter()
            .map(|(name, text)| (name.clone(), String::from_utf8(text.clone()).unwrap()))
            .collect();
        assert_eq!((texts.len(), texts.len()), (pages.len(), all.len()));
        assert!(all.len() > 30, "{} commands", all.len());
        for (name, command) in all {
            let text = &texts[&format!("{name}.1")];
            for flag in command.get_arguments().filter_map(|argument| argument.get_long()) {
                let written = format!("\\-\\-{}", flag.replace('-', "\\-"));
                assert!(text.contains(&written), "{name} --{flag}");
            }
            assert!(text.contains("EXIT STATUS"), "{name}");
        }
        assert_eq!(pages[0].0, "wavetank.1");
        assert!(
            topics::ALL.iter().all(|topic| texts["wavetank.1"].contains(&topic.about.replace('-', "\\-")))
        );
    }
}
