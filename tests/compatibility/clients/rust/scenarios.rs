// Scenarios for clients in Rust, as in ../python/scenarios.py.
use std::env;

#[allow(dead_code)]
pub const WRONG_KEY: &str = "no-such-key-0000000000000000000000000000";

pub fn given(name: &str) -> String {
    env::var(format!("LARKSPUR_{name}")).unwrap_or_default()
}

#[allow(dead_code)]
pub fn prompt(scenario: &str) -> String {
    format!("case: {scenario} [{}]", given("CASE"))
}

pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            sign if (sign as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", sign as u32)),
            sign => out.push(sign),
        }
    }
    out.push('"');
    out
}

/// Print a line: `Ok` has JSON, `Err` a text.
pub fn say(scenario: &str, outcome: Result<String, String>) {
    let (key, value) = match outcome {
        Ok(json) => ("result", json),
        Err(text) => ("error", quoted(&text)),
    };
    println!("{{\"scenario\": {}, \"{key}\": {value}}}", quoted(scenario));
}
