//! A binary search for the first bad one of several states.

/// What a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateVerdict {
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
    /// It cannot be told.
    Skip,
}

impl StateVerdict {
    /// What the exit code of a command says, as for `git bisect run`; `None` for one that ends the search.
    pub fn of_exit(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Good),
            125 => Some(Self::Skip),
            1..=127 => Some(Self::Bad),
            128..=255 => None,
        }
    }

    /// A word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Skip => "skipped",
        }
    }
}

/// What a search does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextProbe {
    /// Look at this state.
    Try(usize),
    /// Nothing between the last good state and the first bad one can be told.
    Found {
        /// The last good one.
        good: usize,
        /// The first bad one.
        bad: usize,
    },
}

/// Goes on with a search. Of `known`, the oldest first, one is good and a later one bad.
pub fn probe(known: &[Option<StateVerdict>]) -> NextProbe {
    let bad = known.iter().position(|it| *it == Some(StateVerdict::Bad)).unwrap_or(known.len());
    let good = known[..bad].iter().rposition(|it| *it == Some(StateVerdict::Good)).unwrap_or(0);
    let middle = good.midpoint(bad);
    let open = (good + 1..bad).filter(|at| known[*at].is_none());
    match open.min_by_key(|at| at.abs_diff(middle)) {
        Some(at) => NextProbe::Try(at),
        None => NextProbe::Found { good, bad },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches states of which the first bad one is `bad`, and some cannot be told.
    fn search(count: usize, bad: usize, skipped: &[usize]) -> (usize, usize, usize) {
        let mut known = vec![None; count];
        (known[0], known[count - 1]) = (Some(StateVerdict::Good), Some(StateVerdict::Bad));
        let mut tries = 0;
        loop {
            match probe(&known) {
                NextProbe::Found { good, bad } => return (good, bad, tries),
                NextProbe::Try(at) => {
                    tries += 1;
                    known[at] = Some(match at {
                        _ if skipped.contains(&at) => StateVerdict::Skip,
                        _ if at < bad => StateVerdict::Good,
                        _ => StateVerdict::Bad,
                    });
                }
            }
        }
    }

    #[test]
    fn the_first_bad_one_is_found_in_few_steps() {
        for count in 2..40 {
            for bad in 1..count {
                let (good, found, tries) = search(count, bad, &[]);
                assert_eq!((good, found), (bad - 1, bad), "of {count}");
                assert!(1 << tries <= 2 * count, "{tries} of {count}");
            }
        }
    }

    #[test]
    fn what_cannot_be_told_is_left_between() {
        assert_eq!(search(10, 5, &[4, 5]), (3, 6, search(10, 5, &[4, 5]).2));
        for skipped in 1..9 {
            for bad in 1..10 {
                let (good, found, _) = search(10, bad, &[skipped]);
                assert!(good < bad && bad <= found && found - good <= 2, "{bad} {skipped}");
            }
        }
    }

    #[test]
    fn exit_codes_are_those_of_git_bisect_run() {
        let verdicts = [0, 1, 124, 125, 126, 127, 128, 255].map(StateVerdict::of_exit);
        let (good, bad, skip) =
            (Some(StateVerdict::Good), Some(StateVerdict::Bad), Some(StateVerdict::Skip));
        assert_eq!(verdicts, [good, bad, bad, skip, bad, bad, None, None]);
    }
}
