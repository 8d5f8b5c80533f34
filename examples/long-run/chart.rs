//! What was seen, as a table and as a drawing.

use std::fmt::{self, Write as _};

/// One look at everything.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) hook: usize,
    pub(crate) day: i64,
    pub(crate) state_bytes: u64,
    pub(crate) state_inodes: u64,
    pub(crate) git_bytes: u64,
    pub(crate) git_inodes: u64,
    pub(crate) packs: usize,
    pub(crate) checkpoints: usize,
    pub(crate) call_ms: f64,
    pub(crate) call_slow_ms: f64,
    pub(crate) status_ms: f64,
    pub(crate) background_ms: f64,
}

impl Sample {
    pub(crate) const HEAD: &str = " hook day  state KB inodes  .git KB inodes packs points  call ms  95 %  git status  background ms";
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:5} {:3} {:9} {:6} {:8} {:6} {:5} {:6} {:8.1} {:5.1} {:11.1} {:14.0}",
            self.hook,
            self.day,
            self.state_bytes / 1000,
            self.state_inodes,
            self.git_bytes / 1000,
            self.git_inodes,
            self.packs,
            self.checkpoints,
            self.call_ms,
            self.call_slow_ms,
            self.status_ms,
            self.background_ms,
        )
    }
}

/// One line of a panel: its name, colour and values.
type Curve<'a> = (&'a str, &'a str, Vec<f64>);

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 120.0;

/// Draws four panels over the days.
pub(crate) fn draw(samples: &[Sample]) -> String {
    let of = |value: fn(&Sample) -> f64| samples.iter().map(value).collect::<Vec<f64>>();
    #[expect(clippy::cast_precision_loss, reason = "a drawing is no finer")]
    let panels: [(&str, Vec<Curve<'_>>); 4] = [
        (
            "disk, MB",
            vec![
                ("state", "#2060c0", of(|it| it.state_bytes as f64 / 1e6)),
                (".git", "#c06020", of(|it| it.git_bytes as f64 / 1e6)),
            ],
        ),
        (
            "inodes",
            vec![
                ("state", "#2060c0", of(|it| it.state_inodes as f64)),
                (".git", "#c06020", of(|it| it.git_inodes as f64)),
            ],
        ),
        (
            "one call, ms",
            vec![
                ("median", "#2060c0", of(|it| it.call_ms)),
                ("95 %", "#a0a0a0", of(|it| it.call_slow_ms)),
            ],
        ),
        ("git status, ms", vec![("", "#c06020", of(|it| it.status_ms))]),
    ];
    let days = samples.last().map_or(0, |last| last.day);
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\" height=\"400\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"800\" height=\"400\" fill=\"white\"/>\n",
    );
    for (n, (title, curves)) in panels.iter().enumerate() {
        let (left, top) = if n % 2 == 0 { (40.0, 30.0) } else { (430.0, 30.0) };
        let top = if n < 2 { top } else { top + 190.0 };
        let most = curves.iter().flat_map(|(_, _, values)| values).copied().fold(1.0, f64::max);
        _ = writeln!(svg, "<text x=\"{left}\" y=\"{}\">{title}</text>", top - 8.0);
        _ = writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#ccc\"/>"
        );
        _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{most:.0}</text>",
            left - 4.0,
            top + 8.0
        );
        _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">day {days}</text>",
            left + WIDTH,
            top + HEIGHT + 14.0
        );
        for (at, (name, colour, values)) in curves.iter().enumerate() {
            let points: Vec<String> = points(values, most, left, top);
            _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
                points.join(" ")
            );
            let x = left + 110.0 + 60.0 * f64::from(u8::try_from(at).unwrap_or(0));
            _ = writeln!(
                svg,
                "<text x=\"{x}\" y=\"{}\" fill=\"{colour}\">{name}</text>",
                top - 8.0
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

#[expect(clippy::cast_precision_loss, reason = "a drawing is no finer")]
fn points(values: &[f64], most: f64, left: f64, top: f64) -> Vec<String> {
    let step = WIDTH / (values.len().max(2) - 1) as f64;
    let place = |(n, value): (usize, &f64)| {
        format!("{:.1},{:.1}", left + step * n as f64, top + HEIGHT - value / most * HEIGHT)
    };
    values.iter().enumerate().map(place).collect()
}
