//! The grammar as `brush-parser` reads it. Hides that crate: no other module names its types. Commands
//! are here, what is inside a word is in `words`.

mod words;

use std::rc::Rc;

use brush_parser::ast;
use brush_parser::{ParserOptions, TokenizerOptions};

use self::words::parts;
use super::effort;
use super::syntax::{
    Assign, Block, BlockKind, Command, CommandItem, Grammar, Redirect, RedirectSource, ShellNode,
    UnknownSyntax, WordPart,
};

/// `brush-parser` with bash's own options.
#[derive(Default)]
pub(super) struct Brush {
    options: ParserOptions,
}

impl Grammar for Brush {
    fn script(&self, text: &str) -> Result<Vec<ShellNode>, UnknownSyntax> {
        // The uncached entry: the cached one keeps every line it saw for the life of the process.
        let options: TokenizerOptions = self.options.tokenizer_options();
        let tokens =
            brush_parser::uncached_tokenize_str(text, &options).map_err(|_| UnknownSyntax)?;
        let program =
            brush_parser::parse_tokens(&tokens, &self.options).map_err(|_| UnknownSyntax)?;
        Ok(program.complete_commands.iter().flat_map(list).collect())
    }

    fn word(&self, raw: &str) -> Result<Vec<WordPart>, UnknownSyntax> {
        readable(raw)?;
        let pieces = brush_parser::word::parse(raw, &self.options).map_err(|_| UnknownSyntax)?;
        Ok(parts(&pieces, false))
    }

    fn text(&self, raw: &str) -> Result<Vec<WordPart>, UnknownSyntax> {
        readable(raw)?;
        let pieces =
            brush_parser::word::parse_heredoc(raw, &self.options).map_err(|_| UnknownSyntax)?;
        Ok(parts(&pieces, true))
    }
}

/// What braces and backticks made of a line may nest deeper than the line did.
fn readable(raw: &str) -> Result<(), UnknownSyntax> {
    if effort::is_endless(raw) { Err(UnknownSyntax) } else { Ok(()) }
}

fn list(list: &ast::CompoundList) -> Vec<ShellNode> {
    let mut nodes = Vec::new();
    for ast::CompoundListItem(and_or, separator) in &list.0 {
        let node = chain(and_or);
        nodes.push(match separator {
            ast::SeparatorOperator::Sequence => node,
            ast::SeparatorOperator::Async => {
                ShellNode::Block(empty(BlockKind::Background, vec![node]))
            }
        });
    }
    nodes
}

fn chain(and_or: &ast::AndOrList) -> ShellNode {
    let first = pipeline(&and_or.first);
    if and_or.additional.is_empty() {
        return first;
    }
    let rest = and_or.additional.iter().map(|next| match next {
        ast::AndOr::And(next) => (false, pipeline(next)),
        ast::AndOr::Or(next) => (true, pipeline(next)),
    });
    ShellNode::Chain(std::iter::once((false, first)).chain(rest).collect())
}

fn pipeline(pipeline: &ast::Pipeline) -> ShellNode {
    let mut nodes: Vec<ShellNode> = pipeline.seq.iter().map(command).collect();
    match nodes.len() {
        1 => nodes.swap_remove(0),
        _ => ShellNode::Pipeline(nodes),
    }
}

fn empty(kind: BlockKind, body: Vec<ShellNode>) -> Block {
    Block {
        kind,
        words: Vec::new(),
        arithmetic: Vec::new(),
        binds: None,
        body,
        redirects: Vec::new(),
    }
}

fn command(command: &ast::Command) -> ShellNode {
    match command {
        ast::Command::Simple(simple) => ShellNode::Command(simple_command(simple)),
        ast::Command::Compound(body, redirects) => {
            let mut block = compound(body);
            block.redirects = redirect_list(redirects.as_ref());
            ShellNode::Block(block)
        }
        ast::Command::Function(function) => {
            let mut body = compound(&function.body.0);
            body.redirects = redirect_list(function.body.1.as_ref());
            ShellNode::Function(function.fname.value.clone(), Rc::new(ShellNode::Block(body)))
        }
        ast::Command::ExtendedTest(test, redirects) => {
            let mut block = empty(BlockKind::Plain, Vec::new());
            test_words(&test.expr, &mut block);
            block.redirects = redirect_list(redirects.as_ref());
            ShellNode::Block(block)
        }
    }
}

