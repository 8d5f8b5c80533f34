"""A real terminal: tmux with a server of its own."""

import shlex
import subprocess
import time

TIME_MAX_S = 60


class Terminal:
    """One terminal with a shell in it, and every screen that was looked at."""

    def __init__(self, dir, cwd, env, size=(110, 34)):
        self.socket, self.screens = dir / "tmux", dir / "screens.txt"
        self.cwd = cwd
        words = " ".join(f"{name}={shlex.quote(value)}" for name, value in env.items())
        self.shell = f"exec env -i PS1='$ ' {words} sh -i"
        at = ["-x", str(size[0]), "-y", str(size[1]), "-c", str(cwd)]
        self.tmux("-f", "/dev/null", "new-session", "-d", *at, self.shell)
        self.tmux("set-option", "-g", "escape-time", "0")
        self.until("$")

    def tmux(self, *args):
        done = subprocess.run(["tmux", "-S", str(self.socket), *args], capture_output=True, text=True, check=True)
        return done.stdout

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def keys(self, *names):
        """Presses keys, by the names tmux has for them."""
        self.tmux("send-keys", *names)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def enter(self, text):
        self.type(text)
        time.sleep(0.3)
        self.keys("Enter")

    def until(self, *texts, without=(), waits_for=""):
        """Waits for a screen with all of these on it, and none of those. Keeps it. Lines that were
        broken to fit count as one."""
        end = time.monotonic() + TIME_MAX_S
        while True:
            screen = self.screen()
            flat = " ".join(screen.replace("│", " ").split())
            if all(text in screen or text in flat for text in texts) and not any(text in screen for text in without):
                break
            if time.monotonic() > end:
                self.keep(screen)
                raise TimeoutError(f"no {waits_for or texts} on the screen:\n{screen}")
            time.sleep(0.1)
        self.keep(screen)
        return screen

    def keep(self, screen):
        with self.screens.open("a") as file:
            file.write(screen.rstrip() + "\n" + "=" * 78 + "\n")

    def screens_seen(self):
        return self.screens.read_text().split("=" * 78)

    def another(self):
        """Goes on in another window, with a shell that has seen nothing."""
        self.tmux("new-window", "-c", str(self.cwd), self.shell)
        self.until("$")

    def end(self):
        self.tmux("kill-server")
