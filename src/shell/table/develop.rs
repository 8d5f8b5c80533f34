//! Compilers, formatters, linters, package managers, version control.

use crate::shell::programs;
use crate::shell::row::{ProgramRow, Rule, row};

/// What of beforehand's own only looks, and what loses.
const BEFOREHAND: &[ProgramRow] = &[
    row(
        "list show diff explain status doctor check find init version help completions",
        "$ -m: -n: --all --json --stat --everywhere --text= --read-data --repair --help --version --explain --root=",
        Rule::Reads,
        "only shows checkpoints",
    ),
    row("create", "$ -m: --message= --json", Rule::Makes, "takes a checkpoint"),
    row(
        "restore rewind undo redo clear prune uninstall install",
        "*",
        Rule::Destroys,
        "replaces files, forgets checkpoints, or changes what is protected",
    ),
];

pub(super) const ROWS: &[ProgramRow] = &[
    row("git", "", Rule::By(programs::git), "works on a repository"),
    row("beforehand", "^", Rule::Sub(BEFOREHAND), "changes checkpoints or their protection"),
    row("gh", "-R: --repo= %--version ^", Rule::Sub(GH), "changes something on GitHub"),
    row(
        "cargo",
        "-qv --quiet --verbose --offline --locked --frozen --color= --list -C: %-V %--version ^",
        Rule::Sub(CARGO),
        "builds, which runs the project's code",
    ),
    row(
        "rustc",
        "-vV --verbose --print= --explain= %--version",
        Rule::ReadsAtMost(0),
        "compiles to files",
    ),
    row(
        "rustup",
        "%--version %-V ^",
        Rule::Sub(&[row(
            "toolchain list, target list, component list",
            "-v --installed",
            Rule::Reads,
            "only lists",
        )]),
        "changes toolchains",
    ),
    row("rustfmt", "", Rule::By(programs::cargo_fmt), "rustfmt rewrites its operands"),
    row(
        "gofmt goimports gofumpt",
        "-d -l -s -e -r: !-w -local: -extra @",
        Rule::Reads,
        "prints the formatted text",
    ),
    row("go", "^", Rule::Sub(GO), "builds or runs the project's code"),
    row(
        "shellcheck",
        "-xaV -s: -S: -e: -i: -f: -o: -P: --shell= --severity= --exclude= --include= --format= --enable= \
         --external-sources --check-sourced --color? --norc --version",
        Rule::Reads,
        "only reports",
    ),
    row(
        "hadolint",
        "-vVh -c: -f: -t: --config= --format= --failure-threshold= --file-path-in-report= --error= --warning= --info= \
         --style= --ignore= --trusted-registry= --require-label= --strict-labels --disable-ignore-pragma --no-fail \
         --no-color --verbose --version --help",
        Rule::Reads,
        "only reports",
    ),
    row(
        "pycodestyle pyflakes yamllint",
        "-qvd -f: -s --max-line-length= --max-complexity= --select= --ignore= --extend-ignore= --exclude= \
         --count --statistics --show-source --format= --strict --config-data= --version",
        Rule::Reads,
        "only reports",
    ),
    row(
        "black",
        "%--check %--diff -qvS -l: -t: --line-length= --target-version= --quiet --verbose --color --fast \
         --skip-string-normalization --config= --exclude= --include=",
        Rule::Formats,
        "black rewrites its operands",
    ),
    row(
        "isort",
        "%--check-only %--check %-c %--diff -qv --quiet --verbose --profile= --line-length= --color",
        Rule::Formats,
        "isort rewrites its operands",
    ),
    row(
        "clang-format",
        "!-i -n -style: --style= --dry-run -Werror --Werror -assume-filename: --assume-filename= @",
        Rule::Reads,
        "prints the formatted text",
    ),
    row(
        "shfmt",
        "!-w !--write -l -d -s -i: -ln: -ci -bn -sr -kp --diff --list @",
        Rule::Reads,
        "prints the formatted text",
    ),
    row("ruff", "-qv ^", Rule::Sub(RUFF), "may fix files"),
    row(
        "autopep8 autoflake pyupgrade stylua docformatter yapf",
        "*",
        Rule::Formats,
        "rewrites its operands",
    ),
    row("npm", "", Rule::By(programs::npm), "runs the project's scripts or changes packages"),
    row(
        "pip",
        "-qv --disable-pip-version-check --no-input %-V %--version ^",
        Rule::Sub(PIP),
        "changes packages",
    ),
    row(
        "make gmake mvn gradle ant sbt bazel buck ninja cmake meson ctest rake just task scons tox nox pytest jest vitest mocha \
         playwright cypress gcc cc g++ clang clang++ ld as javac java kotlinc scalac ghc swift swiftc xcodebuild dotnet \
         msbuild mix pnpm yarn bun deno poetry uv conda gem bundle composer tsc mypy pylint flake8",
        "@ %--version %-version %-v %-V %-dumpversion %-dumpmachine",
        Rule::Unknown,
        "builds, tests or runs code",
    ),
    row(
        "eslint prettier stylelint rubocop",
        "@ * !--fix !--write !-w %--version",
        Rule::Unknown,
        "its settings are code of the project",
    ),
    row(
        "protoc flex bison ctags etags doxygen sphinx-build mkdocs hugo jekyll convert ffmpeg dot plantuml",
        "@ *",
        Rule::Destroys,
        "writes its output",
    ),
    row(
        "alembic prisma knex sequelize flyway liquibase rails django-admin flask",
        "",
        Rule::Unknown,
        "may change a database",
    ),
];

