//! What redirections do: what they write to, and what they feed to standard input.

use super::{ShellWalk, shorten};
use crate::{
    model::{Certainty, TargetAction},
    shell::{
        names,
        syntax::{Redirect, RedirectSource},
        verdict::{CommandInput, destroys},
    },
};

impl ShellWalk<'_> {
    /// Judges redirections; says what they feed to standard input. The last one decides.
    pub(super) fn redirects(&mut self, redirects: &[Redirect]) -> Option<CommandInput> {
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

    fn redirect(&mut self, to: &RedirectSource) -> CommandInput {
        match to {
            RedirectSource::Reads(word) => {
                let field = self.one(word);
                if field.literal() == Some("/dev/null") {
                    return CommandInput::Text(String::new());
                }
                if let (path, Certainty::Exact) = self.place(&field) {
                    self.reads_file(path.clone());
                    self.files.input = Some(path);
                }
                CommandInput::File
            }
            RedirectSource::Writes { word, keeps } => {
                self.writes(word, *keeps);
                CommandInput::File
            }
            RedirectSource::Duplicates(word) => {
                let digits = word.strip_suffix('-').unwrap_or(word);
                if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    self.writes(word, false);
                }
                CommandInput::File
            }
            RedirectSource::HereDoc(body, expands) => self.document(body, *expands),
            RedirectSource::HereString(word) => {
                let field = self.one(word);
                match field.sure {
                    Certainty::Exact => CommandInput::Text(field.text),
                    Certainty::Glob | Certainty::Dynamic => CommandInput::File,
                }
            }
            RedirectSource::Process(nodes) => {
                self.in_subshell(|walk| walk.nodes(nodes));
                self.takes_any = true;
                CommandInput::File
            }
        }
    }

    pub(super) fn document(&mut self, body: &str, expands: bool) -> CommandInput {
        if !expands {
            return CommandInput::Text(body.to_owned());
        }
        let before = self.found.len();
        let field = self.text(body);
        match field.sure {
            Certainty::Exact if self.found.len() == before => CommandInput::Text(field.text),
            Certainty::Exact | Certainty::Glob | Certainty::Dynamic => CommandInput::File,
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
