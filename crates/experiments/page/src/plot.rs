//! A plot as SVG: any quantity over any other, with dots for single trials, and lines for means or predictions.
//!
//! Series differ in colour, and predicted lines are dashed. The legend below names every series. The horizontal axis is
//! linear or logarithmic.

use maud::{Markup, html};

/// A plot of one quantity over another.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Title, one line.
    pub title: String,
    /// Note that explains how to read the plot.
    pub note: String,
    /// Horizontal quantity and its unit.
    pub x: String,
    /// Vertical quantity and its unit.
    pub y: String,
    /// True if the horizontal axis is logarithmic.
    pub is_logarithmic: bool,
    /// Series in the plot.
    pub series: Vec<PlotSeries>,
    /// Marked values of the horizontal quantity, each with a name.
    pub marks: Vec<(f64, String)>,
}

/// A series of a plot: dots and a line of one colour.
#[derive(Clone, Debug, Default)]
pub struct PlotSeries {
    /// Name in the legend.
    pub name: String,
    /// Values of single trials, as (x, y).
    pub dots: Vec<(f64, f64)>,
    /// Points of the line from left to right, as (x, y).
    pub line: Vec<(f64, f64)>,
    /// True if the series is a prediction. Then its line is dashed.
    pub is_predicted: bool,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 50.0;

/// Number of colours in `style.css`.
const COLOURS: usize = 8;

/// Approximate number of labelled values on an axis.
const TICKS: f64 = 6.0;

struct Scale {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    begin: f64,
    end: f64,
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        let share = if self.is_logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.begin + share * (self.end - self.begin)
    }

    /// Returns round values from one end of the scale to the other.
    fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic {
            let decades = (self.low.log10().floor() as i32)..=(self.high.log10().ceil() as i32);
            let values = decades.flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10_f64.powi(power)));
            return values.filter(|value| (self.low..=self.high).contains(value)).collect();
        }
        let step = nice_step(self.high - self.low);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|tick| tick as f64 * step).collect()
    }
}

/// Returns a step of 1, 2 or 5 times a power of ten that divides `span` into about [`TICKS`] parts.
fn nice_step(span: f64) -> f64 {
    let rough = span / TICKS;
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= 0.999 * rough);
    factor.unwrap_or(10.0) * power
}

/// Draws the plot; the result is empty if the plot has no points.
pub(crate) fn plot(plot: &Plot) -> Markup {
    let Some((x, y)) = scales(plot) else { return html! {} };
    let colours = colours(&plot.series);
    html! {
        figure {
            h3 { (plot.title) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(format!("{}: {} against {}", plot.title, plot.y, plot.x)) {
                (grid(plot, &x, &y))
                @for (series, colour) in plot.series.iter().zip(&colours) { (drawn(series, *colour, &x, &y)) }
            }
            ul.legend {
                @for (series, colour) in plot.series.iter().zip(&colours) {
                    li class={ "colour-" (colour) } {
                        (series.name) @if series.is_predicted { " (dashed: predicted)" }
                    }
                }
            }
            figcaption { (plot.note) }
        }
    }
}

/// Returns the index of the colour of each series. A prediction has the same colour as the measured series before it.
fn colours(series: &[PlotSeries]) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut next = 0;
    for (index, one) in series.iter().enumerate() {
        let predicts =
            index.checked_sub(1).filter(|&before| one.is_predicted && !series[before].is_predicted);
        found.push(predicts.map_or(next % COLOURS, |before| found[before]));
        next += usize::from(predicts.is_none());
    }
    found
}

fn scales(plot: &Plot) -> Option<(Scale, Scale)> {
    let points = || plot.series.iter().flat_map(|series| series.dots.iter().chain(&series.line));
    let mut ends = points().map(|point| point.0).chain(plot.marks.iter().map(|mark| mark.0));
    let first = ends.next()?;
    let (low, high) = ends.fold((first, first), |(low, high), x| (low.min(x), high.max(x)));
    let is_logarithmic = plot.is_logarithmic && low > 0.0;
    let (low, high) = match () {
        () if is_logarithmic => (low / 1.1, high * 1.1),
        () if high > low => (low - 0.04 * (high - low), high + 0.04 * (high - low)),
        () => (low - 1.0, high + 1.0),
    };
    let x = Scale { low, high, is_logarithmic, begin: LEFT, end: WIDTH - RIGHT };
    let highest = points().map(|point| point.1).fold(f64::MIN_POSITIVE, f64::max);
    let y = Scale { low: 0.0, high: 1.05 * highest, is_logarithmic: false, begin: HEIGHT - BOTTOM, end: TOP };
    Some((x, y))
}

