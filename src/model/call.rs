//! Calls of agents, in terms that all agents share.

use std::path::{Path, PathBuf};

use serde::{
    Deserialize, Serialize,
    de::{IntoDeserializer, value},
};

/// An agent, by the protocol of its hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agent {
    /// Anthropic's Claude Code.
    ClaudeCode,
    /// `OpenAI`'s Codex.
    Codex,
    /// Google's Gemini CLI.
    GeminiCli,
    /// Alibaba's Qwen Code.
    QwenCode,
    /// GitHub's Copilot CLI.
    CopilotCli,
    /// `OpenCode`, through a plugin that calls us.
    #[serde(rename = "opencode")]
    OpenCode,
    /// Cline's command line.
    Cline,
    /// Nous Research's Hermes agent.
    Hermes,
    /// Cursor's agent and its command line.
    Cursor,
    /// Windsurf's Cascade.
    Windsurf,
    /// Amazon's Kiro, and Amazon Q before it.
    Kiro,
    /// Factory's Droid.
    FactoryDroid,
    /// Charm's Crush.
    Crush,
    /// Block's Goose.
    Goose,
    /// Google's Antigravity.
    Antigravity,
    /// `xAI`'s Grok Build.
    GrokBuild,
    /// Cognition's Devin on the command line.
    #[serde(rename = "devin-cli")]
    Devin,
    /// The agent mode of Visual Studio Code.
    #[serde(rename = "vscode-agent")]
    VsCodeAgent,
    /// Microsoft's Amplifier.
    Amplifier,
    /// pi, through an extension that calls us.
    Pi,
    /// `OpenClaw`, through a plugin that calls us.
    #[serde(rename = "openclaw")]
    OpenClaw,
    /// Kilo's command line, through a plugin that calls us.
    Kilo,
    /// Mistral's Vibe.
    Vibe,
    /// Augment's Auggie.
    Auggie,
    /// `OpenHands`' command line.
    #[serde(rename = "openhands")]
    OpenHands,
    /// Moonshot's Kimi Code.
    Kimi,
    /// Qoder's command line.
    Qoder,
    /// Letta Code.
    Letta,
    /// Command Code.
    CommandCode,
    /// None: a program that a person runs through us.
    Program,
}

impl Agent {
    /// Whether a name on disk is one of an agent.
    pub(super) fn is_named(name: &str) -> bool {
        let name: value::StrDeserializer<'_, value::Error> = name.into_deserializer();
        Self::deserialize(name).is_ok()
    }
}

/// One conversation with an agent, as the agent names it. Never empty; otherwise any text at all,
/// so it never becomes a file or ref name unencoded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(pub String);

/// One request from the user within a session. Any text, like [`SessionId`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TurnId(pub String);

/// The circumstances of an event, which every payload of an agent has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallContext {
    /// The agent.
    pub agent: Agent,
    /// In which conversation.
    pub session: SessionId,
    /// In which turn, where the agent says.
    pub turn: Option<TurnId>,
    /// The directory the agent says it works in. Not checked: it may be relative, gone, or a lie.
    pub cwd: Option<PathBuf>,
    /// Further directories a relative path of this call may be meant from.
    pub bases: Vec<PathBuf>,
    /// Where the agent keeps the conversation, if it says.
    pub transcript: Option<PathBuf>,
    /// The address of the agent's own server, where it has one and says so.
    pub server: Option<String>,
    /// The sub-agent that makes the call, if it is one.
    pub subagent: Option<String>,
    /// The agent's permission mode, in its own words, if it says: whether its user is asked.
    pub mode: Option<String>,
}

