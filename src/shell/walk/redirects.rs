//! What redirections do: what they write to, and what they feed to standard input.

use super::{Walk, shorten};
use crate::{
    model::{Certainty, TargetAction},
    shell::{
        names,
        syntax::Redirect,
        verdict::{Stdin, destroys},
    },
};

impl Walk<'_> {
    /// Judges redirections; says what they feed to standard input.
    pub(super) fn redirects(&mut self, redirects: &[Redirect]) -> Option<Stdin> {
        let mut stdin = None;
        for redirect in redirects {
            if self.burn(1) {
                break;
            }
            match redirect {
                Redirect::Reads(word) => {
                    let field = self.one(word);
                    stdin = Some(match field.literal() {
                        Some("/dev/null") => Stdin::Text(String::new()),
                        _ => Stdin::File,
                    });
                }
                Redirect::Writes { word, keeps } => self.writes(word, *keeps),
                Redirect::Duplicates(word) => {
                    let digits = word.strip_suffix('-').unwrap_or(word);
                    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                        self.writes(word, false);
                    }
                    stdin = stdin.or(Some(Stdin::File)).filter(|_| digits != "1" && digits != "2");
                }
                Redirect::HereDoc(body, expands) => stdin = Some(self.document(body, *expands)),
                Redirect::HereString(word) => {
                    let field = self.one(word);
                    stdin = Some(match field.sure {
                        Certainty::Exact => Stdin::Text(field.text),
                        Certainty::Glob | Certainty::Dynamic => Stdin::File,
                    });
                }
                Redirect::Process(nodes) => {
                    self.apart(|walk| walk.nodes(nodes));
                    stdin = Some(Stdin::File);
                }
            }
        }
        stdin
    }

    pub(super) fn document(&mut self, body: &str, expands: bool) -> Stdin {
        if !expands {
            return Stdin::Text(body.to_owned());
        }
        let before = self.found.len();
        let field = self.text(body);
        match field.sure {
            Certainty::Exact if self.found.len() == before => Stdin::Text(field.text),
            Certainty::Exact | Certainty::Glob | Certainty::Dynamic => Stdin::File,
        }
    }

    pub(super) fn writes(&mut self, word: &str, keeps: bool) {
        let field = self.one(word);
        if names::is_sink(&field) {
            return;
        }
        let (action, reason) = if keeps {
            (TargetAction::Modify, "a redirection writes to its target")
        } else {
            (TargetAction::Overwrite, "a redirection truncates its target")
        };
        let target = self.target(&field, action, reason);
        let shown = format!("{} {word}", if keeps { ">>" } else { ">" });
        self.push(shorten(&shown), destroys(reason, vec![target]));
    }
}
