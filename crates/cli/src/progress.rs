//! How far a command has come, shown only when it takes long.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Whether to show progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Show {
    /// On a terminal, after two seconds.
    Auto,
    /// From the start; without a terminal, as a line every two seconds.
    Always,
    /// Not at all.
    Never,
}

/// A command that is over sooner shows nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// Counts what is done. Cloning gives another handle; any thread may count.
#[derive(Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The thread that shows the bar ends when the last handle is gone.
    _shown: Option<flume::Sender<()>>,
}

impl Progress {
    /// Progress in bytes, whose number becomes known later: see [`expect`](Self::expect).
    pub(crate) fn bytes(show: Show, what: &str) -> Self {
        Progress::start(show, what, None, "{msg} {spinner} {binary_bytes}, {throughput}")
    }

    /// Progress in pieces of work.
    pub(crate) fn count(show: Show, what: &str, total: u64) -> Self {
        Progress::start(show, what, Some(total), "{msg} {wide_bar} {pos} of {len}, {eta} left")
    }

    /// Progress in pieces of work some of which take longer than others: the time left goes by `cost`.
    pub(crate) fn weighted(show: Show, cost: u64) -> Self {
        Progress::start(show, "", Some(cost), "{msg} {wide_bar} {percent} %, {eta} left")
    }

    /// So much of the cost is done, and this can be said of it.
    pub(crate) fn reach(&self, cost: u64, what: String) {
        self.bar.set_position(cost);
        self.bar.set_message(what);
    }

    fn start(show: Show, what: &str, total: Option<u64>, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        bar.set_style(style(template));
        bar.set_message(what.to_owned());
        let terminal = std::io::stderr().is_terminal();
        let shown = (show == Show::Always || show == Show::Auto && terminal).then(|| {
            let (alive, ended) = flume::bounded::<()>(0);
            let bar = bar.clone();
            std::thread::spawn(move || if terminal { draw(show, &bar, &ended) } else { tell(&bar, &ended) });
            alive
        });
        Progress { bar, _shown: shown }
    }

    /// So many bytes there are in all.
    pub(crate) fn expect(&self, total: u64) {
        let template = "{msg} {wide_bar} {binary_bytes} of {binary_total_bytes}, {throughput}, {eta} left";
        self.bar.set_style(style(template));
        self.bar.set_length(total);
    }

    /// So much more there is to do.
    pub(crate) fn expect_more(&self, amount: u64) {
        self.bar.inc_length(amount);
    }

    /// So much more is done.
    pub(crate) fn add(&self, amount: u64) {
        self.bar.inc(amount);
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("a template as indicatif has them");
    style.with_key("throughput", |state: &ProgressState, text: &mut dyn Write| {
        // What cannot be written is not shown.
        let _ = write!(text, "{:.1} MiB/s", state.per_sec() / f64::from(1 << 20));
    })
}

fn draw(show: Show, bar: &ProgressBar, ended: &flume::Receiver<()>) {
    let timed_out =
        show == Show::Always || ended.recv_timeout(PATIENCE) == Err(flume::RecvTimeoutError::Timeout);
    if timed_out && !bar.is_finished() {
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.enable_steady_tick(Duration::from_millis(200));
    }
}

fn tell(bar: &ProgressBar, ended: &flume::Receiver<()>) {
    while ended.recv_timeout(PATIENCE) == Err(flume::RecvTimeoutError::Timeout) && !bar.is_finished() {
        let total = bar.length().map_or_else(|| "?".to_owned(), |total| total.to_string());
        eprintln!("{}: {} of {total}", bar.message(), bar.position());
    }
}
