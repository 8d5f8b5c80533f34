//! Reads the payload of a hook call from stdin, within limits of size and time.

use std::time::{Duration, Instant};

use crate::{process::Stdin, ui};

/// No honest payload comes near it: it is a tool call, not a file.
const PAYLOAD_MAX_BYTES: usize = 64 << 20;
/// Most calls are shorter.
const FIRST_BYTES: usize = 2 << 10;
/// What a pipe holds.
const NEXT_BYTES: usize = 64 << 10;
/// How long we wait for more input before we look whether what is there will do.
const PAUSE: Duration = Duration::from_millis(300);
/// How long we wait for input in all. The shortest limit any agent gives a hook is 5 seconds.
pub(super) const INPUT_DEADLINE: Duration = Duration::from_millis(1_500);

/// Reads a payload up to its end, or up to where an agent that leaves its end open stops talking.
pub(super) fn read_payload(stdin: &mut dyn Stdin) -> Result<Vec<u8>, String> {
    let started = Instant::now();
    let mut payload = Vec::new();
    let mut buffer = vec![0; FIRST_BYTES];
    loop {
        if stdin.ready(PAUSE) {
            match stdin.read(&mut buffer) {
                Ok(0) => return Ok(payload),
                Ok(count) => {
                    payload.extend_from_slice(&buffer[..count]);
                    if count == buffer.len() {
                        buffer.resize(NEXT_BYTES, 0);
                    }
                }
                Err(err) if err.kind() == std::io::ErrorKind::Interrupted => (),
                Err(err) => return Err(err.to_string()),
            }
        } else {
            let is_whole = payload.trim_ascii_end().ends_with(b"}")
                && serde_json::from_slice::<serde::de::IgnoredAny>(&payload).is_ok();
            if is_whole {
                return Ok(payload);
            }
        }
        if payload.len() > PAYLOAD_MAX_BYTES {
            return Err(format!("it is larger than {}", ui::size(PAYLOAD_MAX_BYTES as u64)));
        }
        if started.elapsed() > INPUT_DEADLINE {
            return Err("it does not end".to_owned());
        }
    }
}
