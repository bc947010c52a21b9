//! Parser for pages of the manual, which contain commands with their output, and files to create.

use std::path::Path;

/// Step of a page.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// Command and its expected output.
    Command { line: usize, text: String, output: Vec<String> },
    /// File to create in the page's directory.
    File { name: String, contents: String },
}

/// Returns the steps of a page, or an error if the page is invalid.
pub(crate) fn steps(page: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        match language {
            "console" => commands(&block, number + 2, &mut steps)?,
            "toml" | "c" => steps.extend(file(&block)),
            "sh" | "bash" | "shell" | "" => {
                return Err(format!(
                    "line {}: commands must be in blocks of the language console",
                    number + 1
                ));
            }
            _ => {}
        }
    }
    Ok(steps)
}

/// Adds the commands of a block. `first` is the line number of its first line. Skips commands of other computers.
fn commands(block: &[&str], first: usize, steps: &mut Vec<Step>) -> Result<(), String> {
    let mut elsewhere = false;
    for (index, line) in block.iter().enumerate() {
        if let Some(text) = line.strip_prefix("$ ") {
            elsewhere = false;
            steps.push(Step::Command { line: first + index, text: text.to_owned(), output: Vec::new() });
        } else if is_of_another_computer(line) {
            elsewhere = true;
        } else if !elsewhere {
            let Some(Step::Command { text, output, .. }) = steps.last_mut() else {
                return Err(format!("line {}: output without a command", first + index));
            };
            match line.strip_prefix("> ").filter(|_| output.is_empty()) {
                Some(more) => text.extend(["\n", more]),
                None => output.push((*line).to_owned()),
            }
        }
    }
    Ok(())
}

/// Returns true if a line is a command at the prompt of another computer, as in `node1$ starfish agent`.
fn is_of_another_computer(line: &str) -> bool {
    let prompt = line.split_once("$ ").map(|(prompt, _)| prompt);
    prompt.is_some_and(|name| !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric()))
}

/// Returns the file that a block shows. The first line of such a block is a comment that is only a file name.
fn file(block: &[&str]) -> Option<Step> {
    let first = block.first()?;
    let name = first.strip_prefix("# ").or_else(|| first.strip_prefix("/* ")?.strip_suffix(" */"))?;
    let is_name = Path::new(name).extension().is_some() && !name.contains(char::is_whitespace);
    is_name.then(|| Step::File { name: name.to_owned(), contents: block.join("\n") + "\n" })
}

/// Returns true if the output matches the page. On the page, `...` matches any text in a line; as a whole line, it
/// matches any lines.
pub(crate) fn is_shown(shown: &[String], printed: &[String]) -> bool {
    match (shown.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first.trim() == "..." => {
            (0..=printed.len()).any(|lines| is_shown(rest, &printed[lines..]))
        }
        (Some((shown, more_shown)), Some((printed, more_printed))) => {
            line_is_shown(shown, printed.trim_end()) && is_shown(more_shown, more_printed)
        }
        _ => false,
    }
}

fn line_is_shown(shown: &str, printed: &str) -> bool {
    let Some((before, after)) = shown.split_once("...") else { return shown == printed };
    let Some(rest) = printed.strip_prefix(before) else { return false };
    let starts = rest.char_indices().map(|(index, _)| index).chain([rest.len()]);
    starts.into_iter().any(|start| line_is_shown(after, &rest[start..]))
}

#[test]
fn an_ellipsis_stands_for_any_text_or_lines() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let shown = |shown: &str, printed: &str| is_shown(&lines(shown), &lines(printed));
    assert!(shown("a\n  ...\nz", "a\nz") && shown("a\n...\nz", "a\nb\nc\nz") && shown("...", ""));
    assert!(shown("took ... s", "took 0.3 s") && shown("at ...:... now", "at 127.0.0.1:80 now"));
    assert!(!shown("", "a") && !shown("a", "") && !shown("a\nz", "a\nb\nz"));
    assert!(!shown("took ... s", "took 3 ms") && !shown("a\n...\nz", "a\nz\nb"));
}

#[test]
fn commands_files_and_output_are_distinguished() {
    let page = "Text.\n\n```console\nnode1$ starfish agent\nlistening\n$ cat <<END\n> a\n> END\na\n```\n\n\
                ```toml\n# plan.toml\nname = \"x\"\n```\n\n```toml\n# only a comment\n```\n";
    let command =
        Step::Command { line: 6, text: "cat <<END\na\nEND".to_owned(), output: vec!["a".to_owned()] };
    let file =
        Step::File { name: "plan.toml".to_owned(), contents: "# plan.toml\nname = \"x\"\n".to_owned() };
    assert_eq!(steps(page), Ok(vec![command, file]));
    assert!(steps("```sh\nstarfish ls\n```\n").is_err() && steps("```console\nstarfish ls\n```\n").is_err());
}
