//! The grammar as `brush-parser` reads it. Hides that crate: nobody else names its types. Commands
//! are here, what is inside a word is in `words`.

mod words;

use brush_parser::ast;
use brush_parser::{ParserOptions, TokenizerOptions};

use self::words::parts;
use super::effort;
use super::syntax::{
    Assign, Block, Command, Grammar, Item, Kind, Node, Part, Redirect, Unreadable,
};

/// `brush-parser` with bash's own options.
#[derive(Default)]
pub(super) struct Brush {
    options: ParserOptions,
}

impl Grammar for Brush {
    fn script(&self, text: &str) -> Result<Vec<Node>, Unreadable> {
        // The uncached entry: the cached one keeps every line it saw for the life of the process.
        let options: TokenizerOptions = self.options.tokenizer_options();
        let tokens = brush_parser::uncached_tokenize_str(text, &options).map_err(|_| Unreadable)?;
        let program = brush_parser::parse_tokens(&tokens, &self.options).map_err(|_| Unreadable)?;
        Ok(program.complete_commands.iter().flat_map(list).collect())
    }

    fn word(&self, raw: &str) -> Result<Vec<Part>, Unreadable> {
        readable(raw)?;
        let pieces = brush_parser::word::parse(raw, &self.options).map_err(|_| Unreadable)?;
        Ok(parts(&pieces, false))
    }

    fn text(&self, raw: &str) -> Result<Vec<Part>, Unreadable> {
        readable(raw)?;
        let pieces =
            brush_parser::word::parse_heredoc(raw, &self.options).map_err(|_| Unreadable)?;
        Ok(parts(&pieces, true))
    }
}

/// What braces and backticks made of a line may nest deeper than the line did.
fn readable(raw: &str) -> Result<(), Unreadable> {
    if effort::is_endless(raw) { Err(Unreadable) } else { Ok(()) }
}

fn list(list: &ast::CompoundList) -> Vec<Node> {
    let mut nodes = Vec::new();
    for ast::CompoundListItem(and_or, separator) in &list.0 {
        let mut chain = vec![pipeline(&and_or.first)];
        for next in &and_or.additional {
            let (ast::AndOr::And(next) | ast::AndOr::Or(next)) = next;
            chain.push(pipeline(next));
        }
        match separator {
            ast::SeparatorOperator::Sequence => nodes.append(&mut chain),
            ast::SeparatorOperator::Async => nodes.push(block(Kind::Subshell, chain)),
        }
    }
    nodes
}

fn pipeline(pipeline: &ast::Pipeline) -> Node {
    let mut nodes: Vec<Node> = pipeline.seq.iter().map(command).collect();
    match nodes.len() {
        1 => nodes.swap_remove(0),
        _ => Node::Pipeline(nodes),
    }
}

fn block(kind: Kind, body: Vec<Node>) -> Node {
    Node::Block(empty(kind, body))
}

fn empty(kind: Kind, body: Vec<Node>) -> Block {
    Block {
        kind,
        words: Vec::new(),
        arithmetic: Vec::new(),
        binds: None,
        body,
        redirects: Vec::new(),
    }
}

fn command(command: &ast::Command) -> Node {
    match command {
        ast::Command::Simple(simple) => Node::Command(simple_command(simple)),
        ast::Command::Compound(body, redirects) => {
            let mut block = compound(body);
            block.redirects = redirect_list(redirects.as_ref());
            Node::Block(block)
        }
        ast::Command::Function(function) => {
            let mut body = compound(&function.body.0);
            body.redirects = redirect_list(function.body.1.as_ref());
            Node::Function(function.fname.value.clone(), Box::new(Node::Block(body)))
        }
        ast::Command::ExtendedTest(test, redirects) => {
            let mut block = empty(Kind::Plain, Vec::new());
            test_words(&test.expr, &mut block);
            block.redirects = redirect_list(redirects.as_ref());
            Node::Block(block)
        }
    }
}

