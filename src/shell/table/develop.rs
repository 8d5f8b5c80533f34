//! Compilers, formatters, linters, package managers, version control.

use super::{Row, Rule, looks, row};
use crate::model::TargetAction::Modify;
use crate::shell::programs;

/// What of turnback's own only looks, and what loses.
const TURNBACK: &[Row] = &[
    row(
        "list show diff explain status doctor check find init version help completions",
        "*",
        Rule::Reads,
        "only shows checkpoints",
    ),
    row("create", "*", Rule::Makes, "takes a checkpoint"),
    row(
        "restore rewind undo redo clear prune uninstall install",
        "* %-h %--help",
        Rule::Destroys,
        "replaces files, forgets checkpoints, or changes what is protected",
    ),
];

pub(super) const ROWS: &[Row] = &[
    row("git", "", Rule::By(programs::git), "works on a repository"),
    row("turnback", "^", Rule::Sub(TURNBACK), "changes checkpoints or their protection"),
    row("gh", "-R: --repo= %--version ^", Rule::Sub(GH), "changes something on GitHub"),
    row(
        "glab",
        "-R: --repo= ^",
        Rule::Sub(&[looks(
            "mr list, mr view, mr diff, issue list, issue view, ci status, ci list, ci view, repo view, auth status, version",
        )]),
        "changes something on GitLab",
    ),
    row(
        "hg",
        "-R: --cwd= -q ^",
        Rule::Sub(&[looks(
            "status st log diff cat annotate blame branches heads id identify root summary tags version files manifest paths grep parents tip incoming outgoing",
        )]),
        "changes a repository",
    ),
    row(
        "svn",
        "-q ^",
        Rule::Sub(&[looks("status st log diff cat info list ls blame proplist propget help")]),
        "changes a working copy",
    ),
    row(
        "jj",
        "-R: --no-pager --ignore-working-copy ^",
        Rule::Sub(&[looks("version help root")]),
        "snapshots and changes a repository",
    ),
    row("git-lfs", "^", Rule::Sub(&[looks("ls-files status env version")]), "changes a repository"),
    row(
        "cargo",
        "-q -v --quiet --verbose --offline --locked --frozen --color= --list -Z: -C: %-V %--version ^",
        Rule::Sub(CARGO),
        "builds, which runs the project's code",
    ),
    row(
        "rustc",
        "-vV --print= --explain= %--version %-V",
        Rule::ReadsAtMost(0),
        "compiles to files",
    ),
    row(
        "rustup",
        "^",
        Rule::Sub(&[looks(
            "show, which, check, toolchain list, target list, component list, doc --path, -V, show active-toolchain, override list",
        )]),
        "changes toolchains",
    ),
    row(
        "rustfmt",
        "%--check --edition= --config= --color= -v -q --config-path= --emit=",
        Rule::By(programs::cargo_fmt),
        "rustfmt rewrites its operands",
    ),
    row(
        "gofmt goimports gofumpt",
        "-d -l -s -e -r: !-w -local: -extra",
        Rule::Reads,
        "prints the formatted text",
    ),
    row("go", "^", Rule::Sub(GO), "builds or runs the project's code"),
    row(
        "golangci-lint",
        "^",
        Rule::Sub(&[
            row("run", "* ~--fix ~--out-format=", Rule::Reads, "only reports"),
            looks("linters version help config cache"),
        ]),
        "may fix files",
    ),
    row(
        "staticcheck errcheck gocyclo shellcheck hadolint yamllint actionlint flake8 pylint pyflakes pycodestyle pydocstyle vulture bandit pyright basedpyright jsonlint vale tflint checkov cppcheck luacheck hlint htmlhint dockerfilelint mccabe radon xenon",
        "* !--fix !-F !-w !--write-changes >--output= >--output-file= >-o: ~--init ~--generate-config ~--create-config",
        Rule::Reads,
        "only reports",
    ),
    row(
        "eslint oxlint stylelint markdownlint tslint jshint semgrep swiftlint",
        "* !--fix ~--init >-o: >--output-file= >--output= !--autofix ~--cache ~autocorrect --fix-dry-run -f: --ext=",
        Rule::Reads,
        "only reports",
    ),
    row("prettier dprint", "* !--write !-w", Rule::Reads, "prints the formatted text"),
    row(
        "biome",
        "^",
        Rule::Sub(&[row(
            "check lint format ci",
            "* !--write !--apply !--fix !--apply-unsafe",
            Rule::Reads,
            "only reports",
        )]),
        "may fix files",
    ),
    row(
        "black",
        "%--check %--diff * -l: -t: --line-length= --target-version=",
        Rule::Changes(Modify, 0),
        "black rewrites its operands",
    ),
    row(
        "isort",
        "%--check-only %--check %-c %--diff * --profile=",
        Rule::Changes(Modify, 0),
        "isort rewrites its operands",
    ),
    row("autopep8 yapf", "* !-i !--in-place", Rule::Reads, "prints the formatted text"),
    row("clang-format", "* !-i", Rule::Reads, "prints the formatted text"),
    row("shfmt", "* !-w !--write", Rule::Reads, "prints the formatted text"),
    row("ruff", "-q -v ^", Rule::Sub(RUFF), "may fix files"),
    row("mypy", "* -p: -m: -c: ~--install-types", Rule::Makes, "mypy makes its cache"),
    row(
        "autoflake pyupgrade stylua docformatter",
        "%--check * !-i",
        Rule::Changes(Modify, 0),
        "rewrites its operands",
    ),
    row("tsc", "", Rule::By(programs::tsc), "tsc writes what it compiles"),
    row("npm", "", Rule::By(programs::npm), "runs the project's scripts or changes packages"),
    row(
        "pnpm",
        "-C: -r -s --recursive --silent --filter= --dir= %-v %--version ^",
        Rule::Sub(PNPM),
        "runs the project's scripts or changes packages",
    ),
    row(
        "yarn",
        "-s --silent --cwd= %-v %--version ^",
        Rule::Sub(&[
            row("(none)", "*", Rule::Unknown, "installs packages"),
            looks(
                "list, info, why, version, --version, config get, config list, workspaces info, workspaces list, help, licenses list, outdated, npm info, audit, bin, constraints",
            ),
        ]),
        "runs the project's scripts or changes packages",
    ),
    row(
        "bun deno",
        "%--version %-v ^",
        Rule::Sub(&[looks("pm ls, why, outdated, info, types, pm hash, pm bin, help")]),
        "runs code",
    ),
    row(
        "npx bunx pnpx",
        "-y --yes --no --no-install -q --quiet %--version ^",
        Rule::Wraps(0),
        "runs a package",
    ),
    row(
        "nvm fnm volta n pyenv rbenv nodenv asdf mise",
        "^",
        Rule::Sub(&[looks(
            "ls list current version versions which help root --version ls-remote doctor where plugins",
        )]),
        "changes versions",
    ),
    row(
        "pip pipx",
        "-q -v --disable-pip-version-check --no-input --python= %-V %--version ^",
        Rule::Sub(PIP),
        "changes packages",
    ),
    row(
        "uv",
        "-q --offline --directory= --project= %-V %--version ^",
        Rule::Sub(&[
            looks(
                "pip list, pip show, pip freeze, pip check, pip tree, python list, python find, tool list, version, cache dir, help, python dir",
            ),
            row("tree", "* --frozen ~-o: ~--output-file=", Rule::Makes, "may write the lock file"),
        ]),
        "changes packages",
    ),
    row(
        "poetry pdm hatch pipenv",
        "-q -n -C: %-V %--version ^",
        Rule::Sub(&[looks(
            "show, check, about, list, search, version, info, graph, env info, env list, config --list, env show, config list",
        )]),
        "changes packages",
    ),
    row(
        "conda mamba micromamba",
        "%-V %--version ^",
        Rule::Sub(&[looks("list, info, search, env list, config show, env export")]),
        "changes packages",
    ),
    row(
        "gem",
        "%-v %--version ^",
        Rule::Sub(&[looks(
            "list search info env environment which outdated contents dependency query help specification",
        )]),
        "changes packages",
    ),
    row(
        "bundle bundler",
        "%-v %--version ^",
        Rule::Sub(&[
            row("(none)", "*", Rule::Unknown, "installs packages"),
            looks("list show info outdated check platform env licenses version help"),
        ]),
        "changes packages",
    ),
    row(
        "composer",
        "-n -q --no-interaction --no-ansi -d: %-V %--version ^",
        Rule::Sub(&[looks(
            "show info outdated validate diagnose licenses why depends prohibits why-not search audit status fund about check-platform-reqs",
        )]),
        "changes packages",
    ),
    row(
        "mvn gradle ant sbt bazel buck ninja cmake meson ctest rake just task scons tox nox pytest jest vitest mocha playwright cypress gcc cc g++ clang clang++ ld as javac java kotlinc scalac ghc swift swiftc xcodebuild dotnet msbuild php lua Rscript julia elixir mix erl tclsh osascript expect m4",
        "@ %--version %-version %-v %-V %-dumpversion %-dumpmachine",
        Rule::Unknown,
        "builds, tests or runs code",
    ),
    row("make gmake", "", Rule::By(programs::make), "runs the project's recipes"),
    row("bc", "-lqsiw", Rule::ReadsAtMost(0), "runs a program"),
    row("dc", "-e: --expression=", Rule::ReadsAtMost(0), "runs a program"),
    row(
        "protoc flex bison ctags etags doxygen sphinx-build mkdocs hugo jekyll convert ffmpeg dot plantuml",
        "@ * %--version %-V %-version",
        Rule::Destroys,
        "writes its output",
    ),
    row("ffprobe identify exiv2", "*", Rule::Reads, "only reads"),
    row(
        "pre-commit husky lint-staged changeset turbo nx lerna vite webpack rollup esbuild next react-scripts ng vue parcel babel swc rspack",
        "%--version %-v",
        Rule::Unknown,
        "builds, or runs the project's code",
    ),
    row(
        "alembic prisma knex sequelize flyway liquibase rails django-admin flask artisan",
        "%--version",
        Rule::Unknown,
        "may change a database",
    ),
    row("claude codex gemini aider", "%--version %-v", Rule::Unknown, "is an agent"),
];

