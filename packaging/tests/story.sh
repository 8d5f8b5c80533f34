#!/bin/sh
# What every package must do once it is installed, with nothing but a shell: `install`, a call of an
# agent, `undo`, `doctor`, `uninstall`, and every trace removed.
#
#     story.sh PROGRAM      PROGRAM is the path that must be written into settings
#
# Needs a throw-away HOME, and `beforehand` on the PATH.
set -eu
program=$1
fail() { echo "FAILED: $*" >&2; exit 1; }

# What is in the home, but for caches of package managers.
listing() { find "$HOME" -not -path "$HOME/.npm*" -not -path "$HOME/.cache*" | sort; }

before=$(listing)
mkdir -p "$HOME/.claude" "$HOME/project/src"
cd "$HOME/project"
echo "the only copy" >src/notes.txt
beforehand install claude-code --yes >/dev/null 2>&1 || fail "install"
command=$(sed -n 's/.*"command": "\(.* hook --agent claude-code\)".*/\1/p' "$HOME/.claude/settings.json" | sort -u)
[ "$command" = "[ ! -x $program ] || exec $program hook --agent claude-code" ] || fail "settings have: $command"

# As the agent does it: the command by a shell, with no PATH that leads to beforehand.
payload='{"session_id":"s1","transcript_path":"/none","cwd":"'"$PWD"'","prompt_id":"p1","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -rf src"},"tool_use_id":"t1"}'
answer=$(printf %s "$payload" | PATH=/nowhere /bin/sh -c "$command") || fail "the hook ended with $?"
[ "$answer" = "{}" ] || fail "the hook answered: $answer"
rm -rf src
beforehand undo --yes >/dev/null 2>&1 || fail "undo"
[ "$(cat src/notes.txt)" = "the only copy" ] || fail "the file is not back"
beforehand doctor 2>&1 | grep -q "hook in ~/.claude/settings.json" || fail "doctor: $(beforehand doctor 2>&1)"

beforehand uninstall --yes >/dev/null 2>&1 || fail "uninstall"
rm -rf "$HOME/.local/state/beforehand" "$HOME/.config/beforehand" "$HOME/project"
rmdir "$HOME/.local/state" "$HOME/.local" "$HOME/.config" "$HOME/.claude" 2>/dev/null || true
[ "$(listing)" = "$before" ] || fail "left behind: $(listing)"
