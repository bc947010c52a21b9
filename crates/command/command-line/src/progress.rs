//! Progress of a command, shown only if the command takes long.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use node::Size;

use crate::say;
use crate::{mib, visible};

/// Condition for showing progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Show {
    /// On a terminal, after two seconds.
    Auto,
    /// From the start; without a terminal, as a line every two seconds.
    Always,
    /// Not at all.
    Never,
}

/// Template for progress in bytes with a known total.
const OF_BYTES: &str = "{msg} {wide_bar} {done} of {total}, {throughput}{rest}";

/// Delay before progress appears. Shorter commands show none.
const PATIENCE: Duration = Duration::from_secs(2);

/// Progress counter. Clones share the state, and any thread may count.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    /// Keeps the display thread running. The thread ends when the last clone is dropped.
    _shown: Option<flume::Sender<()>>,
}

impl Progress {
    /// Starts progress in bytes. The total is unknown until [`expect`](Self::expect) sets it.
    pub fn bytes(show: Show, what: &str) -> Self {
        Progress::start(show, what, Counted::Bytes, None, "{msg} {spinner} {done}, {throughput}")
    }

    /// Starts progress in pieces of work of which there are `total`.
    pub fn count(show: Show, what: &str, total: u64) -> Self {
        Progress::start(show, what, Counted::Pieces, Some(total), "{msg} {wide_bar} {pos} of {len}{left}")
    }

    /// Starts progress in pieces of work of different durations. The total `cost` serves to estimate the remaining
    /// time.
    pub fn weighted(show: Show, cost: u64) -> Self {
        Progress::start(show, "", Counted::Cost, Some(cost), "{msg} {wide_bar} {percent} %{left}")
    }

    /// Sets the completed part of the cost, and the text that describes the current work.
    pub fn reach(&self, cost: u64, what: String) {
        self.bar.set_position(cost);
        self.bar.set_message(what);
    }

    fn start(show: Show, what: &str, counted: Counted, total: Option<u64>, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        bar.set_style(style(template));
        bar.set_message(visible(what).into_owned());
        let terminal = std::io::stderr().is_terminal();
        let shown = (show == Show::Always || show == Show::Auto && terminal).then(|| {
            let (alive, ended) = flume::bounded::<()>(0);
            let bar = bar.clone();
            std::thread::spawn(move || {
                if terminal { draw(show, &bar, &ended) } else { log_progress(&bar, counted, &ended) }
            });
            alive
        });
        Progress { bar, _shown: shown }
    }

    /// Sets the total number of bytes.
    pub fn expect(&self, total: u64) {
        self.bar.set_style(style(OF_BYTES));
        self.bar.set_length(total);
    }

    /// Adds to the total.
    pub fn expect_more(&self, amount: u64) {
        self.bar.inc_length(amount);
    }