const GH: &[Row] = &[
    looks(
        "pr list, pr view, pr diff, pr status, pr checks, issue list, issue view, issue status, repo view, repo list, run list, run view, run watch, release list, release view, workflow list, workflow view, auth status, auth token, gist list, gist view, label list, secret list, variable list, variable get, cache list, config get, config list, alias list, extension list, ssh-key list, gpg-key list, org list, project list, project view, ruleset list, ruleset view, ruleset check, search repos, search issues, search prs, search code, search commits, status, help, version, browse, milestone list, attestation verify, codespace list, repo deploy-key list, issue develop --list, completion",
    ),
    row("api", "", Rule::By(programs::gh_api), "changes something on GitHub"),
];

const CARGO: &[Row] = &[
    looks(
        "locate-project pkgid read-manifest verify-project search info help version owner --list report",
    ),
    row("tree metadata", "* ~--config=", Rule::Reads, "only reads"),
    row("fmt", "", Rule::By(programs::cargo_fmt), "cargo fmt rewrites sources"),
    row("clean", "* %--dry-run %-n", Rule::Destroys, "removes build output"),
    row("audit deny outdated", "* ~fix ~fetch ~--config=", Rule::Reads, "only reports"),
    row("config get, install --list", "*", Rule::Reads, "only reads"),
];

