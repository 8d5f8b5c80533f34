//! The decision about a hook call.

/// What we tell the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the call may go on.
    pub verdict: Verdict,
    /// One line for the user, if there is something worth saying. Already escaped.
    pub note: Option<String>,
    /// What the model gets to hear along with the user's words, where the user wants that and the
    /// agent can. Of a prompt only.
    pub tell: Option<String>,
}

/// Whether a call may go on.
///
/// There is no `Allow`: to several agents it means "skip the user's own
/// permission prompt", and a safety net has no business doing that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// We have no opinion; the agent's own rules apply.
    Abstain,
    /// Ask the user first.
    Ask,
    /// Do not run it.
    Deny,
}

impl Decision {
    /// No opinion, and nothing to say.
    pub const NEUTRAL: Self = Self { verdict: Verdict::Abstain, note: None, tell: None };

    /// No opinion, and one line for the user.
    pub fn note(note: String) -> Self {
        Self { verdict: Verdict::Abstain, note: Some(note), tell: None }
    }
}
