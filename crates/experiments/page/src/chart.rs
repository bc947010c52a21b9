//! A figure as SVG: curves with their 95 % confidence intervals, and a table of the same numbers.
//!
//! Curves differ in colour and in the shape of their points. The name of a curve is at its right end; names that would
//! overlap are moved apart. The vertical axis begins at 0 unless all values are far from 0. The horizontal axis is
//! logarithmic if its values differ by a large factor.

use maud::{Markup, html};
use statistics::Sample;

use crate::measurand::{Measurand, half_width, number};

/// A figure: curves of a measured quantity over a varied quantity.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Number of the figure on the page.
    pub number: u32,
    /// Title, one line.
    pub title: String,
    /// Measured quantity.
    pub measurand: Measurand,
    /// Name of the quantity along the horizontal axis.
    pub varied: String,
    /// Curves, in the order of the legend.
    pub lines: Vec<Curve>,
}

/// A curve of a figure.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Name in the legend, for example an access pattern.
    pub name: String,
    /// Number of nodes that receive the same data, if any. Values are divided by this number.
    pub per_node: Option<u64>,
    /// Points from left to right: the varied value, and the sample measured with it.
    pub points: Vec<(f64, Sample)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 84.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 48.0;

/// Width of a letter in the name of a curve, in pixels, rounded up. `style.css` sets the size and weight of the font.
const LETTER_WIDTH: f64 = 8.2;

/// Minimum vertical distance between names of curves in pixels. The next constant is half the size of a point in
/// pixels.
const NAME_HEIGHT: f64 = 15.0;
const POINT: f64 = 4.0;

/// Minimum range of the vertical axis, as a share of the largest value.
const LEAST_SPAN: f64 = 0.1;

/// Ratio of the last to the first value above which the horizontal axis is logarithmic.
const LOGARITHMIC: f64 = 50.0;

/// Horizontal distance in pixels between points of different curves at the same value, so that no point hides another.
const ASIDE: f64 = 3.5;

/// Number of colours in `style.css`.
const COLOURS: usize = 8;

/// Draws the figure: the chart, then the table.
pub fn figure(figure: &Figure) -> Markup {
    let axes = Axes::of(figure);
    html! {
        figure id={ "figure-" (figure.number) } {
            h3 { "Figure " (figure.number) ": " (figure.title) }
            @if let Some(axes) = &axes { (chart(figure, axes)) }
            figcaption {
                (figure.measurand.sentence()) " against " (figure.varied) "."
                @if figure.lines.iter().any(|line| line.per_node.is_some()) {
                    " A line named with / n is of data that n nodes get: its throughput is divided by n, as if they were "
                    "moved once."
                }
                @if axes.is_some_and(|axes| axes.bottom > 0.0) { " The vertical axis does not begin at 0." }
            }
            (numbers(figure))
        }
    }
}

/// Mapping of values to coordinates in the drawing.
struct Axes {
    left: f64,
    right: f64,
    bottom: f64,
    top: f64,
    step: f64,
    varied: Vec<f64>,
}

impl Axes {
    /// Returns axes that cover the whole figure, or `None` if the figure has no points.
    fn of(figure: &Figure) -> Option<Axes> {
        let points = || figure.lines.iter().flat_map(|line| &line.points);
        let mut varied: Vec<f64> = points().map(|(x, _)| *x).collect();
        varied.sort_by(f64::total_cmp);
        varied.dedup();
        let ends =
            points().flat_map(|(_, sample)| [sample.mean() - margin(sample), sample.mean() + margin(sample)]);
        let (low, high) = ends.fold((f64::MAX, f64::MIN), |(low, high), end| (low.min(end), high.max(end)));
        let low = if low < 0.6 * high { 0.0 } else { low };
        // Widen a narrow range, so that small variations do not look large.
        let short = ((LEAST_SPAN * high - (high - low)) / 2.0).max(0.0);
        let (low, high) = (low - short, high + short);
        let step = nice_step((high - low).max(1e-9));
        let (left, right) = (*varied.first()?, *varied.last()?);
        let (bottom, top) = ((low / step).floor() * step, (high / step).ceil() * step);
        Some(Axes { left, right, bottom, top: if top > bottom { top } else { bottom + step }, step, varied })
    }