fn compound(compound: &ast::CompoundCommand) -> Block {
    match compound {
        ast::CompoundCommand::Arithmetic(arithmetic) => {
            let mut block = empty(Kind::Plain, Vec::new());
            block.arithmetic.push(arithmetic.expr.value.clone());
            block
        }
        ast::CompoundCommand::ArithmeticForClause(clause) => {
            let mut block = empty(Kind::Branch, list(&clause.body.list));
            for expr in [&clause.initializer, &clause.condition, &clause.updater] {
                block.arithmetic.extend(expr.iter().map(|expr| expr.value.clone()));
            }
            block
        }
        ast::CompoundCommand::BraceGroup(group) => empty(Kind::Plain, list(&group.list)),
        ast::CompoundCommand::Subshell(subshell) => empty(Kind::Subshell, list(&subshell.list)),
        ast::CompoundCommand::ForClause(clause) => {
            let mut block = empty(Kind::Branch, list(&clause.body.list));
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
            empty(Kind::Branch, body)
        }
        ast::CompoundCommand::WhileClause(clause) | ast::CompoundCommand::UntilClause(clause) => {
            let mut body = list(&clause.0);
            body.extend(list(&clause.1.list));
            empty(Kind::Branch, body)
        }
        ast::CompoundCommand::Coprocess(coprocess) => {
            empty(Kind::Subshell, vec![command(&coprocess.body)])
        }
    }
}

fn case(clause: &ast::CaseClauseCommand) -> Block {
    let mut block = empty(Kind::Branch, Vec::new());
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
        ast::ExtendedTestExpr::UnaryTest(_, word) => block.words.push(word.value.clone()),
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
    found.items.extend(simple.word_or_name.iter().map(|word| Item::Word(word.value.clone())));
    for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
        push_item(item, &mut found);
    }
    found
}

fn push_item(item: &ast::CommandPrefixOrSuffixItem, found: &mut Command) {
    match item {
        ast::CommandPrefixOrSuffixItem::IoRedirect(io) => redirect(io, &mut found.redirects),
        ast::CommandPrefixOrSuffixItem::Word(word) => {
            found.items.push(Item::Word(word.value.clone()));
        }
        ast::CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
            found.items.push(Item::Assign(assign(assignment), word.value.clone()));
        }
        ast::CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
            found.items.push(Item::Process(list(&subshell.list)));
        }
    }
}

fn assign(assignment: &ast::Assignment) -> Assign {
    let mut extra = Vec::new();
    let name = match &assignment.name {
        ast::AssignmentName::VariableName(name) => name.clone(),
        ast::AssignmentName::ArrayElementName(name, index) => {
            extra.push(index.clone());
            name.clone()
        }
    };
    let plain = extra.is_empty() && !assignment.append;
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
    Assign { name, extra, value }
}

fn redirect_list(list: Option<&ast::RedirectList>) -> Vec<Redirect> {
    let mut found = Vec::new();
    for io in list.iter().flat_map(|list| &list.0) {
        redirect(io, &mut found);
    }
    found
}

fn redirect(io: &ast::IoRedirect, found: &mut Vec<Redirect>) {
    match io {
        ast::IoRedirect::File(_, kind, target) => found.push(file_redirect(kind, target)),
        ast::IoRedirect::HereDocument(_, document) => {
            found.push(Redirect::HereDoc(document.doc.value.clone(), document.requires_expansion));
        }
        ast::IoRedirect::HereString(_, word) => {
            found.push(Redirect::HereString(word.value.clone()));
        }
        ast::IoRedirect::OutputAndError(word, append) => {
            found.push(Redirect::Writes { word: word.value.clone(), keeps: *append });
        }
    }
}

fn file_redirect(kind: &ast::IoFileRedirectKind, target: &ast::IoFileRedirectTarget) -> Redirect {
    use ast::IoFileRedirectKind as Direction;
    let word = match target {
        ast::IoFileRedirectTarget::Filename(word) => word.value.clone(),
        ast::IoFileRedirectTarget::Fd(fd) => return Redirect::Duplicates(fd.to_string()),
        ast::IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
            return Redirect::Process(list(&subshell.list));
        }
        ast::IoFileRedirectTarget::Duplicate(word) => {
            return Redirect::Duplicates(word.value.clone());
        }
    };
    match kind {
        Direction::Read => Redirect::Reads(word),
        Direction::Write | Direction::Clobber => Redirect::Writes { word, keeps: false },
        Direction::Append | Direction::ReadAndWrite => Redirect::Writes { word, keeps: true },
        Direction::DuplicateInput | Direction::DuplicateOutput => Redirect::Duplicates(word),
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
