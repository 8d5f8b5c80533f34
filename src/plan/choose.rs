//! A part of a plan: what is chosen of it stays, everything else is left as it is.

use std::collections::BTreeMap;

use super::restore_plan::{Action, KeepReason, Merged, PlanStep, RestorePlan};
use crate::model::{Entry, RelPath};

/// Something that is chosen as a whole: a path that changes, and what comes or goes with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choosable {
    /// Which path.
    pub path: RelPath,
    /// Whether it is outside the root, and relative to the top of the file system.
    pub is_outside: bool,
}

/// What is chosen of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// All that the plan does there.
    All,
    /// It becomes this: some of what the plan does.
    Part(Merged),
}

impl RestorePlan {
    /// Everything that can be chosen, in the order of the plan. A directory that comes or goes with
    /// what is in it is not among it; one that takes the place of a file, or leaves it to one, is
    /// chosen together with all that is in it.
    pub fn choosable(&self) -> Vec<Choosable> {
        let mut all = Vec::new();
        for (steps, is_outside) in [(&self.steps, false), (&self.outside.steps, true)] {
            let heads = steps
                .iter()
                .filter(|step| step.is_deed())
                .filter(|step| head_of(steps, step) == &step.path && !is_carried(steps, step));
            all.extend(heads.map(|step| Choosable { path: step.path.clone(), is_outside }));
        }
        all
    }

    /// The step of a path.
    pub fn step_of(&self, choosable: &Choosable) -> Option<&PlanStep> {
        let steps = if choosable.is_outside { &self.outside.steps } else { &self.steps };
        let at = steps.binary_search_by(|step| step.path.cmp(&choosable.path)).ok()?;
        steps.get(at)
    }

    /// Leaves everything as it is that is not chosen. A part can only be chosen below the root.
    pub fn choose(&mut self, chosen: &BTreeMap<Choosable, Chosen>) {
        for (path, merged) in keep_unchosen(&mut self.steps, chosen, false) {
            self.merges.insert(path, merged);
        }
        keep_unchosen(&mut self.outside.steps, chosen, true);
        let merged = |path: &RelPath| {
            let at = self.steps.binary_search_by(|step| step.path.cmp(path));
            at.is_ok_and(|at| self.steps[at].action == Action::Merge)
        };
        self.merges.retain(|path, _| merged(path));
    }
}

/// Keeps the steps that are not chosen, and returns the parts that are.
fn keep_unchosen(
    steps: &mut [PlanStep],
    chosen: &BTreeMap<Choosable, Chosen>,
    is_outside: bool,
) -> Vec<(RelPath, Merged)> {
    let whole = steps.to_vec();
    let mut parts = Vec::new();
    for step in steps.iter_mut().filter(|step| step.is_deed()) {
        let path = head_of(&whole, step).clone();
        match chosen.get(&Choosable { path, is_outside }) {
            _ if is_carried(&whole, step) => (),
            Some(Chosen::All) => (),
            Some(Chosen::Part(merged)) => {
                step.action = Action::Merge;
                parts.push((step.path.clone(), merged.clone()));
            }
            None => step.action = Action::Keep(KeepReason::NotChosen),
        }
    }
    // From the inside out: a directory comes with anything in it, and goes with everything in it.
    for at in (0..steps.len()).rev() {
        if !is_carried(&whole, &steps[at]) {
            continue;
        }
        let below = &steps[at + 1..][..below(steps, at)];
        let stays = match steps[at].action {
            Action::Recreate => !below.iter().any(PlanStep::is_deed),
            _ => below.iter().any(|step| !step.is_deed()),
        };
        if stays {
            steps[at].action = Action::Keep(KeepReason::NotChosen);
        }
    }
    parts
}

/// How many of the steps after one are below its path.
fn below(steps: &[PlanStep], at: usize) -> usize {
    steps[at + 1..].iter().take_while(|step| step.path.is_within(&steps[at].path)).count()
}

/// The path with which a step is chosen: the outermost that a directory replaces, or makes room for.
fn head_of<'s>(steps: &'s [PlanStep], step: &'s PlanStep) -> &'s RelPath {
    let above = step.path.above();
    let swapped = above.filter_map(|path| {
        let at = steps.binary_search_by(|step| step.path.cmp(&path)).ok()?;
        Some(&steps[at]).filter(|step| step.is_deed() && swaps_directory(step))
    });
    swapped.last().map_or(&step.path, |head| &head.path)
}

fn swaps_directory(step: &PlanStep) -> bool {
    let both = step.then.zip(step.now);
    both.is_some_and(|(then, now)| then.is_directory() != now.is_directory())
}

