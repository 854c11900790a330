// client: standardwebhooks (Rust)
// registry: crates.io
// packages: standardwebhooks@1.0.1 http@1.3.1 serde_json@1.0.145
// door: webhook
mod scenarios;

use scenarios::{given, say};
use serde_json::Value;
use standardwebhooks::Webhook;

fn verified(delivery: &Value, body: &str) -> Result<String, String> {
    let secret = delivery["secret"].as_str().unwrap_or_default();
    // As docs/hooks.md says: what is not in Base64 is given as bytes.
    let library = match secret.starts_with("whsec_") {
        true => Webhook::new(secret),
        false => Webhook::from_bytes(secret.as_bytes().to_vec()),
    }
    .map_err(|error| error.to_string())?;
    let mut headers = http::HeaderMap::new();
    for (name, value) in delivery["headers"].as_object().into_iter().flatten() {
        let name = http::HeaderName::try_from(name.as_str()).map_err(|error| error.to_string())?;
        let value = value.as_str().unwrap_or_default();
        headers.insert(name, value.parse().map_err(|_| "a header".to_string())?);
    }
    Ok(library.verify(body.as_bytes(), &headers).is_ok().to_string())
}

fn main() {
    let data = std::fs::read_to_string(given("DELIVERIES")).expect("deliveries");
    let found: Value = serde_json::from_str(&data).expect("JSON");
    let (prefixed, plain) = (&found["prefixed"], &found["plain"]);
    let body = prefixed["body"].as_str().unwrap_or_default();
    say("prefixed secret", verified(prefixed, body));
    say("plain secret", verified(plain, plain["body"].as_str().unwrap_or_default()));
    say("changed body", verified(prefixed, &format!("{body} ")));
}
