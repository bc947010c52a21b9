//! Getting what is left of a damaged file.

use std::collections::VecDeque;
use std::io::Write;
use std::rc::Rc;

use fs::{Remains, Remnant};
use layout::Extent;
use node::Agent;
use real::RealMachine;

use super::session::{self, Session};
use super::transfer::{Method, MethodArgs};
use crate::failure::{Failure, Result};
use crate::local::Hashing;
use crate::progress::Progress;

/// Blocks that are being read at once.
const WINDOW: usize = 16;

/// Zeros for what is lost.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Reads what can be read of a file and writes it to `output`, with zeros in place of the rest. Says which bytes those
/// are, and the hash of all that was written, if it was asked for.
pub(crate) fn get<W: Write + Send + 'static>(
    agents: &[Agent],
    name: &str,
    method: MethodArgs,
    output: Hashing<W>,
    progress: &Progress,
) -> Result<(Option<blake3::Hash>, Vec<Extent>)> {
    if method.method == Method::DiskDirected {
        let why = "only the method traditional skips damaged parts";
        return Err(Failure::usage("--skip-damaged", why).remedy("Leave out --method."));
    }
    let (name, progress) = (name.to_owned(), progress.clone());
    session::run_with_present(agents.to_vec(), move |session| async move {
        let remains = session.told(&name, session.client.open_remains(&name).await)?;
        progress.expect(remains.bytes());
        copy(&session, &name, remains.into(), output, &progress).await
    })
}

async fn copy<W: Write>(
    session: &Session,
    name: &str,
    remains: Rc<Remains<RealMachine>>,
    mut output: Hashing<W>,
    progress: &Progress,
) -> Result<(Option<blake3::Hash>, Vec<Extent>)> {
    let (mut under_way, mut lost, mut at) = (VecDeque::new(), Vec::new(), 0);
    let mut blocks = remains.blocks();
    loop {
        while under_way.len() < WINDOW
            && let Some(block) = blocks.next()
        {
            under_way.push_back(begin(session, &remains, block));
        }
        let Some(block) = under_way.pop_front() else { break };
        let read = block.recv_async().await.expect("a task that was begun ends with an answer");
        for remnant in session.told(name, read)? {
            let written = write(&mut output, &remnant);
            written.map_err(|error| Failure::writing(format!("what {name} holds"), &error))?;
            if let Remnant::Lost(bytes) = remnant {
                note(&mut lost, Extent::new(at, bytes));
            }
            at += remnant.bytes();
            progress.add(remnant.bytes());
        }
    }
    output.flush().map_err(|error| Failure::writing(format!("what {name} holds"), &error))?;
    Ok((output.hash(), lost))
}

/// Begins to read a block.
fn begin(
    session: &Session,
    remains: &Rc<Remains<RealMachine>>,
    block: Extent,
) -> flume::Receiver<fs::Result<Vec<Remnant>>> {
    let ((tell, told), remains) = (flume::bounded(1), remains.clone());
    machine::Machine::spawn(&session.machine, "reading a block", async move {
        // Nobody listens after a failure.
        let _ = tell.send(remains.read(block).await);
        Ok(())
    });
    told
}

fn write(output: &mut impl Write, remnant: &Remnant) -> std::io::Result<()> {
    match remnant {
        Remnant::Data(data) => output.write_all(&data.to_vec().expect("real bytes")),
        Remnant::Lost(bytes) => {
            let mut left = *bytes as usize;
            while left > 0 {
                let part = left.min(ZEROS.len());
                output.write_all(&ZEROS[..part])?;
                left -= part;
            }
            Ok(())
        }
    }
}

/// Adds what is lost after all the others.
fn note(lost: &mut Vec<Extent>, part: Extent) {
    match lost.last_mut() {
        Some(last) if last.end() == part.offset => last.bytes += part.bytes,
        _ => lost.push(part),
    }
}