    /// Adds to the completed amount.
    pub fn add(&self, amount: u64) {
        self.bar.inc(amount);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("a template as indicatif has them");
    // ASCII, because the terminal's character set may have no blocks.
    let style = style.progress_chars("#- ").tick_chars("|/-\\ ");
    // Use the same format of sizes as all other messages; indicatif's own keys write two digits.
    let style = style.with_key("done", |state: &ProgressState, text: &mut dyn Write| {
        let _ = text.write_str(&Size(state.pos()).rounded());
    });
    let style = style.with_key("total", |state: &ProgressState, text: &mut dyn Write| {
        let _ = text.write_str(&Size(state.len().unwrap_or(0)).rounded());
    });
    let style = style.with_key("left", |state: &ProgressState, text: &mut dyn Write| {
        // No estimate is possible before the first step.
        if state.pos() > 0 {
            let _ = write!(text, ", {:#} left", HumanDuration(state.eta()));
        }
    });
    // The bar also counts bytes in flight, so the last bytes may reach the disks seconds after the bar is full.
    let style = style.with_key("rest", |state: &ProgressState, text: &mut dyn Write| {
        let _ = text.write_str(&rest(state.pos(), state.len(), state.eta()));
    });
    style.with_key("throughput", |state: &ProgressState, text: &mut dyn Write| {
        // Ignore an error, which would only leave the text incomplete.
        let _ = write!(text, "{:.1} MiB/s", mib(state.per_sec() as u64));
    })
}

/// Returns the end of the progress line for `done` of `total` bytes: the remaining time, or the step after the last
/// byte.
fn rest(done: u64, total: Option<u64>, left: Duration) -> String {
    match total {
        _ if done == 0 => String::new(),
        Some(total) if done >= total => ", flushing to the disks".to_owned(),
        _ => format!(", {:#} left", HumanDuration(left)),
    }
}

fn draw(show: Show, bar: &ProgressBar, ended: &flume::Receiver<()>) {
    let timed_out =
        show == Show::Always || ended.recv_timeout(PATIENCE) == Err(flume::RecvTimeoutError::Timeout);
    if timed_out && !bar.is_finished() {
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.enable_steady_tick(Duration::from_millis(200));
    }
}

/// Quantity that a progress counter counts.
#[derive(Clone, Copy, Debug)]
enum Counted {
    Bytes,
    Pieces,
    /// Abstract cost that users cannot interpret.
    Cost,
}

impl Counted {
    /// Returns the progress as a line of text.
    fn line(self, done: u64, total: Option<u64>) -> String {
        match (self, total) {
            (Counted::Bytes, None) => Size(done).rounded(),
            (Counted::Bytes, Some(total)) if done >= total && total > 0 => {
                format!("{}, flushing to the disks", Size(total).rounded())
            }
            (Counted::Bytes, Some(total)) => format!("{} of {}", Size(done).rounded(), Size(total).rounded()),
            (Counted::Pieces, None) => done.to_string(),
            (Counted::Pieces, Some(total)) => format!("{done} of {total}"),
            (Counted::Cost, total) => {
                let total = total.unwrap_or(0).max(1);
                format!("{} %", (100.0 * done as f64 / total as f64).min(100.0).floor())
            }
        }
    }
}

fn log_progress(bar: &ProgressBar, counted: Counted, ended: &flume::Receiver<()>) {
    while ended.recv_timeout(PATIENCE) == Err(flume::RecvTimeoutError::Timeout) && !bar.is_finished() {
        say!("{}: {}", bar.message(), counted.line(bar.position(), bar.length()));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// Terminal of 80 columns that keeps all its output.
    #[derive(Clone, Debug, Default)]
    struct KeptOutput(Arc<Mutex<String>>);

    impl TermLike for KeptOutput {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().expect("no panic").push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_progress_bar_is_ascii_and_has_sizes_in_mib() {
        let output = KeptOutput::default();
        let target = ProgressDrawTarget::term_like(Box::new(output.clone()));
        let bar = ProgressBar::with_draw_target(Some(200_000_000), target);
        bar.set_style(style(OF_BYTES));
        bar.set_position(100_000_000);
        bar.force_draw();
        let shown = output.0.lock().expect("no panic").clone();
        assert!(
            shown.is_ascii() && shown.contains("##") && shown.contains("95.4 MiB of 190.7 MiB"),
            "{shown}"
        );
    }

    #[test]
    fn a_progress_line_has_readable_amounts_and_the_time_left() {
        assert_eq!(Counted::Bytes.line(104_857_600, Some(300 << 20)), "100.0 MiB of 300.0 MiB");
        assert_eq!(Counted::Bytes.line(0, None), "0 B");
        assert_eq!(Counted::Bytes.line(8192, Some(8192)), "8.0 KiB, flushing to the disks");
        assert_eq!(rest(8192, Some(8192), Duration::ZERO), ", flushing to the disks");
        assert_eq!(rest(4096, Some(8192), Duration::from_secs(2)), ", 2s left");
        assert_eq!(rest(0, Some(8192), Duration::ZERO), "");
        assert_eq!(Counted::Pieces.line(3, Some(60)), "3 of 60");
        assert_eq!(Counted::Cost.line(2_624_002, Some(22_368_060)), "11 %");
        assert_eq!(Counted::Cost.line(1, Some(0)), "100 %");
    }
}
