//! What `--json` prints, held against the schemas in `docs/json`. Every world does so with every command
//! that a test runs in it, so the whole suite is a test of the contract.

use std::{collections::BTreeMap, fs, path::Path, sync::OnceLock};

use serde_json::Value;

/// The schemas, by the name of their view. Each has the definitions that several share among its own.
pub(crate) fn schemas() -> BTreeMap<String, Value> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/json");
    let mut schemas = BTreeMap::new();
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "json") {
            let text = fs::read_to_string(&path).unwrap().replace("common.json#/", "#/");
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            schemas.insert(name, serde_json::from_str::<Value>(&text).unwrap());
        }
    }
    let common = schemas.remove("common").unwrap();
    for schema in schemas.values_mut() {
        schema["$defs"] = common["$defs"].clone();
    }
    schemas
}

/// The keywords of JSON Schema that [`Check`] knows. A schema with another one would not be checked.
const KEYWORDS: &[&str] = &[
    "$defs", "$ref", "$schema", "anyOf", "const", "description", "enum", "items", "minimum",
    "pattern", "properties", "required", "title", "type",
];

/// The view that a document is of; `None` of an empty list.
pub(crate) fn view(document: &Value) -> Option<&str> {
    let first = match document {
        Value::Array(items) => items.first()?,
        one => one,
    };
    Some(first["view"].as_str().unwrap_or_default())
}

/// What is wrong with a document, a line each.
pub(crate) fn faults(document: &Value) -> Vec<String> {
    static SCHEMAS: OnceLock<BTreeMap<String, Value>> = OnceLock::new();
    let Some(view) = view(document) else { return Vec::new() };
    match SCHEMAS.get_or_init(schemas).get(view) {
        Some(schema) => Check { defs: &schema["$defs"] }.faults("", schema, document),
        None => vec![format!("no schema `docs/json/{view}.json`")],
    }
}

/// Holds values against the part of JSON Schema that our schemas use, more strictly than a reader may:
/// every field must be named. A crate that knows all of it takes longer to compile than beforehand.
struct Check<'a> {
    defs: &'a Value,
}

impl Check<'_> {
    fn faults(&self, at: &str, schema: &Value, value: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        for (keyword, wanted) in schema.as_object().unwrap() {
            let is_met = match keyword.as_str() {
                "const" => value == wanted,
                "enum" => wanted.as_array().unwrap().contains(value),
                "type" => kinds(wanted).any(|kind| is_of(value, kind)),
                "minimum" => value.as_i64().is_none_or(|it| it >= wanted.as_i64().unwrap()),
                "pattern" => value.as_str().is_none_or(|it| fits(it, wanted.as_str().unwrap())),
                "anyOf" => {
                    let any = wanted.as_array().unwrap().iter();
                    let mut each = any.map(|one| self.faults(at, one, value));
                    each.any(|faults| faults.is_empty())
                }
                "$ref" => {
                    let name = wanted.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                    faults.extend(self.faults(at, &self.defs[name], value));
                    true
                }
                "items" => {
                    let items = value.as_array().into_iter().flatten().enumerate();
                    faults.extend(
                        items.flat_map(|(n, it)| self.faults(&format!("{at}[{n}]"), wanted, it)),
                    );
                    true
                }
                "properties" => {
                    faults.extend(self.fields(at, schema, value));
                    true
                }
                known => {
                    assert!(KEYWORDS.contains(&known), "the check knows no `{known}`");
                    true
                }
            };
            if !is_met {
                faults.push(format!("{at}: {value} against {keyword} {wanted}"));
            }
        }
        faults
    }

    /// What is wrong with the fields of an object: each that is named, is there and fits, and no other is.
    fn fields(&self, at: &str, schema: &Value, value: &Value) -> Vec<String> {
        let Some(fields) = value.as_object() else { return Vec::new() };
        let named = schema["properties"].as_object().unwrap();
        let required = schema["required"].as_array().into_iter().flatten();
        let missing =
            required.map(|it| it.as_str().unwrap()).filter(|it| !fields.contains_key(*it));
        let mut faults: Vec<_> = missing.map(|it| format!("{at}.{it} is not there")).collect();
        for (name, field) in fields {
            let at = format!("{at}.{name}");
            match named.get(name) {
                Some(schema) => faults.extend(self.faults(&at, schema, field)),
                None => faults.push(format!("{at} is not named")),
            }
        }
        faults
    }
}

/// The words of a `type`, which is one or a list.
pub(crate) fn kinds(of: &Value) -> impl Iterator<Item = &str> {
    of.as_array().map_or(std::slice::from_ref(of), Vec::as_slice).iter().filter_map(Value::as_str)
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the check knows no type `{other}`"),
    }
}

fn fits(text: &str, pattern: &str) -> bool {
    regex::Regex::new(pattern).unwrap().is_match(text)
}

/// Every document in what a command printed.
#[track_caller]
pub(crate) fn documents(stdout: &str) -> Vec<Value> {
    let documents = serde_json::Deserializer::from_str(stdout).into_iter();
    documents.collect::<Result<_, _>>().unwrap_or_else(|err| panic!("{err}: {stdout}"))
}

/// Fails unless what a command line printed is what `docs/json` promises.
#[track_caller]
pub(crate) fn check(args: &[&str], stdout: &str) {
    let own = args.iter().take_while(|arg| **arg != "--");
    let is_ours = match args.first() {
        // The flag is another program's.
        Some(&("run" | "hook")) => false,
        // Its arguments are of the command that it runs, and errors go to standard output.
        Some(&"slash") => args.contains(&"--json") && stdout.starts_with('{'),
        _ => own.into_iter().any(|arg| *arg == "--json"),
    };
    for document in is_ours.then(|| documents(stdout)).into_iter().flatten() {
        let faults = faults(&document);
        assert!(faults.is_empty(), "{args:?}: {}\n{document:#}", faults.join("\n"));
    }
}
