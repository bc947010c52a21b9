//! A striped file takes the place of another one.
//!
//! In a namespace that is a new name. Files of flat names have none but their first: the contents are copied, and the
//! first file stays until that is done.

use std::io::{self, BufRead, Write};

use interruption::HalfDone;
use pdiol::{Advice, OpenOptions, Session};

use crate::failure::{Failure, Result};

/// Gives the file `name` the contents of the file `whole`, which is then removed. If that fails, `whole` stays, and
/// the failure says so.
pub(crate) fn take_place(session: &Session, whole: &str, name: &str) -> Result<()> {
    let stays = format!(
        "What pfs:{name} was to hold is in pfs:{whole}. Put it there with: mycat pfs:{whole} -o pfs:{name} --force"
    );
    let failed = |error: io::Error| Failure::new(format!("pfs:{name}"), format!("{error}\n  {stays}"));
    if let Some(tree) = session.tree().map_err(|error| failed(error.into()))? {
        return tree.replace(whole, name).map_err(|error| failed(error.into()));
    }
    let options = OpenOptions::new().write(true).create(true).truncate(true);
    let (again, owned, told) = (session.clone(), name.to_owned(), stays.clone());
    let undo = move || {
        drop(again.unlink(&owned));
        eprintln!("pfs:{owned} is gone.\n  {told}");
    };
    let emptied = HalfDone::make(format!("pfs:{name}"), undo, || session.open(name, options));
    let (file, half_done) = emptied.map_err(|error| failed(error.into()))?;
    let copied = copy(session, whole, file);
    half_done.keep();
    if let Err(error) = copied {
        // Half a file is worse than none. What cannot be removed is told by what has failed before.
        let _ = session.unlink(name);
        return Err(failed(error));
    }
    session.unlink(whole).map_err(|error| Failure::new(format!("pfs:{whole}"), error))
}

fn copy(session: &Session, from: &str, mut to: pdiol::File) -> io::Result<()> {
    let mut from = session.open(from, OpenOptions::new().read(true))?;
    from.hint(Advice::Sequential)?;
    loop {
        let bytes = from.fill_buf()?;
        let count = bytes.len();
        if count == 0 {
            return Ok(to.close()?);
        }
        to.write_all(bytes)?;
        from.consume(count);
    }
}