fn grid(plot: &Plot, x: &Scale, y: &Scale) -> Markup {
    html! {
        @for tick in y.ticks() {
            line.grid x1=(px(LEFT)) x2=(px(WIDTH - RIGHT)) y1=(px(y.at(tick))) y2=(px(y.at(tick))) {}
            text.tick.value x=(px(LEFT - 8.0)) y=(px(y.at(tick) + 4.0)) { (short(tick)) }
        }
        @for tick in x.ticks() {
            text.tick.varied x=(px(x.at(tick))) y=(px(HEIGHT - BOTTOM + 18.0)) { (short(tick)) }
        }
        @for (value, name) in &plot.marks {
            line.axis x1=(px(x.at(*value))) x2=(px(x.at(*value))) y1=(px(TOP)) y2=(px(HEIGHT - BOTTOM)) stroke-dasharray="2 3" {}
            text.tick.varied x=(px(x.at(*value))) y=(px(TOP - 6.0)) { (name) }
        }
        line.axis x1=(px(LEFT)) x2=(px(WIDTH - RIGHT)) y1=(px(HEIGHT - BOTTOM)) y2=(px(HEIGHT - BOTTOM)) {}
        text.axis-name x=(px((LEFT + WIDTH - RIGHT) / 2.0)) y=(px(HEIGHT - 8.0)) { (plot.x) }
        text.axis-name transform=(format!("translate(14 {}) rotate(-90)", px((TOP + HEIGHT - BOTTOM) / 2.0))) { (plot.y) }
    }
}

fn drawn(series: &PlotSeries, colour: usize, x: &Scale, y: &Scale) -> Markup {
    let at = |point: &(f64, f64)| format!("{},{}", px(x.at(point.0)), px(y.at(point.1)));
    let path: Vec<String> = series.line.iter().map(at).collect();
    html! {
        g class={ "line colour-" (colour) } {
            @if !path.is_empty() {
                polyline points=(path.join(" ")) stroke-dasharray=[series.is_predicted.then_some("6 4")] {}
            }
            @for point in &series.dots {
                circle.dot cx=(px(x.at(point.0))) cy=(px(y.at(point.1))) r="3" {
                    title { (series.name) ": " (short(point.1)) " at " (short(point.0)) }
                }
            }
        }
    }
}

/// Formats a number with enough digits to distinguish it from its neighbours on the axis.
fn short(value: f64) -> String {
    let text = match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Returns a coordinate rounded to a tenth of a pixel.
fn px(value: f64) -> String {
    // Adding 0 converts a negative zero to a positive zero.
    format!("{}", (value * 10.0).round() / 10.0 + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_has_the_colour_of_the_measured_series() {
        let series = |is_predicted| PlotSeries { is_predicted, ..PlotSeries::default() };
        let kinds = [false, true, false, false, true, true].map(series);
        assert_eq!(colours(&kinds), [0, 0, 1, 2, 2, 3]);
        assert_eq!(colours(&[true, true].map(series)), [0, 1]);
    }

    fn example(is_logarithmic: bool) -> Plot {
        let series = PlotSeries {
            name: "a < b".into(),
            dots: vec![(1.0, 3.0), (100.0, 7.5)],
            line: vec![(1.0, 2.0), (100.0, 7.0)],
            is_predicted: true,
        };
        Plot {
            title: "t".into(),
            note: "n".into(),
            x: "f".into(),
            y: "s".into(),
            is_logarithmic,
            series: vec![series],
            marks: vec![(0.25, "1 / (d - 1)".into())],
        }
    }

    #[test]
    fn points_are_inside_and_texts_are_escaped() {
        for is_logarithmic in [false, true] {
            let example = example(is_logarithmic);
            let (x, y) = scales(&example).expect("there is something");
            for (at, value) in [(0.25, 0.0), (1.0, 3.0), (100.0, 7.5)] {
                assert!((LEFT..=WIDTH - RIGHT).contains(&x.at(at)), "{at}");
                assert!((TOP..=HEIGHT - BOTTOM).contains(&y.at(value)), "{value}");
            }
            assert!(x.ticks().len() >= 3 && y.ticks().len() >= 3);
            let html = plot(&example).into_string();
            assert!(html.contains("a &lt; b") && html.contains("stroke-dasharray=\"6 4\""), "{html}");
        }
        assert!(scales(&Plot { series: Vec::new(), marks: Vec::new(), ..example(false) }).is_none());
    }

    #[test]
    fn labels_of_numbers_have_at_most_three_digits() {
        for (value, text) in [(0.25, "0.25"), (3.0, "3"), (12.34, "12.3"), (114.2, "114"), (0.0, "0")] {
            assert_eq!(short(value), text);
        }
    }
}
