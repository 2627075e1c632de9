//! Walks through the crate `ksqldb`: create, insert, stream in, pull, push, close. Prints what came of each step.
//!
//! usage: walk URL NAME. It judges nothing; tests/conformance/test_ksqldb.py does.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt;
use ksqldb::KsqlDB;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[derive(Debug, Deserialize, Serialize)]
struct Count {
    id: i32,
    n: i64,
}

#[derive(Debug, Deserialize, Serialize)]
struct Row {
    id: i32,
    v: String,
}

fn none() -> HashMap<String, String> {
    HashMap::new()
}

/// Look a table up until the query that fills it has come that far.
async fn pull(client: &KsqlDB, query: &str) -> Outcome<Vec<Count>> {
    loop {
        let mut rows = Box::pin(client.select::<Count>(query, &none()).await?);
        let mut found = vec![];
        while let Some(row) = rows.next().await {
            match row {
                Err(ksqldb::Error::Json(error)) if error.is_eof() => break, // it takes the empty last frame for a row
                _ => found.push(row?),
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Send two rows over HTTP/2 and read their acknowledgements: the crate has no call for that.
async fn stream_in(url: &str, name: &str) -> Outcome<Vec<Value>> {
    let lines = [
        json!({"target": name}),
        json!({"ID": 2, "V": "b"}),
        json!({"ID": 3, "V": "c"}),
    ];
    let parts = lines.map(|line| Ok::<String, std::io::Error>(format!("{line}\n")));
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(parts));
    let client = reqwest::Client::builder().http2_prior_knowledge().build()?;
    let answer = client
        .post(format!("http://{url}/inserts-stream"))
        .body(body)
        .send()
        .await?;
    let text = answer.error_for_status()?.text().await?;
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// Read what was inserted from the start, then end the query by leaving it.
async fn push(client: &KsqlDB, name: &str) -> Outcome<Vec<Row>> {
    let properties = HashMap::from([("ksql.streams.auto.offset.reset".to_string(), "earliest".to_string())]);
    let query = format!("SELECT * FROM {name} EMIT CHANGES;");
    let mut rows = Box::pin(client.select::<Row>(&query, &properties).await?);
    let mut found = vec![];
    while found.len() < 3 {
        match rows.next().await {
            Some(row) => found.push(row?),
            None => break,
        }
    }
    Ok(found)
}

async fn transient_queries(client: &KsqlDB) -> Outcome<usize> {
    let listed = client.execute_statement_raw("SHOW QUERIES;", &none(), None).await?;
    let queries = listed[0]["queries"].as_array().cloned().unwrap_or_default();
    Ok(queries.iter().filter(|query| query["queryType"] == "PUSH").count())
}

async fn walk(url: &str, name: &str) -> Outcome<Value> {
    let client = KsqlDB::new(url.to_string(), reqwest::Client::builder(), false)?;
    let columns = "id INT KEY, v STRING";
    let made = format!("CREATE STREAM {name} ({columns}) WITH (kafka_topic='{name}', format='JSON', partitions=1);");
    let table = format!("CREATE TABLE {name}_T AS SELECT id, COUNT(*) AS n FROM {name} GROUP BY id;");
    let created = client.create(&(made + &table), &none(), None).await?;
    let states: Vec<String> = created
        .iter()
        .flat_map(|each| &each.command_status)
        .map(|it| format!("{:?}", it.status))
        .collect();
    let insert = format!("INSERT INTO {name} (id, v) VALUES (1, 'a');");
    let inserted = client.execute_statement_raw(&insert, &none(), None).await?;
    let streamed_in = stream_in(url, name).await?;
    let pulled = pull(&client, &format!("SELECT id, n FROM {name}_T WHERE id = 3;")).await?;
    let pushed = push(&client, name).await?;
    while transient_queries(&client).await? > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The crate takes the queries in a description for names, where ksqlDB has objects: so there must be none.
    let dropped = client.drop(&format!("DROP TABLE {name}_T;"), &none(), None).await?;
    let described = client.describe(&format!("DESCRIBE {name};"), &none(), None).await?;
    let explain = format!("EXPLAIN SELECT * FROM {name} EMIT CHANGES;");
    let explained = client.execute_statement_raw(&explain, &none(), None).await?;
    let refused = match client.create("CREATE STREAM broken;", &none(), None).await {
        Err(ksqldb::Error::KSQL(error)) => error.error_code,
        _ => None,
    };
    Ok(json!({
        "created": states,
        "inserted": inserted,
        "streamed in": streamed_in,
        "pulled": pulled,
        "pushed": pushed,
        "fields": described[0].source_description.fields.len(),
        "explained": explained[0]["@type"],
        "refused": refused,
        "dropped": dropped.len(),
    }))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let given: Vec<String> = std::env::args().collect();
    println!("{}", walk(given[1].trim_start_matches("http://"), &given[2]).await?);
    Ok(())
}