fn compound(compound: &ast::CompoundCommand) -> Block {
    match compound {
        ast::CompoundCommand::Arithmetic(arithmetic) => {
            let mut block = empty(BlockKind::Plain, Vec::new());
            block.arithmetic.push(arithmetic.expr.value.clone());
            block
        }
        ast::CompoundCommand::ArithmeticForClause(clause) => {
            let mut block = empty(BlockKind::Branch, list(&clause.body.list));
            for expr in [&clause.initializer, &clause.condition, &clause.updater] {
                block.arithmetic.extend(expr.iter().map(|expr| expr.value.clone()));
            }
            block
        }
        ast::CompoundCommand::BraceGroup(group) => empty(BlockKind::Plain, list(&group.list)),
        ast::CompoundCommand::Subshell(subshell) => {
            empty(BlockKind::Subshell, list(&subshell.list))
        }
        ast::CompoundCommand::ForClause(clause) => {
            let mut block = empty(BlockKind::Branch, list(&clause.body.list));
            let values = clause.values.as_ref().map(|values| words(values));
            block.binds = Some((clause.variable_name.clone(), values));
            block
        }
        ast::CompoundCommand::CaseClause(clause) => case(clause),
        ast::CompoundCommand::IfClause(clause) => {
            let mut body = list(&clause.condition);
            body.extend(list(&clause.then));
            for arm in clause.elses.iter().flatten() {
                body.extend(arm.condition.iter().flat_map(list));
                body.extend(list(&arm.body));
            }
            empty(BlockKind::Branch, body)
        }
        ast::CompoundCommand::WhileClause(clause) | ast::CompoundCommand::UntilClause(clause) => {
            let mut body = list(&clause.0);
            body.extend(list(&clause.1.list));
            empty(BlockKind::Branch, body)
        }
        ast::CompoundCommand::Coprocess(coprocess) => {
            empty(BlockKind::Subshell, vec![command(&coprocess.body)])
        }
    }
}

fn case(clause: &ast::CaseClauseCommand) -> Block {
    let mut block = empty(BlockKind::Branch, Vec::new());
    block.words.push(clause.value.value.clone());
    for item in &clause.cases {
        block.words.extend(words(&item.patterns));
        block.body.extend(item.cmd.iter().flat_map(list));
    }
    block
}

fn words(words: &[ast::Word]) -> Vec<String> {
    words.iter().map(|word| word.value.clone()).collect()
}

fn test_words(expr: &ast::ExtendedTestExpr, block: &mut Block) {
    match expr {
        ast::ExtendedTestExpr::And(left, right) | ast::ExtendedTestExpr::Or(left, right) => {
            test_words(left, block);
            test_words(right, block);
        }
        ast::ExtendedTestExpr::Not(inner) | ast::ExtendedTestExpr::Parenthesized(inner) => {
            test_words(inner, block);
        }
        ast::ExtendedTestExpr::UnaryTest(test, word) => {
            block.words.push(word.value.clone());
            // The name of a variable may have a subscript, which is arithmetic.
            if matches!(
                test,
                ast::UnaryPredicate::ShellVariableIsSetAndAssigned
                    | ast::UnaryPredicate::ShellVariableIsSetAndNameRef
            ) {
                block.arithmetic.push(word.value.clone());
            }
        }
        ast::ExtendedTestExpr::BinaryTest(predicate, left, right) => {
            block.words.extend([left.value.clone(), right.value.clone()]);
            if is_arithmetic(predicate) {
                block.arithmetic.extend([left.value.clone(), right.value.clone()]);
            }
        }
    }
}

fn is_arithmetic(predicate: &ast::BinaryPredicate) -> bool {
    matches!(
        predicate,
        ast::BinaryPredicate::ArithmeticEqualTo
            | ast::BinaryPredicate::ArithmeticNotEqualTo
            | ast::BinaryPredicate::ArithmeticLessThan
            | ast::BinaryPredicate::ArithmeticLessThanOrEqualTo
            | ast::BinaryPredicate::ArithmeticGreaterThan
            | ast::BinaryPredicate::ArithmeticGreaterThanOrEqualTo
    )
}

fn simple_command(simple: &ast::SimpleCommand) -> Command {
    let mut found = Command::default();
    for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
        match item {
            ast::CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => {
                found.assigns.push(assign(assignment));
            }
            other => push_item(other, &mut found),
        }
    }
    found
        .items
        .extend(simple.word_or_name.iter().map(|word| CommandItem::Word(word.value.clone())));
    for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
        push_item(item, &mut found);
    }
    found
}