/// Whether a step is a directory that comes or goes only with what is in it.
fn is_carried(steps: &[PlanStep], step: &PlanStep) -> bool {
    let is_directory = step.then.or(step.now).is_some_and(Entry::is_directory);
    let is_bare = matches!(step.action, Action::Recreate | Action::Remove) && is_directory;
    if !is_bare || head_of(steps, step) != &step.path {
        return false;
    }
    let at = steps.partition_point(|other| other.path <= step.path);
    let below = steps[at..].iter().take_while(|other| other.path.is_within(&step.path));
    below.into_iter().any(PlanStep::is_deed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{CheckpointId, Kind},
        plan::Author,
    };

    const FILE: Entry = Entry { kind: Kind::File, permissions: 0o644, content: None, device: 0 };
    const DIR: Entry = Entry::DIRECTORY;

    fn path(text: &str) -> RelPath {
        RelPath::from_bytes(text.as_bytes()).unwrap()
    }

    fn plan(steps: &[(&str, Action, Option<Entry>, Option<Entry>)]) -> RestorePlan {
        let step =
            |(at, action, then, now): &(&str, Action, Option<Entry>, Option<Entry>)| PlanStep {
                path: path(at),
                action: *action,
                then: *then,
                now: *now,
                author: Author::Agent,
            };
        RestorePlan::of(CheckpointId::from_bits(1), steps.iter().map(step).collect())
    }

    /// What is asked about, and what is done if some of it is chosen.
    fn choose(plan: &RestorePlan, chosen: &[&str]) -> (String, String) {
        let words = |paths: Vec<String>| paths.join(" ");
        let name = |path: &RelPath| path.as_path().display().to_string();
        let asked = plan.choosable().iter().map(|it| name(&it.path)).collect();
        let mut part = plan.clone();
        let chosen =
            chosen.iter().map(|it| (Choosable { path: path(it), is_outside: false }, Chosen::All));
        part.choose(&chosen.collect());
        (words(asked), words(part.deeds().map(|step| name(&step.path)).collect()))
    }

    #[test]
    fn directories_come_with_anything_in_them_and_go_with_everything() {
        let comes = plan(&[
            ("d", Action::Recreate, Some(DIR), None),
            ("d/a", Action::Recreate, Some(FILE), None),
            ("d/b", Action::Recreate, Some(FILE), None),
            ("d/e", Action::Recreate, Some(DIR), None),
        ]);
        assert_eq!(choose(&comes, &["d/b"]), ("d/a d/b d/e".into(), "d d/b".into()));
        assert_eq!(choose(&comes, &[]).1, "");
        let goes = plan(&[
            ("d", Action::Remove, None, Some(DIR)),
            ("d/a", Action::Remove, None, Some(FILE)),
            ("d/b", Action::Remove, None, Some(FILE)),
        ]);
        assert_eq!(choose(&goes, &["d/b"]), ("d/a d/b".into(), "d/b".into()));
        assert_eq!(choose(&goes, &["d/a", "d/b"]).1, "d d/a d/b");
    }

    #[test]
    fn a_file_in_place_of_a_directory_is_one_choice_with_all_that_is_in_it() {
        let swap = plan(&[
            ("d", Action::Restore, Some(DIR), Some(FILE)),
            ("d/a", Action::Recreate, Some(FILE), None),
            ("d/e", Action::Recreate, Some(DIR), None),
            ("d/e/b", Action::Recreate, Some(FILE), None),
            ("x", Action::Restore, Some(FILE), Some(FILE)),
        ]);
        assert_eq!(choose(&swap, &["d"]), ("d x".into(), "d d/a d/e d/e/b".into()));
        assert_eq!(choose(&swap, &["x"]).1, "x");
    }

    #[test]
    fn what_stays_anyway_cannot_be_chosen() {
        let kept = plan(&[
            ("a", Action::Keep(KeepReason::Edited), Some(FILE), Some(FILE)),
            ("b", Action::Restore, Some(FILE), Some(FILE)),
        ]);
        assert_eq!(choose(&kept, &["a"]), ("b".into(), String::new()));
        let mut part = kept.clone();
        part.choose(&BTreeMap::new());
        assert_eq!(part.steps[0].action, Action::Keep(KeepReason::Edited), "and stays a conflict");
        assert_eq!(part.steps[1].action, Action::Keep(KeepReason::NotChosen));
    }

    #[test]
    fn a_part_is_what_the_plan_writes() {
        let mut plan = plan(&[("a", Action::Restore, Some(FILE), Some(FILE))]);
        let merged = Merged { bytes: b"half".to_vec(), permissions: 0o600 };
        let a = Choosable { path: path("a"), is_outside: false };
        plan.choose(&BTreeMap::from([(a.clone(), Chosen::Part(merged.clone()))]));
        assert_eq!(plan.steps[0].action, Action::Merge);
        assert_eq!(plan.merges[&a.path], merged);
        plan.choose(&BTreeMap::new());
        assert!(plan.merges.is_empty(), "what is not chosen is not written");
    }
}
