// client: async-openai
// registry: crates.io
// packages: async-openai@0.43.0+chat-completion+model tokio@1.48.0+macros+rt-multi-thread+time futures@0.3.31 serde_json@1.0.145
// door: chat
mod scenarios;

use async_openai::{config::OpenAIConfig, types::chat::CreateChatCompletionRequest, Client};
use futures::StreamExt;
use scenarios::{given, prompt, quoted, say, WRONG_KEY};
use serde_json::{json, Value};
use std::{future::Future, time::Duration};

const RED: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

fn client(key: &str) -> Client<OpenAIConfig> {
    let address = format!("{}/v1", given("URL"));
    Client::with_config(OpenAIConfig::new().with_api_base(address).with_api_key(key))
}

fn user(text: String) -> Value {
    json!({"role": "user", "content": text})
}

async fn ask(messages: Value, key: &str, stream: bool, tools: Option<Value>) -> Result<String, String> {
    let mut body = json!({"model": "larkspur", "messages": messages});
    if let Some(tools) = tools {
        body["tools"] = tools;
    }
    let request: CreateChatCompletionRequest =
        serde_json::from_value(body).map_err(|error| error.to_string())?;
    if !stream {
        let reply = client(key).chat().create(request).await.map_err(|error| error.to_string())?;
        return Ok(reply.choices[0].message.content.clone().unwrap_or_default());
    }
    let mut chunks =
        client(key).chat().create_stream(request).await.map_err(|error| error.to_string())?;
    let mut text = String::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| error.to_string())?;
        if let Some(choice) = chunk.choices.first() {
            text.push_str(choice.delta.content.as_deref().unwrap_or_default());
        }
    }
    Ok(text)
}

async fn one(scenario: &str, work: impl Future<Output = Result<String, String>>) {
    let found = tokio::time::timeout(Duration::from_secs(60), work).await;
    let outcome = found.unwrap_or(Err("no answer in 60 seconds".into()));
    say(scenario, outcome.map(|text| quoted(&text)));
}

async fn history(key: &str) -> Result<String, String> {
    let mut messages = vec![];
    let mut answer = String::new();
    for scenario in ["write", "plain", "read"] {
        messages.push(user(prompt(scenario)));
        answer = ask(json!(messages), key, false, None).await?;
        messages.push(json!({"role": "assistant", "content": answer}));
    }
    Ok(answer)
}

#[tokio::main]
async fn main() {
    let key = given("KEY");
    let single = |scenario: &str| json!([user(prompt(scenario))]);
    let tool = json!([{"type": "function", "function": {"name": "add", "parameters": {
        "type": "object", "properties": {"a": {"type": "integer"}}}}}]);
    let picture = json!([{"role": "user", "content": [
        {"type": "text", "text": prompt("picture")},
        {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{RED}")}}]}]);
    let system =
        json!([{"role": "system", "content": "Speak like a pirate."}, user(prompt("system"))]);
    one("plain", ask(single("plain"), &key, false, None)).await;
    one("stream", ask(single("stream"), &key, true, None)).await;
    one("history", history(&key)).await;
    one("tools", ask(single("tools"), &key, false, Some(tool))).await;
    one("picture", ask(picture, &key, false, None)).await;
    one("system", ask(system, &key, false, None)).await;
    one("wrong key", ask(single("plain"), WRONG_KEY, false, None)).await;
    one("failing", ask(single("failing"), &key, false, None)).await;
    let models = client(&key).models().list().await;
    let names = models.map(|found| {
        let names: Vec<String> = found.data.into_iter().map(|each| each.id).collect();
        json!(names).to_string()
    });
    say("models", names.map_err(|error| error.to_string()));
}