/// An event that a hook payload reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A conversation starts or is taken up again.
    SessionBegins(CallContext),
    /// The user asked for something; a new turn begins. A prompt that begins none (empty, a
    /// background notification) is [`Event::Other`].
    TurnBegins {
        /// The circumstances.
        context: CallContext,
        /// What the user asked for, if the agent says.
        prompt: Option<String>,
    },
    /// A sub-agent starts that has a conversation of its own.
    SubagentBegins {
        /// The circumstances of the conversation that started it.
        context: CallContext,
        /// The sub-agent's conversation.
        child: SessionId,
    },
    /// The agent is about to use a tool.
    ToolCall(ToolCall),
    /// The agent is about to run a command line that is no tool call, such as one in a custom slash
    /// command. Any opinion on it would stop it, so it gets none.
    CommandLine(ToolCall),
    /// The command lines of a custom slash command have run, and the next prompt is its own: their work
    /// belongs to the turn that begins with it.
    CommandLineDone(ToolCall),
    /// The agent has used a tool, whatever came of it.
    ToolDone(ToolCall),
    /// The agent has used a tool that started something, which goes on in the background.
    ToolInBackground(ToolCall),
    /// The agent has finished its work on the turn, or a sub-agent its part of it.
    TurnEnds(CallContext),
    /// [`Self::TurnEnds`], and none of the agent's tasks goes on in the background.
    TurnEndsIdle(CallContext),
    /// The conversation is over.
    SessionEnds(CallContext),
    /// Something we were told about and do not act on.
    Other,
}

impl Event {
    /// The circumstances.
    pub fn context_mut(&mut self) -> Option<&mut CallContext> {
        match self {
            Self::SessionBegins(context)
            | Self::TurnBegins { context, .. }
            | Self::SubagentBegins { context, .. }
            | Self::TurnEnds(context)
            | Self::TurnEndsIdle(context)
            | Self::SessionEnds(context) => Some(context),
            Self::ToolCall(call)
            | Self::CommandLine(call)
            | Self::CommandLineDone(call)
            | Self::ToolDone(call)
            | Self::ToolInBackground(call) => Some(&mut call.context),
            Self::Other => None,
        }
    }
}

/// One use of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The circumstances.
    pub context: CallContext,
    /// The agent's name for this one call, if it has one.
    pub id: Option<String>,
    /// The tool, as the agent calls it.
    pub tool: String,
    /// The action that the agent announces.
    pub intent: Intent,
}

/// The action that an agent announces. Paths are as the agent wrote them: absolute, or relative to
/// any of [`CallContext::cwd`] and [`CallContext::bases`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Look, but not touch.
    Read,
    /// Replace these files.
    Write(Vec<PathBuf>),
    /// Change, move or delete these files.
    Edit(Vec<PathBuf>),
    /// Run this command line.
    Run {
        /// The command line, whole.
        command: String,
        /// The language of the command line.
        language: Language,
    },
    /// A tool we do not know.
    Unknown(UnknownTool),
}

/// A tool that no row of the agent knows, or one that it knows with arguments that it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownTool {
    /// Its name, as the agent calls it.
    pub name: String,
    /// Every text among its arguments, names included, each once: any of them may be a path or a
    /// command line.
    pub texts: Vec<String>,
}

impl ToolCall {
    /// The call on one line, shortened: a command line, or the tool and the paths that it names. Not
    /// escaped.
    pub fn summary(&self) -> String {
        /// Enough to recognise it.
        const CHARS_MAX: usize = 120;
        let text = match &self.intent {
            Intent::Run { command, .. } => command.clone(),
            Intent::Write(paths) | Intent::Edit(paths) => {
                let paths = paths.iter().map(|path| path.to_string_lossy());
                let words: Vec<_> =
                    std::iter::once(self.tool.as_str().into()).chain(paths).collect();
                words.join(" ")
            }
            Intent::Unknown(tool) => tool.summary(),
            Intent::Read => self.tool.clone(),
        };
        text.chars().take(CHARS_MAX).collect()
    }
}

impl UnknownTool {
    /// The tool and its arguments, on one line.
    pub fn summary(&self) -> String {
        format!("{} {}", self.name, self.arguments()).trim_end().to_owned()
    }

    /// The arguments on one line.
    pub fn arguments(&self) -> String {
        let texts = self.texts.iter().map(|text| text.lines().next().unwrap_or_default());
        texts.collect::<Vec<&str>>().join(" ")
    }
}

impl Intent {
    /// A command line that runs in `dir`: the same line after a `cd`.
    #[must_use]
    pub fn run_in(self, dir: &Path) -> Self {
        match (self, dir.to_str()) {
            (Self::Run { command, language: Language::Shell }, Some(dir)) => {
                let command = format!("cd {} || exit\n{command}", shell_words::quote(dir));
                Self::Run { command, language: Language::Shell }
            }
            (intent, _) => intent,
        }
    }

