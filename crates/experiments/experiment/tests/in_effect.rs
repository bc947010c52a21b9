//! Tests that options which an experiment declares ineffective change no event of its run.

use description::{Description, MachineDescription};
use experiment::{Case, Choices, Contents, DiskLayout, FieldSet, Method, Options, Queued};
use layout::{Pattern, Problem};

fn digest(experiment: &Case) -> (u64, u64) {
    let trial = experiment.trial(0).expect("an experiment that works");
    (trial.digest, trial.events)
}

#[test]
fn options_declared_ineffective_change_no_event() {
    let machine = MachineDescription::load("starfish-1996").expect("a machine that is built in");
    let mut without_effect = 0;
    for method in Method::ALL {
        for pattern in Pattern::all() {
            for (record_bytes, queued, memget_writes) in [
                (1024, Queued::SmallRecords, true),
                (8192, Queued::SmallRecords, false),
                (1024, Queued::Always, false),
                (1024, Queued::Never, true),
            ] {
                let memget_writes = memget_writes && method != Method::DiskDirected;
                let experiment = Case {
                    problem: Problem::new(256 * 1024, record_bytes, machine.nodes.compute.value),
                    machine: machine.clone(),
                    method,
                    pattern: pattern.into(),
                    layout: DiskLayout::Contiguous,
                    options: Options { queued, memget_writes, ..Options::default() },
                    contents: Contents::Real,
                    seed: 1,
                };
                let in_effect = experiment.in_effect();
                if in_effect.options != experiment.options {
                    without_effect += 1;
                    let what = format!("{method} {pattern} {:?}", experiment.options);
                    assert_eq!(digest(&in_effect), digest(&experiment), "{what}");
                }
            }
        }
    }
    assert!(without_effect > 50, "only {without_effect} had options without effect");
}

#[test]
fn options_rejected_as_ineffective_change_no_event() {
    let machine = MachineDescription::load("starfish-1996").expect("a machine that is built in");
    let usual = Options::default();
    let chosen = [
        ("prefetch", Options { prefetch_blocks: 8, ..usual }),
        ("queued", Options { queued: Queued::Always, ..usual }),
        ("memget_writes", Options { memget_writes: true, ..usual }),
    ];
    let mut refused = 0;
    for (field, options) in chosen {
        for (method, pattern) in [Method::Traditional, Method::TwoPhase]
            .into_iter()
            .flat_map(|method| Pattern::all().map(move |pattern| (method, pattern)))
        {
            let case = Case {
                problem: Problem::new(256 * 1024, 512, machine.nodes.compute.value),
                machine: machine.clone(),
                method,
                pattern: pattern.into(),
                layout: DiskLayout::Contiguous,
                options,
                contents: Contents::Real,
                seed: 1,
            };
            if Choices::without_effect(field, &case).is_some() {
                refused += 1;
                let unchosen = Case { options: usual, ..case.clone() };
                assert_eq!(digest(&unchosen), digest(&case), "{field}, {method} {pattern}");
            }
        }
    }
    assert!(refused > 30, "only {refused} are refused");
}