    fn x(&self, value: f64) -> f64 {
        let (left, right) = (self.left, self.right);
        let share = if left > 0.0 && right > LOGARITHMIC * left {
            (value / left).ln() / (right / left).ln()
        } else if right > left {
            (value - left) / (right - left)
        } else {
            0.5
        };
        // Leave a margin next to the first and the last points.
        LEFT + 24.0 + share * (WIDTH - LEFT - RIGHT - 44.0)
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value - self.bottom) / (self.top - self.bottom);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    /// Returns the values that are labelled on the vertical axis.
    fn ticks(&self) -> Vec<f64> {
        let count = ((self.top - self.bottom) / self.step).round() as usize;
        (0..=count).map(|tick| self.bottom + tick as f64 * self.step).collect()
    }
}

/// Returns the width of the drawing in pixels, which depends on the longest name of a curve.
fn width(figure: &Figure) -> f64 {
    let longest = figure.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    WIDTH.max((WIDTH - RIGHT + 10.0 + LETTER_WIDTH * longest as f64).ceil())
}

/// Returns half the width of the confidence interval, or 0 if the interval is unknown.
fn margin(sample: &Sample) -> f64 {
    sample.half_width().unwrap_or(0.0)
}

/// Returns a step of 1, 2 or 5 times a power of ten that divides `span` into about five parts.
fn nice_step(span: f64) -> f64 {
    let rough = span / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= 0.999 * rough);
    factor.unwrap_or(10.0) * power
}

fn chart(figure: &Figure, axes: &Axes) -> Markup {
    let label = format!(
        "{}: {} against {}; the table below has the numbers",
        figure.title, figure.measurand.name, figure.varied
    );
    html! {
        svg viewBox=(format!("0 0 {} {HEIGHT}", width(figure))) role="img" aria-label=(label) {
            (grid(figure, axes))
            @for (index, line) in figure.lines.iter().enumerate() {
                @let aside = (index as f64 - (figure.lines.len() - 1) as f64 / 2.0) * ASIDE;
                (drawn(line, index, aside, axes, figure.measurand.unit))
            }
            @for (index, name, y) in names(figure, axes) {
                text class={ "name colour-" (index % COLOURS) } x=(px(WIDTH - RIGHT + 10.0)) y=(px(y + 4.0)) { (name) }
            }
        }
    }
}

fn grid(figure: &Figure, axes: &Axes) -> Markup {
    let digits = if axes.step >= 1.0 { 0 } else { (-axes.step.log10()).ceil() as usize };
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    html! {
        @for tick in axes.ticks() {
            @let y = px(axes.y(tick));
            line.grid x1=(px(LEFT)) x2=(px(WIDTH - RIGHT)) y1=(y) y2=(y) {}
            text.tick.value x=(px(LEFT - 8.0)) y=(px(axes.y(tick) + 4.0)) { (format!("{tick:.digits$}")) }
        }
        @for &value in &axes.varied {
            text.tick.varied x=(px(axes.x(value))) y=(px(HEIGHT - BOTTOM + 18.0)) { (value) }
        }
        line.axis x1=(px(LEFT)) x2=(px(WIDTH - RIGHT)) y1=(px(HEIGHT - BOTTOM)) y2=(px(HEIGHT - BOTTOM)) {}
        text.axis-name x=(px(middle)) y=(px(HEIGHT - 8.0)) { (figure.varied) }
        text.axis-name transform=(format!("translate(14 {}) rotate(-90)", px((TOP + HEIGHT - BOTTOM) / 2.0))) { (figure.measurand.unit) }
    }
}

