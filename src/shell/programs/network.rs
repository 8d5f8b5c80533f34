//! Programs that fetch from or talk to other hosts.

use super::{closed, strayed};
use crate::model::{Level, TargetAction};
use crate::shell::flags::{self, Field, FlagMark};
use crate::shell::names;
use crate::shell::verdict::{CommandCall, CommandVerdict, destroys, reads, unknown};
use crate::shell::walk::{ShellWalk, worst};

const CURL: &str = "-0123456fagGiIjkLlnNpqRsStvVxZ# -A: -b: -d: -e: -E: -F: -h? -H: -m: -P: -Q: -r: -T: -u: -U: -w: -x: -X: -y: -Y: -z: >-o: >-c: >-D: ~-K: ~-O \
    --silent --show-error --fail --fail-with-body --location --location-trusted --head --include --insecure --compressed --globoff --verbose --get --ipv4 --ipv6 --http1.0 --http1.1 --http2 --http3 \
    --no-progress-meter --progress-bar --no-buffer --anyauth --basic --digest --ntlm --negotiate --netrc --netrc-optional --tlsv1.2 --tlsv1.3 --ssl --ssl-reqd --path-as-is --raw --tcp-nodelay --next --list-only \
    --url= --request= --header= --data= --data-raw= --data-binary= --data-urlencode= --data-ascii= --json= --form= --form-string= --user= --user-agent= --referer= --cookie= --proxy= --noproxy= --max-time= \
    --connect-timeout= --retry= --retry-delay= --retry-max-time= --retry-connrefused --retry-all-errors --range= --resolve= --connect-to= --interface= --unix-socket= --cacert= --capath= --cert= --key= --pass= --write-out= \
    --max-redirs= --max-filesize= --limit-rate= --upload-file= --oauth2-bearer= --proto= --url-query= --rate= --parallel --parallel-max= --http0.9 --post301 --post302 --post303 --styled-output --no-styled-output --no-keepalive --keepalive-time= --dns-servers= --doh-url= --aws-sigv4= --ciphers= --tls-max= --referer= \
    >--output= >--cookie-jar= >--dump-header= >--stderr= >--trace= >--trace-ascii= >--etag-save= >--hsts= >--alt-svc= >--libcurl= --etag-compare= --time-cond= ~--remote-name ~--remote-name-all ~--output-dir= ~--config= %--version %-V %--help %--manual";

/// Judges `curl`: it prints unless told to write.
pub(in crate::shell) fn curl(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let (parsed, verdict) = closed(walk, CURL, call.args());
    if parsed.talks() {
        return reads("only tells about the program");
    }
    let mut outputs = parsed.hits.iter().filter(|hit| hit.mark == FlagMark::Overwrites);
    let prints = outputs.all(|hit| hit.value.as_ref().is_some_and(|it| !names::is_file(it)));
    let verdict = match strayed(&parsed) {
        None if prints => reads("prints what it fetches"),
        None | Some(_) => verdict,
    };
    let by_name = parsed.has(&["-O", "--remote-name", "--remote-name-all"]);
    if by_name {
        return destroys("curl -O overwrites a file of the name in the address", Vec::new());
    }
    // `-w '%output{file}'` writes too.
    let mut formats =
        parsed.hits.iter().filter(|hit| hit.name == "-w" || hit.name == "--write-out");
    let is_plain = |format: &Field| {
        format.literal().is_some_and(|text| !text.contains("output{") && !text.starts_with('@'))
    };
    if !formats.all(|hit| hit.value.as_ref().is_some_and(is_plain)) {
        return unknown("its format may name a file to write");
    }
    // An upload to `file:` writes here.
    let is_http = |url: &Field| url.literal().is_some_and(|url| url.starts_with("http"));
    if parsed.has(&["-T", "--upload-file", "-Q"])
        && (parsed.has(&["--url"]) || !parsed.operands.iter().all(is_http))
    {
        return unknown("may write to the address");
    }
    verdict
}

