"""The table of what was run, in `hooks/README.md` between two marks."""

import pathlib

README = pathlib.Path(__file__).resolve().parent.parent.parent / "hooks/README.md"
BEGIN, END = "<!-- made by tests/clients/run -->", "<!-- end of what tests/clients/run made -->"
COLUMNS = ["installed", "two turns", "nobody there", "person there", "self-defence", "switched off", "restore, undo", "conversation",
           "slash commands", "uninstalled", "fields twice", "call rewritten", "MCP tools", "command's shell line", "sub-agent", "program gone"]


def put(rows):
    """Replaces the rows of the clients that were run; the others stay as they are."""
    text = README.read_text()
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    known = {line.split("|")[1].strip(): line for line in old.splitlines() if line.startswith("|")}
    known = {name: line for name, line in known.items() if name not in ("client", "---")}
    # Another version of a client takes the place of the one before.
    names = {name.split()[0] for name in rows}
    known = {name: line for name, line in known.items() if name.split()[0] not in names}
    known |= {name: line_of([name, *(row.get(column, "not run") for column in COLUMNS)]) for name, row in rows.items()}
    # A row of an earlier run may lack the newer columns.
    known = {name: line_of(cells + ["not run"] * (len(COLUMNS) + 1 - len(cells))) for name, cells in ((name, cells_of(line)) for name, line in known.items())}
    head = [line_of(["client", *COLUMNS]), line_of(["---"] * (len(COLUMNS) + 1))]
    made = "\n".join([*head, *(known[name] for name in sorted(known))])
    README.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{after}")


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def line_of(cells):
    return "| " + " | ".join(cells) + " |"