/// Options of `gh` that choose what is shown.
const GH: &[ProgramRow] = &[
    row(
        "pr list, pr view, pr diff, pr status, pr checks, issue list, issue view, issue status, repo view, repo list, run list, run view, release list, release view, workflow list, workflow view, label list, search issues, search prs, search code, search repos, search commits, auth status, run watch, cache list, gist list, secret list, variable list, variable get, org list, \
         project list, project view, project item-list, project field-list, ruleset list, ruleset view, ruleset check, config list, config get, alias list, \
         extension list, ssh-key list, gpg-key list, repo deploy-key list, status, help",
        "-c -R: -L: -s: -l: -A: -a: -S: -q: -t: -B: -H: -b: -w: -j: -u: -e: -d --milestone= --mention= --app= --draft --watch --fail-fast --interval= \
         --commit= --event= --status= --user= --created= --attempt= --owner= --language= --visibility= --source --fork --archived --no-archived --topic= --sort= \
         --order= --exclude-drafts --exclude-pre-releases --created-before= --key= --ref= --org= --env= --closed --format= --public --secret --filter= --include-content \
         --exit-status --hostname= --active --yaml --all --allow-forking --stars= --match= --extension= --filename= --repo= --limit= --state= --json= --jq= \
         --template= --label= --author= --assignee= --search= --base= --head= --branch= --workflow= --job= \
         --comments --log --log-failed --verbose --name-only --patch --color= --required --exit-status",
        Rule::Reads,
        "only asks",
    ),
    row("api", "", Rule::By(programs::gh_api), "changes something on GitHub"),
];

const CARGO: &[ProgramRow] = &[
    row(
        "locate-project read-manifest verify-project version help pkgid",
        "-q -v --quiet --verbose --message-format= --workspace --manifest-path= --limit= --offline --color=",
        Rule::Reads,
        "only reads",
    ),
    row("fmt", "", Rule::By(programs::cargo_fmt), "cargo fmt rewrites sources"),
    row("clean", "*", Rule::Destroys, "removes build output"),
    row(
        "build check run test bench doc clippy fix install add update publish",
        "",
        Rule::Unknown,
        "builds, which runs the project's code",
    ),
];

const GO: &[ProgramRow] = &[
    row("version", "-m -v", Rule::Reads, "only tells"),
    row("doc help", "-all -src -short -u -c @", Rule::Reads, "only tells"),
    row("env", "-json -changed @", Rule::Reads, "only reads"),
    row(
        "list",
        "@ -json? -f: -m -deps -test -e -versions -find -tags: -C:",
        Rule::Reads,
        "only reads",
    ),
];

const RUFF: &[ProgramRow] = &[
    row("check", "", Rule::By(programs::ruff_check), "may fix files"),
    // Where it only checks it leaves its cache, and nothing else.
    row(
        "format",
        "%--check %--diff --no-cache -nq --line-length=",
        Rule::Formats,
        "ruff format rewrites its operands",
    ),
];

const PIP: &[ProgramRow] = &[row(
    "list, show, freeze, check, inspect, debug, index versions, config list, config get, config debug, cache dir, cache info, cache list",
    "-f -l -q -v -o -u -i: --pre --path= --index-url= --extra-index-url= --exclude-editable --include-editable --json --global --site --files --local --user --outdated --uptodate --not-required --format= --disable-pip-version-check --all --exclude= --verbose",
    Rule::Reads,
    "only lists",
)];
