//! Files that were begun and not written to their end.

use command_line::failure::Result;
use machine::Duration;
use node::Agent;

use crate::output::date;
use crate::this_node;

/// Number of names that are looked at. A store with more has other ways to find them: `starfish ls -l`, `starfish rm`.
const NAMES_MAX: usize = 2000;

/// Number of unfinished files that are named.
const NAMED_MAX: usize = 5;

/// What is to be known of unfinished files, if there are any.
pub(crate) fn note(agents: Vec<Agent>) -> Result<Option<String>> {
    let mut found = this_node::run_with_present(agents, |connection| async move {
        let names = connection.explained("listing the files", connection.client.list().await)?;
        let mut found: Vec<(Duration, String)> = Vec::new();
        for name in names.into_iter().take(NAMES_MAX) {
            // What is damaged is for `starfish fsck`.
            let all = connection.client.find_all(&name).await.unwrap_or_default();
            found.extend(
                all.iter().filter_map(|parts| parts.unfinished_since).map(|since| (since, name.clone())),
            );
        }
        Ok(found)
    })?;
    found.sort();
    let Some((oldest, _)) = found.first() else { return Ok(None) };
    let named: Vec<&str> = found.iter().take(NAMED_MAX).map(|(_, name)| name.as_str()).collect();
    let more = if found.len() > NAMED_MAX { ", ..." } else { "" };
    let (files, named) = (count(found.len()), named.join(", ") + more);
    Ok(Some(format!(
        "{files} unfinished, since {} or later: {named}.\n  If nobody is writing there any more, `starfish rm --unfinished` \
         removes what is left.",
        date::of(*oldest)
    )))
}

fn count(files: usize) -> String {
    if files == 1 { "1 file is".to_owned() } else { format!("{files} files are") }
}