fn drawn(line: &Curve, index: usize, aside: f64, axes: &Axes, unit: &str) -> Markup {
    let at = |(value, sample): &(f64, Sample)| {
        format!("{},{}", px(axes.x(*value) + aside), px(axes.y(sample.mean())))
    };
    let path: Vec<String> = line.points.iter().map(at).collect();
    html! {
        g class={ "line colour-" (index % COLOURS) } {
            polyline points=(path.join(" ")) {}
            @for (value, sample) in &line.points {
                @let (x, y) = (axes.x(*value) + aside, axes.y(sample.mean()));
                @if let Some(width) = sample.half_width() { (bar(x, axes.y(sample.mean() + width), axes.y(sample.mean() - width))) }
                path.point d=(point(index, x, y)) {
                    title { (line.name) " at " (value) ": " (interval(sample)) " " (unit) }
                }
            }
        }
    }
}

/// Draws a confidence interval from `top` to `bottom`.
fn bar(x: f64, top: f64, bottom: f64) -> Markup {
    let (left, right) = (px(x - POINT), px(x + POINT));
    html! {
        path.bar d=(format!("M{left} {top}H{right}M{left} {bottom}H{right}M{x} {top}V{bottom}",
            top = px(top), bottom = px(bottom), x = px(x))) {}
    }
}

/// Returns the outline of a point. Successive curves use circle, square, diamond and two triangles in turn.
fn point(index: usize, x: f64, y: f64) -> String {
    let size = POINT;
    let corners = |corners: &[(f64, f64)]| {
        let at = |(right, down): &(f64, f64)| format!("{} {}", px(x + size * right), px(y + size * down));
        format!("M{}Z", corners.iter().map(at).collect::<Vec<_>>().join("L"))
    };
    match index % 5 {
        0 => format!(
            "M{} {}a{size} {size} 0 1 0 {} 0a{size} {size} 0 1 0 -{} 0Z",
            px(x - size),
            px(y),
            2.0 * size,
            2.0 * size
        ),
        1 => corners(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => corners(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        3 => corners(&[(0.0, -1.2), (1.2, 0.9), (-1.2, 0.9)]),
        _ => corners(&[(0.0, 1.2), (1.2, -0.9), (-1.2, -0.9)]),
    }
}

/// Places the names of the curves next to their right ends, and moves overlapping names apart.
fn names<'a>(figure: &'a Figure, axes: &Axes) -> Vec<(usize, &'a str, f64)> {
    let end = |(index, line): (usize, &'a Curve)| {
        let (_, sample) = line.points.last()?;
        Some((index, &*line.name, axes.y(sample.mean())))
    };
    let mut names: Vec<_> = figure.lines.iter().enumerate().filter_map(end).collect();
    names.sort_by(|one, other| one.2.total_cmp(&other.2).then(one.0.cmp(&other.0)));
    // Move overlapping names down. Then move names up that would extend beyond the lower edge.
    for place in 1..names.len() {
        names[place].2 = names[place].2.max(names[place - 1].2 + NAME_HEIGHT);
    }
    let mut limit = HEIGHT - BOTTOM;
    for name in names.iter_mut().rev() {
        name.2 = name.2.min(limit);
        limit = name.2 - NAME_HEIGHT;
    }
    names
}

fn numbers(figure: &Figure) -> Markup {
    let Some(axes) = Axes::of(figure) else { return html! {} };
    let sample = |line: &Curve, value: f64| {
        let point = line.points.iter().find(|(varied, _)| *varied == value);
        point.map_or_else(|| "\u{2013}".to_owned(), |(_, sample)| interval(sample))
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Numbers of figure " (figure.number) } {
            table {
                caption { (what_numbers_are(figure)) }
                thead {
                    tr {
                        th scope="col" { (figure.varied) }
                        @for line in &figure.lines { th scope="col" { (line.name) } }
                    }
                }
                tbody {
                    @for &value in &axes.varied {
                        tr {
                            th scope="row" { (value) }
                            @for line in &figure.lines { td { (sample(line, value)) } }
                        }
                    }
                }
            }
        }
    }
}

