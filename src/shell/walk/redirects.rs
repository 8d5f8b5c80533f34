//! What redirections do: what they write to, and what they feed to standard input.

use super::{Walk, shorten};
use crate::{
    model::{Certainty, TargetAction},
    shell::{
        names,
        syntax::{Redirect, Source},
        verdict::{Stdin, destroys},
    },
};

impl Walk<'_> {
    /// Judges redirections; says what they feed to standard input. The last one decides.
    pub(super) fn redirects(&mut self, redirects: &[Redirect]) -> Option<Stdin> {
        let mut stdin = None;
        for redirect in redirects {
            if self.burn(1) {
                break;
            }
            let fed = self.redirect(&redirect.to);
            if redirect.is_stdin {
                stdin = Some(fed);
            }
        }
        stdin
    }

    fn redirect(&mut self, to: &Source) -> Stdin {
        match to {
            Source::Reads(word) => match self.one(word).literal() {
                Some("/dev/null") => Stdin::Text(String::new()),
                Some(_) | None => Stdin::File,
            },
            Source::Writes { word, keeps } => {
                self.writes(word, *keeps);
                Stdin::File
            }
            Source::Duplicates(word) => {
                let digits = word.strip_suffix('-').unwrap_or(word);
                if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    self.writes(word, false);
                }
                Stdin::File
            }
            Source::HereDoc(body, expands) => self.document(body, *expands),
            Source::HereString(word) => {
                let field = self.one(word);
                match field.sure {
                    Certainty::Exact => Stdin::Text(field.text),
                    Certainty::Glob | Certainty::Dynamic => Stdin::File,
                }
            }
            Source::Process(nodes) => {
                self.apart(|walk| walk.nodes(nodes));
                self.takes_any = true;
                Stdin::File
            }
        }
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
        let targets = self.everywhere(|walk| vec![walk.target(&field, action, reason)]);
        let shown = format!("{} {word}", if keeps { ">>" } else { ">" });
        self.push(shorten(&shown), destroys(reason, targets));
    }
}
