//! `wavetank help`: topics, and the help of commands.

use std::ffi::OsString;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Command, CommandFactory};
use wavetank::Result;

use crate::exit::Exit;
use crate::{Cli, output, topics};

#[derive(Args)]
pub(crate) struct Flags {
    /// A topic, or a command; all of them are listed without it.
    #[arg(index = 1, value_name = "TOPIC|COMMAND")]
    name: Option<String>,
    /// A command of that command.
    #[arg(index = 2, value_name = "COMMAND")]
    inner: Option<String>,
}

pub(crate) fn run(flags: &Flags) -> Result<Exit> {
    let words: Vec<&String> = flags.name.iter().chain(&flags.inner).collect();
    if let [name] = words[..]
        && let Some(topic) = topics::ALL.iter().find(|topic| topic.name == name)
    {
        output::say(&(topic.text)())?;
        return Ok(Exit::DONE);
    }
    let line = ["wavetank"].into_iter().chain(words.into_iter().map(String::as_str)).chain(["--help"]);
    Ok(Exit::from(crate::run(line.map(OsString::from))))
}

/// Lists the topics below the commands, and makes their names known to who completes and corrects words.
pub(crate) fn with_topics(command: Command) -> Command {
    let width = topics::ALL.iter().map(|topic| topic.name.len()).max().unwrap_or(0);
    let rows = topics::ALL.iter().map(|topic| format!("  {:width$}  {}\n", topic.name, topic.about));
    let listed = format!("Topics (wavetank help TOPIC):\n{}", rows.collect::<String>().trim_end());
    let known = PossibleValuesParser::new(names(&command));
    let command = command.after_help(listed);
    command.mut_subcommand("help", |help| {
        help.mut_arg("name", |name| name.value_parser(known).hide_possible_values(true))
    })
}

/// Topics, and then commands that are none.
fn names(command: &Command) -> Vec<PossibleValue> {
    let topics = topics::ALL.iter().map(|topic| PossibleValue::new(topic.name).help(topic.about));
    let is_topic = |name: &str| topics::ALL.iter().any(|topic| topic.name == name);
    let commands = command.get_subcommands().filter(|inner| !is_topic(inner.get_name()));
    topics.chain(commands.map(|inner| PossibleValue::new(inner.get_name().to_owned()))).collect()
}

/// `wavetank trace help lint` asks what `wavetank help trace lint` does.
pub(crate) fn in_order(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_help = words.get(2).is_some_and(|word| word == "help");
    if is_help
        && let Some(group) = words[1].to_str()
        && Cli::command().find_subcommand(group).is_some_and(Command::has_subcommands)
    {
        words.swap(1, 2);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: a value that happens to be called help, taken for a question.
    #[test]
    fn a_command_of_commands_is_asked_for_help_either_way() {
        let order = |line: &str| {
            let words = in_order(line.split(' ').map(OsString::from).collect());
            words.join(OsString::from(" ").as_os_str()).into_string().unwrap()
        };
        assert_eq!(order("wavetank trace help lint"), "wavetank help trace lint");
        assert_eq!(order("wavetank profile help"), "wavetank help profile");
        for line in ["wavetank replay help", "wavetank help help", "wavetank trace lint help", "wavetank"] {
            assert_eq!(order(line), line);
        }
    }

    #[test]
    fn flags_do_not_contradict_each_other() {
        crate::command().debug_assert();
    }
}