    /// The files that an edit names.
    pub fn edited(&self) -> Option<&[PathBuf]> {
        match self {
            Self::Write(paths) | Self::Edit(paths) => Some(paths),
            Self::Read | Self::Run { .. } | Self::Unknown(_) => None,
        }
    }
}

/// In which language a command line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// A POSIX shell or bash.
    Shell,
    /// Windows `PowerShell`.
    PowerShell,
    /// A program text, such as Python, that some interpreter runs.
    Code,
}

/// The effect of a call on files, as judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Leaves files alone.
    None,
    /// Changes these files and no others.
    Touches(Vec<PathBuf>),
    /// Can lose data anywhere it reaches; the finding says why.
    Destroys(Finding),
    /// We cannot tell, so it is treated as mutating.
    Unknown(Finding),
}

/// What was concluded about one command line, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// The verdict: the worst of [`Finding::commands`].
    pub level: Level,
    /// Every simple command and redirection found, in the order of the line.
    pub commands: Vec<Simple>,
    /// Words of it that are texts in a language with patterns.
    pub texts: Vec<ProgramText>,
    /// Whether a shell that goes on may read later lines otherwise after it: a name stands for
    /// something else, or an output goes elsewhere.
    pub changes_shell: bool,
    /// Whether something of it may go on when the line has ended.
    pub in_background: bool,
}

/// How bad a command can be, from harmless to unknowable. The order is what "worst" means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Proven to leave files alone.
    #[default]
    ReadOnly,
    /// Makes new files, and replaces none.
    Creates,
    /// Can overwrite, truncate, move or delete.
    Destroys,
    /// Cannot be told.
    Unknown,
}

/// One simple command, or one redirection, of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simple {
    /// Its text, shortened for showing; not escaped.
    pub text: String,
    /// What it can do.
    pub level: Level,
    /// One sentence fragment that says why, as in "rm removes its operands".
    pub reason: String,
    /// What it can do it to, as far as is known.
    pub targets: Vec<Target>,
}

/// A word of a command that is a text in a language with patterns, such as a script of `sed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramText {
    /// The word.
    pub word: String,
    /// Its text without the signs of the language that could pass for the beginning of a path.
    pub plain: String,
}

/// Something a command can destroy or make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The path as the command would see it: absolute, or relative to the call's directory. For a
    /// glob, the pattern. For a dynamic target, the word as written.
    pub path: String,
    /// How sure we are that it is this path.
    pub certainty: Certainty,
    /// What happens to it.
    pub action: TargetAction,
    /// What of it is left alone.
    pub spares: Spares,
    /// One sentence fragment that says why, as in "a redirection truncates its target".
    pub reason: String,
}

/// What a command leaves alone of what it names.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spares {
    /// Nothing.
    #[default]
    Nothing,
    /// What git ignores.
    Ignored,
    /// Directories, with all that is in them.
    Directories,
    /// Of a directory, what no commit has at its path.
    Uncommitted,
    /// Of a directory, all but what has a name that fits this pattern of `find -name`.
    OtherNames(String),
    /// Of a directory, what this other one does not have at the same place: it is copied over it.
    NotIn(String),
    /// Of a directory, what this archive does not have: it is unpacked in it.
    NotPacked(String),
    /// Of a directory, all but the files of the program's own kind, which it looks for there itself.
    OtherKinds,
}

/// How well a target's path is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// This very path.
    Exact,
    /// Whatever this pattern matches when the command runs.
    Glob,
    /// Not known before it runs.
    Dynamic,
}

/// What a command does to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetAction {
    /// Removes it, and everything below it.
    Delete,
    /// Replaces or truncates its content.
    Overwrite,
    /// Changes it in place, in part.
    Modify,
    /// Takes it away to another name.
    Move,
    /// Makes it; what stands there already would be kept.
    Create,
    /// Changes the state of a git repository.
    Git,
}

impl Finding {
    /// Every target of every command, in order.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.commands.iter().flat_map(|command| &command.targets)
    }
}