const GO: &[Row] = &[
    looks("version, help, doc, tool nm, mod graph, mod why, mod verify, tool pprof -top, tool"),
    row("env", "~-w ~-u -json -changed @", Rule::Reads, "only reads"),
    row(
        "list",
        "@ -json? -f: -m -u -deps -test -e -versions -find -compiled -retracted -reuse: -mod: -modfile: -tags: -C: -deps",
        Rule::Reads,
        "only reads",
    ),
    row("vet", "@ -v -n -json -c: -tags: -mod:", Rule::Reads, "only reports"),
];

const RUFF: &[Row] = &[
    row(
        "check",
        "* !--fix !--unsafe-fixes !--add-noqa >-o: >--output-file= ~--fix-only ~--watch",
        Rule::Reads,
        "only reports",
    ),
    row(
        "format",
        "%--check %--diff *",
        Rule::Changes(Modify, 0),
        "ruff format rewrites its operands",
    ),
    looks("rule config linter version help"),
];

const PNPM: &[Row] = &[looks(
    "ls, list, ll, la, why, outdated, root, bin, view, info, show, audit, licenses, --version, config get, config list, store path, env list, help",
)];

const PIP: &[Row] = &[
    looks(
        "list, show, freeze, check, index, search, help, debug, inspect, hash, environment, config list, config get, config debug, cache dir, cache info, cache list",
    ),
    row(
        "install uninstall",
        "* %--dry-run",
        Rule::Unknown,
        "changes packages and may run their code",
    ),
];