fn push_item(item: &ast::CommandPrefixOrSuffixItem, found: &mut Command) {
    match item {
        ast::CommandPrefixOrSuffixItem::IoRedirect(io) => redirect(io, &mut found.redirects),
        ast::CommandPrefixOrSuffixItem::Word(word) => {
            found.items.push(CommandItem::Word(word.value.clone()));
        }
        ast::CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
            found.items.push(CommandItem::Assign(assign(assignment), word.value.clone()));
        }
        ast::CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
            found.items.push(CommandItem::Process(list(&subshell.list)));
        }
    }
}

fn assign(assignment: &ast::Assignment) -> Assign {
    let mut extra = Vec::new();
    let (name, index) = match &assignment.name {
        ast::AssignmentName::VariableName(name) => (name.clone(), None),
        ast::AssignmentName::ArrayElementName(name, index) => (name.clone(), Some(index.clone())),
    };
    let plain = index.is_none() && !assignment.append;
    let value = match &assignment.value {
        ast::AssignmentValue::Scalar(word) if plain => Some(word.value.clone()),
        ast::AssignmentValue::Scalar(word) => {
            extra.push(word.value.clone());
            None
        }
        ast::AssignmentValue::Array(elements) => {
            for (key, value) in elements {
                extra.extend(key.iter().map(|key| key.value.clone()));
                extra.push(value.value.clone());
            }
            None
        }
    };
    let is_list = matches!(assignment.value, ast::AssignmentValue::Array(_));
    Assign { name, index, extra, value, is_list, appends: assignment.append }
}

fn redirect_list(list: Option<&ast::RedirectList>) -> Vec<Redirect> {
    let mut found = Vec::new();
    for io in list.iter().flat_map(|list| &list.0) {
        redirect(io, &mut found);
    }
    found
}

fn redirect(io: &ast::IoRedirect, found: &mut Vec<Redirect>) {
    let (fd, to) = match io {
        ast::IoRedirect::File(fd, kind, target) => {
            (fd.unwrap_or_else(|| default_fd(kind)), file_redirect(kind, target))
        }
        ast::IoRedirect::HereDocument(fd, document) => (
            fd.unwrap_or(0),
            RedirectSource::HereDoc(document.doc.value.clone(), document.requires_expansion),
        ),
        ast::IoRedirect::HereString(fd, word) => {
            (fd.unwrap_or(0), RedirectSource::HereString(word.value.clone()))
        }
        ast::IoRedirect::OutputAndError(word, append) => {
            (1, RedirectSource::Writes { word: word.value.clone(), keeps: *append })
        }
    };
    found.push(Redirect { is_stdin: fd == 0, to });
}

/// The descriptor of a redirection that names none.
fn default_fd(kind: &ast::IoFileRedirectKind) -> ast::IoFd {
    use ast::IoFileRedirectKind as Direction;
    match kind {
        Direction::Read | Direction::ReadAndWrite | Direction::DuplicateInput => 0,
        Direction::Write | Direction::Append | Direction::Clobber | Direction::DuplicateOutput => 1,
    }
}

fn file_redirect(
    kind: &ast::IoFileRedirectKind,
    target: &ast::IoFileRedirectTarget,
) -> RedirectSource {
    use ast::IoFileRedirectKind as Direction;
    let word = match target {
        ast::IoFileRedirectTarget::Filename(word) => word.value.clone(),
        ast::IoFileRedirectTarget::Fd(fd) => return RedirectSource::Duplicates(fd.to_string()),
        ast::IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
            return RedirectSource::Process(list(&subshell.list));
        }
        ast::IoFileRedirectTarget::Duplicate(word) => {
            return RedirectSource::Duplicates(word.value.clone());
        }
    };
    match kind {
        Direction::Read => RedirectSource::Reads(word),
        Direction::Write | Direction::Clobber => RedirectSource::Writes { word, keeps: false },
        Direction::Append | Direction::ReadAndWrite => RedirectSource::Writes { word, keeps: true },
        Direction::DuplicateInput | Direction::DuplicateOutput => RedirectSource::Duplicates(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_nest_too_deep_are_never_given_to_the_parser() {
        let nested = |depth| "$(".repeat(depth) + "a" + &")".repeat(depth);
        let brush = Brush::default();
        assert!(brush.word(&nested(3)).is_ok() && brush.text(&nested(3)).is_ok());
        assert!(brush.word(&nested(11)).is_err() && brush.text(&nested(11)).is_err());
    }
}