fn what_numbers_are(figure: &Figure) -> String {
    let mut samples = figure.lines.iter().flat_map(|line| &line.points).map(|(_, sample)| sample);
    if samples.any(|sample| sample.half_width().is_some()) {
        format!("{}, mean \u{b1} 95\u{a0}% confidence", figure.measurand.sentence())
    } else {
        figure.measurand.sentence()
    }
}

/// Returns text such as `31.21 ± 0.05`, or the mean alone.
fn interval(sample: &Sample) -> String {
    let mean = number(sample.mean());
    match sample.half_width() {
        None => mean,
        width => format!("{mean} \u{b1} {}", half_width(width)),
    }
}

/// Returns a coordinate rounded to a tenth of a pixel.
fn px(value: f64) -> String {
    // Adding 0 converts a negative zero to a positive zero.
    format!("{}", (value * 10.0).round() / 10.0 + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(ends: &[f64]) -> Figure {
        let line = |end: &f64| {
            let sample = |value: f64| Sample::of(&[value, value * 1.01]).expect("values");
            Curve {
                name: format!("r{end}"),
                per_node: None,
                points: vec![(1.0, sample(0.9 * end)), (8.0, sample(*end))],
            }
        };
        Figure {
            number: 2,
            title: "t".into(),
            measurand: Measurand::THROUGHPUT,
            varied: "K".into(),
            lines: ends.iter().map(line).collect(),
        }
    }

    #[test]
    fn the_steps_of_axes_are_round() {
        for (span, step) in [(5.0, 1.0), (31.0, 10.0), (8.0, 2.0), (0.4, 0.1), (24.0, 5.0)] {
            assert!((nice_step(span) / step - 1.0).abs() < 1e-9, "{span}: {}", nice_step(span));
        }
    }

    #[test]
    fn points_are_inside_and_names_do_not_overlap() {
        let figure = figure(&[31.4, 31.3, 31.39, 14.7, 4.5, 31.2, 31.1]);
        let axes = Axes::of(&figure).expect("axes");
        for (value, sample) in figure.lines.iter().flat_map(|line| &line.points) {
            let y = axes.y(sample.mean());
            assert!((LEFT..=WIDTH - RIGHT).contains(&axes.x(*value)) && (TOP..=HEIGHT - BOTTOM).contains(&y));
        }
        let names = names(&figure, &axes);
        assert_eq!(names.len(), 7);
        assert!(names.windows(2).all(|pair| pair[1].2 - pair[0].2 > NAME_HEIGHT - 0.001));
        assert!(names.iter().all(|name| (0.0..=HEIGHT - BOTTOM).contains(&name.2)));
    }

    #[test]
    fn the_drawing_is_wide_enough_for_its_names() {
        let mut figure = figure(&[31.4, 14.7]);
        assert_eq!(width(&figure), WIDTH);
        figure.lines[0].name = "wnc tpfs nodes.compute=32 8192 B".into();
        assert!(width(&figure) > WIDTH - RIGHT + 10.0 + 32.0 * 7.0);
    }

    #[test]
    fn a_narrow_band_far_from_zero_is_drawn_large() {
        assert!(Axes::of(&figure(&[4.5, 4.7])).expect("axes").bottom > 3.0);
        assert_eq!(Axes::of(&figure(&[4.5, 30.0])).expect("axes").bottom, 0.0);
        assert!(Axes::of(&figure(&[])).is_none());
    }

    #[test]
    fn a_single_point_has_finite_axes() {
        let point = Curve {
            name: "rb".into(),
            per_node: None,
            points: vec![(4.0, Sample::of(&[31.0]).expect("a value"))],
        };
        let axes = Axes::of(&Figure { lines: vec![point], ..figure(&[]) }).expect("axes");
        assert!(axes.x(4.0).is_finite() && axes.y(31.0).is_finite() && axes.top > axes.bottom);
    }
}
