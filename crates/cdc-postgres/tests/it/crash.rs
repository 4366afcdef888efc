//! Kills, restarts, two writers, replays: the table equals its source each time.

use std::time::Duration;

use cdc_core::{ErrorKind, port::Sink};
use tokio_postgres::Client;

use crate::{
    history::{History, catch_up, commit, must_hold, orders, step},
    support::{block_on, config, connect, new_schema, own_server, rows, shared, sink},
};

/// Waits until a session of the sink waits for a lock.
async fn until_blocked(client: &Client) {
    let text = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'cdc' \
                AND wait_event_type = 'Lock'";
    for _ in 0..500 {
        if client.query_one(text, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the commit does not wait");
}

#[test]
fn a_server_killed_in_the_middle_of_a_batch_has_nothing_of_it() {
    let Some(mut server) = own_server(&[]) else { return };
    let history = History::new(6, 300, 80);
    let config = config(&server, "killed");
    // In the merge, in the last step before the commit, while rows are staged, and at an attach.
    for blocked in ["orders", "cdc_control", "", "orders"] {
        let stopped = block_on(async {
            let sink = sink(&config);
            let mut attached = sink.attach(&orders()).await.unwrap();
            let before = attached.state.mark;
            let (batch, commit) = history.after(before.as_ref()).unwrap();
            step(attached.table.as_mut(), batch, commit).await.unwrap();
            let mark = sink.inspect(&orders()).await.unwrap().unwrap().mark;
            let (batch, commit) = history.after(mark.as_ref()).unwrap();
            attached.table.stage(batch).await.unwrap();
            let locker = connect(&server).await;
            let watcher = connect(&server).await;
            let result = if blocked.is_empty() {
                server.kill().unwrap();
                attached.table.commit(commit).await
            } else {
                let lock = format!("BEGIN; LOCK TABLE killed.{blocked} IN ACCESS EXCLUSIVE MODE");
                locker.batch_execute(&lock).await.unwrap();
                let running = tokio::spawn(async move { attached.table.commit(commit).await });
                until_blocked(&watcher).await;
                server.kill().unwrap();
                running.await.unwrap()
            };
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Unavailable);
            mark
        });
        server.restart(&[]).unwrap();
        block_on(async {
            let state = sink(&config).inspect(&orders()).await.unwrap().unwrap();
            assert_eq!(state.mark, stopped);
            must_hold(&server, "killed", &history.at(stopped.as_ref())).await;
        });
    }
    block_on(async {
        catch_up(&sink(&config), &history).await.unwrap();
        must_hold(&server, "killed", &history.batches[5].1).await;
    });
}

#[test]
fn whenever_the_server_is_killed_rows_and_mark_are_of_one_moment() {
    let Some(mut server) = own_server(&[]) else { return };
    let history = History::new(5, 4_000, 900);
    let mut config = config(&server, "any_moment");
    // Several pieces a batch.
    config.stage_bytes_max = 100_000;
    let mut died = 0;
    for micros in [500, 3_000, 8_000, 15_000, 25_000, 40_000, 70_000, 120_000] {
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_micros(micros));
                server.kill().unwrap();
            });
            block_on(async { catch_up(&sink(&config), &history).await })
        });
        died += u32::from(result.is_err());
        server.restart(&[]).unwrap();
        block_on(async {
            let mark = sink(&config).inspect(&orders()).await.unwrap().and_then(|s| s.mark);
            must_hold(&server, "any_moment", &history.at(mark.as_ref())).await;
        });
    }
    assert!(died > 0, "no kill came in time");
    block_on(async {
        catch_up(&sink(&config), &history).await.unwrap();
        must_hold(&server, "any_moment", &history.batches[4].1).await;
    });
}

#[test]
fn two_writers_at_once_give_what_one_gives() {
    let Some(server) = shared() else { return };
    let schema = new_schema();
    let history = History::new(60, 40, 25);
    block_on(async {
        let writer = async |pause: u64| {
            // Each fences the other, again and again; in the end both see the same end.
            let sink = sink(&config(server, &schema));
            let mut fenced = 0;
            for _ in 0..1_000 {
                match catch_up(&sink, &history).await {
                    Ok(()) => return fenced,
                    Err(error) => {
                        let kind = error.kind();
                        assert!(kind == ErrorKind::Fenced, "{}", error.report());
                        fenced += 1;
                        tokio::time::sleep(Duration::from_millis(pause)).await;
                    }
                }
            }
            panic!("the writers keep each other from the end");
        };
        let (a, b) = futures_util::future::join(writer(11), writer(17)).await;
        assert!(a + b > 0, "the writers never met");
        let mark = sink(&config(server, &schema)).inspect(&orders()).await.unwrap().unwrap().mark;
        assert_eq!(mark.map(|mark| mark.sequence), Some(60));
        must_hold(server, &schema, &history.batches[59].1).await;
    });
}

#[test]
fn a_replay_of_the_whole_history_touches_no_row() {
    let Some(server) = shared() else { return };
    let schema = new_schema();
    let history = History::new(20, 60, 30);
    block_on(async {
        let sink = sink(&config(server, &schema));
        catch_up(&sink, &history).await.unwrap();
        let client = connect(server).await;
        let text = format!(
            "SELECT string_agg(ctid::text || xmin::text || src_pos, ',' ORDER BY id) \
             FROM \"{schema}\".orders"
        );
        let before: String = client.query_one(&text, &[]).await.unwrap().get(0);
        let mut attached = sink.attach(&orders()).await.unwrap();
        // Backwards, and then everything again in one commit.
        for (count, (batch, _)) in history.batches.iter().rev().enumerate() {
            let commit = commit(21 + count as u64, 20);
            step(attached.table.as_mut(), batch.clone(), commit).await.unwrap();
        }
        for (batch, _) in &history.batches {
            attached.table.stage(batch.clone()).await.unwrap();
        }
        attached.table.commit(commit(41, 20)).await.unwrap();
        let after: String = client.query_one(&text, &[]).await.unwrap().get(0);
        assert!(before == after, "a row was written again");
        must_hold(server, &schema, &history.batches[19].1).await;
        assert!(!rows(server, &schema, "orders").await.is_empty());
    });
}
