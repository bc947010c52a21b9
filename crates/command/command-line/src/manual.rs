//! Manual pages, made from the text of `--help`.

use std::io::{self, Write};

use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;

/// Returns the manual pages of a program and of its commands: file names and contents.
pub fn pages(program: Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let source = format!("{} {}", program.get_name(), program.get_version().unwrap_or_default());
    let mut pages = Vec::new();
    collect(&program, &source, "", &mut pages)?;
    Ok(pages)
}

/// Adds the page of a command, with `source` in its footer, and the pages of its subcommands. `above` names the parent
/// command, or is empty.
fn collect(
    command: &Command,
    source: &str,
    above: &str,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    // Written here, because clap_mangen omits the date and so shifts the fields after it.
    writeln!(page, ".TH \"{}\" 1 \"\" \"{}\" Starfish", escaped(&name.to_uppercase()), escaped(source))?;
    man.render_name_section(&mut page)?;
    synopsis(command, &mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let commands: Vec<&Command> =
        command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    if !commands.is_empty() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(text) = command.get_after_help() {
        rest(&text.to_string(), &mut page)?;
    }
    see_also(above, &mut page)?;
    let file = man.get_filename();
    pages.push((file.clone(), page));
    commands.into_iter().try_for_each(|command| collect(command, source, &name, pages))
}

/// Writes the synopsis with the values of options, because clap_mangen omits the values.
fn synopsis(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    write!(page, ".SH SYNOPSIS\n\\fB{}\\fR", escaped(name))?;
    let shown = |argument: &&Arg| !argument.is_hide_set();
    let (positionals, options): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(shown).partition(|argument| argument.is_positional());
    for argument in options.into_iter().chain(positionals) {
        match argument.is_required_set() {
            true => write!(page, " {}", spelt(argument))?,
            false => write!(page, " [{}]", spelt(argument))?,
        }
    }
    if command.get_subcommands().any(|command| !command.is_hide_set()) {
        write!(page, " \\fICOMMAND\\fR")?;
    }
    writeln!(page)
}

/// Returns an option with its value, or a positional argument.
fn spelt(argument: &Arg) -> String {
    let takes_value = argument.is_positional() || argument.get_action().takes_values();
    let values = argument.get_value_names().unwrap_or_default().iter().filter(|_| takes_value);
    let values = values.map(|value| format!("\\fI{}\\fR", escaped(value)));
    let short = argument.get_short().map(|short| format!("\\fB\\-{short}\\fR"));
    let long = argument.get_long().map(|long| format!("\\fB\\-\\-{}\\fR", escaped(long)));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let spelt: Vec<String> = (!names.is_empty()).then(|| names.join("|")).into_iter().chain(values).collect();
    let is_several = matches!(argument.get_action(), ArgAction::Append)
        || argument.get_num_args().is_some_and(|count| count.max_values() > 1);
    let spelt = spelt.join(" ");
    // Some value names, such as HOST:PORT,..., contain the dots already.
    let dots = if is_several && !spelt.contains("...") { "..." } else { "" };
    format!("{spelt}{dots}")
}

/// Writes the text after the options: examples, whose lines are kept, and notes.
fn rest(text: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let lines = |lines: &str, page: &mut Vec<u8>| -> io::Result<()> {
        lines.lines().try_for_each(|line| writeln!(page, "{}", escaped(line)))
    };
    for part in text.split("\n\n") {
        match part.split_once(":\n") {
            Some((head, examples)) => {
                writeln!(page, ".SH {}\n.nf", head.to_uppercase())?;
                lines(examples, page)?;
                writeln!(page, ".fi")?;
            }
            None => {
                writeln!(page, ".SH NOTES")?;
                lines(part, page)?;
            }
        }
    }
    Ok(())
}

fn see_also(above: &str, page: &mut Vec<u8>) -> io::Result<()> {
    if above.is_empty() { Ok(()) } else { writeln!(page, ".SH SEE ALSO\n.BR {above} (1)") }
}

/// Escapes a line, so that troff does not interpret any part of it as an instruction.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_visible_command_has_a_man_page_with_its_help() {
        let put = Command::new("put")
            .about("Put a file.")
            .arg(Arg::new("block").long("block").value_name("SIZE").help("Size of a block."))
            .arg(Arg::new("disks").long("disks").value_name("N,...").action(ArgAction::Append).help("Disks."))
            .arg(Arg::new("file").value_name("FILE").required(true).num_args(1..))
            .after_help("Examples:\n  prog put a\\b\n.x\n\nThe log is short.");
        let hidden = Command::new("hidden").hide(true);
        let program = Command::new("prog").version("7").about("All of it.").subcommands([put, hidden]);
        let pages = pages(program).expect("pages");
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["prog.1", "prog-put.1"]);
        let text = |at: usize| String::from_utf8(pages[at].1.clone()).expect("text");
        assert!(text(0).contains("prog\\-put(1)"), "{}", text(0));
        assert!(text(1).starts_with(".TH \"PROG\\-PUT\" 1 \"\" \"prog 7\" Starfish\n"), "{}", text(1));
        let put = "\\fBprog put\\fR [\\fB\\-\\-block\\fR \\fISIZE\\fR] [\\fB\\-\\-disks\\fR \\fIN,...\\fR] [\\fB\\-h\\fR|\\fB\\-\\-help\\fR]";
        assert!(text(1).contains(&format!(".SH SYNOPSIS\n{put} \\fIFILE\\fR...\n")), "{}", text(1));
        assert!(
            text(1)
                .contains(".SH EXAMPLES\n.nf\n  prog put a\\eb\n\\&.x\n.fi\n.SH NOTES\nThe log is short.\n")
        );
        assert!(text(1).ends_with(".SH SEE ALSO\n.BR prog (1)\n"), "{}", text(1));
    }
}