/// Judges `wget`: it writes files unless told to print or throw away.
pub(in crate::shell) fn wget(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "-qdvcSNx46LH -O: -o: -a: -t: -T: -U: -e: -P: -nv --quiet --verbose --no-verbose --spider --server-response --no-check-certificate --output-document= \
        --output-file= --append-output= --timeout= --tries= --user-agent= --header= --method= --body-data= --post-data= --max-redirect= --show-progress --no-hsts --no-config --content-on-error --user= --password= %--version %-V %--help %-h";
    let args: Vec<_> =
        call.args().iter().filter(|arg| !names::is_one(arg, &["-nv"])).cloned().collect();
    let parsed = flags::parse(list, &args);
    if parsed.talks() {
        return reads("only tells about the program");
    }
    let logs = parsed
        .value(&["-o", "--output-file", "-a", "--append-output"])
        .filter(|file| names::is_file(file));
    let output = parsed.value(&["-O", "--output-document"]);
    let spares = parsed.has(&["--spider"]) || output.is_some_and(|file| !names::is_file(file));
    // `-e` sets any option, one that runs a program among them.
    if parsed.stray.is_none() && spares && logs.is_none() && !parsed.has(&["-e"]) {
        return reads("prints what it fetches");
    }
    let targets = [logs, output].into_iter().flatten().filter(|file| names::is_file(file));
    let why = "wget writes what it fetches";
    destroys(why, targets.map(|file| walk.target(file, TargetAction::Overwrite, why)).collect())
}

/// Judges `ssh` by the command it runs elsewhere.
pub(in crate::shell) fn ssh(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "^ -46aCknqTtvx -i: -l: -p: -o: %-V";
    let parsed = flags::parse(list, call.args());
    if parsed.talks() {
        return reads("only tells about the program");
    }
    let harmless = [
        "StrictHostKeyChecking",
        "BatchMode",
        "ConnectTimeout",
        "UserKnownHostsFile=/dev/null",
        "LogLevel",
        "ServerAlive",
        "PasswordAuthentication",
    ];
    let sets = parsed.hits.iter().filter(|hit| hit.name == "-o");
    let is_plain = sets.filter_map(|hit| hit.value.as_ref()).all(|value| {
        value.literal().is_some_and(|it| harmless.iter().any(|name| it.starts_with(name)))
    });
    let rest = call.args().get(parsed.rest..).unwrap_or_default();
    let is_plain = is_plain && rest.first().is_some_and(|host| host.literal().is_some());
    let words: Option<Vec<&str>> = rest.iter().skip(1).map(|word| word.literal()).collect();
    let script = words.map(|words| words.join(" ")).filter(|script| !script.is_empty());
    let (true, None, Some(script)) = (is_plain, &parsed.stray, script) else {
        return unknown("runs something on another host");
    };
    let first = walk.found.len();
    walk.subscript(&script);
    let level = worst(walk.found.get(first..).unwrap_or_default());
    // What it found is on the other host; its paths mean nothing here.
    walk.found.truncate(first);
    match level {
        Level::ReadOnly => reads("only looks on another host"),
        Level::Creates | Level::Destroys | Level::Unknown => {
            unknown("changes files on another host")
        }
    }
}

/// Judges `gh api`: a request without fields is a GET.
pub(in crate::shell) fn gh_api(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "-i -H: -q: -t: -X: --paginate --jq= --header= --template= --include --method= --silent --slurp --hostname= --cache= --preview= --verbose";
    let (parsed, verdict) = closed(walk, list, call.args());
    let method = parsed.value(&["-X", "--method"]);
    let is_get = method.is_none_or(|method| names::is_one(method, &["GET", "HEAD", "get"]));
    if is_get && !parsed.operands.iter().any(|operand| operand.text.contains("graphql")) {
        return verdict;
    }
    unknown("changes something on GitHub")
}
